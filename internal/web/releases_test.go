package web_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/release"
	"hookglass/internal/store/storetest"
	"hookglass/internal/web"
)

// relay remembers what it was handed; it refuses whoever is called nobody.
type relay struct {
	mu    sync.Mutex
	to    [][]string
	mails []string
}

func (*relay) From() mail.Address { return mail.Address{Address: "hooks@example.com"} }

func (r *relay) Pass(_ context.Context, to []string, parts ...[]byte) (hookglass.Relayed, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to, r.mails = append(r.to, to), append(r.mails, string(bytes.Join(parts, nil)))
	if slices.Contains(to, "nobody@team.example") {
		return hookglass.Relayed{Status: hookglass.ReleaseFailed, Code: 550, Message: "<b>who?</b>", Failure: &hookglass.Failure{Code: "recipient_refused", Message: "The mail relay refused nobody@team.example."}}, nil
	}
	return hookglass.Relayed{Status: hookglass.ReleaseSent, Code: 250, Message: "2.0.0 Ok"}, nil
}

// releasing is a site whose operator allows mail to be released to some, and the address of a mail's page.
func releasing(t *testing.T, entries ...string) (s *site, r *relay, page string) {
	t.Helper()
	r = new(relay)
	allowed, err := release.ParseRecipients(entries, "mail.test")
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.SQLite(t)
	s = newSiteOn(t, db, func(d *web.Deps) {
		d.Releases = release.New(db, release.Config{Relay: r, Recipients: allowed, Log: slog.New(slog.DiscardHandler)})
	})
	inbox := s.create("inbox", hookglass.KindEmail)
	target, err := s.captures.AdmitMailbox(t.Context(), string(inbox.ID))
	if err != nil {
		t.Fatal(err)
	}
	const raw = "From: Shop <shop@example.com>\r\nTo: in@mail.test\r\nSubject: Your code\r\n\r\nHello\r\n"
	stored := s.captures.CaptureMail(t.Context(), &capture.Mail{From: "shop@example.com", To: []capture.Recipient{{Address: "in@mail.test", Target: target}}, Protocol: "ESMTP", Raw: []byte(raw), At: time.Now()})
	if stored[0].Err != nil {
		t.Fatal(stored[0].Err)
	}
	return s, r, s.url + "/endpoints/" + string(inbox.ID) + "/requests/" + string(stored[0].Event)
}

// Without scripts: the form leads to the list of what was released, and what is wrong is said.
func TestAMailIsReleasedByAForm(t *testing.T) {
	s, r, page := releasing(t, "dev@example.com", "@team.example")
	b := s.signedIn()
	b.want(200, "GET", page, nil).holds(t, "Release…", "No releases yet", "@team.example", `action="`+strings.TrimPrefix(page, s.url)+`/release"`)
	send := func(status int, to string) answer {
		t.Helper()
		return b.want(status, "POST", page+"/release", url.Values{"to": {to}})
	}
	if a := send(303, " dev@example.com; lea@team.example,\n"); !strings.HasSuffix(a.Header.Get("Location"), "?tab=releases") {
		t.Errorf("%v", a.Header)
	}
	if len(r.to) != 1 || !slices.Equal(r.to[0], []string{"dev@example.com", "lea@team.example"}) || !strings.HasSuffix(r.mails[0], "Subject: Your code\r\n\r\nHello\r\n") {
		t.Errorf("%v %q", r.to, r.mails)
	}
	send(303, "nobody@team.example")
	b.want(200, "GET", page+"?tab=releases", nil).holds(t, "failed", "550 &lt;b&gt;who?&lt;/b&gt;", "The mail relay refused nobody@team.example.", "dev@example.com, lea@team.example", "250 2.0.0 Ok", `value="nobody@team.example"`)
	send(422, "eve@evil.example").holds(t, "eve@evil.example is not among the addresses")
	send(422, "eve@evil.example").lacks(t, "The 0", "to.0")
	send(422, "in@mail.test").holds(t, "of this installation")
	send(422, " ").holds(t, "The form must name 1 to 20 addresses.")
	send(422, "dev@example.com, Dev <x>").holds(t, "Dev is not a mail address such as dev@example.com. &lt;x&gt; is not")
	if len(r.to) != 2 {
		t.Errorf("%v", r.to)
	}
	a := s.visitor().do("POST", page+"/release", url.Values{"to": {"dev@example.com"}})
	if a.StatusCode < 300 || len(r.to) != 2 {
		t.Errorf("somebody who is not signed in: %d, %v", a.StatusCode, r.to)
	}
	// A webhook has nothing of the kind.
	b.want(200, "GET", s.page("/requests/"+string(s.hook(json(`{}`)))), nil).lacks(t, "Release…", "Releases")
}

func TestNothingIsSaidOfReleasesWhereTheyAreOff(t *testing.T) {
	s, _, page := releasing(t)
	b := s.signedIn()
	b.want(200, "GET", page, nil).lacks(t, "Release…", "Releases")
	b.want(422, "POST", page+"/release", url.Values{"to": {"dev@example.com"}}).holds(t, "--release-to")
}

// With scripts the page stays, and shows what came of it.
func TestAMailIsReleasedWithoutLeavingThePage(t *testing.T) {
	s, r, page := releasing(t, "dev@example.com")
	c := s.chrome(390, 844)
	c.open(s.link())
	c.open(page)
	c.until(isLive)
	c.click(`[data-command="Release this mail"]`) // not the button that closes it, which is hidden
	c.until(`document.querySelector("#release-form").matches(":popover-open") || document.querySelector("#release-form").open`)
	if to := eval[string](c, `document.querySelector("#release-form [name=to]").value`); to != "dev@example.com" {
		t.Errorf("%q is offered", to)
	}
	if wide := eval[bool](c, `document.documentElement.scrollWidth > innerWidth`); wide {
		t.Error("the page is wider than a phone")
	}
	eval[any](c, `document.querySelector("#release-form [name=to]").value = "eve@evil.example"`)
	c.click("#release-form .primary")
	c.until(`document.querySelector("#release-form .fault")?.textContent.includes("eve@evil.example")`)
	c.forget() // the browser notes the refusal
	eval[any](c, `document.querySelector("#release-form [name=to]").value = "dev@example.com"`)
	c.click("#release-form .primary")
	c.until(`document.querySelector("#part-releases")?.textContent.includes("2.0.0 Ok")`)
	if shown := eval[string](c, `document.querySelector("[role=tab][aria-selected=true]").id`); shown != "tab-releases" || len(r.to) != 1 {
		t.Errorf("%s is shown, %v was sent", shown, r.to)
	}
	c.silent()
}
