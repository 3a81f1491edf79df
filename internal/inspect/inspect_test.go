package inspect_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/inspect"
)

func event(change func(*hookglass.Event)) *hookglass.Event {
	e := &hookglass.Event{
		ID: "req_00000000000000000000000000", EndpointID: "ep_00000000000000000000000000", Type: hookglass.EventWebhook, Method: "POST", Path: "/", Provider: "stripe",
		SignatureStatus: hookglass.SignatureVerified, ContentType: "application/json",
		Payload: &hookglass.Payload{Body: []byte(`{"a":1}`), Reply: &hookglass.Reply{Status: 200, Source: hookglass.SourceDefault}},
	}
	if change != nil {
		change(e)
	}
	return e
}

func TestADiagnosisNamesWhatFailedAndWhatToDo(t *testing.T) {
	verified := &inspect.Signature{Status: hookglass.SignatureVerified, Code: "verified"}
	for name, c := range map[string]struct {
		of       inspect.Case
		severity hookglass.Severity
		code     string
		next     string // of the most useful step
	}{
		"all is well": {
			inspect.Case{Event: event(nil), Signature: verified, Deliveries: []hookglass.Attempted{{Via: "target", To: "orders", State: "delivered", StatusCode: 204, Attempts: 1}}},
			hookglass.SeverityOK, "delivered", "",
		},
		"the same webhook arrived before": {
			inspect.Case{Event: event(nil), Signature: verified, Deliveries: []hookglass.Attempted{{Via: "target", To: "orders", State: "skipped", SameAs: "req_first"}}},
			hookglass.SeverityInfo, "duplicate", "dedupe_by",
		},
		"nobody got it": {inspect.Case{Event: event(nil), Signature: verified}, hookglass.SeverityInfo, "stored_only", "replay"},
		"a target that gets others": {
			inspect.Case{Event: event(nil), Signature: verified, Unmeant: []hookglass.ForwardingTarget{{Name: "orders", When: "event:invoice.*"}}},
			hookglass.SeverityInfo, "not_meant", "change the target's when",
		},
		"a signature that fails": {
			inspect.Case{Event: event(func(e *hookglass.Event) { e.SignatureStatus = hookglass.SignatureFailed }), Signature: &inspect.Signature{Status: hookglass.SignatureFailed, Code: "no_variant_matches", Message: "Nothing explains it."}},
			hookglass.SeverityProblem, "no_variant_matches", "secret",
		},
		"a signature that failed then": {
			inspect.Case{Event: event(func(e *hookglass.Event) { e.SignatureStatus = hookglass.SignatureFailed }), Signature: verified},
			hookglass.SeverityInfo, "verified_now", "judge them again",
		},
		"a target that fails": {
			inspect.Case{Event: event(nil), Signature: verified, Deliveries: []hookglass.Attempted{{Via: "target", To: "orders", State: "failed", StatusCode: 500, Attempts: 4}}},
			hookglass.SeverityProblem, "error_response", "log",
		},
		"a target that is not there": {
			inspect.Case{Event: event(nil), Signature: verified, Deliveries: []hookglass.Attempted{{Via: "tunnel", To: "http://localhost:3000", State: "failed", Failure: &hookglass.Failure{Code: "connection_refused"}, Attempts: 1}}},
			hookglass.SeverityProblem, "connection_refused", "start the handler",
		},
		"a target that is tried again": {
			inspect.Case{Event: event(nil), Signature: verified, Deliveries: []hookglass.Attempted{{Via: "target", To: "orders", State: "pending", StatusCode: 503, Attempts: 1}}},
			hookglass.SeverityInfo, "pending", "next attempt",
		},
		"a target that is paused": {
			inspect.Case{Event: event(nil), Signature: verified, Deliveries: []hookglass.Attempted{{Via: "target", To: "orders", State: "pending", Paused: hookglass.PauseFailing}}},
			hookglass.SeverityWarning, "paused", "Resume the target",
		},
		"an answer that the sender takes for a failure": {
			inspect.Case{Event: event(func(e *hookglass.Event) {
				e.Reply = &hookglass.Reply{Status: 500, Source: hookglass.SourceCustom}
			}), Signature: verified},
			hookglass.SeverityWarning, "custom_error", "2xx",
		},
		"an answer of a rule": {
			inspect.Case{Event: event(func(e *hookglass.Event) {
				e.Reply = &hookglass.Reply{Status: 401, Source: hookglass.SourceCustom, Rule: &hookglass.ReplyRule{Index: 1, When: "method:POST"}}
			}), Signature: verified},
			hookglass.SeverityWarning, "custom_error", "change the rule",
		},
		"a slow answer": {
			inspect.Case{Event: event(func(e *hookglass.Event) { e.Reply.Delay = 3 * time.Second }), Signature: verified},
			hookglass.SeverityWarning, "slow_answer", "delay_ms",
		},
		"a step that failed": {
			inspect.Case{Event: event(nil), Signature: verified, Runs: []hookglass.ActionRun{{ActionID: "act_1", Status: hookglass.ActionRunStopped, Trace: hookglass.Trace{Steps: []hookglass.StepResult{
				{ReferenceKey: "shape", Status: hookglass.StepFailed, Failure: &hookglass.Failure{Code: "transform_error", Message: "There is no /a."}},
			}}}}, Actions: map[string]string{"act_1": "CRM"}},
			hookglass.SeverityProblem, "transform_error", "preview",
		},
		"a signature that nobody checked then": {
			inspect.Case{Event: event(func(e *hookglass.Event) { e.SignatureStatus = hookglass.SignatureUnchecked }), Signature: &inspect.Signature{Status: hookglass.SignatureFailed, Code: "missing_signature", Message: "There is none."}},
			hookglass.SeverityProblem, "missing_signature", "Set a secret",
		},
		"a mail whose record cannot be read": {
			inspect.Case{Event: event(func(e *hookglass.Event) {
				e.Type, e.Reply, e.Authentication = hookglass.EventEmail, nil, hookglass.Authentication{SPF: "permerror", DKIM: "none", DMARC: "none"}
			})},
			hookglass.SeverityWarning, "authentication_failed", "records",
		},
		"a mail whose sender is not confirmed": {
			inspect.Case{Event: event(func(e *hookglass.Event) {
				e.Type, e.Reply, e.Authentication = hookglass.EventEmail, nil, hookglass.Authentication{SPF: "softfail", DKIM: "none", DMARC: "fail"}
			})},
			hookglass.SeverityWarning, "authentication_failed", "records",
		},
	} {
		d := inspect.Diagnose(c.of)
		found := false
		for _, f := range d.Findings {
			found = found || f.Code == c.code
		}
		next := strings.Join(d.Next[:min(1, len(d.Next))], "")
		if d.Severity != c.severity || !found || !strings.Contains(next, c.next) || c.next == "" && next != "" || d.Summary == "" {
			t.Errorf("%s: %+v, want %s with %s and a next step about %q", name, d, c.severity, c.code, c.next)
		}
	}
}

// In the list form nothing is known of the answer.
func TestAnEventInTheListFormIsDiagnosed(t *testing.T) {
	if d := inspect.Diagnose(inspect.Case{Event: event(func(e *hookglass.Event) { e.Payload = nil })}); d.Summary == "" {
		t.Errorf("%+v", d)
	}
}

func TestADiagnosisTellsWhatBecameOfTheRest(t *testing.T) {
	failed := hookglass.Trace{Steps: []hookglass.StepResult{{ReferenceKey: "shape", Status: hookglass.StepFailed, Failure: &hookglass.Failure{Code: "transform_error", Message: "There is no /a."}}}}
	for said, c := range map[string]inspect.Case{
		"the steps behind it were not run":         {Runs: []hookglass.ActionRun{{Status: hookglass.ActionRunStopped, Trace: failed}}},
		"the steps behind it went on":              {Runs: []hookglass.ActionRun{{Status: hookglass.ActionRunFailed, Trace: failed}}},
		"4 attempts, last answered 500.":           {Deliveries: []hookglass.Attempted{{Via: "target", To: "orders", State: "failed", StatusCode: 500, Attempts: 4}}},
		"one attempt, last failed with dns_error.": {Deliveries: []hookglass.Attempted{{Via: "target", To: "orders", State: "failed", Failure: &hookglass.Failure{Code: "dns_error"}, Attempts: 1}}},
		"The handler has no such path":             {Deliveries: []hookglass.Attempted{{Via: "target", To: "orders", State: "failed", StatusCode: 404, Attempts: 1}}},
		"its secret differs":                       {Deliveries: []hookglass.Attempted{{Via: "target", To: "orders", State: "failed", StatusCode: 401, Attempts: 1}}},
		"one attempt.":                             {Deliveries: []hookglass.Attempted{{Via: "target", To: "orders", State: "failed", Failure: &hookglass.Failure{}, Attempts: 1}}},
	} {
		c.Event, c.Signature = event(nil), &inspect.Signature{Status: hookglass.SignatureVerified, Code: "verified"}
		if d := inspect.Diagnose(c); !slices.ContainsFunc(d.Findings, func(f hookglass.Finding) bool { return strings.Contains(f.Message+" "+f.Next, said) }) {
			t.Errorf("nothing says %q: %+v", said, d.Findings)
		}
	}
}

func TestSendersSayHowTheySendAgain(t *testing.T) {
	if s := inspect.Sender("stripe"); !strings.Contains(s.Retries, "3 days") || s.Expects == "" {
		t.Errorf("stripe: %+v", s)
	}
	if s := inspect.Sender("nobody"); s.Provider != "nobody" || s.Retries != "" {
		t.Errorf("nobody: %+v", s)
	}
}

func TestEventsAreCompared(t *testing.T) {
	left := event(func(e *hookglass.Event) {
		e.RawQuery, e.Headers = "page=1&tag=a&tag=b", hookglass.Headers{{Name: "X-One", Value: "1"}, {Name: "Same", Value: "s"}}
		e.Body = []byte(`{"b":[1,2],"a":1.0,"long":"` + strings.Repeat("x", 600) + `"}`)
	})
	right := event(func(e *hookglass.Event) {
		e.ID, e.Method, e.RawQuery, e.Headers = "req_00000000000000000000000001", "PUT", "page=2&tag=b&tag=a", hookglass.Headers{{Name: "x-two", Value: "2"}, {Name: "same", Value: "s"}}
		e.Body = []byte(`{"a":1,"b":[1,3,4]}`)
	})
	c := inspect.Compare(left, right)
	paths := func(changes []hookglass.Change) string {
		var all []string
		for _, ch := range changes {
			all = append(all, ch.Path)
		}
		return strings.Join(all, " ")
	}
	if got := paths(c.Fields); got != "method" {
		t.Errorf("fields: %s", got)
	}
	if got := paths(c.Headers); got != "x-one x-two" || c.Headers[0].Right != nil || c.Headers[1].Left != nil {
		t.Errorf("headers: %s", got)
	}
	if got := paths(c.Query); got != "page tag" {
		t.Errorf("query: %s", got)
	}
	if got := paths(c.Body.Changes); c.Body.Form != "json" || got != "/b/1 /b/2 /long" { // 1.0 is 1, and the order of members says nothing
		t.Errorf("body: %s %s", c.Body.Form, got)
	}
	if last := c.Body.Changes[2]; !last.Cut || len(*last.Left) != 500 {
		t.Errorf("a long side is not cut: %d bytes", len(*last.Left))
	}
	if c.Same() || !inspect.Compare(left, left).Same() {
		t.Error("what differs is the same, or the reverse")
	}
}

func TestCompressedBodiesAreComparedAsTheyAreRead(t *testing.T) {
	with := func(text string, level int) *hookglass.Event {
		return event(func(e *hookglass.Event) {
			var b bytes.Buffer
			w, err := gzip.NewWriterLevel(&b, level)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, text); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			e.Headers, e.Body = hookglass.Headers{{Name: "Content-Encoding", Value: "gzip"}}, b.Bytes()
		})
	}
	got := inspect.Compare(with(`{"a":1}`, gzip.BestSpeed), with(`{"a":2}`, gzip.BestSpeed)).Body
	if got.Form != "json" || !got.Decoded || len(got.Changes) != 1 || got.Changes[0].Path != "/a" {
		t.Errorf("%+v", got)
	}
	got = inspect.Compare(with(`{"a":1}`, gzip.BestSpeed), with(`{"a":1}`, gzip.NoCompression)).Body
	if got.Form != "json" || got.Identical || len(got.Changes) != 0 {
		t.Errorf("one body, packed in two ways: %+v", got)
	}
	long := inspect.Compare(with(strings.Repeat("é", 1<<20)+"a", gzip.BestSpeed), with("b", gzip.BestSpeed)).Body
	if long.Form != "text" || !long.More {
		t.Errorf("a long one: %s, more %v", long.Form, long.More)
	}
	broken := with("text", gzip.BestSpeed)
	broken.Body = broken.Body[:12]
	if got := inspect.Compare(broken, with("b", gzip.BestSpeed)).Body; got.Form != "bytes" {
		t.Errorf("a damaged one: %+v", got)
	}
}

// The same text in two encodings is shown as two.
func TestEncodingsAreToldApart(t *testing.T) {
	with := func(value string) *hookglass.Event {
		return event(func(e *hookglass.Event) {
			e.Path, e.RawQuery, e.Headers = "/"+value, "q="+value, hookglass.Headers{{Name: "X-Place", Value: value}}
		})
	}
	c := inspect.Compare(with("caf\xe9"), with("café"))
	for _, change := range append(append(c.Fields, c.Headers...), c.Query...) {
		if !strings.HasSuffix(*change.Left, `caf\xe9`) || !strings.HasSuffix(*change.Right, "café") {
			t.Errorf("%s: %s and %s", change.Path, *change.Left, *change.Right)
		}
	}
	if len(c.Fields) != 1 || len(c.Headers) != 1 || len(c.Query) != 1 {
		t.Errorf("%+v", c)
	}
	if other := inspect.Compare(with("caf\xe9"), with("th\xe9")); *other.Headers[0].Left != "café" || *other.Headers[0].Right != "thé" {
		t.Errorf("%+v", other.Headers)
	}
}

// A name of a field may be as long as a body, and many changes may be within what it holds.
func TestAPathIsCut(t *testing.T) {
	with := func(value string) *hookglass.Event {
		return event(func(e *hookglass.Event) {
			e.ContentType, e.Body = "application/x-www-form-urlencoded", []byte(strings.Repeat("é", 5_000)+`={"a":`+value+`,"b":`+value+`}`)
		})
	}
	changes := inspect.Compare(with("1"), with("2")).Body.Changes
	if len(changes) != 1 || changes[0].Path != strings.Repeat("é", 500)+"…" {
		t.Errorf("%d changes at %.2000s", len(changes), changes[0].Path)
	}
}

func TestBodiesAreComparedAsWhatTheyAre(t *testing.T) {
	for _, c := range []struct{ kind, left, right, form string }{
		{"text/plain", "a\nb\n", "a\nc\n", "text"},
		{"application/x-www-form-urlencoded", "a=1&b=2", "a=1&b=3", "form"},
		{"application/json", `{"a":1}`, `{"a":`, "text"},
		{"application/octet-stream", "\xff\x00", "\xfe", "bytes"},
		{"text/plain", "text", "\xfe", "bytes"},
		{"text/plain", "\xfe", "text", "bytes"},
	} {
		with := func(body string) *hookglass.Event {
			return event(func(e *hookglass.Event) { e.ContentType, e.Body = c.kind, []byte(body) })
		}
		got := inspect.Compare(with(c.left), with(c.right)).Body
		if got.Form != c.form || got.Identical || c.form == "text" && got.Text == "" || c.form == "form" && len(got.Changes) != 1 {
			t.Errorf("%s: %+v, want %s", c.kind, got, c.form)
		}
	}
	form := func(body string) *hookglass.Event {
		return event(func(e *hookglass.Event) { e.ContentType, e.Body = "application/x-www-form-urlencoded", []byte(body) })
	}
	got := inspect.Compare(form(`payload={"user":{"id":"U1"},"n":1}&x={"a":1}&y=[1]&z=1`), form(`payload={"user":{"id":"U2"},"n":1}&x={"a":%201}&y=1&z=2`)).Body.Changes
	var paths []string
	for _, c := range got {
		paths = append(paths, fmt.Sprint(c.Path, " ", *c.Left, " ", *c.Right))
	}
	if want := []string{`payload/user/id "U1" "U2"`, `x {"a":1} {"a": 1}`, `y [1] 1`, `z 1 2`}; !slices.Equal(paths, want) {
		t.Errorf("in the fields of a form %q differ, want %q", paths, want)
	}
	for kind, of := range map[string]func(sign string, n int) string{
		"application/x-www-form-urlencoded": func(value string, n int) (body string) {
			for i := range n {
				body += fmt.Sprintf("a%d=%s&", i, value)
			}
			return body + "z=1"
		},
		"application/json": func(value string, n int) (body string) {
			for i := range n {
				body += fmt.Sprintf("%q:%s,", fmt.Sprint("a", i), value)
			}
			return "{" + body + `"z":1}`
		},
	} {
		for changed, more := range map[int]bool{99: false, 100: false, 101: true} {
			with := func(body string) *hookglass.Event {
				return event(func(e *hookglass.Event) { e.ContentType, e.Body = kind, []byte(body) })
			}
			if got := inspect.Compare(with(of("1", changed)), with(of("2", changed))).Body; len(got.Changes) != min(changed, 100) || got.More != more {
				t.Errorf("%d changes of %s: %d are given, more %v", changed, kind, len(got.Changes), got.More)
			}
		}
	}
	for changed, more := range map[int]bool{99: false, 100: false, 101: true} {
		with := func(value string) *hookglass.Event {
			return event(func(e *hookglass.Event) {
				e.Headers, e.RawQuery = nil, ""
				for i := range changed {
					e.Headers = append(e.Headers, hookglass.Header{Name: fmt.Sprint("X-", i), Value: value})
					e.RawQuery += fmt.Sprintf("a%d=%s&", i, value)
				}
			})
		}
		got := inspect.Compare(with("1"), with("2"))
		if len(got.Headers) != min(changed, 100) || len(got.Query) != min(changed, 100) || got.MoreHeaders != more || got.MoreQuery != more {
			t.Errorf("%d changes: %d headers, more %v, and %d parameters, more %v", changed, len(got.Headers), got.MoreHeaders, len(got.Query), got.MoreQuery)
		}
	}
	long := event(func(e *hookglass.Event) { e.Body = []byte(strings.Repeat("left\n", 100_000)) })
	other := event(func(e *hookglass.Event) { e.Body = []byte(strings.Repeat("right\n", 100_000)) })
	if got := inspect.Compare(long, other).Body; !got.More || len(got.Text) > 16<<10 {
		t.Errorf("a long text: %d bytes, more %v", len(got.Text), got.More)
	}
}

// Whatever two requests are, they can be compared, within bounds; one is as itself, and the sides are told apart in the
// same way whichever comes first.
func FuzzCompare(f *testing.F) {
	f.Add("application/json", `{"a":[1,2.0,"x"]}`, `{"a":[1,2,"y"],"b":null}`, "/a", "/b", "q=1&q=2", "")
	f.Add("application/x-www-form-urlencoded", "a=1&b=%zz", "b=2&&=", "/", "/caf\xe9", "%", "a;b")
	f.Add("text/plain", "a\r\nb", "a\nb\n", "", "", "", "")
	f.Add("application/octet-stream", "\xff\x00", "\xfe", "", "", "", "")
	f.Fuzz(func(t *testing.T, kind, left, right, leftPath, rightPath, leftQuery, rightQuery string) {
		with := func(path, query, body string) *hookglass.Event {
			return event(func(e *hookglass.Event) {
				e.Path, e.RawQuery, e.ContentType, e.Body = path, query, kind, []byte(body)
				e.Headers = hookglass.Headers{{Name: "Content-Type", Value: kind}, {Name: "X-Path", Value: path}}
			})
		}
		l, r := with(leftPath, leftQuery, left), with(rightPath, rightQuery, right)
		c, turned := inspect.Compare(l, r), inspect.Compare(r, l)
		if c.Body.Identical != (left == right) || c.Body.Form != turned.Body.Form || len(c.Body.Changes) != len(turned.Body.Changes) && !c.Body.More {
			t.Errorf("%+v, and turned round %+v", c.Body, turned.Body)
		}
		for _, changes := range [][]hookglass.Change{c.Fields, c.Headers, c.Query, c.Body.Changes} {
			for _, change := range changes {
				for _, side := range []*string{change.Left, change.Right} {
					if side != nil && !utf8.ValidString(*side) {
						t.Errorf("%q is no text", *side)
					}
				}
				if len(changes) > 100 || change.Left == nil && change.Right == nil {
					t.Errorf("of %d changes, %+v", len(changes), change)
				}
			}
		}
		if same := inspect.Compare(l, l); len(same.Fields)+len(same.Headers)+len(same.Query)+len(same.Body.Changes) > 0 || !same.Body.Identical || same.Body.More {
			t.Errorf("compared with itself: %+v", same)
		}
	})
}
