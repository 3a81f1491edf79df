package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hookglass/internal/server"
)

func TestAnEndpointsFileIsReadWithTheSecretsOfThisMachine(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "endpoints:\n- custom_id: aa\n  signature_configs:\n  - {provider: stripe, secret: "
	write("secret", "whsec_file\r\n")
	write("empty", "\n")
	t.Setenv("A_SECRET", "whsec_env")
	for secret, want := range map[string]string{"{env: A_SECRET}": "whsec_env", "{file: secret}": "whsec_file", "{file: " + filepath.Join(dir, "secret") + "}": "whsec_file"} {
		f, err := server.ReadEndpointsFile(write("e.yaml", head+secret+"}\n"))
		if err != nil || f.Declaration.Endpoints[0].SignatureConfigs[0].Secret.Value != want {
			t.Errorf("%s: %v", secret, err)
		}
	}
	for secret, want := range map[string]string{"{env: NOT_SET}": "NOT_SET, which is not set", "{file: empty}": "empty", "{file: none}": "cannot be read", "whsec_clear": "never written down"} {
		_, err := server.ReadEndpointsFile(write("e.yaml", head+secret+"}\n"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "e.yaml:4: ") || strings.Contains(err.Error(), "whsec_") {
			t.Errorf("%s: %v", secret, err)
		}
	}
	if _, err := server.ReadEndpointsFile(filepath.Join(dir, "missing.yaml")); err == nil {
		t.Error("a file that is not there was read")
	}
}
