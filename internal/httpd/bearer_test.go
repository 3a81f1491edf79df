package httpd_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/httpd"
)

var discard = slog.New(slog.DiscardHandler)

func TestABearerTokenIsReadFromOneWellFormedField(t *testing.T) {
	for field, want := range map[string]string{
		"Bearer hg_abc": "hg_abc", "bearer a-._~+/b==": "a-._~+/b==", "BEARER x": "x", "Bearer azAZ09": "azAZ09",
		"": "", "Bearer": "", "Bearer ": "", "Bearer  x": "", "Bearer\tx": "", " Bearer x": "", "Bearer x ": "", "Bearer x y": "", "Bearer =": "", "Bearer a=b": "", "Bearer x,y": "",
		"Basic x": "", "x": "", "Bearer \"x\"": "", "Bearer é": "",
	} {
		r := &http.Request{Header: http.Header{"Authorization": {field}}}
		token, err := httpd.Bearer(r)
		if token != want || (err == nil) != (want != "") || err != nil && !hookglass.Is(err, hookglass.CodeUnauthorized) {
			t.Errorf("%q gives %q, %v; want %q", field, token, err, want)
		}
	}
	for _, r := range []*http.Request{{}, {Header: http.Header{"Authorization": {"Bearer x", "Bearer x"}}}} {
		if _, err := httpd.Bearer(r); !hookglass.Is(err, hookglass.CodeUnauthorized) {
			t.Errorf("%v: %v", r.Header, err)
		}
	}
}

func FuzzBearer(f *testing.F) {
	f.Add("Bearer hg_abc")
	f.Add("bearer  x")
	f.Fuzz(func(t *testing.T, field string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Authorization"] = []string{field}
		token, err := httpd.Bearer(r)
		if (err == nil) == (token == "") || strings.ContainsAny(token, " \t\r\n,\"") || len(token) > len(field) {
			t.Errorf("%q gives %q, %v", field, token, err)
		}
	})
}
