//go:build linux

package faults_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// actionRun is what these tests read of a run.
type actionRun struct {
	ID      string
	EventID string `json:"event_id"`
	Status  string
	Steps   []struct {
		Key    string `json:"reference_key"`
		Status string
		Error  *struct{ Code string }
	}
}

// acting gives an endpoint an action and returns its id.
func (n *node) acting(endpoint, steps string) string {
	n.t.Helper()
	var made struct{ Data struct{ ID string } }
	n.api(http.MethodPost, "/endpoints/"+endpoint+"/actions", `{"endpoint_action":{"name":"Killed","steps":`+steps+`}}`, &made)
	return made.Data.ID
}

// actionRuns are an endpoint's runs of actions.
func (n *node) actionRuns(endpoint string) []actionRun {
	n.t.Helper()
	var got struct{ Data []actionRun }
	n.api(http.MethodGet, "/endpoints/"+endpoint+"/action_runs?limit=100", "", &got)
	return got.Data
}

// Row 70: the process is killed while steps of actions have requests under way. Every run ends; an http_request is sent
// once at most, a forward again as the same, and what follows them runs.
func TestKill9WhileActionsRun(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		h := newHolder(t)
		n := s.serve("--outbound-allow", "127.0.0.0/8")
		asks, forwards := n.endpoint(), n.endpoint()
		n.acting(asks.endpoint, fmt.Sprintf(`[{"step_type":"http_request","name":"Ask","config":{"url":"%s/ask/{{request.id}}","timeout_seconds":5}},{"step_type":"tag","name":"Mark","config":{"tag":"t"}}]`, h.URL))
		again := n.acting(forwards.endpoint, fmt.Sprintf(`[{"step_type":"forward","name":"On","config":{"url":"%s/on","timeout_seconds":5}},{"step_type":"tag","name":"Mark","config":{"tag":"t"}}]`, h.URL))
		var asked []string
		rounds := pick(2, 10)
		var killed time.Time
		for range rounds {
			h.hold()
			before := h.at("/on")
			asked = append(asked, n.event(asks.endpoint))
			n.event(forwards.endpoint)
			eventually(t, patience, "the targets hold both requests", func() bool { return h.at("/ask/"+asked[len(asked)-1]) > 0 && h.at("/on") > before })
			n.kill()
			killed = time.Now()
			n.start()
			n.ready(patience)
		}
		h.let()
		event := n.event(forwards.endpoint)
		n.api(http.MethodPost, "/endpoints/"+forwards.endpoint+"/actions/"+again+"/runs", `{"run":{"event_id":"`+event+`"}}`, nil)
		took := takenOver(t, takeover+targetTimeout-passed(killed, time.Now()), "every run has ended", func() bool {
			runs := append(n.actionRuns(asks.endpoint), n.actionRuns(forwards.endpoint)...)
			for _, r := range runs {
				if r.Status == "queued" || r.Status == "running" {
					return false
				}
			}
			return len(runs) == 2*rounds+2
		})
		for _, r := range n.actionRuns(asks.endpoint) {
			if hits := h.at("/ask/" + r.EventID); hits != 1 || r.Status != "failed" || len(r.Steps) != 2 || r.Steps[0].Error == nil || r.Steps[0].Error.Code != "outcome_unknown" || r.Steps[1].Status != "completed" {
				t.Errorf("after %d requests the run is %+v", hits, r)
			}
		}
		for _, r := range n.actionRuns(forwards.endpoint) {
			if r.Status != "completed" {
				t.Errorf("a forward's run is %+v", r)
			}
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.origins["/on"]) != rounds+1 {
			t.Errorf("forwards of %d events were sent as %v", rounds+1, h.origins["/on"])
		}
		t.Logf("%d kills: every run ended %v after everything was let go; %d forwards in %d requests", rounds, took, rounds+1, h.hits["/on"])
	})
}
