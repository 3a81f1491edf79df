package cable_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/cable"
	"hookglass/internal/delivery"
	"hookglass/internal/endpoint"
	"hookglass/internal/httpd"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
	"hookglass/internal/tunnel"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// patience is for what must happen soon; a test that waits so long has failed.
const patience = 2 * time.Minute

// site is the socket on a server of its own, with an account's endpoint behind it.
type site struct {
	t       *testing.T
	db      *store.DB
	url     string
	tunnels *tunnel.Service
	who     hookglass.Principal
	ep      hookglass.Endpoint
}

func open(t *testing.T) *site {
	t.Helper()
	db := storetest.SQLite(t)
	log := slog.New(slog.DiscardHandler)
	keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
	must(t, err)
	owner, err := account.New(db, log).Register(t.Context(), account.Registration{Email: "ada@example.com"})
	must(t, err)
	s := &site{t: t, db: db, who: hookglass.Principal{Account: owner.Account.ID, User: owner.User.ID, Scopes: hookglass.System.Scopes}}
	_, token, err := account.New(db, log).CreateToken(t.Context(), hookglass.System, account.TokenRequest{
		User: owner.User.ID, Account: owner.Account.ID, Level: hookglass.LevelAccount, Scopes: hookglass.System.Scopes,
	})
	must(t, err)
	s.who.Token = token.ID
	name := "Payments"
	s.ep, err = endpoint.New(db, keys).Create(t.Context(), s.who, endpoint.Draft{Name: &name})
	must(t, err)
	draining := make(chan struct{})
	s.tunnels = tunnel.New(db, tunnel.Config{Mail: delivery.MailJSON, Retention: time.Hour, Draining: draining, Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.tunnels.Run(ctx) }()
	handler := cable.New(cable.Deps{Tunnels: s.tunnels, PublicURL: "https://hooks.example.com", Log: log})
	server := httptest.NewServer(httpd.New(httpd.Config{Log: log}).Wrap(handler))
	t.Cleanup(func() { close(draining); cancel(); <-ended; server.Close() })
	s.url = server.URL
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *site) ticket() string {
	s.t.Helper()
	g, err := s.tunnels.Connect(s.t.Context(), s.who, string(s.ep.ID), hookglass.TunnelClient{})
	must(s.t, err)
	return g.Ticket
}

// client is the other end of a socket.
type client struct {
	t  *testing.T
	ws *websocket.Conn
}

func (s *site) dial(ticket string) *client {
	s.t.Helper()
	ws, _, err := websocket.Dial(s.t.Context(), s.url+"/cable?ticket="+ticket, &websocket.DialOptions{Subprotocols: []string{"actioncable-v1-json", "actioncable-unsupported"}})
	must(s.t, err)
	ws.SetReadLimit(64 << 20)
	s.t.Cleanup(func() { _ = ws.CloseNow() })
	return &client{s.t, ws}
}

func (c *client) send(text string) {
	c.t.Helper()
	must(c.t, c.ws.Write(c.t.Context(), websocket.MessageText, []byte(text)))
}

func (c *client) read() (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	_, text, err := c.ws.Read(ctx)
	return string(text), err
}

// want reads the next message that is no sign of life.
func (c *client) want(begins string) string {
	c.t.Helper()
	for {
		text, err := c.read()
		must(c.t, err)
		if strings.HasPrefix(text, `{"type":"ping"`) {
			continue
		}
		if !strings.HasPrefix(text, begins) {
			c.t.Fatalf("got %s, want %s", text, begins)
		}
		return text
	}
}

func mustParse(t *testing.T, path string) *url.URL {
	t.Helper()
	u, err := url.ParseRequestURI(path)
	if strings.HasPrefix(path, "//") {
		return &url.URL{Path: path}
	}
	must(t, err)
	return u
}

func mustRequest(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	must(t, err)
	return req
}

func quote(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// The protocol as its public description has it: identifiers go back as they came, whatever their spelling.
func TestTheSocketSpeaksActionCable(t *testing.T) {
	s := open(t)
	c := s.dial(s.ticket())
	if c.ws.Subprotocol() != "actioncable-v1-json" {
		t.Errorf("the subprotocol is %q", c.ws.Subprotocol())
	}
	c.want(`{"type":"welcome"}`)
	key := `{ "endpoint_id":"` + string(s.ep.ID) + `",  "channel":"TunnelChannel", "client_id":7, "client_metadata":{"hostname":7}, "é":"\u00e9", "target_url":"http://localhost:3000"}`
	c.send(`{"command":"subscribe","identifier":` + quote(key) + `}`)
	c.want(`{"identifier":` + quote(key) + `,"type":"confirm_subscription"}`)
	for _, bad := range []string{`{"channel":"OtherChannel","endpoint_id":"` + string(s.ep.ID) + `"}`, `{"channel":"TunnelChannel"}`, `no JSON`, ``, `{"channel":"TunnelChannel","endpoint_id":7}`} {
		c.send(`{"command":"subscribe","identifier":` + quote(bad) + `}`)
		c.want(`{"identifier":` + quote(bad) + `,"type":"reject_subscription"}`)
	}
	for _, noise := range []string{`{}`, `no JSON`, `[1]`, `{"command":"dance"}`, `{"command":"message","identifier":"x","data":"{\"action\":\"heartbeat\"}"}`, `{"command":"message","data":7}`} {
		c.send(noise)
	}
	s.capture("one")
	var m struct {
		Identifier string
		Message    map[string]any
	}
	must(t, json.Unmarshal([]byte(c.want(`{"identifier":`)), &m))
	if m.Identifier != key || m.Message["type"] != "webhook_request" || m.Message["body"] != "b25l" {
		t.Errorf("%+v", m)
	}
	id := m.Message["id"].(string)
	report := `{"action":"delivery_report","webhook_request_id":"` + id + `","target_url":"http://localhost:3000","status_code":200,"delivery_attempt_id":"a1","more":1}`
	c.send(`{"command":"message","identifier":` + quote(key) + `,"data":` + quote(report) + `}`)
	c.want(`{"identifier":` + quote(key) + `,"message":{"type":"delivery_report_ack","delivery_attempt_id":"a1","status":"ok"}}`)
	c.send(`{"command":"message","identifier":` + quote(key) + `,"data":` + quote(strings.Replace(report, `"status_code":200`, `"status_code":"x"`, 1)) + `}`)
	c.want(`{"identifier":` + quote(key) + `,"message":{"type":"delivery_report_ack","delivery_attempt_id":"a1","status":"refused","error":"validation_failed"}}`)
	c.send(`{"command":"unsubscribe","identifier":` + quote(key) + `}`)
	c.send(`{"command":"subscribe","identifier":` + quote(key) + `}`)
	c.want(`{"identifier":` + quote(key) + `,"type":"confirm_subscription"}`)
	for { // and there is a sign of life every 3 s
		text, err := c.read()
		must(t, err)
		if strings.HasPrefix(text, `{"type":"ping","message":`) {
			break
		}
	}
}

func (s *site) capture(body string) {
	s.t.Helper()
	now := time.Now().UTC()
	must(s.t, s.db.Capture(s.t.Context(), s.ep.AccountID, &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventWebhook, now), EndpointNum: s.ep.Num, EndpointID: s.ep.ID, Type: hookglass.EventWebhook, ReceivedAt: now, Method: "POST", Path: "/",
		Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked, Size: int64(len(body)), Payload: &hookglass.Payload{Body: []byte(body)},
	}))
}

func TestATicketThatIsNoneIsToldSo(t *testing.T) {
	s := open(t)
	used := s.ticket()
	s.dial(used).want(`{"type":"welcome"}`)
	for _, ticket := range []string{"", "junk", used} {
		c := s.dial(ticket)
		c.want(`{"type":"disconnect","reason":"unauthorized","reconnect":false}`)
		if _, err := c.read(); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
			t.Errorf("it ended with %v", err)
		}
	}
	twice := s.ticket() // appended to an address that had it
	s.dial(twice + "?ticket=" + twice).want(`{"type":"welcome"}`)
}

// Reliability, row 82.
func TestPagesOfOtherOriginsAreRefusedOnEverySpelling(t *testing.T) {
	s := open(t)
	host := strings.TrimPrefix(s.url, "http://")
	for _, c := range []struct {
		path, origin string
		status       int
	}{
		{"/cable", "", 101}, {"/cable", "http://" + host, 101}, {"/cable", "https://hooks.example.com", 101}, {"/cable", "https://hooks.example.com:443", 101},
		{"/cable", "http://evil.test", 403}, {"/cable", "null", 403}, {"/cable", "http://127.0.0.1:1", 403}, {"/cable", "https://" + host, 403}, {"/cable", "http://hooks.example.com", 403},
		{"/%63able", "http://evil.test", 403}, {"//cable", "http://evil.test", 403}, {"/CABLE", "http://evil.test", 403}, {"/cable/", "http://evil.test", 403}, {"/x/../cable", "http://evil.test", 403},
		{"/CABLE", "", 404}, {"/cable/", "", 404},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.url, nil)
		must(t, err)
		req.URL.Opaque = "//" + host + c.path
		for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": c.origin} {
			if value != "" {
				req.Header.Set(name, value)
			}
		}
		if !cable.Claims(&http.Request{URL: mustParse(t, c.path)}) {
			t.Errorf("%s is not taken for the socket's", c.path)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		must(t, err)
		res.Body.Close()
		if res.StatusCode != c.status {
			t.Errorf("%s from %q: %d, want %d", c.path, c.origin, res.StatusCode, c.status)
		}
	}
}

// Reliability, row 90.
func TestWhatIsNoProtocolEndsTheSocket(t *testing.T) {
	s := open(t)
	large := s.dial(s.ticket())
	large.want(`{"type":"welcome"}`)
	_ = large.ws.Write(t.Context(), websocket.MessageText, make([]byte, 600<<10))
	if _, err := large.read(); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("a message too large: %v", err)
	}
	binary := s.dial(s.ticket())
	binary.want(`{"type":"welcome"}`)
	must(t, binary.ws.Write(t.Context(), websocket.MessageBinary, []byte(`{}`)))
	if _, err := binary.read(); websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
		t.Errorf("a binary message: %v", err)
	}
	for name, c := range map[string]struct {
		frame string
		code  websocket.StatusCode
	}{
		"text that is no UTF-8": {"\x81\x82\x00\x00\x00\x00\xff\xfe", websocket.StatusInvalidFramePayloadData},
		"half a surrogate":      {"\x81\x83\x00\x00\x00\x00\xed\xa0\x80", websocket.StatusInvalidFramePayloadData},
		"no mask":               {"\x81\x02{}", websocket.StatusProtocolError},
		"a length below zero":   {"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", websocket.StatusProtocolError},
		"a reserved bit":        {"\xc1\x80\x00\x00\x00\x00", websocket.StatusProtocolError},
	} {
		if got := s.endedBy(c.frame); got != c.code {
			t.Errorf("%s: it ended with %d, want %d", name, got, c.code)
		}
	}
}

// What opens no WebSocket is answered in the form of all errors (spec: decisions, section 3).
func TestWhatOpensNoWebSocketIsToldSo(t *testing.T) {
	s := open(t)
	for name, headers := range map[string]map[string]string{
		"a page":          nil,
		"another version": {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "8", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="},
		"no key":          {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"},
	} {
		r := mustRequest(t, s.url+"/cable")
		for field, value := range headers {
			r.Header.Set(field, value)
		}
		res, err := http.DefaultTransport.RoundTrip(r)
		must(t, err)
		var body struct{ Error, Message string }
		err = json.NewDecoder(res.Body).Decode(&body)
		res.Body.Close()
		if res.StatusCode != http.StatusUpgradeRequired || res.Header.Get("Upgrade") != "websocket" || res.Header.Get("Content-Type") != "application/json" || err != nil || body.Error != "upgrade_required" || body.Message == "" {
			t.Errorf("%s: %d %s %+v, %v", name, res.StatusCode, res.Header.Get("Content-Type"), body, err)
		}
	}
}

// HTTP/2 has no Upgrade, and clients do not read an answer that names it (RFC 9113, section 8.2.2).
func TestOverHTTP2TheSocketIsRefusedReadably(t *testing.T) {
	s := open(t)
	log := slog.New(slog.DiscardHandler)
	server := httptest.NewUnstartedServer(httpd.New(httpd.Config{Log: log}).Wrap(cable.New(cable.Deps{Tunnels: s.tunnels, Log: log})))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	res, err := server.Client().Get(server.URL + "/cable")
	must(t, err)
	defer res.Body.Close()
	var body struct{ Error string }
	must(t, json.NewDecoder(res.Body).Decode(&body))
	if res.ProtoMajor != 2 || res.StatusCode != http.StatusUpgradeRequired || body.Error != "upgrade_required" || len(res.Header["Upgrade"])+len(res.Header["Connection"]) > 0 {
		t.Errorf("%s %s %+v %v", res.Proto, res.Status, body, res.Header)
	}
}

// endedBy writes a frame as it stands and returns the code with which the server ends the socket.
func (s *site) endedBy(frame string) websocket.StatusCode {
	s.t.Helper()
	raw, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must(s.t, err)
	defer raw.Close()
	must(s.t, raw.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(raw, "GET /cable?ticket="+s.ticket()+" HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	must(s.t, err)
	in := bufio.NewReader(raw)
	res, err := http.ReadResponse(in, nil)
	must(s.t, err)
	res.Body.Close()
	for sent := false; ; sent = true {
		head := make([]byte, 2)
		if _, err := io.ReadFull(in, head); err != nil {
			return websocket.StatusAbnormalClosure
		}
		payload := make([]byte, head[1])
		_, err := io.ReadFull(in, payload)
		must(s.t, err)
		if head[0] == 0x88 {
			return websocket.StatusCode(binary.BigEndian.Uint16(payload))
		}
		if !sent { // behind the welcome
			_, err = io.WriteString(raw, frame)
			must(s.t, err)
		}
	}
}

func TestALargeEventGoesThroughWhole(t *testing.T) {
	s := open(t)
	c := s.dial(s.ticket())
	c.want(`{"type":"welcome"}`)
	c.send(`{"command":"subscribe","identifier":` + quote(`{"channel":"TunnelChannel","endpoint_id":"`+string(s.ep.ID)+`"}`) + `}`)
	c.want(`{"identifier":`)
	const size = 8 << 20
	s.capture(strings.Repeat("x", size))
	if text := c.want(`{"identifier":`); !strings.Contains(text, `"body_size":8388608`) || len(text) < size*4/3 {
		t.Errorf("%d bytes came", len(text))
	}
}
