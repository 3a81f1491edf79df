package rest_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hookglass/api"
	"hookglass/internal/capture"
	"hookglass/internal/httpd"
	"hookglass/internal/rest"
)

func TestAnExportHoldsWhatTheFiltersSelect(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base := "/endpoints/" + e.ID + "/requests/export"
		s.arrive(e.ID, nil)
		put := s.arrive(e.ID, func(a *capture.Arrival) { a.Method, a.Body = "PUT", []byte("=1+1") })
		last := s.arrive(e.ID, func(a *capture.Arrival) { a.Method = "PUT" })
		s.want(200, "POST", "/tunnel/delivery_reports", `{"endpoint_id":"`+e.ID+`","webhook_request_id":"`+last+`","target_url":"http://localhost:3000","status_code":200}`, nil)

		res, text := s.call(s.token, "GET", base+"?method=PUT", "")
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if res.StatusCode != 200 || len(lines) != 2 || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/x-ndjson") ||
			res.Header.Get("Content-Disposition") != `attachment; filename=`+e.ID+`.ndjson` || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Fatalf("ndjson: %d %v %s", res.StatusCode, res.Header, text)
		}
		var one api.EventDetail
		if err := json.Unmarshal([]byte(lines[0]), &one); err != nil || one.ID != put || *one.Body != "=1+1" {
			t.Errorf("the first line is %s: %v", lines[0], err)
		}
		_, text = s.call(s.token, "GET", "/endpoints/"+e.ID+"/requests/"+last, "")
		if !strings.Contains(text, strings.TrimSpace(lines[1])) || !strings.Contains(text, `"deliveries":[{`) || len(one.Deliveries) != 0 {
			t.Errorf("a line is %s, want the detail form %s", lines[1], text)
		}

		_, text = s.call(s.token, "GET", base+"?format=csv&method=PUT", "")
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(rows) != 3 || strings.Contains(text, ",=1+1") {
			t.Errorf("csv: %v in %s", err, text)
		}

		_, text = s.call(s.token, "GET", base+"?format=har&method=PUT", "")
		var har struct {
			Log struct {
				Version string
				Entries []any
			}
		}
		if err := json.Unmarshal([]byte(text), &har); err != nil || har.Log.Version != "1.2" || len(har.Log.Entries) != 2 {
			t.Errorf("har: %v in %s", err, text)
		}
		if _, text = s.call(s.token, "GET", base+"?format=har&method=GET", ""); json.Unmarshal([]byte(text), &har) != nil || len(har.Log.Entries) != 0 {
			t.Errorf("a har of nothing: %s", text)
		}
		s.want(422, "GET", base+"?format=xml", "", nil)
		s.want(422, "GET", base+"?limit=1&q=provder:x", "", nil)
	})
}

// An export begins before anything is found: whoever waits for its answer does not do so for as long as a search takes.
func TestAnExportBeginsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		s.arrive(e.ID, nil)
		r := httptest.NewRequestWithContext(t.Context(), "GET", rest.Base+"/endpoints/"+e.ID+"/requests/export?method=PUT", nil)
		r.Header.Set("Authorization", "Bearer "+s.token)
		w := httptest.NewRecorder()
		httpd.New(httpd.Config{Log: slog.New(slog.DiscardHandler)}).Wrap(rest.New(s.deps)).ServeHTTP(w, r)
		if w.Code != 200 || w.Body.Len() > 0 || !w.Flushed {
			t.Errorf("%d %q, begun: %v", w.Code, w.Body, w.Flushed)
		}
	})
}

// TestALongAnswerGivesItsReaderTimeForEachPiece holds for every answer that a large body may be in: a slow reader gets
// all of it, and one that takes nothing does not keep it for ever.
func TestALongAnswerGivesItsReaderTimeForEachPiece(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		body := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
		id := s.arrive(e.ID, func(a *capture.Arrival) { a.Body = body })
		mail := s.newEndpoint(`,"kind":"email","email_local_part":"files"`)
		message := s.deliver("files", "Content-Type: text/plain; name=f.txt\r\nContent-Disposition: attachment; filename=f.txt\r\n\r\n"+string(body)+"\r\n")
		base := "/endpoints/" + e.ID + "/requests/"
		for _, path := range []string{base + id, base + id + "/body", base + "export", "/endpoints/" + mail.ID + "/requests/" + message + "/attachments/0"} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", rest.Base+path, nil)
			r.Header.Set("Authorization", "Bearer "+s.token)
			w := &timed{ResponseRecorder: httptest.NewRecorder()}
			httpd.New(httpd.Config{Log: slog.New(slog.DiscardHandler)}).Wrap(rest.New(s.deps)).ServeHTTP(w, r)
			if w.Code != 200 || w.Body.Len() < len(body) || w.untimed > 0 || w.largest > 64<<10 {
				t.Errorf("%s: %d with %d bytes, %d pieces without a time of their own, %d bytes in one", path, w.Code, w.Body.Len(), w.untimed, w.largest)
			}
		}
	})
}

// timed notes what is written without a deadline since what was written before.
type timed struct {
	*httptest.ResponseRecorder
	set              bool
	untimed, largest int
}

func (w *timed) SetWriteDeadline(at time.Time) error {
	w.set = !at.IsZero()
	return nil
}

func (w *timed) Write(p []byte) (int, error) {
	if !w.set {
		w.untimed++
	}
	w.set, w.largest = false, max(w.largest, len(p))
	return w.ResponseRecorder.Write(p)
}
