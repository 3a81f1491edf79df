//go:build linux

package faults_test

import (
	"fmt"
	"testing"
	"time"

	"hookglass/internal/store/storetest"
)

// What a target answers while PostgreSQL is down is known when it is back: nothing ends as unknown of which the living
// process knows what became, and nothing is sent again.
func TestAnswersThatComeWhilePostgreSQLIsDownAreKept(t *testing.T) {
	beside(t)
	c := storetest.NewCluster(t)
	n := newSite(t, t.TempDir(), database(t, c)).serve("--outbound-allow", "127.0.0.0/8")
	h := newHolder(t)
	l := n.endpoint()
	n.acting(l.endpoint, fmt.Sprintf(`[{"step_type":"http_request","name":"Ask","config":{"url":"%s/ask","timeout_seconds":20}}]`, h.URL))
	run := n.runCase(l.endpoint, n.event(l.endpoint), h.URL+"/case")
	eventually(t, patience, "the target holds both requests", func() bool { return h.at("/ask") == 1 && h.at("/case") == 1 })
	if err := c.Kill9(); err != nil {
		t.Fatal(err)
	}
	h.let()
	<-time.After(time.Second)
	if err := c.Restart(); err != nil {
		t.Fatal(err)
	}
	n.ready(patience)
	eventually(t, patience, "both are known to have succeeded", func() bool {
		runs := n.actionRuns(l.endpoint)
		return len(runs) == 1 && runs[0].Status == "completed" && n.runState(l.endpoint, run) == "passed"
	})
	if asked, ran := h.at("/ask"), h.at("/case"); asked != 1 || ran != 1 {
		t.Errorf("sent %d and %d times", asked, ran)
	}
}
