//go:build linux

package faults_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// moved is what hookglass migrate --to prints.
type moved struct {
	OK      bool  `json:"ok"`
	Resumed bool  `json:"resumed"`
	Copied  int64 `json:"rows_copied"`
	Tables  []struct {
		Table       string `json:"table"`
		Source      int64  `json:"source_rows"`
		Destination int64  `json:"destination_rows"`
		Differing   int64  `json:"differing"`
	} `json:"tables"`
	Keys struct {
		Tried  int `json:"secrets_tried"`
		Opened int `json:"secrets_opened"`
	} `json:"keys"`
}

func (s *site) migrateTo(dsn string, flags ...string) *exec.Cmd {
	cmd := exec.Command(program, append([]string{"migrate", "--data", s.data(0), "--to", dsn, "--json"}, flags...)...)
	cmd.Env = environment()
	return cmd
}

func TestAMoveToPostgreSQLThatIsKilledAgainAndAgainChangesNoAnswer(t *testing.T) {
	beside(t)
	dsn := storetest.Postgres(t)
	s := sqliteSite(t, t.TempDir())
	n := s.serve("--outbound-allow", "127.0.0.0/8")
	l := n.endpoint()
	odd := n.endpoint().endpoint
	furnish(t, n, odd)
	load{to: []*node{n}, ledger: l, conns: 16, rate: 2000}.until(t, pick(2500, 40_000))
	awkward(t, n, odd)
	eventually(t, patience, "the action has run", func() bool {
		_, body, err := n.call(n.token, http.MethodGet, "/endpoints/"+odd+"/requests?tag=put", "")
		return err == nil && bytes.Count(body, []byte(`"id":"req_`)) == 4
	})
	asked := append(questions(t, n, odd), questions(t, n, l.endpoint)...)

	var out, said bytes.Buffer
	refused := s.migrateTo(dsn)
	refused.Stderr = &said
	if err := refused.Run(); err == nil || !strings.Contains(said.String(), "in use by a running server") {
		t.Errorf("a move from under a running server: %v: %s", err, said.String())
	}
	before := ask(t, n, asked) // after all that the server still had to do with what came
	n.signal(syscall.SIGTERM)
	if code := n.exit(patience); code != 0 {
		t.Fatalf("the server ended with %d", code)
	}

	// A move that was killed while it made the destination's schema.
	begun, err := store.Open(t.Context(), store.Config{URL: dsn})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(begun.MigrateTo(t.Context(), 2), begun.Close()); err != nil {
		t.Fatal(err)
	}
	// Killed once when something is there for certain, and then at any moment.
	target := &site{t: t, dir: s.dir, dsn: dsn, token: s.token, nodes: 7}
	keys := []string{"--secret-key-file", filepath.Join(s.data(0), "keys.json")}
	first := s.migrateTo(dsn)
	progress, err := first.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(progress).ReadString('\n'); err != nil || !strings.Contains(line, `"progress"`) {
		t.Errorf("progress: %q %v", line, err)
	}
	if err := errors.Join(first.Process.Kill(), first.Wait()); err == nil {
		t.Fatal("it was not killed")
	}
	half := target.node(keys...)
	if err := half.tryStart(); err == nil {
		half.exit(patience)
	}
	if !strings.Contains(half.log(), "being filled") {
		t.Errorf("a half destination is served: %s", half.log())
	}
	kills := 1
	for rounds := pick(4, 30); kills <= rounds; kills++ {
		cmd := s.migrateTo(dsn)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(between(20*time.Millisecond, 600*time.Millisecond))
		_ = cmd.Process.Kill() // it may have been quicker
		if err := cmd.Wait(); err == nil {
			break
		}
	}
	last := s.migrateTo(dsn)
	last.Stdout, last.Stderr = &out, &said
	if err := last.Run(); err != nil {
		t.Fatalf("%v: %s%s", err, out.String(), said.String())
	}
	var report moved
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	var rows int64
	for _, table := range report.Tables {
		rows += table.Source
		if table.Differing != 0 || table.Source != table.Destination {
			t.Errorf("%+v", table)
		}
	}
	if !report.OK || report.Keys.Tried < 2 || report.Keys.Opened != report.Keys.Tried {
		t.Errorf("report: %+v", report)
	}

	there := target.node(append(keys, "--outbound-allow", "127.0.0.0/8")...)
	there.addr = n.addr
	there.start()
	there.ready(patience)
	after := ask(t, there, asked)
	for i, question := range asked {
		if !bytes.Equal(before[i], after[i]) {
			t.Errorf("GET %s was\n%.600s\nand is\n%.600s", question, before[i], after[i])
		}
	}
	// Life goes on: new ids come after all that were ever given away.
	load{to: []*node{there}, ledger: l, conns: 4, rate: 100}.during(500 * time.Millisecond)
	r := l.check(t, there)
	t.Logf("%d rows in %d tables, killed %d times; %d answers compared, %d bytes; %v", rows, len(report.Tables), kills, len(asked), len(bytes.Join(before, nil)), r)
}

// furnish makes something of most kinds by the API.
func furnish(t *testing.T, n *node, endpoint string) {
	t.Helper()
	create := func(path, body string) {
		t.Helper()
		status, answer, err := n.call(n.token, http.MethodPost, path, body)
		if err != nil || status != http.StatusCreated {
			t.Fatalf("POST %s: %d %s %v", path, status, answer, err)
		}
	}
	in := "/endpoints/" + endpoint
	create("/endpoints", `{"endpoint":{"name":"Mail","kind":"email","email_local_part":"orders","custom_id":"mail-orders"}}`)
	create("/endpoints", `{"endpoint":{"name":"Caf\u00e9 \u2028","response":{"status":202,"headers":{"X-A":"1"},"body":"{{request.method}}"}}}`)
	create(in+"/signature_configs", `{"signature_config":{"provider":"stripe","secret":"whsec_test"}}`)
	create(in+"/signature_configs", `{"signature_config":{"provider":"generic_hmac","secret":"s","options":{"header":"X-Sig"}}}`)
	create(in+"/forwarding_targets", `{"forwarding_target":{"name":"off","url":"http://127.0.0.1:9/","enabled":false,"dedupe_by":"/id","dedupe_seconds":60,"headers":{"Authorization":"Bearer x"}}}`)
	create(in+"/actions", `{"endpoint_action":{"name":"Mark","conditions":[{"field":"http_method","operator":"equals","value":"PUT"}],"steps":[{"step_type":"tag","name":"Put","config":{"tag":"put"}}]}}`)
	create(in+"/alerts", `{"alert":{"name":"Quiet","kind":"missing_webhook","config":{"window_minutes":60}}}`)
	create("/notification_channels", `{"notification_channel":{"name":"Chat","kind":"slack","config":{"webhook_url":"https://hooks.slack.com/services/x"}}}`)
}

// awkward sends what travels badly.
func awkward(t *testing.T, n *node, endpoint string) {
	t.Helper()
	for i, body := range [][]byte{nil, {0}, []byte("\x00\xff\xfe\xc3\x28 \xed\xa0\x80"), bytes.Repeat([]byte("\x00\xffx"), 3<<20)} {
		req, err := http.NewRequest(http.MethodPut, fmt.Sprintf("http://%s/hooks/%s/a%%00%%ff/%d?q=%%fe&q=\xc3\xa9", n.addr, endpoint, i), bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Odd", "caf\xe9 \xff")
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("body %d: %d", i, answer.StatusCode)
		}
	}
}

// questions are what is asked before and after: lists, every page of the events, and some of them one by one.
func questions(t *testing.T, n *node, endpoint string) []string {
	t.Helper()
	in := "/endpoints/" + endpoint
	asked := []string{
		"/auth/verify", "/endpoints", in, "/endpoints/mail-orders", in + "/signature_configs", in + "/forwarding_targets", in + "/actions", in + "/action_runs?limit=100",
		in + "/alerts", in + "/requests/export?format=ndjson", in + "/requests?q=hello", in + "/requests?method=PUT", in + "/requests?tag=put", "/notification_channels", "/tags",
		in + "/replay_cases", "/events?limit=200&since=2020-01-01T00:00:00Z",
	}
	for offset := 0; offset < 2000; offset += 100 {
		asked = append(asked, fmt.Sprintf("%s/requests?limit=100&offset=%d", in, offset))
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	_, body, err := n.call(n.token, http.MethodGet, in+"/requests?limit=50", "")
	if err := errors.Join(err, json.Unmarshal(body, &list)); err != nil {
		t.Fatal(err)
	}
	for _, event := range list.Data {
		asked = append(asked, in+"/requests/"+event.ID, in+"/requests/"+event.ID+"/body")
	}
	return asked
}

func ask(t *testing.T, n *node, asked []string) [][]byte {
	t.Helper()
	answers := make([][]byte, len(asked))
	for i, question := range asked {
		status, body, err := n.call(n.token, http.MethodGet, question, "")
		if err != nil || status != http.StatusOK {
			t.Fatalf("GET %s: %d %s %v", question, status, body, err)
		}
		answers[i] = body
	}
	return answers
}
