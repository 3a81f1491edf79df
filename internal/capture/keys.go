package capture

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"hookglass"
	"hookglass/internal/outbound"
	"hookglass/internal/provider"
	"hookglass/internal/store"
)

// Bounds of fetching the keys that senders publish. What deliveries name is up to whoever sends them, so what they can
// cause is little: package provider lets no address through but the sender's own, and these bound the rest.
const (
	keyLife    = 24 * time.Hour   // a key that was fetched is used for so long
	keyRest    = 30 * time.Second // one that could not be is left alone for so long
	keyTimeout = 5 * time.Second
	keyBytes   = 64 << 10
	maxKeys    = 1024 // in memory, and as many failures
	keysPerSec = 5
	keyBurst   = 20
	// keyPatience is for how long after its reception an event waits for a key that cannot be had.
	keyPatience = 10 * time.Minute
	// keysForPerson bounds what one call fetches for which a person waits.
	keysForPerson = 4
)

// Fetcher is the way out to where senders publish their keys: outbound.Client, or a network that a test makes up.
type Fetcher interface {
	Do(ctx context.Context, r outbound.Request) (*outbound.Response, error)
}

// keyring keeps published keys. Looking one up never waits; fetching is for the background.
type keyring struct {
	client Fetcher // nil: nothing is fetched
	limit  *rate.Limiter
	log    *slog.Logger

	mu     sync.Mutex
	known  map[provider.KeyRef]publishedKey
	failed map[provider.KeyRef]failedKey
}

type publishedKey struct {
	answer []byte
	until  time.Time
}

type failedKey struct {
	err   error
	until time.Time
}

func newKeyring(client Fetcher, log *slog.Logger) *keyring {
	return &keyring{
		client: client, log: log, limit: rate.NewLimiter(keysPerSec, keyBurst),
		known: make(map[provider.KeyRef]publishedKey), failed: make(map[provider.KeyRef]failedKey),
	}
}

// lookUp returns a key that was fetched, or nil.
func (k *keyring) lookUp(ref provider.KeyRef) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key := k.known[ref]; time.Now().Before(key.until) {
		return key.answer
	}
	return nil
}

// errNoSuchKey says that it will not help to ask again.
var errNoSuchKey = errors.New("the key's address does not have it")

// fetch has a key fetched, unless it is there. It answers rate_limited when it is to be asked again later, and
// errNoSuchKey.
func (k *keyring) fetch(ctx context.Context, ref provider.KeyRef) error {
	if k.lookUp(ref) != nil {
		return nil
	}
	k.mu.Lock()
	before := k.failed[ref]
	k.mu.Unlock()
	switch {
	case k.client == nil:
		return errNoSuchKey
	case time.Now().Before(before.until):
		return before.err
	case !k.limit.Allow():
		return later(time.Second)
	}
	answer, err := k.ask(ctx, ref)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		if len(k.failed) >= maxKeys {
			clear(k.failed)
		}
		k.failed[ref] = failedKey{err: err, until: time.Now().Add(keyRest)}
		return err
	}
	if len(k.known) >= maxKeys {
		clear(k.known)
	}
	k.known[ref] = publishedKey{answer: answer, until: time.Now().Add(keyLife)}
	delete(k.failed, ref)
	return nil
}

func (k *keyring) ask(ctx context.Context, ref provider.KeyRef) ([]byte, error) {
	r := outbound.Request{
		Method: "GET", URL: ref.URL, Timeout: keyTimeout, MaxResponseBytes: keyBytes, Key: "published keys",
		Headers: hookglass.Headers{{Name: "User-Agent", Value: "hookglass/" + hookglass.Version}, {Name: "Accept", Value: "*/*"}},
	}
	if ref.Post != "" {
		r.Method, r.Body = "POST", []byte(ref.Post)
		r.Headers = append(r.Headers, hookglass.Header{Name: "Content-Type", Value: "application/json"})
	}
	res, err := k.client.Do(ctx, r)
	switch {
	case err != nil:
		k.log.Info("a sender's key could not be fetched", "address", ref.URL, "error", err)
		return nil, later(keyRest)
	case res.Status >= 500 || res.Status == 408 || res.Status == 425 || res.Status == 429:
		return nil, later(keyRest)
	case res.Status != 200 || res.Truncated || !ref.Accepts(res.Body):
		k.log.Info("a sender's key is not where a delivery says", "address", ref.URL, "status", res.Status)
		return nil, errNoSuchKey
	}
	return res.Body, nil
}

func later(wait time.Duration) error {
	return &hookglass.Error{Code: hookglass.CodeRateLimited, Message: "A sender's key could not be fetched yet.", RetryAfter: wait}
}

// verify judges a request with the keys that are known.
func (s *Service) verify(req *provider.Request, found provider.Detection, configs []provider.Config) provider.Verdict {
	req.Keys = s.keys.lookUp
	return provider.Verify(req, found, configs)
}

// JudgeSignature does a task of the kind store.TaskSignature: it fetches the key that an event's signature is to be
// checked with, and judges the event again, as of the time of its reception. It answers rate_limited when that has to
// wait.
func (s *Service) JudgeSignature(ctx context.Context, t store.Task) error {
	ev := t.Event
	var e hookglass.Endpoint
	var configs []provider.Config
	err := s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		if ev.Payload == nil {
			events, err := v.EventsBySeq([]int64{ev.Seq}, ev.Size)
			if err != nil {
				return err
			}
			if ev = events[t.EventSeq]; ev == nil {
				return hookglass.NotFound("event")
			}
		}
		if e, err = v.Endpoint(string(ev.EndpointID)); err != nil {
			return err
		}
		configs, err = s.cfg.Verifiers.Verifiers(v, e.Num)
		return err
	})
	if err != nil {
		return err
	}
	req := s.presented(ev, e.Provider)
	found := provider.Detect(req)
	verdict := s.verify(req, found, configs)
	if verdict.Needs != nil {
		err := s.keys.fetch(ctx, *verdict.Needs)
		switch {
		case err == nil: // it may have been fetched for another
			verdict = s.verify(req, found, configs)
		case hookglass.Is(err, hookglass.CodeRateLimited) && s.db.Now().Sub(ev.ReceivedAt) < keyPatience, ctx.Err() != nil:
			return err
		}
	}
	if verdict.Status == ev.SignatureStatus && verdict.Reason == ev.SignatureReason {
		return nil
	}
	return s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.JudgeSignatures(judged(ev, verdict)) })
}
