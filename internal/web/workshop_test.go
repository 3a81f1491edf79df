package web_test

import (
	"context"
	encoding "encoding/json"
	"log/slog"
	"net/url"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/delivery"
	"hookglass/internal/outbound"
	"hookglass/internal/replay"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/tunnel"
	"hookglass/internal/web"
)

// target answers everything that replays and actions send.
type target struct {
	mu     sync.Mutex
	status int
	body   string
	seen   []outbound.Request
}

func (t *target) Check(field, rawURL string) error {
	return outbound.New(outbound.Config{}).Check(field, rawURL)
}

func (t *target) Turn(context.Context, string, int64) (*outbound.Turn, error) { return nil, nil }

func (t *target) Do(_ context.Context, r outbound.Request) (*outbound.Response, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = append(t.seen, r)
	return &outbound.Response{Status: t.status, Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}}, Body: []byte(t.body)}, nil
}

func (t *target) answer(status int, body string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status, t.body = status, body
}

// workshop is a site with replays, actions and tunnels. Nothing in it runs by itself.
type workshop struct {
	*site
	target  *target
	replays *replay.Service
	actions *action.Service
	tunnels *tunnel.Service
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	w := &workshop{target: &target{status: 200, body: `{"status":"ok","count":3}`}}
	log := slog.New(slog.DiscardHandler)
	w.site = newSiteWith(t, func(d *web.Deps) {
		w.replays = replay.New(d.DB, replay.Config{Client: w.target, Verifiers: d.Endpoints, Sealer: keys, Reads: d.Captures, Log: log, Retention: time.Hour})
		w.actions = action.New(d.DB, action.Config{Client: w.target, Sealer: keys, Log: log})
		d.Replays, d.Actions = w.replays, w.actions
		w.tunnels = tunnel.New(d.DB, tunnel.Config{Mail: delivery.MailJSON, Retention: time.Hour, Draining: d.Draining, Log: log})
		d.Tunnels = w.tunnels
	})
	return w
}

// below is the path of a page of the endpoint.
func (w *workshop) below(path string) string { return "/endpoints/" + string(w.endpoint.ID) + path }

// execute does the run that an address ends with.
func (w *workshop) execute(address string) {
	w.t.Helper()
	_, id, _ := strings.Cut(address, "run=")
	id, _, _ = strings.Cut(id, "#")
	var err error
	if strings.HasPrefix(id, hookglass.PrefixReplayCaseRun) {
		err = w.replays.ExecuteRun(w.t.Context(), id)
	} else {
		err = w.actions.ExecuteRun(w.t.Context(), id)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *workshop) view(read func(*store.View) error) {
	w.t.Helper()
	if err := w.db.View(w.t.Context(), w.who, read); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workshop) onlyAction() (a hookglass.Action) {
	w.t.Helper()
	w.view(func(v *store.View) error {
		all, err := v.Actions(string(w.endpoint.ID), 0, 0)
		if err == nil && len(all) != 1 {
			w.t.Fatalf("%d actions", len(all))
		}
		a = all[0]
		return err
	})
	return a
}

func caseForm(event hookglass.EventID, change ...string) url.Values {
	f := url.Values{
		"event": {string(event)}, "name": {"Orders are taken"}, "target": {"url"}, "target_url": {"https://shop.example.com/hooks"}, "identity_mode": {"original"},
		"signature_mode": {"preserve"}, "status_class": {"2xx"}, "json_subset": {"{\r\n \"status\": \"ok\"\r\n}"}, "do": {"save"},
	}
	for i := 0; i+1 < len(change); i += 2 {
		f.Set(change[i], change[i+1])
	}
	return f
}

func TestTheLineEndsOfABodyOutliveTheFormOfAReplay(t *testing.T) {
	w := newWorkshop(t)
	b := w.signedIn()
	for _, c := range []struct{ body, typed, want string }{
		{"MSH|a\rPID|b\r", "MSH|a\r\nPID|b\r\n", "MSH|a\rPID|b\r"}, // as it was shown
		{"a\r\r\nb\nc", "a\r\n\r\nb\r\nc", "a\r\r\nb\nc"},
		{"a\nb", "a\r\nb", "a\nb"},
		{"MSH|a\rPID|b\r", "MSH|a\r\nPID|c\r\n", "MSH|a\rPID|c\r"}, // edited
		{"--x\r\n\r\n1\r\n--x--\r\n", "--x\r\n\r\n2\r\n--x--\r\n", "--x\r\n\r\n2\r\n--x--\r\n"},
		{"a\nb", "a\r\nc", "a\nc"},
		{"a\r\nb\n", "a\r\nc\r\n", "a\nc\n"},
		{"a", "a\r\nb", "a\nb"},
	} {
		event := w.hook(sent{body: c.body})
		b.want(303, "POST", w.below("/requests/"+string(event)+"/replay"), url.Values{
			"target_url": {"https://shop.example.com/hooks"}, "identity_mode": {"original"}, "signature_mode": {"preserve"}, "method": {"POST"}, "query": {""}, "body": {c.typed},
		})
		if got := string(w.target.seen[len(w.target.seen)-1].Body); got != c.want {
			t.Errorf("%q, typed as %q, was sent as %q", c.body, c.typed, got)
		}
	}
}

func TestAReplayCaseIsMadeRunChangedAndDeleted(t *testing.T) {
	w := newWorkshop(t)
	event := w.hook(sent{target: "/orders", body: `{"id":7}`})
	b, base := w.signedIn(), w.below("/cases")
	b.want(200, "GET", base, nil).holds(t, "No replay cases yet. Create one below from a captured request.", string(event))
	b.want(200, "GET", base+"/new?event="+string(event), nil).holds(t, "POST /orders", "No response to check against yet")
	b.want(303, "GET", base+"/new", nil)

	b.want(422, "POST", base, caseForm(event, "status_class", "", "json_subset", "")).holds(t, "The list of assertions must hold at least one of status and JSON that the response must contain.")
	b.want(422, "POST", base, caseForm(event, "json_subset", "{\n\"a\": }")).holds(t, "The JSON has a mistake in line 2, at “}”.", "Orders are taken")
	b.want(422, "POST", base, caseForm(event, "json_subset", "é")).holds(t, "in line 1, at “é”.")
	b.want(422, "POST", base, caseForm(event, "json_subset", "{")).holds(t, "The JSON ends before it is complete.")
	b.want(422, "POST", base, caseForm(event, "status_code", "9000")).holds(t, "The status code must be from 100 to 599.")
	b.want(422, "POST", base, caseForm(event, "target_url", "http://127.0.0.1/")).holds(t, "The target URL is not a public address")
	b.want(404, "POST", base, caseForm("req_nothing"))

	one := b.want(303, "POST", base, caseForm(event)).Header.Get("Location")
	one, _, _ = strings.Cut(one, "?")
	page := b.want(200, "GET", one, nil)
	page.holds(t, "Orders are taken", "No runs yet.", `value="https://shop.example.com/hooks"`)

	key := url.Values{"key": {page.found(t, `name="key" value="([^"]+)"`)}}
	ran := b.want(303, "POST", one+"/run", key).Header.Get("Location")
	if again := b.want(303, "POST", one+"/run", key).Header.Get("Location"); again != ran {
		t.Errorf("the same form ran again: %s and %s", ran, again)
	}
	b.want(200, "GET", ran, nil).holds(t, "queued", `data-every="700"`)
	w.execute(ran)
	b.want(200, "GET", ran, nil).holds(t, "passed", "✓ passed", "/status", "would pass", `data-every="6000"`)

	w.target.answer(500, `{"status":"down"}`)
	ran = b.want(303, "POST", one+"/run", url.Values{"key": {"another"}}).Header.Get("Location")
	w.execute(ran)
	b.want(200, "GET", ran, nil).holds(t, "assertion failed", "✗ failed", "&#34;down&#34;", "would fail")
	check := b.want(200, "POST", one+"/check", caseForm(event, "status_class", "5xx", "json_subset", ""))
	check.holds(t, "would pass")
	check.lacks(t, "<html")
	check = b.want(200, "POST", one+"/check", caseForm(event, "json_subset", "{\n  \"parts\": {\n    \"a\": [\n 1]\n  }\n}"))
	check.holds(t, `{&#34;a&#34;:[1]}`) // however it was indented
	b.want(200, "POST", one, caseForm(event, "do", "take")).holds(t, `value="500"`, "&#34;down&#34;")

	b.want(409, "POST", one, caseForm(event, "lock_version", "7", "name", "Mine")).holds(t, "Somebody else changed this case", `value="Mine"`, `name="lock_version" value="1"`)
	b.want(303, "POST", one, caseForm(event, "lock_version", "1", "name", "Orders, still", "target", "tunnel"))
	b.want(200, "GET", one+"?done=saved", nil).holds(t, "Saved.", "Orders, still", `value="tunnel" checked`)
	b.want(409, "POST", one+"/run", url.Values{"key": {"another"}}).holds(t, "changed after the page was loaded")
	b.want(200, "GET", base+"/rows", nil).holds(t, "Orders, still", "assertion failed", "the connected machine (tunnel)")

	eve := w.stranger()
	for _, path := range []string{base, base + "/rows", base + "/new?event=" + string(event), one, one + "/runs"} {
		eve.want(404, "GET", path, nil)
	}
	for _, path := range []string{base, base + "/check", one, one + "/check", one + "/run", one + "/delete"} {
		eve.want(404, "POST", path, caseForm(event, "lock_version", "2"))
	}
	b.want(303, "POST", one+"/delete", url.Values{})
	b.want(404, "GET", one, nil).holds(t, "Back to replay cases", `href="`+base+`"`)
}

// Of a long response only the beginning is kept, in which what the run found may be missing.
func TestAResponseThatWasCutIsNotCheckedForItsJSON(t *testing.T) {
	w := newWorkshop(t)
	event := w.hook(sent{body: `{}`})
	b := w.signedIn()
	one, _, _ := strings.Cut(b.want(303, "POST", w.below("/cases"), caseForm(event)).Header.Get("Location"), "?")
	w.target.answer(200, `{"more":"`+strings.Repeat("x", 300<<10)+`","status":"ok"}`)
	ran := b.want(303, "POST", one+"/run", url.Values{"key": {"long"}}).Header.Get("Location")
	w.execute(ran)
	b.want(200, "GET", ran, nil).holds(t, "✓ passed", "not checked", "Only the beginning of the last response is kept")
	b.want(200, "POST", one+"/check", caseForm(event, "json_subset", "")).holds(t, "would pass")
}

// A page of older cases stays one while it is kept fresh.
func TestOlderCasesStayInSight(t *testing.T) {
	w := newWorkshop(t)
	b, base := w.signedIn(), w.below("/cases")
	form := caseForm(w.hook(json(`{}`)))
	for i := range 51 {
		form.Set("name", "Case "+strconv.Itoa(i))
		b.want(303, "POST", base, form)
	}
	cursor := b.want(200, "GET", base, nil).found(t, `/cases(\?cursor=[^"]+)`)
	older := b.want(200, "GET", base+cursor, nil)
	older.holds(t, ">Case 0</a>")
	b.want(200, "GET", older.found(t, `data-fresh="([^"]+)"`), nil).holds(t, ">Case 0</a>")
}

func TestACaseIsAimedWhereItsRequestWentLast(t *testing.T) {
	w := newWorkshop(t)
	event := string(w.hook(json(`{"id":7}`)))
	b := w.signedIn()
	const target = "https://shop.example.com/hooks"
	b.want(200, "GET", w.page("/cases/new?event="+event), nil).lacks(t, target)
	b.want(303, "POST", w.page("/requests/"+event+"/replay"), url.Values{"target_url": {target}})
	b.want(200, "GET", w.page("/cases/new?event="+event), nil).holds(t, `name="target_url" value="`+target+`"`)
}

// The first line break in a textarea is not a part of its text (HTML, section 4.10.11).
func TestADescriptionKeepsItsFirstLineBreak(t *testing.T) {
	w := newWorkshop(t)
	b := w.signedIn()
	form := caseForm(w.hook(json(`{}`)))
	form.Set("description", "\nan order\n")
	page, _, _ := strings.Cut(b.want(303, "POST", w.below("/cases"), form).Header.Get("Location"), "?")
	b.want(200, "GET", page, nil).holds(t, ">\n\nan order\n</textarea>")
}

// However many requests have come since.
func TestAPreviewKeepsTheRequestThatWasChosen(t *testing.T) {
	w := newWorkshop(t)
	b := w.signedIn()
	event := string(w.hook(json(`{}`)))
	for range 51 {
		w.hook(json(`{}`))
	}
	chosen := `<option value="` + event + `" selected>`
	page := w.below("/actions/new")
	b.want(200, "GET", page+"?event="+event, nil).holds(t, chosen)
	b.want(200, "POST", page, url.Values{"do": {"check"}, "name": {"a"}, "event": {event}}).holds(t, chosen)
	gone := "req_00000000000000000000000000"
	b.want(200, "GET", page+"?event="+gone, nil).lacks(t, gone)
}

func TestACaseIsRunAndJudgedLive(t *testing.T) {
	w := newWorkshop(t)
	event := w.hook(json(`{"id":7}`))
	c := w.chrome(1440, 900)
	c.open(w.link())
	c.open(w.page("/cases/new?event=" + string(event)))
	c.do(chromedp.SendKeys(`[name=target_url]`, "https://shop.example.com/hooks"), chromedp.SendKeys(`[name=json_subset]`, `{"count": 4}`))
	c.click(".form-end .primary")
	c.until(`document.querySelector(".head-action button")?.textContent === "Run"`)
	c.click(".head-action button")
	c.until(`document.querySelector("#run .badge")?.textContent === "queued"`)
	w.execute(eval[string](c, `location.href`))
	c.until(`document.querySelector("#run .badge").textContent === "assertion failed"`)
	c.until(`document.querySelector("#announce").textContent.includes("would fail") || document.querySelector("#announce").textContent.includes("assertion failed")`)
	c.until(`document.querySelector("#check .badge.bad")`)
	eval[any](c, `(() => { const f = document.querySelector("[name=json_subset]"); f.value = '{"count": 3}'; f.dispatchEvent(new Event("input", { bubbles: true })); })()`)
	c.until(`document.querySelector("#check .badge.good")?.textContent === "would pass"`)
	c.silent()
}

// tricky is an action with everything that a form could lose.
const tricky = `[
	{"reference_key":"shape","step_type":"transform","name":"Shape","config":{"source":"request","operations":[
		{"op":"select","path":"/body"},{"op":"set","path":"/a","value":"true"},{"op":"set","path":"/b","value":1.50},{"op":"set","path":"/c","value":{"x":[null,"7"]}},
		{"op":"set","path":"/d","value":"plain text"},{"op":"set","path":"/d","value":"two\nlines"},{"op":"set","path":"/e","from":"/provider/event_type"},{"op":"set","path":"/f","template":"\n{{request.method}}\nx"},
		{"op":"set","path":"/g","value":""},{"op":"rename","from":"/a","to":"/h"},{"op":"pick","fields":{"h":"/h","b":"/b","dc:title":"/h"}},{"op":"remove","path":"/b"},{"op":"wrap","key":"event"}]}},
	{"reference_key":"send","step_type":"http_request","name":"Send","failure_policy":"stop","config":{"method":"PUT","url":"https://crm.example.com/{{ request.id }}",
		"headers":{"Authorization":"Bearer {{ secrets.CRM }}","X-Time":"a: b"},"body":"\n{\r\n  \"v\": {{ steps.shape.output }}\n}\n","timeout_seconds":9},
		"conditions":[{"source":"steps.shape","path":"/status","operator":"equals","value":"completed"},{"source":"request","path":"/body/n","operator":"equals","value":7},
		{"source":"request","path":"/body/s","operator":"equals","value":"7"},{"source":"request","path":"/body/s","operator":"contains","value":"two\nlines"},
		{"source":"request","path":"/body","operator":"exists"}]},
	{"reference_key":"on","step_type":"forward","name":"On","config":{"url":"https://app.example.com/in","timeout_seconds":5,"retry_count":0,"append_path":true,"append_query":false}},
	{"reference_key":"mark","step_type":"tag","name":"Mark","config":{"tag":"vip"}},
	{"reference_key":"hide","step_type":"ignore","name":"Hide","config":{"reason":"test"}}]`

// makeTricky stores it.
func (w *workshop) makeTricky() hookglass.Action {
	w.t.Helper()
	name, value := "CRM", "swordfish"
	if _, err := w.actions.CreateSecret(w.t.Context(), w.who, w.endpoint.WorkspaceID, action.SecretDraft{Name: &name, Value: &value}); err != nil {
		w.t.Fatal(err)
	}
	var sent []struct {
		ReferenceKey  string              `json:"reference_key"`
		Type          string              `json:"step_type"`
		Name          string              `json:"name"`
		FailurePolicy *string             `json:"failure_policy"`
		Config        encoding.RawMessage `json:"config"`
		Conditions    []struct {
			Source, Path, Operator string
			Value                  encoding.RawMessage
		} `json:"conditions"`
	}
	if err := encoding.Unmarshal([]byte(tricky), &sent); err != nil {
		w.t.Fatal(err)
	}
	var steps []action.StepDraft
	for _, s := range sent {
		d := action.StepDraft{ReferenceKey: &s.ReferenceKey, Type: s.Type, Name: &s.Name, FailurePolicy: s.FailurePolicy, Config: s.Config}
		for _, c := range s.Conditions {
			d.Conditions = append(d.Conditions, action.StepConditionDraft{Source: c.Source, Path: &c.Path, Operator: c.Operator, Value: c.Value})
		}
		steps = append(steps, d)
	}
	label, push := `Tell <b>"everyone"</b>`, "push"
	conditions := []action.ConditionDraft{{Field: "event_type", Operator: "equals", Value: &push}, {Field: "has_tag", Operator: "not_exists"}}
	a, err := w.actions.Create(w.t.Context(), w.who, string(w.endpoint.ID), action.Draft{Name: &label, Conditions: &conditions, Steps: &steps})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func TestSavingAnActionAsItStandsChangesNothing(t *testing.T) {
	w := newWorkshop(t)
	before := w.makeTricky()
	c := w.chrome(1440, 900)
	c.open(w.link())
	c.open(w.page("/actions/" + before.ID))
	c.click(".builder-end .primary")
	c.until(`document.querySelector(".saved")?.textContent === "Saved."`)
	after := w.onlyAction()
	before.UpdatedAt, after.UpdatedAt = time.Time{}, time.Time{}
	before.CreatedAt, after.CreatedAt = time.Time{}, time.Time{}
	if !reflect.DeepEqual(before, after) {
		for i := range after.Steps {
			if !reflect.DeepEqual(before.Steps[i], after.Steps[i]) {
				t.Errorf("step %d was\n%s %+v\nand is\n%s %+v", i, before.Steps[i].Config, before.Steps[i].Conditions, after.Steps[i].Config, after.Steps[i].Conditions)
			}
		}
		t.Errorf("%+v\n%+v", before, after)
	}
	c.silent()
}

// Enter in the query of a back-test asks it, and does not save what is typed above; the keyboard stays where it is.
func TestABackTestIsAskedWithTheKeyboard(t *testing.T) {
	w := newWorkshop(t)
	w.hook(json(`{"n":7}`))
	b := w.signedIn()
	b.want(303, "POST", w.below("/actions")+"/new", url.Values{
		"do": {"save"}, "name": {"Hide"}, "enabled": {"true"}, "failure_policy": {"continue"},
		"steps[0].step_type": {"ignore"}, "steps[0].name": {"Hide"}, "steps[0].config.reason": {"noise"},
	})
	c := w.chrome(1440, 900)
	c.open(w.link())
	c.open(w.page("/actions/" + w.onlyAction().ID))
	eval[any](c, `document.querySelector("#builder [name=name]").value = "Only typed"`)
	eval[any](c, `document.querySelector("#backtest [name=q]").focus()`)
	c.press("method:POST\r")
	c.until(`document.querySelector("#backtest [role=status]")?.textContent.startsWith("1 request:") && document.activeElement.value === "backtest"`)
	c.until(`document.querySelector("#announce").textContent.startsWith("1 request:")`)
	if name := w.onlyAction().Name; name != "Hide" {
		t.Errorf("it was saved as %q", name)
	}
	eval[any](c, `document.querySelector("#backtest [name=q]").select()`)
	c.press(`path:"` + "\r")
	c.until(`document.activeElement.name === "q" && document.activeElement.ariaInvalid === "true" && document.querySelector("#q-fault")`)
}

func TestAnActionIsBuiltWithoutScripts(t *testing.T) {
	w := newWorkshop(t)
	w.hook(w.github("push", "5f7c1a0e-2f6d-11f0-9d41-0242ac120002", `{"ref":"main"}`, "x"))
	event := w.hook(json(`{"n":7}`))
	b, base := w.signedIn(), w.below("/actions")
	b.want(200, "GET", base, nil).holds(t, "No actions yet.", "No runs yet.")
	f := url.Values{"name": {"Mark pushes"}, "enabled": {"true"}, "failure_policy": {"continue"}}
	press := func(status int, do string, change ...string) answer {
		t.Helper()
		for i := 0; i+1 < len(change); i += 2 {
			f.Set(change[i], change[i+1])
		}
		f.Set("do", do)
		return b.want(status, "POST", base+"/new", f)
	}
	press(200, "add-condition").holds(t, `name="conditions[0].field"`, "autofocus", `value="Mark pushes"`)
	f.Set("conditions[0].field", "event_type")
	press(200, "add-step", "conditions[0].operator", "equals", "conditions[0].value", "push", "add_step", "tag").holds(t, `name="steps[0].config.tag"`, `value="push"`)
	press(200, "add-step", "steps[0].step_type", "tag", "steps[0].name", "Mark", "add_step", "http_request").holds(t, `name="steps[1].config.headers"`)
	press(422, "save", "steps[1].step_type", "http_request", "steps[1].config.url", "{{ nothing").holds(t, "nothing was done", "Step 1, tag", "Is required.", "Step 2, URL", `aria-invalid="true"`)
	press(200, "up-step 1").holds(t, `name="steps[0].config.url"`, `name="steps[1].config.tag"`)
	press(200, "remove-step 1").lacks(t, `name="steps[1].step_type"`)
	f.Del("steps[1].step_type")
	press(200, "check", "steps[0].config.tag", "vip", "event", string(event)).holds(t, `<p class="run-state" autofocus tabindex="-1">`, "would not run", "not matched", "&#34;tag&#34;: &#34;vip&#34;")
	press(200, "remove-condition 7") // a button of another page
	made := press(303, "save").Header.Get("Location")
	one, _, _ := strings.Cut(made, "?")
	if a := w.onlyAction(); len(a.Conditions) != 1 || len(a.Steps) != 1 || a.Steps[0].Type != hookglass.StepTag || !a.Enabled {
		t.Fatalf("%+v", a)
	}

	b.want(200, "POST", one, url.Values{"name": {"Mark pushes"}, "failure_policy": {"stop"}, "do": {"backtest"}, "q": {""}, "limit": {"25"}}).holds(t, `role="status" tabindex="-1" autofocus>2 requests: the saved action matches 1, with your changes 2.`, "1 difference", "(none)")
	b.want(422, "POST", one, url.Values{"name": {"Mark pushes"}, "failure_policy": {"stop"}, "do": {"backtest"}, "q": {`"`}}).holds(t, "The query cannot be read")
	ran := b.want(303, "POST", one+"/rerun", url.Values{"event": {string(event)}}).Header.Get("Location")
	b.want(200, "GET", ran, nil).holds(t, "queued", `data-every="700"`)
	w.execute(ran)
	b.want(200, "GET", ran, nil).holds(t, "completed", "rerun", "not matched", "Mark", "<summary>Details</summary>")
	b.want(200, "GET", base+"/runs", nil).holds(t, "Mark pushes", "completed")
	run, part, _ := strings.Cut(ran[strings.Index(ran, "run=")+len("run="):], "#")
	b.want(200, "GET", ran, nil).holds(t, `id="`+part+`"`, "?run="+run+"#"+part) // they stand far down
	again := b.want(303, "POST", one+"/rerun", url.Values{"run": {run}}).Header.Get("Location")
	b.want(200, "GET", again, nil).holds(t, "rerun of an earlier run")

	b.want(303, "POST", one+"/enable", url.Values{"enabled": {"false"}})
	b.want(200, "GET", base, nil).holds(t, "disabled", "Enable Mark pushes")
	press(303, "save", "name", "Second")
	b.want(303, "POST", base+"/"+one[strings.LastIndexByte(one, '/')+1:]+"/move", url.Values{"to": {"2"}})
	if page := b.want(200, "GET", base, nil); strings.Index(page.body, "Second") > strings.Index(page.body, "Mark pushes") {
		t.Error("the moved action is still the first")
	}

	eve := w.stranger()
	for _, path := range []string{base, base + "/runs", base + "/new", one, one + "/runs"} {
		eve.want(404, "GET", path, nil)
	}
	for _, path := range []string{base + "/new", base + "/new/check", one, one + "/check", one + "/enable", one + "/move", one + "/rerun", one + "/delete"} {
		eve.want(404, "POST", path, url.Values{"name": {"x"}, "to": {"1"}, "do": {"save"}, "event": {string(event)}})
	}
	b.want(303, "POST", one+"/delete", url.Values{})
	b.want(404, "GET", one, nil).holds(t, "Back to actions", `href="`+base+`"`)
	b.want(200, "GET", base, nil).holds(t, "a deleted action")
}

func TestTheBarOfTheBuilderHidesNothingThatHasTheFocus(t *testing.T) {
	w := newWorkshop(t)
	w.hook(json(`{"n":7}`))
	for _, height := range []int64{480, 600, 900} {
		c := w.chrome(375, height)
		c.open(w.link())
		c.open(w.page("/actions/new"))
		stops := 0
		for range 100 {
			c.press(kb.Tab)
			name := eval[string](c, `document.activeElement.closest("main form") ? document.activeElement.name || document.activeElement.textContent : ""`)
			if name == "" && stops > 0 {
				break
			}
			if name == "" {
				continue
			}
			stops++
			if eval[bool](c, `(() => {
				const bar = document.querySelector(".builder-end"), f = document.activeElement
				return !bar.contains(f) && f.getBoundingClientRect().bottom > bar.getBoundingClientRect().top
			})()`) {
				t.Errorf("height %d: %q has the focus and is below the bar", height, name)
			}
		}
		if stops < 5 {
			t.Errorf("the keyboard came to %d fields", stops)
		}
	}
}

func TestTheFieldsOfAnOperationFillItsLine(t *testing.T) {
	w := newWorkshop(t)
	action := w.makeTricky()
	c := w.chrome(1440, 900)
	c.open(w.link())
	c.open(w.page("/actions/" + action.ID))
	if n := eval[int](c, `document.querySelectorAll(".operation").length`); n == 0 {
		t.Fatal("the action transforms nothing")
	}
	narrow := eval[[]string](c, `[...document.querySelectorAll(".operation")].filter((one) => {
		const buttons = one.querySelector(".row-actions").getBoundingClientRect();
		return one.getBoundingClientRect().right - buttons.right > 40;
	}).map((one) => one.ariaLabel)`)
	if len(narrow) > 0 {
		t.Errorf("there is room left beside %v", narrow)
	}
}

func TestTheBuilderIsAlive(t *testing.T) {
	w := newWorkshop(t)
	w.makeTricky()
	w.hook(json(`{"n":7,"password":"hunter2"}`))
	c := w.chrome(1440, 900)
	c.open(w.link())
	c.open(w.page("/actions/new"))
	eval[any](c, `window.same = true`)
	set := func(name, value string) {
		t.Helper()
		c.until(`document.getElementsByName("` + name + `")[0]`)
		eval[any](c, `(() => { const f = document.getElementsByName("`+name+`")[0]; f.value = `+"`"+value+"`"+`; f.dispatchEvent(new Event("input", { bubbles: true })); })()`)
	}
	set("name", "Send it on")
	set("add_step", "http_request")
	c.click(`[value=add-step]`)
	c.until(`document.activeElement.name === "steps[0].name" && window.same`)
	set("steps[0].config.url", "https://crm.example.com/{{ request.id")
	c.until(`document.querySelector("[data-fault='steps[0].config.url']").checkVisibility() && document.getElementsByName("steps[0].config.url")[0].ariaInvalid === "true"`)
	set("steps[0].config.url", "https://crm.example.com/{{ request.method }}")
	c.until(`!document.querySelector("[data-fault='steps[0].config.url']").checkVisibility()`)
	set("steps[0].config.headers", "Authorization: Bearer {{ secrets.NONE }}")
	c.until(`document.querySelector("#tried .faults a")?.textContent === "Step 1, headers"`)
	c.click("#tried .faults a")
	c.until(`document.activeElement.name === "steps[0].config.headers"`)
	c.click(".builder-end .primary")
	c.until(`document.querySelector(".problem-note")?.textContent.includes("nothing was done") && document.activeElement.name === "steps[0].config.headers"`)
	c.forget() // the browser tells of the 422
	set("steps[0].config.headers", "Authorization: Bearer {{ secrets.CRM }}")
	set("steps[0].config.body", "{{ request.body }}")
	eval[any](c, `(() => { const f = document.querySelector("#builder [name=event]"); f.selectedIndex = 1; f.dispatchEvent(new Event("input", { bubbles: true })); })()`)
	c.until(`document.querySelector("#tried .badge.good")?.textContent === "would run"`)
	c.until(`document.querySelector("#tried").textContent.includes("{{secrets.CRM}}") && document.querySelector("#tried").textContent.includes("Redacted:") && !document.querySelector("#tried").textContent.includes("hunter2")`)
	c.click(".builder-end .primary")
	c.until(`document.querySelector(".saved")?.textContent.includes("Created.")`)
	c.silent()
}

// The answer to a button takes the place of the form, with what was typed while it was on its way.
func TestWhatIsTypedWhileTheBuilderWaitsIsKept(t *testing.T) {
	w := newWorkshop(t)
	c := w.chrome(1440, 900)
	c.open(w.link())
	c.open(w.page("/actions/new"))
	eval[any](c, `(() => {
		const real = fetch;
		window.waiting = new Promise((resolve) => window.release = resolve);
		window.sent = 0;
		window.fetch = async (url, options) => {
			if (!url.endsWith("/check")) sent++, await waiting;
			return real(url, options);
		};
	})()`)
	c.click(`[value=add-step]`)
	c.until(`sent === 1`)
	c.click(`[value=add-condition]`) // one after another
	eval[any](c, `document.querySelector("#builder [name=name]").focus()`)
	c.press("Meanwhile")
	if n := eval[int](c, `sent`); n != 1 {
		t.Errorf("%d were sent at once", n)
	}
	eval[any](c, `release()`)
	c.until(`document.getElementsByName("steps[0].name").length === 1 && document.querySelector("#builder [name=name]").value === "Meanwhile"`)
	c.click(`[value=add-condition]`)
	c.until(`document.getElementsByName("conditions[0].field").length === 1 && document.getElementsByName("steps[0].name").length === 1`)
	c.silent()
}

func TestSecretsAreSetReplacedAndDeletedAndNeverShown(t *testing.T) {
	w := newWorkshop(t)
	b := w.signedIn()
	page := b.want(200, "GET", "/secrets", nil)
	page.holds(t, "No secrets yet.")
	workspace := page.found(t, `name="workspace" value="(\d+)"`)
	form := func(name, value string) url.Values {
		return url.Values{"workspace": {workspace}, "name": {name}, "secret_value": {value}, "description": {"The CRM's <b>token</b>"}}
	}
	b.want(422, "POST", "/secrets", form("no name", "swordfish")).holds(t, "The name must be 1 to 64", `value="no name"`)
	b.want(422, "POST", "/secrets", form("EMPTY", "")).holds(t, "The value must have 1 to 16,384 bytes")
	b.want(303, "POST", "/secrets", form("BILLING_KEY", "swordfish"))
	page = b.want(200, "GET", "/secrets", nil)
	page.holds(t, "BILLING_KEY", "Never used", "&lt;b&gt;token")
	page.lacks(t, "swordfish")
	b.want(422, "POST", "/secrets", form("BILLING_KEY", "again")).lacks(t, "again<")
	one := page.found(t, `action="(/secrets/\d+/asec_[^/"]+)"`)
	b.want(303, "POST", one, url.Values{"secret_value": {"-----BEGIN\r\nEND"}, "description": {"new"}})
	b.want(200, "GET", "/secrets?done=replaced", nil).holds(t, "The secret was replaced.", "new")

	w.makeTricky()
	used := b.want(200, "GET", "/secrets", nil).found(t, `(?s)<code>CRM</code>.*?action="(/secrets/\d+/asec_[^/"]+)"`)
	b.want(409, "POST", used+"/delete", url.Values{}).holds(t, "The secret is in use", "/actions/act_", "· send")

	eve := w.stranger()
	eve.want(200, "GET", "/secrets", nil).lacks(t, "BILLING_KEY")
	eve.want(404, "POST", "/secrets", form("MINE", "x"))
	eve.want(404, "POST", one, url.Values{"secret_value": {"x"}})
	eve.want(404, "POST", one+"/delete", url.Values{})
	b.want(303, "POST", one+"/delete", url.Values{})
	b.want(200, "GET", "/secrets", nil).lacks(t, "BILLING_KEY")
}

// connected opens a session of the endpoint; lost ends it as if its machine had died.
func (w *workshop) connected() (lost func()) {
	w.t.Helper()
	s := hookglass.TunnelSession{ID: hookglass.NewSortableID(hookglass.PrefixTunnelSession, time.Now()), Node: "node", Client: hookglass.TunnelClient{ID: "tcl_1", Name: "hookglass", OS: "linux", Arch: "arm64"}}
	w.update(func(tx *store.Tx) error {
		if err := tx.CreateTunnelSession(&s); err != nil {
			return err
		}
		_, err := tx.SubscribeTunnel(string(w.endpoint.ID), &hookglass.TunnelSubscription{SessionNum: s.Num, TargetURL: "http://localhost:3000", Hostname: "laptop<b>", Reports: true, Replays: true})
		return err
	})
	return func() {
		w.t.Helper()
		w.update(func(tx *store.Tx) error {
			return tx.EndTunnels([]store.TunnelEnd{{Session: s.Num, Lost: true, Since: time.Now().Add(-time.Minute)}})
		})
	}
}

func (w *workshop) update(do func(*store.Tx) error) {
	w.t.Helper()
	if err := w.db.Update(w.t.Context(), hookglass.System, do); err != nil {
		w.t.Fatal(err)
	}
}

func TestTheTunnelShowsWhoIsConnectedAndWhatWasMissed(t *testing.T) {
	w := newWorkshop(t)
	b, base := w.signedIn(), w.below("/tunnel")
	b.want(200, "GET", base, nil).holds(t, "No machine is connected", "No gaps.", "hookglass listen 3000 -e "+string(w.endpoint.ID), "hookglass login --server "+w.url,
		"?q=tunnel%3Afailed", "hookglass replays run -e "+string(w.endpoint.ID)+" -q tunnel:failed --to tunnel", "the endpoint's own response immediately")
	lost := w.connected()
	b.want(200, "GET", base+"/state", nil).holds(t, "1 machine connected", "laptop&lt;b&gt;", "http://localhost:3000", "reports deliveries, takes replays", "linux/arm64")
	lost()
	missed := w.hook(sent{target: "/missed"})
	page := b.want(200, "GET", base, nil)
	page.holds(t, "No machine is connected", "open", "<strong>1</strong> missed", "<strong>1</strong> pending")
	gap := page.found(t, `\?gap=(tgap_[^"#]+)`)
	b.want(200, "GET", base+"?gap="+gap, nil).holds(t, "POST /missed", "/requests/"+string(missed))
	w.connected()
	b.want(200, "GET", base, nil).holds(t, "reconnected", "Check again")
	if to := b.want(303, "POST", base+"/gaps/"+gap+"/recovery", url.Values{}).Header.Get("Location"); to != base+"?done=recounted" { // layout.js forgets it
		t.Errorf("the answer leads to %s", to)
	}
	page = b.want(200, "GET", base+"?done=recounted", nil)
	page.holds(t, "counted again", "partial")
	page.lacks(t, "The machine was")
	if _, err := w.tunnels.Recover(t.Context(), w.who, gap, tunnel.Recovery{Outcome: "interrupted"}); err != nil {
		t.Fatal(err)
	}
	b.want(303, "POST", base+"/gaps/"+gap+"/recovery", url.Values{})
	b.want(200, "GET", base, nil).holds(t, "The machine was interrupted.")
	if _, err := w.tunnels.Recover(t.Context(), w.who, gap, tunnel.Recovery{Outcome: "skipped"}); err != nil {
		t.Fatal(err)
	}
	b.want(200, "GET", base, nil).holds(t, "left these requests out on purpose", "Skipped by the machine.")

	eve := w.stranger()
	eve.want(404, "GET", base, nil)
	eve.want(404, "GET", base+"/state", nil)
	eve.want(404, "POST", base+"/gaps/"+gap+"/recovery", url.Values{})
}

func TestWhatASenderWroteIsNoMarkupWhereItIsReplayedOrActedOn(t *testing.T) {
	w := newWorkshop(t)
	b := w.signedIn()
	hostile := strings.Join(corpus, " ")
	w.target.answer(200, hostile)
	plain := strings.Map(printable, hostile)
	event := w.hook(sent{target: "/" + hostile + "?" + hostile, body: hostile, headers: hookglass.Headers{{Name: "X-GitHub-Event", Value: plain}, {Name: "X-GitHub-Delivery", Value: plain}}})
	form := caseForm(event, "description", plain, "json_subset", `{"a":"<script>document.documentElement.dataset.ran=1</script>"}`)
	one, _, _ := strings.Cut(b.want(303, "POST", w.below("/cases"), form).Header.Get("Location"), "?")
	w.execute(b.want(303, "POST", one+"/run", url.Values{"key": {"k"}}).Header.Get("Location"))
	made := b.want(303, "POST", w.below("/actions/new"), url.Values{
		"name": {plain[:150]}, "failure_policy": {"continue"}, "enabled": {"true"}, "conditions[0].field": {"event_type"}, "conditions[0].operator": {"contains"}, "conditions[0].value": {"<script>"},
		"steps[0].step_type": {"http_request"}, "steps[0].config.method": {"POST"}, "steps[0].config.url": {"https://a.example.com/"}, "steps[0].config.body": {"{{ request.body }}"}, "do": {"save"},
	}).Header.Get("Location")
	action, _, _ := strings.Cut(made, "?")
	w.execute(b.want(303, "POST", action+"/rerun", url.Values{"event": {string(event)}}).Header.Get("Location"))
	pages := []string{w.below("/cases"), w.below("/cases/new?event=" + string(event)), one, w.below("/actions"), action, "/secrets", w.below("/tunnel")}
	c := w.chrome(1440, 900)
	c.open(w.link())
	for _, path := range pages {
		c.open(w.url + path)
		if path == action {
			eval[any](c, `(() => { const f = document.querySelector("#builder [name=event]"); f.selectedIndex = 1; f.dispatchEvent(new Event("input", { bubbles: true })); })()`)
			c.until(`document.querySelector("#tried .steps-trace")`)
		}
		eval[any](c, `document.querySelectorAll("details").forEach((e) => e.open = true)`)
		if eval[bool](c, `document.documentElement.hasAttribute("data-ran") || document.querySelector("main iframe, main img, main script, main style, main meta, main link, main [onerror], main [onload]") !== null`) {
			t.Errorf("%s: something became markup", path)
		}
	}
	c.silent()
}

func TestWorkshopPagesFitPhonesAndDesksInLightAndDark(t *testing.T) {
	w := newWorkshop(t)
	b := w.signedIn()
	event := w.hook(w.github("push", "5f7c1a0e-2f6d-11f0-9d41-0242ac120002", `{"ref":"`+strings.Repeat("unbroken", 40)+`"}`, "x"))
	one, _, _ := strings.Cut(b.want(303, "POST", w.below("/cases"), caseForm(event, "json_subset", `{"status":"`+strings.Repeat("long", 60)+`"}`, "name", strings.Repeat("long", 40), "target_url", "https://shop.example.com/"+strings.Repeat("hooks", 60))).Header.Get("Location"), "?")
	run := b.want(303, "POST", one+"/run", url.Values{"key": {"k"}}).Header.Get("Location")
	w.execute(run)
	made := w.below("/actions/" + w.makeTricky().ID)
	workspace := b.want(200, "GET", "/secrets", nil).found(t, `name="workspace" value="(\d+)"`)
	long := strings.Repeat("W", 64) // as long as a name may be
	b.want(303, "POST", "/secrets", url.Values{"workspace": {workspace}, "name": {long}, "secret_value": {"v"}, "description": {strings.Repeat(long, 4)}})
	w.execute(b.want(303, "POST", made+"/rerun", url.Values{"event": {string(event)}}).Header.Get("Location"))
	w.connected()()
	w.hook(sent{target: "/missed/" + strings.Repeat("deep/", 30)})
	w.connected()
	gap := b.want(200, "GET", w.below("/tunnel"), nil).found(t, `\?gap=(tgap_[^"#]+)`)
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
				{"cases", w.below("/cases")}, {"case", run}, {"actions", w.below("/actions")}, {"action", made + "?event=" + string(event)}, {"secrets", "/secrets"},
				{"tunnel", w.below("/tunnel?gap=" + gap)},
			} {
				c.open(w.url + page.path)
				if found := inline.FindString(b.want(200, "GET", page.path, nil).body); found != "" {
					t.Errorf("%s holds %q", page.name, found)
				}
				if wide := eval[int](c, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
					t.Errorf("%s: %d pixels stand out at the side", page.name, wide)
				}
				for rule, expression := range map[string]string{"targets below 24 pixels (WCAG 2.5.8)": tooSmall, "text below a contrast of 4.5 (WCAG 1.4.3)": tooPale, "controls without a name (WCAG 4.1.2)": withoutName} {
					if offenders := eval[string](c, expression); offenders != "" {
						t.Errorf("%s: %s: %s", page.name, rule, offenders)
					}
				}
				c.picture("workshop-" + page.name + "-" + look.name)
			}
			c.silent()
		})
	}
}

// Runs that come while somebody goes through the list by keyboard do not take the focus away, nor move it to another row.
// What was scrolled stays so, also where the focus is not.
func TestWhatIsRenewedKeepsTheFocus(t *testing.T) {
	w := newWorkshop(t)
	b := w.signedIn()
	first, second := w.hook(json(`{"number":1}`)), w.hook(json(`{"number":2}`))
	b.want(303, "POST", w.below("/actions")+"/new", url.Values{
		"do": {"save"}, "name": {"Mark"}, "enabled": {"true"}, "failure_policy": {"continue"},
		"steps[0].step_type": {"ignore"}, "steps[0].name": {"Hide"}, "steps[0].config.reason": {"noise"},
	})
	action := w.below("/actions/" + w.onlyAction().ID)
	rerun := func(event hookglass.EventID) string {
		return b.want(303, "POST", action+"/rerun", url.Values{"event": {string(event)}}).Header.Get("Location")
	}
	done := rerun(first)
	w.execute(done)
	rerun(second) // is under way: the list is read often
	c := w.chrome(1440, 900)
	c.open(w.link())
	c.open(w.url + done)
	eval[any](c, `{
		const low = new CSSStyleSheet();
		low.replaceSync("#runs pre { max-height: 1em; overflow: auto }");
		document.adoptedStyleSheets = [low];
	}`)
	for _, stop := range []string{"#runs pre[tabindex]", `#runs td a[href$="` + string(first) + `"]`} {
		eval[any](c, `{
			document.querySelectorAll("#runs details").forEach((e) => e.open = true);
			document.querySelector("#runs").dataset.was = "yes";
			document.querySelector("#runs pre").scrollTop = 5;
			document.querySelector('`+stop+`').focus();
		}`)
		rerun(second)
		c.until(`!document.querySelector("#runs").dataset.was`)
		if !eval[bool](c, `document.activeElement.matches('`+stop+`')`) {
			t.Errorf("the focus was on %s and is on %s", stop, eval[string](c, `document.activeElement.outerHTML.slice(0, 200)`))
		}
		if at := eval[float64](c, `document.querySelector("#runs pre").scrollTop`); at != 5 {
			t.Errorf("with the focus on %s, the output is scrolled to %v", stop, at)
		}
	}
	c.silent()
}

// A tab of the browser, a bookmark and a screen reader tell pages apart by their titles.
func TestEachPageOfAnEndpointHasATitleOfItsOwn(t *testing.T) {
	w := newWorkshop(t)
	event := w.hook(json(`{"order":1}`))
	b, titles := w.signedIn(), map[string]string{}
	for _, path := range []string{
		"", "/requests/" + string(event), "/requests/" + string(event) + "/share", "/requests/" + string(event) + "/bundle", "/cases", "/cases/new?event=" + string(event),
		"/actions", "/actions/new", "/alerts", "/tunnel", "/metrics", "/ledger", "/retries", "/schemas", "/schemas/unknown/-", "/settings",
	} {
		title := b.want(200, "GET", w.below(path), nil).found(t, "<title>([^<]*)</title>")
		if other, taken := titles[title]; taken {
			t.Errorf("%q and %q are both %q", other, path, title)
		}
		titles[title] = path
	}
}
