package server_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hookglass/internal/server"
)

// What dev remembers is a token: a piece of it in another file would be there for ever.
func TestWhatCanNotBeWrittenLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "dev.json")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := server.WritePrivate(path, "secret"); err == nil {
		t.Error("a directory was replaced")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := server.WritePrivate(path, "secret"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("there are %v, %v", all, err)
	}
}

// What a process that was killed was about to put in the place of dev.json, or of the keyset, holds a secret.
func TestWhatAKilledProcessLeftGoesWithTheNextStart(t *testing.T) {
	dir := t.TempDir()
	left, others := filepath.Join(dir, ".fresh-123"), []string{filepath.Join(dir, ".freshly"), filepath.Join(dir, ".fresh-backup")} // which people named so
	for _, path := range append(others, left) {
		if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start(t, config(dir))
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", left, err)
	}
	for _, other := range others {
		if _, err := os.Stat(other); err != nil {
			t.Error(err)
		}
	}
}

// What it remembers can be made again, so whoever reads that it is damaged is told so.
func TestWhatIsDamagedMayBeRemoved(t *testing.T) {
	cfg := config(t.TempDir())
	path := filepath.Join(cfg.Data, "dev.json")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := (&server.DevCmd{Config: cfg}).Run(t.Context(), &server.Terminal{Out: io.Discard, Err: io.Discard})
	if err == nil || !strings.Contains(err.Error(), path+" is damaged (unexpected end of JSON input); without this file") {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	start(t, cfg)
}
