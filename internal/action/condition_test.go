package action_test

import (
	"bytes"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/cputime"
	"hookglass/internal/store/storetest"
)

// The nine fields, present and absent, under the seven operators. In each cell: does it hold?
func TestTriggerConditions(t *testing.T) {
	web := arrival(`{}`)
	web.Tags = []string{"urgent", "billing-eu"}
	mail := &hookglass.Event{ID: "eml_1", Type: hookglass.EventEmail, Method: "EMAIL", Path: "box@localhost", From: "Ann <ann@example.com>", Subject: "Invoice 7", Provider: hookglass.UnknownProvider}
	cron := &hookglass.Event{ID: "eml_2", Type: hookglass.EventEmail, From: "Cron Daemon <root>, Bee <b..ee.@example.com>"}
	bare := &hookglass.Event{ID: "req_2", Type: hookglass.EventWebhook}
	for _, c := range []struct {
		field   string
		ev      *hookglass.Event
		value   string // of equals, contains and matches
		holds   string // equals, not_equals, contains, not_contains, matches, exists, not_exists
		absent  bool
		comment string
	}{
		{"provider", web, "github", "y n y n y y n", false, "whole"},
		{"provider", web, "git", "n y y n y y n", false, "part"},
		{"provider", web, "stripe", "n y n y n y n", false, "other"},
		{"provider", web, "GitHub", "n y n y n y n", false, "case counts"},
		{"provider", web, "^g.t(hub|lab)$", "n y n y y y n", false, "pattern"},
		{"provider", bare, "github", "n y n y n n y", true, "absent"},
		{"provider", mail, "unknown", "y n y n y n y", false, "not recognised: named unknown, and not there"},
		{"event_type", web, "push", "y n y n y y n", false, ""},
		{"event_type", bare, "push", "n y n y n n y", true, ""},
		{"signature_status", web, "verified", "y n y n y y n", false, ""},
		{"signature_status", web, "failed", "n y n y n y n", false, ""},
		{"signature_status", bare, "verified", "n y n y n n y", true, ""},
		{"http_method", web, "POST", "y n y n y y n", false, ""},
		{"http_method", mail, "EMAIL", "y n y n y y n", false, ""},
		{"http_method", web, "GET", "n y n y n y n", false, ""},
		{"request_path", web, "/in/a%20b", "y n y n y y n", false, "as received"},
		{"request_path", web, `^/in/[a-z]%20\w$`, "n y n y y y n", false, ""},
		{"request_path", bare, "/", "n y n y n n y", true, ""},
		{"content_type", web, "json", "n y y n y y n", false, ""},
		{"content_type", mail, "json", "n y n y n n y", true, ""},
		{"sender", mail, "@example.com", "n y y n y y n", false, ""},
		{"sender", mail, "ann@example.com", "y n y n y y n", false, "the bare address"},
		{"sender", mail, "Ann <ann@example.com>", "y n y n y y n", false, "as it is written"},
		{"sender", cron, "root", "y n y n y y n", false, "an address without a domain"},
		{"sender", cron, `^b\.\.ee\.@example\.com$`, "n y n y y y n", false, "an address that is none by the rules, but in use"},
		{"sender", web, "@example.com", "n y n y n n y", true, "a webhook has no sender"},
		{"email_subject", mail, "Invoice 7", "y n y n y y n", false, ""},
		{"email_subject", mail, `(?i)^INVOICE \d+$`, "n y n y y y n", false, ""},
		{"email_subject", web, "Invoice 7", "n y n y n n y", true, ""},
		{"has_tag", web, "urgent", "y n y n y y n", false, "one of them"},
		{"has_tag", web, "billing", "n y y n y y n", false, "part of one"},
		{"has_tag", web, "urgent, billing-eu", "n y n y n y n", false, "each is compared for itself"},
		{"has_tag", web, "-(eu|us)$", "n y n y y y n", false, ""},
		{"has_tag", mail, "urgent", "n y n y n n y", true, "no tags"},
	} {
		for i, want := range strings.Fields(c.holds) {
			operator := hookglass.ConditionOperators[i]
			condition := hookglass.Condition{Field: c.field, Operator: operator, Value: c.value}
			if i > 4 {
				condition.Value = ""
			}
			trigger, faults := action.NewTrigger([]hookglass.Condition{condition})
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			got := trigger.Evaluate(action.NewContext(c.ev, endpoint, nil))
			r := got.Conditions[0]
			if got.Matched != (want == "y") || r.Matched != got.Matched || r.Condition != condition || r.Failure != nil {
				t.Errorf("%s %s %q on %s (%s): %+v", c.field, operator, condition.Value, c.ev.ID, c.comment, got)
			}
			if c.field == "sender" && r.Actual != c.ev.From {
				t.Errorf("the sender of %s is shown as %q", c.ev.ID, r.Actual)
			}
			if i < 5 && r.Absent != c.absent {
				t.Errorf("%s of %s: absent %v", c.field, c.ev.ID, r.Absent)
			}
		}
	}
}

func TestAllTriggerConditionsMustMatch(t *testing.T) {
	yes := hookglass.Condition{Field: "provider", Operator: "equals", Value: "github"}
	no := hookglass.Condition{Field: "provider", Operator: "equals", Value: "stripe"}
	for _, c := range []struct {
		conditions []hookglass.Condition
		want       bool
	}{
		{nil, true}, {[]hookglass.Condition{yes, yes}, true}, {[]hookglass.Condition{yes, no}, false}, {[]hookglass.Condition{no, yes}, false},
	} {
		trigger, faults := action.NewTrigger(c.conditions)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		got := trigger.Evaluate(action.NewContext(arrival(`{}`), endpoint, nil))
		if got.Matched != c.want || len(got.Conditions) != len(c.conditions) {
			t.Errorf("%v: %+v", c.conditions, got)
		}
	}
}

// It ends with a whole character, also where the value is Latin-1: a byte of that is two when it is shown.
func TestResultsShowTheBeginningOfAValue(t *testing.T) {
	trigger, _ := action.NewTrigger([]hookglass.Condition{{Field: "request_path", Operator: "contains", Value: "éé"}})
	for _, letter := range []string{"é", "\xe9"} {
		ev := arrival(`{}`)
		ev.Path = "/" + strings.Repeat(letter, 1000)
		r := trigger.Evaluate(action.NewContext(ev, endpoint, nil)).Conditions[0]
		if !r.Matched || r.Actual != "/"+strings.Repeat("é", 255) {
			t.Errorf("%q: %d bytes: %q", letter, len(r.Actual), r.Actual)
		}
	}
}

func TestTriggersAreChecked(t *testing.T) {
	ten := make([]hookglass.Condition, 10)
	for i := range ten {
		ten[i] = hookglass.Condition{Field: "provider", Operator: "exists"}
	}
	one := func(field, operator, value string) []hookglass.Condition {
		return []hookglass.Condition{{Field: field, Operator: operator, Value: value}}
	}
	for _, c := range []struct {
		conditions []hookglass.Condition
		fields     string
	}{
		{ten, ""},
		{append(ten[:10:10], ten[0]), "conditions"},
		{one("provider", "equals", strings.Repeat("é", 500)), ""},
		{one("provider", "equals", strings.Repeat("é", 501)), "conditions.0.value"},
		{one("provider", "equals", ""), "conditions.0.value"},
		{one("provider", "exists", "x"), "conditions.0.value"},
		{one("provider", "not_exists", "x"), "conditions.0.value"},
		{one("Provider", "equals", "x"), "conditions.0.field"},
		{one("", "", ""), "conditions.0.field conditions.0.operator"},
		{one("body", "is", "x"), "conditions.0.field conditions.0.operator"},
		{one("provider", "matches", "("), "conditions.0.value"},
		{one("provider", "contains", "("), ""},
		{one("provider", "matches", "a{2,1}"), "conditions.0.value"},
		{one("provider", "matches", `(?P<name>\d+)\.(?i:x)`), ""},
		{one("provider", "matches", strings.Repeat("a", 501)), "conditions.0.value"},
		{append(one("provider", "exists", ""), one("x", "exists", "")...), "conditions.1.field"},
	} {
		_, faults := action.NewTrigger(c.conditions)
		if got := fieldsOf(faults); got != c.fields {
			t.Errorf("%.100v: %q, want %q", c.conditions, got, c.fields)
		}
	}
}

func fieldsOf(faults []hookglass.FieldError) string {
	var fields []string
	for _, f := range faults {
		fields = append(fields, f.Field)
	}
	return strings.Join(fields, " ")
}

func TestStepConditions(t *testing.T) {
	const body = `{"action":"opened","n":1.0,"none":null,"yes":true,"list":["a","b c",3],"o":{"k":"v"},"text":"long text"}`
	for _, c := range []struct {
		source, path, operator, value string
		want                          string // true, false or error
	}{
		{"request", "/body/action", "equals", `"opened"`, "true"},
		{"request", "/body/action", "equals", `"Opened"`, "false"},
		{"request", "/body/n", "equals", `10e-1`, "true"},
		{"request", "/body/n", "equals", `"1.0"`, "true"},
		{"request", "/body/n", "not_equals", `"1.0"`, "false"},
		{"request", "/body/n", "not_equals", `1`, "false"},
		{"request", "/body/n", "equals", `"1"`, "false"},
		{"request", "/body/yes", "equals", `"true"`, "true"},
		{"request", "/body/none", "equals", `"null"`, "false"},
		{"request", "/body/action", "equals", `1`, "false"},
		{"request", "/body/none", "equals", `null`, "true"},
		{"request", "/body/missing", "equals", `null`, "false"},
		{"request", "/body/yes", "equals", `true`, "true"},
		{"request", "/body/yes", "not_equals", `false`, "true"},
		{"request", "/body/o", "equals", `"v"`, "false"},
		{"request", "/body/o", "not_equals", `"v"`, "true"},
		{"request", "/body/missing", "not_equals", `"x"`, "true"},
		{"request", "/body/missing", "not_contains", `"x"`, "true"},
		{"request", "/body/missing", "contains", `"x"`, "false"},
		{"request", "/body/missing", "matches", `"x"`, "false"},
		{"request", "/body/missing", "exists", ``, "false"},
		{"request", "/body/missing", "not_exists", ``, "true"},
		{"request", "/body/none", "exists", ``, "true"},
		{"request", "/body/list/-", "exists", ``, "false"},
		{"request", "/body/list/1000000000", "exists", ``, "false"},
		{"request", "/body/text", "contains", `"g t"`, "true"},
		{"request", "/body/text", "not_contains", `"g t"`, "false"},
		{"request", "/body/list", "contains", `"b c"`, "true"},
		{"request", "/body/list", "contains", `"b"`, "false"},
		{"request", "/body/list", "contains", `"3"`, "true"},
		{"request", "/body/list", "not_contains", `"z"`, "true"},
		{"request", "/body/list", "matches", `"a"`, "false"},
		{"request", "/body/o", "contains", `"k"`, "false"},
		{"request", "/body/n", "matches", `"^1\\.0$"`, "true"},
		{"request", "/body/yes", "matches", `"^t"`, "true"},
		{"request", "", "exists", ``, "true"},
		{"request", "/method", "equals", `"POST"`, "true"},
		{"request", "/headers/x-a", "equals", `"one, two"`, "true"},
		{"request", "/query/tag/1", "equals", `"b c"`, "true"},
		{"request", "/query/q", "equals", `"1"`, "true"},
		{"request", "/query/q", "equals", `1`, "false"}, // a string stands for what it spells, not the other way round
		{"provider", "/event_type", "equals", `"push"`, "true"},
		{"provider", "/event_id", "exists", ``, "false"}, // not known, which is null
		{"provider", "/event_id", "not_exists", ``, "true"},
		{"provider", "/event_id", "equals", `null`, "true"},
		{"provider", "/event_id", "not_equals", `"e-1"`, "true"},
		{"provider", "/event_id", "not_contains", `"e"`, "true"},
		{"provider", "/event_id", "contains", `"u"`, "false"},
		{"provider", "/event_id", "matches", `".*"`, "false"},
		{"request", "/body/none", "matches", `"^null$"`, "true"},
		{"steps.empty", "/output", "exists", ``, "false"},
		{"steps.empty", "/status", "exists", ``, "true"},
		{"steps.null", "/output", "exists", ``, "true"},
		{"steps.shape", "/output", "exists", ``, "true"},
		{"endpoint", "/name", "contains", `"more"`, "true"},
		{"steps.shape", "/output/n", "equals", `7`, "true"},
		{"steps.shape", "/status", "equals", `"completed"`, "true"},
		{"steps.shape", "/output/x", "not_exists", ``, "true"},
		{"steps.later", "/output", "exists", ``, "error"},
		{"steps.later", "/output", "not_exists", ``, "error"},
		{"email", "/subject", "not_exists", ``, "error"},
	} {
		condition := hookglass.StepCondition{Source: c.source, Path: c.path, Operator: c.operator, Value: []byte(c.value)}
		if c.value == "" {
			condition.Value = nil
		}
		guard, faults := action.NewGuard([]hookglass.StepCondition{condition})
		if len(faults) > 0 {
			t.Errorf("%+v: %v", c, faults)
			continue
		}
		matched, failure := guard.Evaluate(values(body).Context)
		got := fmt.Sprint(matched)
		if failure != nil {
			got = "error"
			if failure.Code != hookglass.FailureCondition || matched {
				t.Errorf("%+v: %v %v", c, matched, failure)
			}
		}
		if got != c.want {
			t.Errorf("%s %s %s %s is %s, want %s", c.source, c.path, c.operator, c.value, got, c.want)
		}
	}
}

func TestStepConditionsAreChecked(t *testing.T) {
	one := func(source, path, operator, value string) []hookglass.StepCondition {
		c := hookglass.StepCondition{Source: source, Path: path, Operator: operator}
		if value != "" {
			c.Value = []byte(value)
		}
		return []hookglass.StepCondition{c}
	}
	for _, c := range []struct {
		conditions []hookglass.StepCondition
		fields     string
	}{
		{one("request", "", "exists", ""), ""},
		{one("steps.a-b_1", "", "exists", ""), ""},
		{one("steps", "", "exists", ""), "conditions.0.source"},
		{one("steps.", "", "exists", ""), "conditions.0.source"},
		{one("steps.a.b", "", "exists", ""), "conditions.0.source"},
		{one("secrets", "", "exists", ""), "conditions.0.source"},
		{one("request", "body", "exists", ""), "conditions.0.path"},
		{one("request", "/~2", "exists", ""), "conditions.0.path"},
		{one("request", "/"+strings.Repeat("a", 500), "exists", ""), "conditions.0.path"},
		{one("request", "", "exists", `"x"`), "conditions.0.value"},
		{one("request", "", "exists", `null`), "conditions.0.value"},
		{one("request", "", "is", `"x"`), "conditions.0.operator"},
		{one("request", "", "equals", ""), "conditions.0.value"},
		{one("request", "", "equals", `{}`), "conditions.0.value"},
		{one("request", "", "equals", `""`), ""},
		{one("request", "", "equals", `1e400`), ""},
		{one("request", "", "contains", `1`), "conditions.0.value"},
		{one("request", "", "matches", `"("`), "conditions.0.value"},
		{one("request", "", "equals", `"`+strings.Repeat("é", 500)+`"`), ""},
		{one("request", "", "equals", `"`+strings.Repeat("é", 501)+`"`), "conditions.0.value"},
		{make([]hookglass.StepCondition, 11)[:0], ""},
	} {
		_, faults := action.NewGuard(c.conditions)
		if got := fieldsOf(faults); got != c.fields {
			t.Errorf("%.100v: %q, want %q", c.conditions, got, c.fields)
		}
	}
	var many []hookglass.StepCondition
	for range 11 {
		many = append(many, one("request", "", "exists", "")...)
	}
	if _, faults := action.NewGuard(many[:10]); len(faults) > 0 {
		t.Error(faults)
	}
	if _, faults := action.NewGuard(many); fieldsOf(faults) != "conditions" {
		t.Error(faults)
	}
	g, _ := action.NewGuard(append(one("steps.a", "", "exists", ""), append(one("request", "", "exists", ""), one("steps.a", "/x", "exists", "")...)...))
	if got := g.Steps(); len(got) != 1 || got[0] != "a" {
		t.Error(got)
	}
}

// A pattern that would search for years is stopped, ten of them share their time, and nothing goes on afterwards
// (spec, "Limits"; reliability, row 76). The failure does not tell what was searched.
func TestPatternsAreStopped(t *testing.T) {
	ev := arrival(`{}`)
	ev.Path = "/canary" + strings.Repeat("a", 100<<10)
	var conditions []hookglass.Condition
	for range 10 {
		conditions = append(conditions, hookglass.Condition{Field: "request_path", Operator: "matches", Value: `^(?:a+)+$|^/canary(a+)+(a+)+b`})
	}
	trigger, faults := action.NewTrigger(conditions)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	elapsed := storetest.Watch(t)
	result := trigger.Evaluate(action.NewContext(ev, endpoint, nil))
	if took := elapsed(); took > 5*time.Second {
		t.Errorf("the patterns took %v", took)
	}
	for i, r := range result.Conditions {
		if r.Matched || r.Failure == nil || r.Failure.Code != hookglass.FailureCondition || strings.Contains(r.Failure.Message, "canary") {
			t.Errorf("condition %d: %v %v", i+1, r.Matched, r.Failure)
		}
	}
	var stacks bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stacks.String(), "regexp2.(*Runner)") || strings.Contains(stacks.String(), "regexp2.(*Regexp)") {
		t.Errorf("a search goes on:\n%s", &stacks)
	}
}

// So that a search is no longer than it may be, it is for the beginning of a long value.
func TestAPatternLooksAtTheBeginningOfAValue(t *testing.T) {
	ev := arrival(`{}`)
	ev.Path = strings.Repeat("a", 64<<10-1) + "bc"
	for pattern, want := range map[string]bool{"b": true, "b$": true, "c": false} {
		trigger, faults := action.NewTrigger([]hookglass.Condition{{Field: "request_path", Operator: "matches", Value: pattern}})
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		if result := trigger.Evaluate(action.NewContext(ev, endpoint, nil)); result.Matched != want {
			t.Errorf("%s matches: %v", pattern, result.Matched)
		}
	}
}

// Hostile patterns of row 76: each compiles or is refused at once, and ends within its second.
func TestHostilePatterns(t *testing.T) {
	ev := arrival(`{}`)
	ev.Path = "/" + strings.Repeat("ab", 40<<10)
	for _, text := range []string{
		`(.{0,900}z)`, `(?:.{0,100}){0,9}x`, strings.Repeat("(a?)", 100) + "b", strings.Repeat("(", 240) + "a" + strings.Repeat(")*", 120),
		`((((a{1,1000}){1,1000}){1,1000}){1,1000}){1,1000}z`, strings.Repeat("a{0,1000}", 50) + "z", `(?=(a+))\1{2,}z`, `(\w|\d)*?z$`,
		`[` + strings.Repeat(`\p{L}`, 90) + `]+z`, strings.Repeat("a|", 240) + "z", `(?i)` + strings.Repeat("ſ", 400), `\1`, `(?<=a{500})z`,
	} {
		var trigger *action.Trigger
		var faults []hookglass.FieldError
		cputime.AtMost(t, 2*time.Second, fmt.Sprintf("compiling %.40s", text), func() {
			trigger, faults = action.NewTrigger([]hookglass.Condition{{Field: "request_path", Operator: "matches", Value: text}})
		})
		if len(faults) > 0 {
			continue
		}
		cputime.AtMost(t, 2*time.Second, fmt.Sprintf("%.40s", text), func() { trigger.Evaluate(action.NewContext(ev, endpoint, nil)) })
	}
}

func FuzzPatterns(f *testing.F) {
	for _, seed := range []string{`^a+$`, `(?<x>a)\k<x>`, `[[:alpha:]]+`, `(?i)É`, `\Qa.b\E`, `(a|b)*?c`} {
		f.Add(seed, "/aab")
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		trigger, faults := action.NewTrigger([]hookglass.Condition{{Field: "request_path", Operator: "matches", Value: pattern}})
		if len(faults) > 0 {
			return
		}
		r := trigger.Evaluate(action.NewContext(&hookglass.Event{Path: path}, endpoint, nil))
		if r.Conditions[0].Failure != nil && r.Matched {
			t.Fatal("a failure matched")
		}
	})
}
