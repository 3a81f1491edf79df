//go:build linux

package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// row is the balance of one endpoint, and for what is to get each of its events: received = stored = delivered + failed
// + skipped + pending.
type row struct {
	Endpoint  string `json:"endpoint"`
	Consumer  string `json:"consumer,omitempty"`
	Sent      int    `json:"sent,omitempty"`
	Acked     int    `json:"acknowledged,omitempty"`
	Unsure    int    `json:"stored_unacknowledged,omitempty"` // the answer was lost
	Stored    int    `json:"stored"`
	Delivered int    `json:"delivered"`
	Failed    int    `json:"failed"`
	Skipped   int    `json:"skipped"`
	Pending   int    `json:"pending"`
	Again     int    `json:"more_than_once,omitempty"` // what a target got more than once
	Exact     bool   `json:"exact"`
}

// result is what a soak found, for machines.
type result struct {
	Database string   `json:"database"`
	Seconds  float64  `json:"seconds"`
	Blows    int      `json:"blows"`
	Story    []string `json:"story"`
	Settled  float64  `json:"settled_after_seconds"`
	Rows     []row    `json:"balance"`
	Exact    bool     `json:"exact"`
}

// settleLimit is how long what was begun may take to end: a dead node's lease of the longest kind, and the retries of
// what was refused meanwhile.
const settleLimit = 3 * time.Minute

// balance waits until nothing is pending, adds up, and prints the table and a line of JSON.
func (k *soak) balance(took time.Duration) {
	t, n := k.t, k.nodes[0]
	count := n.rowCounter()
	num := func(endpoint string) int { return count("SELECT num FROM endpoints WHERE id = '" + endpoint + "'") }
	pending := func() int {
		return count("SELECT count(*) FROM forwards WHERE due_at IS NOT NULL") + count("SELECT count(*) FROM event_tasks") +
			count("SELECT count(*) FROM action_runs WHERE finished_at IS NULL") + count("SELECT count(*) FROM replay_batch_items WHERE finished_at IS NULL")
	}
	settled := time.Now()
	for tick := time.NewTicker(time.Second); pending() > 0 || n.undelivered(k.tunnelled.endpoint) > 0; <-tick.C {
		if time.Since(settled) > settleLimit {
			t.Errorf("after %v %d things are pending, and %d events of the tunnel", settleLimit, pending(), n.undelivered(k.tunnelled.endpoint))
			break
		}
	}
	r := result{Database: "sqlite", Seconds: took.Seconds(), Blows: len(k.story), Story: k.story, Settled: time.Since(settled).Seconds(), Exact: true}
	if k.cluster != nil {
		r.Database = "postgres"
	}

	stored := make(map[*ledger][]stored)
	for name, l := range map[string]*ledger{"plain": k.plain, "forwarded": k.forwarded, "acting": k.acting, "tunnelled": k.tunnelled} {
		found := l.check(t, n)
		for status := range found.statuses {
			if !slices.Contains([]int{0, http.StatusOK, http.StatusServiceUnavailable, http.StatusTooManyRequests}, status) {
				t.Errorf("%s: %d requests were answered %d", name, found.statuses[status], status)
			}
		}
		stored[l], _ = n.list(l.endpoint)
		r.add(row{Endpoint: name, Sent: found.sent, Acked: found.acked, Unsure: found.unsure, Stored: found.stored, Delivered: found.stored})
	}
	for id, target := range k.targets {
		of := func(state string) int {
			return count("SELECT count(*) FROM forwards WHERE target = " + id + " AND state = '" + state + "'")
		}
		line := row{Endpoint: "forwarded", Consumer: "target " + target.name, Stored: len(stored[k.forwarded]), Delivered: of("delivered"), Failed: of("failed"), Skipped: of("skipped"), Pending: of("pending")}
		target.mu.Lock()
		for _, e := range stored[k.forwarded] {
			if target.had[e.ID] == 0 {
				t.Errorf("target %s never got %s", target.name, e.ID)
			} else if target.had[e.ID] > 1 {
				line.Again++
			}
		}
		target.mu.Unlock()
		r.add(line)
	}
	runs := func(status string) int {
		return count(fmt.Sprintf("SELECT count(*) FROM action_runs WHERE endpoint = %d AND rerun = 0 AND status = '%s'", num(k.acting.endpoint), status))
	}
	r.add(row{Endpoint: "acting", Consumer: "action", Stored: len(stored[k.acting]), Delivered: runs("completed"), Failed: runs("failed") + runs("stopped"), Pending: runs("running") + runs("queued")})

	reported := count(fmt.Sprintf("SELECT count(*) FROM tunnel_events WHERE endpoint = %d AND delivered_at IS NOT NULL", num(k.tunnelled.endpoint)))
	lacks, again := k.handler.lacks(stored[k.tunnelled])
	if len(lacks) > 0 {
		t.Errorf("%d events did not come through the tunnel: %v", len(lacks), lacks[:min(5, len(lacks))])
	}
	r.add(row{Endpoint: "tunnelled", Consumer: "tunnel", Stored: len(stored[k.tunnelled]), Delivered: reported, Pending: len(stored[k.tunnelled]) - reported, Again: again})
	n.balance(k.tunnelled.endpoint)
	r.add(k.balanceMail())
	r.add(k.balanceBatches(count))
	for _, l := range []string{k.plain.endpoint, k.forwarded.endpoint, k.acting.endpoint, k.tunnelled.endpoint, k.mailbox} {
		k.askLedger(l)
	}
	for _, n := range k.nodes {
		for _, bad := range []string{"DATA RACE", "panic"} {
			if log := n.log(); strings.Contains(log, bad) {
				i := strings.Index(log, bad)
				t.Errorf("the log of node %d says %s:\n%s", n.n, bad, log[max(0, i-300):min(len(log), i+3000)])
			}
		}
	}
	r.print(k)
}

// add keeps a row, and whether it is exact: nothing is left over, and nothing is there that should not be.
func (r *result) add(l row) {
	l.Exact = l.Stored == l.Delivered+l.Failed+l.Skipped+l.Pending && (l.Sent == 0 || l.Stored == l.Acked+l.Unsure)
	r.Exact = r.Exact && l.Exact
	r.Rows = append(r.Rows, l)
}

// balanceMail compares what senders of mail were told with what is stored.
func (k *soak) balanceMail() row {
	t, n := k.t, k.nodes[0]
	line := row{Endpoint: "mail", Sent: k.mails.next, Acked: len(k.mails.acked)}
	seen := make(map[int]bool)
	for cursor := ""; ; {
		var page struct {
			Data []struct {
				Subject        string
				Authentication struct{ SPF string }
			}
			Meta struct {
				NextCursor *string `json:"next_cursor"`
			}
		}
		n.api(http.MethodGet, "/endpoints/"+k.mailbox+"/requests?limit=100"+cursor, "", &page)
		for _, e := range page.Data {
			number, err := strconv.Atoi(e.Subject)
			if err != nil || seen[number] || !k.mails.acked[number] && !k.mails.unsure[number] {
				t.Errorf("mail %q is stored twice, or was not sent", e.Subject)
			}
			seen[number] = true
			line.Stored++
			if !k.mails.acked[number] {
				line.Unsure++
			}
			if e.Authentication.SPF == "pending" {
				line.Pending++
			} else {
				line.Delivered++
			}
		}
		if page.Meta.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.Meta.NextCursor
	}
	for number := range k.mails.acked {
		if !seen[number] {
			t.Errorf("LOST: mail %d was acknowledged and is not there", number)
		}
	}
	return line
}

// balanceBatches adds up bulk replays: what they were to send, and what became of it.
func (k *soak) balanceBatches(count func(string) int) row {
	of := func(state string) int {
		return count("SELECT count(*) FROM replay_batch_items WHERE state = '" + state + "'")
	}
	return row{Endpoint: "acting", Consumer: fmt.Sprintf("%d bulk replays", len(k.batches)), Stored: count("SELECT count(*) FROM replay_batch_items"),
		Delivered: of("passed"), Failed: of("failed"), Skipped: of("skipped") + of("unknown"), Pending: of("pending") + of("sending")}
}

// askLedger has the service balance its own books of an endpoint.
func (k *soak) askLedger(endpoint string) {
	var own struct {
		Data struct {
			Balanced    bool
			Differences json.RawMessage
		}
	}
	k.nodes[0].api(http.MethodGet, "/endpoints/"+endpoint+"/ledger?from=24h", "", &own)
	if !own.Data.Balanced {
		k.t.Errorf("the service's own ledger of %s does not balance: %s", endpoint, own.Data.Differences)
	}
}

func (r *result) print(k *soak) {
	t := k.t
	lines := []string{fmt.Sprintf("%-10s %-16s %7s %7s %7s %7s %9s %7s %7s %7s %7s  %s", "endpoint", "consumer", "sent", "acked", "unsure", "stored", "delivered", "failed", "skipped", "pending", "again", "exact")}
	for _, l := range r.Rows {
		lines = append(lines, fmt.Sprintf("%-10s %-16s %7d %7d %7d %7d %9d %7d %7d %7d %7d  %t", l.Endpoint, l.Consumer, l.Sent, l.Acked, l.Unsure, l.Stored, l.Delivered, l.Failed, l.Skipped, l.Pending, l.Again, l.Exact))
		if !l.Exact {
			t.Errorf("the balance of %s %s does not hold", l.Endpoint, l.Consumer)
		}
	}
	t.Logf("%s: %.0f s, %d blows, %s; settled after %.0f s\n%s", r.Database, r.Seconds, r.Blows, k.progress(), r.Settled, strings.Join(lines, "\n"))
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("soak: %s", text)
	if dir := os.Getenv("HOOKGLASS_SOAK_OUT"); dir != "" {
		if err := os.WriteFile(dir+"/soak-"+r.Database+".json", append(text, '\n'), 0o644); err != nil {
			t.Error(err)
		}
	}
}
