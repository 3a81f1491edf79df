package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hookglass/internal/server"
)

// Callers that leave before they are answered, as those with a short time limit do, are no errors of the server.
func TestErrorsForCallersThatHaveGoneAreNotCounted(t *testing.T) {
	answers, figures := server.Counted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/found" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, path := range []string{"/found", "/away"} {
		answers.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, "GET", path, nil))
	}
	answers.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/away", nil))
	w := httptest.NewRecorder()
	figures.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{`{method="GET",status="2xx"} 1`, `{method="GET",status="5xx"} 1`} {
		if line := "hookglass_http_requests_total" + want; !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("there is no %s in %s", line, w.Body)
		}
	}
}
