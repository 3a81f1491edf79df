package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hookglass/api"
	"hookglass/internal/store/storetest"
)

// request is one that is sent byte for byte.
type request struct {
	target           string
	headers, trailer [][2]string
}

func (r request) wire() []byte {
	var b bytes.Buffer
	lines := func(fields [][2]string) {
		for _, h := range fields {
			fmt.Fprintf(&b, "%s:%s\r\n", h[0], h[1])
		}
	}
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\n", r.target)
	lines(r.headers)
	b.WriteString("\r\n0\r\n")
	lines(r.trailer)
	b.WriteString("\r\n")
	return b.Bytes()
}

// trimmed are fields without the blanks around their values, which belong to none (RFC 9112, section 5.1).
func trimmed(fields [][2]string) [][2]string {
	all := [][2]string{}
	for _, h := range fields {
		all = append(all, [2]string{h[0], strings.Trim(h[1], " \t")})
	}
	return all
}

// oddRequest makes a request of any bytes but those that end a line. Few of them are control characters, which no
// request may hold.
func oddRequest(random *rand.Rand, endpoint string) request {
	const token = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	word := func(from string) string {
		text := make([]byte, 1+random.IntN(12))
		for i := range text {
			text[i] = from[random.IntN(len(from))]
		}
		return string(text)
	}
	high := make([]byte, 128)
	for i := range high {
		high[i] = byte(0x80 + i)
	}
	printable := make([]byte, 0, 94)
	for c := byte('!'); c < 0x7f; c++ {
		printable = append(printable, c)
	}
	value := func() string {
		switch random.IntN(6) {
		case 0:
			return []string{"caf\xc3\xa9", "日本", "\U0001F600", "\ufffd", "\u0080", "\u2028"}[random.IntN(6)]
		case 1:
			return word(string(printable))
		case 2:
			return word(string(high))
		case 3:
			return word(string(printable)+string(high)+" \t") + " " + word(string(high))
		case 4:
			return word("\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80") // characters, whole and in pieces
		}
		if random.IntN(20) == 0 {
			return word("a\x00\x01\x7f\x1b")
		}
		return ""
	}
	fields := func() (all [][2]string) {
		for range random.IntN(6) {
			all = append(all, [2]string{"X" + word(token), value()})
		}
		return all
	}
	r := request{target: "/hooks/" + endpoint + "/" + strings.ReplaceAll(strings.NewReplacer(" ", "", "\t", "").Replace(value()), "#", "")}
	if random.IntN(2) == 0 {
		r.target += "?" + strings.NewReplacer(" ", "", "\t", "").Replace(value())
	}
	r.headers = append([][2]string{{"Host", "h.example"}, {"transfer-ENCODING", "chunked"}, {"X-Echo", value()}}, fields()...)
	r.trailer = fields()
	return r
}

// The API gives request targets, headers and trailers as they came, whatever bytes the front takes, and what was
// answered as it went: in the detail form, in exports of lines, and in HAR.
func TestWhatCameIsExactOverTheAPI(t *testing.T) {
	for name, database := range map[string]func(*testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { return storetest.Migrated(t) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t.TempDir())
			cfg.DatabaseURL = database(t)
			d, _ := start(t, cfg)
			at := d.API + "/endpoints/" + d.EndpointID
			if status, answer := call(t, "PATCH", at, d.Token, `{"endpoint":{"response":{"status":200,"headers":{"X-Echoed":"{{request.header.X-Echo}}"},"body":"{{event.id}}"}}}`); status != 200 {
				t.Fatalf("%d %s", status, answer)
			}
			web, err := url.Parse(d.Web)
			if err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(7, 11))
			sent, refused := map[string]request{}, 0
			for range 200 {
				r := oddRequest(random, d.EndpointID)
				status, id := exchange(t, web.Host, r.wire())
				if status != http.StatusOK {
					if !bytes.ContainsAny(bytes.ReplaceAll(r.wire(), []byte("\r\n"), nil), "\x00\x01\x1b\x7f") {
						t.Errorf("%q was answered %d", r.wire(), status)
					}
					refused++
					continue
				}
				sent[id] = r
			}
			if len(sent) < 150 {
				t.Fatalf("%d of 200 were taken, %d refused", len(sent), refused)
			}
			foreign := 0
			for id, r := range sent {
				status, answer := call(t, "GET", at+"/requests/"+id, d.Token, "")
				var got api.One[api.EventDetail]
				if err := json.Unmarshal(answer, &got); err != nil || status != 200 {
					t.Fatalf("%d %s: %v", status, answer, err)
				}
				checkExact(t, got.Data, r)
				if len(got.Data.Latin1) > 0 {
					foreign++
				}
			}
			if foreign < 20 || foreign == len(sent) {
				t.Errorf("%d of %d are not UTF-8", foreign, len(sent))
			}
			_, lines := call(t, "GET", at+"/requests/export", d.Token, "")
			for line := range bytes.Lines(lines) {
				var e api.EventDetail
				if err := json.Unmarshal(line, &e); err != nil {
					t.Fatal(err)
				}
				checkExact(t, e, sent[e.ID])
			}
			_, archive := call(t, "GET", at+"/requests/export?format=har", d.Token, "")
			checkArchive(t, archive, sent)
		})
	}
}

// exchange sends a request and reads what is answered.
func exchange(t *testing.T, address string, wire []byte) (status int, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(wire); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", wire, err)
	}
	defer res.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, b.String()
}

func checkExact(t *testing.T, got api.EventDetail, want request) {
	t.Helper()
	exact := got.Exact()
	_, below, _ := strings.Cut(want.target, got.EndpointID)
	path, query, asked := strings.Cut(below, "?")
	if exact.Path != path || exact.QueryString != query {
		t.Errorf("%q ? %q came as %q ? %q", path, query, exact.Path, exact.QueryString)
	}
	if whole := "http://h.example" + want.target; exact.URL != whole && !(asked && query == "" && exact.URL+"?" == whole) {
		t.Errorf("%q came as %q", whole, exact.URL)
	}
	if !reflect.DeepEqual(exact.HeaderList, trimmed(want.headers)) || !reflect.DeepEqual(exact.TrailerList, trimmed(want.trailer)) {
		t.Errorf("%q came as %q and %q", want, exact.HeaderList, exact.TrailerList)
	}
	echo := strings.Trim(want.headers[2][1], " \t")
	echoed := [2]string{}
	for _, h := range exact.ResponseHeaderList {
		if h[0] == "X-Echoed" {
			echoed = h
		}
	}
	if echoed[1] != echo {
		t.Errorf("%q was echoed as %q", echo, echoed)
	}
	text := utf8.ValidString(want.target + echo)
	for _, h := range append(trimmed(want.headers), trimmed(want.trailer)...) {
		text = text && utf8.ValidString(h[1])
	}
	if text != (len(got.Latin1) == 0) {
		t.Errorf("%q has latin1 %q", want, got.Latin1)
	}
}

// checkArchive checks the target and the headers of each request, and those of its answer.
func checkArchive(t *testing.T, archive []byte, sent map[string]request) {
	t.Helper()
	var har struct {
		Log struct {
			Entries []struct {
				ID      string   `json:"_id"`
				Latin1  []string `json:"_latin1"`
				Request struct {
					URL     string
					Headers []struct{ Name, Value string }
				}
				Response struct {
					Headers []struct{ Name, Value string }
				}
			}
		}
	}
	if err := json.Unmarshal(archive, &har); err != nil || len(har.Log.Entries) != len(sent) {
		t.Fatalf("%d entries: %v", len(har.Log.Entries), err)
	}
	for _, e := range har.Log.Entries {
		pointed := map[string]bool{}
		for _, p := range e.Latin1 {
			pointed[p] = true
		}
		bytesAt := func(pointer, text string) string {
			if !pointed[pointer] {
				return text
			}
			delete(pointed, pointer)
			var b []byte
			for _, r := range text {
				b = append(b, byte(r))
			}
			return string(b)
		}
		r := sent[e.ID]
		if got := bytesAt("/request/url", e.Request.URL); strings.TrimSuffix(got, "?") != strings.TrimSuffix("http://h.example"+r.target, "?") {
			t.Errorf("%q is %q", r.target, got)
		}
		headers := [][2]string{}
		for i, h := range e.Request.Headers {
			headers = append(headers, [2]string{h.Name, bytesAt(fmt.Sprintf("/request/headers/%d/value", i), h.Value)})
		}
		if !reflect.DeepEqual(headers, trimmed(r.headers)) {
			t.Errorf("%q are %q", r.headers, headers)
		}
		for i, h := range e.Response.Headers {
			if got := bytesAt(fmt.Sprintf("/response/headers/%d/value", i), h.Value); h.Name == "X-Echoed" && got != strings.Trim(r.headers[2][1], " \t") {
				t.Errorf("%q was echoed as %q", r.headers[2][1], got)
			}
		}
		if len(pointed) > 0 {
			t.Errorf("%s: %v lead nowhere", e.ID, pointed)
		}
	}
}
