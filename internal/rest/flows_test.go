package rest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
)

// newFlow begins a flow that waits for anything at an endpoint and returns its id; where that is not a workspace's, one
// that is not there.
func (s *site) newFlow(endpoint string) string {
	s.t.Helper()
	status, text := s.call(s.token, "POST", "/flows", `{"flow":{"timeout_seconds":60,"steps":[{"endpoint_id":"`+endpoint+`"}]}}`)
	if status.StatusCode != 201 {
		return "flow_x"
	}
	_, rest, _ := strings.Cut(text, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// judging has a node judge flows until the test ends.
func (s *site) judging() { running(s.t, s.deps.Flows.Run) }

// running has something run until the test ends.
func running(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAFlowsQueryIsRefusedAtItsPlace(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		_, text := s.call(s.token, "POST", "/flows", `{"flow":{"steps":[{"endpoint_id":"`+s.newEndpoint("").ID+`","q":"method:POST methd:bar"}]}}`)
		if !strings.Contains(text, `"field":"flow.steps.0.q"`) || !strings.Contains(text, `"position":12`) {
			t.Error(text)
		}
		// Of what becomes of deliveries no flow is told.
		for _, q := range []string{"delivery:failed", "-tunnel:delivered"} {
			_, text = s.call(s.token, "POST", "/flows", `{"flow":{"steps":[{"endpoint_id":"`+s.newEndpoint("").ID+`","q":"method:POST `+q+`"}]}}`)
			if !strings.Contains(text, `"field":"flow.steps.0.q"`) || !strings.Contains(text, "deliveries") {
				t.Error(text)
			}
		}
	})
}

func TestWhatIsWrongWithEachStepOfAFlowIsToldAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("").ID
		var refused api.Error
		s.want(422, "POST", "/flows", `{"flow":{"steps":[{"endpoint_id":"ep_00000000000000000000000000"},{"endpoint_id":"`+e+`","q":"providr:red"},
			{"endpoint_id":"`+e+`","id":"a b"},{"endpoint_id":"ep_x"},{"endpoint_id":"`+e+`","extract":{"id":"regex:("}}]}}`, &refused)
		var fields []string
		for _, f := range refused.Details {
			fields = append(fields, f.Field)
		}
		if want := []string{"flow.steps.0.endpoint_id", "flow.steps.3.endpoint_id", "flow.steps.1.q", "flow.steps.2.id", "flow.steps.4.extract"}; !slices.Equal(fields, want) {
			t.Errorf("faults in %q, want %q", fields, want)
		}
	})
}

func TestAFlowPassesOverREST(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		s.judging()
		a, b := s.newEndpoint("").ID, s.newEndpoint("").ID
		var begun api.One[api.Flow]
		s.want(201, "POST", "/flows", `{"flow":{"name":"Checkout","timeout_seconds":30,"steps":[
			{"id":"first","endpoint_id":"`+a+`","q":"method:POST","extract":{"how":"path"}},
			{"id":"second","endpoint_id":"`+b+`","within_seconds":20,"where":{"path":"{{steps.first.how}}"}}]}}`, &begun)
		f := begun.Data
		if f.State != "pending" || f.Steps[0].State != "watching" || f.Steps[1].State != "waiting" || *f.Name != "Checkout" || f.Steps[0].Count.AtLeast != 1 {
			t.Fatalf("%+v", f)
		}
		var waited api.FlowWait
		s.want(200, "GET", "/flows/"+f.ID+"/wait?timeout=1", "", &waited)
		if !waited.Meta.TimedOut || waited.Data.State != "pending" {
			t.Errorf("waiting for nothing: %+v", waited)
		}
		first := s.arrive(a, nil)
		s.want(200, "GET", "/flows/"+f.ID+"/wait?timeout=20&after=1", "", &waited)
		if waited.Meta.TimedOut || waited.Data.Steps[0].State != "passed" || waited.Data.Steps[0].Matched[0].RequestID != first || waited.Data.Steps[0].TookMS == nil {
			t.Errorf("after the first: %+v", waited)
		}
		s.arrive(b, nil)
		s.want(200, "GET", "/flows/"+f.ID+"/wait?timeout=20", "", &waited)
		if waited.Meta.TimedOut || waited.Data.State != "passed" || waited.Data.FinishedAt == nil || waited.Data.Message != nil {
			t.Errorf("after both: %+v", waited)
		}
		var list api.List[api.Flow]
		s.want(200, "GET", "/flows?state=passed&limit=1", "", &list)
		if len(list.Data) != 1 || list.Data[0].ID != f.ID || list.Meta.NextCursor != nil {
			t.Errorf("the list: %+v", list)
		}
		s.want(200, "DELETE", "/flows/"+f.ID, "", nil)
		s.wantError(404, "not_found", "GET", "/flows/"+f.ID, "")
		s.wantError(404, "not_found", "GET", "/flows/"+f.ID+"/wait?timeout=1", "")
	})
}

// Who may not read any more is told so while it waits, as the reader of a stream is.
func TestAWaitForAFlowEndsWithItsToken(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		id := s.newFlow(s.newEndpoint("").ID)
		token, record := s.tokenFor(0)
		running(t, s.accounts.Run)
		answered := make(chan int, 1)
		go func() {
			res, _ := s.call(token, "GET", "/flows/"+id+"/wait?timeout=60", "")
			answered <- res.StatusCode
		}()
		for record.LastUsedAt.IsZero() { // until it was let in
			err := s.db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
				record, err = v.Token(record.ID)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := s.accounts.RevokeToken(t.Context(), hookglass.System, record.ID); err != nil {
			t.Fatal(err)
		}
		select {
		case status := <-answered:
			if status != 401 {
				t.Errorf("it answered %d", status)
			}
		case <-time.After(patience):
			t.Error("it waits on")
		}
	})
}

func TestWhatAFlowMayNotBe(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("").ID
		step := `{"endpoint_id":"` + e + `"`
		refers := func(to string) string {
			return `{"flow":{"steps":[` + step + `,"id":"a","extract":{"y":"/y"}},` + step + `,"id":"b","where":{"/a":"` + to + `"},"extract":{"y":"/y"}}]}}`
		}
		for _, body := range []string{
			`{}`, `{"flow":{}}`, `{"flow":{"steps":[]}}`, `{"flow":{"steps":[{}]}}`, `{"flow":{"steps":[{"endpoint_id":"ep_00000000000000000000000000"}]}}`,
			`{"flow":{"steps":[` + strings.Repeat(step+`},`, 20) + step + `}]}}`,
			`{"flow":{"order":"random","steps":[` + step + `}]}}`,
			`{"flow":{"timeout_seconds":0.09,"steps":[` + step + `}]}}`,
			`{"flow":{"timeout_seconds":86400.1,"steps":[` + step + `}]}}`,
			`{"flow":{"since":"2h","steps":[` + step + `}]}}`,
			`{"flow":{"since":"soon","steps":[` + step + `}]}}`,
			`{"flow":{"name":null,"steps":[` + step + `}]}}`,
			`{"flow":{"colour":"red","steps":[` + step + `}]}}`,
			`{"flow":{"steps":[` + step + `,"colour":"red"}]}}`,
			`{"flow":{"steps":[` + step + `,"id":"a b"}]}}`,
			`{"flow":{"steps":[` + step + `,"id":"a"},` + step + `,"id":"a"}]}}`,
			`{"flow":{"steps":[` + step + `,"q":"providr:red"}]}}`,
			`{"flow":{"steps":[` + step + `,"within_seconds":86401}]}}`,
			`{"flow":{"steps":[` + step + `,"count":{}}]}}`,
			`{"flow":{"steps":[` + step + `,"count":{"at_least":1,"exactly":1}}]}}`,
			`{"flow":{"steps":[` + step + `,"count":{"at_least":1001}}]}}`,
			`{"flow":{"steps":[` + step + `,"count":{"exactly":1}}]}}`,
			`{"flow":{"steps":[` + step + `},` + step + `,"never":true}]}}`,
			`{"flow":{"steps":[` + step + `,"never":true,"extract":{"a":"/a"}}]}}`,
			`{"flow":{"steps":[` + step + `,"where":{"colour":"red"}}]}}`,
			`{"flow":{"steps":[` + step + `,"where":{"/a":["red"]}}]}}`,
			`{"flow":{"steps":[` + step + `,"where":{"/a":{"contains":""}}}]}}`,
			`{"flow":{"steps":[` + step + `,"where":{"/a":"{{steps.x.y}}"}}]}}`,
			`{"flow":{"steps":[` + step + `,"where":{"/a":"{{x}}"}}]}}`,
			refers("{{steps.b.y}}"), refers("{{steps.a.z}}"), refers("{{steps.c.y}}"), refers("{{flows.a.y}}"), refers("{{steps.a.y.z}}"), refers("{{steps..y}}"), refers("{{steps.a.}}"), refers("{{steps.a.y"),
			`{"flow":{"steps":[` + step + `,"extract":{"a b":"/a"}}]}}`,
			`{"flow":{"steps":[` + step + `,"extract":{"a":"regex:("}}]}}`,
			`{"flow":{"steps":[` + step + `,"extract":{"a":"regex:` + strings.Repeat("a{1000}", 10) + `"}}]}}`, // 10,000 instructions and a few more
			`{"flow":{"steps":[` + step + `,"extract":{"a":"link:"}}]}}`,
			`{"flow":{"steps":[` + step + `,"subject":"` + strings.Repeat("x", 501) + `"}]}}`,
		} {
			s.wantError(422, "validation_failed", "POST", "/flows", body)
		}
		s.want(201, "POST", "/flows", refers("of {{steps.a.y}}"), nil)
		s.want(201, "POST", "/flows", `{"flow":{"timeout_seconds":86400,"steps":[`+strings.Repeat(step+`},`, 19)+step+`,"count":{"exactly":1000},"within_seconds":86400}]}}`, nil)
		s.want(201, "POST", "/flows", `{"flow":{"timeout_seconds":0.1,"since":"1h","order":"any","steps":[`+step+`,"where":{"/a":null,"/b":1,"/c":true,"/d":{"contains":"x"}}}]}}`, nil)
		for _, path := range []string{"?limit=101", "?state=late", "?cursor=x"} {
			s.wantError(422, "validation_failed", "GET", "/flows"+path, "")
		}
		id := s.newFlow(e)
		for _, query := range []string{"?timeout=0", "?timeout=61", "?after=-1"} {
			s.wantError(422, "validation_failed", "GET", "/flows/"+id+"/wait"+query, "")
		}
	})
}
