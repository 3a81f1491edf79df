package rest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/httpd"
	"hookglass/internal/rest"
	"hookglass/internal/store/storetest"
)

// beside serves another handler with the accounts of the site.
func (s *site) beside(h http.Handler) *site {
	other := *s
	server := httptest.NewServer(httpd.New(httpd.Config{Log: slog.New(slog.DiscardHandler)}).Wrap(h))
	s.t.Cleanup(server.Close)
	other.url = server.URL + rest.Base
	return &other
}

func TestAnOperationAnswersAtItsOlderPathToo(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	s = s.beside(rest.NewWithAlias(s.deps))
	for _, path := range []string{"/new/x", "/old/x"} {
		var got string
		if s.want(200, "GET", path, "", &got); got != "x" {
			t.Errorf("%s answers %q", path, got)
		}
		s.wantAs("", 401, "GET", path, "", nil)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			Deprecated  bool
		}
	}
	s.want(200, "GET", "/openapi.json", "", &doc)
	if op := doc.Paths["/old/{id}"]["get"]; op.OperationID != "say-2" || !op.Deprecated {
		t.Errorf("the older path is described as %+v", op)
	}
	if op := doc.Paths["/new/{id}"]["get"]; op.OperationID != "say" || op.Deprecated {
		t.Errorf("the path is described as %+v", op)
	}
}

// Where a parameter stands in a query says nothing, and one without a value is one with an empty value, or a flag.
func TestAParameterWithoutAValue(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	e := s.newEndpoint("")
	id := s.arrive(e.ID, nil)
	base := "/endpoints/" + e.ID
	for _, query := range []string{"?q&limit=5", "?limit=5&q", "?type&tag&limit=5&ignored", "?&limit=5&"} {
		if got := s.list(base + "/requests" + query); len(got.Data) != 1 || got.Data[0].ID != id {
			t.Errorf("%s lists %v", query, ids(got))
		}
	}
	config := `{"signature_config":{"provider":"github","secret":"s"}}`
	s.want(201, "POST", base+"/signature_configs", config, nil)
	for query, status := range map[string]int{"?force": 201, "?force&x=1": 201, "?x=1&force": 201, "?force=false": 409, "?x=1": 409} {
		s.want(status, "POST", base+"/signature_configs"+query, config, nil)
	}
}

// What the framework says of parameters reads as a sentence behind their names.
func TestFaultsOfParametersAreSentences(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	for path, want := range map[string]string{
		"/flows?state=late":   `state must be one of "pending, passed, failed, expired".`,
		"/endpoints?limit=1x": "limit must be a whole number.",
		"/endpoints?limit=0":  "limit must be a number >= 1.",
	} {
		var got struct{ Message string }
		if s.want(422, "GET", path, "", &got); got.Message != want {
			t.Errorf("%s: %q, want %q", path, got.Message, want)
		}
	}
}

func TestAQuietStreamGivesSignsOfLife(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	e := s.newEndpoint("")
	s = s.beside(rest.NewWithBeat(s.deps, 10*time.Millisecond))
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/endpoints/"+e.ID+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	giveUp := time.AfterFunc(patience, func() { res.Body.Close() })
	defer giveUp.Stop()
	signs := 0
	for lines := bufio.NewScanner(res.Body); signs < 3 && lines.Scan(); {
		switch {
		case strings.HasPrefix(lines.Text(), ":"):
			signs++
		case lines.Text() == "":
			t.Error("a sign of life ends an event, which has no data")
		}
	}
	if signs < 3 {
		t.Errorf("the stream gave %d signs of life", signs)
	}
}

func TestCursorsComeBackAndNothingElseDoes(t *testing.T) {
	for _, at := range []int64{0, 1, 127, 128, math.MaxInt64} {
		if got, err := rest.Place(rest.Cursor(at)); got != at || err != nil {
			t.Errorf("the cursor of %d leads to %d, %v", at, got, err)
		}
	}
}

func FuzzPlace(f *testing.F) {
	f.Add(rest.Cursor(300))
	f.Add("zzz")
	f.Fuzz(func(t *testing.T, cursor string) {
		at, err := rest.Place(cursor)
		if err != nil && !hookglass.Is(err, hookglass.CodeValidationFailed) || at < 0 {
			t.Errorf("%q leads to %d, %v", cursor, at, err)
		}
	})
}

func FuzzBody(f *testing.F) {
	f.Add(`{"endpoint":{"name":"a","provider":null,"response":{"status":200,"headers":{"X-A":"1"},"delay_ms":1}}}`)
	f.Add(`{"endpoint":{"name":1e400}} `)
	f.Add(strings.Repeat("[", 70))
	f.Fuzz(func(t *testing.T, text string) {
		var body api.CreateEndpoint
		err := rest.Decode([]byte(text), &body)
		var told *hookglass.Error
		switch {
		case err == nil:
			if !json.Valid([]byte(text)) {
				t.Errorf("%q was taken", text)
			}
		case !errors.As(err, &told):
			t.Errorf("%q: %v has no code", text, err)
		case told.Code == hookglass.CodeInvalidJSON:
		case told.Code == hookglass.CodeValidationFailed:
			if !json.Valid([]byte(text)) || len(told.Details) != 1 || told.Details[0].Field == "" {
				t.Errorf("%q: %v", text, err)
			}
		default:
			t.Errorf("%q: %v", text, err)
		}
	})
}

// Spec: decisions, section 3: numeric ids are integers, so a path with anything else names nothing.
func TestAPathOfWhatNoIDIsMadeOfNamesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		for _, path := range []string{
			"/endpoints/" + e.ID + "/forwarding_targets/x", "/endpoints/" + e.ID + "/signature_configs/1.5", "/tags/99999999999999999999", "/workspaces/main/action_secrets",
			"/endpoints/%00", "/endpoints/%ff", "/endpoints/" + e.ID + "/requests/%00", "/endpoints/" + e.ID + "/replay_batches/%00", "/endpoints/" + e.ID + "/replay_cases/a%00b", "/flows/%c3%28",
		} {
			s.wantError(404, "not_found", "GET", path, "")
		}
		if res, text := s.call("", "GET", "/tags/x", ""); res.StatusCode != 401 {
			t.Errorf("without a token %d %s", res.StatusCode, text)
		}
	})
}
