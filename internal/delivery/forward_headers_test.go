package delivery_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/seal"
	"hookglass/internal/store"
)

// headed gives a target headers.
func (y *yard) headed(t hookglass.ForwardingTarget, headers map[string]string) {
	y.t.Helper()
	y.change(t, endpoint.TargetDraft{Headers: &headers})
}

// rawTarget is a target that keeps the heads of requests as they came, and answers 200.
func rawTarget(t *testing.T) (url string, heads chan string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	heads = make(chan string, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			var head []byte
			for !strings.Contains(string(head), "\r\n\r\n") {
				one := make([]byte, 1)
				if _, err := io.ReadFull(conn, one); err != nil {
					break
				}
				head = append(head, one...)
			}
			heads <- string(head)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-ended
	})
	return "http://" + ln.Addr().String() + "/", heads
}

// A header of the target takes the place of the event's; all others stay as they came. The event cannot have one
// dropped by naming it in its Connection.
func TestHeadersOfATargetAreSentInPlace(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		url, heads := rawTarget(t)
		target := y.target(y.ep, url, 0)
		y.headed(target, map[string]string{"authorization": "Bearer of-the-target", "X-Environment": "staging"})
		y.start(y.db)
		y.capture(y.ep, "X-Two: 1\r\nAUTHORIZATION: Bearer of-the-event\r\nx-two: 2\r\nAuthorization: again\r\nX-Two: 1\r\nConnection: close, X-Environment\r\n", "")
		head := <-heads
		_, rest, _ := strings.Cut(head, "X-Two: 1\r\n")
		if !strings.HasPrefix(rest, "AUTHORIZATION: Bearer of-the-target\r\nx-two: 2\r\nX-Two: 1\r\nX-Environment: staging\r\nX-Service-Original-Request: ") ||
			strings.Contains(head, "of-the-event") || strings.Count(strings.ToLower(head), "authorization:") != 1 {
			t.Errorf("%q", head)
		}
	})
}

// Each attempt is sent with the headers of its time: a retry, what waited, what waited for its turn, and what is sent
// again.
func TestHeadersOfATargetAreThoseOfTheAttempt(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		var up atomic.Bool
		sink := newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			if !up.Load() {
				w.WriteHeader(404)
			}
		})
		target := y.target(y.ep, sink.URL, 3)
		y.headed(target, map[string]string{"X-Version": "1"})
		y.start(y.db)
		ev := y.capture(y.ep, "", "a")
		until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardFailed))
		y.headed(target, map[string]string{"X-Version": "2", "X-More": "yes"})
		up.Store(true)
		_, err := y.endpoints.ResendDelivery(t.Context(), hookglass.System, string(y.ep.ID), target.ID, ev.ID)
		must(t, err)
		until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
		limit := int64(1000)
		y.change(target, endpoint.TargetDraft{RateLimit: &limit})
		y.headed(target, map[string]string{"X-Version": "3"})
		y.capture(y.ep, "", "b")
		until(t, "the delivery", y.settledAll(target, 2, hookglass.ForwardDelivered))
		y.headed(target, map[string]string{})
		y.capture(y.ep, "X-Version: of the event\r\n", "c")
		until(t, "the delivery", y.settledAll(target, 3, hookglass.ForwardDelivered))
		var got []string
		for _, h := range sink.got() {
			got = append(got, h.header.Get("X-Version")+h.header.Get("X-More"))
		}
		if want := "1 2yes 3 of the event"; strings.Join(got, " ") != want {
			t.Errorf("got %q, want %s", got, want)
		}
	})
}

// What is kept of an attempt holds no value of a header of the target, whether it was sent or answered.
func TestNoHeaderOfATargetIsKept(t *testing.T) {
	basic := base64.StdEncoding.EncodeToString([]byte("ada:hush-4"))
	eachYard(t, func(t *testing.T, y *yard) {
		sink := newSink(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Echo", r.Header.Get("X-Key"))
			w.WriteHeader(400)
			io.WriteString(w, `{"a":"`+r.Header.Get("X-Key")+`","b":"`+strings.TrimPrefix(r.Header.Get("Authorization"), "Basic ")+`","c":"hush-4","d":"`+r.Header.Get("X-Api-Key")+`","ok":true}`)
		})
		target := y.target(y.ep, sink.URL, 0)
		y.headed(target, map[string]string{"X-Key": "hush-hush-1", "Authorization": "Basic " + basic, "X-Api-Key": "hush", "X-Debug": "true", "x-short": "h"})
		y.start(y.db)
		ev := y.capture(y.ep, "X-Tag: a\r\n", "")
		until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardFailed))
		f, evidence := y.delivery(target, ev.ID)
		if got := sink.got()[0].header; got.Get("X-Key") != "hush-hush-1" || got.Get("X-Debug") != "true" || got.Get("X-Short") != "h" {
			t.Errorf("sent %v", got)
		}
		kept := text(f) + text(evidence) + string(evidence[0].Response.Body) + string(evidence[0].Request.Headers.AppendWire(nil)) + string(evidence[0].Response.Headers.AppendWire(nil)) + f.Attempts[0].Body
		if strings.Contains(kept, "hush") || strings.Contains(kept, basic) {
			t.Errorf("kept: %s", kept)
		}
		all := &dumped{}
		_, err := y.db.Dump(t.Context(), all)
		must(t, err)
		for _, secret := range []string{"hush", basic, base64.RawStdEncoding.EncodeToString([]byte("hush-hush"))} {
			if strings.Contains(all.String(), secret) {
				t.Errorf("%s stands in the database", secret)
			}
		}
		if !strings.Contains(all.String(), "X-Api-Key") {
			t.Error("the names do not, so nothing was looked at")
		}
		for _, name := range []string{"X-Key", "Authorization", "X-Api-Key", "X-Debug", "X-Short"} {
			if got := evidence[0].Request.Headers.Get(name); got != "[redacted]" {
				t.Errorf("%s is kept as %q", name, got)
			}
		}
		if evidence[0].Request.Headers.Get("X-Tag") != "a" || !strings.Contains(f.Attempts[0].Body, `"ok":true`) {
			t.Errorf("more than that is missing: %s", kept)
		}
	})
}

// A target may write what it was sent as often as it likes, so that what is read of its answer ends within a copy, and
// without the parts around it.
func TestNoPartOfACredentialIsKept(t *testing.T) {
	key := strings.Repeat("hush", 75)
	headers := map[string]string{"X-Api-Key": key, "Authorization": "Bearer \t hush-token", "Cookie": `sid="hush-99"; other=hus`, "X-Auth-Token": `Token token="hush-5566", nonce="a"`}
	for name, echo := range map[string]string{
		"cut": strings.Repeat(key+" ", 300), "two blanks": "hush-token", "a quoted cookie": "hush-99", "a parameter": "hush-5566",
	} {
		t.Run(name, func(t *testing.T) {
			eachYard(t, func(t *testing.T, y *yard) {
				sink := newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400); io.WriteString(w, echo) })
				target := y.target(y.ep, sink.URL, 0)
				y.headed(target, headers)
				y.start(y.db)
				ev := y.capture(y.ep, "", "")
				until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardFailed))
				f, evidence := y.delivery(target, ev.ID)
				if kept := string(evidence[0].Response.Body) + f.Attempts[0].Body; strings.Contains(kept, "hush") || !strings.Contains(kept, "[redacted]") {
					t.Errorf("kept: %.200s … %.400s", kept, kept[max(0, len(kept)-400):])
				}
			})
		})
	}
}

// dumped is all that a database holds, as text.
type dumped struct{ strings.Builder }

func (d *dumped) Table(store.Table) error         { return nil }
func (d *dumped) Counters(map[string]int64) error { return nil }

func (d *dumped) Row(values []any) error {
	for _, v := range values {
		if b, ok := v.([]byte); ok {
			v = string(b)
		}
		fmt.Fprintln(d, v)
	}
	return nil
}

// A node that cannot open the headers sends nothing; another may.
func TestHeadersThatCanNotBeOpenedAreNotLeftOut(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		sink := newSink(t, always(200))
		target := y.target(y.ep, sink.URL, 1)
		y.headed(target, map[string]string{"Authorization": "Bearer x"})
		keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
		must(t, err)
		right := y.endpoints
		y.endpoints = endpoint.New(y.db, keys)
		stop := y.start(y.db)
		ev := y.capture(y.ep, "", "")
		until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardFailed))
		stop()
		f, _ := y.delivery(target, ev.ID)
		if len(f.Attempts) != 2 || f.Attempts[1].Failure == nil || f.Attempts[1].Failure.Code != "headers_sealed" || len(sink.got()) != 0 {
			t.Errorf("%d were sent, %s", len(sink.got()), text(f))
		}
		y.endpoints = right
		_, err = y.endpoints.ResendDelivery(t.Context(), hookglass.System, string(y.ep.ID), target.ID, ev.ID)
		must(t, err)
		y.start(y.db)
		until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
		if got := sink.got(); len(got) != 1 || got[0].header.Get("Authorization") != "Bearer x" {
			t.Errorf("%+v", got)
		}
	})
}
