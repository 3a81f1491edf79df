//go:build linux

package faults_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// canary listens on loopback in all its forms and counts who comes.
type canary struct {
	port int
	hits atomic.Int64
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	c := &canary{}
	answer := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), ReadHeaderTimeout: patience}
	t.Cleanup(func() { answer.Close() })
	// One socket for every address of the machine, of both families.
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	c.port = l.Addr().(*net.TCPAddr).Port
	go answer.Serve(counting{l, &c.hits})
	return c
}

type counting struct {
	net.Listener
	hits *atomic.Int64
}

func (l counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.hits.Add(1)
	}
	return c, err
}

// reachesCanary are hosts behind which the canary is, in every spelling that one resolver or another takes for it.
var reachesCanary = strings.Fields(`127.0.0.1 127.9.9.9 0.0.0.0 [::] [::1] [::1%25lo] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1]
	localhost LOCALHOST localhost. foo.localhost 2130706433 0x7f000001 0177.0.0.1 017700000001 127.1 0 0x0
	①②⑦.⓪.⓪.① 127。0。0。1 ｌｏｃａｌｈｏｓｔ 127.0.0.%31 %6c%6f%63%61%6c%68%6f%73%74 user@127.0.0.1 a.example.com@127.0.0.1`)

// forbidden are the other addresses of the list: rows 53 and 54.
var forbidden = strings.Fields(`10.0.0.1 172.16.0.1 192.168.0.1 100.64.0.1 169.254.169.254 0.1.2.3 192.0.0.1 192.88.99.1 198.18.0.1 192.0.2.1 198.51.100.1 203.0.113.1
	224.0.0.1 240.0.0.1 255.255.255.255 [fc00::1] [fd00:ec2::254] [fe80::1] [fec0::1] [ff02::1] [64:ff9b::7f00:1] [64:ff9b:1::1] [2002:7f00:1::] [2001::1] [2001:db8::1]
	[3fff::1] [100::1] [5f00::1] [::ffff:0:127.0.0.1] metadata.google.internal 169.254.43518 0xa9fea9fe`)

// entry is a way to have the service send a request, or to save where it shall. It answers the status and the error
// code.
type entry struct {
	name string
	call func(n *node, g *ground, url string) (status int, code string)
}

// ground is what the entries are called on.
type ground struct{ endpoint, event, target, caseID string }

// refused calls the API and reads the error.
func (n *node) refused(method, path, body string) (int, string) {
	n.t.Helper()
	status, answer, err := n.call(n.token, method, path, body)
	if err != nil {
		n.t.Fatalf("%s %s: %v", method, path, err)
	}
	var e struct{ Error string }
	_ = json.Unmarshal(answer, &e)
	return status, e.Error
}

// entries are all that send out. A feature that does so adds itself here.
var entries = []entry{
	{"replay", func(n *node, g *ground, url string) (int, string) {
		return n.refused(http.MethodPost, "/endpoints/"+g.endpoint+"/requests/"+g.event+"/replay", fmt.Sprintf(`{"target_url":%q}`, url))
	}},
	{"bulk replay", func(n *node, g *ground, url string) (int, string) {
		return n.refused(http.MethodPost, "/endpoints/"+g.endpoint+"/replay_batches", fmt.Sprintf(`{"target_url":%q}`, url))
	}},
	{"bulk replay, dry", func(n *node, g *ground, url string) (int, string) {
		return n.refused(http.MethodPost, "/endpoints/"+g.endpoint+"/replay_batches", fmt.Sprintf(`{"target_url":%q,"dry_run":true}`, url))
	}},
	{"replay case", func(n *node, g *ground, url string) (int, string) {
		return n.refused(http.MethodPost, "/endpoints/"+g.endpoint+"/replay_cases",
			fmt.Sprintf(`{"replay_case":{"source_id":%q,"name":"n","target_url":%q,"assertions":{"status":{"class":"2xx"}}}}`, g.event, url))
	}},
	{"replay case, changed", func(n *node, g *ground, url string) (int, string) {
		return n.refused(http.MethodPatch, "/endpoints/"+g.endpoint+"/replay_cases/"+g.caseID, fmt.Sprintf(`{"replay_case":{"lock_version":1,"target_url":%q}}`, url))
	}},
	{"forwarding target", func(n *node, g *ground, url string) (int, string) {
		return n.refused(http.MethodPost, "/endpoints/"+g.endpoint+"/forwarding_targets", fmt.Sprintf(`{"forwarding_target":{"name":"n","url":%q}}`, url))
	}},
	{"forwarding target, changed", func(n *node, g *ground, url string) (int, string) {
		return n.refused(http.MethodPatch, "/endpoints/"+g.endpoint+"/forwarding_targets/"+g.target, fmt.Sprintf(`{"forwarding_target":{"url":%q}}`, url))
	}},
	{"action, forward", func(n *node, g *ground, url string) (int, string) {
		return n.refused(http.MethodPost, "/endpoints/"+g.endpoint+"/actions", action("forward", fmt.Sprintf(`{"url":%q}`, url)))
	}},
	{"action, http_request", func(n *node, g *ground, url string) (int, string) {
		return n.refused(http.MethodPost, "/endpoints/"+g.endpoint+"/actions", action("http_request", fmt.Sprintf(`{"method":"GET","url":%q}`, url)))
	}},
	{"channel, webhook", func(n *node, _ *ground, url string) (int, string) {
		return n.refused(http.MethodPost, "/notification_channels", fmt.Sprintf(`{"notification_channel":{"name":"n","kind":"webhook","config":{"url":%q}}}`, url))
	}},
	{"channel, slack", func(n *node, _ *ground, url string) (int, string) {
		return n.refused(http.MethodPost, "/notification_channels", fmt.Sprintf(`{"notification_channel":{"name":"n","kind":"slack","config":{"webhook_url":%q}}}`, url))
	}},
}

// action is the body that makes an action of one step.
func action(kind, config string) string {
	return `{"endpoint_action":{"name":"n","steps":[{"step_type":"` + kind + `","name":"s","config":` + config + `}]}}`
}

// Row 62: every way out has the guard before it, whatever is asked for: what is spelled like a forbidden address, as
// rows 51 to 55 and 63 have it, is 422 target_not_allowed, and nobody comes to the canary.
func TestEveryWayOutIsGuarded(t *testing.T) {
	beside(t)
	c := newCanary(t)
	s := sqliteSite(t, t.TempDir())
	// One port of one address is open: what is beside it stays shut (row 63).
	n := s.serve("--outbound-allow", fmt.Sprintf("127.0.0.2/32:%d", c.port))
	l := n.endpoint()
	g := &ground{endpoint: l.endpoint, event: n.event(l.endpoint)}
	allowed := fmt.Sprintf("http://127.0.0.2:%d/", c.port)
	if status, code := entries[0].call(n, g, allowed); status != http.StatusOK || c.hits.Load() != 1 {
		t.Fatalf("the address that is open: %d %s, %d hits: silence means nothing", status, code, c.hits.Load())
	}
	var made struct{ Data struct{ ID string } }
	n.api(http.MethodPost, "/endpoints/"+g.endpoint+"/replay_cases",
		fmt.Sprintf(`{"replay_case":{"source_id":%q,"name":"n","target_url":%q,"assertions":{"status":{"class":"2xx"}}}}`, g.event, allowed), &made)
	g.caseID, g.target = made.Data.ID, n.forwardTo(g.endpoint, allowed)

	var urls []string
	for _, host := range reachesCanary {
		urls = append(urls, fmt.Sprintf("http://%s:%d/x", host, c.port), fmt.Sprintf("https://%s:%d/", host, c.port))
	}
	for _, host := range forbidden {
		urls = append(urls, "http://"+host+"/latest/meta-data/", fmt.Sprintf("http://%s:%d/", host, c.port))
	}
	urls = append(urls, fmt.Sprintf("http://127.0.0.2:%d/", c.port+1), "http://127.0.0.2/", "http://8.8.8.8:25/", "http://8.8.8.8:6379/", "http://8.8.8.8:22/")
	for _, e := range entries {
		for _, url := range urls {
			// An action tells all that is wrong with it at once.
			status, code := e.call(n, g, url)
			if status != http.StatusUnprocessableEntity || code != "target_not_allowed" && (code != "validation_failed" || !strings.HasPrefix(e.name, "action")) {
				t.Errorf("%s to %s: %d %s", e.name, url, status, code)
			}
		}
	}
	for _, url := range []string{"file:///etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/", "javascript:x", "//127.0.0.1/", ""} {
		for _, e := range entries {
			if url == "" && (strings.HasPrefix(e.name, "replay case") || strings.HasPrefix(e.name, "action")) {
				continue // as good as not named
			}
			if status, code := e.call(n, g, url); status != http.StatusUnprocessableEntity {
				t.Errorf("%s to %q: %d %s", e.name, url, status, code)
			}
		}
	}
	if hits := c.hits.Load(); hits != 1 {
		t.Errorf("%d visits to the canary besides the one that is allowed", hits-1)
	}
	t.Logf("%d entries, %d addresses: no visit", len(entries), len(urls))
}

// What was saved while it was allowed is judged again when it is sent: a case run is blocked, a forward and a bulk
// replay fail, and nobody comes.
func TestWhatWasSavedIsJudgedAgainWhenItIsSent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		c := newCanary(t)
		n := s.serve("--outbound-allow", "127.0.0.0/8", "--outbound-allow", "::1/128")
		l := n.endpoint()
		source := n.event(l.endpoint)
		var cases, targets []string
		for _, host := range []string{"127.0.0.1", "127.9.9.9", "[::1]", "localhost"} {
			url := fmt.Sprintf("http://%s:%d/", host, c.port)
			var made struct{ Data struct{ ID string } }
			n.api(http.MethodPost, "/endpoints/"+l.endpoint+"/replay_cases",
				fmt.Sprintf(`{"replay_case":{"source_id":%q,"name":"n","target_url":%q,"assertions":{"status":{"class":"2xx"}}}}`, source, url), &made)
			cases, targets = append(cases, made.Data.ID), append(targets, n.forwardTo(l.endpoint, url))
		}
		var batch struct{ Data struct{ ID string } }
		n.api(http.MethodPost, "/endpoints/"+l.endpoint+"/replay_batches", fmt.Sprintf(`{"target_url":"http://127.0.0.1:%d/","rate":1}`, c.port), &batch)
		n.api(http.MethodPost, "/endpoints/"+l.endpoint+"/replay_batches/"+batch.Data.ID+"/pause", "", nil)
		eventually(t, patience, "what was under way has ended", func() bool {
			before := c.hits.Load()
			<-time.After(300 * time.Millisecond)
			return c.hits.Load() == before
		})
		var channel struct{ Data struct{ ID string } }
		n.api(http.MethodPost, "/notification_channels", fmt.Sprintf(`{"notification_channel":{"name":"n","kind":"webhook","config":{"url":"http://127.0.0.1:%d/"}}}`, c.port), &channel)
		acting := n.endpoint().endpoint
		for _, made := range []string{
			action("forward", fmt.Sprintf(`{"url":"http://127.0.0.1:%d/","retry_count":0}`, c.port)),
			action("http_request", fmt.Sprintf(`{"method":"POST","url":"http://localhost:%d/"}`, c.port)),
			action("http_request", fmt.Sprintf(`{"method":"GET","url":"http://{{request.body.host}}:%d/"}`, c.port)), // put together from what was captured
		} {
			n.api(http.MethodPost, "/endpoints/"+acting+"/actions", made, nil)
		}
		n.kill()
		n.flags = nil
		n.start()
		n.ready(patience)
		before := c.hits.Load()
		event := n.event(l.endpoint)
		for i, id := range cases {
			run := n.runSaved(l.endpoint, id, "again")
			eventually(t, patience, "the run has ended", func() bool { state := n.runState(l.endpoint, run); return state != "queued" && state != "running" })
			if state := n.runState(l.endpoint, run); state != "blocked" {
				t.Errorf("run %d is %s", i, state)
			}
			eventually(t, patience, "the forward has ended", func() bool { return n.deliveryStates(l.endpoint, targets[i])[event] == "failed" })
		}
		resp, err := plain.Post("http://"+n.addr+"/hooks/"+acting, "application/json", strings.NewReader(`{"host":"127.0.0.1"}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		var done struct{ Data []struct{ Status string } }
		eventually(t, patience, "the actions have run", func() bool {
			n.api(http.MethodGet, "/endpoints/"+acting+"/action_runs", "", &done)
			ended := 0
			for _, r := range done.Data {
				if r.Status == "failed" || r.Status == "completed" || r.Status == "stopped" {
					ended++
				}
			}
			return ended == 3
		})
		for i, r := range done.Data {
			if r.Status == "completed" {
				t.Errorf("action run %d is %s", i, r.Status)
			}
		}
		if _, answer, err := n.call(n.token, http.MethodPost, "/notification_channels/"+channel.Data.ID+"/test", ""); err != nil || !strings.Contains(string(answer), "target_not_allowed") {
			t.Errorf("the test of a channel: %v %s", err, answer)
		}
		if hits := c.hits.Load() - before; hits != 0 {
			t.Errorf("%d visits to the canary", hits)
		}
	})
}
