package capture_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/capture"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A test request has the bounds of one that comes from outside.
func TestATestRequestIsNoLargerThanReceptionTakes(t *testing.T) {
	headers := func(n, size int) map[string]string {
		all := make(map[string]string, n)
		for i := range n {
			all[fmt.Sprintf("X-%d", i)] = strings.Repeat("v", size)
		}
		return all
	}
	for name, c := range map[string]struct {
		request api.SendTestRequest
		field   string // or what is said of the headers; "": taken
	}{
		"as many headers as may be": {api.SendTestRequest{Headers: headers(capture.MaxHeaders, 10)}, ""},
		"one more":                  {api.SendTestRequest{Headers: headers(capture.MaxHeaders+1, 10)}, "headers"},
		"long headers":              {api.SendTestRequest{Headers: headers(2, capture.MaxHeaderBytes/2)}, "headers"},
		"a long path":               {api.SendTestRequest{Path: "/" + strings.Repeat("a", capture.MaxHeaderBytes)}, "path"},
		"both":                      {api.SendTestRequest{Path: "/" + strings.Repeat("a", capture.MaxHeaderBytes/2), Headers: headers(1, capture.MaxHeaderBytes/2)}, "headers"},
		"a name":                    {api.SendTestRequest{Headers: map[string]string{"X-A": "1", "a b": "2"}}, `has the invalid name "a b"`},
		"the first by name":         {api.SendTestRequest{Headers: map[string]string{"a b": "", "b b": "", "c b": "", "d b": "", "e b": "", "f b": ""}}, `has the invalid name "a b"`},
		"a value":                   {api.SendTestRequest{Headers: map[string]string{"X-A": "1\n"}}, "has an invalid value for X-A"},
		"the server's own":          {api.SendTestRequest{Headers: map[string]string{"trailer": "1"}}, "may not set trailer"},
		"a host twice":              {api.SendTestRequest{Headers: map[string]string{"Host": "a", "host": "a"}}, "must have one Host, of a name or an address and a port"},
		"what is no host":           {api.SendTestRequest{Headers: map[string]string{"Host": "a/b"}}, "must have one Host, of a name or an address and a port"},
		"no host":                   {api.SendTestRequest{Headers: map[string]string{"Host": ""}}, "must have one Host, of a name or an address and a port"},
		"a host":                    {api.SendTestRequest{Headers: map[string]string{"Host": "[::1]:8080"}}, ""},
		"the longest path":          {api.SendTestRequest{Path: "/" + strings.Repeat("a", capture.MaxHeaderBytes-1)}, ""},
		"as long as may be":         {api.SendTestRequest{Headers: map[string]string{"X-A": strings.Repeat("v", capture.MaxHeaderBytes-len("POSTX-A: \r\n"))}}, ""},
		"one byte more":             {api.SendTestRequest{Headers: map[string]string{"X-A": strings.Repeat("v", capture.MaxHeaderBytes-len("POSTX-A: \r\n")+1)}}, "headers"},
	} {
		_, err := capture.ReadTestRequest(c.request)
		if c.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var coded *hookglass.Error
		if !errors.As(err, &coded) || coded.Code != hookglass.CodeValidationFailed || coded.Details[0].Field != c.field && coded.Details[0].Message != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheBodyOfATestRequestIsNoLargerThanReceptionTakes(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	captures := capture.New(b.db, capture.Config{Verifiers: b.endpoints, MaxBody: 1000}, slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		size int
		code hookglass.Code // "": taken
	}{{999, ""}, {1000, ""}, {1001, hookglass.CodePayloadTooLarge}} {
		_, err := captures.SendTest(t.Context(), hookglass.System, string(b.ep.ID), "https://hooks.test", capture.TestRequest{Method: "POST", Body: []byte(strings.Repeat("x", c.size))})
		if c.code == "" && err != nil || c.code != "" && !hookglass.Is(err, c.code) {
			t.Errorf("%d bytes: %v", c.size, err)
		}
	}
}

// A test request that says nothing is a POST to the endpoint, wherever the service is.
func TestATestRequestGoesToTheEndpoint(t *testing.T) {
	r, err := capture.ReadTestRequest(api.SendTestRequest{})
	if err != nil || r.Method != "POST" {
		t.Fatalf("%+v, %v", r, err)
	}
	b := newBench(t, storetest.SQLite(t))
	for _, c := range []struct{ origin, path, want, query, url string }{
		{"https://hooks.test", "", "/", "", "https://hooks.test/hooks/EP"},
		{"https://hooks.test/below", "", "/", "", "https://hooks.test/below/hooks/EP"},
		{"https://hooks.test/below", "/a/hooks/b?x=1", "/a/hooks/b", "x=1", "https://hooks.test/below/hooks/EP/a/hooks/b?x=1"},
		{"https://hooks.test", "?x", "/", "x", "https://hooks.test/hooks/EP?x"},
	} {
		r.Path = c.path
		id, err := b.captures.SendTest(t.Context(), hookglass.System, string(b.ep.ID), c.origin, r)
		if err != nil {
			t.Fatal(err)
		}
		err = b.db.View(t.Context(), hookglass.System, func(v *store.View) error {
			e, err := v.Event(string(b.ep.ID), string(id))
			if want := strings.ReplaceAll(c.url, "EP", string(b.ep.ID)); err == nil && (e.Path != c.want || e.RawQuery != c.query || e.URL != want || e.Method != "POST") {
				t.Errorf("%+v: %s %s ? %s of %s", c, e.Method, e.Path, e.RawQuery, e.URL)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// From outside, a request with two Host headers is refused.
func TestATestRequestThatNamesAHostHasThatHostAlone(t *testing.T) {
	r, err := capture.ReadTestRequest(api.SendTestRequest{Headers: map[string]string{"X-A": "1", "host": "other.example:81"}})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, storetest.SQLite(t))
	id, err := b.captures.SendTest(t.Context(), hookglass.System, string(b.ep.ID), "https://hooks.test", r)
	if err != nil {
		t.Fatal(err)
	}
	err = b.db.View(t.Context(), hookglass.System, func(v *store.View) error {
		e, err := v.Event(string(b.ep.ID), string(id))
		if err == nil && (!slices.Equal(e.Headers.Values("Host"), []string{"other.example:81"}) || !strings.HasPrefix(e.URL, "https://other.example:81/hooks/")) {
			t.Errorf("%v at %s", e.Headers, e.URL)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
