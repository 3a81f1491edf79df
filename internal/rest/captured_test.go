package rest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/capture"
)

// Databases have bounds that a sender knows nothing of: PostgreSQL takes no NUL in text, no key of an index beyond 2.7
// KB, no word list beyond 1 MB, and writes some numbers out in full. None of it may show.
func TestWhatSendersSendIsListedFoundAndGivenBack(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		long := noise(10_000) // does not compress, so no index takes it
		var bomb bytes.Buffer
		z := gzip.NewWriter(&bomb)
		_, _ = z.Write(make([]byte, 1<<20)) // a buffer takes everything
		_ = z.Close()
		header := func(name, value string) func(*capture.Arrival) {
			return func(a *capture.Arrival) {
				a.Headers = append(a.Headers, hookglass.Header{Name: name, Value: value})
			}
		}
		body := func(text string) func(*capture.Arrival) {
			return func(a *capture.Arrival) { a.Body = []byte(text) }
		}
		for name, change := range map[string]func(*capture.Arrival){
			"an escaped NUL":         body(`{"a":"\u0000"}`),
			"half of a character":    body(`{"a":"\ud800"}`),
			"NUL and all bytes":      body("\x00\xff\xfe" + long),
			"numbers of many digits": body("[" + strings.Repeat("1e131071,", 999) + "1e131071]"),
			"1.3 MB of words":        body(strings.Repeat(noise(50)+" ", 25_000)),
			"a bomb":                 func(a *capture.Arrival) { a.Body = bomb.Bytes(); header("Content-Encoding", "gzip")(a) },
			"NUL in the path":        func(a *capture.Arrival) { a.Path, a.RawQuery = "/%00", "a=%00&b=%zz;c" },
			"a long path":            func(a *capture.Arrival) { a.Path, a.RawQuery = "/"+long, "q="+long },
			"many names in a query":  func(a *capture.Arrival) { a.RawQuery = strings.Repeat("a=1&b=%41&", 2_500) },
			"a long header":          header("X-Long", long),
			"Latin-1 in a header":    header("X-Place", "caf\xe9"),
			"a long event type":      header("X-GitHub-Event", long),
			"a long delivery id":     header("X-GitHub-Delivery", long),
			"a long webhook id":      header("Webhook-Id", long),
		} {
			e := s.newEndpoint(`,"schema_tracking":true`)
			id := s.arrive(e.ID, change)
			var sent capture.Arrival
			sent.Body = []byte(`{"amount":100}`)
			change(&sent)
			at := "/endpoints/" + e.ID + "/requests"
			if list := s.list(at + "?limit=1"); len(list.Data) != 1 || list.Data[0].ID != id || list.Data[0].Size != int64(len(sent.Body)) {
				t.Errorf("%s: the list has %+v", name, list)
			}
			res, detail := s.call(s.token, "GET", at+"/"+id, "")
			var got api.One[api.EventDetail]
			if err := json.Unmarshal([]byte(detail), &got); err != nil || res.StatusCode != 200 {
				t.Errorf("%s: the detail is %d %.200s: %v", name, res.StatusCode, detail, err)
			}
			if most := 3*len(sent.Body) + 12*len(long) + 100_000; len(detail) > most {
				t.Errorf("%s: %d bytes became an answer of %d", name, len(sent.Body), len(detail))
			}
			if _, raw := s.call(s.token, "GET", at+"/"+id+"/body", ""); raw != string(sent.Body) {
				t.Errorf("%s: another body came back, of %d bytes", name, len(raw))
			}
			for _, q := range []string{"nothing", `"'`, `%_\`, "\x00", "a OR b & ! <-> :*", long[:200], "-tag:x body./a:b", "(("} {
				res, text := s.call(s.token, "GET", at+"?q="+url.QueryEscape(q), "")
				if res.StatusCode != 200 && res.StatusCode != 422 {
					t.Errorf("%s: a search for %q answers %d %s", name, q, res.StatusCode, text)
				}
			}
			for _, path := range []string{at + "/export?format=csv", at + "/export?format=har", "/endpoints/" + e.ID + "/metrics", "/endpoints/" + e.ID + "/retry_profile", "/endpoints/" + e.ID + "/ledger", "/events", at + "/" + id + "/diagnosis"} {
				if res, text := s.call(s.token, "GET", path, ""); res.StatusCode != 200 {
					t.Errorf("%s: %s answers %d %.200s", name, path, res.StatusCode, text)
				}
			}
		}
		mail := s.mailbox("odd")
		id := s.deliver("odd", "From: "+long+" <a@b.example>\r\nSubject: =?utf-8?q?=00=0D=0ABcc:_x?= "+long+"\r\nContent-Type: text/plain; name=\""+long+"\"\r\n\r\nHi\x00\r\n")
		if list := s.list("/endpoints/" + mail.ID + "/requests"); len(list.Data) != 1 || list.Data[0].ID != id || strings.ContainsAny(fmt.Sprint(*list.Data[0].Subject), "\x00\r\n") {
			t.Errorf("the mailbox has %+v", list)
		}
		s.want(200, "GET", "/endpoints/"+mail.ID+"/requests/"+id, "", nil)
		if strings.Contains(s.log.String(), "level=ERROR") {
			t.Errorf("the log has an error: %s", s.log.String())
		}
	})
}

// noise is text that nothing can make shorter, the same in each run.
func noise(size int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	source := rand.New(rand.NewPCG(3, uint64(size)))
	text := make([]byte, size)
	for i := range text {
		text[i] = letters[source.IntN(len(letters))]
	}
	return string(text)
}
