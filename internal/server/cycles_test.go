//go:build linux

package server_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass/internal/server"
	"hookglass/internal/store/storetest"
)

// cycles is how often a server is started and stopped: what one of them left would be there so often.
const cycles = 5

// left is what a process has that a server may leave behind.
type left struct {
	goroutines, files int
	temporary, data   []string
}

func leftNow(t *testing.T, temporary, data string) left {
	t.Helper()
	names := func(dir string) (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	return left{runtime.NumGoroutine(), len(names("/proc/self/fd")), names(temporary), names(data)}
}

// Who embeds a server, and each test that starts one, has nothing of it when it has stopped, also when it was busy.
func TestAServerThatHasStoppedLeavesNothing(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { return storetest.Migrated(t) },
	} {
		t.Run(name, func(t *testing.T) {
			temporary, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
			cfg := config(data)
			cfg.DatabaseURL, cfg.SMTPListen, cfg.OutboundAllow = url(t), "127.0.0.1:0", []string{"127.0.0.0/8"}
			t.Setenv("TMPDIR", temporary) // the cluster, which stays, has its files elsewhere
			busyCycle(t, cfg)             // what is made once in a process
			before := leftNow(t, temporary, data)
			for same := 0; same < 20; same++ { // until what ends by itself has ended
				time.Sleep(50 * time.Millisecond)
				now := leftNow(t, temporary, data)
				if now.goroutines != before.goroutines || now.files != before.files {
					before, same = now, 0
				}
			}
			for range cycles {
				busyCycle(t, cfg)
			}
			var after left
			for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				after = leftNow(t, temporary, data)
				if after.goroutines <= before.goroutines && after.files <= before.files {
					break
				}
			}
			t.Logf("before %+v, after %+v", before, after)
			if after.goroutines > before.goroutines {
				var stacks strings.Builder
				if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
					t.Fatal(err)
				}
				t.Errorf("%d goroutines before, %d after:\n%s", before.goroutines, after.goroutines, stacks.String())
			}
			if after.files > before.files {
				t.Errorf("%d files were open before, %d after", before.files, after.files)
			}
			if len(after.temporary) > 0 || !slices.Equal(after.data, before.data) {
				t.Errorf("files that are left: %v in the temporary directory, %v with the data, where %v was before", after.temporary, after.data, before.data)
			}
		})
	}
}

// busyCycle starts a server and stops it while a stream, a session of SMTP, a wait and a delivery are open.
func busyCycle(t *testing.T, cfg server.Config) {
	t.Helper()
	d, stop := start(t, cfg)
	defer stop()
	reached, released := make(chan struct{}, 1), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	target := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case reached <- struct{}{}:
		default:
		}
		select {
		case <-released:
		case <-r.Context().Done():
		}
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = target.Serve(listener) // it ends by Close
	}()
	client := &http.Client{Transport: &http.Transport{}}
	defer func() {
		release()
		if err := target.Close(); err != nil {
			t.Error(err)
		}
		<-served
		client.CloseIdleConnections()
		http.DefaultClient.CloseIdleConnections()
	}()

	endpoint := d.API + "/endpoints/" + d.EndpointID
	body := `{"forwarding_target":{"name":"slow","url":"http://` + listener.Addr().String() + `","timeout_seconds":30,"retry_count":0}}`
	if status, answer := call(t, "POST", endpoint+"/forwarding_targets", d.Token, body); status != 201 {
		t.Fatalf("%d %s", status, answer)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", endpoint+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+d.Token)
	stream, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	mail, err := net.Dial("tcp", d.SMTP)
	if err != nil {
		t.Fatal(err)
	}
	defer mail.Close()
	if status, answer := call(t, "POST", d.WebhookURL, "", strings.Repeat("x", 100_000)); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	select {
	case <-reached:
	case <-time.After(patience):
		t.Fatal("nothing came to the target")
	}
	if n, err := io.ReadFull(stream.Body, make([]byte, 10)); err != nil {
		t.Fatal(n, err)
	}
	time.AfterFunc(200*time.Millisecond, release) // while it stops
	stop()
}
