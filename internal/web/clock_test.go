package web_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
	"hookglass/internal/web"
)

// What counts back from now does so by the clock of the database, by which requests are stamped (decision 0025), and
// not by this machine's, which is an hour behind it here.
func TestTimesCountBackByTheDatabasesClock(t *testing.T) {
	ahead := func() time.Time { return time.Now().Add(time.Hour) }
	db := storetest.Open(t, store.Config{Path: filepath.Join(t.TempDir(), "hookglass.db"), Clock: ahead})
	s := newSiteOn(t, db, func(*web.Deps) {})
	id := string(s.hook(s.github("ping", "d-1", `{}`, "s")))
	b := s.signedIn()
	for address, mark := range map[string]string{
		s.page("?q=after%3A30m"): id, s.page("/export?q=after%3A30m"): id, "/activity/feed?since=30m": id, s.page("/metrics/figures?window=30m"): "GitHub",
	} {
		if now := b.want(200, "GET", address, nil); strings.Contains(now.body, mark) {
			t.Errorf("%s has what came an hour ago", address)
		}
		b.want(200, "GET", strings.Replace(address, "30m", "2h", 1), nil).holds(t, mark)
	}
}
