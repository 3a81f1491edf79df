package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/store"
)

// Whoever has a large event read for them waits while others have all the room, and what does not read it waits for
// nobody.
func TestWhatReadsLargeEventsWaitsForRoom(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base := "/endpoints/" + e.ID
		large := s.arrive(e.ID, func(a *capture.Arrival) { a.Body = []byte(`{"action":"` + strings.Repeat("x", 1<<20) + `"}`) })
		small := s.arrive(e.ID, nil)
		err := s.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			for range 3 {
				report := &hookglass.DeliveryReport{StatusCode: 200, TargetURL: "http://localhost:3000", Evidence: &hookglass.DeliveryEvidence{Body: make([]byte, hookglass.EvidenceLimit)}}
				if _, err := tx.RecordReport(e.ID, small, report); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		shape := `{"step_type":"transform","name":"Shape","config":{"source":"request","operations":[{"op":"select","path":"/method"}]}}`
		act := base + "/actions/" + s.newAction(e.ID, `"name":"Tell","enabled":false,"steps":[`+shape+`]`).ID
		caseOf := func(id string) string {
			return `{"replay_case":{"source_id":"` + id + `","name":"n","target_url":"https://a.example.com/","assertions":{"status":{"class":"2xx"}}}}`
		}
		bundle := fmt.Sprintf(`{"request_ids":[%q]}`, small)
		before := time.Now().UTC().Add(-time.Minute).Format(time.RFC3339)
		all, leave := context.WithCancel(t.Context())
		if err := s.captures.RoomFor(all, hookglass.System, 256<<20); err != nil {
			t.Fatal(err)
		}
		readers := []struct {
			method, path, body string
			status             int
		}{
			{"GET", base + "/requests/" + large, "", 200},
			{"GET", base + "/requests/" + small, "", 200}, // with what was reported of it
			{"GET", base + "/requests/" + large + "/body", "", 200},
			{"GET", base + "/requests/" + large + "/signature", "", 200},
			{"GET", base + "/requests/" + large + "/diagnosis", "", 200},
			{"POST", act + "/preview", `{"preview":{"ingress_event_id":"` + large + `"}}`, 200},
			{"POST", act + "/backtest", `{"limit":2}`, 200},
			{"POST", base + "/replay_cases", caseOf(large), 201},
			{"POST", base + "/share_bundles", bundle, 200},
			{"GET", "/tunnel/undelivered?endpoint_ids%5B%5D=" + e.ID, "", 200},
			{"GET", "/tunnel/undelivered?endpoint_ids%5B%5D=" + e.ID + "&since=" + before, "", 200},
			{"GET", "/tunnel/missed?endpoint_ids%5B%5D=" + e.ID + "&since=" + before, "", 200},
		}
		for _, r := range readers {
			if s.waits(r.method, r.path, r.body) != 0 {
				t.Errorf("%s %s is answered while there is no room", r.method, r.path)
			}
		}
		others := []struct {
			method, path, body string
			status             int
		}{
			{"GET", base + "/requests/" + small + "/body", "", 200},
			{"GET", base + "/requests", "", 200},
			{"POST", base + "/replay_cases", caseOf(small), 201},
			{"POST", act + "/runs", `{"run":{"event_id":"` + large + `"}}`, 202},
			{"PUT", base + "/requests/" + large + "/tags/x", "", 200},
			{"POST", base + "/requests/" + large + "/ignore", `{"reason":"noise"}`, 200},
			{"GET", base + "/requests/" + large + "/nothing", "", 404},
		}
		for _, r := range others {
			s.want(r.status, r.method, r.path, r.body, nil)
		}
		leave()
		for _, r := range readers {
			s.want(r.status, r.method, r.path, r.body, nil)
		}
	})
}

// waits makes a request that nobody waits for long, and returns the status, 0 where it was not answered.
func (s *site) waits(method, path, body string) int {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 100*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}
