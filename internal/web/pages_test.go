package web_test

import (
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
	"hookglass/internal/web"
)

func TestEveryAnswerHasTheStrictPolicy(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	event := s.hook(json(`{}`))
	for _, path := range []string{
		"/", "/sign-in", "/endpoints", s.page(""), s.page("/rows"), s.page("/settings"),
		s.page("/requests/" + string(event)), s.page("/requests/" + string(event) + "/panel"), "/nothing-here",
	} {
		a := b.do("GET", path, nil)
		want := "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
		if got := a.Header.Get("Content-Security-Policy"); got != want {
			t.Errorf("%s: policy %q", path, got)
		}
		if a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Referrer-Policy") != "no-referrer" || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", path, a.Header)
		}
	}
}

// inline is what the policy would refuse: a script or style in the page, a handler or style in an attribute.
var inline = regexp.MustCompile(`(?i)<style|<script(?:\s[^>]*)?>[^<]|\sstyle=|\son[a-z]+=|href="javascript:|(?:src|href)="(?:https?:)?//`)

func TestNoPageHoldsAnythingInlineOrOfAnotherHost(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	event := s.hook(json(`{"a":[1,{"b":null}]}`))
	for _, path := range []string{"/endpoints", s.page(""), s.page("/settings"), s.page("/requests/" + string(event))} {
		a := b.want(200, "GET", path, nil)
		if found := inline.FindString(a.body); found != "" {
			t.Errorf("%s holds %q", path, found)
		}
	}
	if found := inline.FindString(s.visitor().want(200, "GET", "/", nil).body); found != "" {
		t.Errorf("the first page holds %q", found)
	}
}

func TestAssetsAreKeptForEverUnderTheNameOfTheirContentsAndAreSmall(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	event := s.hook(json(`{}`))
	linked := regexp.MustCompile(`(?:src|href)="(/assets/[^"]*)"`)
	seen := map[string]bool{}
	var kinds []string
	total := 0
	for _, page := range []string{"", "/requests/" + string(event), "/actions/new", "/cases/new?event=" + string(event), "/metrics", "/settings"} {
		for _, f := range linked.FindAllStringSubmatch(b.want(200, "GET", s.page(page), nil).body, -1) {
			if seen[f[1]] {
				continue
			}
			seen[f[1]] = true
			plain := b.want(200, "GET", f[1], nil, "Accept-Encoding", "identity")
			if got := plain.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" || plain.Header.Get("Vary") != "Accept-Encoding" || plain.Header.Get("Content-Encoding") != "" {
				t.Errorf("%s: %v", f[1], plain.Header)
			}
			packed := b.want(200, "GET", f[1], nil, "Accept-Encoding", "br, gzip")
			total += len(packed.body)
			reader, err := gzip.NewReader(strings.NewReader(packed.body))
			if err != nil || packed.Header.Get("Content-Encoding") != "gzip" {
				t.Fatalf("%s: %v, %v", f[1], err, packed.Header)
			}
			if unpacked, err := io.ReadAll(reader); err != nil || string(unpacked) != plain.body {
				t.Errorf("%s: %v, %d bytes, plain %d", f[1], err, len(unpacked), len(plain.body))
			}
			if kind := plain.Header.Get("Content-Type"); !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	slices.Sort(kinds)
	if got := strings.Join(kinds, ", "); got != "image/svg+xml, text/css; charset=utf-8, text/javascript; charset=utf-8" {
		t.Errorf("assets of the kinds %s", got)
	}
	if total > 50_000 {
		t.Errorf("%d files have %d bytes", len(seen), total)
	}
	b.want(404, "GET", "/assets/app.css", nil)
	b.want(404, "GET", "/assets/..%2fweb.go", nil)
}

func TestAMethodThatAPageDoesNotHaveIsToldFromAPageThatIsNotThere(t *testing.T) {
	s := newSite(t)
	b := s.visitor()
	for path, allow := range map[string]string{"/": "GET, HEAD", "/sign-in": "GET, HEAD, POST"} {
		if got := b.want(405, "DELETE", path, nil).Header.Get("Allow"); got != allow {
			t.Errorf("%s allows %q, want %q", path, got, allow)
		}
	}
	b.want(405, "POST", "/", url.Values{})
	b.want(404, "POST", "/nothing", url.Values{})
	// A form that came back with what is wrong leaves its address in the browser, which may open it anew.
	for path, page := range map[string]string{"/tags/7": "/tags", "/secrets/1/asec_1": "/secrets", "/endpoints/ep_1/actions/act_1/rerun": "/endpoints/ep_1/actions/act_1", "/sign-out": "/"} {
		b.want(405, "GET", path, nil).holds(t, "only accepts submitted forms", `<a class="button" href="`+page+`">`)
	}
}

// A piece of a page is for the script that puts it there. In a browser's window, as from its history, it would stand bare.
func TestAPieceThatIsOpenedInABrowserIsThePageAroundIt(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	event := "/requests/" + string(s.hook(json(`{"a":1}`)))
	e := "/endpoints/" + string(s.endpoint.ID)
	for piece, page := range map[string]string{
		"/endpoint-list?after=ep_1": "/endpoints?after=ep_1", "/endpoint-names?text=a": "/endpoints?text=a", "/activity/feed?limit=50": "/activity?limit=50",
		"/flows/rows?state=passed": "/flows?state=passed", "/flows/flow_1/state": "/flows/flow_1",
		e + "/rows?q=a&cursor=ZTE": e + "?q=a&cursor=ZTE", e + "/stream?q=a": e + "?q=a",
		e + event + "/panel?q=a": e + event + "?q=a", e + event + "/row": e + event, e + event + "/marks": e + event, e + event + "/deliveries": e + event, e + event + "/authentication": e + event, e + event + "/find?text=a": e + event + "?text=a",
		e + "/cases/rows": e + "/cases", e + "/cases/rcase_1/runs?run=rrun_1": e + "/cases/rcase_1?run=rrun_1",
		e + "/actions/runs": e + "/actions", e + "/actions/act_1/runs?run=arun_1": e + "/actions/act_1?run=arun_1",
		e + "/alerts/rows": e + "/alerts", e + "/alerts/alrt_1/incidents": e + "/alerts/alrt_1",
		e + "/metrics/figures?window=7d": e + "/metrics?window=7d", e + "/ledger/book?from=24h": e + "/ledger?from=24h", e + "/tunnel/state": e + "/tunnel",
		e + "/replay_batches/rbat_1/state": e + "/replay_batches/rbat_1",
	} {
		if got := b.want(http.StatusSeeOther, "GET", piece, nil, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document").Header.Get("Location"); got != page {
			t.Errorf("%s leads to %q, want %q", piece, got, page)
		}
	}
	// What the scripts ask for is the piece.
	for _, piece := range []string{e + "/rows", e + event + "/panel", e + "/actions/runs"} {
		b.want(http.StatusOK, "GET", piece, nil, "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty").lacks(t, "<html")
	}
}

// A subject in Hebrew or Arabic is read from the right, in the list and above the open mail.
func TestASubjectReadsAlikeInTheListAndAboveTheOpenMail(t *testing.T) {
	s := newSite(t)
	e, id := s.mailed("From: a@example.com\r\nSubject: =?utf-8?B?16nXnNeV150gaW52b2ljZSA1?=\r\n\r\nx")
	answer := s.signedIn().want(200, "GET", "/endpoints/"+string(e.ID)+"/requests/"+string(id), nil)
	answer.holds(t, `<span class="row-path subject" dir="auto">שלום invoice 5</span>`, `<span class="detail-path subject" dir="auto">שלום invoice 5</span>`)
}

// What went wrong is said on a page like any other: the endpoints stand beside it, and of an endpoint its pages above.
func TestThePageThatSaysWhatWentWrongKeepsTheWayToTheOthers(t *testing.T) {
	s := newSite(t)
	s.create("Payments", hookglass.KindWebhook)
	b := s.signedIn()
	const beside = `<span class="rail-name" dir="auto">Payments</span>`
	b.want(404, "GET", "/nothing-here", nil).holds(t, beside)
	b.want(404, "GET", "/endpoints/ep_none", nil).holds(t, beside)
	b.want(404, "GET", s.page("/actions/act_none"), nil).holds(t, beside, `<nav class="subnav"`)
	b.want(405, "GET", "/tags/7", nil).holds(t, beside)
	b.want(200, "GET", "/auth/cli", nil).holds(t, beside)
	s.visitor().want(404, "GET", "/nothing-here", nil).lacks(t, "Payments")
	// What somebody else deleted meanwhile leads back to the list that it was in.
	for form, back := range map[string]string{"/channels/chan_none/test": "channels", "/tags/7/delete": "tags", "/flows/flow_none/delete": "flows"} {
		b.want(404, "POST", form, nil).holds(t, `href="/`+back+`">Back to `+back+`</a>`)
	}
	b.want(404, "GET", "/nothing/here", nil).holds(t, "Back to home")
}

func TestAVisitorIsAskedToSignInAndComesBackToThePage(t *testing.T) {
	s := newSite(t)
	b := s.visitor()
	wanted := s.page("?q=method%3APOST")
	a := b.want(303, "GET", wanted, nil)
	signIn := a.Header.Get("Location")
	if !strings.HasPrefix(signIn, "/sign-in?next=") {
		t.Fatalf("sent to %s", signIn)
	}
	page := b.want(200, "GET", signIn, nil)
	page.holds(t, `name="email"`, `name="password"`, `autocomplete="current-password"`)
	next := regexp.MustCompile(`name="next" value="([^"]*)"`).FindStringSubmatch(page.body)[1]
	form := url.Values{"email": {"Ada@Example.com"}, "password": {s.password()}, "next": {next}}
	a = b.want(303, "POST", "/sign-in", form)
	if got := s.url + a.Header.Get("Location"); got != wanted {
		t.Errorf("sent to %s, want %s", got, wanted)
	}
	b.want(200, "GET", wanted, nil).holds(t, "ada@example.com", "default")

	if got := b.want(303, "POST", "/sign-out", url.Values{}).Header.Get("Location"); got != "/sign-in" {
		t.Errorf("who signs out is sent to %q, want the page to sign in again", got)
	}
	b.want(303, "GET", wanted, nil)
}

func TestAddressesThatPeopleGuessLeadToThePagesTheyMean(t *testing.T) {
	s := newSite(t)
	for guess, page := range map[string]string{
		"/login": "/sign-in", "/signin": "/sign-in", "/signup": "/sign-up", "/.well-known/change-password": "/account/password",
	} {
		if got := s.visitor().want(303, "GET", guess, nil).Header.Get("Location"); got != page {
			t.Errorf("%s leads to %q, want %q", guess, got, page)
		}
	}
	// By this address a password manager learns whether a site says 404 at all.
	s.visitor().want(404, "GET", "/.well-known/resource-that-should-not-exist-whose-status-code-should-not-be-200", nil)
}

func TestAWrongPasswordSaysSoAndKeepsTheAddress(t *testing.T) {
	s := newSite(t)
	b := s.visitor()
	a := b.want(401, "POST", "/sign-in", url.Values{"email": {"ada@example.com"}, "password": {"wrong password"}, "next": {"/endpoints"}})
	a.holds(t, "The email address or the password is wrong.", `value="ada@example.com"`, `value="/endpoints"`, `aria-invalid="true"`)
	if strings.Contains(a.body, "wrong password\"") || len(a.Cookies()) > 0 {
		t.Errorf("the answer holds the password or sets %v", a.Cookies())
	}
}

func TestTooManyAttemptsAreToldToWait(t *testing.T) {
	s := newSite(t)
	b := s.visitor()
	form := url.Values{"email": {"ada@example.com"}, "password": {"not it, not it"}}
	for range 100 {
		a := b.do("POST", "/sign-in", form)
		if a.StatusCode == http.StatusTooManyRequests {
			if a.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			return
		}
		if a.StatusCode != 401 {
			t.Fatalf("status %d", a.StatusCode)
		}
	}
	t.Error("a hundred attempts were let through")
}

func TestALinkSignsInOnce(t *testing.T) {
	s := newSite(t)
	link := s.link()
	first, second := s.visitor(), s.visitor()
	if a := first.want(200, "HEAD", link, nil); len(a.Cookies()) > 0 {
		t.Error("a look ahead signed in")
	}
	a := first.want(303, "GET", link, nil)
	if a.Header.Get("Location") != "/" || len(a.Cookies()) != 1 {
		t.Fatalf("%v", a.Header)
	}
	c := a.Cookies()[0]
	if c.Name != "hookglass_session" || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure || c.Path != "/" || c.MaxAge <= 0 {
		t.Errorf("cookie %+v", c)
	}
	if got := first.want(303, "GET", "/", nil).Header.Get("Location"); got != "/endpoints/"+string(s.endpoint.ID) {
		t.Errorf("the start is %s", got)
	}
	used := second.want(401, "GET", link, nil)
	used.holds(t, "This link was used already or has expired.", "hookglass dev prints a new one")
	used.lacks(t, "aria-invalid")     // nobody typed anything yet
	first.want(303, "GET", link, nil) // who is signed in by now is just let in
}

func TestUnderHTTPSCookiesAreBoundToTheHost(t *testing.T) {
	s := newSiteWith(t, func(d *web.Deps) { d.Addresses.PublicURL = "https://hooks.example.com" })
	a := s.visitor().want(303, "GET", s.link(), nil)
	c := a.Cookies()[0]
	if c.Name != "__Host-hookglass_session" || !c.Secure || c.Path != "/" || c.Domain != "" {
		t.Errorf("cookie %+v", c)
	}
}

func TestNextStaysOnTheSite(t *testing.T) {
	s := newSite(t)
	for next, want := range map[string]string{
		"/endpoints":             "/endpoints",
		"/endpoints/x?q=a%20b":   "/endpoints/x?q=a%20b",
		"":                       "/",
		"https://evil.test/":     "/",
		"//evil.test/":           "/",
		"/\\evil.test/":          "/",
		"\\\\evil.test":          "/",
		"/\tevil":                "/",
		"javascript:alert(1)":    "/",
		"endpoints":              "/",
		"http:evil.test":         "/",
		"/\r\nSet-Cookie: a=b":   "/",
		"/%0d%0aSet-Cookie: a=b": "/%0d%0aSet-Cookie: a=b",
	} {
		a := s.visitor().want(303, "GET", s.link()+"?next="+url.QueryEscape(next), nil)
		if got := a.Header.Get("Location"); got != want && got != strings.ReplaceAll(want, " ", "%20") {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
		if len(a.Cookies()) != 1 {
			t.Errorf("next %q: cookies %v", next, a.Cookies())
		}
	}
}

func TestAFormOfAnotherSiteIsRefused(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	form := url.Values{"name": {"planted"}, "kind": {"webhook"}}
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.test"}, {"Origin", "null"},
	} {
		b.want(403, "POST", "/endpoints", form, header...).holds(t, "another site")
		b.want(403, "POST", s.page("/delete"), url.Values{}, header...)
		b.want(403, "POST", "/temporary", url.Values{}, header...)
		b.want(403, "POST", "/sign-out", url.Values{}, header...)
	}
	if got := b.want(200, "GET", "/endpoints", nil); strings.Contains(got.body, "planted") {
		t.Error("an endpoint was created")
	}
	b.want(303, "POST", "/endpoints", form, "Origin", s.url)
	b.want(303, "POST", "/endpoints", form, "Sec-Fetch-Site", "same-origin")
}

// How a first mail is sent is shown for where this server takes mail, and for programs that may sign in.
func TestSamplesOfMail(t *testing.T) {
	for name, tt := range map[string]struct {
		smtp     web.SMTP
		has, not []string
	}{
		"at an address": {web.SMTP{Address: "192.0.2.7:2525"}, []string{
			"SMTP server: <code>192.0.2.7:2525</code>", "swaks --server &#39;192.0.2.7:2525&#39; --to &#39;LOCAL@mail.test&#39;",
			"createTransport({ host: &#34;192.0.2.7&#34;, port: 2525 })", "smtplib.SMTP(&#34;192.0.2.7&#34;, 2525)", "smtp.SendMail(&#34;192.0.2.7:2525&#34;, nil,", "MAIL_USERNAME=null", "/mail/ep_",
		}, []string{"any password", "alice@example.com", "login("}},
		"at all": {web.SMTP{Address: "[::]:25"}, []string{"SMTP server: <code>port 25</code>", "swaks --server &#39;127.0.0.1:25&#39;", "MAIL_HOST=127.0.0.1\n"}, nil},
		"who may sign in": {web.SMTP{Address: "127.0.0.1:2525", SignIn: true}, []string{
			"any password can send to any recipient", "--auth-user &#39;LOCAL@mail.test&#39; --auth-password any --to &#39;alice@example.com&#39;", "auth: { user: &#34;LOCAL@mail.test&#34;, pass: &#34;any&#34; }",
			"server.login(&#34;LOCAL@mail.test&#34;, &#34;any&#34;)", "smtp.PlainAuth(&#34;&#34;, &#34;LOCAL@mail.test&#34;, &#34;any&#34;, &#34;127.0.0.1&#34;)", "MAIL_USERNAME=LOCAL@mail.test", "authentication: :plain", "EMAIL_HOST_USER",
		}, []string{"--tls", "starttls", "USE_TLS"}},
		"who may sign in by TLS": {web.SMTP{Address: "127.0.0.1:2525", SignIn: true, TLS: true}, []string{
			"swaks --server &#39;127.0.0.1:2525&#39; --tls --auth-user", "as server:\n    server.starttls()\n    server.login(", "EMAIL_USE_TLS = True",
		}, nil},
		"at an address with TLS": {web.SMTP{Address: "127.0.0.1:2525", TLS: true}, []string{"swaks --server &#39;127.0.0.1:2525&#39; --to"}, []string{"starttls", "USE_TLS"}},
		"nowhere":                {web.SMTP{}, []string{"SMTP is off on this server. Send mail over HTTP instead:", "/mail/ep_"}, []string{"swaks", "any password"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSiteWith(t, func(d *web.Deps) { d.SMTP = tt.smtp })
			b := s.signedIn()
			inbox := b.want(303, "POST", "/endpoints", url.Values{"name": {"Orders"}, "kind": {"email"}, "email_local_part": {"orders"}}).Header.Get("Location")
			page := b.want(200, "GET", inbox, nil)
			local := regexp.MustCompile(`([a-z0-9.]+)@mail\.test`).FindStringSubmatch(page.body)[1]
			for _, text := range tt.has {
				page.holds(t, strings.ReplaceAll(text, "LOCAL", local))
			}
			for _, text := range tt.not {
				if strings.Contains(page.body, text) {
					t.Errorf("the page has %q", text)
				}
			}
		})
	}
}

func TestEndpointsAreCreatedSavedAndDeleted(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	b.want(200, "GET", "/endpoints", nil).holds(t, ">Endpoints</h1>", s.url+"/hooks/"+string(s.endpoint.ID), ">Create endpoint</button>", "0 requests")

	a := b.want(422, "POST", "/endpoints", url.Values{"name": {" "}, "kind": {"email"}})
	a.holds(t, "The name must have 1 to 200 characters.", `aria-invalid="true"`)
	if !regexp.MustCompile(`value="email" checked`).MatchString(a.body) {
		t.Error("the kind was forgotten")
	}
	a = b.want(303, "POST", "/endpoints", url.Values{"name": {"Orders"}, "kind": {"email"}})
	orders := a.Header.Get("Location")
	b.want(200, "GET", orders, nil).holds(t, ">Orders</h1>", "@mail.test", "Send mail to the address above.", "SMTP server: <code>127.0.0.1:2525</code>", "+test1@mail.test", s.url+"/mail/ep_", `placeholder="subject:invoice from:alice"`)
	if tunnel := b.want(200, "GET", orders+"/tunnel", nil); strings.Contains(tunnel.body, "Response to senders") {
		t.Error("the page of a mailbox leads to a setting that it does not have")
	}

	b.want(200, "GET", orders+"/settings", nil).holds(t, ">Save</button>", ">Delete</button>", `value="Orders"`)
	b.want(422, "POST", orders+"/settings", url.Values{"name": {strings.Repeat("n", 201)}}).holds(t, "The name must have 1 to 200 characters.", "<h1>Settings</h1>")
	a = b.want(303, "POST", orders+"/settings", url.Values{"name": {"Mail orders"}})
	b.want(200, "GET", a.Header.Get("Location"), nil).holds(t, "Saved.", `value="Mail orders"`)
	b.want(200, "GET", orders, nil).holds(t, "Mail orders", "disabled")

	b.want(303, "POST", orders+"/delete", url.Values{})
	b.want(404, "GET", orders, nil).holds(t, "There is no such endpoint.", "It may have been deleted.")
}

func TestTheFirstPageShowsHowToSendTheFirstRequest(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	hook := s.url + "/hooks/" + string(s.endpoint.ID)
	curl := `curl -X POST &#39;` + hook + `&#39; -H &#39;Content-Type: application/json&#39; -d &#39;{&#34;hello&#34;:&#34;world&#34;}&#39;`
	b.want(200, "GET", s.page(""), nil).holds(t, hook, curl, `data-copy="`+hook+`"`, `data-copy="`+curl+`"`, "Waiting for the first request")
}

func TestARequestIsShownWholeAndInOrder(t *testing.T) {
	s := newSite(t)
	s.secret("github", "swordfish-swordfish")
	b := s.signedIn()
	good := s.hook(s.github("pull_request", "5f7c1a0e", `{"action":"opened","big":12345678901234567890.10}`, "swordfish-swordfish"))
	a := b.want(200, "GET", s.page("/requests/"+string(good)), nil)
	a.holds(t, "GitHub", "pull_request", "5f7c1a0e", "203.0.113.7", "application/json", "HTTP/1.1", "signed", "verified", string(good),
		"12345678901234567890.10", "X-Hub-Signature-256", "default", "Copy as curl")
	if at := strings.Index; at(a.body, ">X-GitHub-Event<") > at(a.body, ">X-GitHub-Hook-ID<") || at(a.body, ">Host<") > at(a.body, ">Accept<") {
		t.Error("the headers are not in the order sent")
	}

	forged := s.hook(s.github("issues", "d2", `{"action":"opened"}`, "another secret"))
	b.want(200, "GET", s.page("/requests/"+string(forged)), nil).
		holds(t, "bad signature", "failed", "signature_mismatch", "does not match this body with any configured secret")

	form := s.hook(sent{target: "/a%2Fb?x=1&x=2&empty=&%3Cb%3E", body: "command=%2Fweather&text=a+b", headers: hookglass.Headers{{Name: "Content-Type", Value: "application/x-www-form-urlencoded"}}})
	b.want(200, "GET", s.page("/requests/"+string(form)), nil).
		holds(t, "/a%2Fb", "x=1&amp;x=2&amp;empty=&amp;%3Cb%3E", "&lt;b&gt;", "/weather", "a b", "unchecked")

	binary := s.hook(sent{method: "PUT", body: "\x89PNG\r\n\x1a\n\x00\xff"})
	b.want(200, "GET", s.page("/requests/"+string(binary)), nil).holds(t, "89 50 4e 47 0d 0a 1a 0a  00 ff", "PUT")

	b.want(404, "GET", s.page("/requests/req_0000000000000000000000000a"), nil).holds(t, "This request does not exist or was deleted.", "Requests")
	b.want(404, "GET", s.page("/requests/nonsense/panel"), nil)
}

func TestTheListIsNewestFirstAndGoesOnByCursor(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	for range 60 {
		s.hook(sent{method: "GET", target: "/old"})
	}
	newest := s.hook(sent{method: "POST", target: "/new?shown=1"})
	a := b.want(200, "GET", s.page(""), nil)
	if n := strings.Count(a.body, `class="row"`); n != 50 {
		t.Errorf("%d rows, want 50", n)
	}
	a.holds(t, "/new?shown=1", "61")
	if strings.Index(a.body, "/new") > strings.Index(a.body, "/old") {
		t.Error("the newest is not first")
	}
	more := regexp.MustCompile(`data-more="([^"]*)"`).FindStringSubmatch(a.body)[1]
	rest := b.want(200, "GET", more, nil)
	if n := strings.Count(rest.body, `class="row"`); n != 11 || strings.Contains(rest.body, "data-more") || strings.Contains(rest.body, string(newest)) {
		t.Errorf("%d more rows, want 11 and no way on:\n%s", n, rest.body)
	}
	plain := regexp.MustCompile(`href="([^"]*cursor=[^"]*)"`).FindStringSubmatch(a.body)[1]
	b.want(200, "GET", plain, nil).holds(t, "Newest") // the same without scripts, as a page
	b.want(422, "GET", s.page("?cursor=rubbish"), nil)
}

func TestTheQueryLanguageFindsRequests(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	s.hook(sent{method: "GET", target: "/health"})
	s.hook(json(`{"id":"in_1"}`))
	a := b.want(200, "GET", s.page("?q="+url.QueryEscape(`body./id:in_1 method:POST`)), nil)
	if strings.Count(a.body, `class="row"`) != 1 || strings.Contains(a.body, "/health") {
		t.Errorf("found:\n%s", a.body)
	}
	a.holds(t, `value="body./id:in_1 method:POST"`, `?q=body.%2Fid%3Ain_1+method%3APOST"`)
	a = b.want(200, "GET", s.page("?q=status:teapot"), nil)
	a.holds(t, "The query cannot be read at character", `aria-invalid="true"`, `value="status:teapot"`)
	// One that is too long is refused whole: a field that takes no more would search for its beginning.
	long := "body./" + strings.Repeat("a", 1000) + ":1"
	a = b.want(200, "GET", s.page("?q="+long), nil)
	a.holds(t, "a query has at most 1000 characters", `value="`+long+`"`)
	if regexp.MustCompile(`<input[^>]*id="q"[^>]*maxlength`).MatchString(a.body) {
		t.Error("the field cuts what is pasted")
	}
	b.want(200, "GET", s.page("?q=path:/none"), nil).holds(t, "No requests match yet.", `<span id="found">0</span> of <span id="count">2</span>`)
	b.want(200, "GET", s.page("?q=path:/health"), nil).holds(t, `<span id="found">1</span> of <span id="count">2</span>`)
	b.want(200, "GET", s.page("?q=status:teapot"), nil).lacks(t, `id="found"`)
	b.want(200, "GET", s.page(""), nil).lacks(t, "in total", `id="found"`)
	for range 50 {
		s.hook(sent{method: "GET", target: "/health"})
	}
	b.want(200, "GET", s.page("?q=path:/health"), nil).holds(t, `<span id="found">50+</span> of <span id="count">52</span>`)
	b.want(200, "GET", s.page("?q=path:/none+AND+path:/health"), nil).holds(t, "No requests match yet. AND, OR and NOT are searched for as words.")
	b.want(200, "GET", s.page("?q=path:/none+and+path:/health"), nil).lacks(t, "searched for as words")
}

func TestTheBodyIsADownloadOfTheBytesSent(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	page := "<script>alert(1)</script>\x00\xff"
	event := s.hook(sent{body: page, headers: hookglass.Headers{{Name: "Content-Type", Value: "text/html"}}})
	a := b.want(200, "GET", s.page("/requests/"+string(event)+"/body"), nil)
	if a.body != page {
		t.Errorf("body %q", a.body)
	}
	for name, want := range map[string]string{
		"Content-Type":            "application/octet-stream",
		"Content-Disposition":     `attachment; filename="` + string(event) + `.bin"`,
		"X-Content-Type-Options":  "nosniff",
		"Content-Security-Policy": "default-src 'none'; sandbox",
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestRequestsAreDeletedAndTried(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	event := s.hook(json(`{}`))
	b.want(303, "POST", s.page("/requests/"+string(event)+"/delete"), url.Values{})
	b.want(404, "GET", s.page("/requests/"+string(event)), nil)
	b.want(404, "POST", s.page("/requests/"+string(event)+"/delete"), url.Values{})

	b.want(303, "POST", s.page("/test"), url.Values{})
	b.want(200, "GET", s.page(""), nil).holds(t, "application/json", `class="row"`)
}

func TestASampleIsSentWithValuesOfOnesOwn(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	send := func(set string) url.Values { return url.Values{"sample": {"stripe.invoice.paid"}, "set": {set}} }
	b.want(303, "POST", s.page("/test"), send("/data/object/number=7\r\n/data/object/amount_paid=500\r\n"))
	sent := b.want(200, "GET", s.page(""), nil).found(t, `href="(/endpoints/[^"]+/requests/[^"?]+)"`)
	b.want(200, "GET", sent+"/body", nil).holds(t, `"type":"invoice.paid"`, `"number":"7"`, `"amount_paid":500`)
	for set, fault := range map[string]string{
		"number=7":          "The list of values takes lines of a JSON Pointer and a value",
		"/data/nothing/a=1": "no object or array that could hold /data/nothing/a",
	} {
		b.want(422, "POST", s.page("/test"), send(set)).holds(t, fault, "stripe.invoice.paid</textarea>", set+"</textarea>")
	}
	b.want(422, "POST", s.page("/test"), url.Values{"sample": {"stripe.nothing"}})
}

func TestNobodySeesWhatIsNotTheirs(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{"secret":"not for others"}`))
	other := s.visitor()
	other.want(303, "POST", "/temporary", url.Values{})
	for _, path := range []string{"", "/rows", "/requests/" + string(event), "/requests/" + string(event) + "/panel", "/requests/" + string(event) + "/body"} {
		a := other.want(303, "GET", s.page(path), nil)
		if strings.Contains(a.body, "not for others") || !strings.HasPrefix(a.Header.Get("Location"), "/sign-in?next=") {
			t.Errorf("%s shows it, or leads to %s", path, a.Header.Get("Location"))
		}
	}
	for _, path := range []string{"/test", "/requests/" + string(event) + "/delete"} {
		other.want(401, "POST", s.page(path), url.Values{})
	}
	other.want(401, "POST", s.page("/delete"), url.Values{})
	other.want(401, "POST", s.page("/settings"), url.Values{"name": {"x"}})

	anyone := s.visitor()
	anyone.want(303, "GET", s.page("/rows"), nil)
	anyone.want(401, "GET", s.page("/rows"), nil, "Sec-Fetch-Dest", "empty")
	anyone.want(401, "POST", s.page("/test"), url.Values{})
}

func TestAVisitorGetsATemporaryEndpointAtOnce(t *testing.T) {
	s := newSite(t)
	b := s.visitor()
	b.want(200, "GET", "/", nil).holds(t, "Create a temporary endpoint", "Sign in")
	a := b.want(303, "POST", "/temporary", url.Values{})
	c := a.Cookies()[0]
	if c.Name != "hookglass_temporary" || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || !strings.HasPrefix(c.Value, "tk_") || c.MaxAge > 24*3600 {
		t.Errorf("cookie %+v", c)
	}
	mine := a.Header.Get("Location")
	page := b.want(200, "GET", mine, nil)
	id := strings.TrimPrefix(mine, "/endpoints/")
	page.holds(t, s.url+"/hooks/"+id, "Waiting for the first request", "expires <time")
	if strings.Contains(page.body, "tk_") || strings.Contains(page.body, "/settings") {
		t.Error("the page holds the key, or offers what the key may not do")
	}
	event := s.capture(hookglass.Endpoint{ID: hookglass.EndpointID(id)}, json(`{"caught":true}`))
	b.want(200, "GET", mine+"/requests/"+string(event), nil).holds(t, "caught")
	b.want(200, "GET", "/sign-in", nil).holds(t, mine)
	b.want(303, "GET", "/", nil)
	b.want(303, "POST", mine+"/requests/"+string(event)+"/delete", url.Values{})

	s.visitor().want(303, "GET", mine, nil) // another browser
	b.want(303, "GET", s.link(), nil)
	// And still this one's after signing in.
	if a := b.want(200, "GET", mine, nil); strings.Contains(a.body, `href="/sign-in"`) {
		t.Error("who is signed in is asked to sign in")
	}
}

// Who made one elsewhere, by the API or by "hookglass listen", has its key and wants to look at it.
func TestATemporaryEndpointIsOpenedByItsKey(t *testing.T) {
	s := newSite(t)
	e, key, err := s.endpoints.CreateTemporary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := s.visitor()
	mine := "/endpoints/" + string(e.ID)
	asked := b.want(303, "GET", mine, nil).Header.Get("Location")
	b.want(200, "GET", asked, nil).holds(t, "Open an endpoint by its key", `action="/temporary/key"`, " open", `value="`+mine+`"`)
	for _, wrong := range []string{"", "tk_wrong", "tk_" + strings.Repeat("0", 26), s.url} {
		b.want(401, "POST", "/temporary/key", url.Values{"key": {wrong}, "next": {mine}}).holds(t, "No temporary endpoint has this key", `value="`+mine+`"`)
	}
	a := b.want(303, "POST", "/temporary/key", url.Values{"key": {" " + key + "\n"}, "next": {mine}})
	if c := a.Cookies()[0]; c.Value != key || !c.HttpOnly || c.MaxAge > 24*3600 || a.Header.Get("Location") != mine {
		t.Errorf("it leads to %s with %+v", a.Header.Get("Location"), c)
	}
	b.want(200, "GET", mine, nil).holds(t, s.url+"/hooks/"+string(e.ID))
	// One of its requests is where the person wanted to go; another endpoint's page is not what the key is for.
	event := s.capture(e, json(`{}`))
	for next, want := range map[string]string{mine + "/requests/" + string(event): mine + "/requests/" + string(event), "/endpoints/ep_other": mine, "https://example.com/": mine, "": mine} {
		if a := s.visitor().want(303, "POST", "/temporary/key", url.Values{"key": {key}, "next": {next}}); a.Header.Get("Location") != want {
			t.Errorf("with next %q it leads to %s", next, a.Header.Get("Location"))
		}
	}
	newSiteWith(t, func(d *web.Deps) { d.Temporary = false }).visitor().want(404, "POST", "/temporary/key", url.Values{"key": {key}})
}

// Where nobody has an account yet, and none can be created here, the page says how the first one comes to be.
func TestTheFirstPageSaysHowTheFirstUserComesToBe(t *testing.T) {
	const how = "hookglass admin user create"
	s := newSite(t)
	if a := s.visitor().want(200, "GET", "/sign-in", nil); strings.Contains(a.body, how) {
		t.Error("it says so although there is a user")
	}
	empty := func(d *web.Deps) { d.Accounts = account.New(storetest.SQLite(t), slog.New(slog.DiscardHandler)) }
	newSiteWith(t, empty).visitor().want(200, "GET", "/sign-in", nil).holds(t, how)
	if a := newSiteWith(t, func(d *web.Deps) { empty(d); d.Signup = true }).visitor().want(200, "GET", "/sign-in", nil); strings.Contains(a.body, how) {
		t.Error("it says so although anybody may create an account")
	}
}

func TestTemporaryEndpointsAreFewAMinuteAndCanBeOff(t *testing.T) {
	s := newSite(t)
	b := s.visitor()
	for range 10 {
		b.want(303, "POST", "/temporary", url.Values{})
	}
	if a := b.want(429, "POST", "/temporary", url.Values{}); a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}

	off := newSiteWith(t, func(d *web.Deps) { d.Temporary = false }).visitor()
	if a := off.want(200, "GET", "/", nil); strings.Contains(a.body, "temporary") {
		t.Error("the page offers what is off")
	}
	off.want(404, "POST", "/temporary", url.Values{})
}

func TestASessionThatEndedSeesNothing(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	b.want(200, "GET", s.page(""), nil)
	if err := s.accounts.SetPassword(t.Context(), s.user.ID, "another password"); err != nil {
		t.Fatal(err)
	}
	b.want(303, "GET", s.page(""), nil)
	b.want(401, "POST", "/tags", url.Values{"name": {"late"}}).holds(t, `href="/sign-in?next=%2Ftags"`)
	b.want(401, "POST", s.page("/targets"), url.Values{"name": {"late"}}).holds(t, `href="/sign-in"`)
}

func TestAnEndpointIsCreatedInAWorkspaceOfChoice(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	if strings.Contains(b.want(200, "GET", "/endpoints", nil).body, `name="workspace"`) {
		t.Error("there is nothing to choose from")
	}
	b.want(303, "POST", "/account/workspaces", url.Values{"name": {"Staging"}})
	staging := regexp.MustCompile(`<option value="(\d+)">Staging<`).FindStringSubmatch(b.want(200, "GET", "/endpoints", nil).body)
	if staging == nil {
		t.Fatal("the workspace is not offered")
	}
	b.want(303, "POST", "/endpoints", url.Values{"name": {"there"}, "kind": {"webhook"}, "workspace": {staging[1]}})
	err := s.db.View(t.Context(), s.who, func(v *store.View) error {
		all, err := v.Endpoints(0, 0)
		if err == nil && strconv.FormatInt(all[len(all)-1].WorkspaceID, 10) != staging[1] {
			t.Errorf("it is in workspace %d", all[len(all)-1].WorkspaceID)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.want(200, "GET", "/endpoints", nil).holds(t, "<span>in Staging</span>", "<span>in Default</span>")
	b.want(200, "GET", "/account/workspaces", nil).holds(t, "admin user create --email ADDRESS --password-stdin --join ")
	b.want(422, "POST", "/endpoints", url.Values{"name": {"nowhere"}, "kind": {"webhook"}, "workspace": {"999"}}).holds(t, "is no workspace of yours")
}

func TestALongAnswerIsSaved(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	body := strings.Repeat("\"", 1<<20) // the longest, and what a form makes the longest
	b.want(303, "POST", s.page("/response"), url.Values{"status": {"200"}, "body": {body}, "delay_ms": {"0"}, "headers": {""}})
	b.want(200, "GET", s.page("/settings"), nil)
}

func TestAListOfManyEndpointsGoesOn(t *testing.T) {
	s := newSite(t)
	for range 200 {
		s.create("more", hookglass.KindWebhook)
	}
	last := s.create("the newest", hookglass.KindEmail)
	b := s.signedIn()
	next := regexp.MustCompile(`href="(/endpoints\?after=ep_\w+)"`).FindStringSubmatch(b.want(200, "GET", "/endpoints", nil).body)
	if next == nil {
		t.Fatal("the list does not go on")
	}
	b.want(200, "GET", "/endpoints", nil).holds(t, `href="#create">New endpoint</a>`)
	page := b.want(200, "GET", next[1], nil)
	page.holds(t, `href="/endpoints/`+string(last.ID)+`"`, "All endpoints")
	if strings.Contains(page.body, "More endpoints") {
		t.Error("the list goes on behind its end")
	}
	b.want(404, "GET", "/endpoints?after=ep_none", nil)
}

func TestStrangePathsAreNotFound(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	for _, path := range []string{"/nothing", "/endpoints/ep_x", "/endpoints/../endpoints/ep_x", "/endpoints/%00", s.page("/nothing"), "/assets/"} {
		if a := b.do("GET", path, nil); a.StatusCode != 404 && a.StatusCode != 301 && a.StatusCode != 307 {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	b.want(405, "DELETE", "/endpoints", nil)
}

// A page of a full list is a matter of milliseconds, also for a body at the bound.
func TestALargeBodyIsShownAtOnce(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	big := `{"rows":[` + strings.TrimSuffix(strings.Repeat(`{"id":1,"name":"a name that is not short"},`, 240_000), ",") + `]}`
	event := s.hook(json(big))
	began := time.Now()
	a := b.want(200, "GET", s.page("/requests/"+string(event)), nil)
	if took := time.Since(began); took > time.Minute || len(a.body) > 2<<20 {
		t.Errorf("%d bytes of page for %d bytes of body, in %v", len(a.body), len(big), took)
	}
	a.holds(t, "Only the beginning of 10.", "Download the full body")
}

// Who would be given another endpoint in place of theirs would have lost it.
func TestAKeyThatCanNotBeLookedUpIsNotTakenForNone(t *testing.T) {
	s := newSite(t)
	b := s.visitor()
	b.want(303, "POST", "/temporary", nil)
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the storage answers nothing
	for _, path := range []string{"/", "/endpoints/" + string(s.endpoint.ID)} {
		r := httptest.NewRequestWithContext(ctx, "GET", s.url+path, nil)
		r.AddCookie(b.http.Jar.Cookies(at)[0])
		w := httptest.NewRecorder()
		s.server.Config.Handler.ServeHTTP(w, r)
		if w.Code < 500 {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
}

// A name is written by another member of the account, or came from a file. What would reorder the text beside it is shown.
func TestANameReordersNothingOnAnyPage(t *testing.T) {
	s := newWatched(t)
	b := s.signedIn()
	const name = "pay\u202eecivni"
	b.want(303, "POST", s.page("/settings"), url.Values{"name": {name}, "enabled": {"true"}})
	b.want(303, "POST", "/account/workspaces", url.Values{"name": {name}})
	b.want(303, "POST", s.page("/searches"), url.Values{"name": {name}, "q": {"path:/a"}})
	b.want(303, "POST", s.page("/response_rules"), url.Values{"when": {`path:"` + name + `"`}, "status": {"200"}})
	s.hook(sent{})
	fields := regexp.MustCompile(` value="[^"]*"`) // what is edited stays what it is
	b.want(201, "POST", "/account/tokens", url.Values{"scopes": {"read"}, "level": {"workspace"}, "workspace": {
		b.want(200, "GET", "/account/tokens", nil).found(t, `<option value="(\d+)">pay`),
	}})
	tags := url.Values{"do": {"save"}, "name": {name}, "failure_policy": {"stop"}, "steps[0].step_type": {"tag"}, "steps[0].name": {name}, "steps[0].config.tag": {"a"}}
	action := b.want(303, "POST", s.page("/actions/new"), tags).Header.Get("Location")
	tags.Set("do", "backtest")
	for _, once := range []answer{
		b.want(200, "POST", action, tags),
		b.want(201, "POST", "/channels", url.Values{"name": {name}, "kind": {"webhook"}, "url": {"https://chat.example.com/"}}),
	} {
		if page := fields.ReplaceAllString(once.body, ""); strings.Contains(page, "\u202e") {
			t.Errorf("%s shows the name as it is", once.Request.URL)
		}
	}
	for _, address := range []string{
		s.page(""), s.page("/cases"), s.page("/actions"), s.page("/alerts"), s.page("/tunnel"), s.page("/metrics"), s.page("/settings"),
		"/endpoints", "/endpoint-names?text=pay", "/activity", "/secrets", "/channels", "/tags", "/setup", "/account/workspaces", "/account/tokens",
	} {
		page := fields.ReplaceAllString(b.want(200, "GET", address, nil).body, "")
		if strings.Contains(page, "\u202e") || !strings.Contains(page, "pay⟨U+202E⟩ecivni") {
			t.Errorf("%s shows the name as it is, or not at all", address)
		}
		seen := map[string]bool{}
		for _, id := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			if seen[id[1]] {
				t.Errorf("%s has the id %s twice", address, id[1])
			}
			seen[id[1]] = true
		}
	}
}
