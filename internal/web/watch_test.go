package web_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/action"
	"hookglass/internal/alert"
	"hookglass/internal/capture"
	"hookglass/internal/outbound"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/web"
)

// chats answers every message that a channel is sent: with 200, and at /broken with 500.
type chats struct{}

func (chats) Check(field, rawURL string) error {
	return outbound.New(outbound.Config{}).Check(field, rawURL)
}

func (chats) Turn(context.Context, string, int64) (*outbound.Turn, error) { return nil, nil }

func (chats) Do(_ context.Context, r outbound.Request) (*outbound.Response, error) {
	if strings.HasSuffix(r.URL, "/broken") {
		return &outbound.Response{Status: 500}, nil
	}
	return &outbound.Response{Status: 200}, nil
}

// watched is a site whose endpoints can be watched.
type watched struct {
	*site
	alerts  *alert.Service
	actions *action.Service
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{}
	keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	w.site = newSiteWith(t, func(d *web.Deps) {
		w.alerts = alert.New(d.DB, alert.Config{Client: chats{}, Sealer: keys, Log: slog.New(slog.DiscardHandler)})
		w.actions = action.New(d.DB, action.Config{Client: chats{}, Sealer: keys, Log: slog.New(slog.DiscardHandler)})
		d.Alerts, d.Actions = w.alerts, w.actions
	})
	return w
}

func (w *watched) update(do func(*store.Tx) error) {
	w.t.Helper()
	if err := w.db.Update(w.t.Context(), hookglass.System, do); err != nil {
		w.t.Fatal(err)
	}
}

// judged has the alerts judged once.
func (w *watched) judged() {
	w.t.Helper()
	if err := w.alerts.Evaluate(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// stranger is a browser in which someone of another account is signed in.
func (s *site) stranger() *browser {
	s.t.Helper()
	made, err := s.accounts.Register(s.t.Context(), account.Registration{Email: "eve@example.com"})
	if err != nil {
		s.t.Fatal(err)
	}
	secret, err := s.accounts.LoginLink(s.t.Context(), made.User.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	b := s.visitor()
	b.want(303, "GET", s.url+"/auth/link/"+secret, nil)
	return b
}

// found is what a pattern finds in a page.
func (a answer) found(t *testing.T, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("the page has nothing like %s:\n%s", pattern, a.body)
	}
	return m[len(m)-1]
}

func (a answer) lacks(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			t.Errorf("the page has %q", text)
		}
	}
}

func TestTagsAreMadeRenamedColouredAndDeleted(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	b.want(200, "GET", "/tags", nil).holds(t, "No tags yet.")
	b.want(303, "POST", "/tags", url.Values{"name": {"needs a look"}, "color": {"#2563eb"}})
	page := b.want(200, "GET", "/tags?done=created", nil)
	page.holds(t, "Created.", "needs a look", `fill="#2563eb"`)
	tag := page.found(t, `action="/tags/(\d+)"`)

	b.want(422, "POST", "/tags", url.Values{"name": {"needs a look"}}).holds(t, "The name ")
	b.want(422, "POST", "/tags", url.Values{"name": {strings.Repeat("a", 65)}}).holds(t, "The name must have 1 to 64 printable characters")
	b.want(422, "POST", "/tags/"+tag, url.Values{"name": {"x"}, "color": {`"><script>`}}).holds(t, "The colour ", "&#34;&gt;&lt;script&gt;")

	b.want(303, "POST", "/tags/"+tag, url.Values{"name": {"seen"}, "color": {""}})
	b.want(200, "GET", "/tags", nil).holds(t, "seen")

	eve := s.stranger()
	eve.want(200, "GET", "/tags", nil).lacks(t, "seen")
	eve.want(404, "POST", "/tags/"+tag, url.Values{"name": {"mine"}})
	eve.want(404, "POST", "/tags/"+tag+"/delete", url.Values{})

	b.want(303, "POST", "/tags/"+tag+"/delete", url.Values{})
	b.want(200, "GET", "/tags", nil).holds(t, "No tags yet.")
	b.want(404, "POST", "/tags/"+tag+"/delete", url.Values{})
	b.want(404, "POST", "/tags/nothing", url.Values{})
}

func TestATagThatAStepUsesStaysAndThePageSaysWhere(t *testing.T) {
	w := newWatched(t)
	b := w.signedIn()
	b.want(303, "POST", "/tags", url.Values{"name": {"needs a look"}})
	tag := b.want(200, "GET", "/tags", nil).found(t, `action="/tags/(\d+)"`)
	name := "Mark <b>it</b>"
	made, err := w.actions.Create(t.Context(), w.who, string(w.endpoint.ID), action.Draft{
		Name: &name, Steps: &[]action.StepDraft{{Type: "tag", Config: []byte(`{"tag":"needs a look"}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	used := `href="/endpoints/` + string(w.endpoint.ID) + "/actions/" + made.ID + `"`
	b.want(409, "POST", "/tags/"+tag+"/delete", url.Values{}).holds(t, `role="alert"`, "cannot be deleted: steps of actions use it", used, "Mark &lt;b&gt;it&lt;/b&gt;")
	b.want(409, "POST", "/tags/"+tag, url.Values{"name": {"seen"}}).holds(t, "cannot be renamed", used)
	b.want(303, "POST", "/tags/"+tag, url.Values{"name": {"needs a look"}, "color": {"tomato"}})
	b.want(200, "GET", "/tags", nil).holds(t, "needs a look", `fill="tomato"`)
}

func TestAChannelIsMadeTestedChangedAndDeletedAndItsCredentialsAreNeverShown(t *testing.T) {
	w := newWatched(t)
	b := w.signedIn()
	b.want(200, "GET", "/channels", nil).holds(t, "No channels yet.", "This installation has no mail relay")
	b.want(303, "POST", "/channels", url.Values{"name": {"On call"}, "kind": {"slack"}, "webhook_url": {"https://hooks.slack.com/services/T0/B0/swordfish"}})
	page := b.want(200, "GET", "/channels", nil)
	page.holds(t, "On call", "Slack", "hooks.slack.com", "active", "Nothing delivered yet")
	page.lacks(t, "swordfish")
	path := page.found(t, `href="(/channels/chan_[^"]+)"`)

	b.want(200, "POST", path+"/test", url.Values{}).holds(t, "The test message was delivered", "responded 200")
	b.want(303, "POST", path, url.Values{"name": {"Night shift"}, "enabled": {"true"}, "webhook_url": {""}})
	b.want(200, "GET", path, nil).lacks(t, "swordfish")
	b.want(200, "POST", path+"/test", url.Values{}).holds(t, "was delivered", "Night shift")
	b.want(303, "POST", path, url.Values{"name": {"Night shift"}, "enabled": {"true"}, "webhook_url": {"https://hooks.slack.com/broken"}})
	b.want(200, "POST", path+"/test", url.Values{}).holds(t, "was not delivered", "The channel responded 500.")
	// What was typed beside something wrong stays: a field that came back empty would keep the URL of before.
	b.want(422, "POST", path, url.Values{"name": {" "}, "webhook_url": {"https://hooks.slack.com/new"}}).holds(t, `value="https://hooks.slack.com/new"`)
	b.want(303, "POST", path, url.Values{"name": {"Night shift"}})
	b.want(200, "GET", "/channels", nil).holds(t, "disabled")

	ping := "Ping <b>them</b>"
	byName, err := w.actions.Create(t.Context(), w.who, string(w.endpoint.ID), action.Draft{
		Name: &ping, Steps: &[]action.StepDraft{{Type: "notify", Config: []byte(`{"channel":"Night shift"}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.want(409, "POST", path, url.Values{"name": {"Day shift"}}).holds(t, "cannot be renamed", `value="Day shift"`,
		`href="/endpoints/`+string(w.endpoint.ID)+"/actions/"+byName.ID+`"`, "Ping &lt;b&gt;them&lt;/b&gt;")
	b.want(303, "POST", path, url.Values{"name": {"Night shift"}})

	b.want(422, "POST", "/channels", url.Values{"name": {"Bot"}, "kind": {"telegram"}, "bot_token": {"1:secret-token"}, "chat_id": {"no chat"}}).lacks(t, "secret-token")
	b.want(422, "POST", "/channels", url.Values{"name": {"Bot"}, "kind": {"telegram"}, "bot_token": {"1:a"}, "chat_id": {"no chat"}}).holds(t, "The chat must be a number or @name.", `value="no chat"`)
	again := b.want(422, "POST", "/channels", url.Values{"name": {"Hook"}, "kind": {"webhook"}, "url": {"nowhere"}, "secret": {"whsec_c3dvcmRmaXNoc3dvcmRmaXNoc3dvcmRmaXNo"}})
	again.holds(t, `value="nowhere"`, "The secret is not shown again; enter it once more.")
	again.lacks(t, "whsec_c3dvcmRmaXNoc3dvcmRmaXNoc3dvcmRmaXNo")
	b.want(422, "POST", "/channels", url.Values{"name": {"Mail"}, "kind": {"email"}, "to": {"ada@example.com\r\nnobody"}}).holds(t, "is not a mail address", "nobody</textarea>")
	b.want(422, "POST", "/channels", url.Values{"name": {"x"}, "kind": {"pigeon"}}).holds(t, "The kind must be slack")
	b.want(422, "POST", "/channels", url.Values{"name": {"In"}, "kind": {"slack"}, "webhook_url": {"http://127.0.0.1/x"}}).holds(t, "The webhook URL is not a public address", `value="http://127.0.0.1/x"`)
	b.want(303, "POST", "/channels", url.Values{"name": {"Mail"}, "kind": {"email"}, "to": {"ada@example.com\r\n bob@example.com"}})
	b.want(200, "GET", "/channels", nil).holds(t, "ada@example.com, bob@example.com", `<span class="badge bad">cannot send</span>`)

	made := b.want(201, "POST", "/channels", url.Values{"name": {"Ours"}, "kind": {"webhook"}, "url": {"https://app.example.com/in?key=sesame"}, "events": {"alert.triggered", "webhook.received"}})
	secret := made.found(t, `whsec_[A-Za-z0-9+/=]+`)
	list := b.want(200, "GET", "/channels", nil)
	list.lacks(t, secret, "sesame")
	hook := list.found(t, `(?s)href="(/channels/chan_[^"]+)"><strong>Ours`)
	one := b.want(200, "GET", hook, nil)
	one.lacks(t, secret, "sesame")
	one.holds(t, `value="alert.triggered" checked`, `value="webhook.received" checked`, `value="email.received"`)
	b.want(303, "POST", hook, url.Values{"name": {"Ours"}, "enabled": {"true"}, "events": {"email.received"}})
	b.want(200, "GET", hook, nil).holds(t, `value="email.received" checked`)

	eve := w.stranger()
	eve.want(404, "GET", path, nil)
	eve.want(404, "POST", path, url.Values{"name": {"x"}})
	eve.want(404, "POST", path+"/test", url.Values{})
	eve.want(404, "POST", path+"/delete", url.Values{})
	b.want(200, "POST", path+"/delete", url.Values{}).holds(t, "The channel was deleted. These action steps still use it",
		`href="/endpoints/`+string(w.endpoint.ID)+"/actions/"+byName.ID+`"`, "Ping &lt;b&gt;them&lt;/b&gt;")
	b.want(404, "GET", path, nil)
	b.want(303, "POST", hook+"/delete", url.Values{})
}

func TestAnAlertIsMadeTriggeredDisabledAndDeleted(t *testing.T) {
	w := newWatched(t)
	b := w.signedIn()
	base := "/endpoints/" + string(w.endpoint.ID) + "/alerts"
	b.want(200, "GET", base, nil).holds(t, "No alerts yet.", "Create a channel")
	b.want(303, "POST", "/channels", url.Values{"name": {"On call"}, "kind": {"slack"}, "webhook_url": {"https://hooks.slack.com/services/T0/B0/x"}})
	channel := b.want(200, "GET", base, nil).found(t, `name="channels" value="([^"]+)"`)

	for _, kind := range []struct {
		form url.Values
		says string
	}{
		{url.Values{"kind": {"missing_webhook"}, "window_minutes": {"30"}}, "Nothing arrives for 30 minutes."},
		{url.Values{"kind": {"error_response"}, "window_minutes": {"10"}, "threshold": {"5"}}, "5 or more deliveries fail or get a status of 400 or above within 10 minutes"},
		{url.Values{"kind": {"volume_spike"}, "window_minutes": {"5"}, "factor": {"2.5"}, "min_count": {"20"}}, "more than 2.5 times the average before"},
		{url.Values{"kind": {"keyword_match"}, "keyword": {"refund"}, "field": {"body"}, "channels": {channel}}, "refund&#34; appears in body."},
	} {
		kind.form.Set("name", "Watch "+kind.form.Get("kind"))
		kind.form.Set("enabled", "true")
		b.want(303, "POST", base, kind.form)
		b.want(200, "GET", base, nil).holds(t, kind.form.Get("name"), kind.says)
	}
	b.want(422, "POST", base, url.Values{"name": {"x"}, "kind": {"missing_webhook"}, "window_minutes": {"soon"}}).holds(t, "The window must be a whole number.", `value="soon"`)
	all := b.want(422, "POST", base, url.Values{"name": {""}, "kind": {"volume_spike"}, "window_minutes": {"soon"}, "factor": {"much"}, "min_count": {"0"}, "channels": {"chan_nothing"}})
	all.holds(t, "The name must have 1 to 200", "The window must be a whole number.", "The factor must be a number.", "The minimum must be 1 to", "is no notification channel")
	all.lacks(t, "The window must be 1 to")
	b.want(422, "POST", base, url.Values{"name": {"x"}, "kind": {"missing_webhook"}, "window_minutes": {"1441"}}).holds(t, "The window must be 1 to 1440.")
	b.want(422, "POST", base, url.Values{"name": {"x"}, "kind": {"volume_spike"}, "window_minutes": {"5"}, "factor": {"1"}, "min_count": {"1"}}).holds(t, "The factor must be 1.01 to 1000000")
	b.want(422, "POST", base, url.Values{"name": {"x"}, "kind": {"keyword_match"}, "keyword": {"x"}, "channels": {"chan_nothing"}}).holds(t, "is no notification channel")

	list := b.want(200, "GET", base, nil)
	list.holds(t, "Notifies On call", `<span class="badge">Slack</span>`)
	path := list.found(t, `(?s)href="(`+base+`/alrt_[^"]+)" id="[^"]+"><strong>Watch keyword_match`)
	b.want(200, "GET", path, nil).holds(t, "Never triggered.", `value="refund"`, `checked`)
	event := w.hook(json(`{"order":"refund"}`))
	w.judged()
	b.want(200, "GET", base+"/rows", nil).holds(t, "triggered", "Triggered: Watch keyword_match")
	if first := b.want(200, "GET", base+"/rows", nil).found(t, `<strong>([^<]+)`); first != "Watch keyword_match" {
		t.Errorf("the first is %s, which is not triggered", first)
	}
	b.want(200, "GET", path+"/incidents", nil).holds(t, "ongoing", "/requests/"+string(event))
	b.want(200, "GET", "/activity?type=alert.triggered", nil).holds(t, "Alert triggered", "Watch keyword_match", "/requests/"+string(event))

	b.want(422, "POST", path, url.Values{"name": {""}, "keyword": {"refund"}}).holds(t, "The name must have 1 to 200 characters")
	b.want(303, "POST", path, url.Values{"name": {"Refunds"}, "keyword": {"refund"}, "field": {"body"}, "enabled": {"true"}})
	b.want(200, "GET", path, nil).holds(t, "Refunds", "ongoing") // what it watches for is the same
	b.want(303, "POST", path+"/enabled", url.Values{"enabled": {"false"}})
	b.want(200, "GET", path, nil).holds(t, "disabled", "The alert was disabled.")

	eve := w.stranger()
	for _, page := range []string{base, base + "/rows", path, path + "/incidents"} {
		eve.want(404, "GET", page, nil)
	}
	for _, form := range []string{base, path, path + "/enabled", path + "/delete"} {
		eve.want(404, "POST", form, url.Values{"name": {"x"}, "kind": {"missing_webhook"}, "window_minutes": {"5"}, "keyword": {"x"}})
	}
	b.want(303, "POST", path+"/delete", url.Values{})
	b.want(404, "GET", path, nil)
}

// Alerts, channels, targets, tags and secrets that were changed in another window are not put back by a form that was
// shown before.
func TestWhatWasChangedMeanwhileIsNotPutBackByAnotherForm(t *testing.T) {
	w := newWatched(t)
	b := w.signedIn()
	b.want(303, "POST", w.page("/alerts"), url.Values{"name": {"Spike"}, "kind": {"volume_spike"}, "enabled": {"true"}, "window_minutes": {"10"}, "factor": {"3"}, "min_count": {"5"}})
	b.want(303, "POST", "/channels", url.Values{"name": {"Ops"}, "kind": {"telegram"}, "bot_token": {"1:a"}, "chat_id": {"1"}})
	b.want(303, "POST", w.page("/targets"), url.Values{"name": {"Mine"}, "url": {"https://app.example.com/"}, "timeout_seconds": {"30"}, "retry_count": {"3"}})
	alert := b.want(200, "GET", w.page("/alerts"), nil).found(t, `href="(/endpoints/[^"]+/alerts/alrt_\w+)"`)
	channel := b.want(200, "GET", "/channels", nil).found(t, `href="(/channels/chan_\w+)"`)
	target := b.want(200, "GET", w.page("/settings"), nil).found(t, `action="(/endpoints/[^"]+/targets/\d+)"`)
	b.want(303, "POST", "/tags", url.Values{"name": {"20"}, "color": {"#15803d"}})
	tag := b.want(200, "GET", "/tags", nil).found(t, `action="(/tags/\d+)"`)
	workspace := strconv.FormatInt(w.endpoint.WorkspaceID, 10)
	b.want(303, "POST", "/secrets", url.Values{"workspace": {workspace}, "name": {"CRM"}, "secret_value": {"hush"}, "description": {"20"}})
	secret := b.want(200, "GET", "/secrets", nil).found(t, `action="(/secrets/\d+/asec_\w+)"`)
	for _, form := range []struct {
		page, address, change string
		fields                url.Values
	}{
		{"/tags", tag, "name", url.Values{"color": {"#15803d"}}},
		{"/secrets", secret, "description", url.Values{}},
		{alert, alert, "window_minutes", url.Values{"name": {"Spike"}, "enabled": {"true"}, "factor": {"3"}, "min_count": {"5"}}},
		{channel, channel, "chat_id", url.Values{"name": {"Ops"}, "enabled": {"true"}}},
		{w.page("/settings"), target, "timeout_seconds", url.Values{"name": {"Mine"}, "url": {"https://app.example.com/"}, "retry_count": {"3"}}},
	} {
		typed := func(text, seen string) url.Values {
			v := maps.Clone(form.fields)
			v.Set(form.change, text)
			v.Set("seen", seen)
			return v
		}
		pattern := `(?s)action="` + regexp.QuoteMeta(form.address) + `" class="stack">.*?name="seen" value="([^"]+)"`
		seen := b.want(200, "GET", form.page, nil).found(t, pattern)
		b.want(303, "POST", form.address, typed("21", seen))
		refused := b.want(409, "POST", form.address, typed("22", seen))
		refused.holds(t, "changed while you were editing", `value="22"`)
		b.want(200, "GET", form.page, nil).holds(t, `value="21"`)
		b.want(303, "POST", form.address, typed("22", refused.found(t, pattern)))
		b.want(200, "GET", form.page, nil).holds(t, `value="22"`)
		b.want(303, "POST", form.address, typed("23", "")) // a form that does not say what it was shown with
	}
	seen := b.want(200, "GET", channel, nil).found(t, `name="seen" value="([^"]+)"`)
	b.want(303, "POST", channel, url.Values{"name": {"Ops"}, "enabled": {"true"}, "chat_id": {"2"}})
	b.want(409, "POST", channel, url.Values{"name": {"Ops"}, "enabled": {"true"}, "chat_id": {"3"}, "bot_token": {"2:b"}, "seen": {seen}}).holds(t, "enter it once more")

	seen = b.want(200, "GET", "/secrets", nil).found(t, `name="seen" value="([^"]+)"`)
	b.want(303, "POST", secret, url.Values{"description": {"23"}, "secret_value": {"new"}}) // the value alone is a change as well
	refused := b.want(409, "POST", secret, url.Values{"description": {"23"}, "secret_value": {"newer"}, "seen": {seen}})
	refused.holds(t, "changed while you were editing", "enter it once more")
	refused.lacks(t, "newer")
	b.want(422, "POST", secret, url.Values{"description": {strings.Repeat("x", 501)}, "secret_value": {"newest"}}).holds(t, "enter it once more")
}

func TestFiguresOfAnEndpointAreTables(t *testing.T) {
	w := newWatched(t)
	b := w.signedIn()
	base := "/endpoints/" + string(w.endpoint.ID) + "/metrics"
	b.want(200, "GET", base, nil).holds(t, `aria-current="page">24 hours</a>`, `<a href="?window=7d">7 days</a>`, "No data in this window.", "No runs ended in this window.")
	w.traffic()
	page := b.want(200, "GET", base+"?window=1h", nil)
	page.holds(t, "GitHub", "✓ verified", "✗ failed", "push", `role="img"`, "Requests by time as a table", "4 in all, 0 of them ignored", "50 ms", "95.0%", `<th scope="row">Notify</th>`, "<dt>Completed</dt>", "By status", "By signature")
	// A mail has neither a status nor a signature.
	inbox := w.create("inbox", hookglass.KindEmail)
	b.want(200, "GET", "/endpoints/"+string(inbox.ID)+"/metrics", nil).lacks(t, "By status", "By signature", "Signature failed")
	b.want(200, "GET", "/endpoints/"+string(inbox.ID), nil).lacks(t, "the signature check", `class="head-actions"`)
	b.want(200, "GET", base+"/figures?window=7d", nil).holds(t, `data-fresh="`+base+`/figures?window=7d"`)
	b.want(422, "GET", base+"?window=91d", nil).holds(t, "The window may be 90d at most.")
	b.want(422, "GET", base+"?window=%3Cb%3E", nil).holds(t, `aria-current="page">&lt;b&gt;</span>`, `role="alert"`)
	w.stranger().want(404, "GET", base, nil)
}

// traffic is some requests, deliveries and runs of actions of the last minutes.
func (w *watched) traffic() {
	w.t.Helper()
	w.secret("github", "swordfish-swordfish")
	for n := range 3 {
		w.hook(w.github("push", "5f7c1a0e-2f6d-11f0-9d41-0242ac12000"+strconv.Itoa(n), `{"ref":"main"}`, "swordfish-swordfish"))
	}
	w.hook(w.github("issues", "5f7c1a0e-2f6d-11f0-9d41-0242ac120009", `{"action":"opened"}`, "another"))
	w.update(func(tx *store.Tx) error {
		for n := range 20 {
			o := hookglass.Outcome{
				EndpointNum: w.endpoint.Num, EventSeq: int64(n + 1), Source: hookglass.OutcomeTarget, At: time.Now(), Took: 50 * time.Millisecond, StatusCode: 200, Final: hookglass.OutcomeDelivered,
			}
			if n == 7 {
				o.StatusCode, o.Final = 500, hookglass.OutcomeFailed
			}
			if err := tx.AddOutcomes(o); err != nil {
				return err
			}
		}
		return tx.AddActionTotals(store.ActionCount{EndpointNum: w.endpoint.Num, At: time.Now(), ActionTotals: hookglass.ActionTotals{
			Runs:     map[hookglass.RunStatus]int64{hookglass.ActionRunCompleted: 3, hookglass.ActionRunFailed: 1},
			Steps:    map[hookglass.StepType]map[hookglass.StepStatus]int64{hookglass.StepNotify: {hookglass.StepCompleted: 3, hookglass.StepFailed: 1}},
			Failures: map[string]int64{"http_status": 1}, TimedSteps: 4, StepTime: 80 * time.Millisecond,
		}})
	})
}

func TestTheActivityNamesWhatHappenedWhereAndWhen(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	b.want(200, "GET", "/activity", nil).holds(t, "No activity in this period.")
	event := s.hook(sent{target: "/<b>orders"})
	old := s.hook(sent{target: "/old", ago: 2 * time.Hour})
	page := b.want(200, "GET", "/activity", nil)
	page.holds(t, "POST /&lt;b&gt;orders", "/requests/"+string(event), "/requests/"+string(old), "default")
	s.hook(s.github("push", "d", `{}`, "secret"))
	b.want(200, "GET", "/activity", nil).holds(t, "POST push · GitHub") // as the list of requests calls it
	push := s.github("push", "e", `{}`, "secret")
	push.target = "/in"
	failed := s.hook(push)
	err := s.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		return tx.AddActivity(hookglass.Activity{Type: hookglass.ActivityForwardingFailed, OccurredAt: time.Now(), EndpointID: s.endpoint.ID, EventID: failed,
			Data: map[string]any{"url_host": "app.example.com", "attempts": 1, "status_code": 500, "error": nil}})
	})
	if err != nil {
		t.Fatal(err)
	}
	const failure = "app.example.com after 1 attempt: it responded 500"
	b.want(200, "GET", "/activity", nil).holds(t, "POST /in · push · GitHub</a>", "POST /in · push · GitHub, to "+failure)
	if err := s.captures.Delete(t.Context(), s.who, string(s.endpoint.ID), string(failed)); err != nil {
		t.Fatal(err)
	}
	b.want(200, "GET", "/activity", nil).holds(t, "To "+failure)
	s.hook(sent{target: "/" + strings.Repeat("a", 5000)})
	b.want(200, "GET", "/activity", nil).lacks(t, strings.Repeat("a", 250)) // one request does not fill the page
	b.want(200, "GET", "/activity?since=1h", nil).lacks(t, string(old))
	b.want(200, "GET", "/activity?limit=1", nil).holds(t, "Showing the newest 1")
	b.want(200, "GET", "/activity?type=email.received", nil).holds(t, "No activity")
	b.want(200, "GET", "/activity?since="+url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339)), nil).lacks(t, string(old))
	for _, bad := range []string{"since=yesterday", "limit=0", "limit=201", "limit=many", "type=x"} {
		b.want(422, "GET", "/activity?"+bad, nil).holds(t, `role="alert"`)
	}
	s.stranger().want(200, "GET", "/activity", nil).lacks(t, string(event))
	s.visitor().want(303, "GET", "/activity", nil)
}

func TestAMailOfNobodyIsFromNone(t *testing.T) {
	s := newSite(t)
	inbox := s.create("inbox", hookglass.KindEmail)
	target, err := s.captures.AdmitMailbox(t.Context(), string(inbox.ID))
	if err != nil {
		t.Fatal(err)
	}
	stored := s.captures.CaptureMail(t.Context(), &capture.Mail{
		To: []capture.Recipient{{Address: inbox.EmailLocalPart + "@mail.test", Target: target}}, Protocol: "ESMTP", Raw: []byte("Subject: Bounced\r\n\r\nx\r\n"), At: time.Now(),
	})
	if stored[0].Err != nil {
		t.Fatal(stored[0].Err)
	}
	b := s.signedIn()
	b.want(200, "GET", "/activity", nil).lacks(t, "Bounced from")
	b.want(200, "GET", "/endpoints/"+string(inbox.ID)+"/requests/"+string(stored[0].Event), nil).found(t, `<dt>From</dt>\s*<dd>\s*none\s*</dd>`)
}

func TestALongNameLeavesTheBadgeOfAnActivityItsPlaceOnAPhone(t *testing.T) {
	w := newWatched(t)
	b := w.signedIn()
	b.want(303, "POST", w.page("/settings"), url.Values{"name": {"Orders of the shop in the old town"}, "enabled": {"true"}})
	b.want(303, "POST", w.page("/alerts"), url.Values{"name": {"Refunds"}, "kind": {"keyword_match"}, "keyword": {"refund"}, "field": {"any"}, "enabled": {"true"}})
	w.hook(json(`{"a":"refund"}`))
	w.judged()
	c := w.chrome(390, 900)
	c.open(w.link())
	c.until(isLive)
	c.open(w.url + "/activity?type=alert.triggered")
	c.until(`(() => {
		const [badge, where] = [".badge", ".activity-where"].map((e) => document.querySelector("#feed " + e)?.getBoundingClientRect());
		return badge && badge.right <= where.left && where.right <= innerWidth;
	})()`)
	if !eval[bool](c, `(() => {
		const time = document.querySelector("#feed time");
		time.textContent = "59m ago";
		time.parentElement.style.width = "150px";
		return time.scrollWidth <= time.clientWidth;
	})()`) {
		t.Error("the age is wider than its place")
	}
}

func TestSetupNamesTheAddressesOfThisService(t *testing.T) {
	s := newSite(t)
	page := s.signedIn().want(200, "GET", "/setup", nil)
	page.holds(t, "claude mcp add --transport http hookglass "+s.url+"/mcp", "hookglass login --server "+s.url, "hookglass listen 3000 -e "+string(s.endpoint.ID), s.url+"/hooks/"+string(s.endpoint.ID))
	s.stranger().want(200, "GET", "/setup", nil).lacks(t, string(s.endpoint.ID))
}

func TestWatchPagesLiveInTheBrowser(t *testing.T) {
	t.Parallel() // it waits for most of its time
	w := newWatched(t)
	c := w.chrome(1440, 900)
	c.open(w.link())
	c.open(w.url + "/activity")
	eval[bool](c, `window.same = true`)
	event := w.hook(sent{target: "/arrived"})
	c.until(`document.querySelector("#feed a[href$='` + string(event) + `']") && window.same`)
	c.until(`document.querySelector("#announce").textContent === "Webhook: POST /arrived"`)

	c.open(w.url + "/channels")
	shown := func(label string) string {
		return fmt.Sprintf(`[...document.querySelectorAll("#create label")].find((l) => l.textContent.trim().startsWith(%q)).checkVisibility()`, label)
	}
	pick := func(kind string) {
		eval[any](c, `(() => { const s = document.querySelector("#create [name=kind]"); s.value = "`+kind+`"; s.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	}
	c.until(shown("Webhook URL") + ` && !` + shown("Bot token") + ` && !` + shown("To"))
	pick("telegram")
	c.until(`!` + shown("Webhook URL") + ` && ` + shown("Bot token"))
	pick("webhook")
	c.until(`!` + shown("Bot token") + ` && ` + shown("Signing secret"))
	c.do(chromedp.SendKeys(`#create [name=name]`, "Ours"), chromedp.SendKeys(`#create [name=url]`, "https://app.example.com/in"))
	c.click("#create button[type=submit]")
	c.until(`document.querySelector("#secret")?.textContent.startsWith("whsec_")`)
	c.copies(".channel-secret .copy", func() { c.click(".channel-secret .copy") })

	c.open(w.page("/alerts"))
	c.until(shown("Window") + ` && !` + shown("Keyword"))
	pick("keyword_match")
	c.until(`!` + shown("Window") + ` && ` + shown("Keyword"))
	c.do(chromedp.SendKeys(`#create [name=name]`, "Refunds"), chromedp.SendKeys(`#create [name=keyword]`, "refund"))
	c.click("#create button[type=submit]")
	c.until(`document.querySelector("#alerts .badge.good")?.textContent === "ok"`)
	w.hook(json(`{"a":"refund"}`))
	w.judged()
	c.until(`document.querySelector("#alerts .badge.bad")?.textContent === "triggered"`)
	c.until(`document.querySelector("#announce").textContent === "Triggered: Refunds"`)
	c.silent()
}

func TestWatchPagesFitPhonesAndDesksInLightAndDark(t *testing.T) {
	w := newWatched(t)
	b := w.signedIn()
	channel := func(form url.Values) {
		if a := b.do("POST", "/channels", form); a.StatusCode >= 400 {
			t.Fatal(a.body)
		}
	}
	channel(url.Values{"name": {"On call"}, "kind": {"slack"}, "webhook_url": {"https://hooks.slack.com/services/T0/B0/x"}})
	channel(url.Values{"name": {"Ops mailing list " + strings.Repeat("long", 20)}, "kind": {"email"}, "to": {"ops@example.com, someone.with.a.long.name@department.example.com"}})
	channel(url.Values{"name": {"Ours"}, "kind": {"webhook"}, "url": {"https://app.example.com/hooks/" + strings.Repeat("deep/", 20)}})
	for name, color := range map[string]string{"needs a look": "#2563eb", "seen": "", strings.Repeat("long", 16): "tomato", "billing": "#c2410c"} {
		b.want(303, "POST", "/tags", url.Values{"name": {name}, "color": {color}})
	}
	alerts := "/endpoints/" + string(w.endpoint.ID) + "/alerts"
	b.want(303, "POST", alerts, url.Values{"name": {"Refunds"}, "kind": {"keyword_match"}, "keyword": {"opened"}, "field": {"/action"}, "enabled": {"true"}, "channels": {b.want(200, "GET", alerts, nil).found(t, `name="channels" value="([^"]+)"`)}})
	b.want(303, "POST", alerts, url.Values{"name": {"Orders stopped"}, "kind": {"missing_webhook"}, "window_minutes": {"60"}, "enabled": {"true"}})
	b.want(303, "POST", alerts, url.Values{"name": {"Handler is down"}, "kind": {"error_response"}, "window_minutes": {"10"}, "threshold": {"5"}})
	for n := range 30 {
		w.hook(sent{target: "/health?n=" + strconv.Itoa(n), ago: time.Duration(n*n) * time.Minute})
	}
	w.traffic()
	w.judged()
	refunds := b.want(200, "GET", alerts, nil).found(t, `(?s)href="([^"]+)" id="[^"]+"><strong>Refunds`)
	ours := b.want(200, "GET", "/channels", nil).found(t, `(?s)href="([^"]+)"><strong>Ours`)
	flow := b.want(303, "POST", "/flows/new", url.Values{"name": {strings.Repeat("long", 20)}, "steps.0.endpoint_id": {string(w.endpoint.ID)}, "steps.0.how": {"exactly"}, "steps.0.count": {"2"}, "steps.0.within_seconds": {"60"},
		"steps.0.where": {"/" + strings.Repeat("deep", 20) + " = " + strings.Repeat("long", 20)}}).Header.Get("Location")
	w.update(func(tx *store.Tx) error {
		return tx.AddActivity(hookglass.Activity{Type: hookglass.ActivityForwardingFailed, OccurredAt: time.Now(), EndpointID: w.endpoint.ID, Data: map[string]any{
			"url_host": "app.example.com", "attempts": 8, "status_code": nil, "error": map[string]any{"code": "connection_refused", "message": "The connection was refused."}}})
	})
	for _, look := range []struct {
		name          string
		width, height int64
		scheme        string
	}{{"light-1440", 1440, 900, "light"}, {"dark-390", 390, 844, "dark"}} {
		t.Run(look.name, func(t *testing.T) {
			outer := w.site.t
			w.site.t = t
			defer func() { w.site.t = outer }()
			c := w.chrome(look.width, look.height)
			c.prefer(look.scheme)
			c.open(w.link())
			for _, page := range []struct{ name, path string }{
				{"alerts", alerts}, {"alert", refunds}, {"channels", "/channels"}, {"channel", ours}, {"tags", "/tags"}, {"metrics", "/endpoints/" + string(w.endpoint.ID) + "/metrics"},
				{"retries", "/endpoints/" + string(w.endpoint.ID) + "/retries"}, {"schemas", "/endpoints/" + string(w.endpoint.ID) + "/schemas"}, {"schema", "/endpoints/" + string(w.endpoint.ID) + "/schemas/github/push"},
				{"activity", "/activity"}, {"setup", "/setup"}, {"flows", "/flows"}, {"flow", flow}, {"new flow", "/flows/new?from=" + strings.TrimPrefix(flow, "/flows/")},
				{"ledger", "/endpoints/" + string(w.endpoint.ID) + "/ledger?from=24h"},
			} {
				c.open(w.url + page.path)
				if page.name == "ledger" {
					c.until(`document.querySelector(".ledger-counts") !== null`)
				}
				c.picture("watch-" + page.name + "-" + look.name)
				if wide := eval[int](c, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
					t.Errorf("%s: %d pixels stand out at the side", page.name, wide)
				}
				for rule, expression := range map[string]string{"targets below 24 pixels (WCAG 2.5.8)": tooSmall, "text below a contrast of 4.5 (WCAG 1.4.3)": tooPale, "controls without a name (WCAG 4.1.2)": withoutName} {
					if offenders := eval[string](c, expression); offenders != "" {
						t.Errorf("%s: %s: %s", page.name, rule, offenders)
					}
				}
			}
			c.silent()
		})
	}
}
