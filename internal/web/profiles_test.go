package web_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
)

func TestHowSendersRetryIsDrawnAndTold(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	base := "/endpoints/" + string(s.endpoint.ID)
	b.want(200, "GET", base+"/metrics", nil).holds(t, base+"/retries", base+"/schemas")
	b.want(200, "GET", base+"/retries", nil).holds(t, "No requests yet. Send one to this endpoint to measure retries.")
	b.want(422, "POST", base+"/retries", url.Values{"response_script": {"500,<b>"}}).holds(t, "entry 2 must be a status", "500,&lt;b&gt;")
	b.want(303, "POST", base+"/retries", url.Values{"response_script": {"500*2,reset,200"}})
	for range 4 {
		s.hook(json(`{"order":1}`))
	}
	b.want(200, "GET", base+"/retries?done=saved", nil).holds(t, "Saved.", `value="500*2,reset,200"`, `role="img"`, "4 attempts within", "responses 500, 500, reset, 200", "retry-taken", "Schedule", "By response", "body kept")
	b.want(303, "POST", base+"/retries", url.Values{"response_script": {""}})
	b.want(200, "GET", base+"/retries", nil).holds(t, `name="response_script" value=""`)
	s.stranger().want(404, "GET", base+"/retries", nil)
}

func TestALongEventTypeFitsThePageOfRetries(t *testing.T) {
	s := newSite(t)
	for range 2 {
		s.hook(s.github(strings.Repeat("e", 300), "delivery", `{}`, "swordfish"))
	}
	c := s.chrome(390, 900)
	c.open(s.link())
	c.open(s.page("/retries"))
	c.until(`document.querySelector(".retries h2 code")`)
	if width := eval[int](c, `document.documentElement.scrollWidth`); width > 390 {
		t.Errorf("the page is %d pixels wide", width)
	}
}

func TestSchemasAndTheirBaseline(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	base := "/endpoints/" + string(s.endpoint.ID) + "/schemas"
	b.want(200, "GET", base, nil).holds(t, "No JSON bodies yet. Send one to this endpoint to see its schema.")
	s.hook(json(`{"order":1,"<b>":"x"}`))
	b.want(200, "GET", base, nil).holds(t, "inferred from the newest 1 request", base+"/unknown/-", ">no event type</a>")
	b.want(200, "GET", base+"/unknown/-", nil).holds(t, "/order", "integer", "/&lt;b&gt;", "No baseline yet", "export interface")
	off := b.want(200, "GET", base+"/unknown/-", nil) // what cannot be accepted is not asked for
	off.holds(t, "Schema tracking is off", `<a href="`+base+`">Turn it on</a> to accept one.`)
	off.lacks(t, "Accept ", `<p class="lead">, `, `data-every="3000"`) // each answer infers schemas from many requests
	b.want(409, "POST", base+"/unknown/-/accept", url.Values{}).holds(t, "Turn on schema tracking first")
	b.want(303, "POST", base, url.Values{"tracking": {"true"}})
	b.want(200, "GET", base, nil).holds(t, `data-every="30000"`) // none is kept yet, so they are still inferred
	b.want(200, "GET", base+"/unknown/-", nil).holds(t, `data-every="30000"`)
	b.want(303, "POST", base+"/unknown/-/accept", url.Values{})
	b.want(200, "GET", base+"/unknown/-?done=accepted", nil).holds(t, "Accepted.", "No drift in")
	kept := func(page, part string, says ...string) { // its part is what is fetched again
		t.Helper()
		b.want(200, "GET", page, nil).holds(t, append(says, `data-fresh="`+part+`" data-every="3000"`)...)
		b.want(200, "GET", part, nil).holds(t, append(says, `data-fresh="`+part+`"`)...)
	}
	kept(base, base+"/rows", ">no event type</a>", "<time")
	kept(base+"/unknown/-", base+"/unknown/-/state", "No drift in", "/order")
	s.hook(json(`{"order":2}`))
	b.want(303, "POST", base, url.Values{"tracking": {"false"}})
	b.want(200, "GET", base, nil).holds(t, "Tracking is off. These are the schemas of the requests that arrived while it was on.", ">no event type</a>")
	b.want(200, "GET", base+"/unknown/-", nil).holds(t, "Turn it on</a> to accept one.")
	b.want(303, "POST", base, url.Values{"tracking": {"true"}})
	b.want(404, "GET", base+"/unknown/other", nil)
	c := s.chrome(390, 900)
	c.open(s.link())
	c.open(s.url + base)
	c.until(`document.querySelector(".schemas time")`)
	if right := eval[float64](c, `Math.max(...[...document.querySelectorAll(".schemas :is(th, td)")].map((cell) => cell.getBoundingClientRect().right))`); right > 390 {
		t.Errorf("a cell ends %v pixels from the left, out of sight", right)
	}
	eve := s.stranger()
	eve.want(404, "GET", base, nil)
	eve.want(404, "GET", base+"/unknown/-", nil)
}

func TestMailIsAnsweredByAScriptThatIsSetInTheSettings(t *testing.T) {
	s := newSite(t)
	inbox := s.create("inbox", hookglass.KindEmail)
	b := s.signedIn()
	base := "/endpoints/" + string(inbox.ID)
	b.want(200, "GET", base+"/settings", nil).holds(t, "Response to senders", `name="response_script" value=""`, base+"/retries")
	b.want(422, "POST", base+"/response", url.Values{"response_script": {"451,<b>"}}).holds(t, "entry 2 must be 250, 400 to 459", "451,&lt;b&gt;")
	b.want(303, "POST", base+"/response", url.Values{"response_script": {"451 4.7.1 Grey & listed,reset,250"}})
	b.want(200, "GET", base+"/settings", nil).holds(t, `value="451 4.7.1 Grey &amp; listed,reset,250"`)
	b.want(409, "POST", base+"/response", url.Values{"response_script": {"550"}, "seen": {"of another"}}).holds(t, `value="550"`)
	target, err := s.captures.AdmitMailbox(t.Context(), string(inbox.ID))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range 3 {
		d := s.captures.CaptureMail(t.Context(), &capture.Mail{
			From: "a@example.org", To: []capture.Recipient{{Address: "in@mail.test", Target: target}}, Protocol: "ESMTP", Raw: []byte("Message-ID: <1@x>\r\n\r\nx"), At: time.Now(), Answers: capture.AnswersOne,
		})
		if d[0].Err != nil {
			t.Fatal(d[0].Err)
		}
		ids = append(ids, string(d[0].Event))
	}
	b.want(200, "GET", base+"/requests/"+ids[0], nil).holds(t, "Response", "451", "the endpoint's script", "4.7.1 Grey &amp; listed")
	b.want(200, "GET", base+"/requests/"+ids[1], nil).holds(t, "No response was sent: the endpoint")
	b.want(200, "GET", base+"/metrics", nil).holds(t, base+"/retries")
	b.want(200, "GET", base+"/retries", nil).holds(t, "451*2 4.7.1 Greylisted,250", "3 attempts within", "responses 451, reset, 250")
	b.want(200, "GET", base+"/ledger/book", nil).holds(t, "Balanced", "1 answered 451, 1 accepted, 1 none", `class="short">451<`, `class="short">none<`, `class="short">250<`)
	b.want(303, "POST", base+"/response", url.Values{"response_script": {""}})
	b.want(200, "GET", base+"/settings", nil).holds(t, `name="response_script" value=""`)
}
