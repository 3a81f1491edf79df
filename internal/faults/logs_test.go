//go:build linux

package faults_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// canaries are secrets by what they are. Each has a text that nothing else has.
type canaries map[string]string

// in returns which of the secrets stand in the text: plain, in hex or in base64 at any offset.
func (c canaries) in(text []byte) (found []string) {
	for what, secret := range c {
		forms := []string{secret, hex.EncodeToString([]byte(secret))}
		for offset := range 3 {
			// What stands before changes the first digits, what follows the last.
			encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", offset) + secret))
			forms = append(forms, encoded[4:len(encoded)-3])
		}
		for _, form := range forms {
			if bytes.Contains(text, []byte(form)) {
				found = append(found, what)
				break
			}
		}
	}
	return found
}

func TestNoSecretIsLoggedOrStoredInTheClear(t *testing.T) {
	beside(t)
	s := sqliteSite(t, t.TempDir())
	kept := canaries{"the API token": s.token, "a password": "canarypassword5b1f77", "a signature secret": "canarysecret90aa31c2", "a header of a target": "canarytarget63be70d1"}
	s.command(nil, kept["a password"]+"\n", append([]string{"admin", "user", "create", "--email", "second@example.com", "--password-stdin", "--json"}, s.storage(0)...)...)
	n := s.serve("--log-level", "debug", "--log-format", "json", "--outbound-allow", "127.0.0.0/8")
	l := n.endpoint()

	var temporary struct {
		Data struct {
			ID        string `json:"id"`
			TunnelKey string `json:"tunnel_key"`
		} `json:"data"`
	}
	n.api(http.MethodPost, "/temporary_endpoints", `{}`, &temporary)
	kept["a tunnel key"] = temporary.Data.TunnelKey
	n.api(http.MethodPost, "/endpoints/"+l.endpoint+"/signature_configs",
		`{"signature_config":{"provider":"github","secret":"`+kept["a signature secret"]+`"}}`, nil)

	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("X-Key"))
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"said":%q,"again":"%s"}`, r.Header.Get("Authorization"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}))
	t.Cleanup(target.Close)
	headers := fmt.Sprintf(`{"Authorization":"Bearer %s","X-Key":%[1]q}`, kept["a header of a target"])
	targets := "/endpoints/" + l.endpoint + "/forwarding_targets"
	n.api(http.MethodPost, targets, `{"forwarding_target":{"name":"staging","url":"`+target.URL+`","retry_count":0,"dedupe_by":"header.Authorization","headers":`+headers+`}}`, nil)
	if _, answer, err := n.call(n.token, http.MethodPost, targets, `{"forwarding_target":{"name":"","url":"x","headers":`+headers+`}}`); err != nil || len(kept.in(answer)) > 0 {
		t.Errorf("refused: %v %s", err, answer)
	}

	// What only passes through: it may be stored where it was part of a webhook, but not logged.
	passing := canaries{
		"a junk token": "canaryjunk41c0aa87d2", "a header of a webhook": "canaryheader7de211b0", "a query of a webhook": "canaryquery55d10f3e",
		"a body of a webhook": "canarybody8c2e4401ab", "a token in a query": "canaryparam0f0f71aa", "a login link": "canarylink3381bbd9e0",
		"a session": "canarysession66aa09e", "a ticket": "canaryticket12fe34aa", "the id of an endpoint": l.endpoint,
		"the id of a temporary endpoint": temporary.Data.ID,
	}
	for _, token := range []string{passing["a junk token"], temporary.Data.TunnelKey, s.token} {
		for _, path := range []string{
			"/auth/verify", "/endpoints", "/endpoints/" + l.endpoint, "/endpoints/" + temporary.Data.ID + "/requests", "/endpoints/" + l.endpoint + "/requests/req_none",
			"/events?since=" + passing["a token in a query"], "/no/such/route?access_token=" + passing["a token in a query"],
		} {
			if _, _, err := n.call(token, http.MethodGet, path, ""); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := n.call(token, http.MethodPost, "/endpoints", `{"endpoint":{"name":"x","secret":"`+passing["a junk token"]+`"}}`); err != nil {
			t.Fatal(err)
		}
	}
	for _, head := range []string{
		"POST /hooks/" + l.endpoint + "/x?token=" + passing["a query of a webhook"] + " HTTP/1.1\r\nAuthorization: Bearer " + passing["a header of a webhook"],
		"POST /hooks/" + l.endpoint + "/x HTTP/1.1\r\nX-Hub-Signature-256: sha256=" + passing["a header of a webhook"] + "\r\nX-GitHub-Event: push\r\nX-GitHub-Delivery: 1",
		"BAD METHOD /hooks/" + l.endpoint + " HTTP/1.1\r\nAuthorization: Bearer " + passing["a header of a webhook"],
		"POST /hooks/" + passing["a query of a webhook"] + " HTTP/1.1\r\nno colon " + passing["a header of a webhook"],
		"GET /auth/link/" + passing["a login link"] + " HTTP/1.1\r\nCookie: session=" + passing["a session"],
		"GET /cable?ticket=" + passing["a ticket"] + " HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket",
		"GET /nowhere?" + passing["a token in a query"] + " HTTP/1.1\r\nCookie: hookglass=" + passing["a session"],
		"POST /login HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nOrigin: http://" + n.addr + "\r\nX-Password: " + kept["a password"],
	} {
		body := `{"secret":"` + passing["a body of a webhook"] + `"}`
		if strings.Contains(head, "/login") {
			body = url.Values{"email": {"second@example.com"}, "password": {kept["a password"]}}.Encode()
		}
		n.raw(fmt.Sprintf("%s\r\nHost: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", head, n.addr, len(body), body))
	}
	var deliveries struct {
		Data []struct {
			ID, Status string
			EventID    string `json:"event_id"`
		}
	}
	eventually(t, patience, "what came was forwarded", func() bool {
		n.api(http.MethodGet, targets+"/1/deliveries", "", &deliveries)
		return len(deliveries.Data) > 0 && deliveries.Data[0].Status == "failed"
	})
	of := "/endpoints/" + l.endpoint + "/requests/" + deliveries.Data[0].EventID
	for _, path := range []string{
		targets, targets + "/1", targets + "/1/deliveries", targets + "/1/deliveries/" + deliveries.Data[0].ID, of, of + "/diagnosis", "/events?limit=200", "/endpoints/" + l.endpoint + "/requests/export?format=ndjson",
		"/endpoints/" + l.endpoint + "/requests/export?format=har",
	} {
		if status, answer, err := n.call(n.token, http.MethodGet, path, ""); err != nil || status != http.StatusOK || len(kept.in(answer)) > 0 {
			t.Errorf("%s: %d %v, with %q", path, status, err, kept.in(answer))
		}
	}
	_, metrics, err := n.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	n.kill()

	for _, c := range []canaries{kept, passing} {
		for _, what := range c.in([]byte(n.log())) {
			t.Errorf("%s stands in the log", what)
		}
		for _, what := range c.in(metrics) {
			t.Errorf("%s stands in the metrics", what)
		}
	}
	if !strings.Contains(n.log(), `"level":"DEBUG"`) {
		t.Error("nothing was logged at level debug: nothing was tried")
	}
	err = filepath.WalkDir(s.data(0), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, what := range kept.in(content) {
			t.Errorf("%s stands in %s", what, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestThePasswordOfTheDatabaseIsNotLogged(t *testing.T) {
	beside(t)
	password := canaries{"the password": "canarydatabase7c1e90"}
	for _, address := range []string{
		"postgres://hookglass:" + password["the password"] + "@127.0.0.1:1/hookglass",
		"postgres://hookglass@127.0.0.1:1/hookglass?password=" + password["the password"],
		"postgres://hookglass:" + password["the password"] + "@127.0.0.1:99999999/hookglass",
		"postgres://hookglass:" + password["the password"] + "@[::1/hookglass?sslmode=what",
		"mysql://hookglass:" + password["the password"] + "@127.0.0.1:1/hookglass",
	} {
		s := &site{t: t, dir: t.TempDir(), dsn: address}
		n := s.node("--log-level", "debug")
		if err := n.tryStart(); err == nil {
			eventually(t, patience, "it says that it waits, or why it ends", func() bool {
				return strings.Contains(n.log(), "waiting for the database") || strings.Contains(n.log(), "hookglass: ")
			})
		}
		n.kill()
		if n.log() == "" {
			t.Error("it says nothing")
		}
		for _, what := range password.in([]byte(n.log())) {
			t.Errorf("%s stands in the log:\n%s", what, n.log())
		}
	}
}

func TestWhatSendersWriteDoesNotBreakTheLog(t *testing.T) {
	beside(t)
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			s := sqliteSite(t, t.TempDir())
			loud, quiet := s.serve("--log-level", "debug", "--log-format", format), (*node)(nil)
			odd := []string{
				"GET /hooks/%0d%0alevel=ERROR%20msg=forged HTTP/1.1\r\nHost: x",
				"GET /\x1b[31mred\x1b[0m HTTP/1.1\r\nHost: x",
				"GET /api/v1/endpoints/%1b%5b31m%0a{\"level\":\"ERROR\"} HTTP/1.1\r\nHost: x",
				"GET /api/v1/x HTTP/1.1\r\nHost: x\r\nUser-Agent: a\x1b]0;title\x07\rb\nforged: line",
				"GET\x00 / HTTP/1.1\r\nHost: x",
				"P\x1b[2J /hooks/ep_x HTTP/1.1\r\nHost: x",
				"GET /api/v1/\xff\xfe HTTP/1.1\r\nHost: \"}\n{",
				"GET /hooks/ep_x HTTP/9.9\r\nHost: x",
				"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
			}
			for _, request := range odd {
				loud.raw(request + "\r\nConnection: close\r\n\r\n")
			}
			checkLog(t, loud.log(), format)
			loud.kill()

			quiet = s.node("--log-format", format)
			quiet.n = loud.n
			quiet.start()
			quiet.ready(patience)
			before := strings.Count(quiet.log(), "\n")
			for range pick(20, 2000) {
				for _, request := range odd {
					quiet.raw(request + "\r\nConnection: close\r\n\r\n")
				}
			}
			checkLog(t, quiet.log(), format)
			if more := strings.Count(quiet.log(), "\n") - before; more > 20 {
				t.Errorf("%d bad requests made %d lines in the log:\n%s", 20*len(odd), more, tail(quiet.log(), 1000))
			}
		})
	}
}

// checkLog fails unless each line is one whole record without control characters.
func checkLog(t *testing.T, log, format string) {
	t.Helper()
	for line := range strings.Lines(log) {
		line = strings.TrimSuffix(line, "\n")
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("a control character in %q", line)
		}
		if format == "json" && !json.Valid([]byte(line)) || format == "text" && !strings.HasPrefix(line, "time=") {
			t.Errorf("not a record: %q", line)
		}
		if strings.HasPrefix(line, "level=") || strings.HasPrefix(line, "forged") {
			t.Errorf("a forged record: %q", line)
		}
	}
}

// raw sends bytes and waits for the connection to end.
func (n *node) raw(request string) {
	n.t.Helper()
	conn, err := net.Dial("tcp", n.addr)
	if err != nil {
		n.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		n.t.Fatal(err)
	}
	if _, err := conn.Write([]byte(request)); err != nil {
		return // refused before it was sent whole
	}
	_ = conn.(*net.TCPConn).CloseWrite() // the answer comes all the same
	in := bufio.NewReader(conn)
	for err == nil {
		_, err = in.ReadByte()
	}
}

func TestCanariesAreFoundInEveryForm(t *testing.T) {
	c := canaries{"it": "canary0123456789"}
	for _, text := range []string{
		"token=canary0123456789.", hex.EncodeToString([]byte("a canary0123456789")),
		base64.StdEncoding.EncodeToString([]byte("canary0123456789")), base64.StdEncoding.EncodeToString([]byte("u:canary0123456789 and more")),
		base64.RawURLEncoding.EncodeToString([]byte("us:canary0123456789")),
	} {
		if len(c.in([]byte(text))) != 1 {
			t.Errorf("not found in %q", text)
		}
	}
	if found := c.in([]byte("canary012345678")); len(found) != 0 {
		t.Errorf("found %q in a part of it", found)
	}
}
