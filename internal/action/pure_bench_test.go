package action_test

import (
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/jsondoc"
	"hookglass/internal/redact"
)

// The goal is under 300 µs of CPU.
func BenchmarkPureWork(b *testing.B) {
	work := pureWork(b)
	b.ReportAllocs()
	for b.Loop() {
		work()
	}
}

// What is not sensitive takes no memory of its own to be looked at: a body has hundreds of names and texts.
func TestPureWorkAllocatesLittle(t *testing.T) {
	if n := testing.AllocsPerRun(20, pureWork(t)); n > 1500 {
		t.Errorf("%.0f allocations", n)
	}
}

// pureWork is what a run costs but for storage and network: a trigger, and five steps with conditions, two transforms,
// a message, a rendered request and the redaction of each summary, on a body of 4 KiB.
func pureWork(tb testing.TB) func() {
	ev := arrival(`{"data":{"object":{"id":"in_1","amount":1250,"currency":"eur","lines":[` + strings.TrimSuffix(strings.Repeat(`{"sku":"a-1","quantity":2,"price":9.90,"text":"a line of an invoice"},`, 54), ",") + `]}},"type":"invoice.paid"}`)
	tb.Logf("body of %d bytes", len(ev.Body))
	trigger, faults := action.NewTrigger([]hookglass.Condition{
		{Field: "provider", Operator: "equals", Value: "github"}, {Field: "event_type", Operator: "matches", Value: `^(push|pull_request)$`},
		{Field: "request_path", Operator: "contains", Value: "/in/"}, {Field: "has_tag", Operator: "not_equals", Value: "noise"},
	})
	guard, more := action.NewGuard([]hookglass.StepCondition{{Source: "request", Path: "/body/type", Operator: "equals", Value: []byte(`"invoice.paid"`)}})
	first, faults1 := action.ParseTransform([]byte(`{"source":"request","operations":[{"op":"select","path":"/body/data/object"},{"op":"rename","from":"/id","to":"/invoice"},
		{"op":"set","path":"/source","from":"/provider/name"},{"op":"set","path":"/label","template":"{{request.method}} {{request.body.type}}"},{"op":"remove","path":"/currency"}]}`))
	second, faults2 := action.ParseTransform([]byte(`{"source":"steps.one","operations":[{"op":"pick","fields":{"id":"/output/invoice","lines":"/output/lines"}},{"op":"wrap","key":"event"}]}`))
	message, err1 := action.ParseMessage("{{endpoint_name}}: {{event_type}} {{request_id}}")
	url, err2 := action.ParseTemplate("https://example.com/in/{{steps.two.output.event.id}}?k={{secrets.KEY}}", action.InURL)
	header, err3 := action.ParseTemplate("Bearer {{secrets.KEY}}", action.InHeader)
	body, err4 := action.ParseTemplate(`{"event":{{steps.two.output}},"by":"{{endpoint.name}}"}`, action.InJSON)
	if len(faults)+len(more)+len(faults1)+len(faults2) > 0 || err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		tb.Fatal(faults, more, faults1, faults2, err1, err2, err3, err4)
	}
	secrets := values("").Secret
	return func() {
		c := action.NewContext(ev, endpoint, nil)
		v := action.Values{Context: c, Secret: secrets}
		key, _ := secrets("KEY")
		redactor := redact.New(redact.Mask{Value: key})
		if !trigger.Evaluate(c).Matched {
			tb.Fatal("no match")
		}
		for i, t := range []*action.Transform{first, second} {
			if matched, failure := guard.Evaluate(c); !matched || failure != nil {
				tb.Fatal(matched, failure)
			}
			out, failure := t.Run(v)
			if failure != nil {
				tb.Fatal(failure)
			}
			c.SetStep([]string{"one", "two"}[i], hookglass.StepCompleted, &out)
			shown, _ := redactor.Value(out)
			if summary, _ := action.Cut(string(shown.Bytes()), hookglass.MaxStepSummary); summary == "" {
				tb.Fatal("no summary")
			}
		}
		if _, err := message.RenderMessage(ev, endpoint); err != nil {
			tb.Fatal(err)
		}
		for _, t := range []*action.Template{url, header, body} {
			r, err := t.Render(v)
			if err != nil {
				tb.Fatal(err)
			}
			redactor.Body(r.Text)
		}
		redactor.Value(jsondoc.Members(jsondoc.Member{Name: "tag", Value: jsondoc.Text("paid")}))
	}
}
