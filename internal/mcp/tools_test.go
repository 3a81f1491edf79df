package mcp_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/action"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
)

// Runs are listed by when they were created, as by the API, though one that began later was stored before.
func TestRunsAreListedNewestFirst(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ep := s.endpoint("Payments")
		_, made := s.call("create_action", args{"endpoint_id": ep, "name": "Mark", "steps": []args{{"step_type": "ignore", "config": args{}}}})
		now := s.db.Now()
		ids := []string{hookglass.NewSortableID(hookglass.PrefixActionRun, now), hookglass.NewSortableID(hookglass.PrefixActionRun, now.Add(time.Second))}
		for _, id := range []string{ids[1], ids[0]} {
			eventID := s.receive(ep, "/", "application/json", "{}")
			err := s.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				a, err := tx.Action(ep, at(made, "data", "id").(string))
				if err != nil {
					return err
				}
				e, err := tx.Event(ep, eventID)
				if err != nil {
					return err
				}
				_, err = tx.InsertActionRun(&store.HeldRun{ActionRun: hookglass.ActionRun{
					ID: id, EndpointNum: e.EndpointNum, ActionNum: a.Num, ActionID: a.ID, EventSeq: e.Seq, EventID: e.ID, Status: hookglass.ActionRunCompleted, StartedAt: now, FinishedAt: now,
				}}, 0)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, got := s.call("get_action_runs", args{"endpoint_id": ep}); at(got, "data", 0, "id") != ids[1] || at(got, "data", 1, "id") != ids[0] {
			t.Errorf("%v", got)
		}
	})
}

// What names runs narrows them together: a run of another action, or on another request, is none.
func TestRunsAreThoseThatAllArgumentsName(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ep := s.endpoint("Payments")
		var actions, requests []string
		for _, name := range []string{"One", "Other"} {
			_, made := s.call("create_action", args{"endpoint_id": ep, "name": name, "steps": []args{{"step_type": "ignore", "config": args{}}}})
			actions = append(actions, at(made, "data", "id").(string))
		}
		for range 2 {
			requests = append(requests, s.receive(ep, "/", "application/json", "{}"))
			s.work(ep, requests[len(requests)-1])
		}
		_, got := s.call("get_action_runs", args{"endpoint_id": ep, "request_id": requests[0], "action_id": actions[0]})
		run := at(got, "data", 0, "id").(string)
		for name, with := range map[string]args{"request_id": {"request_id": requests[0]}, "action_id": {"action_id": actions[0]}, "both": {"request_id": requests[0], "action_id": actions[0]}} {
			with["endpoint_id"], with["run_id"] = ep, run
			if _, got := s.call("get_action_runs", with); at(got, "data", 0, "id") != run {
				t.Errorf("with %s of its own the run is %v", name, got)
			}
		}
		for name, with := range map[string]args{"request_id": {"request_id": requests[1]}, "action_id": {"action_id": actions[1]}} {
			with["endpoint_id"], with["run_id"] = ep, run
			if got := s.fails(s.token, "get_action_runs", with); !strings.Contains(got, "not_found: There is no such action run") {
				t.Errorf("with another %s the run is %s", name, got)
			}
		}
		if got := s.fails(s.token, "get_action_runs", args{"endpoint_id": ep, "request_id": requests[0], "action_id": "act_x"}); !strings.Contains(got, "not_found: There is no such action.") {
			t.Errorf("the runs of no action on a request are %s", got)
		}
	})
}

// The tools and their scopes, as the specification has them ("MCP interface"), and what each may do.
var specified = map[string]struct{ scope, hints string }{
	"list_endpoints":       {"read", "read"},
	"get_endpoint":         {"read", "read"},
	"create_endpoint":      {"write", "create"},
	"delete_endpoint":      {"write", "delete"},
	"list_requests":        {"read", "read"},
	"get_request":          {"read", "read"},
	"delete_request":       {"write", "delete more"},
	"delete_all_requests":  {"write", "delete more"},
	"wait_for_request":     {"read", "read"},
	"send_test_request":    {"write", "create"},
	"replay_request":       {"write", "send"},
	"save_replay_case":     {"write", "create"},
	"list_replay_cases":    {"read", "read"},
	"get_replay_case":      {"read", "read"},
	"run_replay_case":      {"write", "send once"},
	"get_replay_case_run":  {"read", "read"},
	"list_actions":         {"read", "read"},
	"create_action":        {"write", "create, reaching out"},
	"delete_action":        {"write", "delete"},
	"get_action_runs":      {"read", "read"},
	"diagnose_request":     {"read", "read"},
	"compare_requests":     {"read", "read"},
	"get_endpoint_metrics": {"read", "read"},
	"list_alerts":          {"read", "read"},
	"create_alert":         {"write", "create"},
}

func TestTheToolsAreThoseOfTheSpecification(t *testing.T) {
	storetest1(t, func(s *site) {
		got := s.list()
		if len(got) != len(specified) {
			t.Errorf("%d tools, want %d", len(got), len(specified))
		}
		for name, want := range specified {
			d, ok := got[name]
			if !ok {
				t.Errorf("%s is missing", name)
				continue
			}
			a := d.Annotations
			if a.ReadOnlyHint == nil || a.DestructiveHint == nil || a.IdempotentHint == nil || a.OpenWorldHint == nil {
				t.Errorf("%s: a hint is not set, and its default would hold", name)
				continue
			}
			hints := map[[4]bool]string{
				{true, false, true, false}: "read", {false, false, false, false}: "create", {false, true, true, false}: "delete",
				{false, true, false, false}: "delete more",
				{false, true, false, true}:  "send", {false, true, true, true}: "send once", {false, false, false, true}: "create, reaching out",
			}[[4]bool{*a.ReadOnlyHint, *a.DestructiveHint, *a.IdempotentHint, *a.OpenWorldHint}]
			if hints != want.hints {
				t.Errorf("%s: hints of %q, want %q", name, hints, want.hints)
			}
			if d.Title == "" || a.Title != d.Title || !strings.HasPrefix(d.Description, "Use this ") {
				t.Errorf("%s: title %q, description %q; it must say when to use it", name, d.Title, d.Description)
			}
			if d.InputSchema["additionalProperties"] != false || d.OutputSchema["type"] != "object" {
				t.Errorf("%s: the input must be closed and the output described", name)
			}
			for argument, schema := range d.InputSchema["properties"].(map[string]any) {
				if at(schema, "description") == nil {
					t.Errorf("%s: %s is not described", name, argument)
				}
			}
		}
	})
}

// Gemini takes no const, and words alone in an enum. It refuses all tools for one that has another.
func TestInputsAreDescribedByWhatEveryModelTakes(t *testing.T) {
	storetest1(t, func(s *site) {
		var look func(where string, schema any)
		look = func(where string, schema any) {
			switch v := schema.(type) {
			case map[string]any:
				if v["const"] != nil {
					t.Errorf("%s has a const", where)
				}
				words, _ := v["enum"].([]any)
				for _, word := range words {
					if _, ok := word.(string); !ok {
						t.Errorf("%s has %v in an enum", where, word)
					}
				}
				for name, member := range v {
					look(where+"/"+name, member)
				}
			case []any:
				for _, item := range v {
					look(where, item)
				}
			}
		}
		for name, d := range s.list() {
			look(name, d.InputSchema)
		}
	})
}

// Who has nothing but the descriptions writes the steps of an action without trying what they may hold.
func TestTheConfigsOfStepsAreDescribed(t *testing.T) {
	storetest1(t, func(s *site) {
		told, _ := at(s.list()["create_action"].InputSchema, "properties", "steps", "items", "properties", "config", "description").(string)
		for _, word := range []string{
			"op: select, path", "op: set, path", "value, from and template", "op: remove, path", "op: rename, from, to", "op: pick, fields", "op: wrap, key",
			"request, provider, email", "noise, mistake, resolved or test", "{{ request.body.id }}",
		} {
			if !strings.Contains(told, word) {
				t.Errorf("config does not tell %q: %s", word, told)
			}
		}
		if config, _ := reflect.TypeFor[api.NewStep]().FieldByName("Config"); told != config.Tag.Get("doc") {
			t.Errorf("the REST API tells another thing of config: %s", config.Tag.Get("doc"))
		}
	})
}

// storetest1 runs a test that does not depend on the database on one.
func storetest1(t *testing.T, test func(s *site)) {
	t.Helper()
	done := false
	each(t, func(t *testing.T, s *site) {
		if !done {
			done = true
			s.t = t
			test(s)
		}
	})
}

func TestEveryToolDoesWhatItSays(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		tools := s.list()
		called := map[string]bool{}
		call := func(tool string, arguments args) map[string]any {
			t.Helper()
			called[tool] = true
			_, got := s.call(tool, arguments)
			if fault := fits(tools[tool].OutputSchema, got, ""); fault != "" {
				t.Errorf("%s: its answer does not fit its schema: %s", tool, fault)
			}
			return got
		}
		made := call("create_endpoint", args{"name": "Payments", "custom_id": "payments", "response": args{"status": 202}})
		ep := at(made, "data", "id").(string)
		if got := call("get_endpoint", args{"endpoint_id": "payments"}); at(got, "data", "id") != ep || at(got, "data", "response", "status") != 202.0 {
			t.Errorf("get_endpoint by custom id: %v", got)
		}
		if got := call("list_endpoints", args{}); at(got, "data", 0, "name") != "Payments" || at(got, "data", 0, "response", "status") != 202.0 {
			t.Errorf("list_endpoints: %v", got)
		}

		// Requests.
		first := at(call("send_test_request", args{"endpoint_id": ep, "provider": "github", "event_type": "push"}), "data", "request_id").(string)
		second := at(call("send_test_request", args{"endpoint_id": ep, "method": "POST", "path": "/orders?page=2", "headers": args{"Content-Type": "application/json"}, "body": `{"id":1,"list":[1,2]}`}), "data", "request_id").(string)
		third := at(call("send_test_request", args{"endpoint_id": ep, "method": "POST", "path": "/orders?page=3", "headers": args{"Content-Type": "application/json"}, "body": `{"id":2,"list":[1,2]}`}), "data", "request_id").(string)
		page := call("list_requests", args{"endpoint_id": ep, "limit": 2})
		if at(page, "data", 0, "id") != third || at(page, "meta", "next_cursor") == nil {
			t.Errorf("list_requests: %v", page)
		}
		rest := call("list_requests", args{"endpoint_id": ep, "limit": 2, "cursor": at(page, "meta", "next_cursor")})
		if at(rest, "data", 0, "id") != first || at(rest, "meta", "next_cursor") != nil {
			t.Errorf("list_requests with a cursor: %v", rest)
		}
		if got := call("list_requests", args{"endpoint_id": ep, "provider": "github", "event_type": "pu*", "signature_status": "unchecked"}); len(at(got, "data").([]any)) != 1 {
			t.Errorf("list_requests with filters: %v", got)
		}
		delivery := at(call("get_request", args{"endpoint_id": ep, "request_id": first}), "data", "provider_event_data", "delivery_id").(string)
		for _, word := range []string{first, "latest push", delivery} {
			if got := call("get_request", args{"endpoint_id": "payments", "request_id": word}); at(got, "data", "id") != first {
				t.Errorf("get_request %q: %v", word, at(got, "data", "id"))
			}
		}
		if got := call("get_request", args{"endpoint_id": ep, "request_id": "latest", "max_bytes": 5}); at(got, "data", "body") != `{"id"` || at(got, "data", "truncated", 0) != "body" {
			t.Errorf("get_request with max_bytes: %v", got)
		}
		// What the specification names of the detail form and of the record is all there, as REST has it.
		detail := at(call("get_request", args{"request_id": first}), "data").(map[string]any)
		for _, name := range []string{"header_list", "query_params", "query_parameters", "query_string", "response_headers_sent", "response_header_list"} {
			if detail[name] == nil {
				t.Errorf("get_request leaves out %s", name)
			}
		}
		if name := at(detail, "header_list", 0, 0); name != "Host" {
			t.Errorf("get_request: the first header is %v", name)
		}
		if listed := call("list_endpoints", args{}); at(listed, "data", 0, "url") == nil || at(listed, "data", 0, "url") != at(listed, "data", 0, "webhook_url") {
			t.Errorf("list_endpoints: %v", listed)
		}
		parts := call("get_request", args{"request_id": third, "pointers": []string{"/list/1", "/none", "/id"}})
		if at(parts, "data", "parts", 0, "value") != 2.0 || at(parts, "data", "parts", 1, "found") != false || at(parts, "data", "body") != nil {
			t.Errorf("get_request with pointers: %v", parts)
		}
		differ := call("compare_requests", args{"request_id": second, "other_request_id": third})
		if at(differ, "data", "body", "changes", 0, "path") != "/id" || at(differ, "data", "query", 0, "right") != "3" {
			t.Errorf("compare_requests: %v", differ)
		}
		if got := call("diagnose_request", args{"endpoint_id": ep, "request_id": "latest"}); at(got, "data", "request_id") != third || len(at(got, "data", "findings").([]any)) == 0 {
			t.Errorf("diagnose_request: %v", got)
		}
		if got := call("wait_for_request", args{"endpoint_id": ep, "after": second}); at(got, "timed_out") != false || at(got, "data", "id") != third {
			t.Errorf("wait_for_request for what is there: %v", got)
		}
		if got := call("get_endpoint_metrics", args{"endpoint_id": ep, "window": "1h"}); at(got, "data", "window") != "1h" {
			t.Errorf("get_endpoint_metrics: %v", got)
		}

		// Replay.
		if got := s.fails(s.token, "replay_request", args{"endpoint_id": ep, "request_id": "latest", "target_url": "http://127.0.0.1:1/"}); !strings.Contains(got, "target_not_allowed") || !strings.Contains(got, "tunnel") {
			t.Errorf("replay_request to a forbidden address: %s", got)
		}
		if got := call("replay_request", args{"endpoint_id": ep, "request_id": "latest", "target_url": "tunnel"}); at(got, "data", "delivered") != false || at(got, "data", "error", "code") != "no_tunnel" {
			t.Errorf("replay_request to a tunnel that is not there: %v", got)
		}
		saved := call("save_replay_case", args{"endpoint_id": ep, "source_id": "latest", "name": "Orders", "target_url": "tunnel", "assertions": args{"status": args{"class": "2xx"}, "json_subset": args{"ok": true}}})
		id := at(saved, "data", "id")
		if at(saved, "data", "source_id") != third {
			t.Errorf("save_replay_case: %v", saved)
		}
		if got := call("list_replay_cases", args{"endpoint_id": ep}); at(got, "data", 0, "id") != id {
			t.Errorf("list_replay_cases: %v", got)
		}
		if got := call("get_replay_case", args{"endpoint_id": ep, "case_id": id}); at(got, "data", "assertions", "status", "class") != "2xx" {
			t.Errorf("get_replay_case: %v", got)
		}
		run := call("run_replay_case", args{"endpoint_id": ep, "case_id": id, "idempotency_key": "one"})
		again := call("run_replay_case", args{"endpoint_id": ep, "case_id": id, "idempotency_key": "one"})
		if at(run, "data", "id") != at(again, "data", "id") {
			t.Errorf("run_replay_case twice with one key: %v and %v", at(run, "data", "id"), at(again, "data", "id"))
		}
		if got := call("get_replay_case_run", args{"endpoint_id": ep, "run_id": at(run, "data", "id")}); at(got, "data", "idempotency_key") != "one" {
			t.Errorf("get_replay_case_run: %v", got)
		}

		// Actions. Both names of a step's type are read and written.
		act := call("create_action", args{"endpoint_id": ep, "name": "Mark", "steps": []args{{"type": "tag", "config": args{"tag": "seen"}}, {"step_type": "ignore", "config": args{}}}})
		for i, kind := range []string{"tag", "ignore"} {
			if at(act, "data", "steps", i, "type") != kind || at(act, "data", "steps", i, "step_type") != kind {
				t.Errorf("create_action: step %d is %v", i, at(act, "data", "steps", i))
			}
		}
		fourth := s.receive(ep, "/", "application/json", `{}`)
		s.work(ep, fourth)
		if got := call("list_actions", args{"endpoint_id": ep}); at(got, "data", 0, "steps", 0, "type") != "tag" {
			t.Errorf("list_actions: %v", got)
		}
		for _, of := range []args{{}, {"action_id": at(act, "data", "id")}, {"request_id": fourth}} {
			of["endpoint_id"] = ep
			if got := call("get_action_runs", of); at(got, "data", 0, "status") != "completed" || at(got, "data", 0, "steps", 0, "type") != "tag" {
				t.Errorf("get_action_runs %v: %v", of, got)
			}
		}
		if got := call("delete_action", args{"endpoint_id": ep, "action_id": at(act, "data", "id")}); at(got, "data", "deleted") != true {
			t.Errorf("delete_action: %v", got)
		}

		// Alerts.
		quiet := call("create_alert", args{"endpoint_id": ep, "name": "Quiet", "kind": "missing_webhook", "config": args{"window_minutes": 60}})
		if got := call("list_alerts", args{"endpoint_id": ep}); at(got, "data", 0, "id") != at(quiet, "data", "id") {
			t.Errorf("list_alerts: %v", got)
		}

		// Deletion.
		if got := call("delete_request", args{"endpoint_id": ep, "request_id": first}); at(got, "data", "id") != first {
			t.Errorf("delete_request: %v", got)
		}
		if got := call("delete_all_requests", args{"endpoint_id": ep, "confirm": true}); at(got, "data", "deleted") != 3.0 {
			t.Errorf("delete_all_requests: %v", got)
		}
		if got := call("delete_endpoint", args{"endpoint_id": ep}); at(got, "data", "deleted") != true {
			t.Errorf("delete_endpoint: %v", got)
		}
		for name := range specified {
			if !called[name] {
				t.Errorf("%s was not called", name)
			}
		}
	})
}

// An agent sees what connected machines made of a request, and of their answers no more than it wants to pay for.
func TestARequestTellsOfItsDeliveries(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ep := s.endpoint("Orders")
		id := s.receive(ep, "/", "text/plain", "hello")
		for range 12 {
			err := s.db.Update(t.Context(), s.who, func(tx *store.Tx) error {
				_, err := tx.RecordReport(ep, id, &hookglass.DeliveryReport{
					TargetURL: "http://localhost:3000", StatusCode: 201, Version: 2,
					Evidence: &hookglass.DeliveryEvidence{Body: []byte("0123456789"), Headers: hookglass.Headers{{Name: "X-A", Value: "1"}}},
				})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		_, got := s.call("get_request", args{"endpoint_id": ep, "request_id": id, "max_bytes": 25})
		deliveries, _ := at(got, "data", "deliveries").([]any)
		if len(deliveries) != 10 || at(got, "data", "deliveries", 0, "status_code") != 201. {
			t.Fatalf("deliveries are %v, want the newest ten", deliveries)
		}
		for i, want := range []string{"0123456789", "0123456789", "01234", ""} {
			if body := at(got, "data", "deliveries", i, "body"); body != want {
				t.Errorf("the body of delivery %d is %q, want %q", i, body, want)
			}
		}
		if at(got, "data", "truncated", 1) != "deliveries.2.body" {
			t.Errorf("truncated is %v", at(got, "data", "truncated"))
		}
	})
}

// work runs the actions of an event, as the job does.
func (s *site) work(ref, eventID string) {
	s.t.Helper()
	var task store.Task
	err := s.db.View(s.t.Context(), hookglass.System, func(v *store.View) error {
		e, err := v.Event(ref, eventID)
		if err == nil {
			task = store.Task{Kind: store.TaskActions, EndpointNum: e.EndpointNum, EventSeq: e.Seq}
		}
		return err
	})
	if err == nil {
		err = s.actions.Work(s.t.Context(), task)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// fits says where a value does not fit a schema, as far as the schemas of tools go.
func fits(schema map[string]any, v any, path string) string {
	if kinds, ok := schema["type"]; ok {
		kind := map[bool]string{true: "null"}[v == nil]
		switch n := v.(type) {
		case string:
			kind = "string"
		case bool:
			kind = "boolean"
		case float64:
			if kind = "number"; n == float64(int64(n)) {
				kind = "integer"
			}
		case []any:
			kind = "array"
		case map[string]any:
			kind = "object"
		}
		allowed, isList := kinds.([]any)
		if !isList {
			allowed = []any{kinds}
		}
		if !slices.Contains(allowed, any(kind)) && !(kind == "integer" && slices.Contains(allowed, any("number"))) {
			return fmt.Sprintf("%s is %s, want %v", path, kind, kinds)
		}
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, v) {
		return fmt.Sprintf("%s is %v, want one of %v", path, v, enum)
	}
	switch v := v.(type) {
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i, item := range v {
			if fault := fits(items, item, fmt.Sprintf("%s/%d", path, i)); fault != "" {
				return fault
			}
		}
	case map[string]any:
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, there := v[name.(string)]; !there {
				return fmt.Sprintf("%s lacks %v", path, name)
			}
		}
		properties, _ := schema["properties"].(map[string]any)
		more, _ := schema["additionalProperties"].(map[string]any)
		for name, member := range v {
			of, _ := properties[name].(map[string]any)
			if of == nil {
				if of = more; of == nil {
					if properties != nil {
						return path + "/" + name + " is not described"
					}
					continue
				}
			}
			if fault := fits(of, member, path+"/"+name); fault != "" {
				return fault
			}
		}
	}
	return ""
}

// What came compressed is looked into as it is meant, and shown as it came.
func TestAPartOfAFormIsReadAlone(t *testing.T) {
	storetest1(t, func(s *site) {
		ep := s.endpoint("Uploads")
		form := "--x\r\nContent-Disposition: form-data; name=\"meta\"\r\nContent-Type: application/json\r\n\r\n{\"id\":\"in_1\"}\r\n" +
			"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n\x00\xff\r\n--x--\r\n"
		id := s.receive(ep, "/", "multipart/form-data; boundary=x", form)
		_, got := s.call("get_request", args{"request_id": id})
		if at(got, "data", "body_parts", 0, "name") != "meta" || at(got, "data", "body_parts", 1, "filename") != "a.bin" || at(got, "data", "body_parts", 1, "size") != 2.0 {
			t.Errorf("parts: %v", at(got, "data", "body_parts"))
		}
		if _, got = s.call("get_request", args{"request_id": id, "part": 1}); at(got, "data", "body") != "AP8=" || at(got, "data", "body_encoding") != "base64" {
			t.Errorf("part 1: %v", at(got, "data", "body"))
		}
		if _, got = s.call("get_request", args{"request_id": id, "part": 0, "pointers": []string{"/id"}}); at(got, "data", "parts", 0, "value") != "in_1" || at(got, "data", "body") != nil {
			t.Errorf("pointers into part 0: %v", got)
		}
		if _, got = s.call("get_request", args{"request_id": id, "part": 0, "max_bytes": 5}); at(got, "data", "body") != `{"id"` || at(got, "data", "truncated", 0) != "body" {
			t.Errorf("the beginning of part 0: %v", got)
		}
		if got := s.fails(s.token, "get_request", args{"request_id": id, "part": 2}); !strings.Contains(got, "not_found: There is no such part.") {
			t.Errorf("part 2: %s", got)
		}
	})
}

func TestCompressedBodiesAreReadByPointerAndCompared(t *testing.T) {
	storetest1(t, func(s *site) {
		ep, encoded := s.endpoint("Payments"), hookglass.Header{Name: "Content-Encoding", Value: "gzip"}
		pack := func(text string) string {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			if _, err := io.WriteString(w, text); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		packed := pack(`{"id":"in_1","lines":[1,2]}`)
		one := s.receive(ep, "/", "application/json", packed, encoded)
		other := s.receive(ep, "/", "application/json", `{"id":"in_2","lines":[1,2]}`)

		_, got := s.call("get_request", args{"request_id": one, "pointers": []string{"/id", ""}})
		if at(got, "data", "parts", 0, "value") != "in_1" || at(got, "data", "parts", 1, "value", "lines", 1) != 2.0 {
			t.Errorf("pointers: %v", at(got, "data", "parts"))
		}
		if _, got = s.call("get_request", args{"request_id": one}); at(got, "data", "body") != base64.StdEncoding.EncodeToString([]byte(packed)) {
			t.Errorf("the body is not as it was received: %v", at(got, "data", "body"))
		}
		mislabelled := s.receive(ep, "/", "application/json", `{"id":"in_3"}`, encoded) // by what decompressed it on its way
		if _, got = s.call("get_request", args{"request_id": mislabelled, "pointers": []string{"/id"}}); at(got, "data", "parts", 0, "value") != "in_3" {
			t.Errorf("pointers into a body that is not compressed: %v", at(got, "data", "parts"))
		}
		form := s.receive(ep, "/", "application/x-www-form-urlencoded", "payload=%7B%22id%22%3A%22in_4%22%7D&n=1")
		if _, got = s.call("get_request", args{"request_id": form, "pointers": []string{"/payload/id", "/n"}}); at(got, "data", "parts", 0, "value") != "in_4" || at(got, "data", "parts", 1, "value") != "1" {
			t.Errorf("pointers into a form: %v", at(got, "data", "parts"))
		}
		_, got = s.call("compare_requests", args{"request_id": one, "other_request_id": other})
		if at(got, "data", "body", "compared_as") != "json" || at(got, "data", "body", "decoded") != true || at(got, "data", "body", "changes", 0, "path") != "/id" {
			t.Errorf("compare_requests: %v", at(got, "data", "body"))
		}
		for name, body := range map[string]string{"more than is parsed": pack(`"` + strings.Repeat("x", 8<<20) + `"`), "damaged": packed[:20]} {
			id := s.receive(ep, "/", "application/json", body, encoded)
			if got := s.fails(s.token, "get_request", args{"request_id": id, "pointers": []string{"/id"}}); !strings.Contains(got, "JSON body of up to 8 MiB") {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
}

func TestNoToolReturnsASecret(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		const canary = "canary-7f3d2a"
		ep := s.endpoint("Payments")
		generic, secret := "generic_hmac", canary+"-signature"
		if _, err := s.endpoints.CreateSignatureConfig(t.Context(), s.who, ep, endpoint.SignatureDraft{Provider: &generic, Secret: &secret}, false); err != nil {
			t.Fatal(err)
		}
		name, value := "CRM_TOKEN", canary+"-action"
		if _, err := s.actions.CreateSecret(t.Context(), s.who, s.owner.Workspace.ID, action.SecretDraft{Name: &name, Value: &value}); err != nil {
			t.Fatal(err)
		}
		s.call("create_action", args{"endpoint_id": ep, "name": "CRM", "steps": []args{{"step_type": "http_request", "config": args{
			"method": "POST", "url": "https://crm.invalid/{{ secrets.CRM_TOKEN }}", "headers": args{"Authorization": "Bearer {{ secrets.CRM_TOKEN }}"}, "body": "{{ secrets.CRM_TOKEN }}",
		}}}})
		id := s.receive(ep, "/", "application/json", `{"a":1}`, hookglass.Header{Name: "X-Signature", Value: "sha256=00"})
		s.work(ep, id)
		s.call("save_replay_case", args{"endpoint_id": ep, "source_id": id, "name": "c", "target_url": "tunnel", "signature_mode": "strip", "assertions": args{"status": args{"code": 200}}})
		for tool, arguments := range map[string]args{
			"list_endpoints": {}, "get_endpoint": {}, "list_requests": {}, "get_request": {"request_id": id}, "diagnose_request": {"request_id": id},
			"list_actions": {}, "get_action_runs": {}, "list_replay_cases": {}, "list_alerts": {}, "get_endpoint_metrics": {},
			"replay_request":   {"request_id": id, "target_url": "tunnel", "signature_mode": "resign"},
			"compare_requests": {"request_id": id, "other_request_id": id},
		} {
			if tool != "list_endpoints" {
				arguments["endpoint_id"] = ep
			}
			if text, got := s.call(tool, arguments); strings.Contains(text, canary) || strings.Contains(fmt.Sprint(got), canary) {
				t.Errorf("%s returns a secret: %s", tool, text)
			}
		}
		if text, _ := s.call("list_actions", args{"endpoint_id": ep}); !strings.Contains(text, "secrets.CRM_TOKEN") {
			t.Errorf("list_actions does not name the secret: %s", text)
		}
	})
}

// An agent whose search found nothing because of an AND is told, and one whose search found something is not.
func TestASearchThatFoundNothingIsAdvisedOn(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ep := s.endpoint("Payments")
		s.receive(ep, "/", "text/plain", "bread AND butter")
		_, none := s.call("list_requests", args{"endpoint_id": ep, "q": "bread AND jam"})
		_, plain := s.call("list_requests", args{"endpoint_id": ep, "q": "jam"})
		_, some := s.call("list_requests", args{"endpoint_id": ep, "q": "bread AND butter"})
		if advice, _ := at(none, "meta", "advice").(string); !strings.Contains(advice, "AND, OR and NOT are searched for as words.") {
			t.Errorf("nothing was found: %v", none)
		}
		for _, answer := range []any{plain, some} {
			if meta := at(answer, "meta").(map[string]any); meta["advice"] != nil {
				t.Errorf("advised: %v", meta)
			}
		}
	})
}
