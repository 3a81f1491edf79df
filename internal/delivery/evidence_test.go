package delivery_test

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

func (y *yard) delivery(t hookglass.ForwardingTarget, event hookglass.EventID) (f hookglass.Forward, evidence []hookglass.ForwardEvidence) {
	y.t.Helper()
	must(y.t, y.db.View(y.t.Context(), hookglass.System, func(v *store.View) (err error) {
		f, evidence, err = v.Forward(string(t.EndpointID), t.ID, event)
		return err
	}))
	return f, evidence
}

// Each attempt is kept with what it sent and what was answered: credentials redacted, bodies cut, and gone with the
// event.
func TestEachAttemptIsKept(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		sink := newSink(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Answer", "yes")
			w.Header().Set("Set-Cookie", "session=hush")
			w.Header().Set("Retry-After", "0")
			if n == 1 {
				w.WriteHeader(503)
			}
			w.Write([]byte("Bearer hush-hush" + strings.Repeat("z", 9000)))
		})
		target := y.target(y.ep, sink.URL+"/in?a=b", 3)
		y.start(y.db)
		ev := y.capture(y.ep, "X-Tag: a\r\nAuthorization: Bearer hush-hush\r\nX-Gitlab-Token: hush\r\nCookie: hush\r\n", "\xff"+strings.Repeat("y", 9000))
		until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
		f, evidence := y.delivery(target, ev.ID)
		if len(f.Attempts) != 2 || len(evidence) != 2 {
			t.Fatalf("%d attempts, evidence of %d", len(f.Attempts), len(evidence))
		}
		for i, e := range evidence {
			status := []int{503, 200}[i]
			if e.Attempt != i+1 || e.Request.Method != "POST" || e.Request.URL != sink.URL+"/in?a=b" || len(e.Request.Body) != 8<<10 || e.Request.Body[0] != 0xff || !e.Request.Truncated ||
				e.Request.Headers.Get("X-Tag") != "a" || e.Request.Headers.Get("Host") == "" || e.Request.Headers.Get("X-Service-Original-Request") != string(ev.ID) {
				t.Errorf("request %d: %d %q", e.Attempt, len(e.Request.Body), e.Request.Headers)
			}
			if r := e.Response; r == nil || r.Status != status || r.Headers.Get("X-Answer") != "yes" || len(r.Body) != 8<<10 || !r.Truncated {
				t.Fatalf("answer %d: %+v", e.Attempt, r)
			}
			if body := string(e.Response.Body[:10]) + f.Attempts[i].Body; strings.Contains(body, "hush") || !strings.HasPrefix(body, "[redacted][redacted]z") {
				t.Errorf("a credential that was answered is kept: %.40q", body)
			}
			for _, h := range []hookglass.Headers{e.Request.Headers, e.Response.Headers} {
				if strings.Contains(string(h.AppendWire(nil)), "hush") {
					t.Errorf("a credential is kept: %q", h)
				}
			}
		}
		must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteEvent(string(y.ep.ID), string(ev.ID)) }))
		err := y.db.View(t.Context(), hookglass.System, func(v *store.View) error { _, _, err := v.Forward(string(y.ep.ID), target.ID, ev.ID); return err })
		if !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("the delivery of an event that was deleted: %v", err)
		}
	})
}

func TestAnAttemptWithoutAnswerIsKept(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		sink := newSink(t, always(200))
		url := sink.URL
		sink.Close()
		target := y.target(y.ep, url, 0)
		y.start(y.db)
		ev := y.capture(y.ep, "X-Tag: a\r\n", "hello")
		until(t, "the failure", y.settledAll(target, 1, hookglass.ForwardFailed))
		if _, evidence := y.delivery(target, ev.ID); len(evidence) != 1 || evidence[0].Response != nil || string(evidence[0].Request.Body) != "hello" || evidence[0].Request.Truncated {
			t.Errorf("%+v", evidence)
		}
	})
}

// Reliability, row 50: a clock that goes back an hour, before a node starts or while it runs, makes no delivery wait
// for that hour.
func TestAClockThatGoesBackMakesNothingWait(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		sink := newSink(t, always(200))
		target := y.target(y.ep, sink.URL, 3)
		y.capture(y.ep, "", "before the start") // due by the clock of now
		y.clock.advance(-time.Hour)
		y.start(y.db)
		until(t, "the delivery from before", y.settledAll(target, 1, hookglass.ForwardDelivered))
		y.clock.advance(2 * time.Hour)
		y.capture(y.ep, "", "ahead")
		until(t, "the delivery ahead", y.settledAll(target, 2, hookglass.ForwardDelivered))
		y.clock.advance(-2 * time.Hour)
		y.capture(y.ep, "", "back again")
		until(t, "the delivery after", y.settledAll(target, 3, hookglass.ForwardDelivered))
		if n := len(sink.got()); n != 3 {
			t.Errorf("%d hits", n)
		}
	})
}

// What a target answers compressed is shown as what it says, and hides no credential.
func TestACompressedAnswerIsKeptAsWhatItSays(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		sink := newSink(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			fmt.Fprintf(zip, "got %s, %s", r.Header.Get("Authorization"), strings.Repeat("z", 1000))
			zip.Close()
		})
		target := y.target(y.ep, sink.URL, 0)
		y.start(y.db)
		ev := y.capture(y.ep, "Accept-Encoding: gzip\r\nAuthorization: Bearer hush-hush\r\n", "{}")
		until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
		f, evidence := y.delivery(target, ev.ID)
		if a := f.Attempts[0]; !strings.HasPrefix(a.Body, "got [redacted], zzz") || len(a.Body) != 500 || !a.Truncated {
			t.Errorf("%q, truncated %t", a.Body, a.Truncated)
		}
		if body := evidence[0].Response.Body; !strings.HasPrefix(string(body), "got [redacted], zzz") || len(body) < 1000 {
			t.Errorf("%q", body)
		}
		quiet := y.capture(y.ep, "Accept-Encoding: gzip\r\n", "{}")
		until(t, "the other delivery", y.settledAll(target, 2, hookglass.ForwardDelivered))
		if _, evidence := y.delivery(target, quiet.ID); evidence[0].Response.Headers.Get("Content-Encoding") != "gzip" || string(evidence[0].Response.Body[:2]) != "\x1f\x8b" {
			t.Errorf("an answer that hides nothing is not kept as it was: %q", evidence[0].Response.Body)
		}
	})
}
