package rest_test

import (
	"slices"
	"strings"
	"testing"

	"hookglass/api"
	"hookglass/internal/capture"
)

func TestRulesOfAnswersAreSetReadAndTakenBack(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var e api.One[api.Endpoint]
		s.want(201, "POST", "/endpoints", `{"endpoint":{"name":"Ruled","response_rules":[{"when":"method:GET path:/health","status":204},{"when":"signature:failed","status":401,"headers":{"X-Why":"no"},"body":"{{event.id}}","delay_ms":5}]}}`, &e)
		at := "/endpoints/" + e.Data.ID
		s.want(200, "PATCH", at, `{"endpoint":{"name":"Still"}}`, &e)
		if r := e.Data.ResponseRules; len(r) != 2 || r[0].When != "method:GET path:/health" || *r[0].Status != 204 || len(r[0].Headers) != 0 ||
			*r[1].Status != 401 || r[1].Headers["X-Why"] != "no" || r[1].Body != "{{event.id}}" || r[1].DelayMS != 5 {
			t.Errorf("a change of the name left %+v", r)
		}
		s.sendBack(at)
		s.want(200, "PATCH", at, `{"endpoint":{"response_rules":[{"when":"path:/a"}]}}`, &e)
		if r := e.Data.ResponseRules; len(r) != 1 || *r[0].Status != 200 {
			t.Errorf("replaced by %+v", r)
		}
		for _, none := range []string{"null", "[]"} {
			s.want(200, "PATCH", at, `{"endpoint":{"response_rules":[{"when":"path:/a"}]}}`, nil)
			s.want(200, "PATCH", at, `{"endpoint":{"response_rules":`+none+`}}`, &e)
			if e.Data.ResponseRules == nil || len(e.Data.ResponseRules) != 0 {
				t.Errorf("after %s they are %v", none, e.Data.ResponseRules)
			}
		}
	})
}

func TestRulesOfAnswersThatCanNotBe(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		rule := func(n int, rule string) string {
			return "[" + strings.TrimSuffix(strings.Repeat(rule+",", n), ",") + "]"
		}
		half := `{"when":"path:/a","body":"` + strings.Repeat("x", 600<<10) + `"}`
		for rules, fields := range map[string][]string{
			`[{"when":"path:/a"},{"when":""}]`:                  {"endpoint.response_rules.1.when"},
			`[{"status":204}]`:                                  {"endpoint.response_rules.0.when"},
			`[{"when":"\"open","status":99}]`:                   {"endpoint.response_rules.0.when", "endpoint.response_rules.0.status"},
			`[{"when":"path:/a","headers":{"Set-Cookie":"a"}}]`: {"endpoint.response_rules.0.headers"},
			`[{"when":"path:/a","delay_ms":30001}]`:             {"endpoint.response_rules.0.delay_ms"},
			`[{"when":"status:200"}]`:                           {"endpoint.response_rules.0.when"},
			`[{"when":"path:/a -tag:x"}]`:                       {"endpoint.response_rules.0.when"},
			`[{"when":"is:ignored"}]`:                           {"endpoint.response_rules.0.when"},
			`[{"when":"after:2h"}]`:                             {"endpoint.response_rules.0.when"},
			rule(21, `{"when":"path:/a"}`):                      {"endpoint.response_rules"},
			rule(2, half):                                       {"endpoint.response_rules"},
		} {
			var refused api.Error
			s.want(422, "PATCH", "/endpoints/"+e.ID, `{"endpoint":{"response_rules":`+rules+`}}`, &refused)
			var got []string
			for _, d := range refused.Details {
				got = append(got, d.Field)
			}
			if !slices.Equal(got, fields) {
				t.Errorf("%.80s is refused with %+v, want %v", rules, refused.Details, fields)
			}
		}
		s.want(200, "PATCH", "/endpoints/"+e.ID, `{"endpoint":{"response_rules":`+rule(20, `{"when":"path:/a"}`)+`}}`, nil)
		s.want(422, "PATCH", "/endpoints/"+e.ID, `{"endpoint":{"response_rules":[{"when":"path:/a","else":1}]}}`, nil)
		s.want(422, "POST", "/endpoints", `{"endpoint":{"name":"Mail","kind":"email","response_rules":[{"when":"path:/a"}]}}`, nil)
		s.want(201, "POST", "/endpoints", `{"endpoint":{"name":"Mail","kind":"email","response_rules":[]}}`, nil)
	})
}

func TestRulesAreTriedBeforeTheyAnswer(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		get := s.arrive(e.ID, func(a *capture.Arrival) { a.Method, a.Path = "GET", "/health" })
		post := s.arrive(e.ID, nil)
		at := "/endpoints/" + e.ID
		var tried api.One[api.TriedRules]
		s.want(200, "POST", at+"/response_rules/try", "", &tried)
		if r := tried.Data; r.Evaluated != 2 || r.Matched != 0 || !r.Complete || r.Events[0].AnsweredBy != "default" || r.Events[0].Rule != nil || *r.Events[0].Status != 200 {
			t.Errorf("without rules: %+v", r)
		}
		s.want(200, "POST", at+"/response_rules/try", `{"response_rules":[{"when":"path:/health","status":204},{"when":"method:GET"}],"q":"path:*","limit":2}`, &tried)
		r := tried.Data
		if r.Evaluated != 2 || r.Matched != 1 || r.Events[0].EventID != post || r.Events[1].EventID != get || r.Events[1].Method != "GET" || r.Events[1].Path != "/health" ||
			r.Events[1].AnsweredBy != "rule" || *r.Events[1].Rule != (api.ReplyRule{Index: 0, When: "path:/health"}) || *r.Events[1].Status != 204 {
			t.Errorf("%+v", r)
		}
		s.want(200, "PATCH", at, `{"endpoint":{"response_rules":[{"when":"page:2"},{"when":"query.page:2","status":202}]}}`, nil)
		s.want(200, "POST", at+"/response_rules/try", `{"limit":1}`, &tried)
		if r := tried.Data; r.Evaluated != 1 || r.Events[0].Rule.Index != 1 {
			t.Errorf("with those that are stored: %+v", r)
		}
		for _, none := range []string{"null", "[]"} {
			s.want(200, "POST", at+"/response_rules/try", `{"response_rules":`+none+`}`, &tried)
			if tried.Data.Matched != 0 {
				t.Errorf("%s: %+v", none, tried.Data)
			}
		}
		// What a rule answers says so, and nothing else does.
		var detail struct{ Data map[string]any }
		s.want(200, "GET", at+"/requests/"+s.arrive(e.ID, nil), "", &detail)
		if rule, _ := detail.Data["response_rule"].(map[string]any); rule["index"] != 1. || rule["when"] != "query.page:2" || detail.Data["response_source"] != "custom" {
			t.Errorf("answered by %v", detail.Data["response_rule"])
		}
		detail.Data = nil
		s.want(200, "GET", at+"/requests/"+post, "", &detail)
		if rule, has := detail.Data["response_rule"]; has {
			t.Errorf("answered before there were rules by %v", rule)
		}
		for body, fields := range map[string][]string{
			`{"response_rules":[{"when":"tag:x","status":99}]}`:   {"response_rules.0.when", "response_rules.0.status"},
			`{"response_rules":[{"when":"path:/","else":1}]}`:     {"response_rules.0.else"},
			`{"q":null,"limit":0,"response_rules":[{"when":""}]}`: {"q", "limit", "response_rules.0.when"},
			`{"limit":101}`:  {"limit"},
			`{"limit":null}`: {"limit"},
			`{"q":"\"open"}`: {"q"},
			`{"query":"x"}`:  {"query"},
		} {
			var refused api.Error
			s.want(422, "POST", at+"/response_rules/try", body, &refused)
			var got []string
			for _, d := range refused.Details {
				got = append(got, d.Field)
			}
			if !slices.Equal(got, fields) {
				t.Errorf("%s is refused with %+v, want %v", body, refused.Details, fields)
			}
		}
		s.want(404, "POST", "/endpoints/ep_none/response_rules/try", `{}`, nil)
		s.want(422, "POST", "/endpoints/"+s.mailbox("tried").ID+"/response_rules/try", `{}`, nil)
	})
}
