package rest_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
)

func TestANewEndpointHasTheDescribedRecord(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var answer struct{ Data map[string]json.RawMessage }
		s.want(201, "POST", "/endpoints", `{"endpoint":{"name":"Payments","provider":"stripe"}}`, &answer)
		record := answer.Data
		var id string
		if err := json.Unmarshal(record["id"], &id); err != nil || !hookglass.IsEndpointID(id) {
			t.Fatalf("id is %s", record["id"])
		}
		url := `"https://hooks.example.com/hooks/` + id + `"`
		for name, want := range map[string]string{
			"name": `"Payments"`, "kind": `"webhook"`, "custom_id": `null`, "provider": `"stripe"`, "provider_config": `{}`,
			"webhook_url": url, "url": url, "email_address": `null`, "tunnel_active": `false`, "enabled": `true`, "response": `null`,
			"workspace_id": strconv.FormatInt(s.owner.Workspace.ID, 10), "event_count": `0`, "last_event_at": `null`, "expires_at": `null`,
		} {
			if got := string(record[name]); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
		if _, shown := record["tunnel_key"]; shown {
			t.Error("a permanent endpoint shows a tunnel_key")
		}
		for _, name := range []string{"created_at", "updated_at"} {
			if !regexp.MustCompile(`^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}Z"$`).Match(record[name]) {
				t.Errorf("%s is %s, want RFC 3339 in UTC with milliseconds or finer", name, record[name])
			}
		}
	})
}

// Existing command lines say which events they expect when they create an endpoint for a provider.
func TestExpectedEventsAreAcceptedAndNotKept(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint(`,"provider":"github","provider_config":{"handshake":false,"expected_events":["push","issues"]}`)
		if e.ProviderConfig.ExpectedEvents != nil || e.ProviderConfig.Handshake == nil || *e.ProviderConfig.Handshake {
			t.Errorf("provider_config is %+v", e.ProviderConfig)
		}
		s.want(422, "PATCH", "/endpoints/"+e.ID, `{"endpoint":{"provider_config":{"expected_events":"push"}}}`, nil)
		var described map[string]any
		s.wantAs("", 200, "GET", "/openapi.json", "", &described)
		if text := fmt.Sprint(described); strings.Contains(text, "expected_events") || !strings.Contains(text, "response_mode") {
			t.Error("the description offers what has no effect")
		}
	})
}

func TestAnEmailEndpointHasAnAddressInsteadOfAURL(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint(`,"kind":"email","email_local_part":"orders"`)
		if e.Kind != "email" || e.EmailAddress == nil || *e.EmailAddress != "orders@mail.example.com" || e.WebhookURL != nil || e.URL != nil {
			t.Errorf("got %+v", e)
		}
		if e := s.newEndpoint(`,"kind":"email"`); e.EmailAddress == nil || !regexp.MustCompile(`^[a-z0-9]{2,50}@mail\.example\.com$`).MatchString(*e.EmailAddress) {
			t.Errorf("a random address is %v", e.EmailAddress)
		}
	})
}

func TestAnEndpointIsChangedByWhatTheBodyNames(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint(`,"provider":"github","custom_id":"payments","response":{"status":201,"headers":{"X-A":"1"},"body":"ok","delay_ms":5}`)
		if e.Response == nil || *e.Response.Status != 201 || e.Response.Headers["X-A"] != "1" || e.Response.Body != "ok" || e.Response.DelayMS != 5 {
			t.Fatalf("response is %+v", e.Response)
		}
		var got api.One[api.Endpoint]
		s.want(200, "PATCH", "/endpoints/payments", `{"endpoint":{"enabled":false,"provider_config":{"handshake":false,"response_mode":"tunnel"}}}`, &got)
		if got.Data.Enabled || got.Data.ProviderConfig.ResponseMode != "tunnel" || *got.Data.ProviderConfig.Handshake || *got.Data.Provider != "github" || got.Data.Response == nil {
			t.Errorf("after the first change: %+v", got.Data)
		}
		s.want(200, "PATCH", "/endpoints/"+e.ID, `{"endpoint":{"provider":null,"custom_id":null,"response":null,"name":"New"}}`, &got)
		if got.Data.Provider != nil || got.Data.CustomID != nil || got.Data.Response != nil || got.Data.Name != "New" || got.Data.Enabled {
			t.Errorf("after clearing: %+v", got.Data)
		}
		s.want(404, "GET", "/endpoints/payments", "", nil)
		var deleted api.One[api.Deleted]
		s.want(200, "DELETE", "/endpoints/"+e.ID, "", &deleted)
		if deleted.Data != (api.Deleted{ID: e.ID, Deleted: true}) {
			t.Errorf("deleting answered %+v", deleted.Data)
		}
		s.want(404, "GET", "/endpoints/"+e.ID, "", nil)
		s.want(404, "DELETE", "/endpoints/"+e.ID, "", nil)
	})
}

// Spec: decisions, section 5, and the specification's rule for local parts: the empty text is neither, and null is
// none.
func TestEmptyNamesOfEndpointsAreRefused(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		for field, call := range map[string][3]string{
			"endpoint.custom_id":        {"PATCH", "/endpoints/" + e.ID, `{"endpoint":{"custom_id":""}}`},
			"endpoint.email_local_part": {"POST", "/endpoints", `{"endpoint":{"name":"M","kind":"email","email_local_part":""}}`},
		} {
			var refused api.Error
			s.want(422, call[0], call[1], call[2], &refused)
			if len(refused.Details) != 1 || refused.Details[0].Field != field {
				t.Errorf("%s: %+v", field, refused)
			}
		}
	})
}

// Spec: decisions, section 4: a custom answer has four members, also where the caller named fewer.
func TestACustomAnswerIsShownWhole(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		var got struct {
			Data struct{ Response json.RawMessage }
		}
		s.want(200, "PATCH", "/endpoints/"+e.ID, `{"endpoint":{"response":{"status":202}}}`, &got)
		var plain struct {
			Data struct{ Response json.RawMessage }
		}
		s.want(200, "PATCH", "/endpoints/"+e.ID, `{"endpoint":{"response":{"body":"fine"}}}`, &plain)
		if want := `{"status":200,"headers":{},"body":"fine","delay_ms":0}`; string(plain.Data.Response) != want {
			t.Errorf("without a status %s, want %s", plain.Data.Response, want)
		}
		s.want(422, "PATCH", "/endpoints/"+e.ID, `{"endpoint":{"response":{"status":0}}}`, nil)
		if want := `{"status":202,"headers":{},"body":"","delay_ms":0}`; string(got.Data.Response) != want {
			t.Errorf("response is %s, want %s", got.Data.Response, want)
		}
		var refused api.Error
		s.want(422, "PATCH", "/endpoints/"+e.ID, `{"endpoint":{"response":{"status":200,"headers":{"X-A":"1","x-a":"2"}}}}`, &refused)
		if len(refused.Details) != 1 || refused.Details[0].Field != "endpoint.response.headers" {
			t.Errorf("a header named twice: %+v", refused)
		}
		// What a browser would keep for all of the host, which the web app may share.
		for _, name := range []string{"Set-Cookie", "Clear-Site-Data", "Service-Worker-Allowed", "Strict-Transport-Security", "Alt-Svc", "NEL", "report-to"} {
			s.want(422, "PATCH", "/endpoints/"+e.ID, `{"endpoint":{"response":{"headers":{"`+name+`":"x"}}}}`, nil)
		}
	})
}

// What is wrong is told at once, also where an endpoint is to be made in a workspace that is none.
func TestAllFaultsOfANewEndpointAreToldAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		for _, workspace := range []string{"0", "-1", "0.0"} {
			var refused api.Error
			s.want(422, "POST", "/endpoints", `{"endpoint":{"name":"","custom_id":"A","workspace_id":`+workspace+`}}`, &refused)
			var fields []string
			for _, f := range refused.Details {
				fields = append(fields, f.Field)
			}
			if want := []string{"endpoint.workspace_id", "endpoint.name", "endpoint.custom_id"}; !slices.Equal(fields, want) {
				t.Errorf("workspace %s: faults in %q, want %q", workspace, fields, want)
			}
		}
		s.want(201, "POST", "/endpoints", `{"endpoint":{"name":"a","workspace_id":null}}`, nil)
	})
}

// Mail is answered by its protocol; settings that would do nothing are refused, and what is stored of them stays.
func TestSettingsOfAnswersAreForWebhooks(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		for field, settings := range map[string]string{"response": `{"status":201}`, "provider_config": `{"response_mode":"tunnel"}`} {
			var refused api.Error
			s.want(422, "POST", "/endpoints", `{"endpoint":{"name":"Mail","kind":"email","`+field+`":`+settings+`}}`, &refused)
			if len(refused.Details) != 1 || refused.Details[0] != (api.FieldError{Field: "endpoint." + field, Message: "applies to webhook endpoints only"}) {
				t.Errorf("%s: %+v", field, refused.Details)
			}
		}
		var e api.One[api.Endpoint]
		s.want(201, "POST", "/endpoints", `{"endpoint":{"name":"Mail","kind":"email","response":null,"provider_config":{}}}`, &e)
		at := "/endpoints/" + e.Data.ID
		s.want(422, "PATCH", at, `{"endpoint":{"response":{}}}`, nil)
		s.want(422, "PATCH", at, `{"endpoint":{"provider_config":{"handshake":false}}}`, nil)
		err := s.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			stored, err := tx.EndpointToChange(e.Data.ID)
			if err != nil {
				return err
			}
			stored.Response = &hookglass.Response{Status: 201}
			stored.ProviderConfig = hookglass.ProviderConfig{Handshake: new(false), ResponseMode: hookglass.ResponseTunnel}
			return tx.SaveEndpoint(&stored)
		})
		if err != nil {
			t.Fatal(err)
		}
		s.sendBack(at)
		s.want(422, "PATCH", at, `{"endpoint":{"response":{"status":202}}}`, nil)
		s.want(422, "PATCH", at, `{"endpoint":{"provider_config":{"handshake":false}}}`, nil)
		s.want(200, "PATCH", at, `{"endpoint":{"name":"Still","provider_config":{}}}`, &e)
		if e.Data.Response == nil {
			t.Error("a change of the name took the answer")
		}
		if s.want(200, "PATCH", at, `{"endpoint":{"response":null}}`, &e); e.Data.Response != nil {
			t.Error("it cannot be taken back")
		}
	})
}

// sendBack changes an endpoint to what it is, as clients do that read all of it and send all of it.
func (s *site) sendBack(at string) {
	s.t.Helper()
	var was, is api.One[map[string]json.RawMessage]
	s.want(200, "GET", at, "", &was)
	fields := make(map[string]json.RawMessage)
	for _, name := range []string{"name", "custom_id", "provider", "provider_config", "response", "response_rules", "response_script", "schema_tracking", "enabled"} {
		fields[name] = was.Data[name]
	}
	body, err := json.Marshal(map[string]any{"endpoint": fields})
	if err != nil {
		s.t.Fatal(err)
	}
	s.want(200, "PATCH", at, string(body), &is)
	for name, value := range fields {
		if got := is.Data[name]; string(got) != string(value) {
			s.t.Errorf("%s became %s, and was %s", name, got, value)
		}
	}
}

// What was stored before there was a bound stays, and may stay.
func TestAHeaderOfAnAnswerHasABound(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		with := func(name, value int) string {
			return fmt.Sprintf(`{"endpoint":{"response":{"headers":{"%s":"%s"}}}}`, strings.Repeat("A", name), strings.Repeat("v", value))
		}
		s.want(200, "PATCH", "/endpoints/"+e.ID, with(256, 8192), nil)
		for what, body := range map[string]string{"a value of more than 8192 bytes": with(3, 8193), "a name of more than 256 bytes": with(257, 1)} {
			var refused api.Error
			s.want(422, "PATCH", "/endpoints/"+e.ID, body, &refused)
			if len(refused.Details) != 1 || refused.Details[0].Field != "endpoint.response.headers" || len(refused.Details[0].Message) > 100 {
				t.Errorf("%s: %+v", what, refused.Details)
			}
		}
		err := s.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			stored, err := tx.EndpointToChange(e.ID)
			if err != nil {
				return err
			}
			stored.Response.Headers = map[string]string{"Long": strings.Repeat("v", 20_000)}
			return tx.SaveEndpoint(&stored)
		})
		if err != nil {
			t.Fatal(err)
		}
		s.sendBack("/endpoints/" + e.ID)
		var kept api.One[api.Endpoint]
		s.want(200, "PATCH", "/endpoints/"+e.ID, `{"endpoint":{"name":"Still"}}`, &kept)
		if kept.Data.Response == nil || len(kept.Data.Response.Headers["Long"]) != 20_000 {
			t.Errorf("after a change of the name: %+v", kept.Data.Response)
		}
	})
}

func TestEndpointsAreListedWholeOrByPages(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var empty struct{ Data, Meta json.RawMessage }
		s.want(200, "GET", "/endpoints", "", &empty)
		if string(empty.Data) != "[]" || string(empty.Meta) != `{"next_cursor":null}` {
			t.Errorf("an empty list is %s %s", empty.Data, empty.Meta)
		}
		var ids []string
		for range 30 {
			ids = append(ids, s.newEndpoint("").ID)
		}
		var all api.List[api.Endpoint]
		s.want(200, "GET", "/endpoints", "", &all)
		if len(all.Data) != 30 || all.Meta.NextCursor != nil {
			t.Errorf("without limit: %d endpoints, next %v", len(all.Data), all.Meta.NextCursor)
		}
		var paged []string
		for query := "?limit=7"; ; {
			var page api.List[api.Endpoint]
			s.want(200, "GET", "/endpoints"+query, "", &page)
			for _, e := range page.Data {
				paged = append(paged, e.ID)
			}
			if page.Meta.NextCursor == nil {
				break
			}
			query = "?limit=7&cursor=" + *page.Meta.NextCursor
		}
		if len(paged) != 30 || paged[0] != ids[0] || paged[29] != ids[29] {
			t.Errorf("pages hold %v, want %v", paged, ids)
		}
	})
}

func TestATemporaryEndpointShowsItsKeyOnce(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var made api.One[api.Endpoint]
		s.wantAs("", 201, "POST", "/temporary_endpoints", "", &made)
		e := made.Data
		if !hookglass.IsTunnelKey(e.TunnelKey) || e.WorkspaceID != nil || e.ExpiresAt == nil {
			t.Fatalf("got %+v", e)
		}
		if left := time.Until(e.ExpiresAt.Time); left < 23*time.Hour+59*time.Minute || left > 24*time.Hour {
			t.Errorf("it expires in %v, want 24 h", left)
		}
		var read api.One[api.Endpoint]
		s.wantAs(e.TunnelKey, 200, "GET", "/endpoints/"+e.ID, "", &read)
		if read.Data.ID != e.ID || read.Data.TunnelKey != "" {
			t.Errorf("read by its key: %+v", read.Data)
		}
		s.want(404, "GET", "/endpoints/"+e.ID, "", nil)
	})
}

func TestTemporaryEndpointsAreTenAMinuteForAnAddress(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		for range 10 {
			s.wantAs("", 201, "POST", "/temporary_endpoints", "", nil)
		}
		var refused api.Error
		res := s.wantAs("", 429, "POST", "/temporary_endpoints", "", &refused)
		if refused.Error != "rate_limited" || refused.RetryAfter < 1 || refused.RetryAfter > 60 || res.Header.Get("Retry-After") != strconv.Itoa(refused.RetryAfter) {
			t.Errorf("the eleventh: %+v, Retry-After %q", refused, res.Header.Get("Retry-After"))
		}
	})
}

// Changes at the same time do not undo one another, and what can be had once is had once.
func TestChangesOfAnEndpointDoNotUndoOneAnother(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		together := func(calls ...func()) {
			var all sync.WaitGroup
			for _, call := range calls {
				all.Go(call)
			}
			all.Wait()
		}
		patch := func(id, body string) func() {
			return func() { s.call(s.token, "PATCH", "/endpoints/"+id, `{"endpoint":`+body+`}`) }
		}
		for range 10 {
			id := s.newEndpoint("").ID
			together(patch(id, `{"name":"Changed"}`), patch(id, `{"provider":"stripe"}`), patch(id, `{"enabled":false}`), patch(id, `{"schema_tracking":true}`))
			var e api.One[api.Endpoint]
			s.want(200, "GET", "/endpoints/"+id, "", &e)
			if e.Data.Name != "Changed" || e.Data.Provider == nil || e.Data.Enabled || !e.Data.SchemaTracking {
				t.Fatalf("a change was undone: %+v", e.Data)
			}
		}
		rival := s.newToken(s.register("eve@example.com"), hookglass.LevelAccount, 0, hookglass.ScopeWrite)
		for range 10 {
			_, key, err := s.endpoints.CreateTemporary(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var won atomic.Int32
			claim := func(token string) func() {
				return func() {
					if res, _ := s.call(token, "POST", "/endpoints/claim", `{"tunnel_key":"`+key+`"}`); res.StatusCode == 200 {
						won.Add(1)
					}
				}
			}
			together(claim(s.token), claim(rival), claim(rival))
			if won.Load() != 1 {
				t.Fatalf("%d callers have the endpoint", won.Load())
			}
		}
	})
}
