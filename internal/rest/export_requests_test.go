package rest_test

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"hookglass/api"
	"hookglass/internal/capture"
)

func TestAnExportHoldsWhatTheFiltersSelect(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base := "/endpoints/" + e.ID + "/requests/export"
		s.arrive(e.ID, nil)
		put := s.arrive(e.ID, func(a *capture.Arrival) { a.Method, a.Body = "PUT", []byte("=1+1") })
		last := s.arrive(e.ID, func(a *capture.Arrival) { a.Method = "PUT" })

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
		if !strings.Contains(text, strings.TrimSpace(lines[1])) {
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
		s.want(422, "GET", base+"?limit=1&q=nosuchfield:1", "", nil)
	})
}
