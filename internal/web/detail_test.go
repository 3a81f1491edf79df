package web_test

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
)

// echo is a network in which every target answers with what it was sent: with 200, and at /broken with 500.
type echo struct{}

func (echo) Check(field, rawURL string) error {
	return outbound.New(outbound.Config{}).Check(field, rawURL)
}

func (echo) Turn(context.Context, string, int64) (*outbound.Turn, error) { return nil, nil }

func (echo) Do(_ context.Context, r outbound.Request) (*outbound.Response, error) {
	status := 200
	if strings.HasSuffix(r.URL, "/broken") {
		status = 500
	}
	return &outbound.Response{Status: status, Body: r.Body, RequestHeaders: r.Headers}, nil
}

func TestARequestIsReplayedAndEditedFromItsPage(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{"amount":1}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(isLive)
	again := func(target, edit string) {
		t.Helper()
		c.press("r")
		c.until(`document.querySelector("#replay-form").open && document.activeElement.name === "target_url"`)
		if !eval[bool](c, `document.activeElement.selectionStart === 0 && document.activeElement.selectionEnd === document.activeElement.value.length`) {
			t.Error("what is typed does not take the place of the target that is offered")
		}
		eval[any](c, `document.activeElement.value = "`+target+`"; `+edit)
		c.click("#replay-form [type=submit]")
	}
	again("https://app.example.com/broken", "0")
	c.until(`document.querySelector("#part-replays[data-shown] .outcome .badge.bad")?.textContent.trim() === "500"`)
	again("https://app.example.com/hook", "0")
	c.until(`document.querySelectorAll("#part-replays .outcome").length === 2 && document.querySelector("#part-replays .outcome .badge.good")?.textContent.trim() === "200"`)
	again("https://app.example.com/broken", `document.querySelector("#replay-form [name=body]").value = '{"amount":2}'`)
	c.until(`document.querySelectorAll("#part-replays .outcome").length === 3 && document.querySelector("#part-replays .outcome .raw").textContent === '{"amount":2}'`)
	if !strings.Contains(eval[string](c, `document.querySelector("#part-replays .outcome").textContent`), "still failing") {
		t.Error("the replay is not compared with the one before")
	}
	again("ftp://nowhere", "0")
	c.until(`document.querySelector("#replay-form .fault").checkVisibility()`)
	if got := eval[string](c, `document.querySelector("#replay-form .fault").textContent`); got != "The target URL must begin with http:// or https://." {
		t.Errorf("the form is refused with %q", got)
	}
	c.forget() // of the refusal
}

// What becomes of a request goes on after it was opened.
func TestDeliveriesOfTheOpenRequestAreKeptFresh(t *testing.T) {
	t.Parallel() // it waits for most of its time
	s := newSite(t)
	b := s.signedIn()
	target := func(form url.Values, below string) { b.want(303, "POST", s.page("/targets"+below), form) }
	app := url.Values{"name": {"App"}, "url": {"https://app.example.com/hook"}, "timeout_seconds": {"5"}, "retry_count": {"0"}}
	target(app, "")
	event := s.hook(json(`{}`))
	targets := b.want(200, "GET", s.page("/settings"), nil).found(t, `action="[^"]+(/targets/\d+)/delete"`)
	id := targets[len("/targets"):]

	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event) + "#part-deliveries"))
	c.until(isLive)
	const shown = `document.querySelector("#part-deliveries[data-shown]")`
	c.until(shown + `.textContent.includes("pending") && document.querySelector("#tab-deliveries .count").textContent === "1"`)
	eval[any](c, shown+`.querySelector("summary").focus()`)
	c.press("\r")
	c.until(shown + `.querySelector("details").open`)
	app.Set("name", "Renamed")
	target(app, id)
	c.untilIn(patience, shown+`.textContent.includes("Renamed")`)
	if !eval[bool](c, shown+`.querySelector("details").open && document.activeElement === `+shown+`.querySelector("summary")`) {
		t.Error("what was opened is closed, or the focus is lost")
	}
	target(nil, id+"/delete")
	c.untilIn(patience, shown+`.textContent.includes("No deliveries yet") && !document.querySelector("#tab-deliveries .count")`)
	c.silent()
}

func TestAMailThatIsReadShowsItsAuthenticationOnceItIsKnown(t *testing.T) {
	s := newSite(t)
	inbox, mail := s.mailed("From: Shop <shop@example.com>\r\nSubject: Your code\r\n\r\nHello\r\n")
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.url + "/endpoints/" + string(inbox.ID) + "/requests/" + string(mail) + "#part-signature")
	c.until(isLive)
	const shown = `document.querySelector("#part-signature[data-shown]")`
	c.until(shown + `.textContent.includes("Looking up DNS records") && ` + shown + `.textContent.includes("shop@example.com")`)
	err := s.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		return tx.SetVerdicts([]store.Verdict{{
			EndpointNum: inbox.Num, EventSeq: s.seq(inbox, mail), Results: hookglass.Authentication{SPF: "pass", DKIM: "none", DMARC: "fail"},
			Details: []byte(`{"spf":{"result":"pass","domain":"mail.example.net"}}`),
		}})
	})
	if err != nil {
		t.Fatal(err)
	}
	c.untilIn(patience, shown+`.textContent.includes("mail.example.net") && !`+shown+`.textContent.includes("Looking up") && !document.querySelector("#authentication[data-every]:not([data-every=''])")`)
	c.silent()
}

func TestARequestThatIsReadShowsALaterVerdictOnItsSignature(t *testing.T) {
	s := newSite(t)
	event := s.hook(s.github("push", "d", `{}`, "secret"))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event) + "#part-signature"))
	c.until(isLive)
	const shown = `document.querySelector("#part-signature[data-shown]")`
	c.until(shown + `.textContent.includes("Add a secret") && !document.querySelector("#tab-signature .count")`)
	s.secret("github", "secret")
	b := s.signedIn()
	judge := b.want(200, "GET", s.page("/settings"), nil).found(t, `action="[^"]+(/signatures/[^"/]+)/rejudge"`)
	b.want(303, "POST", s.page(judge+"/rejudge"), nil)
	c.until(shown + `.textContent.includes("genuine") && !` + shown + `.textContent.includes("Add a secret") && document.querySelector("#tab-signature .count").textContent === "verified"`)
	c.until(`document.querySelector("#` + string(event) + ` .badge.good")`)
	c.silent()
}

func TestAPublishedKeyThatCouldNotBeFetchedIsNoMissingSecret(t *testing.T) {
	s := newSite(t)
	event := s.hook(sent{})
	err := s.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		return tx.JudgeSignatures(store.SignatureVerdict{EndpointNum: s.endpoint.Num, EventSeq: s.seq(s.endpoint, event), Status: hookglass.SignatureUnchecked, Reason: "key_unavailable"})
	})
	if err != nil {
		t.Fatal(err)
	}
	page := s.signedIn().want(200, "GET", s.page("/requests/"+string(event)), nil)
	page.holds(t, "public key could not be fetched", "Check captured requests again</a> in a minute")
	page.lacks(t, "Add a secret", "no secret is configured")
}

func TestARequestThatTakesLongToOpenSaysSo(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{}`))
	for _, width := range []int64{1440, 390} {
		c := s.chrome(width, 900)
		c.open(s.link())
		c.open(s.page(""))
		c.until(isLive)
		eval[any](c, `(window.quick = fetch, window.fetch = async (...of) => { await new Promise((go) => window.go = go); return quick(...of); }, 0)`)
		c.click("#" + string(event) + " a")
		c.until(`document.querySelector("#detail[aria-busy=true][data-slow]") && document.querySelector("#announce").textContent === "Loading"`)
		c.picture("slow" + strconv.FormatInt(width, 10))
		eval[any](c, `go()`)
		c.until(shows(event) + ` && document.querySelector("#detail[aria-busy=false]:not([data-slow])")`)
		c.silent()
	}
}

func TestTagsAndIgnoringShowAtOnce(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(isLive)
	c.press("t")
	c.until(`document.activeElement.name === "tag"`)
	c.press("billing\r")
	c.until(lists(event) + `.querySelector(".tag")?.textContent.trim() === "billing" && document.querySelector(".facts .tag")`)
	c.press("i")
	c.until(lists(event) + `.textContent.includes("ignored")`)
	c.press("i")
	c.until(`!` + lists(event) + `.textContent.includes("ignored")`)
	c.silent()
}

// The detail is loaded again when a form of it was sent, and a button is disabled meanwhile; who works by keys goes on
// from where the form was opened.
func TestTheFocusComesBackFromTheFormsOfAnInspector(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(isLive)
	eval[any](c, `document.querySelector("[data-replay]").focus()`)
	c.press("\r")
	c.until(`document.querySelector("#replay-form").open && document.activeElement.name === "target_url"`)
	c.press("https://app.example.com/hook\r")
	c.until(`document.querySelector("#part-replays[data-shown] .outcome") && document.activeElement.matches("[data-replay]")`)

	eval[any](c, `document.querySelector("[popovertarget=more-actions]").focus()`)
	c.press("\r")
	c.until(`document.querySelector("#more-actions").matches(":popover-open")`)
	eval[any](c, `document.querySelector("#more-actions [name=tag]").focus()`)
	c.press("billing\r")
	c.until(`document.querySelector(".facts .tag") && document.activeElement.matches("[popovertarget=more-actions]")`)

	// What is closed once it is done with is gone on from where it is opened.
	eval[any](c, `(document.querySelector(".noted summary").click(), document.querySelector(".noted textarea").focus())`)
	c.press("looked at")
	eval[any](c, `document.querySelector(".noted [type=submit]").focus()`)
	c.press("\r")
	c.until(`document.querySelector(".noted-text") && document.activeElement.matches(".noted summary")`)

	eval[any](c, `document.querySelector("[data-test] button").focus()`)
	c.press("\r")
	c.until(`document.querySelectorAll("#rows a.row").length === 2 && document.activeElement.matches("[data-test] button")`)
	c.silent()
}

func TestWhoGoesOnWhileAFormIsUnderWayStaysThere(t *testing.T) {
	s := newSite(t)
	first, second := s.hook(json(`{"n":1}`)), s.hook(json(`{"n":2}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.click("#" + string(first) + " a")
	c.until(shows(first))
	eval[bool](c, `Boolean(window.sent = window.fetch) && Boolean(window.fetch = async (to, how) => {
		if (how?.method === "POST") await new Promise((go) => window.go = go);
		return window.sent(to, how);
	})`)
	eval[any](c, `document.querySelector("[data-ignore]").click()`)
	c.until(`window.go`)
	c.click("#" + string(second) + " a")
	c.until(shows(second))
	eval[any](c, `window.go()`)
	c.until(lists(first) + `.textContent.includes("ignored") && document.querySelector("#announce").textContent === "Done"`)
	if !eval[bool](c, `Boolean(`+shows(second)+`) && document.querySelector("#rows [aria-current]").parentElement.id === "`+string(second)+`"`) {
		t.Error("the request that was left came back")
	}
	c.silent()
}

func TestAShortTagKeepsItsWidthBesideALongOne(t *testing.T) {
	s := newSite(t)
	event := s.hook(s.github("pull_request_review_comment", "d1", `{"action":"opened"}`, "x"))
	for _, tag := range []string{"billing", "an-integration-of-the-warehouse"} {
		if _, err := s.captures.Tag(t.Context(), s.who, string(s.endpoint.ID), string(event), tag); err != nil {
			t.Fatal(err)
		}
	}
	for _, width := range []int64{390, 1440} {
		c := s.chrome(width, 900)
		c.open(s.link())
		cut := eval[map[string]bool](c, `Object.fromEntries([...document.querySelectorAll(".row-tags .tag")].map((e) => [e.textContent, e.scrollWidth > e.clientWidth]))`)
		if len(cut) != 2 || cut["billing"] || !cut["an-integration-of-the-warehouse"] {
			t.Errorf("at %d pixels these tags are cut: %v", width, cut)
		}
		if eval[bool](c, `document.querySelector(".row-sub").scrollWidth > document.querySelector(".row-sub").clientWidth`) {
			t.Errorf("at %d pixels the row stands out", width)
		}
		c.picture("tags-" + strconv.FormatInt(width, 10))
	}
}

func TestAComparisonSpeaksAsThePageOfARequestDoes(t *testing.T) {
	s := newSite(t)
	left, right := s.hook(s.github("push", "d-1", `1`, "")), s.hook(json(`[2]`))
	page := s.signedIn().want(200, "GET", s.page("/compare?left="+string(left)+"&right="+string(right)), nil)
	page.holds(t, ">Provider</th>", ">Event</th>", ">Delivery id</th>", ">whole body</th>", "compared as JSON.")
	page.lacks(t, "detected_provider", "delivery_id", `<th scope="row"></th>`)
	left, right = s.hook(sent{body: "one"}), s.hook(sent{body: "two"})
	s.signedIn().want(200, "GET", s.page("/compare?left="+string(left)+"&right="+string(right)), nil).holds(t, "--- first\n", "+++ second\n")
	var query strings.Builder
	for i := range 101 {
		query.WriteString("&a" + strings.Repeat("b", i) + "=1")
	}
	right = s.hook(sent{target: "/?x" + query.String(), body: "one"})
	s.signedIn().want(200, "GET", s.page("/compare?left="+string(left)+"&right="+string(right)), nil).holds(t, "There are more differences.")
}

// What was found out about a request is told without looking for it.
func TestTheTabOfASignatureTellsItsVerdict(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	s.secret("github", "swordfish")
	for _, secret := range []string{"swordfish", "other"} {
		event := s.hook(s.github("push", "d-"+secret, `{}`, secret))
		want := map[string]string{"swordfish": `count">verified`, "other": `count bad">failed`}[secret]
		page := b.want(200, "GET", s.page("/requests/"+string(event)), nil)
		if !regexp.MustCompile(`(?s)id="tab-signature"[^>]*>\s*Signature\s*<span class="` + want + `</span>`).MatchString(page.body) {
			t.Errorf("signed with %s, the tab does not say that it is %s", secret, want)
		}
	}
	plain := s.hook(json(`{}`))
	b.want(200, "GET", s.page("/requests/"+string(plain)), nil).lacks(t, `<span class="count">unchecked</span>`)
}

func TestARequestIsComparedWithThePreviousOneOfItsKind(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	only := s.hook(s.github("push", "a", `{"n":1}`, "x"))
	b.want(404, "GET", "/endpoints/"+string(s.endpoint.ID)+"/compare?left="+string(only), nil).holds(t, "There is no earlier request")
	s.hook(s.github("ping", "b", `{"n":2}`, "x"))
	last := s.hook(s.github("push", "c", `{"n":3}`, "x"))
	b.want(200, "GET", "/endpoints/"+string(s.endpoint.ID)+"/compare?left="+string(last)+"&right=", nil).holds(t, "/requests/"+string(only))
	other := s.hook(sent{target: "/other"})
	b.want(200, "GET", "/endpoints/"+string(s.endpoint.ID)+"/compare?left="+string(other), nil).holds(t, "/requests/"+string(last))
}

func TestARequestFromBeforeTheSecretSaysHowItIsChecked(t *testing.T) {
	s := newSite(t)
	event := s.hook(s.github("push", "d", `{}`, "swordfish"))
	b := s.signedIn()
	path := "/endpoints/" + string(s.endpoint.ID) + "/requests/" + string(event)
	b.want(200, "GET", path, nil).holds(t, "Add a secret")
	s.secret("github", "swordfish")
	page := b.want(200, "GET", path, nil)
	page.holds(t, "It came before the secret.", "Check captured requests again")
	page.lacks(t, "Add a secret")
}

func TestMailIsShownInASandbox(t *testing.T) {
	s := newSite(t)
	inbox := s.create("inbox", hookglass.KindEmail)
	target, err := s.captures.AdmitMailbox(t.Context(), string(inbox.ID))
	if err != nil {
		t.Fatal(err)
	}
	raw := strings.ReplaceAll(`From: Shop <shop@example.com>
To: in@mail.test
Subject: Your code
Message-ID: <1@example.com>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/html

<h1>Hello</h1><p>Your verification code is 482913</p><script>top.document.title='x'</script><img src="https://tracker.test/x.png" onerror="alert(1)"><a href="https://example.com/verify?c=1">Verify</a>
--b
Content-Type: text/plain
Content-Disposition: attachment; filename="note.txt"

a note
--b--
`, "\n", "\r\n")
	stored := s.captures.CaptureMail(t.Context(), &capture.Mail{From: "shop@example.com", To: []capture.Recipient{{Address: "in@mail.test", Target: target}}, Protocol: "ESMTP", Raw: []byte(raw), At: time.Now()})
	if stored[0].Err != nil {
		t.Fatal(stored[0].Err)
	}
	base := s.url + "/endpoints/" + string(inbox.ID) + "/requests/" + string(stored[0].Event)
	b := s.signedIn()
	a := b.want(200, "GET", base+"/html", nil)
	a.holds(t, "Hello")
	for header, want := range map[string]string{"Content-Security-Policy": "sandbox; default-src 'none'", "Content-Type": "text/html", "X-DNS-Prefetch-Control": "off"} {
		if !strings.HasPrefix(a.Header.Get(header), want) {
			t.Errorf("%s: %s", header, a.Header.Get(header))
		}
	}
	if strings.Contains(a.body, "<script") || strings.Contains(a.body, ` src="https://tracker.test`) {
		t.Errorf("the HTML is\n%s", a.body)
	}
	b.want(200, "GET", base+"/html?remote=1", nil).holds(t, `src="https://tracker.test/x.png"`)
	if a := b.want(200, "GET", base+"/attachments/0", nil); a.body != "a note" || !strings.Contains(a.Header.Get("Content-Disposition"), "note.txt") {
		t.Errorf("the attachment is %q, %v", a.body, a.Header)
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(base)
	c.until(isLive)
	for _, text := range []string{"482913", "https://example.com/verify?c=1", "note.txt"} {
		if !strings.Contains(eval[string](c, `document.querySelector("#detail").textContent`), text) {
			t.Errorf("the page does not name %s", text)
		}
	}
	c.click("#tab-attachments")
	if room := eval[float64](c, `(() => {
		const button = document.querySelector("#part-attachments a.button"), text = document.createRange();
		text.selectNodeContents(button);
		return text.getBoundingClientRect().left - button.getBoundingClientRect().left;
	})()`); room < 8 {
		t.Errorf("a word stands %v pixels from the edge of its button", room)
	}
	c.silent()
}

func TestThePaletteAndLettersGoToPages(t *testing.T) {
	s := newSite(t)
	s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	eval[any](c, `document.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true }))`)
	c.until(`document.querySelector("#palette").open`)
	c.press("settings\r")
	c.until(`location.pathname.endsWith("/settings") && document.readyState === "complete"`)
	c.press("ge")
	c.until(`location.pathname === "/endpoints" && document.readyState === "complete"`)
	c.press("?")
	c.until(`document.querySelector("#keys").open`)
	c.press(kb.Escape)
	eval[any](c, `document.querySelector("[name=name]").focus()`)
	c.press("ge?") // text in a field
	if got := eval[string](c, `document.querySelector("[name=name]").value`); got != "ge?" {
		t.Errorf("typed %q", got)
	}
	c.silent()
}

func TestAnEndpointIsSettledWhole(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	b.want(303, "POST", s.page("/settings"), url.Values{"complete": {"1"}, "name": {"Orders"}, "custom_id": {"orders"}, "provider": {"github"}, "enabled": {"true"}, "tunnel": {"true"}})
	page := b.want(200, "GET", s.page("/settings"), nil)
	page.holds(t, `value="orders"`, `<option value="github" selected>`)
	b.want(422, "POST", s.page("/settings"), url.Values{"complete": {"1"}, "name": {"Orders"}, "custom_id": {"Not this"}}).holds(t, "The custom id must be", `value="Not this"`)

	answer := url.Values{"status": {"202"}, "headers": {"X-Id: {{request.header.x-id}}\r\nContent-Type: text/plain"}, "body": {"Got {{request.body/n}}"}, "delay_ms": {"0"}}
	s.hook(sent{body: `{"n":7}`, headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}, {Name: "X-Id", Value: "abc"}}})
	answer.Set("do", "preview")
	b.want(200, "POST", s.page("/response"), answer).holds(t, "Got 7", "X-Id: abc", "Nothing is saved yet")
	page = b.want(200, "POST", s.page("/response"), url.Values{"do": {"preview"}, "status": {"204"}, "headers": {"Content-Type: text/html"}, "body": {"<p>Got it</p>"}})
	page.holds(t, "Content-Security-Policy: sandbox")
	if preview := page.body[strings.Index(page.body, `aria-label="Preview"`):]; strings.Contains(preview[:strings.Index(preview, "</div>")], "Got it") {
		t.Error("the preview of a 204 has a body, which nobody is sent")
	}
	answer.Del("do")
	b.want(303, "POST", s.page("/response"), answer)
	b.want(200, "GET", s.page("/settings"), nil).holds(t, "Got {{request.body/n}}", "Use the default")
	b.want(422, "POST", s.page("/response"), url.Values{"status": {"42"}}).holds(t, "The status must be")
	b.want(303, "POST", s.page("/response"), url.Values{"do": {"default"}})

	rules := url.Values{
		"when": {"path:/a", " ", "signature:failed"}, "was": {"path:/a", "path:/b", ""}, "status": {"204", "1", "401"}, "headers": {"", "", "X-Why: <no>\r\n"}, "body": {"", "", "a\r\nb"}, "delay_ms": {"0", "", "5"},
	}
	b.want(303, "POST", s.page("/response_rules"), rules)
	b.want(200, "GET", s.page("/settings"), nil).holds(t, "<code>path:/a</code> responds 204", "<code>signature:failed</code> responds 401", "X-Why: &lt;no&gt;", "a\nb", "?q=signature%3Afailed", "Add a rule")
	rules["status"] = []string{"204", "", "42"} // of what is the second when it is saved
	b.want(422, "POST", s.page("/response_rules"), rules).holds(t, `id="rule-1-status-fault"`, "The status must be")
	rules["status"], rules["when"][2] = []string{"204", "", "x"}, "tag:a"
	b.want(422, "POST", s.page("/response_rules"), rules).holds(t, `id="rule-1-status-fault"`, "The status must be a number")
	rules["status"][2] = "401"
	b.want(422, "POST", s.page("/response_rules"), rules).holds(t, "The condition cannot use status, tag")
	b.want(422, "POST", s.page("/response_rules"), url.Values{"when": slices.Repeat([]string{"path:/a"}, 21), "status": slices.Repeat([]string{"200"}, 21)}).holds(t, "The response rules may have 20 entries")
	forgotten := url.Values{ // as a browser sends the form: the condition of the new rule was forgotten
		"when": {"path:/a", ""}, "was": {"path:/a", ""}, "status": {"204", "418"}, "headers": {"", "Content-Type: application/json\r\n"}, "body": {"", `{"received":true}`}, "delay_ms": {"0", "0"},
	}
	b.want(422, "POST", s.page("/response_rules"), forgotten).holds(t, `id="rule-1-when-fault"`, "The condition must say which webhooks", `value="418"`)
	forgotten["status"][1] = "200" // nothing was typed
	b.want(303, "POST", s.page("/response_rules"), forgotten)
	b.want(303, "POST", s.page("/response_rules"), url.Values{"when": {""}})
	b.want(200, "GET", s.page("/settings"), nil).lacks(t, "responds 204")

	typed := url.Values{"do": {"try"}, "when": {"header.x-id:<abc>", "header.x-id:abc"}, "status": {"400", "207"}, "headers": {"", ""}, "body": {"", ""}, "delay_ms": {"0", "0"}, "seen": {"of long ago"}}
	b.want(200, "POST", s.page("/response_rules"), typed).holds(t, "Rules would answer 1 of the last 1 request.", "Rule 2: <code>header.x-id:abc</code>", "207", `value="header.x-id:&lt;abc&gt;"`, "POST /")
	// The focus is where the rule is moved on, as far as it goes, then where it is moved back.
	moved := func(do, held, focus string) {
		t.Helper()
		page := b.want(200, "POST", s.page("/response_rules"), url.Values{ // the second was cleared
			"do": {do}, "when": {"path:/1", "", "path:/3", "path:/4", ""}, "was": {"path:/1", "path:/2", "path:/3", "path:/4", ""}, "status": {"201", "202", "", "204", ""}, "seen": {"of long ago"},
		})
		var order []string
		for _, rule := range regexp.MustCompile(`name="when" value="path:(/\d)"`).FindAllStringSubmatch(page.body, -1) {
			order = append(order, rule[1])
		}
		if got := strings.Join(order, ""); got != held {
			t.Errorf("%s: %s, want %s", do, got, held)
		}
		page.holds(t, `value="of long ago"`, "data-unsaved")
		var focused []string
		for _, button := range regexp.MustCompile(`autofocus aria-label="Move ([^"]+)"`).FindAllStringSubmatch(page.body, -1) {
			focused = append(focused, button[1])
		}
		if got := strings.Join(focused, ", "); got != focus {
			t.Errorf("%s: the focus is on %q, want %q", do, got, focus)
		}
	}
	moved("up 2", "/3/1/4", "down rule 1")
	moved("up 3", "/1/4/3", "up rule 2")
	moved("down 0", "/3/1/4", "down rule 2")
	moved("down 2", "/1/4/3", "up rule 3")
	moved("down 3", "/1/3/4", "") // is the last one
	moved("up 0", "/1/3/4", "")
	moved("up 1", "/1/3/4", "") // was cleared
	moved("up 99", "/1/3/4", "")
	b.want(200, "POST", s.page("/response_rules"), url.Values{"do": {"try"}, "when": {""}}).holds(t, "Rules would answer 0 of the last 1 request.", "the default response")
	page = b.want(422, "POST", s.page("/response_rules"), url.Values{"do": {"try"}, "when": {"tag:a"}, "status": {"200"}})
	page.holds(t, "The condition cannot use status, tag")
	page.lacks(t, "would answer")
	b.want(200, "GET", s.page("/settings"), nil).lacks(t, "responds 207", "would answer")
	b.want(200, "POST", "/endpoints/"+string(s.create("Empty", hookglass.KindWebhook).ID)+"/response_rules", url.Values{"do": {"try"}}).holds(t, "No requests yet.")
	delete(typed, "do")
	typed["when"][0] = "path:/a"
	typed.Del("seen")
	b.want(303, "POST", s.page("/response_rules"), typed)
	ruled := s.hook(sent{headers: hookglass.Headers{{Name: "X-Id", Value: "abc"}}})
	b.want(200, "GET", s.page("/requests/"+string(ruled)), nil).holds(t, "2: <code>header.x-id:abc</code>")
	page = b.want(201, "POST", s.page("/requests/"+string(ruled)+"/share"), url.Values{"expires": {"1h"}})
	s.visitor().want(200, "GET", regexp.MustCompile(`id="share-link">([^<]+)<`).FindStringSubmatch(page.body)[1], nil).lacks(t, "header.x-id:abc")
	b.want(303, "POST", s.page("/response_rules"), url.Values{"when": {""}})

	b.want(303, "POST", s.page("/signatures"), url.Values{"provider": {"github"}, "secret": {"swordfish"}})
	page = b.want(200, "GET", s.page("/settings"), nil)
	if strings.Contains(page.body, "swordfish") {
		t.Error("a secret is shown")
	}
	b.want(422, "POST", s.page("/signatures"), url.Values{"provider": {"github"}, "secret": {"swordfish"}}).holds(t, "already has a secret here")
	config := regexp.MustCompile(`action="([^"]+/signatures/\d+)/delete"`).FindStringSubmatch(page.body)[1]
	for _, do := range []string{"toggle", "rejudge", "secret", "delete"} {
		b.want(303, "POST", config+"/"+do, url.Values{"secret": {"another"}})
	}

	b.want(303, "POST", s.page("/targets"), url.Values{"name": {"App"}, "url": {"https://app.example.com/hook"}, "timeout_seconds": {"5"}, "retry_count": {"0"}})
	b.want(422, "POST", s.page("/targets"), url.Values{"name": {"App"}, "url": {"http://127.0.0.1/"}})
	page = b.want(200, "GET", s.page("/settings"), nil)
	page.holds(t, "https://app.example.com/hook")
	target := regexp.MustCompile(`action="([^"]+/targets/\d+)/delete"`).FindStringSubmatch(page.body)[1]
	b.want(303, "POST", target, url.Values{"enabled": {"false"}})
	b.want(303, "POST", target+"/delete", url.Values{})
	b.want(303, "POST", s.page("/clear"), url.Values{})
	b.want(200, "GET", s.page(""), nil).holds(t, "Waiting for the first request")
}
