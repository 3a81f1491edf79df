package action_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
)

const body = `{"action":"opened","id":12345678901234567890,"user":{"name":"Ada"}}`

func TestEveryStepTypeDoesItsWork(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.secret("CRM", "s3cr3t-value")
		channel := hookglass.Channel{ID: hookglass.NewSortableID(hookglass.PrefixChannel, time.Now()), WorkspaceID: b.owner.Workspace.ID, Name: "Ops", Kind: "webhook", Enabled: true, Sealed: []byte{}}
		must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.CreateChannel(&channel) }))
		a := b.create(draft("All",
			step("transform", "Shape it!", `{"source":"request","operations":[{"op":"select","path":"/body"},{"op":"remove","path":"/user"},{"op":"wrap","key":"event"}]}`),
			step("http_request", "Tell CRM", `{"url":"https://crm.example.com/{{request.body.action}}","headers":{"Authorization":"Bearer {{secrets.CRM}}"},"body":"{\"v\":{{steps.shape_it.output}}}"}`),
			step("forward", "Pass on", `{"url":"https://app.example.com/base","append_path":true,"append_query":true}`),
			step("notify", "Ping", `{"channel":"Ops","message":"{{event_type}} at {{endpoint_name}}"}`),
			step("tag", "Mark", `{"tag":"seen"}`, on("steps.tell_crm", "/output/body/ok", "equals", "true")),
			step("ignore", "Hide", `{"reason":"test"}`),
			step("tag", "Never", `{"tag":"never"}`, on("request", "/body/action", "equals", `"closed"`)),
		))
		e := b.capture(body)
		b.work(e)
		run := b.runs(a)[0]
		wantOutcome(t, run, "completed shape_it=completed tell_crm=completed pass_on=completed ping=completed mark=completed hide=completed never=skipped(condition_false)")

		sent := b.net.requests()
		if len(sent) != 2 {
			t.Fatalf("%d requests went out, want 2", len(sent))
		}
		crm, app := sent[0], sent[1]
		if crm.Method != "POST" || crm.URL != "https://crm.example.com/opened" || crm.Headers.Get("Authorization") != "Bearer s3cr3t-value" ||
			crm.Headers.Get("Content-Type") != "application/json" || string(crm.Body) != `{"v":{"event":{"action":"opened","id":12345678901234567890}}}` {
			t.Errorf("http_request sent %s %s %v %s", crm.Method, crm.URL, crm.Headers, crm.Body)
		}
		if app.Method != "POST" || app.URL != "https://app.example.com/base/in?a=1" || string(app.Body) != body || app.Headers.Get("X-Service-Original-Request") != string(e.ID) {
			t.Errorf("forward sent %s %s %v %s", app.Method, app.URL, app.Headers, app.Body)
		}
		now := b.event(e)
		if strings.Join(now.Tags, ",") != "seen" || now.Ignored != "test" {
			t.Errorf("the event has the tags %v and is ignored for %q", now.Tags, now.Ignored)
		}
		must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			held, err := tx.HoldChannel(channel.Num, time.Now().Add(time.Hour), time.Minute)
			if err != nil {
				return err
			}
			waiting, _, err := tx.Waiting(held, 10)
			if err == nil && (len(waiting) != 1 || waiting[0].Message.Text != "push at Payments") {
				t.Errorf("the channel has %+v", waiting)
			}
			return err
		}))
	})
}

func TestAnEventThatDoesNotMatchLeavesNoRun(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		d := draft("Pulls", step("tag", "Mark", `{"tag":"pull"}`))
		value := "pull_request"
		d.Conditions = &[]action.ConditionDraft{{Field: "event_type", Operator: "equals", Value: &value}}
		a := b.create(d)
		e := b.capture(body)
		b.work(e)
		if runs := b.runs(a); len(runs) != 0 || len(b.event(e).Tags) != 0 {
			t.Errorf("there are %d runs, and the tags %v", len(runs), b.event(e).Tags)
		}
	})
}

// Actions run one after another by position: a later one sees what an earlier one did to the event.
// An action runs on what is captured from its creation on, also where events wait.
func TestAnActionDoesNotRunOnEventsThatCameBeforeIt(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		present := b.create(draft("Present", step("tag", "Mark", `{"tag":"one"}`)))
		waited := b.capture(body)
		time.Sleep(time.Millisecond)
		added := b.create(draft("Added", step("tag", "Mark", `{"tag":"two"}`)))
		b.work(waited)
		if len(b.runs(present)) != 1 || len(b.runs(added)) != 0 {
			t.Errorf("of an event that waited there are %d runs of the action that was there, and %d of the one that came", len(b.runs(present)), len(b.runs(added)))
		}
		wantOutcome(t, b.ran(added, body), "completed mark=completed")
		again, err := b.actions.Rerun(t.Context(), b.who, string(b.ep.ID), added.ID, string(waited.ID), "")
		must(t, err)
		must(t, b.actions.ExecuteRun(t.Context(), again.ID))
		wantOutcome(t, b.runs(added)[0], "completed mark=completed") // who asks for it gets it
	})
}

func TestActionsRunByPosition(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		value := "first"
		second := draft("Second", step("tag", "Two", `{"tag":"second"}`))
		second.Conditions = &[]action.ConditionDraft{{Field: "has_tag", Operator: "equals", Value: &value}}
		after := b.create(second)
		position := int64(1)
		first := draft("First", step("tag", "One", `{"tag":"first"}`))
		first.Position = &position
		b.create(first)
		run := b.ran(after, body)
		wantOutcome(t, run, "completed two=completed")
		if len(run.Trigger.Conditions) != 1 || !run.Trigger.Matched || run.Trigger.Conditions[0].Actual != "first" {
			t.Errorf("the trigger is %+v", run.Trigger)
		}
	})
}

func TestFailurePolicies(t *testing.T) {
	bad := func(name string) action.StepDraft {
		return step("http_request", name, `{"url":"https://crm.example.com/","body":"{{request.body.nothing}}"}`)
	}
	tag := func(name string) action.StepDraft { return step("tag", name, `{"tag":"t"}`) }
	for name, c := range map[string]struct {
		steps  []action.StepDraft
		policy string
		want   string
	}{
		"continue":               {[]action.StepDraft{bad("A"), tag("B")}, "continue", "failed a=failed(template_error) b=completed"},
		"stop":                   {[]action.StepDraft{bad("A"), tag("B"), tag("C")}, "stop", "stopped a=failed(template_error) b=stopped c=stopped"},
		"a step's own":           {[]action.StepDraft{stopping(bad("A")), tag("B")}, "continue", "stopped a=failed(template_error) b=stopped"},
		"stop at the last":       {[]action.StepDraft{tag("A"), bad("B")}, "stop", "stopped a=completed b=failed(template_error)"},
		"a condition's source":   {[]action.StepDraft{step("tag", "A", `{"tag":"t"}`, on("email", "/from", "exists", "")), tag("B")}, "continue", "failed a=failed(condition_error) b=completed"},
		"a failed step's output": {[]action.StepDraft{bad("A"), step("tag", "B", `{"tag":"t"}`, on("steps.a", "/status", "equals", `"failed"`))}, "continue", "failed a=failed(template_error) b=completed"},
		"nothing fails":          {[]action.StepDraft{tag("A")}, "stop", "completed a=completed"},
		"no steps":               {nil, "stop", "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b *bench) {
				d := draft("Policy", c.steps...)
				d.FailurePolicy = &c.policy
				wantOutcome(t, b.ran(b.create(d), body), c.want)
				if n := len(b.net.requests()); n != 0 {
					t.Errorf("%d requests were sent by a step whose template fails", n)
				}
			})
		})
	}
}

func TestANotifyStepContinuesUnlessItSaysOtherwise(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		channel := hookglass.Channel{ID: hookglass.NewSortableID(hookglass.PrefixChannel, time.Now()), WorkspaceID: b.owner.Workspace.ID, Name: "Ops", Kind: "webhook", Enabled: true, Sealed: []byte("x")}
		must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.CreateChannel(&channel) }))
		stop := "stop"
		d := draft("Gone", step("notify", "Ping", `{"channel":"`+channel.ID+`"}`), step("tag", "Mark", `{"tag":"t"}`))
		d.FailurePolicy = &stop
		a := b.create(d)
		must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			_, err := tx.ChangeChannel(channel.ID, func(c *hookglass.Channel) (bool, error) { c.Enabled = false; return false, nil })
			return err
		}))
		wantOutcome(t, b.ran(a, body), "failed ping=failed(notify_failed) mark=completed")
		must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { _, err := tx.DeleteChannel(channel.ID); return err }))
		wantOutcome(t, b.ran(a, body), "failed ping=failed(channel_not_found) mark=completed")
	})
}

// A body of JSON is said to be that, unless the step says what it is.
func TestTheContentTypeOfARequestIsTheStepsOwn(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.ran(b.create(draft("Types",
			step("http_request", "Unsaid", `{"url":"https://a.example.com/","body":"[1]"}`),
			step("http_request", "Said", `{"url":"https://a.example.com/","headers":{"content-type":"application/vnd.api+json"},"body":"[1]"}`),
			step("http_request", "Text", `{"url":"https://a.example.com/","body":"one"}`),
		)), body)
		var types []string
		for _, sent := range b.net.requests() {
			types = append(types, strings.Join(sent.Headers.Values("Content-Type"), " and "))
		}
		if got := strings.Join(types, ", "); got != "application/json, application/vnd.api+json, " {
			t.Errorf("sent as %q", got)
		}
	})
}

func TestHTTPRequestAnswers(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.net.respond = func(_ int, r outbound.Request) (*outbound.Response, error) {
			switch {
			case strings.HasSuffix(r.URL, "/moved"):
				return answer(302, ""), nil
			case strings.HasSuffix(r.URL, "/teapot"):
				return answer(418, "\ufeff"+`{"why":"tea"}`), nil // as some frameworks begin their JSON
			case strings.HasSuffix(r.URL, "/broken"):
				return answer(200, `{"why":`), nil
			case strings.HasSuffix(r.URL, "/refused"):
				return nil, &outbound.Failure{Code: outbound.CodeConnectionRefused, Message: "refused"}
			}
			return answer(204, ""), nil
		}
		a := b.create(draft("Answers",
			step("http_request", "Fine", `{"url":"https://a.example.com/fine"}`),
			step("http_request", "Moved", `{"url":"https://a.example.com/moved"}`),
			step("http_request", "Teapot", `{"url":"https://a.example.com/teapot"}`),
			step("http_request", "Broken", `{"url":"https://a.example.com/broken"}`),
			step("http_request", "Refused", `{"url":"https://a.example.com/refused"}`),
			step("tag", "Why", `{"tag":"tea"}`, on("steps.teapot", "/output/body/why", "equals", `"tea"`)),
			step("tag", "As text", `{"tag":"text"}`, on("steps.broken", "/output/body", "equals", `"{\"why\":"`)),
		))
		wantOutcome(t, b.ran(a, body), "failed fine=completed moved=failed(http_status) teapot=failed(http_status) broken=completed refused=failed(connection_refused) why=completed as_text=completed")
		if n := len(b.net.requests()); n != 5 {
			t.Errorf("%d requests, want 5: none is repeated and no redirect followed", n)
		}
	})
}

// The tag of a step exists once the step does. An event takes no more tags than it may have, but those that it has.
func TestTagsOfSteps(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Marks", step("tag", "Known", `{"tag":"t-07"}`), step("tag", "More", `{"tag":"more"}`)))
		must(t, b.db.View(t.Context(), b.who, func(v *store.View) error {
			tags, err := v.Tags(b.ep.WorkspaceID, 0, 10)
			if len(tags) != 2 {
				t.Errorf("before a run there are the tags %v", tags)
			}
			return err
		}))
		e := b.capture(body)
		must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			for i := range hookglass.MaxEventTags {
				if _, err := tx.TagEvent(string(b.ep.ID), string(e.ID), fmt.Sprintf("t-%02d", i)); err != nil {
					return err
				}
			}
			return nil
		}))
		e = b.event(e)
		b.work(e)
		wantOutcome(t, b.runs(a)[0], "failed known=completed more=failed(validation_failed)")
		if n := len(b.event(e).Tags); n != hookglass.MaxEventTags {
			t.Errorf("the event has %d tags", n)
		}
	})
}

// A transform fails where its source or its place is not there, and where a template finds nothing.
func TestTransformsThatFail(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Shapes",
			step("transform", "Mail", `{"source":"email","operations":[{"op":"select","path":""}]}`),
			step("transform", "Place", `{"source":"request","operations":[{"op":"select","path":"/body/nowhere"}]}`),
			step("transform", "Text", `{"source":"request","operations":[{"op":"set","path":"/x","template":"{{ request.body.nowhere }}"}]}`),
		))
		wantOutcome(t, b.ran(a, body), "failed mail=failed(transform_error) place=failed(transform_error) text=failed(template_error)")
	})
}

// What a step reads of all earlier steps at once is there as well, also when the run waited before it.
func TestATransformOfAllSteps(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.net.respond = func(n int, _ outbound.Request) (*outbound.Response, error) {
			if n == 1 {
				return answer(503, ""), nil
			}
			return answer(200, ""), nil
		}
		a := b.create(draft("Whole",
			step("transform", "Shape", `{"source":"request","operations":[{"op":"select","path":"/body/action"}]}`),
			step("forward", "On", `{"url":"https://a.example.com/"}`),
			step("transform", "All", `{"source":"request","operations":[{"op":"set","path":"/all","from":"/steps"},{"op":"select","path":"/all/shape/output"}]}`),
			step("tag", "Mark", `{"tag":"t"}`, on("steps.all", "/output", "equals", `"opened"`)),
		))
		wantOutcome(t, b.ran(a, body), "completed shape=completed on=completed all=completed mark=completed")
	})
}

// A mail's texts are what people read of it.
func TestAnActionReadsTheTextOfAMail(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Mail", step("tag", "Mark", `{"tag":"t"}`, on("email", "/text", "contains", `"grüße"`))))
		b.work(b.capture("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nZ3LDvMOfZQ==\r\n", func(e *hookglass.Event) {
			e.ID, e.Type, e.Method = hookglass.NewEventID(hookglass.EventEmail, e.ReceivedAt), hookglass.EventEmail, "EMAIL"
		}))
		wantOutcome(t, b.runs(a)[0], "completed mark=completed")
	})
}

// An answer that is longer once it is decompressed is cut as any other, and says so.
func TestAnAnswerThatIsLongOnceItIsDecompressed(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := w.Write(make([]byte, 2<<20))
		must(t, errors.Join(err, w.Close()))
		b.net.respond = func(int, outbound.Request) (*outbound.Response, error) {
			return &outbound.Response{Status: 200, Body: packed.Bytes(), Headers: hookglass.Headers{{Name: "Content-Encoding", Value: "gzip"}}}, nil
		}
		a := b.create(draft("Long",
			step("http_request", "Ask", `{"url":"https://a.example.com/"}`),
			step("tag", "Cut", `{"tag":"cut"}`, on("steps.ask", "/output/truncated", "equals", `true`)),
		))
		wantOutcome(t, b.ran(a, body), "completed ask=completed cut=completed")
	})
}

// A sender does not choose another place of the target than is configured.
func TestPathsDoNotLeadElsewhere(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Users",
			step("http_request", "End", `{"method":"DELETE","url":"https://a.example.com/users/{{request.body.id}}/sessions"}`),
			step("forward", "On", `{"url":"https://a.example.com/base","append_path":true}`)))
		e := b.capture(`{"id":".."}`, func(e *hookglass.Event) { e.Path = "/%2e%2E/admin" })
		b.work(e)
		wantOutcome(t, b.runs(a)[0], "failed end=failed(template_error) on=failed(template_error)")
		p, err := b.actions.Preview(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID))
		must(t, err)
		for _, st := range p.Steps {
			if st.Failure == nil || st.Failure.Code != hookglass.FailureTemplate {
				t.Errorf("the preview of %s is %s", st.ReferenceKey, st.Rendered)
			}
		}
		if sent := b.net.requests(); len(sent) != 0 {
			t.Errorf("%s was sent", sent[0].URL)
		}
	})
}

// A preview judges where a request would go as sending it does.
func TestAPreviewSaysThatATargetWouldBeRefused(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		out := outbound.New(outbound.Config{})
		b.net.respond = func(_ int, r outbound.Request) (*outbound.Response, error) {
			if out.Check("url", r.URL) != nil {
				return out.Do(t.Context(), r) // refused before the network
			}
			return answer(200, "{}"), nil
		}
		b.secret("HOST", "internal.example.com")
		a := b.create(draft("Where",
			step("http_request", "Inside", `{"url":"http://{{request.body.host}}/a?k={{secrets.HOST}}"}`),
			step("http_request", "Whole", `{"url":"{{request.body.url}}"}`),
			step("http_request", "Fine", `{"url":"https://{{request.body.fine}}/{{secrets.HOST}}"}`),
			step("http_request", "Secret", `{"url":"https://{{secrets.HOST}}/"}`),
			step("http_request", "Port", `{"url":"https://example.com:{{secrets.HOST}}/"}`),
		))
		e := b.capture(`{"host":"169.254.169.254","url":"ftp://example.com/","fine":"example.com"}`)
		p, err := b.actions.Preview(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID))
		must(t, err)
		if n := len(b.net.requests()); n != 0 {
			t.Errorf("a preview sent %d requests", n)
		}
		b.work(e)
		run := b.runs(a)[0]
		for i, want := range []string{"target_not_allowed", "invalid_request", "", ""} {
			previewed, ran := p.Steps[i], run.Steps[i]
			var code string
			if previewed.Failure != nil {
				code = previewed.Failure.Code
			}
			if code != want || previewed.Status != ran.Status || want != "" && *previewed.Failure != *ran.Failure {
				t.Errorf("%s: the preview says %s %+v, the run %s %+v", previewed.ReferenceKey, previewed.Status, previewed.Failure, ran.Status, ran.Failure)
			}
			if !strings.Contains(string(previewed.Rendered), `"url":`) {
				t.Errorf("%s: what would be sent is not shown: %s", previewed.ReferenceKey, previewed.Rendered)
			}
		}
		if last := p.Steps[4]; last.Failure != nil {
			t.Errorf("of a port that is a secret a preview knows nothing: %+v", last.Failure)
		}
	})
}

// Null is a value where JSON is filled in; a value that is not there is none.
func TestNullIsFilledIntoJSON(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Null",
			step("transform", "Shape", `{"source":"request","operations":[{"op":"select","path":"/body"}]}`),
			step("transform", "Pick", `{"source":"request","operations":[{"op":"select","path":"/body/c"}]}`),
			step("http_request", "Send", `{"url":"https://a.example.com/","body":"{\"c\":{{request.body.c}},\"s\":{{steps.shape.output.c}},\"p\":{{steps.pick.output}}}"}`),
			step("http_request", "Text", `{"url":"https://a.example.com/","body":"{\"c\":\"{{request.body.c}}\"}"}`),
			step("http_request", "None", `{"url":"https://a.example.com/","body":"{\"c\":{{request.body.d}}}"}`)))
		wantOutcome(t, b.ran(a, `{"c":null}`), "failed shape=completed pick=completed send=completed text=failed(template_error) none=failed(template_error)")
		if sent := b.net.requests(); len(sent) != 1 || string(sent[0].Body) != `{"c":null,"s":null,"p":null}` {
			t.Errorf("sent was %+v", sent)
		}
	})
}

// What has changed when an attempt is made again does not undo a step that was begun.
func TestTheConditionsOfAStepAreJudgedOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.net.respond = func(n int, _ outbound.Request) (*outbound.Response, error) {
			if n > 1 {
				return answer(200, "ok"), nil
			}
			return answer(503, "later"), b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				e, err := tx.Endpoint(string(b.ep.ID))
				if err != nil {
					return err
				}
				e.Name = "Another"
				return tx.SaveEndpoint(&e)
			})
		}
		a := b.create(draft("Forward", step("forward", "On", `{"url":"https://app.example.com/x","retry_count":1}`, on("endpoint", "/name", "equals", `"Payments"`))))
		wantOutcome(t, b.ran(a, body), "completed on=completed")
		if n := len(b.net.requests()); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
	})
}

// A step that the deadline of the action cuts says so, as the steps say that come after it; a step that had its own
// time says that the target did not answer.
func TestAStepThatTheDeadlineCutSaysSo(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.net.respond = func(int, outbound.Request) (*outbound.Response, error) {
			return nil, &outbound.Failure{Code: outbound.CodeTimeout, Message: "The target did not answer in the time allowed.", Sent: outbound.MaybeSent}
		}
		forward := b.create(draft("Forward", step("forward", "On", `{"url":"https://app.example.com/x","retry_count":0}`), step("tag", "Mark", `{"tag":"late"}`)))
		wantOutcome(t, b.ran(forward, body), "failed on=failed(timeout) mark=completed")
		must(t, b.actions.Delete(t.Context(), b.who, string(b.ep.ID), forward.ID))
		b.actions.SetDeadline(25 * time.Second)
		forward = b.create(draft("Forward", step("forward", "On", `{"url":"https://app.example.com/x","retry_count":0}`), step("tag", "Mark", `{"tag":"late"}`)))
		run := b.ran(forward, body)
		wantOutcome(t, run, "stopped on=failed(deadline_exceeded) mark=stopped")
		if attempts, _ := json.Marshal(summaryOf(t, run, 0)["attempts"]); !strings.Contains(string(attempts), `"code":"timeout"`) {
			t.Errorf("the attempt says %s", attempts)
		}
		must(t, b.actions.Delete(t.Context(), b.who, string(b.ep.ID), forward.ID))
		request := b.create(draft("Ask", step("http_request", "Ask", `{"method":"GET","url":"https://app.example.com/x","timeout_seconds":30}`)))
		wantOutcome(t, b.ran(request, body), "failed ask=failed(deadline_exceeded)")
	})
}

// What a forward step sends of a mail says whether it is from whom it claims to be. A person does not wait for that,
// and nothing waits for a verdict that does not come.
func TestTheActionsOfAMailWaitForItsVerdict(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Forward", step("forward", "On", `{"url":"https://app.example.com/x"}`)))
		mail := func(received time.Time) *hookglass.Event {
			return b.event(b.capture("Subject: Hi\r\n\r\nHi", func(e *hookglass.Event) {
				e.ID, e.Type, e.Method, e.ReceivedAt = hookglass.NewEventID(hookglass.EventEmail, received), hookglass.EventEmail, "EMAIL", received
				e.Payload.Reply, e.Payload.Envelope = nil, &hookglass.Envelope{Protocol: "ESMTP"}
			}))
		}
		sent := func(n int, want string) {
			t.Helper()
			seen := b.net.requests()
			if len(seen) != n || !strings.Contains(string(seen[n-1].Body), `"authentication":{"spf":"`+want+`"`) {
				t.Errorf("sent: %+v, want %d, the last with %s", seen, n, want)
			}
		}
		now := time.Now().UTC().Truncate(time.Microsecond)
		e := mail(now)
		var coded *hookglass.Error
		if err := b.actions.Work(t.Context(), task(e, 1)); !errors.As(err, &coded) || coded.Code != hookglass.CodeRateLimited || coded.RetryAfter <= 0 || coded.RetryAfter > time.Second {
			t.Fatalf("got %v, want to be called again soon", err)
		}
		if len(b.net.requests()) != 0 || len(b.runs(a)) != 0 {
			t.Fatal("it did not wait")
		}
		again, err := b.actions.Rerun(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID), "")
		must(t, err)
		must(t, b.actions.ExecuteRun(t.Context(), again.ID))
		sent(1, "pending")

		must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			return tx.SetVerdicts([]store.Verdict{{EndpointNum: e.EndpointNum, EventSeq: e.Seq, Results: hookglass.Authentication{SPF: "pass", DKIM: "pass", DMARC: "pass"}, Details: []byte("{}")}})
		}))
		must(t, b.actions.Work(t.Context(), task(b.event(e), 2)))
		sent(2, "pass")

		must(t, b.actions.Work(t.Context(), task(mail(now.Add(-31*time.Second)), 1))) // though it came before the action, which does not run on it
	})
}

// While a step waits for its turn to send nothing is sent or said to be, and its target has all of its time afterwards.
func TestAStepWaitsForItsTurnToSend(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Wait", step("http_request", "Send", `{"url":"https://a.example.com/","timeout_seconds":3}`), step("forward", "On", `{"url":"https://b.example.com/","timeout_seconds":7}`)))
		var asked []int64
		none := true
		b.net.turn = func(line int64) error {
			asked = append(asked, line)
			if none {
				return &outbound.Failure{Code: outbound.CodeBusy, Message: "Nobody ends.", Sent: outbound.NotSent}
			}
			return nil
		}
		e := b.capture(body)
		if err := b.actions.Work(t.Context(), task(e, 1)); !hookglass.Is(err, hookglass.CodeRateLimited) {
			t.Fatal(err)
		}
		// The node dies, and another takes over: what was never sent is no request that may have been.
		none = false
		must(t, b.node(b.net).Work(t.Context(), task(e, 2)))
		wantOutcome(t, b.runs(a)[0], "completed send=completed on=completed")
		sent := b.net.requests()
		if len(sent) != 2 || sent[0].Timeout != 3*time.Second || sent[1].Timeout != 7*time.Second {
			t.Errorf("sent %+v", sent)
		}
		if want := []int64{b.ep.Num, b.ep.Num, b.ep.Num}; !slices.Equal(asked, want) {
			t.Errorf("turns of the lines %v were asked for, not %v", asked, want)
		}
	})
}

// What is changed while an earlier action runs holds for those after it: each runs as it is when its run starts.
func TestAnActionRunsAsItIsWhenItsRunStarts(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		send := func(name, path string) action.Draft {
			return draft(name, step("http_request", "Send", `{"url":"https://a.example.com/`+path+`"}`))
		}
		b.create(send("Slow", "slow"))
		disabled, deleted, changed := b.create(send("Disabled", "disabled")), b.create(send("Deleted", "deleted")), b.create(send("Changed", "old"))
		b.net.respond = func(n int, _ outbound.Request) (*outbound.Response, error) {
			if n == 1 {
				off, now := false, send("Changed", "new")
				_, err := b.actions.Update(t.Context(), b.who, string(b.ep.ID), disabled.ID, action.Draft{Enabled: &off})
				must(t, err)
				must(t, b.actions.Delete(t.Context(), b.who, string(b.ep.ID), deleted.ID))
				_, err = b.actions.Update(t.Context(), b.who, string(b.ep.ID), changed.ID, action.Draft{Steps: now.Steps})
				must(t, err)
			}
			return answer(200, "{}"), nil
		}
		b.work(b.capture(body))
		var sent []string
		for _, r := range b.net.requests() {
			sent = append(sent, r.URL)
		}
		if want := []string{"https://a.example.com/slow", "https://a.example.com/new"}; !slices.Equal(sent, want) {
			t.Errorf("sent were %q, want %q", sent, want)
		}
	})
}

// Deleting an endpoint is done when it is answered: a run under way sends nothing more.
func TestARunEndsWithItsEndpoint(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.net.respond = func(int, outbound.Request) (*outbound.Response, error) {
			if _, err := b.endpoints.Delete(t.Context(), b.who, string(b.ep.ID)); err != nil {
				t.Error(err)
			}
			return answer(200, "{}"), nil
		}
		b.create(draft("Two", step("http_request", "First", `{"url":"https://a.example.com/1"}`), step("http_request", "Second", `{"url":"https://a.example.com/2"}`),
			step("forward", "Third", `{"url":"https://a.example.com/3"}`)))
		e := b.capture(body)
		for claim := range int64(3) {
			if err := b.actions.Work(t.Context(), task(e, claim+1)); err == nil {
				t.Error("the run went on to its end")
			}
		}
		if n := len(b.net.requests()); n != 1 {
			t.Errorf("%d requests were sent, one of them before the endpoint was deleted", n)
		}
	})
}

func TestRunsOutliveTheirAction(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Short", step("tag", "Mark", `{"tag":"one"}`)))
		run := b.ran(a, body)
		must(t, b.actions.Delete(t.Context(), b.who, string(b.ep.ID), a.ID))
		must(t, b.db.View(t.Context(), b.who, func(v *store.View) error {
			kept, err := v.ActionRun(string(b.ep.ID), run.ID)
			if err == nil && kept.ActionID != a.ID {
				t.Errorf("the run is %+v", kept)
			}
			return err
		}))
	})
}

// What lapses stays saved, but does not run (spec, Actions rule 3).
func TestStepsThatThePlanNoLongerAllowsDoNotRun(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Lapsed",
			step("forward", "On", `{"url":"https://a.example.com/"}`),
			step("transform", "Shape", `{"source":"request","operations":[{"op":"select","path":"/body"}]}`),
			step("http_request", "Send", `{"url":"https://a.example.com/"}`), step("tag", "Mark", `{"tag":"t"}`)))
		for _, c := range []struct {
			plan hookglass.Plan
			sub  hookglass.Subscription
			want string
		}{
			{hookglass.PlanBusiness, hookglass.SubscriptionTrialing, "failed on=failed(subscription_required) shape=completed send=failed(subscription_required) mark=completed"},
			{hookglass.PlanPro, hookglass.SubscriptionActive, "failed on=completed shape=failed(plan_required) send=failed(plan_required) mark=completed"},
		} {
			b.plan(c.plan, c.sub)
			wantOutcome(t, b.ran(a, body), c.want)
			p, err := b.actions.Preview(t.Context(), b.who, string(b.ep.ID), a.ID, string(b.capture(body).ID))
			must(t, err)
			for i, st := range p.Steps {
				code := ""
				if st.Failure != nil {
					code = "(" + st.Failure.Code + ")"
				}
				if told := fmt.Sprintf(" %s=%s%s", st.ReferenceKey, st.Status, code); !strings.Contains(c.want, told) {
					t.Errorf("the preview of step %d says%s, and a run %s", i, told, c.want)
				}
			}
		}
		n := len(b.runs(a))
		b.plan(hookglass.PlanFree, hookglass.SubscriptionNone)
		b.work(b.capture(body))
		if len(b.runs(a)) != n {
			t.Error("an action ran on the free plan")
		}
	})
}

// Step composition is of the Business plan (spec, "Plan limits").
func TestStepsThatLookAtEarlierOnesNeedBusiness(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		mark := step("tag", "Mark", `{"tag":"t"}`)
		after := step("tag", "After", `{"tag":"u"}`, action.StepConditionDraft{Source: "steps.mark", Path: new("/status"), Operator: "equals", Value: []byte(`"completed"`)})
		a := b.create(draft("Composed", mark, after))
		wantOutcome(t, b.ran(a, body), "completed mark=completed after=completed")
		b.plan(hookglass.PlanTeam, hookglass.SubscriptionActive)
		wantOutcome(t, b.ran(a, body), "failed mark=completed after=failed(plan_required)")
		ref, renamed, name, key := string(b.ep.ID), after, "Afterwards", "after"
		renamed.Name, renamed.ReferenceKey = &name, &key
		d := draft("Renamed", mark, renamed)
		if _, err := b.actions.Update(t.Context(), b.who, ref, a.ID, d); err != nil {
			t.Errorf("renamed: %v", err)
		}
		renamed.Conditions[0].Value = []byte(`"failed"`)
		if _, err := b.actions.Update(t.Context(), b.who, ref, a.ID, d); !hookglass.Is(err, hookglass.CodePlanRequired) {
			t.Errorf("reconfigured: %v", err)
		}
		if _, err := b.actions.Create(t.Context(), b.who, ref, draft("Another", mark, after)); !hookglass.Is(err, hookglass.CodePlanRequired) {
			t.Errorf("made: %v", err)
		}
		own := step("tag", "Own", `{"tag":"v"}`, action.StepConditionDraft{Source: "request", Path: new("/method"), Operator: "exists"})
		b.create(draft("Of the event", mark, own))
	})
}

func TestSummariesAreBounded(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.net.respond = func(int, outbound.Request) (*outbound.Response, error) {
			return answer(503, strings.Repeat("\x01é", 100_000)), nil
		}
		a := b.create(draft("Long", step("forward", "On", `{"url":"https://a.example.com/","retry_count":5}`)))
		run := b.ran(a, body)
		st := run.Steps[0]
		if len(st.Summary) > hookglass.MaxStepSummary || !st.Truncated || !json.Valid(st.Summary) {
			t.Errorf("the summary has %d bytes, truncated is %v", len(st.Summary), st.Truncated)
		}
	})
}

func TestAPanicInAStepFailsTheStep(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.net.respond = func(int, outbound.Request) (*outbound.Response, error) { panic(errors.New("boom")) }
		a := b.create(draft("Panic", step("http_request", "Send", `{"url":"https://a.example.com/"}`), step("tag", "Mark", `{"tag":"t"}`)))
		wantOutcome(t, b.ran(a, body), "failed send=failed(internal) mark=completed")
	})
}

// A trace shows no credential that came in JSON within a form or a string, or in a text that is no JSON as a whole, however
// a target answers with it.
func TestCredentialsInStringsOfJSON(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.net.respond = func(int, outbound.Request) (*outbound.Response, error) {
			return answer(200, "hello gIkuva97"), nil
		}
		a := b.create(draft("Forward", step("forward", "Send", `{"url":"https://a.example.com/"}`)))
		for kind, body := range map[string]string{
			"application/x-www-form-urlencoded": "payload=" + url.QueryEscape(`{"type":"block_actions","token":"gIkuva97"}`),
			"application/json":                  `{"n":1,"n":2,"credentials":{"user":"ada","last":["gIkuva97"]}}`,
			"text/plain":                        `Message: "{\"credentials\":{\"last\":\"gIkuva97\"}}"`,
		} {
			b.work(b.capture(body, func(e *hookglass.Event) { e.ContentType = kind }))
			if got := summaryOf(t, b.runs(a)[0], 0)["response_body"]; got != "hello [redacted]" {
				t.Errorf("of %s the trace shows %v", kind, got)
			}
		}
	})
}

// A sender names things as it likes; no name keeps the actions of its event from running.
func TestNamesOfNothingButMarks(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Forward", step("forward", "Send", `{"url":"https://a.example.com/"}`)))
		b.work(b.capture(`{"--":"a","_-":"b"}`, func(e *hookglass.Event) {
			e.Headers, e.RawQuery = append(e.Headers, hookglass.Header{Name: "--", Value: "c"}), "--=d"
		}))
		wantOutcome(t, b.runs(a)[0], "completed send=completed")
	})
}

// What a stopping node sent next would be cut short, and a request is not sent twice.
func TestANodeThatStopsSendsNothingMore(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		first := b.create(draft("First", step("transform", "None", `{"source":"request","operations":[{"op":"set","path":"","value":null}]}`),
			step("http_request", "One", `{"url":"https://a.example.com/1"}`), step("tag", "Mark", `{"tag":"t"}`),
			step("http_request", "Two", `{"url":"https://a.example.com/2","body":"{\"ok\":{{steps.one.output.body.ok}},\"none\":{{steps.none.output}}}"}`)))
		second := b.create(draft("Second", step("forward", "On", `{"url":"https://a.example.com/3"}`)))
		b.net.respond = func(n int, _ outbound.Request) (*outbound.Response, error) {
			if n == 1 {
				b.stop()
			}
			return answer(200, `{"ok":true}`), nil
		}
		e := b.capture(body)
		if err := b.actions.Work(t.Context(), task(e, 1)); !hookglass.Is(err, hookglass.CodeRateLimited) {
			t.Fatalf("the task ended with %v", err)
		}
		if n := len(b.net.requests()); n != 1 {
			t.Errorf("%d requests were sent", n)
		}
		b.actions = b.node(b.net) // the next start
		if err := b.actions.Work(t.Context(), task(e, 2)); err != nil {
			t.Fatal(err)
		}
		wantOutcome(t, b.runs(first)[0], "completed none=completed one=completed mark=completed two=completed")
		wantOutcome(t, b.runs(second)[0], "completed on=completed")
		if n := len(b.net.requests()); n != 3 {
			t.Errorf("%d requests were sent", n)
		}
	})
}
