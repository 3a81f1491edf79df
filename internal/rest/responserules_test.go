package rest_test

import (
	"slices"
	"strings"
	"testing"

	"hookglass/api"
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
