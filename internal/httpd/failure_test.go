package httpd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/httpd"
)

// serve answers one request by the handler, behind the stack.
func serve(t *testing.T, cfg httpd.Config, r *http.Request, h http.HandlerFunc) (*httptest.ResponseRecorder, string) {
	t.Helper()
	var log bytes.Buffer
	cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w := httptest.NewRecorder()
	httpd.New(cfg).Wrap(h).ServeHTTP(w, r)
	return w, log.String()
}

func TestEveryCodeHasItsStatus(t *testing.T) {
	for code, status := range map[hookglass.Code]int{
		hookglass.CodeInvalidJSON: 400, hookglass.CodeUnauthorized: 401, hookglass.CodeInsufficientScope: 403, hookglass.CodeForbidden: 403,
		hookglass.CodePlanRequired: 403, hookglass.CodePaymentMethodRequired: 403, hookglass.CodeSubscriptionRequired: 403, hookglass.CodeNotFound: 404,
		hookglass.CodeMethodNotAllowed: 405, hookglass.CodeConflict: 409, hookglass.CodeStaleLockVersion: 409, hookglass.CodeIdempotencyConflict: 409,
		hookglass.CodeSignatureConfigExists: 409, hookglass.CodeSecretInUse: 409, hookglass.CodeGone: 410, hookglass.CodePayloadTooLarge: 413,
		hookglass.CodeUnsupportedMediaType: 415, hookglass.CodeValidationFailed: 422, hookglass.CodeTargetNotAllowed: 422, hookglass.CodeRateLimited: 429,
		hookglass.CodeInternal: 500, hookglass.CodeUnavailable: 503, "something new": 500,
	} {
		w, _ := serve(t, httpd.Config{}, httptest.NewRequest("GET", "/", nil), func(w http.ResponseWriter, r *http.Request) {
			httpd.WriteError(w, r, fmt.Errorf("while trying: %w", hookglass.Errorf(code, "What happened.")))
		})
		var body struct{ Error, Message string }
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != status || body.Error != string(code) || body.Message != "What happened." || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s, want %d", code, w.Code, w.Body, status)
		}
	}
}

func TestAnErrorWithoutACodeIsRecordedAndNotTold(t *testing.T) {
	w, log := serve(t, httpd.Config{}, httptest.NewRequest("GET", "/", nil), func(w http.ResponseWriter, r *http.Request) {
		httpd.WriteError(w, r, errors.New("SELECT * FROM users"))
	})
	if w.Code != 500 || strings.Contains(w.Body.String(), "SELECT") || !strings.Contains(w.Body.String(), `"error":"internal"`) {
		t.Errorf("the caller is told %d %s", w.Code, w.Body)
	}
	if strings.Count(log, "SELECT") != 1 || !strings.Contains(log, w.Header().Get("X-Request-Id")) {
		t.Errorf("the log has %s", log)
	}
}

func TestAnErrorTellsWhenToComeBack(t *testing.T) {
	for _, c := range []struct {
		err    error
		header string
		body   string
	}{
		{&hookglass.Error{Code: hookglass.CodeRateLimited, RetryAfter: 1100 * time.Millisecond}, "2", `{"error":"rate_limited","retry_after":2}`},
		{&hookglass.Error{Code: hookglass.CodeRateLimited, RetryAfter: time.Millisecond}, "1", `{"error":"rate_limited","retry_after":1}`},
		{&hookglass.Error{Code: hookglass.CodeRateLimited}, "5", `{"error":"rate_limited","retry_after":5}`},
		{&hookglass.Error{Code: hookglass.CodeUnavailable, RetryAfter: 30 * time.Second}, "30", `{"error":"unavailable"}`},
		{&hookglass.Error{Code: hookglass.CodeNotFound}, "", `{"error":"not_found"}`},
	} {
		w, _ := serve(t, httpd.Config{}, httptest.NewRequest("GET", "/", nil), func(w http.ResponseWriter, r *http.Request) { httpd.WriteError(w, r, c.err) })
		if got := strings.TrimSpace(w.Body.String()); got != c.body || w.Header().Get("Retry-After") != c.header {
			t.Errorf("%v: Retry-After %q, %s; want %q, %s", c.err, w.Header().Get("Retry-After"), got, c.header, c.body)
		}
	}
}

// People read what went wrong in a terminal. A browser takes it for no page, whatever a caller put into it.
func TestAnErrorIsWrittenForPeople(t *testing.T) {
	failed := &hookglass.Error{
		Code: hookglass.CodeValidationFailed, Message: "Bearer <token> & more", Details: []hookglass.FieldError{{Field: "a", Message: "<b>"}}, Extra: map[string]any{"c": "<d>"},
	}
	w, _ := serve(t, httpd.Config{}, httptest.NewRequest("GET", "/", nil), func(w http.ResponseWriter, r *http.Request) { httpd.WriteError(w, r, failed) })
	want := `{"error":"validation_failed","message":"Bearer <token> & more","details":[{"field":"a","message":"<b>"}],"c":"<d>"}`
	if got := strings.TrimSpace(w.Body.String()); got != want || w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%v %s, want %s", w.Header(), got, want)
	}
}

func TestAnErrorHasDetailsAndWhatItsKindAdds(t *testing.T) {
	for _, c := range []struct {
		err  error
		body string
	}{
		{hookglass.Invalid("endpoint.name", "is required"), `{"error":"validation_failed","message":"endpoint.name is required.","details":[{"field":"endpoint.name","message":"is required"}]}`},
		{&hookglass.Error{Code: hookglass.CodeSecretInUse, Message: "In use.", Extra: map[string]any{"references": []string{"a"}}}, `{"error":"secret_in_use","message":"In use.","references":["a"]}`},
	} {
		w, _ := serve(t, httpd.Config{}, httptest.NewRequest("GET", "/", nil), func(w http.ResponseWriter, r *http.Request) { httpd.WriteError(w, r, c.err) })
		if got := strings.TrimSpace(w.Body.String()); got != c.body {
			t.Errorf("got %s, want %s", got, c.body)
		}
	}
}

func TestChallengesSayWhatIsMissing(t *testing.T) {
	for code, want := range map[hookglass.Code]string{
		hookglass.CodeUnauthorized: "Bearer", hookglass.CodeInsufficientScope: `Bearer error="insufficient_scope"`, hookglass.CodeForbidden: "",
	} {
		w, _ := serve(t, httpd.Config{}, httptest.NewRequest("GET", "/", nil), func(w http.ResponseWriter, r *http.Request) {
			httpd.WriteError(w, r, hookglass.Errorf(code, "No."))
		})
		if got := w.Header().Get("WWW-Authenticate"); got != want {
			t.Errorf("%s: WWW-Authenticate %q, want %q", code, got, want)
		}
	}
}

func TestAFailureIsRecordedUnlessItIsThatTheCallerLeft(t *testing.T) {
	for _, c := range []struct {
		err  error
		left bool
		want int
	}{
		{errors.New("SELECT"), false, 1},
		{errors.New("SELECT"), true, 1},
		{fmt.Errorf("SELECT: %w", context.Canceled), true, 0},
		{fmt.Errorf("SELECT: %w", context.Canceled), false, 1},
		{fmt.Errorf("SELECT: %w", context.DeadlineExceeded), true, 1},
	} {
		ctx, leave := context.WithCancel(t.Context())
		w, log := serve(t, httpd.Config{}, httptest.NewRequestWithContext(ctx, "GET", "/", nil), func(w http.ResponseWriter, r *http.Request) {
			if c.left {
				leave()
			}
			httpd.WriteError(w, r, c.err)
		})
		leave()
		if got := strings.Count(log, "SELECT"); got != c.want || w.Code != 500 {
			t.Errorf("%v, left %v: %d, %s", c.err, c.left, w.Code, log)
		}
	}
}

func TestWhatBreaksAnAnswerOffIsRecordedUnlessItsReaderLeft(t *testing.T) {
	for _, c := range []struct {
		err    error
		reader error
		want   int
	}{
		{errors.New("SELECT * FROM users"), nil, 1},
		{fmt.Errorf("SELECT: %w", http.ErrAbortHandler), nil, 0},
		{hookglass.NotFound("SELECT"), nil, 0},
		{errors.New("SELECT * FROM users"), io.ErrClosedPipe, 0},
	} {
		var log bytes.Buffer
		stack := httpd.New(httpd.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		h := stack.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("half"))
			httpd.BrokeOff(r.Context(), c.err)
		}))
		h.ServeHTTP(leaving{httptest.NewRecorder(), c.reader}, httptest.NewRequest("GET", "/", nil))
		if got := strings.Count(log.String(), "SELECT"); got != c.want {
			t.Errorf("%v, and the reader's %v: %s", c.err, c.reader, log.String())
		}
	}
}

// leaving is an answer whose reader takes nothing where there is an err.
type leaving struct {
	*httptest.ResponseRecorder
	err error
}

func (w leaving) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	return w.ResponseRecorder.Write(p)
}
