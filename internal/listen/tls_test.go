package listen_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// newTLSTarget is a local handler whose certificate nobody knows.
func newTLSTarget(t *testing.T) string {
	h := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	h.Config.ErrorLog = nil
	t.Cleanup(h.Close)
	return h.URL
}
