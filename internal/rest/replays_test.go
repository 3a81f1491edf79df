package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/account"
	"hookglass/internal/capture"
	"hookglass/internal/outbound"
	"hookglass/internal/replay"
	"hookglass/internal/share"
)

// network answers every request with the body and the X-Place that it was sent, and stands for a public one.
type network struct{}

func (network) Check(field, rawURL string) error {
	return outbound.New(outbound.Config{}).Check(field, rawURL)
}

func (network) Turn(context.Context, string, int64) (*outbound.Turn, error) { return nil, nil }

func (network) Do(_ context.Context, r outbound.Request) (*outbound.Response, error) {
	answer := hookglass.Headers{{Name: "Content-Type", Value: "text/plain"}, {Name: "X-A", Value: "1"}, {Name: "x-a", Value: "2"}}
	if place := r.Headers.Get("X-Place"); place != "" {
		answer = append(answer, hookglass.Header{Name: "X-Place", Value: place})
	}
	return &outbound.Response{Status: 200, Headers: answer, Body: r.Body, RequestHeaders: r.Headers}, nil
}

// replayThings are a case, a run of it and a bulk replay of an endpoint, and a link to an event.
type replayThings struct{ caseID, runID, batchID, shareID string }

func (s *site) newReplayThings(endpoint, event string) replayThings {
	s.t.Helper()
	name, url := "Case", "https://app.example.com/"
	c, err := s.replays.CreateCase(s.t.Context(), hookglass.System, endpoint, replay.CaseDraft{
		SourceID: &event, Name: &name, TargetURL: &url, Assertions: &hookglass.Assertions{StatusClass: "2xx"},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := s.replays.RunCase(s.t.Context(), hookglass.System, endpoint, c.ID, "key")
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := s.replays.CreateBatch(s.t.Context(), hookglass.System, endpoint, replay.BatchRequest{TargetURL: url})
	if err != nil {
		s.t.Fatal(err)
	}
	_, l, err := s.deps.Shares.Create(s.t.Context(), hookglass.System, endpoint, event, share.DefaultLife)
	if err != nil {
		s.t.Fatal(err)
	}
	return replayThings{c.ID, r.ID, b.ID, strconv.FormatInt(l.ID, 10)}
}

func TestAReplayAnswersWithWhatBecameOfIt(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base := "/endpoints/" + e.ID + "/requests/" + s.arrive(e.ID, nil)
		var got api.One[map[string]any]
		s.want(200, "POST", base+"/replay", `{"target_url":"https://app.example.com/x"}`, &got)
		for _, name := range []string{
			"event_id", "target_url", "method", "identity_mode", "signature_mode", "delivered", "status_code", "response_headers", "response_body",
			"response_truncated", "duration_ms", "error", "replayed_at", "request_headers_sent", "new_delivery_id",
		} {
			if _, ok := got.Data[name]; !ok {
				t.Errorf("%s is missing", name)
			}
		}
		headers := got.Data["response_headers"].(map[string]any)
		if got.Data["delivered"] != true || got.Data["status_code"] != 200.0 || got.Data["signature_mode"] != "preserve" || got.Data["identity_mode"] != "original" ||
			got.Data["error"] != nil || headers["X-A"] != "1, 2" {
			t.Errorf("%v", got.Data)
		}
		if sent := got.Data["request_headers_sent"].(map[string]any); sent["X-Service-Replay"] != "true" {
			t.Errorf("%v", sent)
		}
		s.want(200, "POST", base+"/replay", `{"target_url":"tunnel"}`, &got)
		if why, _ := got.Data["error"].(map[string]any); got.Data["delivered"] != false || why["code"] != "no_tunnel" || got.Data["status_code"] != nil {
			t.Errorf("tunnel: %v", got.Data)
		}
		for name, c := range map[string]struct {
			body   string
			status int
			code   string
		}{
			"no target":      {`{}`, 422, "validation_failed"},
			"forbidden":      {`{"target_url":"http://127.0.0.1/"}`, 422, "target_not_allowed"},
			"a scheme":       {`{"target_url":"file:///etc/passwd"}`, 422, "validation_failed"},
			"a mode":         {`{"target_url":"https://a.example.com","signature_mode":"x"}`, 422, "validation_failed"},
			"a body":         {`{"target_url":"https://a.example.com","body":"x"}`, 422, "validation_failed"},
			"headers":        {`{"target_url":"https://a.example.com","headers":{}}`, 422, "validation_failed"},
			"a query":        {`{"target_url":"https://a.example.com","query":"x"}`, 422, "validation_failed"},
			"not JSON":       {`{`, 400, "invalid_json"},
			"no config":      {`{"target_url":"https://a.example.com","signature_mode":"resign"}`, 422, "validation_failed"},
			"an override":    {`{"target_url":"https://a.example.com","overrides":{"headers":{"Host":"x"}}}`, 422, "validation_failed"},
			"overrides' key": {`{"target_url":"https://a.example.com","overrides":{"path":"x"}}`, 422, "validation_failed"},
		} {
			var refused api.Error
			s.want(c.status, "POST", base+"/replay", c.body, &refused)
			if refused.Error != c.code {
				t.Errorf("%s: %s", name, refused.Error)
			}
		}
		var history api.List[api.ReplayRecord]
		s.want(200, "GET", base+"/replays?limit=1", "", &history)
		if len(history.Data) != 1 || history.Meta.NextCursor == nil || *history.Data[0].Error != (api.Failure{Code: "no_tunnel", Message: history.Data[0].Error.Message}) {
			t.Fatalf("%+v", history)
		}
		s.want(200, "GET", base+"/replays?cursor="+*history.Meta.NextCursor, "", &history)
		if len(history.Data) != 1 || history.Meta.NextCursor != nil || history.Data[0].RequestURL != "https://app.example.com/x" {
			t.Errorf("%+v", history)
		}
		for query, want := range map[string]string{
			`"a=1&b=%20"`: "a=1&b=%20", `{"b":"x y+&=é","a":["1",2],"c":[]}`: "b=x%20y%2B%26%3D%C3%A9&a=1&a=2", `{}`: "", `null`: "old=1", `""`: "",
		} {
			s.want(200, "POST", base+"/replay", `{"target_url":"https://app.example.com/x?old=1","overrides":{"query":`+query+`}}`, &got)
			s.want(200, "GET", base+"/replays?limit=1", "", &history)
			if _, got, _ := strings.Cut(history.Data[0].RequestURL, "?"); got != want {
				t.Errorf("overrides.query %s: %q, want %q", query, got, want)
			}
		}
		for _, query := range []string{`5`, `[]`, `true`, `{"a":null}`, `{"a":{}}`, `{"a":[[]]}`, `{"a":["b",null]}`} {
			var refused api.Error
			s.want(422, "POST", base+"/replay", `{"target_url":"https://app.example.com/x","overrides":{"query":`+query+`}}`, &refused)
			if len(refused.Details) != 1 || !strings.HasPrefix(refused.Details[0].Field, "overrides.query") {
				t.Errorf("overrides.query %s: %+v", query, refused)
			}
		}
	})
}

// What a replay and a run of a case sent and were answered is told field by field, and which strings are bytes.
func TestReplaysAndRunsTellFieldsToTheByte(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		event := s.arrive(e.ID, func(a *capture.Arrival) {
			a.Headers = hookglass.Headers{{Name: "X-Tag", Value: "a"}, {Name: "X-Place", Value: "caf\xe9"}, {Name: "x-tag", Value: "caf\u00e9"}}
		})
		check := func(what string, sent, answered [][2]string, pointers []string, want ...string) {
			t.Helper()
			if !slices.Equal(pointers, want) || !slices.Contains(sent, [2]string{"X-Tag", "a"}) || !slices.Contains(sent, [2]string{"x-tag", "caf\u00e9"}) ||
				!reflect.DeepEqual(answered, [][2]string{{"Content-Type", "text/plain"}, {"X-A", "1"}, {"x-a", "2"}, {"X-Place", "caf\u00e9"}}) {
				t.Errorf("%s: %q, answered %q; %q, want %q", what, sent, answered, pointers, want)
			}
		}
		place := func(list string, fields [][2]string) string {
			return fmt.Sprintf("/%s/%d/1", list, slices.Index(fields, [2]string{"X-Place", "caf\u00e9"}))
		}
		base := "/endpoints/" + e.ID
		var now api.One[api.Replay]
		s.want(200, "POST", base+"/requests/"+event+"/replay", `{"target_url":"https://app.example.com/"}`, &now)
		var history api.List[api.ReplayRecord]
		s.want(200, "GET", base+"/requests/"+event+"/replays", "", &history)
		for what, r := range map[string]api.Replay{"at once": now.Data, "remembered": history.Data[0].Replay} {
			check(what, r.RequestHeaderList, r.ResponseHeaderList, r.Latin1, place("request_header_list", r.RequestHeaderList), "/response_header_list/3/1")
		}
		var c api.One[api.ReplayCase]
		s.want(201, "POST", base+"/replay_cases", `{"replay_case":{"source_id":"`+event+`","name":"Bytes","target_url":"https://app.example.com/","assertions":{"status":{"class":"2xx"}}}}`, &c)
		queued, err := s.replays.RunCase(t.Context(), hookglass.System, e.ID, c.Data.ID, "bytes")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.replays.ExecuteRun(t.Context(), queued.ID); err != nil {
			t.Fatal(err)
		}
		var run api.One[api.ReplayCaseRun]
		s.want(200, "GET", base+"/replay_case_runs/"+queued.ID, "", &run)
		q, res := run.Data.Request, run.Data.Response
		check("run", q.HeaderList, res.HeaderList, q.Latin1, place("header_list", q.HeaderList))
		if !slices.Equal(res.Latin1, []string{"/header_list/3/1"}) {
			t.Errorf("answer of the run: %q", res.Latin1)
		}

		var text api.One[map[string]any]
		s.want(200, "POST", base+"/requests/"+s.arrive(e.ID, nil)+"/replay", `{"target_url":"tunnel"}`, &text)
		if none, ok := text.Data["response_header_list"].([]any); !ok || len(none) > 0 || text.Data["latin1"] != nil {
			t.Errorf("of UTF-8, without an answer: %v", text.Data)
		}
	})
}

func TestRegenerateAndResignNeedAPaymentMethod(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		event := s.arrive(e.ID, nil)
		none := false
		if _, err := s.accounts.SetAccount(t.Context(), s.owner.Account.ID, account.Change{PaymentMethod: &none}); err != nil {
			t.Fatal(err)
		}
		for _, mode := range []string{`"identity_mode":"regenerate"`, `"signature_mode":"resign"`} {
			var refused api.Error
			s.want(403, "POST", "/endpoints/"+e.ID+"/requests/"+event+"/replay", `{"target_url":"https://a.example.com",`+mode+`}`, &refused)
			if refused.Error != "payment_method_required" {
				t.Errorf("%s: %s", mode, refused.Error)
			}
			s.want(403, "POST", "/endpoints/"+e.ID+"/replay_cases", `{"replay_case":{"source_id":"`+event+`","name":"n","target_url":"https://a.example.com",
				"options":{`+mode+`},"assertions":{"status":{"class":"2xx"}}}}`, &refused)
		}
		s.want(200, "POST", "/endpoints/"+e.ID+"/requests/"+event+"/replay", `{"target_url":"https://a.example.com","signature_mode":"strip"}`, nil)
	})
}

func TestAReplayCaseFromSavingToItsRun(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		event := s.arrive(e.ID, nil)
		base := "/endpoints/" + e.ID
		const subset = `{"n":12345678901234567890,"f":1.50}`
		var c api.One[api.ReplayCase]
		s.want(201, "POST", base+"/replay_cases", `{"replay_case":{"source_id":"`+event+`","name":"Paid","target_url":"https://app.example.com/",
			"assertions":{"status":{"class":"2xx"},"json_subset":`+subset+`}}}`, &c)
		if d := c.Data; d.Name != "Paid" || d.LockVersion != 1 || d.SourceID != event || !d.SourceAvailable || d.Options.SignatureMode != "preserve" ||
			string(d.Assertions.JSONSubset) != subset || *d.Assertions.Status.Class != "2xx" || d.LastRun != nil {
			t.Errorf("%+v %s", d, d.Assertions.JSONSubset)
		}
		one := base + "/replay_cases/" + c.Data.ID
		s.want(409, "PATCH", one, `{"replay_case":{"name":"x","lock_version":7}}`, nil)
		s.want(422, "PATCH", one, `{"replay_case":{"name":"x"}}`, nil)
		c = api.One[api.ReplayCase]{}
		s.want(200, "PATCH", one, `{"replay_case":{"assertions":{"status":{"code":200}},"lock_version":1}}`, &c)
		if c.Data.LockVersion != 2 || *c.Data.Assertions.Status.Code != 200 || c.Data.Assertions.JSONSubset != nil {
			t.Errorf("%+v", c.Data)
		}

		run := func(key string, status int) (r api.One[api.ReplayCaseRun]) {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+one+"/run", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+s.token)
			if key != "" {
				req.Header.Set("Idempotency-Key", key)
			}
			res, text := s.do(req)
			if res.StatusCode != status {
				t.Fatalf("run: %d %s, want %d", res.StatusCode, text, status)
			}
			if status == 202 {
				r.Data.ID = text[strings.Index(text, "rrun_"):][:31]
			}
			return r
		}
		run("", 422)
		run(strings.Repeat("k", 256), 422)
		first := run(strings.Repeat("k", 255), 202)
		if again := run(strings.Repeat("k", 255), 202); again.Data.ID != first.Data.ID {
			t.Errorf("%s and %s", first.Data.ID, again.Data.ID)
		}
		if err := s.replays.ExecuteRun(t.Context(), first.Data.ID); err != nil {
			t.Fatal(err)
		}
		var got api.One[map[string]any]
		s.want(200, "GET", base+"/replay_case_runs/"+first.Data.ID, "", &got)
		for _, name := range []string{"id", "replay_case_id", "case_lock_version", "state", "idempotency_key", "created_at", "started_at", "finished_at", "duration_ms",
			"request", "response", "assertions", "error"} {
			if _, ok := got.Data[name]; !ok {
				t.Errorf("%s is missing", name)
			}
		}
		if got.Data["state"] != "passed" || got.Data["case_lock_version"] != 2.0 {
			t.Errorf("%v", got.Data)
		}
		s.want(200, "PATCH", one, `{"replay_case":{"name":"y","lock_version":2}}`, nil)
		run(strings.Repeat("k", 255), 409)
		s.want(200, "GET", one, "", &c)
		if c.Data.LastRun == nil || c.Data.LastRun.State != "passed" || c.Data.LastRun.FinishedAt == nil {
			t.Errorf("%+v", c.Data.LastRun)
		}
		s.want(200, "DELETE", one, "", nil)
		s.want(404, "GET", one, "", nil)
		s.want(200, "GET", base+"/replay_case_runs/"+first.Data.ID, "", nil)
	})
}

func TestWhatAReplayCaseMayNotBeOverREST(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		event := s.arrive(e.ID, nil)
		for assertions, field := range map[string]string{
			`{}`:                         "replay_case.assertions",
			`{"json_subset":{}}`:         "replay_case.assertions",
			`{"json_subset":null}`:       "replay_case.assertions",
			`{"status":{}}`:              "replay_case.assertions.status",
			`{"status":{"class":""}}`:    "replay_case.assertions.status.class",
			`{"status":{"class":"200"}}`: "replay_case.assertions.status.class",
			`{"status":{"code":0}}`:      "replay_case.assertions.status.code",
			`{"status":{"code":"200"}}`:  "replay_case.assertions.status.code",
			`{"json_subset":[1]}`:        "replay_case.assertions.json_subset",
			`{"json_subset":"x"}`:        "replay_case.assertions.json_subset",
			`{"body":"x"}`:               "replay_case.assertions.body",
			`null`:                       "replay_case.assertions",
		} {
			var refused api.Error
			s.want(422, "POST", "/endpoints/"+e.ID+"/replay_cases", `{"replay_case":{"source_id":"`+event+`","name":"n","target_url":"https://a.example.com","assertions":`+assertions+`}}`, &refused)
			if len(refused.Details) == 0 || refused.Details[0].Field != field {
				t.Errorf("%s: %+v", assertions, refused.Details)
			}
		}
		s.want(422, "POST", "/endpoints/"+e.ID+"/replay_cases", `{"replay_case":{"lock_version":1}}`, nil)
		s.want(422, "POST", "/endpoints/"+e.ID+"/replay_cases", `{}`, nil)
	})
}

func TestBulkReplaysAreListedAndMoved(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		for range 3 {
			s.arrive(e.ID, nil)
		}
		base := "/endpoints/" + e.ID + "/replay_batches"
		if _, text := s.call(s.token, "POST", base, `{"target_url":"https://app.example.com/","query":"method:POST methd:bar"}`); !strings.Contains(text, `"position":12`) {
			t.Error(text)
		}
		var dry, b api.One[api.ReplayBatch]
		s.want(202, "POST", base, `{"target_url":"https://a.example.com","dry_run":true}`, &dry)
		if dry.Data.ID != nil || dry.Data.Total != 3 || dry.Data.State != "dry_run" {
			t.Errorf("%+v", dry.Data)
		}
		s.want(202, "POST", base, `{"target_url":"https://a.example.com","rate":100}`, &b)
		one := base + "/" + *b.Data.ID
		s.want(200, "POST", one+"/pause", "", &b)
		if b.Data.State != "paused" || b.Data.Pending != 3 {
			t.Errorf("%+v", b.Data)
		}
		s.want(200, "POST", one+"/resume", "", nil)
		for done := false; !done; {
			var err error
			if done, err = s.replays.WorkBatch(t.Context(), *b.Data.ID); err != nil {
				t.Fatal(err)
			}
		}
		s.want(200, "GET", one, "", &b)
		if b.Data.State != "completed" || b.Data.Passed != 3 || b.Data.Pending != 0 {
			t.Errorf("%+v", b.Data)
		}
		s.want(409, "POST", one+"/cancel", "", nil)
		var items api.List[api.BatchItem]
		var seen []string
		for at := one + "/results?limit=2"; ; at = one + "/results?limit=2&cursor=" + *items.Meta.NextCursor {
			s.want(200, "GET", at, "", &items)
			for _, i := range items.Data {
				seen = append(seen, i.EventID)
				if i.State != "passed" || i.ReplayID == nil || *i.StatusCode != 200 {
					t.Errorf("%+v", i)
				}
			}
			if items.Meta.NextCursor == nil {
				break
			}
		}
		if !slices.Equal(seen, s.stored(e.ID)) {
			t.Errorf("%v", seen)
		}
		for _, body := range []string{`{"target_url":"https://a.example.com","rate":0}`, `{"target_url":"https://a.example.com","rate":101}`, `{"target_url":"https://a.example.com","query":"provder:1"}`, `{"rate":1}`, `{"target_url":"https://a.example.com","request_ids":[]}`} {
			s.want(422, "POST", base, body, nil)
		}
		var all api.List[api.ReplayBatch]
		s.want(200, "GET", base, "", &all)
		if len(all.Data) != 1 {
			t.Errorf("%d", len(all.Data))
		}
		for _, id := range []string{"rcase_00000000000000000000000000", "%00", "%ff"} {
			var runs api.List[api.ReplayCaseRun]
			s.want(200, "GET", "/endpoints/"+e.ID+"/replay_case_runs?replay_case_id="+id, "", &runs)
			if len(runs.Data) != 0 {
				t.Errorf("%s: %+v", id, runs.Data)
			}
		}
		for _, list := range []string{"/replay_batches", "/replay_cases", "/replay_case_runs"} {
			for _, limit := range []int{0, 101} {
				s.want(422, "GET", fmt.Sprintf("/endpoints/%s%s?limit=%d", e.ID, list, limit), "", nil)
			}
			s.want(422, "GET", "/endpoints/"+e.ID+list+"?cursor=junk", "", nil)
		}
	})
}

func TestAReplayMovesTimes(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		event := s.arrive(e.ID, func(e *capture.Arrival) {
			e.Headers = hookglass.Headers{{Name: "Content-Type", Value: "application/json"}, {Name: "Date", Value: "Tue, 14 Nov 2023 22:13:20 GMT"}}
			e.Body = []byte(`{"created":1700000000,"id":1700000000}`)
		})
		path := "/endpoints/" + e.ID + "/requests/" + event + "/replay"
		for _, shift := range []string{`"+3h"`, `10800000`, `"10800000"`} {
			var got api.One[api.Replay]
			s.want(200, "POST", path, `{"target_url":"https://app.example.com/","time_shift":`+shift+`,"dry_run":true}`, &got)
			want := []api.TimeChange{{Header: "Date", From: "Tue, 14 Nov 2023 22:13:20 GMT", To: "Wed, 15 Nov 2023 01:13:20 GMT"}, {Pointer: "/created", From: "1700000000", To: "1700010800"}}
			if !slices.Equal(got.Data.TimeChanges, want) || !got.Data.DryRun || got.Data.Delivered || got.Data.RequestHeadersSent["Date"] != want[0].To {
				t.Errorf("%s: %+v", shift, got.Data)
			}
		}
		var sent api.One[api.Replay]
		s.want(200, "POST", path, `{"target_url":"https://app.example.com/","time_shift":"+3h"}`, &sent)
		if !sent.Data.Delivered || *sent.Data.ResponseBody != `{"created":1700010800,"id":1700000000}` {
			t.Errorf("%+v", sent.Data)
		}
		var plain api.One[map[string]any]
		s.want(200, "POST", path, `{"target_url":"https://app.example.com/"}`, &plain)
		if _, there := plain.Data["time_changes"]; there {
			t.Errorf("%v", plain.Data)
		}
		for _, wrong := range []string{`"soon"`, `"3h"`, `""`, `true`, `1.5`, `{}`, `3153600000001`} {
			var refused api.Error
			s.want(422, "POST", path, `{"target_url":"https://app.example.com/","time_shift":`+wrong+`}`, &refused)
			if len(refused.Details) != 1 || refused.Details[0].Field != "time_shift" || !strings.Contains(refused.Message, `"+3h"`) && wrong != `3153600000001` {
				t.Errorf("%s: %+v", wrong, refused)
			}
		}
	})
}

func TestAFaultHidesNoOther(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base, id := "/endpoints/"+e.ID, s.arrive(e.ID, nil)
		for path, c := range map[string]struct{ body, fields string }{
			"/flows":                             {`{"flow":{"order":"no","since":"no","steps":[{"endpoint_id":"x"}]}}`, "flow.order flow.since"},
			base + "/requests/" + id + "/replay": {`{"target_url":"ftp://x","identity_mode":"no","signature_mode":"no"}`, "identity_mode signature_mode target_url"},
			base + "/replay_batches":             {`{"target_url":"","rate":101,"identity_mode":"no","query":"a \""}`, "identity_mode rate query target_url"},
			base + "/forwarding_targets":         {`{"forwarding_target":{"name":"","url":"ftp://x","retry_count":6}}`, "forwarding_target.name forwarding_target.retry_count forwarding_target.url"},
		} {
			var refused api.Error
			s.want(422, "POST", path, c.body, &refused)
			var fields []string
			for _, d := range refused.Details {
				fields = append(fields, d.Field)
			}
			if got := strings.Join(fields, " "); refused.Error != "validation_failed" || got != c.fields {
				t.Errorf("%s: %s of %s", path, refused.Error, got)
			}
		}
	})
}
