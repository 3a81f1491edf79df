package capture

import (
	"context"
	"net/url"
	"strings"

	"hookglass"
	"hookglass/internal/provider"
	"hookglass/internal/store"
)

// Signature describes the check of an event's signature. It holds no secret and no expected signature.
type Signature struct {
	Provider string
	Recorded provider.Verdict // at reception, or at the last recheck
	Now      provider.Verdict // with the current configs, as of the time of reception
	Finding  provider.Finding // why it fails, or would
}

// judgeTimes is how many times its size an event takes while its signature is checked.
const judgeTimes = 3

// Signature checks the event's signature with the current configs and finds out why it fails. It answers not_found, and
// unavailable if there is no room for a large event.
func (s *Service) Signature(ctx context.Context, who hookglass.Principal, ref, eventID string) (sig Signature, err error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	ev, err := s.Hold(ctx, who, judgeTimes, func(v *store.View) (*hookglass.Event, error) { return v.Event(ref, eventID) })
	if err != nil {
		return sig, err
	}
	return s.SignatureOf(ctx, who, ref, ev)
}

// SignatureOf is Signature for an event that was read already.
func (s *Service) SignatureOf(ctx context.Context, who hookglass.Principal, ref string, ev *hookglass.Event) (sig Signature, err error) {
	e, configs, err := s.configured(ctx, who, ref)
	if err != nil {
		return sig, err
	}
	if ev.Type != hookglass.EventWebhook {
		return sig, hookglass.Invalid("id", "is mail, which has no webhook signature; see its authentication")
	}
	req := s.presented(ev, e.Provider)
	found := provider.Detect(req)
	return Signature{
		Provider: ev.Provider,
		Recorded: provider.Verdict{Status: ev.SignatureStatus, Reason: ev.SignatureReason},
		Now:      s.verify(req, found, configs),
		Finding:  provider.Diagnose(req, found, configs),
	}, nil
}

// configured returns an endpoint and its enabled signature configs. It answers not_found.
func (s *Service) configured(ctx context.Context, who hookglass.Principal, ref string) (e hookglass.Endpoint, configs []provider.Config, err error) {
	err = s.db.View(ctx, who, func(v *store.View) error {
		if e, err = v.Endpoint(ref); err != nil {
			return err
		}
		configs, err = s.cfg.Verifiers.Verifiers(v, ref)
		return err
	})
	return e, configs, err
}

// Rejudged counts what [Service.Rejudge] did.
type Rejudged struct{ Checked, Changed, Verified, Failed, Unchecked int }

// maxRejudged bounds one call, for which a person waits; rejudgePiece bounds the verdicts in one transaction.
const (
	maxRejudged  = 1000
	rejudgePiece = 50
)

// Rejudge checks the newest events, at most [maxRejudged], with the current configs and stores the new verdicts.
// Timestamps are judged as of each event's reception.
func (s *Service) Rejudge(ctx context.Context, who hookglass.Principal, ref string, configID int64) (r Rejudged, err error) {
	j := rejudging{Service: s, who: who, fetches: keysForPerson}
	err = s.db.View(ctx, who, func(v *store.View) error {
		if j.endpoint, err = v.Endpoint(ref); err != nil {
			return err
		}
		if _, err = v.SignatureConfig(ref, configID); err != nil {
			return err
		}
		j.configs, err = s.cfg.Verifiers.Verifiers(v, ref)
		return err
	})
	if err != nil {
		return r, err
	}
	for before := int64(0); j.found.Checked < maxRejudged; {
		var page store.EventPage
		err = s.db.View(ctx, who, func(v *store.View) (err error) {
			page, err = v.Events(ref, store.EventList{Limit: rejudgePiece, Before: before})
			return err
		})
		if err != nil {
			return j.found, err
		}
		if err := j.piece(ctx, page.Events); err != nil {
			return j.found, err
		}
		if before = page.Next; before == 0 {
			break
		}
	}
	return j.found, nil
}

// rejudging is one call of Rejudge.
type rejudging struct {
	*Service
	who      hookglass.Principal
	endpoint hookglass.Endpoint
	configs  []provider.Config
	fetches  int // how many more keys may be fetched
	found    Rejudged
}

// piece checks some events and stores the verdicts that changed in one transaction.
func (j *rejudging) piece(ctx context.Context, events []*hookglass.Event) error {
	var verdicts []store.SignatureVerdict
	for _, listed := range events { // one at a time: bodies are large
		ev, verdict, err := j.judge(ctx, string(listed.ID))
		if hookglass.Is(err, hookglass.CodeNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		j.found.Checked++
		switch verdict.Status {
		case hookglass.SignatureVerified:
			j.found.Verified++
		case hookglass.SignatureFailed:
			j.found.Failed++
		default:
			j.found.Unchecked++
		}
		if verdict.Status != ev.SignatureStatus || verdict.Reason != ev.SignatureReason {
			verdicts = append(verdicts, judged(ev, verdict))
		}
	}
	if len(verdicts) == 0 {
		return nil
	}
	j.found.Changed += len(verdicts)
	return j.db.Update(ctx, j.who, func(tx *store.Tx) error { return tx.JudgeSignatures(verdicts...) })
}

// judge reads an event once there is room and checks it. It fetches a missing key if the bound permits.
func (j *rejudging) judge(ctx context.Context, id string) (ev *hookglass.Event, verdict provider.Verdict, err error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	if ev, err = j.Hold(ctx, j.who, judgeTimes, func(v *store.View) (*hookglass.Event, error) { return v.Event(string(j.endpoint.ID), id) }); err != nil {
		return nil, verdict, err
	}
	req := j.presented(ev, j.endpoint.Provider)
	found := provider.Detect(req)
	verdict = j.verify(req, found, j.configs)
	if verdict.Needs == nil || j.fetches == 0 {
		return ev, verdict, nil
	}
	j.fetches--
	if j.keys.fetch(ctx, *verdict.Needs) == nil {
		verdict = j.verify(req, found, j.configs)
	}
	return ev, verdict, nil
}

// judged returns a verdict on an event in stored form.
func judged(ev *hookglass.Event, v provider.Verdict) store.SignatureVerdict {
	return store.SignatureVerdict{EndpointNum: ev.EndpointNum, EventSeq: ev.Seq, Status: v.Status, Reason: v.Reason}
}

// presented is the event as input of package provider, with the URLs that the sender may have signed.
func (s *Service) presented(ev *hookglass.Event, hint string) *provider.Request {
	r := provider.Received(ev)
	r.Hint = hint
	r.URLs = spellings(ev, s.cfg.PublicURL)
	return r
}

// spellings lists the URLs that a sender may have signed besides the one computed here: with the public address, the
// other scheme, and the host that it named (reference, "Pitfalls", 9).
func spellings(ev *hookglass.Event, public *url.URL) []string {
	_, rest, ok := strings.Cut(ev.URL, "://")
	if !ok {
		return nil
	}
	host, target := rest, ""
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		host, target = rest[:slash], rest[slash:]
	}
	hosts := []string{host}
	if h := ev.Headers.Get("Host"); h != "" && h != host {
		hosts = append(hosts, h)
	}
	urls := make([]string, 0, 5)
	if public != nil {
		below := target // a proxy that hides the public host may also strip a path prefix
		if !strings.HasPrefix(target, public.Path+"/") {
			below = public.Path + target
		}
		urls = append(urls, public.Scheme+"://"+public.Host+below)
	}
	for _, h := range hosts {
		urls = append(urls, "https://"+h+target, "http://"+h+target)
	}
	return urls
}
