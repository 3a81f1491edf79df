package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hookglass/api"
)

func TestAnEventIsExplainedAndComparedWithAnother(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var e api.One[api.Endpoint]
		s.want(201, "POST", "/endpoints", `{"endpoint":{"name":"Payments"}}`, &e)
		at := "/endpoints/" + e.Data.ID
		send := func(body string) string {
			t.Helper()
			var sent api.One[api.SentTestRequest]
			s.want(201, "POST", at+"/test_requests", body, &sent)
			return sent.Data.RequestID
		}
		one := send(`{"provider":"stripe"}`)
		other := send(`{"method":"PUT","path":"/x","headers":{"Content-Type":"application/json"},"body":"{}"}`)
		s.want(201, "POST", at+"/signature_configs", `{"signature_config":{"provider":"stripe","secret":"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}}`, nil)

		var d api.One[api.Diagnosis]
		s.want(200, "GET", at+"/requests/"+one+"/diagnosis", "", &d)
		if d.Data.RequestID != one || d.Data.Severity != "problem" || d.Data.Findings[0].Area != "signature" || d.Data.Sender.Retries == nil || len(d.Data.NextSteps) == 0 {
			t.Errorf("a stripe event without its signature: %+v", d.Data)
		}
		s.want(201, "POST", at+"/forwarding_targets", `{"forwarding_target":{"name":"Reads","url":"https://a.example.com/","when":"method:GET"}}`, nil)
		third := send(`{"method":"PUT","path":"/x","body":"{}"}`)
		s.want(200, "GET", at+"/requests/"+third+"/diagnosis", "", &d)
		if !slices.ContainsFunc(d.Data.Findings, func(f api.DiagnosisFinding) bool {
			return f.Code == "not_meant" && strings.Contains(f.Message, "Reads") && strings.Contains(f.Message, "method:GET")
		}) {
			t.Errorf("an event that a target's condition does not mean: %+v", d.Data.Findings)
		}
		var target api.One[api.ForwardingTarget]
		s.want(201, "POST", at+"/forwarding_targets", `{"forwarding_target":{"name":"Writes","url":"https://b.example.com/"}}`, &target)
		s.want(200, "PATCH", fmt.Sprintf("%s/forwarding_targets/%d", at, target.Data.ID), `{"forwarding_target":{"paused":true}}`, nil)
		fourth := send(`{"method":"PUT","path":"/x","body":"{}"}`)
		s.want(200, "GET", at+"/requests/"+fourth+"/diagnosis", "", &d)
		if !slices.ContainsFunc(d.Data.Findings, func(f api.DiagnosisFinding) bool {
			return f.Code == "paused" && strings.Contains(f.Message, "Writes") && strings.Contains(f.Message, "by people")
		}) {
			t.Errorf("an event that waits for a target that is paused: %+v", d.Data.Findings)
		}
		if on := d.Data.Deliveries; len(on) != 1 || on[0].To != "Writes" || on[0].URL != "https://b.example.com/" {
			t.Errorf("whoever reads it cannot replay to the target: %+v", on)
		}
		var c api.One[api.Comparison]
		s.want(200, "GET", at+"/requests/"+one+"/comparison?other_request_id="+other, "", &c)
		if c.Data.Same || c.Data.Body.ComparedAs != "json" || len(c.Data.Fields) == 0 || c.Data.OtherRequestID != other {
			t.Errorf("two events: %+v", c.Data)
		}
		s.want(404, "GET", at+"/requests/"+one+"/comparison?other_request_id=req_00000000000000000000000000", "", nil)
		s.want(422, "GET", at+"/requests/"+one+"/comparison", "", nil)
	})
}
