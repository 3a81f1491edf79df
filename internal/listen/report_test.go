package listen_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/listen"
)

func TestAReportIsKeptUntilTheServerHasIt(t *testing.T) {
	s := newServer(t)
	s.unacked = true
	gate := make(chan struct{})
	h := newTarget(t, func(int, http.ResponseWriter, *http.Request) { <-gate })
	l := start(t, s, h.URL, nil)
	id := s.arrive(api.TunnelRequest{})
	eventually(t, "it is under way", func() bool { return len(h.ids()) == 1 })
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "it is noticed", func() bool { return len(told[listen.Disconnected](l)) > 0 })
	close(gate)
	eventually(t, "it is delivered", func() bool { return len(told[listen.Delivered](l)) == 1 })
	if n := get(s, func() int { return len(s.reports[id]) }); n != 0 {
		t.Fatalf("%d reports at a server that is away", n)
	}
	s.set(func() { s.down = false })
	eventually(t, "it is reported", func() bool { return get(s, func() bool { return s.delivered(id) }) })
	sum, _ := l.end(true)
	if n := get(s, func() int { return len(s.reports[id]) }); n != 1 || len(h.ids()) != 1 || sum.Unreported != 0 {
		t.Errorf("%d reports, deliveries %v, %+v", n, h.ids(), sum)
	}
}

// A report says that an event was delivered whoever delivered it: where the server knows the client no longer, it is sent
// without its name. One that the server will not have is named.
func TestAReportIsWorthMoreThanItsClient(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", from: 0, to: -1, at: time.Now(), state: "open"}}
	missed := s.arrive(api.TunnelRequest{})
	s.set(func() { s.forgot = true })
	l := start(t, s, h.URL, nil)
	eventually(t, "a word about the gap", func() bool { return get(s, func() bool { return len(s.said) == 1 }) })
	s.set(func() {
		if r := s.reports[missed]; len(r) != 1 || r[0].TunnelClientID != "" || r[0].TunnelClientCredential != "" {
			t.Errorf("reports %+v", r)
		}
	})
	if w := told[listen.Warning](l); len(w) != 0 {
		t.Errorf("it warns: %v", w)
	}
	s.set(func() { s.deaf, s.down = true, true })
	s.cut()
	eventually(t, "a gap", func() bool { return get(s, func() bool { return len(s.gaps) == 2 }) })
	s.arrive(api.TunnelRequest{})
	s.set(func() { s.down = false })
	eventually(t, "a warning", func() bool {
		return slices.ContainsFunc(told[listen.Warning](l), func(w listen.Warning) bool { return strings.HasPrefix(w.Text, "a result was not taken: ") })
	})
}

func TestAReportThatTheSocketTookAndNobodyConfirmedGoesByREST(t *testing.T) {
	for again, confirmed := range []bool{true, false} {
		s := newServer(t)
		s.unacked = !confirmed
		h := newTarget(t, nil)
		l := start(t, s, h.URL, nil)
		id := s.arrive(api.TunnelRequest{})
		eventually(t, "a report", func() bool { return get(s, func() bool { return s.delivered(id) }) })
		if confirmed {
			eventually(t, "the server's word", func() bool { return l.Unreported() == 0 })
		}
		l.end(true)
		if n := get(s, func() int { return s.byREST }); n != again {
			t.Errorf("confirmed %t: %d reports by REST", confirmed, n)
		}
	}
}

// What the server does not take now is reported later, and what it will never take is named.
func TestAReportIsRefusedForNowOrForGood(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", from: 0, to: -1, at: time.Now(), state: "open"}}
	missed := s.arrive(api.TunnelRequest{})
	s.set(func() { s.busy = 1 })
	l := start(t, s, h.URL, nil)
	eventually(t, "a report", func() bool { return get(s, func() bool { return s.delivered(missed) }) })
	eventually(t, "the server's word", func() bool { return l.Unreported() == 0 })
	s.set(func() { s.refusal = "not this one" })
	s.arrive(api.TunnelRequest{})
	eventually(t, "a warning", func() bool {
		return slices.Equal(told[listen.Warning](l), []listen.Warning{{Text: "a result was not taken: not this one"}})
	})
	if n := len(h.ids()); n != 2 || l.Unreported() != 0 {
		t.Errorf("%d deliveries, %d not reported", n, l.Unreported())
	}
}

func TestAReportCarriesTheAnswer(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("X-A", "1")
		w.Header().Add("X-A", "2")
		switch n {
		case 1:
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(201)
			_, _ = io.WriteString(w, "said \u00e9")
		case 2:
			_, _ = w.Write([]byte{0xff, 0})
		case 3:
			_, _ = io.WriteString(w, strings.Repeat("x", evidenceLimit+1))
		case 5: // at an address that is longer than a report takes
			w.Header()["Set-Cookie"] = []string{"a=1, 2", "b=3"} // which are no list
		case 6, 7: // what a note holds, and more
			_, _ = io.WriteString(w, strings.Repeat("x", 2048+n-6))
		case 8: // nobody waits for it
			_, _ = io.WriteString(w, strings.Repeat("x", evidenceLimit+2))
		case 9:
			w.Header().Set("Content-Length", "9")
			_, _ = io.WriteString(w, "broken")
		case 4: // more than a report takes: it is told all the same
			w.Header().Set("Content-Type", "text/plain; x="+strings.Repeat("x", 300))
			w.Header().Set("X-Long", strings.Repeat("x", 40_000))
			for i := range 150 {
				w.Header().Set(fmt.Sprintf("X-%d", i), "v")
			}
		}
	})
	l := start(t, s, h.URL, nil)
	path, respond := "/", true
	report := func() api.DeliveryReport {
		id := s.arrive(api.TunnelRequest{Respond: respond, Path: path})
		eventually(t, "a report", func() bool { return get(s, func() bool { return len(s.reports[id]) == 1 }) })
		return get(s, func() api.DeliveryReport { return s.reports[id][0] })
	}
	if r := report(); r.StatusCode.Value != 201 || r.ContentType != "text/plain" || r.ResponseHeaders["X-A"] != "1, 2" || r.Body != "said \u00e9" || r.BodyEncoding != "utf8" ||
		!*r.CaptureComplete || *r.DecodedBytesObserved != 7 || *r.RetainedBytes != 7 || *r.DeclaredContentLength != 7 || r.ResponseTimeMS == nil {
		t.Errorf("%+v", r)
	}
	if r := report(); r.Body != "/wA=" || r.BodyEncoding != "base64" {
		t.Errorf("%+v", r)
	}
	if r := report(); len(r.Body) != evidenceLimit || *r.CaptureComplete || r.TruncationReason != "body_limit" || *r.DecodedBytesObserved != evidenceLimit+1 || *r.RetainedBytes != evidenceLimit ||
		r.DeclaredContentLength != nil {
		t.Errorf("%d bytes, %s", len(r.Body), r.TruncationReason)
	}
	if r := report(); len(r.ResponseHeaders) != hookglass.EvidenceFields || r.ResponseHeaders["X-Long"] != "" || r.ResponseHeaders["X-1"] != "v" || len(r.ContentType) != hookglass.EvidenceWordLimit {
		t.Errorf("%d fields, a type of %d bytes", len(r.ResponseHeaders), len(r.ContentType))
	}
	path = "/" + strings.Repeat("x", hookglass.AddressLimit)
	if r := report(); r.ResolvedURL != "" || r.TargetURL != h.URL || r.ResponseHeaders["Set-Cookie"] != "a=1, 2" || *r.DeclaredContentLength != 0 {
		t.Errorf("%d bytes of an address, %s, %+v", len(r.ResolvedURL), r.TargetURL, r)
	}
	path, respond = "/", false
	report()
	report()
	report()
	if r := report(); r.StatusCode.Value != 200 || r.Body != "broken" || *r.CaptureComplete || r.TruncationReason != "connection_lost" {
		t.Errorf("%+v", r)
	}
	eventually(t, "nine notes", func() bool { return len(told[listen.Delivered](l)) == 9 })
	cut := map[int64]bool{}
	for _, d := range told[listen.Delivered](l) {
		cut[d.Size] = d.Truncated
	}
	if want := map[int64]bool{7: false, 2: false, evidenceLimit + 1: true, 0: false, 2048: false, 2049: true, evidenceLimit + 2: true, 6: true}; !maps.Equal(cut, want) {
		t.Errorf("sizes of answers, and whether the note has only their beginning: %v, want %v", cut, want)
	}
	if w := told[listen.Warning](l); len(w) != 1 || !strings.Contains(w[0].Text, "is given the first 60000 bytes of the answer") {
		t.Errorf("the warnings are %q", w)
	}
}
