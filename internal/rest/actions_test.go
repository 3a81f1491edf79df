package rest_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/account"
	"hookglass/internal/store"
)

// actionThings are an action of an endpoint, a run of it, and a secret of the owner's workspace that nobody uses.
type actionThings struct{ action, run, secret, workspace string }

func (s *site) newActionThings(endpoint, event string) (made actionThings) {
	s.t.Helper()
	made.action = s.newAction(endpoint, `"name":"Mark","steps":[{"step_type":"tag","name":"Mark","config":{"tag":"seen"}}]`).ID
	var run api.One[api.ActionRun]
	s.want(202, "POST", "/endpoints/"+endpoint+"/actions/"+made.action+"/runs", `{"run":{"event_id":"`+event+`"}}`, &run)
	made.run = run.Data.ID
	secret := s.newSecret("S"+rand.Text(), "value")
	made.secret, made.workspace = secret.ID, strconv.FormatInt(secret.WorkspaceID, 10)
	return made
}

func (s *site) newAction(endpoint, members string) api.Action {
	s.t.Helper()
	var made api.One[api.Action]
	s.want(201, "POST", "/endpoints/"+endpoint+"/actions", `{"endpoint_action":{`+members+`}}`, &made)
	return made.Data
}

func (s *site) secrets() string {
	return fmt.Sprintf("/workspaces/%d/action_secrets", s.owner.Workspace.ID)
}

func (s *site) newSecret(name, value string) api.ActionSecret {
	s.t.Helper()
	var made api.One[api.ActionSecret]
	s.want(201, "POST", s.secrets(), fmt.Sprintf(`{"action_secret":{"name":%q,"secret_value":%q}}`, name, value), &made)
	return made.Data
}

// act works the actions of an event, as the queue does.
func (s *site) act(endpoint, event string) {
	s.t.Helper()
	var t store.Task
	err := s.db.View(s.t.Context(), hookglass.System, func(v *store.View) error {
		e, err := v.Event(endpoint, event)
		if err == nil {
			t = store.Task{Kind: store.TaskActions, EndpointNum: e.EndpointNum, EventSeq: e.Seq, Claim: 1, Event: e}
		}
		return err
	})
	if err == nil {
		err = s.actions.Work(s.t.Context(), t)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestFieldsOfActionsHaveOneName refuses one field for its type and for its value.
func TestFieldsOfActionsHaveOneName(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		for _, c := range []struct{ members, field string }{
			{`"steps":[{"step_type":"tag","config":{"tag":"a"},"config_version":"1"}]`, "steps.0.config_version"},
			{`"steps":[{"step_type":"tag","config":{"tag":"a"},"config_version":2}]`, "steps.0.config_version"},
			{`"conditions":[{"field":"provider","operator":"equals","value":1}]`, "conditions.0.value"},
			{`"conditions":[{"field":"provider","operator":"equals","value":""}]`, "conditions.0.value"},
			{`"steps":[{"step_type":"tag","config":{"tag":"a"},"conditions":[{"source":"request","path":1,"operator":"exists"}]}]`, "steps.0.conditions.0.path"},
			{`"steps":[{"step_type":"tag","config":{"tag":"a"},"conditions":[{"source":"request","path":"a","operator":"exists"}]}]`, "steps.0.conditions.0.path"},
			{`"steps":[{"step_type":"tag","config":{"tag":"a"},"conditions":[{"source":"request","path":null,"operator":"exists"}]}]`, "steps.0.conditions.0.path"},
			{`"steps":[{"step_type":"tag","config":{"tag":"a"},"conditions":[{"source":"request","operator":"exists"}]}]`, "steps.0.conditions.0.path"},
			{`"steps":[{"step_type":"transform","config":{"source":"request","operations":[{"op":"wrap"}]}}]`, "steps.0.config.operations.0.key"},
		} {
			var refused api.Error
			s.want(422, "POST", "/endpoints/"+e.ID+"/actions", `{"endpoint_action":{"name":"x",`+c.members+`}}`, &refused)
			if len(refused.Details) != 1 || refused.Details[0].Field != "endpoint_action."+c.field {
				t.Errorf("%s: %v", c.members, refused.Details)
			}
		}
	})
}

func TestActionsOverREST(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		for _, base := range []string{"/endpoints/" + e.ID + "/actions", "/endpoints/" + e.ID + "/endpoint_actions"} {
			var made api.One[map[string]any]
			s.want(201, "POST", base, `{"endpoint_action":{"name":"Mark","enabled":true,"failure_policy":"stop","position":1,
				"conditions":[{"field":"http_method","operator":"equals","value":"POST"},{"field":"provider","operator":"exists","value":null}],
				"steps":[{"reference_key":"shape","step_type":"transform","name":"Shape","config_version":1,"failure_policy":null,
					"config":{"source":"request","operations":[{"op":"set","path":"/a","value":1.00}]},
					"conditions":[{"source":"request","path":"/body/hello","operator":"equals","value":"world"}]}]}}`, &made)
			for _, name := range []string{"id", "endpoint_id", "name", "enabled", "failure_policy", "position", "conditions", "steps", "created_at", "updated_at"} {
				if _, ok := made.Data[name]; !ok {
					t.Errorf("the record lacks %s", name)
				}
			}
			id := made.Data["id"].(string)
			if !strings.HasPrefix(id, "act_") || made.Data["endpoint_id"] != e.ID {
				t.Errorf("made %v", made.Data)
			}
			_, text := s.call(s.token, "GET", base+"/"+id, "")
			if !strings.Contains(text, `"value":1.00}`) || !strings.Contains(text, `"recent_runs":[]`) {
				t.Errorf("read as %s", text)
			}
			var changed api.One[api.Action]
			s.want(200, "PATCH", base+"/"+id, `{"endpoint_action":{"name":"Marked"}}`, &changed)
			if changed.Data.Name != "Marked" || changed.Data.FailurePolicy != "stop" || len(changed.Data.Steps) != 1 || len(changed.Data.Conditions) != 2 {
				t.Errorf("changed to %+v", changed.Data)
			}
			var all api.List[api.Action]
			s.want(200, "GET", base, "", &all)
			if len(all.Data) != 1 || all.Data[0].ID != id {
				t.Errorf("listed %+v", all.Data)
			}
			var deleted api.One[api.Deleted]
			s.want(200, "DELETE", base+"/"+id, "", &deleted)
			if deleted.Data.ID != id || !deleted.Data.Deleted {
				t.Errorf("deleted %+v", deleted.Data)
			}
			s.wantError(404, "not_found", "GET", base+"/"+id, "")
		}
	})
}

func TestActionsAreRefusedAsDescribed(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base := "/endpoints/" + e.ID + "/actions"
		for _, c := range []struct {
			body   string
			status int
			code   string
		}{
			{`{`, 400, "invalid_json"},
			{`{}`, 422, "validation_failed"},
			{`{"endpoint_action":{"steps":[]}}`, 422, "validation_failed"},
			{`{"endpoint_action":{"name":"x","kind":"y"}}`, 422, "validation_failed"},
			{`{"endpoint_action":{"name":"x","enabled":"yes"}}`, 422, "validation_failed"},
			{`{"endpoint_action":{"name":null}}`, 422, "validation_failed"},
			{`{"endpoint_action":{"name":"x","steps":[{"type":"tag","config":{"tag":"a"}}]}}`, 422, "validation_failed"},
			{`{"endpoint_action":{"name":"x","steps":[{"step_type":"tag","config":{"tag":"a","b":1}}]}}`, 422, "validation_failed"},
			{`{"endpoint_action":{"name":"x","steps":[{"step_type":"forward","config":{"url":"http://127.0.0.1/"}}]}}`, 422, "target_not_allowed"},
			{`{"endpoint_action":{"name":"x","conditions":[{"field":"provider","operator":"equals","value":1}]}}`, 422, "validation_failed"},
		} {
			s.wantError(c.status, c.code, "POST", base, c.body)
		}
		// A missing right is 403 (spec: decisions, section 3).
		s.setPlan(hookglass.PlanFree, hookglass.SubscriptionNone)
		s.wantError(403, "plan_required", "POST", base, `{"endpoint_action":{"name":"x"}}`)
		s.wantError(403, "plan_required", "POST", s.secrets(), `{"action_secret":{"name":"A","secret_value":"v"}}`)
		s.setPlan(hookglass.PlanPro, hookglass.SubscriptionTrialing)
		s.wantError(403, "subscription_required", "POST", base, `{"endpoint_action":{"name":"x","steps":[{"step_type":"forward","config":{"url":"https://a.example.com"}}]}}`)
		s.wantError(403, "plan_required", "POST", base, `{"endpoint_action":{"name":"x","steps":[{"step_type":"transform","config":{"source":"request","operations":[{"op":"select","path":""}]}}]}}`)
	})
}

func TestRunsOverREST(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		a := s.newAction(e.ID, `"name":"Mark","conditions":[{"field":"http_method","operator":"equals","value":"POST"}],"steps":[{"step_type":"tag","name":"Mark","config":{"tag":"seen"}}]`)
		event := s.arrive(e.ID, nil)
		s.act(e.ID, event)
		base := "/endpoints/" + e.ID
		var read api.One[api.ActionDetail]
		s.want(200, "GET", base+"/actions/"+a.ID, "", &read)
		if len(read.Data.RecentRuns) != 1 {
			t.Fatalf("recent_runs is %+v", read.Data.RecentRuns)
		}
		first := read.Data.RecentRuns[0]
		var run api.One[map[string]any]
		s.want(200, "GET", base+"/action_runs/"+first.ID, "", &run)
		for _, name := range []string{"id", "action_id", "endpoint_id", "event_id", "parent_run_id", "status", "trigger", "steps", "started_at", "finished_at", "duration_ms"} {
			if _, ok := run.Data[name]; !ok {
				t.Errorf("the run lacks %s", name)
			}
		}
		trigger := run.Data["trigger"].(map[string]any)
		condition := trigger["conditions"].([]any)[0].(map[string]any)
		step := run.Data["steps"].([]any)[0].(map[string]any)
		for _, name := range []string{"field", "operator", "value", "actual", "matched"} {
			if _, ok := condition[name]; !ok {
				t.Errorf("a condition lacks %s", name)
			}
		}
		for _, name := range []string{"reference_key", "step_type", "name", "status", "reason", "started_at", "duration_ms", "summary", "error", "truncated"} {
			if _, ok := step[name]; !ok {
				t.Errorf("a step lacks %s", name)
			}
		}
		if run.Data["status"] != "completed" || run.Data["event_id"] != event || trigger["matched"] != true || condition["actual"] != "POST" || step["status"] != "completed" {
			t.Errorf("the run is %v", run.Data)
		}

		var again api.One[api.ActionRun]
		s.want(202, "POST", base+"/actions/"+a.ID+"/runs", `{"run":{"event_id":"`+event+`"}}`, &again)
		if again.Data.ParentRunID == nil || *again.Data.ParentRunID != first.ID || again.Data.Status != "queued" {
			t.Errorf("the rerun is %+v", again.Data)
		}
		if err := s.actions.ExecuteRun(t.Context(), again.Data.ID); err != nil {
			t.Fatal(err)
		}
		var page api.List[api.ActionRun]
		s.want(200, "GET", base+"/actions/"+a.ID+"/runs?limit=1", "", &page)
		if len(page.Data) != 1 || page.Data[0].ID != again.Data.ID || page.Meta.NextCursor == nil || page.Data[0].Status != "completed" {
			t.Fatalf("the first page is %+v", page)
		}
		s.want(200, "GET", base+"/actions/"+a.ID+"/runs?limit=1&cursor="+*page.Meta.NextCursor, "", &page)
		if len(page.Data) != 1 || page.Data[0].ID != first.ID || page.Meta.NextCursor != nil {
			t.Errorf("the second page is %+v", page)
		}
		s.want(200, "DELETE", base+"/actions/"+a.ID, "", nil)
		s.want(200, "GET", base+"/action_runs/"+first.ID, "", nil) // deleting preserves run history
		var kept api.List[api.ActionRun]
		s.want(200, "GET", base+"/actions/"+a.ID+"/runs", "", &kept)
		if len(kept.Data) == 0 {
			t.Error("the runs of the deleted action are gone")
		}
		s.want(200, "GET", base+"/action_runs", "", &page)
		if len(page.Data) != 2 {
			t.Errorf("the endpoint has the runs %+v", page.Data)
		}
		s.wantError(404, "not_found", "POST", base+"/actions/"+a.ID+"/runs", `{"run":{"event_id":"`+event+`"}}`)
	})
}

func TestPreviewsAndBacktestsOverREST(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		s.newSecret("CRM", "s3cr3t-canary")
		a := s.newAction(e.ID, `"name":"Tell","steps":[
			{"step_type":"transform","name":"Shape","config":{"source":"request","operations":[{"op":"select","path":"/method"},{"op":"wrap","key":"m"}]}},
			{"step_type":"http_request","name":"Send","config":{"url":"https://crm.example.com/","headers":{"Authorization":"Bearer {{ secrets.CRM }}"},"body":"{\"m\":{{steps.shape.output.m}}}"}}]`)
		event := s.arrive(e.ID, nil)
		base := "/endpoints/" + e.ID + "/actions/" + a.ID
		var p api.One[api.ActionPreview]
		_, text := s.call(s.token, "POST", base+"/preview", `{"preview":{"ingress_event_id":"`+event+`"}}`)
		if err := json.Unmarshal([]byte(text), &p); err != nil || len(p.Data.Steps) != 2 {
			t.Fatalf("%v: %s", err, text)
		}
		if string(p.Data.Steps[0].Output) != `{"m":"POST"}` || !strings.Contains(string(p.Data.Steps[1].Rendered), `"Authorization":"Bearer {{secrets.CRM}}"`) ||
			fmt.Sprint(p.Data.SensitiveFields) != "[{send /headers/Authorization}]" || strings.Contains(text, "canary") {
			t.Errorf("the preview is %s", text)
		}
		s.wantError(404, "not_found", "POST", base+"/preview", `{"preview":{"ingress_event_id":"req_00000000000000000000000000"}}`)
		s.wantError(422, "validation_failed", "POST", base+"/preview", `{"preview":{}}`)
		var page api.List[api.ActionRun]
		s.want(200, "GET", base+"/runs", "", &page)
		if len(page.Data) != 0 {
			t.Errorf("a preview left the runs %+v", page.Data)
		}

		var b api.One[api.ActionBacktest]
		s.want(200, "POST", base+"/backtest", `{"limit":10,"endpoint_action":{"steps":[{"reference_key":"shape","step_type":"transform","config":{"source":"request","operations":[{"op":"select","path":"/path"},{"op":"wrap","key":"m"}]}}],
			"conditions":[{"field":"http_method","operator":"equals","value":"GET"}]}}`, &b)
		if b.Data.Evaluated != 1 || b.Data.Matched != 1 || b.Data.Submitted == nil || *b.Data.Submitted != 0 || len(b.Data.Events[0].Differences) < 2 ||
			b.Data.Events[0].Differences[0].Path != "/m" || string(b.Data.Events[0].Differences[0].Stored) != `"POST"` {
			t.Errorf("the backtest is %+v", b.Data)
		}
		s.wantError(422, "validation_failed", "POST", base+"/backtest", `{"limit":101}`)
		if _, text := s.call(s.token, "POST", base+"/backtest", `{"limit":null}`); strings.Count(text, `"field":"limit"`) != 1 {
			t.Errorf("a limit of null answers %s", text)
		}
		if _, text := s.call(s.token, "POST", base+"/backtest", `{"query":"status:("}`); !strings.Contains(text, `"field":"query"`) || !strings.Contains(text, `"position":`) {
			t.Errorf("a query that cannot be read answers %s", text)
		}
	})
}

func TestSecretsOverREST(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		secret := s.newSecret("CRM", "s3cr3t-canary")
		path := s.secrets() + "/" + secret.ID
		if !strings.HasPrefix(secret.ID, "asec_") || secret.LastUsedAt != nil {
			t.Errorf("made %+v", secret)
		}
		for _, read := range []string{path, s.secrets()} {
			if _, text := s.call(s.token, "GET", read, ""); strings.Contains(text, "canary") || strings.Contains(text, "secret_value") || !strings.Contains(text, `"CRM"`) {
				t.Errorf("%s answers %s", read, text)
			}
		}
		s.wantError(422, "validation_failed", "PATCH", path, `{"action_secret":{"name":"OTHER"}}`)
		s.wantError(422, "validation_failed", "POST", s.secrets(), `{"action_secret":{"name":"CRM","secret_value":"x"}}`)
		s.want(200, "PATCH", path, `{"action_secret":{"secret_value":"other","description":null}}`, nil)
		e := s.newEndpoint("")
		a := s.newAction(e.ID, `"name":"Tell","steps":[{"step_type":"http_request","name":"Send","config":{"url":"https://crm.example.com/{{secrets.CRM}}"}}]`)
		res, text := s.call(s.token, "DELETE", path, "")
		var refused struct {
			Error      string
			References []map[string]string
		}
		if err := json.Unmarshal([]byte(text), &refused); err != nil || res.StatusCode != 409 || refused.Error != "secret_in_use" || len(refused.References) != 1 {
			t.Fatalf("%d %s", res.StatusCode, text)
		}
		if r := refused.References[0]; r["endpoint_id"] != e.ID || r["action_id"] != a.ID || r["action_name"] != "Tell" || r["step"] != "send" {
			t.Errorf("the references are %v", refused.References)
		}
		s.want(200, "PATCH", "/endpoints/"+e.ID+"/actions/"+a.ID, `{"endpoint_action":{"steps":[]}}`, nil)
		s.want(200, "DELETE", path, "", nil)
		s.wantError(404, "not_found", "GET", path, "")
		if time.Since(secret.CreatedAt.Time) > time.Hour {
			t.Errorf("created at %v", secret.CreatedAt)
		}
	})
}

// wantError makes a request that is refused with a code.
func (s *site) wantError(status int, code, method, path, body string) {
	s.t.Helper()
	var refused api.Error
	s.want(status, method, path, body, &refused)
	if refused.Error != code {
		s.t.Errorf("%s %s %s: %s, want %s", method, path, body, refused.Error, code)
	}
}

func (s *site) setPlan(plan hookglass.Plan, subscription hookglass.Subscription) {
	s.t.Helper()
	if _, err := s.accounts.SetAccount(s.t.Context(), s.owner.Account.ID, account.Change{Plan: &plan, Subscription: &subscription}); err != nil {
		s.t.Fatal(err)
	}
}

// Positions close up when an action is deleted; who deletes what a page showed misses nothing of the next.
func TestActionsAreDeletedPageByPage(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base := "/endpoints/" + e.ID + "/actions"
		var ids, seen []string
		for range 5 {
			ids = append(ids, s.newAction(e.ID, `"name":"Mark","steps":[]`).ID)
		}
		cursor := ""
		for range 3 {
			var page api.List[api.Action]
			s.want(200, "GET", base+"?limit=2"+cursor, "", &page)
			for _, a := range page.Data {
				seen = append(seen, a.ID)
				s.want(200, "DELETE", base+"/"+a.ID, "", nil)
			}
			if page.Meta.NextCursor == nil {
				break
			}
			cursor = "&cursor=" + *page.Meta.NextCursor
		}
		if !slices.Equal(seen, ids) {
			t.Errorf("listed were %v, want %v", seen, ids)
		}
		var page api.List[api.Action]
		if s.want(200, "GET", base+"?limit=2"+cursor, "", &page); len(page.Data) != 0 || page.Meta.NextCursor != nil {
			t.Errorf("behind an action that is gone are %+v", page)
		}
	})
}

// Runs are listed by when they were created, though one that began later was stored before.
func TestRunsAreListedNewestFirst(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		made := s.newAction(e.ID, `"name":"Mark","steps":[]`)
		now := s.db.Now()
		var ids []string
		for i := range 3 {
			ids = append(ids, hookglass.NewSortableID(hookglass.PrefixActionRun, now.Add(time.Duration(i)*time.Second)))
		}
		for _, i := range []int{1, 2, 0} {
			id := s.arrive(e.ID, nil)
			err := s.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				a, err := tx.Action(e.ID, made.ID)
				if err != nil {
					return err
				}
				event, err := tx.Event(e.ID, id)
				if err != nil {
					return err
				}
				_, err = tx.InsertActionRun(&store.HeldRun{ActionRun: hookglass.ActionRun{
					ID: ids[i], EndpointNum: event.EndpointNum, ActionNum: a.Num, ActionID: a.ID, EventSeq: event.Seq, EventID: event.ID,
					Status: hookglass.ActionRunCompleted, StartedAt: now, FinishedAt: now,
				}}, 0)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		var page api.List[api.ActionRun]
		s.want(200, "GET", "/endpoints/"+e.ID+"/actions/"+made.ID+"/runs", "", &page)
		var one api.One[api.ActionDetail]
		s.want(200, "GET", "/endpoints/"+e.ID+"/actions/"+made.ID, "", &one)
		for i, id := range []string{ids[2], ids[1], ids[0]} {
			if page.Data[i].ID != id || one.Data.RecentRuns[i].ID != id {
				t.Errorf("run %d is %s and %s, want %s", i, page.Data[i].ID, one.Data.RecentRuns[i].ID, id)
			}
		}
		for _, list := range []string{"/actions/" + made.ID + "/runs", "/action_runs"} {
			cursor := ""
			for i, id := range []string{ids[2], ids[1], ids[0]} {
				var page api.List[api.ActionRun]
				s.want(200, "GET", "/endpoints/"+e.ID+list+"?limit=1"+cursor, "", &page)
				if len(page.Data) != 1 || page.Data[0].ID != id || (page.Meta.NextCursor == nil) != (i == 2) {
					t.Fatalf("page %d of %s is %+v, want %s", i+1, list, page, id)
				}
				if i < 2 {
					cursor = "&cursor=" + *page.Meta.NextCursor
				}
			}
		}
	})
}
