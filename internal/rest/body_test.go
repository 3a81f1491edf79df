package rest_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"hookglass/api"
)

func TestABodyIsTakenStrictly(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	each(t, func(t *testing.T, s *site) {
		for _, c := range []struct {
			name, body string
			status     int
			code       string
			field      string
		}{
			{"empty", "", 400, "invalid_json", ""},
			{"blank", "  \n", 400, "invalid_json", ""},
			{"not JSON", `{"endpoint":`, 400, "invalid_json", ""},
			{"bare word", `endpoint`, 400, "invalid_json", ""},
			{"single quotes", `{'endpoint':{}}`, 400, "invalid_json", ""},
			{"trailing comma", `{"endpoint":{"name":"a",}}`, 400, "invalid_json", ""},
			{"trailing data", `{"endpoint":{"name":"a"}} x`, 400, "invalid_json", ""},
			{"two values", `{"endpoint":{"name":"a"}}{"endpoint":{"name":"b"}}`, 400, "invalid_json", ""},
			{"byte order mark", "\ufeff" + `{"endpoint":{"name":"a"}}`, 400, "invalid_json", ""},
			{"not UTF-8", "{\"endpoint\":{\"name\":\"\xff\"}}", 400, "invalid_json", ""},
			{"lone surrogate", `{"endpoint":{"name":"\ud800"}}`, 400, "invalid_json", ""},
			{"duplicate name", `{"endpoint":{"name":"a","name":"b"}}`, 400, "invalid_json", ""},
			{"duplicate by escape", `{"endpoint":{"name":"a","\u006eame":"b"}}`, 400, "invalid_json", ""},
			{"malformed behind a wrong type", `{"endpoint":{"name":1}`, 400, "invalid_json", ""},
			{"65 deep", `{"endpoint":{"name":` + deep(63) + `}}`, 400, "invalid_json", ""},
			{"64 deep", `{"endpoint":{"name":` + deep(62) + `}}`, 422, "validation_failed", "endpoint.name"},
			{"100,000 deep", deep(100_000), 400, "invalid_json", ""},
			{"array", `[]`, 422, "validation_failed", "body"},
			{"string", `"endpoint"`, 422, "validation_failed", "body"},
			{"null", `null`, 422, "validation_failed", "endpoint"},
			{"no endpoint", `{}`, 422, "validation_failed", "endpoint"},
			{"null endpoint", `{"endpoint":null}`, 422, "validation_failed", "endpoint"},
			{"endpoint of another type", `{"endpoint":[]}`, 422, "validation_failed", "endpoint"},
			{"no name", `{"endpoint":{}}`, 422, "validation_failed", "endpoint.name"},
			{"null name", `{"endpoint":{"name":null}}`, 422, "validation_failed", "endpoint.name"},
			{"number for a name", `{"endpoint":{"name":7}}`, 422, "validation_failed", "endpoint.name"},
			{"string for a boolean", `{"endpoint":{"name":"a","enabled":"true"}}`, 422, "validation_failed", "endpoint.enabled"},
			{"fraction for a number", `{"endpoint":{"name":"a","response":{"status":200.5}}}`, 422, "validation_failed", "endpoint.response.status"},
			{"huge number", `{"endpoint":{"name":"a","response":{"status":1e400}}}`, 422, "validation_failed", "endpoint.response.status"},
			{"string for a number", `{"endpoint":{"name":"a","response":{"status":"200"}}}`, 422, "validation_failed", "endpoint.response.status"},
			{"fraction for an id", `{"endpoint":{"name":"a","workspace_id":1.5}}`, 422, "validation_failed", "endpoint.workspace_id"},
			{"delay beyond any", `{"endpoint":{"name":"a","response":{"status":200,"delay_ms":9223372036854775807}}}`, 422, "validation_failed", "endpoint.response.delay_ms"},
			{"number in headers", `{"endpoint":{"name":"a","response":{"status":200,"headers":{"X-A":1}}}}`, 422, "validation_failed", "endpoint.response.headers.X-A"},
			{"unknown in the envelope", `{"endpoint":{"name":"a"},"id":1}`, 422, "validation_failed", "id"},
			{"unknown", `{"endpoint":{"name":"a","account_id":1}}`, 422, "validation_failed", "endpoint.account_id"},
			{"id", `{"endpoint":{"name":"a","id":"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"}}`, 422, "validation_failed", "endpoint.id"},
			{"created_at", `{"endpoint":{"name":"a","created_at":"2020-01-01T00:00:00Z"}}`, 422, "validation_failed", "endpoint.created_at"},
			{"unknown below", `{"endpoint":{"name":"a","provider_config":{"secret":1}}}`, 422, "validation_failed", "endpoint.provider_config.secret"},
			{"another case", `{"endpoint":{"Name":"a"}}`, 422, "validation_failed", "endpoint.Name"},
			{"null in headers", `{"endpoint":{"name":"a","response":{"headers":{"X-A":null}}}}`, 422, "validation_failed", "endpoint.response.headers.X-A"},
			{"empty provider", `{"endpoint":{"name":"a","provider":""}}`, 422, "validation_failed", "endpoint.provider"},
			{"bad kind", `{"endpoint":{"name":"a","kind":"fax"}}`, 422, "validation_failed", "endpoint.kind"},
			{"bad provider", `{"endpoint":{"name":"a","provider":"acme"}}`, 422, "validation_failed", "endpoint.provider"},
			{"bad custom id", `{"endpoint":{"name":"a","custom_id":"A"}}`, 422, "validation_failed", "endpoint.custom_id"},
			{"workspace of others", `{"endpoint":{"name":"a","workspace_id":99999}}`, 422, "validation_failed", "endpoint.workspace_id"},
			{"workspace 0", `{"endpoint":{"name":"a","workspace_id":0}}`, 422, "validation_failed", "endpoint.workspace_id"},
		} {
			req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/endpoints", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+s.token)
			req.Header.Set("Content-Type", "application/json; charset=utf-8")
			res, text := s.do(req)
			var refused api.Error
			if err := json.Unmarshal([]byte(text), &refused); err != nil || res.StatusCode != c.status || refused.Error != c.code || refused.Message == "" {
				t.Errorf("%s: %d %s, want %d %s", c.name, res.StatusCode, text, c.status, c.code)
				continue
			}
			if c.field != "" && (len(refused.Details) == 0 || refused.Details[0].Field != c.field) {
				t.Errorf("%s: details %+v, want the field %s", c.name, refused.Details, c.field)
			}
		}
		var all api.List[api.Endpoint]
		if s.want(200, "GET", "/endpoints", "", &all); len(all.Data) != 0 {
			t.Errorf("%d endpoints were made", len(all.Data))
		}
	})
}

func TestWhoLeavesOutTheEnvelopeIsToldOfIt(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		for body, message := range map[string]string{
			`{"name":"a"}`:                        `is not a known field here: it goes into "endpoint"`,
			`{"response":{"status":204}}`:         `is not a known field here: it goes into "endpoint"`,
			`{"nam":"a"}`:                         "is not a known field",
			`{"endpoint":{"endpoint":{}}}`:        "is not a known field",
			`{"endpoint":{"name":"a"},"name":""}`: `is not a known field here: it goes into "endpoint"`,
		} {
			var refused api.Error
			s.want(422, "POST", "/endpoints", body, &refused)
			if len(refused.Details) != 1 || refused.Details[0].Message != message {
				t.Errorf("%s is refused with %+v", body, refused.Details)
			}
		}
	})
}

func TestABodyIsJSONOfABoundedSize(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		for media, status := range map[string]int{
			"application/json": 201, "Application/JSON; charset=UTF-8": 201, "": 201,
			"application/x-www-form-urlencoded": 415, "text/plain": 415, "application/json; charset=latin1": 415, "application/jsonx": 415, ";": 415, "text/json": 415,
		} {
			req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/endpoints", strings.NewReader(`{"endpoint":{"name":"a"}}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+s.token)
			if media != "" {
				req.Header.Set("Content-Type", media)
			}
			if res, text := s.do(req); res.StatusCode != status {
				t.Errorf("%q: %d %s, want %d", media, res.StatusCode, text, status)
			}
		}
		for coding, status := range map[string]int{"identity": 201, "gzip": 415, "br, gzip": 415} {
			req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/endpoints", strings.NewReader(`{"endpoint":{"name":"a"}}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+s.token)
			req.Header.Set("Content-Encoding", coding)
			res, text := s.do(req)
			if accepted := res.Header.Get("Accept-Encoding"); res.StatusCode != status || status == 415 && accepted != "identity" {
				t.Errorf("%s: %d %s, accepted are %q", coding, res.StatusCode, text, accepted)
			}
		}
		const limit = 2 << 20
		body := func(size int) string {
			frame := `{"endpoint":{"name":"a"}}`
			return frame + strings.Repeat(" ", size-len(frame))
		}
		s.want(201, "POST", "/endpoints", body(limit), nil)
		var refused api.Error
		if s.want(413, "POST", "/endpoints", body(limit+1), &refused); refused.Error != "payload_too_large" {
			t.Errorf("above the limit: %+v", refused)
		}
	})
}

// What was sent may be a secret in the wrong place.
func TestNoErrorRepeatsAValue(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		const canary = "hunter2hunter2"
		e := s.newEndpoint("")
		for _, body := range []string{
			`{"endpoint":{"name":"a","kind":"` + canary + `"}}`, `{"endpoint":{"name":"a","provider":"` + canary + `"}}`, `{"endpoint":"` + canary + `"}`,
			`{"endpoint":{"name":"a","enabled":"` + canary + `"}}`, `{"endpoint":{"name":"a","custom_id":"` + canary + `!"}}`, `"` + canary + `"`, `{"endpoint":{"name":` + canary,
		} {
			if _, text := s.call(s.token, "POST", "/endpoints", body); strings.Contains(text, canary) {
				t.Errorf("%s: %s", body, text)
			}
		}
		for _, query := range []string{"limit=" + canary, "offset=" + canary, "cursor=" + canary, "before=" + canary, "status=" + canary, "type=" + canary, "ignored=" + canary} {
			if _, text := s.call(s.token, "GET", "/endpoints/"+e.ID+"/requests?"+query, ""); strings.Contains(text, canary) {
				t.Errorf("%s: %s", query, text)
			}
		}
		if strings.Contains(s.log.String(), canary) || strings.Contains(s.log.String(), s.token) {
			t.Error("the log holds what was sent")
		}
	})
}

func TestWhatIsNotThereIsAnsweredInJSON(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		for _, c := range []struct {
			method, path string
			status       int
			allow        string
		}{
			{"GET", "/nothing", 404, ""},
			{"GET", "//endpoints", 404, ""},
			{"GET", "/endpoints/../endpoints", 404, ""},
			{"GET", "/endpoints/", 404, ""},
			{"GET", "", 404, ""},
			{"PUT", "/endpoints", 405, "GET, HEAD, POST"},
			{"POST", "/endpoints/x", 405, "GET, HEAD, PATCH, DELETE"},
			{"OPTIONS", "/auth/verify", 405, "GET, HEAD"},
			{"PROPFIND", "/auth/verify", 405, "GET, HEAD"},
			{"GET", "/endpoints/x/requests/y/tags/z", 405, "PUT, DELETE"},
		} {
			req, err := http.NewRequestWithContext(t.Context(), c.method, s.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.URL.Opaque = "//" + req.URL.Host + req.URL.Path + c.path // exactly as written
			res, text := s.do(req)
			var refused api.Error
			if err := json.Unmarshal([]byte(text), &refused); err != nil || res.StatusCode != c.status || refused.Error == "" ||
				res.Header.Get("Allow") != c.allow || res.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s: %d %q %s, want %d %q", c.method, c.path, res.StatusCode, res.Header.Get("Allow"), text, c.status, c.allow)
			}
		}
		for _, accept := range []string{"text/html", "application/xml", "application/cbor", "x", "*/*;q=0"} {
			req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/auth/verify", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", accept)
			req.Header.Set("Authorization", "Bearer "+s.token)
			if res, text := s.do(req); res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
				t.Errorf("Accept: %s: %d %s %s", accept, res.StatusCode, res.Header.Get("Content-Type"), text)
			}
		}
		// No other site's script may read an answer.
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/auth/verify", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", "https://evil.example")
		res, _ := s.do(req)
		for name := range res.Header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: %s", name, res.Header.Get(name))
			}
		}
	})
}

// What may be null by its description is taken, and what is not described may hold anything.
func TestNullIsTakenWhereItMeansSomething(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		s.want(201, "POST", "/endpoints", `{"endpoint":{"name":"null","provider":null,"custom_id":null,"email_local_part":null,"response":null,"response_script":null,"workspace_id":null}}`, nil)
		s.want(201, "POST", "/endpoints", `{"endpoint":{"name":"nested","response":{"status":null,"headers":null,"body":null,"delay_ms":null},"provider_config":{"handshake":null}}}`, nil)
		e := s.newEndpoint("")
		s.want(201, "POST", "/endpoints/"+e.ID+"/actions", `{"endpoint_action":{"name":"n","conditions":[{"field":"event_type","operator":"exists","value":null}],
			"steps":[{"step_type":"transform","reference_key":null,"config_version":null,"failure_policy":null,
			"config":{"source":"request","operations":[{"op":"select","path":"/body"},{"op":"set","path":"/a","value":null}]},"conditions":[{"source":"request","path":"/body","operator":"equals","value":null}]}]}}`, nil)
		event := s.arrive(e.ID, nil)
		s.want(201, "POST", "/endpoints/"+e.ID+"/replay_cases", `{"replay_case":{"source_id":"`+event+`","name":"n","description":null,"target_url":"https://app.example.com/","assertions":{"json_subset":{"a":null,"b":[null]}}}}`, nil)
		s.want(201, "POST", "/endpoints/"+e.ID+"/replay_cases", `{"replay_case":{"source_id":"`+event+`","name":"n","target_url":"https://app.example.com/","assertions":{"status":{"class":"2xx"},"json_subset":null}}}`, nil)
		s.wantError(422, "validation_failed", "POST", "/endpoints/"+e.ID+"/actions", `{"endpoint_action":{"name":"n","steps":[null]}}`)
	})
}

// An empty string is none of several words, and not the default either.
func TestAnEmptyWordIsRefused(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		event := s.arrive(e.ID, nil)
		for path, body := range map[string]string{
			"/requests/" + event + "/replay": `{"target_url":"https://app.example.com/","signature_mode":""}`,
			"/replay_batches":                `{"target_url":"https://app.example.com/","identity_mode":"","dry_run":true}`,
			"/replay_cases":                  `{"replay_case":{"source_id":"` + event + `","name":"n","target_url":"https://app.example.com/","options":{"identity_mode":""},"assertions":{"status":{"code":200}}}}`,
		} {
			s.wantError(422, "validation_failed", "POST", "/endpoints/"+e.ID+path, body)
		}
		s.want(201, "POST", "/endpoints/"+e.ID+"/replay_cases", `{"replay_case":{"source_id":"`+event+`","name":"n","description":"","target_url":"https://app.example.com/","assertions":{"json_subset":{"signature_mode":""}}}}`, nil)
		var refused api.Error
		s.want(422, "POST", "/endpoints", `{"endpoint":{"name":"n","provider":""}}`, &refused)
		if len(refused.Details) != 1 || refused.Details[0].Message != "must be github, stripe, shopify, slack, twilio or null" {
			t.Errorf("%+v", refused)
		}
	})
}

// Who is refused for a number is told which are taken.
func TestAWrongNumberIsToldToBeNoWholeOne(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		for _, number := range []string{"30.5", "9223372036854775808", "1e400", `"30"`, "true", "{}"} {
			for _, field := range []string{"timeout_seconds", "retry_count"} {
				var refused api.Error
				s.want(422, "POST", "/endpoints/"+e.ID+"/forwarding_targets", `{"forwarding_target":{"name":"t","url":"https://a.example.com","`+field+`":`+number+`}}`, &refused)
				if len(refused.Details) != 1 || refused.Details[0] != (api.FieldError{Field: "forwarding_target." + field, Message: "must be a whole number"}) {
					t.Errorf("%s: %+v", number, refused.Details)
				}
			}
			var refused api.Error
			s.want(422, "POST", "/endpoints", `{"endpoint":{"name":"a","response":{"status":`+number+`}}}`, &refused)
			if len(refused.Details) != 1 || refused.Details[0].Message != "must be a whole number" {
				t.Errorf("a status of %s: %+v", number, refused.Details)
			}
		}
	})
}

// A number is an integer by its value, as the description's schemas have it, wherever an integer is taken.
func TestAnIntegerMayBeWrittenAsAFraction(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var e api.One[api.Endpoint]
		s.want(201, "POST", "/endpoints", `{"endpoint":{"name":"a","response":{"status":202.0,"delay_ms":1.5e1}}}`, &e)
		if r := e.Data.Response; *r.Status != 202 || r.DelayMS != 15 {
			t.Errorf("the answer is %+v", r)
		}
		var target api.One[api.ForwardingTarget]
		s.want(201, "POST", "/endpoints/"+e.Data.ID+"/forwarding_targets", `{"forwarding_target":{"name":"t","url":"https://a.example.com","timeout_seconds":30.0,"retry_count":3e0}}`, &target)
		if target.Data.TimeoutSeconds != 30 || target.Data.RetryCount != 3 {
			t.Errorf("the target is %+v", target.Data)
		}
		s.want(422, "PATCH", "/endpoints/"+e.Data.ID+"/forwarding_targets/"+strconv.FormatInt(target.Data.ID, 10), `{"forwarding_target":{"timeout_seconds":30.5}}`, nil)
		var a api.One[api.Action]
		s.want(201, "POST", "/endpoints/"+e.Data.ID+"/actions", `{"endpoint_action":{"name":"a","position":1.0,"steps":[{"step_type":"forward","name":"f","config_version":1.0,"config":{"url":"https://a.example.com","timeout_seconds":45.0}}]}}`, &a)
		if config := string(a.Data.Steps[0].Config); !strings.Contains(config, `"timeout_seconds":45`) || strings.Contains(config, "45.0") {
			t.Errorf("the step is %s", config)
		}
	})
}
