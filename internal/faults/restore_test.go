//go:build linux

package faults_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hookglass/internal/store/storetest"
)

// killedAt runs the restore of a backup and kills it as it is about to give a file its name.
func (s *site) killedAt(rename, backup string, flags ...string) {
	s.t.Helper()
	args := []string{"-f", "-q", "-o", "/dev/null", "-P", rename, "-e", "trace=/^rename", "-e", "inject=/^rename:signal=KILL", program, "restore", backup}
	cmd := exec.Command(strace(s.t), append(append(args, s.storage(0)...), flags...)...)
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err == nil || len(out) > 0 {
		s.t.Fatalf("it was not killed: %v, %s", err, out)
	}
}

// keyed is a backup with its keyset, of a site with an endpoint whose signature secret is sealed.
func keyed(t *testing.T) (backup string, of *ledger, token string) {
	t.Helper()
	n := sqliteSite(t, t.TempDir()).serve()
	of = n.endpoint()
	n.api(http.MethodPost, "/endpoints/"+of.endpoint+"/signature_configs", `{"signature_config":{"provider":"stripe","secret":"whsec_test"}}`, nil)
	backup = filepath.Join(t.TempDir(), "backup")
	n.command(nil, "", append([]string{"backup", backup, "--json"}, n.storage(0)...)...)
	return backup, of, n.token
}

func TestARestoreThatWasKilledIsRunAgain(t *testing.T) {
	backup, of, token := keyed(t)
	onlySQLite := func(testing.TB) string { return "" }
	for name, c := range map[string]struct {
		dsn  func(testing.TB) string
		file string
	}{
		"before it placed the keyset, SQLite":     {onlySQLite, "keys.json"},
		"before it placed the keyset, PostgreSQL": {storetest.Postgres, "keys.json"},
		"before it placed the database":           {onlySQLite, "restore.db"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{t: t, dir: t.TempDir(), token: token, dsn: c.dsn(t)}
			dir := s.dir
			if s.dsn == "" {
				dir = s.data(0)
			}
			s.killedAt(filepath.Join(dir, c.file), backup)
			s.command(nil, "", append([]string{"restore", backup, "--json"}, s.storage(0)...)...)
			s.serve().list(of.endpoint)
		})
	}
}

// What is left of an installation that is being replaced lacks what stood in its log.
func TestARestoreThatWasKilledLeavesNoOldDatabaseWithoutItsLog(t *testing.T) {
	backup, of, token := keyed(t)
	n := sqliteSite(t, t.TempDir()).serve()
	n.endpoint()
	n.kill()
	log := filepath.Join(n.data(0), "hookglass.db-wal")
	if content, err := os.ReadFile(log); err != nil || len(content) == 0 {
		t.Fatalf("nothing is in the log: %v", err)
	}
	n.killedAt(filepath.Join(n.data(0), "restore.db"), backup, "--force")
	if err := n.tryStart(); err == nil {
		t.Error("the server started")
	} else if !strings.Contains(n.log(), "run it again") {
		t.Errorf("it did not say what there is to do: %s", n.log())
	}
	n.command(nil, "", append([]string{"restore", backup, "--force", "--json"}, n.storage(0)...)...)
	n.token = token
	n.start()
	n.ready(patience)
	n.list(of.endpoint)
}
