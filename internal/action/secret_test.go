package action_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
)

func TestSecretsAreSetAndNeverReadAgain(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		text := func(s string) *string { return &s }
		ws := b.owner.Workspace.ID
		for name, c := range map[string]struct {
			d    action.SecretDraft
			code hookglass.Code
		}{
			"no value":       {action.SecretDraft{Name: text("A")}, hookglass.CodeValidationFailed},
			"no name":        {action.SecretDraft{Value: text("v")}, hookglass.CodeValidationFailed},
			"an empty value": {action.SecretDraft{Name: text("A"), Value: text("")}, hookglass.CodeValidationFailed},
			"a digit first":  {action.SecretDraft{Name: text("1A"), Value: text("v")}, hookglass.CodeValidationFailed},
			"65 characters":  {action.SecretDraft{Name: text(strings.Repeat("A", 65)), Value: text("v")}, hookglass.CodeValidationFailed},
			"64 characters":  {action.SecretDraft{Name: text(strings.Repeat("A", 64)), Value: text("v")}, ""},
			"16 KiB":         {action.SecretDraft{Name: text("Large"), Value: text(strings.Repeat("v", 16<<10))}, ""},
			"lines":          {action.SecretDraft{Name: text("Lines"), Value: text("v"), Description: text("one\n\ttwo")}, ""},
			"an escape":      {action.SecretDraft{Name: text("Escape"), Value: text("v"), Description: text("\x1b[2J")}, hookglass.CodeValidationFailed},
			"16 KiB and one": {action.SecretDraft{Name: text("Larger"), Value: text(strings.Repeat("v", 16<<10+1))}, hookglass.CodeValidationFailed},
		} {
			if _, err := b.actions.CreateSecret(t.Context(), b.who, ws, c.d); err == nil && c.code != "" || err != nil && hookglass.CodeOf(err) != c.code {
				t.Errorf("%s: %v, want %q", name, err, c.code)
			}
		}
		s := b.secret("TOKEN", "first")
		if _, err := b.actions.CreateSecret(t.Context(), b.who, ws, action.SecretDraft{Name: text("TOKEN"), Value: text("v")}); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("a name twice: %v", err)
		}
		if _, err := b.actions.UpdateSecret(t.Context(), b.who, ws, s.ID, action.SecretDraft{Name: text("OTHER")}); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("another name: %v", err)
		}
		changed, err := b.actions.UpdateSecret(t.Context(), b.who, ws, s.ID, action.SecretDraft{Value: text("second"), Description: text("new")})
		must(t, err)
		if changed.Name != "TOKEN" || changed.Description != "new" || bytes.Contains(changed.Sealed, []byte("second")) {
			t.Errorf("changed: %+v", changed)
		}
		a := b.create(draft("Uses", step("http_request", "Send", `{"url":"https://a.example.com/","headers":{"X-Key":"{{secrets.TOKEN}}"}}`)))
		b.ran(a, body)
		if got := b.net.requests()[0].Headers.Get("X-Key"); got != "second" {
			t.Errorf("the secret is %q", got)
		}
		must(t, b.db.View(t.Context(), b.who, func(v *store.View) error {
			used, err := v.ActionSecret(ws, s.ID)
			if err == nil && time.Since(used.LastUsedAt) > time.Minute {
				t.Errorf("last used at %v", used.LastUsedAt)
			}
			return err
		}))
		stranger := hookglass.Principal{Account: b.owner.Account.ID + 1, Scopes: hookglass.System.Scopes}
		if err := b.actions.DeleteSecret(t.Context(), stranger, ws, s.ID); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("a stranger: %v", err)
		}
		b.plan(hookglass.PlanTeam, hookglass.SubscriptionActive)
		if _, err := b.actions.UpdateSecret(t.Context(), b.who, ws, s.ID, action.SecretDraft{Value: text("x")}); !hookglass.Is(err, hookglass.CodePlanRequired) {
			t.Errorf("on the Team plan: %v", err)
		}
	})
}

// A secret is deleted while steps that name it are being added (reliability, row 134): either it stays, or the step is
// refused.
func TestASecretThatIsInUseStays(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for i := range 20 {
			name := fmt.Sprintf("S%d", i)
			s := b.secret(name, "value of it")
			var both sync.WaitGroup
			var added hookglass.Action
			var addErr, deleteErr error
			both.Go(func() {
				added, addErr = b.actions.Create(t.Context(), b.who, string(b.ep.ID), draft(name, step("http_request", "Send", `{"url":"https://a.example.com/","body":"{{secrets.`+name+`}}"}`)))
			})
			both.Go(func() { deleteErr = b.actions.DeleteSecret(t.Context(), b.who, b.owner.Workspace.ID, s.ID) })
			both.Wait()
			switch {
			case addErr == nil && hookglass.Is(deleteErr, hookglass.CodeSecretInUse):
				refs := fmt.Sprint(deleteErr.(*hookglass.Error).Extra["references"])
				if !strings.Contains(refs, added.ID) || !strings.Contains(refs, "step:send") || !strings.Contains(refs, string(b.ep.ID)) {
					t.Errorf("the references are %s", refs)
				}
				must(t, b.actions.Delete(t.Context(), b.who, string(b.ep.ID), added.ID))
				must(t, b.actions.DeleteSecret(t.Context(), b.who, b.owner.Workspace.ID, s.ID))
			case hookglass.Is(addErr, hookglass.CodeValidationFailed) && deleteErr == nil:
			default:
				t.Fatalf("added: %v, deleted: %v", addErr, deleteErr)
			}
		}
	})
}

// canary is a secret that is looked for everywhere.
const canary = "CANARY/7f3a+9c1e=55d0b2&8e46"

// everything is all that the database holds, as text.
type everything struct{ bytes.Buffer }

func (e *everything) Table(store.Table) error         { return nil }
func (e *everything) Counters(map[string]int64) error { return nil }
func (e *everything) Row(values []any) error {
	for _, v := range values {
		if b, ok := v.([]byte); ok {
			e.Write(b)
		} else {
			fmt.Fprint(e, v)
		}
		e.WriteByte('\n')
	}
	return nil
}

// A secret is in no trace, no log, no answer and no table, also when targets echo it (reliability, rows 131 and 132).
func TestSecretsAreNowhere(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.secret("KEY", canary)
		echoes := []string{
			canary, base64.StdEncoding.EncodeToString([]byte(canary)), hex.EncodeToString([]byte(canary)), url.QueryEscape(canary),
			base64.StdEncoding.EncodeToString([]byte("user:" + canary)),
		}
		b.net.respond = func(n int, r outbound.Request) (*outbound.Response, error) {
			echo := strings.Join(echoes, " | ")
			if strings.Contains(r.URL, "refuse") {
				return nil, &outbound.Failure{Code: outbound.CodeTLSError, Message: "could not reach " + r.URL}
			}
			text, _ := json.Marshal(map[string]string{"echo": echo, "split": canary[:12] + "\n" + canary[12:]})
			return answer(map[bool]int{true: 500, false: 200}[strings.Contains(r.URL, "app")], string(text)), nil
		}
		a := b.create(draft("Canary",
			step("transform", "Copy", `{"source":"request","operations":[{"op":"set","path":"/copied","template":"{{secrets.KEY}}"}]}`),
			step("http_request", "Send", `{"url":"https://crm.example.com/{{secrets.KEY}}","headers":{"Authorization":"Bearer {{secrets.KEY}}","X-Plain":"{{secrets.KEY}}"},"body":"{\"k\":\"{{secrets.KEY}}\",\"c\":{{steps.copy.output}}}"}`),
			step("http_request", "Refuse", `{"url":"https://refuse.example.com/{{secrets.KEY}}"}`),
			step("forward", "On", `{"url":"https://app.example.com/","retry_count":1}`),
			step("http_request", "Later", `{"url":"https://crm.example.com/","body":"{{steps.send.output}}"}`),
			step("http_request", "Line", `{"url":"https://crm.example.com/","headers":{"X":"{{steps.send.output.body.split}}"}}`),
		))
		e := b.capture(body, func(e *hookglass.Event) { e.Path = "/" + canary })
		// The event itself holds what its sender sent: that is not ours to change, and is deleted before the search.
		b.work(e)
		run := b.runs(a)[0]
		wantOutcome(t, run, "failed copy=completed send=completed refuse=failed(tls_error) on=failed(http_status) later=completed line=failed(template_error)")
		if sent := b.net.requests(); !strings.Contains(string(sent[0].Body), `"copied":`) || !strings.Contains(string(sent[len(sent)-1].Body), "echo") {
			t.Error("later steps do not get what they name")
		}
		p, err := b.actions.Preview(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID))
		must(t, err)
		shown, err := json.Marshal([]any{run, p})
		must(t, err)
		sensitive := fmt.Sprint(p.Sensitive)
		for _, place := range []string{"{copy /copied}", "{send /url}", "{send /headers/Authorization}", "{send /headers/X-Plain}", "{send /body}", "{refuse /url}"} {
			if !strings.Contains(sensitive, place) {
				t.Errorf("sensitive_fields lacks %s: %s", place, sensitive)
			}
		}
		if rendered := string(p.Steps[1].Rendered); !strings.Contains(rendered, `"Authorization":"Bearer {{secrets.KEY}}"`) || !strings.Contains(rendered, `\"k\":\"{{secrets.KEY}}\"`) {
			t.Errorf("the preview shows %s", rendered)
		}
		all := &everything{}
		_, err = b.db.Dump(t.Context(), all)
		must(t, err)
		traces := &bytes.Buffer{}
		for _, st := range run.Steps {
			traces.Write(st.Summary)
			if st.Failure != nil {
				traces.WriteString(st.Failure.Message)
			}
		}
		stored := bytes.ReplaceAll(all.Bytes(), []byte("/"+canary+"\n"), nil) // the event's own path
		for where, text := range map[string]string{"an answer": strings.ReplaceAll(string(shown), `"/`+canary, ""), "the log": b.log.String(), "the database": string(stored), "a trace": traces.String()} {
			for _, form := range append(echoes, canary[:12], canary[12:], url.PathEscape(canary), strings.ToUpper(echoes[2])) {
				if strings.Contains(text, form) {
					t.Errorf("%s holds %q", where, form)
				}
			}
		}
	})
}

// A credential that is not UTF-8 is blotted out as it is shown, and in the answer of a target that was sent its bytes.
func TestACredentialOfAnyBytesIsHidden(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		const secret = "s3cr\xe9t-cl\xe9-0123"
		b.net.respond = func(_ int, r outbound.Request) (*outbound.Response, error) {
			for _, h := range r.Headers {
				if h.Name == "X-Api-Token" {
					return answer(500, "you sent "+h.Value), nil
				}
			}
			return answer(500, "nothing"), nil
		}
		a := b.create(draft("Odd",
			step("forward", "On", `{"url":"https://app.example.com/","retry_count":0}`),
			step("http_request", "Send", `{"url":"https://crm.example.com/","headers":{"X-Plain":"{{request.headers.x-api-token}}"},"body":"{{request.headers.x-api-token}}"}`),
		))
		e := b.capture(body, func(e *hookglass.Event) {
			e.Headers = append(e.Headers, hookglass.Header{Name: "X-Api-Token", Value: secret})
		})
		b.work(e)
		if sent := b.net.requests(); len(sent) != 2 || sent[0].Headers.Get("X-Api-Token") != secret || string(sent[1].Body) != "s3crét-clé-0123" {
			t.Errorf("sent %+v", sent)
		}
		p, err := b.actions.Preview(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID))
		must(t, err)
		for _, st := range b.runs(a)[0].Steps {
			if text := string(st.Summary); strings.Contains(text, "s3cr") || st.Failure == nil {
				t.Errorf("the trace holds %s", text)
			}
		}
		for _, st := range p.Steps {
			if text := string(st.Rendered); strings.Contains(text, "s3cr") {
				t.Errorf("the preview shows %s", text)
			}
		}
	})
}

// A target that was sent a secret by one action may answer another with it, whose steps name none: nor does that one's
// trace hold it.
func TestSecretsThatAnActionDoesNotNameAreNotInItsTrace(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		value := "canary-of-another-0123456789"
		b.net.respond = func(_ int, r outbound.Request) (*outbound.Response, error) {
			return answer(200, "got "+value+" and "+base64.StdEncoding.EncodeToString([]byte(value))), nil
		}
		name, slash := "Echo", "/"
		a := b.create(action.Draft{
			Name: &name, Conditions: &[]action.ConditionDraft{{Field: "request_path", Operator: "contains", Value: &slash}},
			Steps: &[]action.StepDraft{step("forward", "On", `{"url":"https://app.example.com/","retry_count":0}`)},
		})
		trace := func() string {
			t.Helper()
			b.work(b.capture(body, func(e *hookglass.Event) { e.Path = "/in/" + value }))
			run := b.runs(a)[0]
			wantOutcome(t, run, "completed on=completed")
			return fmt.Sprintf("%s %s", run.Trigger.Conditions[0].Actual, run.Steps[0].Summary)
		}
		if got := trace(); !strings.Contains(got, "/in/"+value) {
			t.Errorf("what is no secret is hidden: %s", got)
		}
		secret := b.secret("CANB", value)
		hidden := func() {
			t.Helper()
			got := trace()
			if strings.Contains(got, value) || strings.Contains(got, base64.StdEncoding.EncodeToString([]byte(value))) {
				t.Errorf("the trace is %s", got)
			}
			if !strings.Contains(got, "/in/{{secrets.CANB}}") || !strings.Contains(got, "got {{secrets.CANB}} and {{secrets.CANB}}") {
				t.Errorf("the trace does not say what was hidden: %s", got)
			}
		}
		hidden()
		value = "the-value-that-came-then-98765"
		_, err := b.actions.UpdateSecret(t.Context(), b.who, b.owner.Workspace.ID, secret.ID, action.SecretDraft{Value: &value})
		must(t, err)
		hidden()
		e := b.capture(body)
		again, err := b.actions.Rerun(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID), "")
		must(t, err)
		must(t, b.actions.ExecuteRun(t.Context(), again.ID))
		if got := string(b.runs(a)[0].Steps[0].Summary); strings.Contains(got, value) {
			t.Errorf("the trace of the rerun is %s", got)
		}
		must(t, b.actions.DeleteSecret(t.Context(), b.who, b.owner.Workspace.ID, secret.ID))
		if got := trace(); !strings.Contains(got, "/in/"+value) {
			t.Errorf("what is no secret any more is hidden: %s", got)
		}
	})
}

// A target may answer a run with a secret that was replaced, or deleted, while the run waited to forward again.
func TestASecretThatIsReplacedWhileARunWaitsIsNotInItsTrace(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		secret := b.secret("KEY", canary)
		b.net.respond = func(n int, r outbound.Request) (*outbound.Response, error) {
			if strings.Contains(r.URL, "app") && n < 4 {
				return answer(503, "busy"), nil
			}
			return answer(200, "got "+canary+" and "+base64.StdEncoding.EncodeToString([]byte(canary))), nil
		}
		a := b.create(draft("Echo",
			step("http_request", "Send", `{"url":"https://crm.example.com/","body":"{{secrets.KEY}}"}`),
			step("forward", "On", `{"url":"https://app.example.com/","retry_count":3}`)))
		e := b.capture(body)
		for claim, value := range []string{"the-second-value-of-it", "the-third-value-of-it"} { // once more than it takes to forget one
			if err := b.actions.Work(t.Context(), task(e, int64(claim+1))); !hookglass.Is(err, hookglass.CodeRateLimited) {
				t.Fatal(err)
			}
			_, err := b.actions.UpdateSecret(t.Context(), b.who, b.owner.Workspace.ID, secret.ID, action.SecretDraft{Value: &value})
			must(t, err)
		}
		must(t, b.actions.Work(t.Context(), task(e, 3)))
		run := b.runs(a)[0]
		wantOutcome(t, run, "completed send=completed on=completed")
		if summary := string(run.Steps[1].Summary); !strings.Contains(summary, "got {{secrets.KEY}} and {{secrets.KEY}}") {
			t.Errorf("the trace is %s", summary)
		}
	})
}

// Secrets are opened when they have changed, and not for each event.
func TestSecretsThatNoStepNamesAreOpenedOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for _, name := range []string{"A", "B", "C"} {
			b.secret(name, "a value of "+name)
		}
		sealer := &countingSealer{Sealer: b.keys}
		b.actions = action.New(b.db, action.Config{Client: b.net, Sealer: sealer, Log: slog.New(slog.DiscardHandler)})
		a := b.create(draft("Mark", step("tag", "Mark", `{"tag":"t"}`)))
		for range 5 {
			b.work(b.capture(body))
		}
		if n := sealer.opened.Load(); n != 3 || len(b.runs(a)) != 5 {
			t.Errorf("three secrets were opened %d times for %d runs", n, len(b.runs(a)))
		}
	})
}

type countingSealer struct {
	action.Sealer
	opened atomic.Int64
}

func (s *countingSealer) Open(sealed []byte, where string) ([]byte, error) {
	s.opened.Add(1)
	return s.Sealer.Open(sealed, where)
}

// What a sender put under a name that tells of a credential is in no trace either, wherever in its answer a target puts
// it.
func TestSensitiveFieldsThatTargetsAnswerAreNotKept(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.net.respond = func(int, outbound.Request) (*outbound.Response, error) {
			return answer(200, "got hunter2-hunter2 and 4711-0815 and 12345678 for ada-lovelace, by token-in-query, pin 1234"), nil
		}
		a := b.create(draft("Echo", step("forward", "On", `{"url":"https://app.example.com/","retry_count":0}`)))
		e := b.capture(`{"user":"ada-lovelace","password":"hunter2-hunter2","credentials":{"card":["4711-0815"],"id":12345678},"passcode":"1234"}`,
			func(e *hookglass.Event) { e.RawQuery = "access_token=token-in-query" })
		b.work(e)
		run := b.runs(a)[0]
		wantOutcome(t, run, "completed on=completed")
		const want = "got [redacted] and [redacted] and [redacted] for ada-lovelace, by [redacted], pin 1234"
		if summary := string(run.Steps[0].Summary); !strings.Contains(summary, want) {
			t.Errorf("the trace is %s", summary)
		}
	})
}

// A preview hides what a sender put under a sensitive name wherever a step puts it, and tells of each place, of a
// forward too.
func TestPreviewsTellOfWhatTheyHide(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		d := draft("Show",
			step("forward", "On", `{"url":"https://app.example.com/","append_query":true}`),
			step("transform", "Bare", `{"source":"request","operations":[{"op":"pick","fields":{"a":"/body/password","b":"/query/access_token","c":"/body/user"}}]}`),
			step("http_request", "Send", `{"url":"https://{{request.body.password}}.example.com/","headers":{"X-Plain":"{{request.body.password}}"},"body":"p={{request.body.password}}"}`))
		d.Conditions = &[]action.ConditionDraft{{Field: "request_path", Operator: "exists"}}
		a := b.create(d)
		e := b.capture(`{"user":"ada-lovelace","password":"hunter2-hunter2"}`, func(e *hookglass.Event) {
			e.Path, e.RawQuery = "/reset/hunter2-hunter2", "access_token=token-in-query"
			e.Headers = append(e.Headers, hookglass.Header{Name: "Authorization", Value: "Bearer of-the-sender"})
		})
		p, err := b.actions.Preview(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID))
		must(t, err)
		const want = "[{on /url} {on /header_list/2/1} {bare /a} {bare /b} {send /url} {send /headers/X-Plain} {send /body}]"
		if got := fmt.Sprint(p.Sensitive); got != want {
			t.Errorf("blotted out: %s, want %s", got, want)
		}
		shown := p.Trigger.Conditions[0].Actual
		for _, st := range p.Steps {
			shown += string(st.Output) + string(st.Rendered)
		}
		for _, hidden := range []string{"hunter2", "token-in-query", "of-the-sender"} {
			if strings.Contains(shown, hidden) {
				t.Errorf("the preview shows %s: %s", hidden, shown)
			}
		}
		if !strings.Contains(shown, "ada-lovelace") {
			t.Errorf("the preview hides what is not sensitive: %s", shown)
		}
		b.work(e)
		if run := b.runs(a)[0]; strings.Contains(string(run.Steps[2].Summary), "hunter2") {
			t.Errorf("the trace is %s", run.Steps[2].Summary)
		}
	})
}

// So it does of a body that is read as a text, since it is no JSON as a whole, and of JSON that stands in a string.
func TestPreviewsHideWhatATextHolds(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Show", step("http_request", "Send",
			`{"url":"https://app.example.com/?x={{request.body}}","headers":{"X-Body":"{{request.body}}"},"body":"all: {{request.body}}"}`)))
		for _, body := range []string{
			`{"user":"ada-lovelace","cut":"\ud83d","password":"hunter2-hunter2","token":"abc/def?ghi"}`,
			`{"user":"ada-lovelace","n":1,"n":2,"password":"hunter2-hunter2","token":"abc\/def?ghi"}`,
			`{"user":"ada-lovelace","Message":"{\"password\":\"hunter2-hunter2\",\"token\":\"abc/def?ghi\"}"}`,
			`user=ada-lovelace&password=hunter2-hunter2&token=abc%2Fdef%3Fghi`,
		} {
			e := b.capture(body)
			p, err := b.actions.Preview(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID))
			must(t, err)
			if got := fmt.Sprint(p.Sensitive); got != "[{send /url} {send /headers/X-Body} {send /body}]" {
				t.Errorf("%s: blotted out: %s", body, got)
			}
			shown := string(p.Steps[0].Rendered)
			if strings.Contains(shown, "hunter2") || strings.Contains(shown, "ghi") || !strings.Contains(shown, "ada-lovelace") {
				t.Errorf("%s: the preview shows %s", body, shown)
			}
		}
	})
}

// A request that is larger than what is shown is still a request, with the places that are blotted out.
func TestAPreviewOfALargeRequestKeepsItsShape(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.secret("KEY", canary)
		a := b.create(draft("Large", step("http_request", "Send",
			`{"url":"https://crm.example.com/","headers":{"X-Key":"{{secrets.KEY}}","X-Long":"{{request.body.long}}"},"body":"{{request.body.text}}"}`)))
		e := b.capture(`{"long":"` + strings.Repeat("h", 9000) + `","text":"` + strings.Repeat("é", 100_000) + `"}`)
		p, err := b.actions.Preview(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID))
		must(t, err)
		var shown struct {
			Method, URL, Body string
			Headers           map[string]string
		}
		st := p.Steps[0]
		if err := json.Unmarshal(st.Rendered, &shown); err != nil || !st.Truncated || len(st.Rendered) > 64<<10 {
			t.Fatalf("%d bytes, truncated %v: %v", len(st.Rendered), st.Truncated, err)
		}
		if shown.Method != "POST" || shown.Headers["X-Key"] != "{{secrets.KEY}}" || !strings.HasPrefix(shown.Headers["X-Long"], "hhh") || strings.Trim(shown.Body, "é") != "" || shown.Body == "" {
			t.Errorf("%s %v, a body of %d bytes", shown.Method, shown.Headers, len(shown.Body))
		}
		if got := fmt.Sprint(p.Sensitive); got != "[{send /headers/X-Key}]" {
			t.Errorf("blotted out: %s", got)
		}
	})
}
