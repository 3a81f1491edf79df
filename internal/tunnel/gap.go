package tunnel

import (
	"context"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// Bounds of lists of undelivered events.
const (
	maxEndpoints = 1000     // named in one request: as many as a socket may subscribe to
	maxListed    = 16 << 20 // bytes of the bodies of a page, beyond the first
)

// resolve finds the endpoints that a caller names, or all of its own if it names none. It answers not_found.
func resolve(v *store.View, refs []string) ([]hookglass.Endpoint, error) {
	if len(refs) > maxEndpoints {
		return nil, hookglass.Invalid("endpoint_ids[]", "may name %d endpoints at most", maxEndpoints)
	}
	if len(refs) == 0 {
		return v.Endpoints(0, 0)
	}
	endpoints := make([]hookglass.Endpoint, 0, len(refs))
	for _, ref := range refs {
		e, err := v.Endpoint(ref)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(endpoints, func(o hookglass.Endpoint) bool { return o.Num == e.Num }) {
			endpoints = append(endpoints, e)
		}
	}
	return endpoints, nil
}

// Gaps lists the outages of endpoints that are not recovered, oldest first: at most limit of them, with numbers above
// after.
func (s *Service) Gaps(ctx context.Context, who hookglass.Principal, refs []string, after int64, limit int) (gaps []hookglass.Gap, err error) {
	err = s.db.View(ctx, who, func(v *store.View) error {
		endpoints, err := resolve(v, refs)
		if err != nil {
			return err
		}
		nums := make([]int64, len(endpoints))
		for i, e := range endpoints {
			nums[i] = e.Num
		}
		gaps, err = v.Gaps(nums, after, limit)
		return err
	})
	return gaps, err
}

// Missing is a page of events that no report marks as delivered, oldest first.
type Missing struct {
	Events []*hookglass.Event
	Next   int64 // Seq behind which the next page begins; 0: the end
	Gap    *hookglass.Gap
	Since  time.Time // unless Gap is set
	Total  int64     // unless Gap is set: all events since then, delivered or not
	Missed int64     // unless Gap is set: those that were not delivered
}

// InGap lists the events of one outage that no report marks as delivered. It answers not_found, also when the outage's
// endpoint is not among those named.
func (s *Service) InGap(ctx context.Context, who hookglass.Principal, refs []string, gapID string, after int64, limit int) (m Missing, err error) {
	err = s.page(ctx, who, &m, func(v *store.View) error {
		m = Missing{}
		g, err := v.Gap(gapID)
		if err != nil {
			return err
		}
		if len(refs) > 0 {
			endpoints, err := resolve(v, refs)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(endpoints, func(e hookglass.Endpoint) bool { return e.Num == g.EndpointNum }) {
				return hookglass.NotFound("gap")
			}
		}
		m.Gap = &g
		return m.collect(v, []int64{g.EndpointNum}, store.Undelivered{Gap: &g, After: after}, limit)
	})
	return m, err
}

// Span selects a page of the events received since a time.
type Span struct {
	Endpoints []string // ids or custom ids; none: all
	Since     time.Time
	After     int64 // Seq behind which the page begins
	Limit     int
	Counted   bool // also count all of them
}

// Since lists the events of a span that no report marks as delivered. It answers validation_failed for a span that
// begins before the oldest retained data.
func (s *Service) Since(ctx context.Context, who hookglass.Principal, of Span) (m Missing, err error) {
	err = s.page(ctx, who, &m, func(v *store.View) error {
		retention := s.Retention
		if who.Account != 0 {
			account, err := v.Account(who.Account)
			if err != nil {
				return err
			}
			if account.Retention > 0 {
				retention = account.Retention
			}
		}
		// Allow a minute: a caller may name the exact bound. Later pages are not checked, since the bound moves on.
		if of.After == 0 && of.Since.Before(v.Now.Add(-retention).Add(-time.Minute)) {
			return hookglass.Invalid("since", "is before the data that is retained")
		}
		m, err = missingSince(v, of)
		return err
	})
	return m, err
}

func missingSince(v *store.View, of Span) (Missing, error) {
	m := Missing{Since: of.Since}
	endpoints, err := resolve(v, of.Endpoints)
	if err != nil {
		return m, err
	}
	var nums []int64
	for _, e := range endpoints {
		if e.LastEventAt.Before(of.Since) {
			continue
		}
		nums = append(nums, e.Num)
		if of.Counted {
			missed, all, err := v.CountUndelivered(e.Num, of.Since)
			if err != nil {
				return m, err
			}
			m.Missed += missed
			m.Total += all
		}
	}
	err = m.collect(v, nums, store.Undelivered{Since: of.Since, After: of.After}, of.Limit)
	return m, err
}

// Within is Since for older clients: the span may begin before the oldest retained data.
func (s *Service) Within(ctx context.Context, who hookglass.Principal, of Span) (m Missing, err error) {
	err = s.page(ctx, who, &m, func(v *store.View) (err error) {
		m, err = missingSince(v, of)
		return err
	})
	return m, err
}

// page reads a page of events, whose memory is reserved until ctx is done.
func (s *Service) page(ctx context.Context, who hookglass.Principal, m *Missing, read func(*store.View) error) error {
	_, err := s.HoldAll(ctx, who, listTimes, func(v *store.View) ([]*hookglass.Event, error) {
		err := read(v)
		return m.Events, err
	})
	return err
}

// collect fills a page from several endpoints in the order of capture. It loads payloads only for the events on the
// page: an account may have thousands of endpoints with large bodies.
func (m *Missing) collect(v *store.View, nums []int64, u store.Undelivered, limit int) error {
	if err := m.merge(v, nums, u, limit); err != nil {
		return err
	}
	return v.LoadPayloads(m.Events)
}

// merge finds the events of the page.
func (m *Missing) merge(v *store.View, nums []int64, u store.Undelivered, limit int) error {
	type source struct {
		num    int64
		events []*hookglass.Event
		more   bool
	}
	read := func(src *source, after int64) (err error) {
		u.After, u.Limit = after, min(limit, 64)
		src.events, src.more, err = v.UndeliveredEvents(src.num, u)
		return err
	}
	sources := make([]*source, len(nums))
	for i, num := range nums {
		sources[i] = &source{num: num}
		if err := read(sources[i], u.After); err != nil {
			return err
		}
	}
	var bytes int64
	for {
		var first *source
		for _, src := range sources {
			if len(src.events) > 0 && (first == nil || src.events[0].Seq < first.events[0].Seq) {
				first = src
			}
		}
		if first == nil {
			return nil
		}
		e := first.events[0]
		if n := len(m.Events); n == limit || n > 0 && bytes+e.Size > maxListed {
			m.Next = m.Events[n-1].Seq
			return nil
		}
		m.Events = append(m.Events, e)
		bytes += e.Size
		if first.events = first.events[1:]; len(first.events) == 0 && first.more {
			if err := read(first, e.Seq); err != nil {
				return err
			}
		}
	}
}

// Recovery is a client's report on its recovery of an outage.
type Recovery struct {
	Outcome                      string
	Attempted, Succeeded, Failed int64
}

// Recover stores a recovery, and computes what it achieved from the delivery reports themselves (spec, "Tunnel gap
// states"). It answers not_found and validation_failed.
func (s *Service) Recover(ctx context.Context, who hookglass.Principal, gapID string, r Recovery) (g hookglass.Gap, err error) {
	var f faults
	if !slices.Contains(hookglass.GapOutcomes, r.Outcome) {
		f.add("outcome", "must be one of %s", strings.Join(hookglass.GapOutcomes, ", "))
	}
	for _, c := range []struct {
		field string
		n     int64
	}{{"attempted_count", r.Attempted}, {"succeeded_count", r.Succeeded}, {"failed_count", r.Failed}} {
		if c.n < 0 {
			f.add(c.field, "must not be negative")
		}
	}
	if len(f) > 0 {
		return g, hookglass.InvalidFields(f)
	}
	return s.recovered(ctx, who, gapID, r.Outcome)
}

// Recount computes the state of an outage from the delivery reports anew. What the client said of its recovery stays.
// It answers not_found.
func (s *Service) Recount(ctx context.Context, who hookglass.Principal, gapID string) (hookglass.Gap, error) {
	return s.recovered(ctx, who, gapID, "")
}

func (s *Service) recovered(ctx context.Context, who hookglass.Principal, gapID, outcome string) (g hookglass.Gap, err error) {
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		g, err = tx.RecoverGap(gapID, outcome)
		return err
	})
	return g, err
}
