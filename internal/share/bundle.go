package share

import (
	"context"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/bundle"
	"hookglass/internal/delivery"
	"hookglass/internal/provider"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// Wanted says which events of an endpoint go into a bundle, by their ids or by a query, and what is replaced and kept
// in them (see [bundle.Options]).
type Wanted struct {
	Events   []string
	Query    string // the search language; "": by ids
	Pointers []string
	Keep     []string
}

// Bundle is a bundle with the events that are in it.
type Bundle struct {
	bundle.Made
	Sources []hookglass.EventID // in the order of its events
	At      time.Time
}

// bundleBytes is the room that a bundle takes in the making: its bodies as they were received, decompressed, parsed and
// written.
const bundleBytes = 4 * bundle.MaxBytes

// Bundle makes a file of events that can be given away. Nothing of it is stored. It answers not_found,
// validation_failed, payload_too_large, conflict where something cannot be taken out, and unavailable.
func (s *Service) Bundle(ctx context.Context, who hookglass.Principal, ref string, w Wanted) (b Bundle, err error) {
	if (len(w.Events) > 0) == (w.Query != "") {
		return b, hookglass.Invalid("request_ids", "or query must be given, and not both")
	}
	if len(w.Events) > bundle.MaxEvents {
		return b, hookglass.Invalid("request_ids", "may name %d requests at most", bundle.MaxEvents)
	}
	b.At = s.db.Now()
	ctx, done := context.WithCancel(ctx)
	defer done()
	ids, err := s.chosen(ctx, who, ref, w, b.At)
	if err == nil {
		err = s.reads.RoomFor(ctx, who, bundleBytes)
	}
	if err != nil {
		return b, err
	}
	var sources []bundle.Source
	options := bundle.Options{Pointers: w.Pointers, Keep: w.Keep}
	err = s.db.View(ctx, who, func(v *store.View) error {
		at, err := v.Endpoint(ref)
		if err != nil {
			return err
		}
		configs, err := s.configs.Verifiers(v, string(at.ID))
		if err != nil {
			return err
		}
		if options.Secrets, err = s.secretsOf(v, at); err != nil {
			return err
		}
		for _, id := range ids {
			e, err := v.Event(ref, id)
			if err != nil {
				return err
			}
			if slices.Contains(b.Sources, e.ID) {
				continue
			}
			if i := strings.LastIndexByte(e.Path, '@'); e.Type == hookglass.EventEmail && i >= 0 { // with what follows a plus sign, and without
				options.Addresses = append(options.Addresses, e.Path, at.EmailLocalPart+e.Path[i:])
			}
			b.Sources, sources = append(b.Sources, e.ID), append(sources, source(e, configs))
		}
		return nil
	})
	if err != nil {
		return b, err
	}
	maker, err := bundle.New(options)
	if err != nil {
		return b, err
	}
	b.Made, err = maker.Make(ctx, sources)
	return b, err
}

// chosen lists the events that are wanted, and refuses what has more bytes than a bundle.
func (s *Service) chosen(ctx context.Context, who hookglass.Principal, ref string, w Wanted, now time.Time) (ids []string, err error) {
	ids = w.Events
	if w.Query != "" {
		if ids, err = s.found(ctx, who, ref, w.Query, now); err != nil {
			return nil, err
		}
	}
	err = s.db.View(ctx, who, func(v *store.View) error {
		size := int64(0)
		seen := make(map[hookglass.EventID]bool, len(ids))
		for _, id := range ids {
			e, err := v.ListedEvent(ref, id)
			if err != nil {
				return err
			}
			if seen[e.ID] {
				continue
			}
			seen[e.ID] = true
			if size += e.Size; size > bundle.MaxBytes {
				return hookglass.Errorf(hookglass.CodePayloadTooLarge, "The bodies of a bundle may have 8 MiB together.")
			}
		}
		return nil
	})
	return ids, err
}

// secretsOf are what nobody may learn of an endpoint: how to send to it, and what its senders sign with.
func (s *Service) secretsOf(v *store.View, at hookglass.Endpoint) ([]string, error) {
	secrets := []string{string(at.ID)}
	if at.CustomID != "" { // often a word, so only where it is an address
		secrets = append(secrets, "/hooks/"+at.CustomID)
	}
	ofSenders, err := s.configs.Secrets(v, string(at.ID))
	return append(secrets, ofSenders...), err
}

const (
	searchTime = 20 * time.Second // for finding the events of a query, while a person waits
	pageTime   = 2 * time.Second  // of it for a page
)

// found lists the events that a query means, oldest first. Each page is read in a view of its own, because all of them
// may take longer than one view may last.
func (s *Service) found(ctx context.Context, who hookglass.Principal, ref, text string, now time.Time) (ids []string, err error) {
	q, err := query.Filter{Q: text}.Parse(now)
	if err != nil {
		return nil, query.Named("query", err)
	}
	for before, until := int64(0), time.Now().Add(s.searchTime); ; {
		err := s.db.View(ctx, who, func(v *store.View) error {
			page, err := v.Events(ref, store.EventList{Query: q, Limit: bundle.MaxEvents + 1 - len(ids), Before: before, Patience: min(s.searchTime, pageTime)})
			for _, e := range page.Events {
				ids = append(ids, string(e.ID))
			}
			before = page.Next
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case len(ids) > bundle.MaxEvents:
			return nil, hookglass.Invalid("query", "means more than %d requests; narrow it", bundle.MaxEvents)
		case before == 0 && len(ids) == 0:
			return nil, hookglass.Invalid("query", "%s", strings.TrimSuffix(strings.TrimSpace("means no request. "+query.Advice(text)), "."))
		case before == 0:
			slices.Reverse(ids)
			return ids, nil
		case !time.Now().Before(until):
			return nil, hookglass.Invalid("query", "takes too long; narrow it, for example by received times")
		}
	}
}

// source is an event as it goes into a bundle; of the address that it came to only what followed the endpoint.
func source(e *hookglass.Event, configs []provider.Config) bundle.Source {
	s := bundle.Source{Type: e.Type, Provider: e.Provider, EventType: e.EventType, Configs: configs, ReceivedAt: e.ReceivedAt}
	if e.Type == hookglass.EventEmail {
		s.Request = provider.Outgoing{Method: "POST", URL: "/", Body: delivery.MailJSON(e), Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}}}
		return s
	}
	if c, ok := provider.Verifying(provider.Received(e), provider.Detection{Provider: e.Provider}, configs); ok {
		s.Verifier = c.Provider
	}
	s.Request = provider.Outgoing{Method: e.Method, URL: e.Path, Body: e.Body, Headers: e.Headers}
	if e.RawQuery != "" {
		s.Request.URL += "?" + e.RawQuery
	}
	return s
}
