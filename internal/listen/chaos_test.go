package listen_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass/api"
	"hookglass/internal/listen"
)

func TestChaosIsReadOrRefused(t *testing.T) {
	got, err := listen.ParseChaos("duplicate=20%, reorder=5s,drop=0.05,delay=0-3s,seed=7")
	if want := (listen.Chaos{Duplicate: 0.2, Reorder: 5 * time.Second, Drop: 0.05, MaxDelay: 3 * time.Second, Seed: 7}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := listen.ParseChaos("delay=1-3s"); err != nil || got.MinDelay != time.Second || got.MaxDelay != 3*time.Second || got.Seed != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := listen.ParseChaos("reorder=1h"); err != nil || got.Reorder != time.Hour {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := listen.ParseChaos("reorder=1h1ns"); err == nil {
		t.Error("more than an hour is taken")
	}
	if got, err := listen.ParseChaos("delay=200ms"); err != nil || got.MinDelay != got.MaxDelay || got.MinDelay != 200*time.Millisecond {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{
		"", "duplicate", "duplicate=", "duplicate=120%", "drop=-1%", "drop=NaN", "reorder=5", "reorder=-1s", "reorder=61m", "delay=3s-1s", "delay=x", "seed=-1", "seed=x", "drop=1%,drop=2%", "lose=1%",
	} {
		if got, err := listen.ParseChaos(bad); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func TestChaosFollowsFromItsSeed(t *testing.T) {
	c := listen.Chaos{Duplicate: 0.3, Drop: 0.2, Reorder: time.Second, MinDelay: time.Second, MaxDelay: 2 * time.Second, Seed: 7}
	other := c
	other.Seed = 8
	same := 0
	for n := range uint64(1000) {
		if c.Fate(n) != c.Fate(n) {
			t.Fatal("two answers")
		}
		if c.Fate(n) == other.Fate(n) {
			same++
		}
	}
	if same > 0 {
		t.Errorf("%d fates are those of another seed", same)
	}
}

func TestChaosTroublesAHandlerAndTellsWhatItMadeOfIt(t *testing.T) {
	run := func() (listen.Summary, []int) {
		s := newServer(t)
		seen := map[string]int{}
		h := newTarget(t, nil)
		h.then = func(_ int, w http.ResponseWriter, r *http.Request) {
			h.mu.Lock()
			defer h.mu.Unlock()
			seen[r.Header.Get("X-Service-Request-Id")]++
			if seen[r.Header.Get("X-Service-Request-Id")] > 1 {
				w.WriteHeader(409)
			}
			_, _ = io.WriteString(w, "x")
		}
		l := start(t, s, h.URL, func(c *listen.Config) {
			c.Chaos = &listen.Chaos{Duplicate: 0.4, Drop: 0.2, Reorder: 200 * time.Millisecond, Seed: 72312} // no second delivery is near behind the first
			c.ExitAfter = 50
		})
		var sent []string
		for range 50 {
			sent = append(sent, s.arrive(api.TunnelRequest{}))
		}
		sum, err := l.end(false)
		if err != nil {
			t.Error(err)
		}
		var often []int
		for i, id := range sent {
			often = append(often, seen[id])
			d := slices.DeleteFunc(told[listen.Delivered](l), func(d listen.Delivered) bool { return d.Event.ID != id })
			if want := max(1, seen[id]); len(d) != want || d[0].Dropped != (seen[id] == 0) {
				t.Errorf("event %d was delivered %d times, and told %+v", i, seen[id], d)
			}
		}
		s.set(func() {
			for id := range s.reports {
				if len(s.reports[id]) != 1 || s.reports[id][0].StatusCode.Value != 200 {
					t.Errorf("reports of %s: %+v", id, s.reports[id])
				}
			}
			if len(s.reports) != 50-sum.Chaos.Dropped {
				t.Errorf("%d reports, %d dropped", len(s.reports), sum.Chaos.Dropped)
			}
		})
		return sum, often
	}
	sum, often := run()
	c := sum.Chaos
	if c == nil || c.Dropped == 0 || c.Duplicated == 0 || c.Overtaken == 0 || len(c.Differing) != c.Duplicated || len(c.RefusedAgain) != c.Duplicated || sum.Delivered != 50-c.Dropped || c.Events != 50 || c.Seed != 72312 {
		t.Errorf("%+v of %+v", c, sum)
	}
	if _, again := run(); !slices.Equal(often, again) {
		t.Errorf("the same seed did %v and %v", often, again)
	}
}

// Only reorder lets events overtake one another, however close they come.
func TestChaosKeepsTheOrderUnlessItIsToChangeIt(t *testing.T) {
	for _, chaos := range []listen.Chaos{{Drop: 0.2, Seed: 1}, {MaxDelay: 20 * time.Millisecond, Seed: 1}} {
		s := newServer(t)
		h := newTarget(t, nil)
		l := start(t, s, h.URL, func(c *listen.Config) {
			c.Chaos, c.ExitAfter = &chaos, 100
			c.Ahead(patience)
		})
		for range 100 {
			s.arrive(api.TunnelRequest{})
		}
		sum, err := l.end(false)
		if got := h.ids(); err != nil || len(got) != 100-sum.Chaos.Dropped || !slices.IsSorted(got) || sum.Chaos.Overtaken != 0 {
			t.Errorf("with %+v: %v, %+v, %v", chaos, got, sum.Chaos, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"3000", "localhost:3000/a?b=c", "invoice.*=3000", "duplicate=20%,reorder=5s,drop=5%,delay=0-3s,seed=7", "http://[::1]:1/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if to, err := listen.ParseTarget(s); err == nil {
			again, err := listen.ParseTarget(to.String())
			if err != nil || again != to {
				t.Errorf("%q is %+v, and %q is %+v, %v", s, to, to, again, err)
			}
			head, _, err := listen.Compose(&api.TunnelRequest{Method: "GET", Path: s, QueryString: s}, to, nil)
			if err != nil || strings.Count(head, "\r\n") != 5 || strings.Count(head[:strings.Index(head, "\r")], " ") != 2 {
				t.Errorf("%q: %q, %v", s, head, err)
			}
		}
		_, _ = listen.ParseRoute(s)
		_, _ = listen.ParseChaos(s)
		listen.Matches(s, "stripe", "invoice.paid")
	})
}

func FuzzCompose(f *testing.F) {
	f.Add("POST", "/a", "b=c", "X-A", "1", "Ym9keQ==")
	f.Add("GET", "/ \r\n", "\n", "A:", "\r\nB: 1", "")
	to := listen.Target{Scheme: "http", Host: "localhost:3000", Path: "/base"}
	f.Fuzz(func(t *testing.T, method, path, query, name, value, body string) {
		head, _, err := listen.Compose(&api.TunnelRequest{Method: method, Path: path, QueryString: query, HeaderList: [][2]string{{name, value}}, Body: body}, to, nil)
		if err != nil {
			return
		}
		// Whatever came, it is one head: one request line of three words, and nothing behind the empty line.
		if i := strings.Index(head, "\r\n\r\n"); i != len(head)-4 || strings.Count(head[:strings.Index(head, "\r\n")], " ") != 2 {
			t.Errorf("%q", head)
		}
		if strings.Contains(strings.ReplaceAll(head, "\r\n", ""), "\n") || strings.Contains(strings.ReplaceAll(head, "\r\n", ""), "\r") {
			t.Errorf("%q", head)
		}
	})
}
