package web_test

import (
	"context"
	"encoding/csv"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/web"
)

// flowing is a site whose flows are judged.
func flowing(t *testing.T) *site {
	var flows interface{ Run(context.Context) error }
	s := newSiteWith(t, func(d *web.Deps) { flows = d.Flows })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- flows.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return s
}

func TestAFlowIsTypedBegunAndPassesBeforeOnesEyes(t *testing.T) {
	s := flowing(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.url + "/flows")
	c.until(`document.querySelector("#flows").textContent.includes("No flows yet")`)
	c.click(`a[href="/flows/new"]`)
	c.until(`document.querySelector("[name=name]")`)
	eval[bool](c, `document.querySelector("[name=name]").value = "Checkout", document.querySelector("[name='steps.0.event_type']").value = "paid", true`)
	c.click(`button[name=change][value=more]`)
	c.until(`document.activeElement.name === "steps.1.endpoint_id" && document.querySelector("[name='steps.0.event_type']").value === "paid"`)
	eval[bool](c, `document.querySelectorAll(".flow-form details")[0].open = true,
		document.querySelector("[name='steps.0.event_type']").value = "",
		document.querySelector("[name='steps.0.where']").value = "/type = paid",
		document.querySelector("[name='steps.0.extract']").value = "order = /order",
		document.querySelector("[name='steps.1.where']").value = "text contains {{steps.step1.order}}",
		document.querySelector("[name='steps.1.within_seconds']").value = "30", true`)
	c.click(`button.primary`)
	c.until(`document.querySelector("#flow .badge.busy")?.textContent === "pending" && document.querySelector("#flow").textContent.includes("0 of 2")`)
	first := s.hook(json(`{"type":"paid","order":"A-<b>7"}`))
	c.until(`document.querySelector(".flow-step.good a[href$='` + string(first) + `']") && document.querySelector(".flow-step.good").textContent.includes("A-<b>7")`)
	s.hook(json(`{"type":"mail","text":"order A-<b>7"}`))
	c.until(`document.querySelector("#flow .badge.good")?.textContent === "passed" && document.querySelectorAll(".flow-step.good").length === 2`)
	c.silent()
}

func TestFlowsAreListedAndBeginAgain(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	step := url.Values{"name": {"<b>"}, "order": {"any"}, "timeout_seconds": {"60"}, "steps.0.endpoint_id": {string(s.endpoint.ID)}, "steps.0.how": {"never"}, "steps.0.where": {"/a contains =\n\nheader.x = y contains z"}}
	at := b.want(303, "POST", "/flows/new", step).Header.Get("Location")
	shown := b.want(200, "GET", at, nil)
	shown.holds(t, "&lt;b&gt;", "Steps, in any order", "<dd>none", "contains =", "y contains z", "pending", `data-every="1000"`)
	if asks, deletes, _ := strings.Cut(shown.body, "<p>Delete &lt;b&gt; and its extracted values?"); strings.Contains(asks, `/delete"`) || !strings.Contains(deletes, `/delete"`) {
		t.Error("a button deletes the flow without a question")
	}
	b.want(200, "GET", at+"/state", nil).holds(t, `id="flow"`)
	b.want(200, "GET", "/flows?state=pending", nil).holds(t, "&lt;b&gt;", "0 of 1")
	b.want(200, "GET", "/flows?state=failed", nil).holds(t, "No flows are failed.")
	b.want(422, "GET", "/flows?state=other", nil)
	b.want(200, "GET", "/flows/new?from="+strings.TrimPrefix(at, "/flows/"), nil).holds(t, "/a contains =\nheader.x = y contains z", `value="never" selected`, `value="&lt;b&gt;"`)

	step.Set("steps.0.where", "nothing of the kind")
	step.Set("steps.0.q", "status:")
	b.want(422, "POST", "/flows/new", step).holds(t, "neither “part = value” nor “part contains value”", `value="status:"`)
	step.Set("steps.0.within_seconds", "soon")
	b.want(422, "POST", "/flows/new", step).holds(t, `aria-describedby="steps.0.within_seconds-fault"`, "This must be above 0")
	step.Del("steps.0.within_seconds")
	step.Set("steps.0.where", "")
	b.want(422, "POST", "/flows/new", step).holds(t, `aria-describedby="steps.0.q-fault"`)
	step.Set("change", "0")
	b.want(200, "POST", "/flows/new", step).holds(t, "Step 1") // one stays

	page := b.want(200, "GET", "/flows/new", nil)
	page.lacks(t, "data-unsaved")
	step.Set("change", "more")
	page = b.want(200, "POST", "/flows/new", step)
	page.holds(t, "Step 2", "data-unsaved")
	// Enter in a field presses the first button, which starts the flow and removes nothing.
	if first := page.found(t, `(?s)class="stack flow-form".*?(<button type="submit"[^>]*>)`); strings.Contains(first, "change") {
		t.Error(first)
	}

	eve := s.stranger()
	eve.want(404, "GET", at, nil)
	eve.want(404, "GET", "/flows/new?from="+strings.TrimPrefix(at, "/flows/"), nil)
	eve.want(404, "POST", at+"/delete", url.Values{})
	b.want(303, "POST", at+"/delete", url.Values{})
	b.want(404, "GET", at, nil)
}

// A step names its endpoint, and keeps it when it begins again, however many there are.
func TestAFlowKeepsAnEndpointThatIsNotListed(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	var last hookglass.Endpoint
	for i := range 200 { // the list ends before the last one
		last = s.create("number "+strconv.Itoa(i), hookglass.KindWebhook)
	}
	at := b.want(303, "POST", "/flows/new", url.Values{"timeout_seconds": {"60"}, "steps.0.endpoint_id": {string(last.ID)}, "steps.0.count": {"1"}}).Header.Get("Location")
	b.want(200, "GET", at, nil).holds(t, ">number 199</a>")
	kept := `<option value="` + string(last.ID) + `" selected>`
	again := "/flows/new?from=" + strings.TrimPrefix(at, "/flows/")
	b.want(200, "GET", again, nil).holds(t, kept)
	if _, err := s.endpoints.Delete(t.Context(), s.who, string(last.ID)); err != nil {
		t.Fatal(err)
	}
	b.want(200, "GET", at, nil).holds(t, "at a deleted endpoint")
	b.want(200, "GET", again, nil).holds(t, kept)
	b.want(422, "POST", "/flows/new", url.Values{"timeout_seconds": {"60"}, "steps.0.endpoint_id": {string(last.ID)}, "steps.0.count": {"1"}}).holds(t, kept, "steps.0.endpoint_id-fault")
}

func TestTheLedgerBalancesAndIsAFile(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	base := "/endpoints/" + string(s.endpoint.ID)
	b.want(200, "GET", base+"/metrics", nil).holds(t, base+"/ledger")
	b.want(200, "GET", base+"/ledger/book", nil).holds(t, "Balanced: nothing is lost.", "No stored requests in this window.")
	var ids []hookglass.EventID
	for range 27 {
		ids = append(ids, s.hook(json(`{"order":1}`)))
	}
	first := b.want(200, "GET", base+"/ledger?from=24h", nil)
	first.holds(t, `only-js" role="status">Counting…`, `data-fresh="`+base+`/ledger/book?from=24h"`, "<noscript>", base+"/ledger?from=24h&amp;sums=1")
	if strings.Contains(first.body, "Balanced") {
		t.Error("the page waits for its sums")
	}
	b.want(200, "GET", base+"/ledger?from=24h&sums=1", nil).holds(t, "<h1>Ledger</h1>", "Balanced", "27 answered 200", string(ids[0]), base+"/ledger/file?from=24h")
	page := b.want(200, "GET", base+"/ledger/book?from=24h", nil)
	page.holds(t, "Balanced", "27 answered 200", string(ids[0]), "Later events")
	later := regexp.MustCompile(`href="(/endpoints/[^"]*cursor=[^"]*)"`).FindStringSubmatch(page.body)
	if later == nil || strings.Contains(page.body, string(ids[26])) {
		t.Fatal("the first page has all events")
	}
	next := strings.ReplaceAll(later[1], "&amp;", "&")
	b.want(200, "GET", next, nil).holds(t, "Counting…", later[1][strings.Index(later[1], "cursor="):])
	b.want(200, "GET", strings.Replace(next, "/ledger?", "/ledger/book?", 1), nil).holds(t, string(ids[26]))
	b.want(422, "GET", base+"/ledger?from=tomorrow", nil).holds(t, "The window: from must be", `role="alert"`)
	// A window that ends now is one of the last; another is called by its ends.
	const current = `aria-current="page">`
	b.want(200, "GET", base+"/ledger?from=24h", nil).holds(t, `<a href="?from=24h" aria-current="page">24 hours</a>`)
	b.want(200, "GET", base+"/ledger?from=90m", nil).holds(t, current+"90m</span>")
	long := time.Now().Add(-24 * time.Hour).UTC().Format(time.RFC3339)
	for asked, named := range map[string]string{
		"from=24h&to=1h": "From 24h ago to 1h ago", "to=1h": "The hour up to 1h ago", "from=" + long: "Since " + long, "from=" + long + "&to=1h": "From " + long + " to 1h ago",
	} {
		values, err := url.ParseQuery(asked)
		if err != nil {
			t.Fatal(err)
		}
		page := b.want(200, "GET", base+"/ledger?"+asked, nil)
		page.holds(t, "<span>Last</span>", "<strong>"+named+"</strong>", base+"/ledger/book?"+strings.ReplaceAll(values.Encode(), "&", "&amp;"))
		page.lacks(t, current+"24", current+"1 hour")
		b.want(200, "GET", base+"/ledger/book?"+asked, nil).holds(t, "Balanced")
		b.want(200, "GET", base+"/ledger/file?"+asked, nil)
	}

	file := b.want(200, "GET", base+"/ledger/file?from=24h", nil)
	if got := file.Header.Get("Content-Disposition"); !strings.HasPrefix(got, `attachment; filename="ledger-ep_`) {
		t.Errorf("disposition %q", got)
	}
	rows, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
	if err != nil || len(rows) != 28 || rows[1][1] != string(ids[0]) || len(rows[1][4]) != 64 || rows[1][6] != "200" || rows[27][1] != string(ids[26]) {
		t.Errorf("%v, %d rows: %v", err, len(rows), rows[:min(len(rows), 3)])
	}

	// The page calls targets by their names; the file by their ids.
	b.want(303, "POST", base+"/targets", url.Values{"name": {"Billing <b>"}, "url": {"https://app.example.com/"}, "timeout_seconds": {"5"}, "retry_count": {"0"}})
	s.hook(json(`{}`))
	b.want(200, "GET", next+"&sums=1", nil).holds(t, "target Billing &lt;b&gt; pending")
	b.want(200, "GET", base+"/ledger/file?from=24h", nil).holds(t, "target 1 pending")
	eve := s.stranger()
	eve.want(404, "GET", base+"/ledger", nil)
	eve.want(404, "GET", base+"/ledger/book", nil)
	eve.want(404, "GET", base+"/ledger/file", nil)
}
