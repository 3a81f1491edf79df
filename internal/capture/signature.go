package capture

import (
	"context"
	"net/url"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/provider"
	"hookglass/internal/store"
)

// Signature is what can be said of an event's signature. Nothing in it is a secret or an expected signature.
type Signature struct {
	Provider string
	Recorded provider.Verdict // at reception, or when it was judged again
	Now      provider.Verdict // with the configs of now, as of the time of reception
	Finding  provider.Finding // why it fails, or would
}

// judgeTimes is how many times its size an event takes while its signature is judged.
const judgeTimes = 3

// Signature judges the event's signature with the configs of now and finds out why it fails. It answers not_found, and
// unavailable where there is no room for a large event.
func (s *Service) Signature(ctx context.Context, who hookglass.Principal, ref, eventID string) (sig Signature, err error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	ev, err := s.Hold(ctx, who, judgeTimes, func(v *store.View) (*hookglass.Event, error) { return v.Event(ref, eventID) })
	if err != nil {
		return sig, err
	}
	return s.SignatureOf(ctx, who, ref, ev)
}

// SignatureOf is Signature of an event that was read.
func (s *Service) SignatureOf(ctx context.Context, who hookglass.Principal, ref string, ev *hookglass.Event) (sig Signature, err error) {
	var e hookglass.Endpoint
	var configs []provider.Config
	err = s.db.View(ctx, who, func(v *store.View) error {
		if e, err = v.Endpoint(ref); err != nil {
			return err
		}
		configs, err = s.cfg.Verifiers.Verifiers(v, e.Num)
		return err
	})
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

// Rejudged counts what [Service.Rejudge] did.
type Rejudged struct{ Checked, Changed, Verified, Failed, Unchecked int }

// maxRejudged bounds one call, for which a person waits; rejudgePiece the verdicts of one transaction.
const (
	maxRejudged  = 1000
	rejudgePiece = 50
)

// Rejudge checks the newest events again, [maxRejudged] at most, with the configs of now, and keeps the new verdicts.
// Timestamps are judged as of the reception of each.
func (s *Service) Rejudge(ctx context.Context, who hookglass.Principal, ref string, configID int64) (r Rejudged, err error) {
	j := rejudging{Service: s, who: who, fetches: keysForPerson}
	err = s.db.View(ctx, who, func(v *store.View) error {
		if j.endpoint, err = v.Endpoint(ref); err != nil {
			return err
		}
		if _, err = v.SignatureConfig(j.endpoint.Num, configID); err != nil {
			return err
		}
		j.configs, err = s.cfg.Verifiers.Verifiers(v, j.endpoint.Num)
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
	fetches  int // of keys, that are left
	found    Rejudged
}

// piece checks some events and keeps what differs from before in one transaction.
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

// judge reads an event while there is room for it, and judges it. It fetches a key that it needs while that may be
// done.
func (j *rejudging) judge(ctx context.Context, id string) (ev *hookglass.Event, verdict provider.Verdict, err error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	if ev, err = j.Hold(ctx, j.who, judgeTimes, func(v *store.View) (*hookglass.Event, error) { return v.EventOf(j.endpoint, id) }); err != nil {
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

// judged is a verdict on an event as it is stored.
func judged(ev *hookglass.Event, v provider.Verdict) store.SignatureVerdict {
	return store.SignatureVerdict{EndpointNum: ev.EndpointNum, EventSeq: ev.Seq, Status: v.Status, Reason: v.Reason}
}

// received is the event as the provider package reads it.
func received(ev *hookglass.Event, hint string) *provider.Request {
	return &provider.Request{
		Method: ev.Method, URL: ev.URL, Path: ev.Path, RawQuery: ev.RawQuery,
		Headers: ev.Headers, Body: ev.Body, ReceivedAt: ev.ReceivedAt, Hint: hint,
	}
}

// presented is the event as the provider package judges it, with the URLs that its sender may have signed.
func (s *Service) presented(ev *hookglass.Event, hint string) *provider.Request {
	r := received(ev, hint)
	r.URLs = spellings(ev, s.cfg.PublicURL)
	return r
}

// spellings lists the URLs that a sender may have signed besides the one that was put together here: the public
// address, the other scheme, and the host that it named (reference, "Pitfalls", 9).
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
		below := target // a proxy that says nothing of the public host may cut its path too
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

// TestRequest says what a test request is: a sample event of a provider, or a request spelled out.
type TestRequest struct {
	Provider  string // a sample, with EventType
	EventType string
	Method    string // spelled out, when Provider is empty; default POST
	Path      string // default /
	Headers   hookglass.Headers
	Body      []byte
}

// SendTest captures a request as if it had come from outside, and returns the event. A sample is given fresh ids and
// signed with the endpoint's own config, where there is one. It answers validation_failed for a sample that does not
// exist, conflict for an endpoint that is disabled, and payload_too_large for a body that reception would refuse.
func (s *Service) SendTest(ctx context.Context, who hookglass.Principal, ref, origin string, r TestRequest) (hookglass.EventID, error) {
	var e hookglass.Endpoint
	var configs []provider.Config
	err := s.db.View(ctx, who, func(v *store.View) (err error) {
		if e, err = v.Endpoint(ref); err != nil {
			return err
		}
		configs, err = s.cfg.Verifiers.Verifiers(v, e.Num)
		return err
	})
	if err != nil {
		return "", err
	}
	if e.Kind != hookglass.KindWebhook {
		return "", hookglass.Invalid("endpoint_id", "is an email endpoint; test requests are webhooks")
	}
	now := time.Now()
	hook := origin + "/hooks/" + string(e.ID)
	out := provider.Outgoing{Method: r.Method, URL: hook + r.Path, Headers: r.Headers, Body: r.Body}
	if r.Provider != "" {
		if out, err = sample(r, hook, configs, s.db.Stamp(now)); err != nil { // by the clock that judges it
			return "", err
		}
	}
	u, err := url.Parse(out.URL)
	if err != nil {
		return "", hookglass.Invalid("path", "is no path of a URL")
	}
	t, err := s.Admit(ctx, string(e.ID))
	if hookglass.Is(err, hookglass.CodeGone) { // which is said to senders alone
		err = hookglass.Errorf(hookglass.CodeConflict, "This endpoint is disabled, so it takes no test request. Enable it first.")
	}
	if err != nil {
		return "", err
	}
	if s.cfg.MaxBody > 0 && int64(len(out.Body)) > s.cfg.MaxBody {
		return "", hookglass.Errorf(hookglass.CodePayloadTooLarge, "The body is larger than this service accepts.")
	}
	target := u.EscapedPath()
	path := strings.TrimPrefix(target, "/hooks/"+string(e.ID))
	if at := strings.Index(target, "/hooks/"); at > 0 { // the service may live below a path of its host
		path = strings.TrimPrefix(target[at:], "/hooks/"+string(e.ID))
	}
	if u.RawQuery != "" {
		target += "?" + u.RawQuery
	}
	if path == "" {
		path = "/"
	}
	a := &Arrival{
		Method: out.Method, Path: path, RawQuery: u.RawQuery, HasQuery: u.RawQuery != "", Target: target, Proto: "HTTP/1.1",
		Host: u.Host, Scheme: u.Scheme, Client: loopback, Body: out.Body, At: now,
		Headers: append(hookglass.Headers{{Name: "Host", Value: u.Host}}, out.Headers...),
	}
	ev, err := s.capture(ctx, t, a)
	if err != nil {
		return "", err
	}
	return ev.ID, nil
}

func sample(r TestRequest, hook string, configs []provider.Config, now time.Time) (provider.Outgoing, error) {
	out, err := provider.Sample(r.Provider, r.EventType, hook)
	if err != nil {
		return out, err
	}
	d := provider.Detect(&provider.Request{Method: out.Method, URL: out.URL, Headers: out.Headers, Body: out.Body, ReceivedAt: now})
	if fresh, _, err := provider.Regenerate(out, d, configs, provider.NewIdentity()); err == nil {
		out = fresh // a form keeps the ids of the sample
	}
	for _, c := range configs {
		if c.Provider == r.Provider {
			return provider.Sign(out, c, now)
		}
	}
	return out, nil
}
