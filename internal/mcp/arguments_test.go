package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestArgumentsThatAreWrongAreToldWithTheWayToMendThem(t *testing.T) {
	storetest1(t, func(s *site) {
		ep := s.endpoint("Payments")
		s.receive(ep, "/", "text/plain", "hello")
		_, made := s.call("create_endpoint", args{"name": "Disabled", "enabled": false})
		disabled := at(made, "data", "id").(string)
		for _, c := range []struct {
			tool  string
			with  args
			wants []string
		}{
			{"get_request", args{"endpoint_id": ep, "requestId": "latest"}, []string{"requestId is not an argument", "endpoint_id, request_id, max_bytes, pointers"}},
			{"get_request", args{"request_id": "latest"}, []string{"endpoint_id is required"}},
			{"get_request", args{"endpoint_id": ep, "request_id": "latest", "max_bytes": 0.5}, []string{"max_bytes must be a whole number"}},
			{"get_request", args{"endpoint_id": ep, "request_id": "latest", "max_bytes": 262145}, []string{"max_bytes must be from 1 to 262144"}},
			{"get_request", args{"endpoint_id": ep, "request_id": "latest", "pointers": []string{"a"}}, []string{"pointers.0"}},
			{"get_request", args{"endpoint_id": ep, "request_id": "latest", "pointers": []string{"/a"}}, []string{"JSON body"}},
			{"get_request", args{"endpoint_id": ep, "request_id": "req_00000000000000000000000000"}, []string{"not_found", "list_requests"}},
			{"get_request", args{"endpoint_id": "ep_00000000000000000000000000", "request_id": "latest"}, []string{"not_found", "Next: list_endpoints"}},
			{"get_replay_case", args{"endpoint_id": "ep_00000000000000000000000000", "case_id": "rcase_x"}, []string{"not_found", "Next: list_endpoints"}},
			{"get_replay_case_run", args{"endpoint_id": "ep_00000000000000000000000000", "run_id": "rrun_x"}, []string{"not_found", "Next: list_endpoints"}},
			{"delete_action", args{"endpoint_id": ep, "action_id": "act_x"}, []string{"not_found", "Next: list_actions"}},
			{"get_action_runs", args{"endpoint_id": ep, "action_id": "act_x"}, []string{"not_found", "Next: list_actions"}},
			{"get_action_runs", args{"endpoint_id": ep, "run_id": "arun_x"}, []string{"not_found", "Next: get_action_runs without run_id"}},
			{"get_action_runs", args{"endpoint_id": ep, "request_id": "req_x"}, []string{"not_found", "Next: list_requests"}},
			{"list_requests", args{}, []string{"endpoint_id is required"}},
			{"list_requests", args{"endpoint_id": ep, "limit": 101}, []string{"limit must be from 1 to 100"}},
			{"list_requests", args{"endpoint_id": ep, "limit": -1}, []string{"limit must be from 1 to 100"}},
			{"list_requests", args{"endpoint_id": ep, "limit": 0}, []string{"limit must be from 1 to 100"}},
			{"wait_for_request", args{"endpoint_id": ep, "timeout_seconds": 0}, []string{"timeout_seconds must be from 1 to 30"}},
			{"list_requests", args{"endpoint_id": ep, "cursor": "x"}, []string{"cursor is not the next_cursor"}},
			{"list_requests", args{"endpoint_id": ep, "signature_status": "bad"}, []string{"verified, failed, unchecked"}},
			{"list_requests", args{"endpoint_id": 5}, []string{"endpoint_id must be a string"}},
			{"wait_for_request", args{"endpoint_id": ep, "timeout_seconds": 31}, []string{"timeout_seconds must be from 1 to 30"}},
			{"wait_for_request", args{"endpoint_id": ep, "after": "yesterday"}, []string{"after must be"}},
			{"delete_all_requests", args{"endpoint_id": ep}, []string{"confirm is required"}},
			{"delete_all_requests", args{"endpoint_id": ep, "confirm": false}, []string{"confirm must be true"}},
			{"delete_all_requests", args{"endpoint_id": ep, "confirm": true, "before": ""}, []string{"before must be an ISO 8601 date and time"}},
			{"delete_all_requests", args{"endpoint_id": ep, "confirm": true, "after": ""}, []string{"after must be an ISO 8601 date and time"}},
			{"send_test_request", args{"endpoint_id": disabled, "body": "x"}, []string{"conflict: This endpoint is disabled", "Next: tell the person you work for"}},
			{"send_test_request", args{"endpoint_id": ep, "body": strings.Repeat("x", 1<<20+1)}, []string{"payload_too_large: ", "Next: send a smaller body."}},
			{"run_replay_case", args{"endpoint_id": ep, "case_id": "rcase_x"}, []string{"idempotency_key is required"}},
			{"run_replay_case", args{"endpoint_id": ep, "case_id": "rcase_x", "idempotency_key": strings.Repeat("k", 256)}, []string{"idempotency_key is required and must have 1 to 255"}},
			{"run_replay_case", args{"endpoint_id": ep, "case_id": "rcase_x", "idempotency_key": "a\nb"}, []string{"idempotency_key", "none of them a control character"}},
			{"get_replay_case", args{"endpoint_id": ep, "case_id": "rcase_x"}, []string{"not_found", "list_replay_cases"}},
			{"save_replay_case", args{"endpoint_id": ep, "source_id": "latest", "name": "n", "target_url": "tunnel", "assertions": args{}}, []string{"assertions"}},
			{"create_action", args{"endpoint_id": ep, "name": "n", "steps": []args{{"step_type": "tag", "config": args{"tagg": "x"}}}}, []string{"config.tag"}},
			{"create_action", args{"endpoint_id": ep, "name": "n", "steps": []args{{"step_type": "forward", "config": args{"url": "http://10.0.0.1/"}}}}, []string{"target_not_allowed", "Next: choose a public address."}},
			{"create_alert", args{"endpoint_id": ep, "name": "n", "kind": "missing_webhook", "config": args{"window_minutes": 1441}}, []string{"config.window_minutes must be 1 to 1440"}},
			{"create_endpoint", args{"name": ""}, []string{"name"}},
			{"create_endpoint", args{"name": "n", "kind": "email", "response_script": "200"}, []string{"entry 1 must be 250, 400 to 459"}},
			{"create_endpoint", args{"name": "n", "workspace_id": 0}, []string{"workspace_id is no workspace of yours"}},
			{"create_endpoint", args{"name": "n", "workspace_id": 1e30}, []string{"workspace_id must be a whole number"}},
			{"create_endpoint", args{"name": "n", "custom_id": ""}, []string{"custom_id may not be empty"}},
			{"create_endpoint", args{"name": "n", "kind": "email", "email_local_part": ""}, []string{"email_local_part may not be empty"}},
			{"create_endpoint", args{"name": "n", "provider": ""}, []string{"provider must be one of github, stripe"}},
			{"create_endpoint", args{"name": "n", "provider_config": args{"response_mode": ""}}, []string{"provider_config.response_mode must be one of static, tunnel"}},
			{"create_endpoint", args{"name": "n", "response": args{"headers": args{"X-A": nil}}}, []string{"response.headers.X-A may not be null"}},
			{"get_request", args{"endpoint_id": ep, "request_id": "latest", "pointers": []any{nil}}, []string{"pointers.0 may not be null"}},
			{"replay_request", args{"endpoint_id": ep, "request_id": "latest", "target_url": "tunnel", "signature_mode": ""}, []string{"signature_mode must be one of preserve, strip, resign"}},
			{"replay_request", args{"endpoint_id": ep, "request_id": "latest", "target_url": "tunnel", "time_shift": ""}, []string{`time_shift must be "now", a duration`}},
			{"send_test_request", args{"endpoint_id": ep, "headers": args{"X-A": nil}}, []string{"headers.X-A may not be null"}},
			{"create_action", args{"endpoint_id": ep, "name": "n", "steps": []any{nil}}, []string{"steps.0 may not be null"}},
			{"create_action", args{"endpoint_id": ep, "name": "n", "steps": []args{{"step_type": "ignore", "type": "tag"}}}, []string{"steps.0.type differs from step_type"}},
			{"get_replay_case_run", args{"endpoint_id": ep, "run_id": "rrun_x"}, []string{"not_found", "list_replay_cases"}},
			{"create_endpoint", args{"name": "n", "secret": "x"}, []string{"secret is not an argument"}},
		} {
			got := s.fails(s.token, c.tool, c.with)
			for _, want := range c.wants {
				if !strings.Contains(got, want) {
					t.Errorf("%s %v: %q, want it to say %q", c.tool, c.with, got, want)
				}
			}
		}
	})
}

// What a schema allows is taken: null removes a header, 2.0 is a whole number, and what is optional may be null.
func TestArgumentsThatTheSchemasAllowAreTaken(t *testing.T) {
	storetest1(t, func(s *site) {
		ep := s.endpoint("Payments")
		s.receive(ep, "/", "application/json", `{"a":null,"b":""}`)
		for _, c := range []struct{ tool, with string }{
			{"list_requests", `{"limit":2.0}`},
			{"list_requests", `{"limit":1e1,"type":null,"cursor":null}`},
			{"list_requests", `{"type":"","signature_status":"","ignored":"","provider":""}`},
			{"get_request", `{"request_id":"latest","max_bytes":1.6e1,"pointers":null}`},
			{"replay_request", `{"request_id":"latest","target_url":"tunnel","overrides":{"method":null,"headers":{"Content-Type":null,"X-A":"b"},"body":""}}`},
			{"replay_request", `{"request_id":"latest","target_url":"tunnel","overrides":{"query":{"a":["1","2"]}},"time_shift":-1000}`},
			{"save_replay_case", `{"source_id":"latest","name":"n","target_url":"tunnel","assertions":{"status":null,"json_subset":{"a":[null],"b":""}}}`},
			{"save_replay_case", `{"source_id":"latest","name":"n","target_url":"tunnel","assertions":{"status":{"class":"2xx"},"json_subset":null}}`},
			{"create_action", `{"name":"n","position":1.0,"steps":[{"step_type":"transform","config":{"source":"request","operations":[{"op":"set","path":"/a","value":null}]},"conditions":[{"source":"request","path":"/body/a","operator":"equals","value":null},{"source":"request","path":"/body/b","operator":"equals","value":""}]}]}`},
			{"create_alert", `{"name":"n","kind":"missing_webhook","config":{"window_minutes":5.0,"keyword":null}}`},
		} {
			res, raw := s.try(s.token, c.tool, json.RawMessage(`{"endpoint_id":"`+ep+`",`+c.with[1:]))
			if a := parse(t, raw); res.StatusCode != 200 || a.Error != nil || a.Result.IsError {
				t.Errorf("%s %s: %s", c.tool, c.with, raw)
			}
		}
		replay := s.list()["replay_request"].InputSchema
		overrides := at(replay, "properties", "overrides", "properties")
		for _, c := range []struct {
			what      string
			got, want any
		}{
			{"a header of overrides, which null removes,", at(overrides, "headers", "additionalProperties", "type"), "[string null]"},
			{"the query of overrides", at(overrides, "query", "type"), "[string object]"},
			{"time_shift", at(replay, "properties", "time_shift", "type"), "[string integer]"},
		} {
			if fmt.Sprint(c.got) != c.want {
				t.Errorf("%s is described as %v, not %v", c.what, c.got, c.want)
			}
		}
	})
}

// A call without arguments at all is one with none.
func TestArgumentsMayBeLeftOut(t *testing.T) {
	storetest1(t, func(s *site) {
		for _, params := range []string{`{"name":"list_endpoints"}`, `{"name":"list_endpoints","arguments":null}`, `{"name":"list_endpoints","arguments":{"limit":null}}`} {
			_, raw := s.post(t.Context(), s.token, `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":`+params+`}`, nil)
			if a := parse(t, raw); a.Error != nil || a.Result.IsError || string(a.ID) != `"a"` {
				t.Errorf("%s: %s", params, raw)
			}
		}
	})
}

// No id has a NUL, which PostgreSQL takes in no text: such a one is not found on both databases, and no fault of ours.
func TestAnIDWithANULIsNotFound(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ep := s.endpoint("Payments")
		for _, c := range []struct{ tool, id string }{
			{"get_endpoint", "endpoint_id"}, {"get_request", "request_id"}, {"get_replay_case", "case_id"}, {"get_replay_case_run", "run_id"},
			{"get_action_runs", "action_id"}, {"get_action_runs", "run_id"}, {"get_action_runs", "request_id"}, {"delete_action", "action_id"},
		} {
			with := args{"endpoint_id": ep}
			with[c.id] = "a\x00b"
			if got := s.fails(s.token, c.tool, with); !strings.HasPrefix(got, "not_found") {
				t.Errorf("%s with such a %s: %q", c.tool, c.id, got)
			}
		}
	})
}
