// Package share lets a person show captured events to others without what is secret in them: one by a link, read only
// and for a while, or several as a file (see internal/bundle). It hides how links are made and kept, what is blotted
// out, and what goes into a file.
package share

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/email"
	"hookglass/internal/jsondoc"
	"hookglass/internal/provider"
	"hookglass/internal/redact"
	"hookglass/internal/store"
)

// Bounds of a link's life.
const (
	DefaultLife = 7 * 24 * time.Hour
	maxLife     = 30 * 24 * time.Hour
	minLife     = time.Minute
)

// openTimes is how many times its size an event takes that a link shows: a mail is decoded, and gone through.
const openTimes = 4

// maxBody bounds the bytes of a body that a link shows: it is gone through for secrets at each look.
const maxBody = 1 << 20

// Configs gives the signature configs of an endpoint: the enabled ones with their secrets in the clear, and the secrets
// of all.
type Configs interface {
	Verifiers(v *store.View, ref string) ([]provider.Config, error)
	Secrets(v *store.View, ref string) ([]string, error)
}

// Service is the capability. It is safe for concurrent use.
type Service struct {
	db      *store.DB
	configs Configs
	reads   Reads

	searchTime time.Duration // how long the query of a bundle is searched for
}

// Reads has large events read as there is room for so many times their size, and for what else takes so many bytes,
// until ctx is done, as the capability that captures does. It answers unavailable.
type Reads interface {
	Hold(ctx context.Context, who hookglass.Principal, times int64, read func(*store.View) (*hookglass.Event, error)) (*hookglass.Event, error)
	RoomFor(ctx context.Context, who hookglass.Principal, bytes int64) error
}

// New returns the service.
func New(db *store.DB, configs Configs, reads Reads) *Service {
	return &Service{db: db, configs: configs, reads: reads, searchTime: searchTime}
}

// Create makes a link to an event and returns its secret, which is nowhere else. It answers not_found, forbidden for
// the key of a temporary endpoint, and validation_failed for a life out of bounds.
func (s *Service) Create(ctx context.Context, who hookglass.Principal, ref, eventID string, life time.Duration) (secret string, share hookglass.Share, err error) {
	if life < minLife || life > maxLife {
		return "", share, hookglass.Invalid("share_link.expires_in", "must be 1 minute to 30 days")
	}
	if who.Endpoint != "" {
		return "", share, hookglass.Errorf(hookglass.CodeForbidden, "Links to requests of a temporary endpoint can be made once it is claimed.")
	}
	secret = strings.ToLower(rand.Text() + rand.Text()[:14])
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		e, err := tx.ListedEvent(ref, eventID)
		if err != nil {
			return err
		}
		share = hookglass.Share{EndpointNum: e.EndpointNum, EventSeq: e.Seq, EventID: e.ID, CreatedBy: who.User, ExpiresAt: tx.Now.Add(life)}
		return tx.CreateShare(&share, digest(secret))
	})
	return secret, share, err
}

// List returns links of an endpoint that work, newest first. It answers not_found.
func (s *Service) List(ctx context.Context, who hookglass.Principal, ref string, wanted store.ShareList) ([]hookglass.Share, error) {
	return store.Read(ctx, s.db, who, func(v *store.View) ([]hookglass.Share, error) {
		return v.Shares(ref, wanted, s.db.Now())
	})
}

// Revoke ends a link at once. It answers not_found.
func (s *Service) Revoke(ctx context.Context, who hookglass.Principal, ref string, id int64) error {
	return s.db.Update(ctx, who, func(tx *store.Tx) error { return tx.DeleteShare(ref, id) })
}

// Purge deletes links that have expired, a part at a time.
func (s *Service) Purge(ctx context.Context) error {
	return s.db.UpdateInPieces(ctx, (*store.Tx).PurgeShares)
}

// Open returns the event of a link, with credentials and the endpoint's secrets blotted out and without what would let
// a stranger send to the endpoint. It has room until ctx is done. It answers not_found for a link that never was, was
// revoked or has expired, and for an event that is gone, and unavailable.
func (s *Service) Open(ctx context.Context, secret string) (e *hookglass.Event, share hookglass.Share, err error) {
	var secrets []string
	var at hookglass.Endpoint
	e, err = s.reads.Hold(ctx, hookglass.System, openTimes, func(v *store.View) (*hookglass.Event, error) {
		if share, err = v.ShareByHash(digest(secret), s.db.Now()); err != nil {
			return nil, err
		}
		if at, err = v.EndpointByNum(share.EndpointNum); err != nil {
			return nil, err
		}
		if secrets, err = s.configs.Secrets(v, string(at.ID)); err != nil {
			return nil, err
		}
		return v.Event(string(at.ID), string(share.EventID))
	})
	if err != nil {
		if hookglass.Is(err, hookglass.CodeNotFound) {
			err = hookglass.NotFound("shared request")
		}
		return nil, share, err
	}
	blot(e, at, secrets)
	return e, share, nil
}

// keyParameter finds a parameter that is often all by which a sender proves itself; to Azure it is a long code.
// Elsewhere a field of this name is the key or the code of anything, so it is no credential to the redactor.
var keyParameter = regexp.MustCompile(`(?i)((?:^|&)key=)([^&]+)|((?:^|&)code=)([^&]{16,})`)

func blot(e *hookglass.Event, at hookglass.Endpoint, secrets []string) {
	masks := []redact.Mask{{Value: string(at.ID)}}
	if at.CustomID != "" { // often a word, so only where it is an address
		shown := "/hooks/" + hookglass.Redacted
		masks = append(masks, redact.Mask{Value: "/hooks/" + at.CustomID, Shown: shown, Whole: true, Ends: true})
	}
	for _, secret := range secrets {
		masks = append(masks, redact.Mask{Value: secret})
	}
	r := redact.New(masks...)
	patterns := addressOf(e, at)
	address := func(s string) string {
		for _, p := range patterns {
			s = p.ReplaceAllLiteralString(s, hookglass.Redacted)
		}
		return s
	}
	text := func(s string) string { return r.Body(address(s)) }
	query := func(raw string) string {
		if raw == "" {
			return ""
		}
		u := text("http://host/?" + raw) // as a URL, whose parameters are judged by their names
		return keyParameter.ReplaceAllString(strings.TrimPrefix(u, "http://host/?"), "${1}${3}"+hookglass.Redacted)
	}
	payload := *e.Payload
	payload.Headers, payload.Trailers = r.Headers(payload.Headers), r.Headers(payload.Trailers)
	if e.Type == hookglass.EventEmail {
		for i, h := range payload.Headers {
			payload.Headers[i] = hookglass.Header{Name: address(h.Name), Value: address(h.Value)}
		}
		payload.Body, payload.Envelope = plainMail(payload.Body), nil // the envelope holds the address
	}
	payload.Body = coding.Plain(payload.Body, e.Headers, maxBody) // what is compressed holds no secret to be found
	body := string(beginning(payload.Body, e.ContentType))
	payload.Body = []byte(r.Body(address(body)))
	if payload.Reply != nil {
		reply := *payload.Reply
		reply.Rule = nil // its condition may hold what a sender proves itself by
		r := r.With(captured(e, body)...)
		reply.Headers = r.Headers(reply.Headers)
		reply.Body = []byte(r.Body(string(beginning(reply.Body, reply.Headers.Get("Content-Type")))))
		payload.Reply = &reply
	}
	e.Payload = &payload
	e.URL, e.Path, e.RawQuery = "", text(e.Path), query(e.RawQuery)
	if e.Type == hookglass.EventEmail {
		e.Path = hookglass.Redacted
	}
	e.From, e.To, e.Subject, e.EventRef = text(e.From), text(e.To), text(e.Subject), address(e.EventRef)
	e.Tags, e.Note, e.Ignored = nil, "", ""
}

// captured returns what a request holds under the names of credentials: its answer may repeat it under any other name.
func captured(e *hookglass.Event, body string) []redact.Mask {
	query := keyParameter.ReplaceAllString(e.RawQuery, "&token=$2$4")
	masks := slices.Concat(redact.CredentialsOf(e.Headers), redact.ValuesIn(jsondoc.Text("?"+query)), redact.ValuesIn(jsondoc.Text(body)))
	if hookglass.IsForm(e.ContentType) { // of which a field may hold JSON, as Slack's does
		masks = append(masks, redact.ValuesIn(jsondoc.Form(body))...)
	}
	return masks
}

// beginning is as much of a body as is shown, in UTF-8: secrets are not found in UTF-16 either.
func beginning(body []byte, contentType string) []byte {
	body = body[:min(len(body), maxBody)]
	if plain, charset := coding.Text(body, contentType, maxBody); charset != "" {
		return plain
	}
	return body
}

// addressOf finds the address of a mail endpoint, with what may follow a plus sign in it: whoever knows it can send
// there. It is found as links, quoted-printable text, the senders of bounces (box=example.com), base64 and hex spell it
// too. There is nothing to find for webhooks. Hostile text takes no more than time in proportion to its length: a tag
// without an end is bounded or ends where the next begins, and what has none is looked for by itself.
func addressOf(e *hookglass.Event, at hookglass.Endpoint) []*regexp.Regexp {
	i := strings.LastIndexByte(e.Path, '@')
	if e.Type != hookglass.EventEmail || at.EmailLocalPart == "" || i < 0 {
		return nil
	}
	local, domain := regexp.QuoteMeta(at.EmailLocalPart), regexp.QuoteMeta(e.Path[i+1:])
	const (
		plus   = `(?:\+|=2b|%(?:25)*2b)`
		tag    = `[^\s@<>()\[\]",;:]*`
		behind = `(?:@|=40|%(?:25)*40|=)`
	)
	written := `"` + local + `(?:\+[^\r\n]{0,64}?)?"@` + domain + `|` + local + `(?:` + plus + tag + `)?` + behind + domain
	var encoded []string
	for _, address := range []string{at.EmailLocalPart + e.Path[i:], e.Path} {
		encoded = append(encoded, hex.EncodeToString([]byte(address)))
		for before := range 3 { // bytes that it stands behind in what is encoded
			text := base64.URLEncoding.EncodeToString(append(make([]byte, before), address...))
			core := text[(before*8+5)/6 : (before+len(address))*8/6] // what depends on nothing beside it
			encoded = append(encoded, strings.NewReplacer("-", "[-+]", "_", "[_/]").Replace(core))
		}
	}
	return []*regexp.Regexp{regexp.MustCompile(`(?i)` + written), regexp.MustCompile(`(?i)` + strings.Join(encoded, "|"))}
}

// plainMail is a message of the text of another alone, or of what its HTML shows: a secret is not found in what is
// encoded.
func plainMail(raw []byte) []byte {
	m := email.Parse(raw)
	text := m.Text
	if strings.TrimSpace(text) == "" {
		text = m.Shown()
	}
	return []byte("Content-Type: text/plain; charset=utf-8\r\n\r\n" + text)
}

func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
