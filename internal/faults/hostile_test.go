//go:build linux

package faults_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// hostileLimit is what 50 hostile targets may cost in all (issue 4, "What it must reach").
const hostileLimit = 16 << 20

// hostile are the targets of row 66: what each does with a connection once it has read the head of a request.
var hostile = map[string]func(c net.Conn, stop <-chan struct{}){
	"no answer": func(_ net.Conn, stop <-chan struct{}) { <-stop },
	"a byte a second": func(c net.Conn, stop <-chan struct{}) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
		drip(c, stop, "x")
	},
	"10 GB body": func(c net.Conn, _ <-chan struct{}) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
		pour(c, strings.Repeat("x", 64<<10))
	},
	"gzip bomb": func(c net.Conn, _ <-chan struct{}) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n")
		z, _ := gzip.NewWriterLevel(c, gzip.BestSpeed)
		zeros := make([]byte, 1<<20)
		for range 300 {
			if _, err := z.Write(zeros); err != nil {
				return
			}
		}
		z.Close()
	},
	"100 MB of headers": func(c net.Conn, _ <-chan struct{}) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		pour(c, "X-"+strings.Repeat("a", 100)+": "+strings.Repeat("b", 8000)+"\r\n")
	},
	"one header without end": func(c net.Conn, _ <-chan struct{}) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nX-A: ")
		pour(c, strings.Repeat("b", 64<<10))
	},
	"endless 1xx": func(c net.Conn, _ <-chan struct{}) { pour(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") },
	"endless chunks": func(c net.Conn, _ <-chan struct{}) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		pour(c, "1;"+strings.Repeat("e", 1000)+"\r\nx\r\n")
	},
	"switching protocols": func(c net.Conn, stop <-chan struct{}) {
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")
		<-stop
	},
	"HTTP/0.9": func(c net.Conn, stop <-chan struct{}) { io.WriteString(c, "<html>"); drip(c, stop, "x") },
}

// pour writes a text again and again until nobody reads.
func pour(c net.Conn, text string) {
	for {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

func drip(c net.Conn, stop <-chan struct{}, text string) {
	for {
		select {
		case <-time.After(time.Second):
		case <-stop:
			return
		}
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// Row 66: hostile targets end by their timeout, and fifty at once cost no more than one may.
func TestFiftyHostileTargetsCostLittle(t *testing.T) {
	cost := fiftyHostileTargets(t)
	if cost <= hostileLimit {
		return
	}
	// Where others have the processors, garbage is collected late. Then what is held tells, and that the rest has a bound.
	held := min(fiftyHostileTargets(t, "GOGC=10"), fiftyHostileTargets(t, "GOGC=10"))
	if held > hostileLimit || cost > 4*hostileLimit {
		t.Errorf("50 hostile targets took %.1f MiB, and %.1f MiB at best where garbage is collected at once; the limit is %d MiB",
			float64(cost)/(1<<20), float64(held)/(1<<20), hostileLimit>>20)
	}
}

// fiftyHostileTargets is what they cost a process that is new, in bytes above what it had before.
func fiftyHostileTargets(t *testing.T, env ...string) (cost int64) {
	t.Helper()
	n := sqliteSite(t, t.TempDir()).node("--outbound-allow", "127.0.0.0/8")
	n.env = env
	n.start()
	n.ready(patience)
	stop := make(chan struct{})
	defer close(stop)
	var reached atomic.Int64
	var endpoints, targets []string
	var kinds []string
	for kind := range hostile {
		for i := range 5 {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
							reached.Add(1)
							hostile[kind](c, stop)
						}
					}()
				}
			}()
			if i == 0 {
				endpoints = append(endpoints, n.endpoint().endpoint)
			}
			endpoint := endpoints[len(endpoints)-1]
			var made struct{ Data struct{ ID int64 } }
			n.api(http.MethodPost, "/endpoints/"+endpoint+"/forwarding_targets",
				fmt.Sprintf(`{"forwarding_target":{"name":"n","url":"http://%s/","timeout_seconds":%d,"retry_count":0}}`, l.Addr(), int(targetTimeout.Seconds())), &made)
			targets, kinds = append(targets, fmt.Sprint(made.Data.ID)), append(kinds, kind)
		}
	}
	for _, e := range endpoints { // everything that is ever used is loaded
		n.api(http.MethodGet, "/endpoints/"+e+"/requests", "", nil)
	}
	<-time.After(time.Second)
	base, _ := n.memory()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", n.proc.Pid), []byte("5"), 0); err != nil { // the highest from now on
		t.Fatal(err)
	}
	began := time.Now()
	for _, e := range endpoints {
		n.event(e)
	}
	eventually(t, patience, "all targets have a request", func() bool { return reached.Load() >= 50 })
	for i, target := range targets {
		limit := targetTimeout + patience // to be begun and written down
		eventually(t, limit, kinds[i]+" has ended", func() bool {
			for _, state := range n.deliveryStates(endpoints[i/5], target) {
				if state == "failed" || state == "delivered" {
					return true
				}
			}
			return false
		})
	}
	took := time.Since(began)
	_, peak := n.memory()
	t.Logf("50 hostile targets: %.1f MiB above %.1f MiB; all ended after %v", float64(peak-base)/(1<<20), float64(base)/(1<<20), took)
	n.kill()
	return int64(peak) - int64(base)
}
