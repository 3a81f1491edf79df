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

// Bounds on fetching the keys that senders publish. Deliveries name the keys, and anybody can send deliveries. Package
// provider allows only addresses of the genuine sender; these limits bound the rest.
const (
	keyLife    = 24 * time.Hour   // how long a fetched key is used
	keyRest    = 30 * time.Second // how long a failed key is not tried again
	keyTimeout = 5 * time.Second
	keyBytes   = 64 << 10
	maxKeys    = 1024 // keys in memory, and likewise failures
	keysPerSec = 5
	keyBurst   = 20
	// keyPatience is how long after its reception an event waits for a key that cannot be fetched.
	keyPatience = 10 * time.Minute
	// keysForPerson bounds the fetches of one call for which a person waits.
	keysForPerson = 4
)

// Fetcher fetches published keys: outbound.Client, or a fake network in a test.
type Fetcher interface {
	Do(ctx context.Context, r outbound.Request) (*outbound.Response, error)
}

// keyring holds published keys. A look-up never waits; fetching is for background work.
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

// lookUp returns a fetched key, or nil.
func (k *keyring) lookUp(ref provider.KeyRef) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key := k.known[ref]; time.Now().Before(key.until) {
		return key.answer
	}
	return nil
}

// errNoSuchKey says that trying again will not help.
var errNoSuchKey = errors.New("the key's address does not have it")

// fetch fetches a key unless it is known. It answers rate_limited if it should be tried again later, or errNoSuchKey.
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

// verify checks a request with the known keys.
func (s *Service) verify(req *provider.Request, found provider.Detection, configs []provider.Config) provider.Verdict {
	req.Keys = s.keys.lookUp
	return provider.Verify(req, found, configs)
}

// JudgeSignature does a task of kind store.TaskSignature: it fetches the key for an event's signature and checks the
// event again, as of its reception. It answers rate_limited if that has to wait.
func (s *Service) JudgeSignature(ctx context.Context, t store.Task) error {
	ev, give, err := s.load(ctx, t)
	defer give()
	if err != nil || ev == nil {
		return err
	}
	e, configs, err := s.configured(ctx, hookglass.System, string(ev.EndpointID))
	if err != nil {
		return err
	}
	req := s.presented(ev, e.Provider)
	found := provider.Detect(req)
	verdict := s.verify(req, found, configs)
	if verdict.Needs != nil {
		err := s.keys.fetch(ctx, *verdict.Needs)
		switch {
		case err == nil: // possibly fetched for another event
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
