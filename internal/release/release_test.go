package release_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/mail"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/endpoint"
	"hookglass/internal/release"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// relay remembers what it was handed, and answers what a test wants.
type relay struct {
	mu     sync.Mutex
	to     [][]string
	mails  []string
	answer func(ctx context.Context) (hookglass.Relayed, error) // nil: takes it
}

func (*relay) From() mail.Address {
	return mail.Address{Name: "Hooks & Co", Address: "hooks@example.com"}
}

func (r *relay) Pass(ctx context.Context, to []string, parts ...[]byte) (hookglass.Relayed, error) {
	r.mu.Lock()
	r.to, r.mails = append(r.to, to), append(r.mails, string(bytes.Join(parts, nil)))
	r.mu.Unlock()
	if r.answer != nil {
		return r.answer(ctx)
	}
	return hookglass.Relayed{Status: hookglass.ReleaseSent, Code: 250, Message: "2.0.0 Ok"}, nil
}

func (r *relay) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mails)
}

// bench is a release service with an account and an inbox.
type bench struct {
	t        *testing.T
	db       *store.DB
	relay    *relay
	config   release.Config
	releases *release.Service
	log      *bytes.Buffer
	who      hookglass.Principal
	inbox    hookglass.Endpoint
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
		must(t, err)
		b := &bench{t: t, db: db, relay: new(relay), log: new(bytes.Buffer)}
		owner, err := account.New(db, slog.New(slog.DiscardHandler)).Register(t.Context(), account.Registration{Email: "ada@example.com"})
		must(t, err)
		b.who = hookglass.Principal{Account: owner.Account.ID, User: owner.User.ID, Scopes: hookglass.System.Scopes}
		name, kind := "Inbox", hookglass.KindEmail
		b.inbox, err = endpoint.New(db, keys).Create(t.Context(), b.who, endpoint.Draft{Name: &name, Kind: &kind})
		must(t, err)
		b.config = release.Config{Relay: b.relay, Recipients: recipients(t, "dev@example.com", "@bücher.example"), Log: slog.New(slog.NewTextHandler(b.log, nil))}
		b.releases = release.New(db, b.config)
		test(t, b)
	})
}

func recipients(t *testing.T, entries ...string) release.Recipients {
	t.Helper()
	r, err := release.ParseRecipients(entries, "mail.test")
	must(t, err)
	return r
}

// capture stores a mail, or a webhook where what says so.
func (b *bench) capture(what hookglass.EventType, raw string) hookglass.EventID {
	b.t.Helper()
	now := time.Now().UTC()
	e := &hookglass.Event{
		ID: hookglass.NewEventID(what, now), EndpointNum: b.inbox.Num, EndpointID: b.inbox.ID, Type: what, ReceivedAt: now, Method: "EMAIL", Path: "inbox@mail.test",
		Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked, Size: int64(len(raw)), Payload: &hookglass.Payload{Body: []byte(raw)},
	}
	must(b.t, b.db.Capture(b.t.Context(), b.who.Account, e))
	return e.ID
}

func (b *bench) release(id hookglass.EventID, to ...string) (*hookglass.Release, error) {
	b.t.Helper()
	return b.releases.Release(b.t.Context(), b.who, string(b.inbox.ID), string(id), to)
}

func (b *bench) list(id hookglass.EventID) (all []hookglass.Release) {
	b.t.Helper()
	must(b.t, b.db.View(b.t.Context(), b.who, func(v *store.View) (err error) {
		all, err = v.Releases(string(b.inbox.ID), string(id), 0, 100)
		return err
	}))
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const raw = "From: Ann <ann@example.org>\nTo: inbox@mail.test\nSubject: secret subject\n\n.secret body \xff\r\n"

func TestAMailIsReleasedBehindItsFields(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		id := b.capture(hookglass.EventEmail, raw)
		r, err := b.release(id, "Dev@EXAMPLE.com", "lea@Bücher.example", "dev@example.com")
		must(t, err)
		to := []string{"Dev@EXAMPLE.com", "lea@xn--bcher-kva.example"}
		if r.Status != hookglass.ReleaseSent || r.Code != 250 || r.Message != "2.0.0 Ok" || r.Failure != nil || !slices.Equal(r.To, to) || !strings.HasPrefix(r.ID, "rel_") || r.FinishedAt.Before(r.CreatedAt) {
			t.Errorf("%+v", r)
		}
		head, ok := strings.CutSuffix(b.relay.mails[0], raw)
		want := regexp.MustCompile(`^Resent-Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000\r\nResent-From: "Hooks & Co" <hooks@example.com>\r\n` +
			`Resent-To: Dev@EXAMPLE.com,\r\n lea@xn--bcher-kva.example\r\nResent-Message-ID: <` + r.ID + `@example.com>\r\n$`)
		if !ok || !want.MatchString(head) || !slices.Equal(b.relay.to[0], to) {
			t.Errorf("%q to %v", b.relay.mails[0], b.relay.to)
		}
		if kept := b.list(id); len(kept) != 1 || fmt.Sprintf("%+v", kept[0]) != fmt.Sprintf("%+v", *r) {
			t.Errorf("%+v is kept of %+v", kept, *r)
		}
		// A line that goes on with the one before it would go on with ours.
		if _, err := b.release(b.capture(hookglass.EventEmail, " folded\r\n"), "dev@example.com"); err != nil || b.relay.mails[1] != " folded\r\n" {
			t.Errorf("%q, %v", b.relay.mails[1], err)
		}
		if text := b.log.String(); strings.Contains(text, "secret") || strings.Contains(text, "@") || !strings.Contains(text, r.ID) {
			t.Errorf("the log says %s", text)
		}
	})
}

// A relay that does not take a mail is told in a release, and its end is kept.
func TestWhatTheRelayDidNotTakeIsKept(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		id := b.capture(hookglass.EventEmail, raw)
		answers := []hookglass.Relayed{
			{Status: hookglass.ReleaseFailed, Code: 550, Message: "no", Failure: &hookglass.Failure{Code: "recipient_refused", Message: "The mail relay refused dev@example.com."}},
			{Status: hookglass.ReleaseUnknown, Failure: &hookglass.Failure{Code: "relay_no_answer", Message: "It is not known."}},
		}
		for _, answer := range answers {
			b.relay.answer = func(context.Context) (hookglass.Relayed, error) { return answer, io.EOF }
			r, err := b.release(id, "dev@example.com")
			must(t, err)
			if kept := b.list(id)[0]; r.Status != answer.Status || *r.Failure != *answer.Failure || fmt.Sprintf("%+v", *kept.Failure) != fmt.Sprintf("%+v", *r.Failure) || kept.Code != answer.Code || kept.FinishedAt.IsZero() {
				t.Errorf("%+v %+v", r, kept)
			}
		}
		if n := b.relay.count(); n != 2 {
			t.Errorf("%d were sent", n)
		}
		page := func(before int64) (all []hookglass.Release) {
			must(t, b.db.View(t.Context(), b.who, func(v *store.View) (err error) {
				all, err = v.Releases(string(b.inbox.ID), string(id), before, 1)
				return err
			}))
			return all
		}
		newest := page(0)
		if older := page(newest[0].Num); newest[0].Status != hookglass.ReleaseUnknown || older[0].Status != hookglass.ReleaseFailed || len(page(older[0].Num)) != 0 {
			t.Errorf("%+v %+v", newest, older)
		}
	})
}

func TestWhatIsNotReleased(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		id := b.capture(hookglass.EventEmail, raw)
		many := slices.Repeat([]string{"dev@example.com"}, 21)
		for name, c := range map[string]struct {
			id   hookglass.EventID
			to   []string
			code hookglass.Code
			says string
		}{
			"nobody":           {id, nil, hookglass.CodeValidationFailed, "1 to 20"},
			"too many":         {id, many, hookglass.CodeValidationFailed, "1 to 20"},
			"a line end":       {id, []string{"dev@example.com\r\nRCPT TO:<eve@evil.example>"}, hookglass.CodeValidationFailed, "to.0"},
			"a NUL":            {id, []string{"dev@example.com", "dev\x00@example.com"}, hookglass.CodeValidationFailed, "to.1"},
			"a C1 control":     {id, []string{"dev\u0085@example.com"}, hookglass.CodeValidationFailed, "to.0"},
			"a direction":      {id, []string{"dev\u202e@example.com"}, hookglass.CodeValidationFailed, "to.0"},
			"no UTF-8":         {id, []string{"dev\xff@example.com"}, hookglass.CodeValidationFailed, "to.0"},
			"a name":           {id, []string{"Dev <dev@example.com>"}, hookglass.CodeValidationFailed, "to.0"},
			"brackets":         {id, []string{"<dev@example.com>"}, hookglass.CodeValidationFailed, "to.0"},
			"two in one":       {id, []string{"dev@example.com,dev@example.com"}, hookglass.CodeValidationFailed, "to.0"},
			"a route":          {id, []string{"dev%evil.example@example.com@evil.example"}, hookglass.CodeValidationFailed, "to.0"},
			"a quoted one":     {id, []string{`"dev"@example.com`}, hookglass.CodeValidationFailed, "to.0"},
			"a literal":        {id, []string{"dev@[127.0.0.1]"}, hookglass.CodeValidationFailed, "to.0"},
			"no domain":        {id, []string{"dev"}, hookglass.CodeValidationFailed, "to.0"},
			"too long":         {id, []string{strings.Repeat("d", 65) + "@example.com"}, hookglass.CodeValidationFailed, "to.0"},
			"a stranger":       {id, []string{"dev@example.com", "eve@example.com"}, hookglass.CodeRecipientNotAllowed, "eve@example.com"},
			"a tagged one":     {id, []string{"dev+x@example.com"}, hookglass.CodeRecipientNotAllowed, "dev+x@example.com"},
			"below a domain":   {id, []string{"dev@sub.xn--bcher-kva.example"}, hookglass.CodeRecipientNotAllowed, "sub."},
			"a look-alike":     {id, []string{"dev@bucher.example"}, hookglass.CodeRecipientNotAllowed, "bucher"},
			"this service":     {id, []string{"Inbox@MAIL.test"}, hookglass.CodeRecipientNotAllowed, "of this installation"},
			"a webhook":        {b.capture(hookglass.EventWebhook, "{}"), []string{"dev@example.com"}, hookglass.CodeNotAMail, "webhook"},
			"an empty message": {b.capture(hookglass.EventEmail, ""), []string{"dev@example.com"}, hookglass.CodeNoRawMessage, "raw message"},
			"an unknown mail":  {hookglass.NewEventID(hookglass.EventEmail, time.Now()), []string{"dev@example.com"}, hookglass.CodeNotFound, "no such"},
		} {
			if _, err := b.release(c.id, c.to...); hookglass.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %s", name, err, c.code)
			}
		}
		for name, who := range map[string]hookglass.Principal{"a stranger": {Account: 77, Scopes: hookglass.System.Scopes}, "a key": {Endpoint: b.inbox.ID, Scopes: hookglass.System.Scopes}} {
			if _, err := b.releases.Release(t.Context(), who, string(b.inbox.ID), string(id), []string{"dev@example.com"}); !hookglass.Is(err, hookglass.CodeNotFound) && !hookglass.Is(err, hookglass.CodeForbidden) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, c := range map[string]release.Config{"no relay": {Recipients: b.config.Recipients}, "nobody allowed": {Relay: b.relay}} {
			s := release.New(b.db, c)
			if _, err := s.Release(t.Context(), b.who, string(b.inbox.ID), string(id), []string{"dev@example.com"}); !hookglass.Is(err, hookglass.CodeReleaseOff) || s.On() {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := b.relay.count(); n != 0 || len(b.list(id)) != 0 {
			t.Errorf("%d were sent, %v kept", n, b.list(id))
		}
	})
}

// A release is written down before the relay is spoken to. One whose process dies stays as it was then, and one that
// was begun ends whatever becomes of who asked for it.
func TestAReleaseIsWrittenDownBeforeItIsSent(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		id := b.capture(hookglass.EventEmail, raw)
		ctx, leave := context.WithCancel(t.Context())
		b.relay.answer = func(sending context.Context) (hookglass.Relayed, error) {
			if kept := b.list(id); len(kept) != 1 || kept[0].Status != hookglass.ReleaseUnknown || !kept[0].FinishedAt.IsZero() || kept[0].Failure != nil {
				t.Errorf("%+v is kept before", kept)
			}
			leave()
			if err := sending.Err(); err != nil {
				t.Errorf("who asked went away, and with them the release: %v", err)
			}
			return hookglass.Relayed{Status: hookglass.ReleaseSent, Code: 250}, nil
		}
		if _, err := b.releases.Release(ctx, b.who, string(b.inbox.ID), string(id), []string{"dev@example.com"}); err != nil {
			t.Error(err)
		}
		if kept := b.list(id); len(kept) != 1 || kept[0].Status != hookglass.ReleaseSent || kept[0].FinishedAt.IsZero() {
			t.Errorf("%+v is kept", kept)
		}
		// Who is gone before it begins has none begun.
		if _, err := b.releases.Release(ctx, b.who, string(b.inbox.ID), string(id), []string{"dev@example.com"}); err == nil || b.relay.count() != 1 || len(b.list(id)) != 1 {
			t.Errorf("%v, %d were sent", err, b.relay.count())
		}
	})
}

// A mail that is deleted while somebody has it sent takes its releases with it.
func TestReleasesGoWithTheirMail(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		id := b.capture(hookglass.EventEmail, raw)
		b.relay.answer = func(context.Context) (hookglass.Relayed, error) {
			must(t, b.db.Update(t.Context(), b.who, func(tx *store.Tx) error { return tx.DeleteEvent(string(b.inbox.ID), string(id)) }))
			return hookglass.Relayed{Status: hookglass.ReleaseSent, Code: 250}, nil
		}
		if r, err := b.release(id, "dev@example.com"); err != nil || r.Status != hookglass.ReleaseSent {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := b.release(id, "dev@example.com"); !hookglass.Is(err, hookglass.CodeNotFound) || b.relay.count() != 1 {
			t.Errorf("%v, %d were sent", err, b.relay.count())
		}
	})
}

// An account has so many releases in a minute, and half of the turns. The relay of another is not its to fill.
func TestReleasesAreBounded(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		id := b.capture(hookglass.EventEmail, raw)
		held, let := make(chan struct{}, 16), make(chan struct{})
		b.relay.answer = func(context.Context) (hookglass.Relayed, error) {
			held <- struct{}{}
			<-let
			return hookglass.Relayed{Status: hookglass.ReleaseSent}, nil
		}
		var under sync.WaitGroup
		begun := 0
		for {
			outcome := make(chan error, 1)
			under.Go(func() {
				_, err := b.release(id, "dev@example.com")
				outcome <- err
			})
			select {
			case <-held:
				begun++
				continue
			case err := <-outcome:
				if !hookglass.Is(err, hookglass.CodeRateLimited) {
					t.Errorf("%v", err)
				}
			}
			break
		}
		close(let)
		under.Wait()
		if begun < 2 || begun > 8 {
			t.Errorf("%d releases of one inbox were under way", begun)
		}
		b.relay.answer = nil
		var refused *hookglass.Error
		for range 300 { // a slow database has some come back meanwhile
			if _, err := b.release(id, "dev@example.com"); errors.As(err, &refused) {
				break
			}
		}
		if refused == nil || refused.Code != hookglass.CodeRateLimited || refused.RetryAfter <= 0 {
			t.Errorf("%v", refused)
		}
	})
}

// Once the server stops, a relay that hangs is given up in time.
func TestAServerThatStopsWaitsForARelease(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		id := b.capture(hookglass.EventEmail, raw)
		stopping := make(chan struct{})
		b.config.Stopping = stopping
		b.releases = release.New(b.db, b.config)
		b.releases.Hurry(10 * time.Millisecond)
		b.relay.answer = func(sending context.Context) (hookglass.Relayed, error) {
			close(stopping)
			<-sending.Done()
			return hookglass.Relayed{Status: hookglass.ReleaseUnknown, Failure: &hookglass.Failure{Code: "relay_no_answer"}}, sending.Err()
		}
		r, err := b.release(id, "dev@example.com")
		if kept := b.list(id); err != nil || r.Status != hookglass.ReleaseUnknown || len(kept) != 1 || kept[0].FinishedAt.IsZero() {
			t.Errorf("%+v, %v; %+v is kept", r, err, kept)
		}
	})
}

func TestParseRecipients(t *testing.T) {
	for entry, says := range map[string]string{
		"dev": "neither", "@": "neither", "@a b": "neither", "dev@": "neither", "a@b@c.example": "neither", "": "neither", "@-x.example": "neither",
		"@mail.test": "own --mail-domain", "any@MAIL.TEST": "own --mail-domain",
	} {
		if _, err := release.ParseRecipients([]string{entry}, "mail.test"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", entry, err)
		}
	}
	r := recipients(t, " dev@example.com", "@Example.org", "DEV@example.COM")
	if want := []string{"dev@example.com", "@Example.org"}; !slices.Equal(r.Entries(), want) {
		t.Errorf("%q", r.Entries())
	}
}
