//go:build linux

package faults_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAServerFollowsItsEndpointsFile(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		dir := t.TempDir()
		file, secret := filepath.Join(dir, "endpoints.yaml"), filepath.Join(dir, "secret")
		write := func(path, text string) {
			t.Helper()
			// As a tool would: another file in its place.
			if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}
		write(secret, "whsec_first")
		const good = "prune: true\nendpoints:\n- {custom_id: one, name: One, signature_configs: [{provider: stripe, secret: {file: secret}}]}\n"

		write(file, strings.Replace(good, "name", "nmae", 1))
		n := s.node("--endpoints-file", file)
		if err := n.tryStart(); err == nil {
			t.Error("a server started with a file that is not valid")
		}
		if !strings.Contains(n.log(), "endpoints.yaml:3: endpoints.0.nmae is not a known key") {
			t.Errorf("the reason is not said: %s", n.log())
		}

		write(file, good)
		n.start()
		n.ready(patience)
		has := func(endpoint, what string) func() bool {
			return func() bool {
				status, body, err := n.call(n.token, http.MethodGet, "/endpoints/"+endpoint, "")
				return err == nil && (what == "" && status == http.StatusNotFound || status == http.StatusOK && what != "" && strings.Contains(string(body), what))
			}
		}
		if !has("one", `"One"`)() {
			t.Error("a server is ready before its file is applied")
		}
		write(file, good+"- {custom_id: two}\n")
		eventually(t, patience, "what was added is there", has("two", `"two"`))
		write(file, good+"- {custom_id: Two}\n")
		eventually(t, patience, "the fault is told", func() bool { return strings.Contains(n.log(), "endpoints.yaml:4: endpoints.1.custom_id") })
		if !has("two", `"two"`)() {
			t.Error("a file that is not valid changed something")
		}
		write(file, strings.Replace(good, "One", "Uno", 1))
		eventually(t, patience, "what was removed is gone", has("two", ""))
		eventually(t, patience, "what was changed is", has("one", `"Uno"`))

		write(secret, "whsec_second")
		n.signal(syscall.SIGHUP)
		eventually(t, patience, "the new secret is taken", func() bool { return strings.Contains(n.log(), "op=update kind=signature_config") })
		if strings.Contains(n.log(), "whsec") {
			t.Error("a secret is in the log")
		}

		if err := os.Rename(file, file+".away"); err != nil {
			t.Fatal(err)
		}
		applied := func(want string) func() bool {
			return func() bool {
				_, text, err := n.get("/metrics")
				return err == nil && strings.Contains(string(text), "hookglass_endpoints_file_applied "+want+"\n")
			}
		}
		eventually(t, patience, "that the file is away is told", func() bool { return strings.Contains(n.log(), "no such file") && applied("0")() })
		if err := os.Rename(file+".away", file); err != nil {
			t.Fatal(err)
		}
		eventually(t, patience, "the file that came back unchanged is applied", applied("1"))
	})
}
