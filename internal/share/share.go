// Package share lets a person show captured events to others without what is secret in them: one by a link, read only and for a
// while, or several as a file (see internal/bundle). It hides how links are made and kept, what is blotted out, and what
// goes into a file.
package share

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"regexp"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/email"
	"hookglass/internal/provider"
	"hookglass/internal/store"
)

// Bounds of a link's life.
const (
	DefaultLife = 7 * 24 * time.Hour
	MaxLife     = 30 * 24 * time.Hour
	minLife     = time.Minute
)

// maxBody bounds the bytes of a body that a link shows: it is gone through for secrets at each look.
const maxBody = 1 << 20

// Verifiers gives the enabled signature configs of an endpoint, secrets in the clear.
type Verifiers interface {
	Verifiers(v *store.View, endpointNum int64) ([]provider.Config, error)
}

// Service is the capability. It is safe for concurrent use.
type Service struct {
	db        *store.DB
	verifiers Verifiers
}

// New returns the service.
func New(db *store.DB, verifiers Verifiers) *Service { return &Service{db, verifiers} }

// Create makes a link to an event and returns its secret, which is nowhere else; a life of 0 is the default. It answers
// not_found, and validation_failed for a life out of bounds.
func (s *Service) Create(ctx context.Context, who hookglass.Principal, ref, eventID string, life time.Duration) (secret string, share hookglass.Share, err error) {
	if life == 0 {
		life = DefaultLife
	}
	if life < minLife || life > MaxLife {
		return "", share, hookglass.Invalid("expires_in", "must be 1 minute to 30 days")
	}
	if who.Endpoint != "" {
		return "", share, hookglass.Errorf(hookglass.CodeForbidden, "Links to requests of a temporary endpoint can be made once it is claimed.")
	}
	secret = strings.ToLower(rand.Text() + rand.Text()[:14])
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		e, err := tx.Event(ref, eventID)
		if err != nil {
			return err
		}
		share = hookglass.Share{EndpointNum: e.EndpointNum, EventSeq: e.Seq, EventID: e.ID, CreatedBy: who.User, ExpiresAt: tx.Now.Add(life)}
		if err := tx.PurgeShares(); err != nil {
			return err
		}
		return tx.CreateShare(&share, digest(secret))
	})
	return secret, share, err
}

// List returns the links of an event that work, newest first. It answers not_found.
func (s *Service) List(ctx context.Context, who hookglass.Principal, ref, eventID string) (all []hookglass.Share, err error) {
	err = s.db.View(ctx, who, func(v *store.View) error {
		all, err = v.Shares(ref, eventID, s.db.Now())
		return err
	})
	return all, err
}

// Revoke ends a link at once. It answers not_found.
func (s *Service) Revoke(ctx context.Context, who hookglass.Principal, ref string, id int64) error {
	return s.db.Update(ctx, who, func(tx *store.Tx) error { return tx.DeleteShare(ref, id) })
}

// Open returns the event of a link, with credentials and the endpoint's secrets blotted out and without what would let a
// stranger send to the endpoint. It answers not_found for a link that never was, was revoked or has expired, and for an
// event that is gone.
func (s *Service) Open(ctx context.Context, secret string) (e *hookglass.Event, share hookglass.Share, err error) {
	var configs []provider.Config
	var at hookglass.Endpoint
	err = s.db.View(ctx, hookglass.System, func(v *store.View) error {
		if share, err = v.ShareByHash(digest(secret), s.db.Now()); err != nil {
			return err
		}
		if at, err = v.EndpointByNum(share.EndpointNum); err != nil {
			return err
		}
		if e, err = v.Event(string(at.ID), string(share.EventID)); err != nil {
			return err
		}
		configs, err = s.verifiers.Verifiers(v, at.Num)
		return err
	})
	if err != nil {
		if hookglass.Is(err, hookglass.CodeNotFound) {
			err = hookglass.NotFound("shared request")
		}
		return nil, share, err
	}
	redact(e, at, configs)
	return e, share, nil
}

// Mark stands in the place of what is not shown.
const Mark = action.Mark

func redact(e *hookglass.Event, at hookglass.Endpoint, configs []provider.Config) {
	masks := []action.Mask{{Value: string(at.ID)}}
	if at.CustomID != "" {
		masks = append(masks, action.Mask{Value: at.CustomID})
	}
	for _, c := range configs {
		for _, secret := range c.Secrets {
			masks = append(masks, action.Mask{Value: secret})
		}
	}
	r := action.NewRedactor(masks...)
	address := func(s string) string { return s }
	if pattern := addressOf(e, at); pattern != nil {
		address = func(s string) string { return pattern.ReplaceAllLiteralString(s, Mark) }
	}
	text := func(s string) string {
		s, _ = r.Text(address(s))
		return s
	}
	query := func(raw string) string {
		if raw == "" {
			return ""
		}
		u := text("http://host/?" + raw) // as a URL, whose parameters are judged by their names
		return strings.TrimPrefix(u, "http://host/?")
	}
	payload := *e.Payload
	payload.Headers, payload.Trailers = r.Headers(payload.Headers), r.Headers(payload.Trailers)
	if e.Type == hookglass.EventEmail {
		for i := range payload.Headers {
			payload.Headers[i].Value = address(payload.Headers[i].Value)
		}
		payload.Body = plainMail(payload.Body)
	}
	if len(payload.Body) > maxBody {
		payload.Body = payload.Body[:maxBody]
	}
	payload.Body = []byte(r.Body(address(string(payload.Body))))
	if payload.Reply != nil {
		reply := *payload.Reply
		reply.Headers = r.Headers(reply.Headers)
		if len(reply.Body) > maxBody {
			reply.Body = reply.Body[:maxBody]
		}
		reply.Body = []byte(r.Body(string(reply.Body)))
		payload.Reply = &reply
	}
	e.Payload = &payload
	e.URL, e.Path, e.RawQuery = "", text(e.Path), query(e.RawQuery)
	e.From, e.To, e.Subject = text(e.From), text(e.To), text(e.Subject)
	e.Tags, e.Ignored = nil, ""
}

// addressOf finds the address of a mail endpoint, with what may follow a plus sign in it: whoever knows it can send there. It is nil for webhooks.
func addressOf(e *hookglass.Event, at hookglass.Endpoint) *regexp.Regexp {
	i := strings.LastIndexByte(e.Path, '@')
	if e.Type != hookglass.EventEmail || at.EmailLocalPart == "" || i < 0 {
		return nil
	}
	return regexp.MustCompile(`(?i)` + regexp.QuoteMeta(at.EmailLocalPart) + `(?:\+[^\s@<>()\[\]",;:]*)?@` + regexp.QuoteMeta(e.Path[i+1:]))
}

// plainMail is a message of the text of another alone, or of what its HTML shows: a secret is not found in what is encoded.
func plainMail(raw []byte) []byte {
	m := email.Parse(raw)
	return []byte("Content-Type: text/plain; charset=utf-8\r\n\r\n" + cmp.Or(m.Text, m.Shown()))
}

func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
