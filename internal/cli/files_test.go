package cli_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hookglass/internal/cli"
)

// holds checks what a file says, with which mode, and how many are in its directory.
func holds(t *testing.T, path, want string, mode os.FileMode, files int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || string(text) != want {
		t.Errorf("%s holds %q (%v), want %q", path, text, err, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
		t.Errorf("%s has the mode %v (%v), want %v", path, info.Mode(), err, mode)
	}
	if there, err := os.ReadDir(filepath.Dir(path)); err != nil || len(there) != files {
		t.Errorf("%v (%v) are there, want %d", there, err, files)
	}
}

func TestAFileIsWrittenWholeOrNotAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	broken := errors.New("it broke off")
	half := func(w io.Writer) error {
		_, err := io.WriteString(w, "half of ")
		return errors.Join(err, broken)
	}
	whole := func(w io.Writer) error {
		_, err := io.WriteString(w, "new")
		return err
	}
	if err := cli.WriteFile(path, half); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if there, err := os.ReadDir(filepath.Dir(path)); err != nil || len(there) > 0 {
		t.Errorf("what broke off left %v (%v)", there, err)
	}
	if err := cli.WriteFile(path, whole); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "new", 0o600, 1)

	write(t, path, "old")
	if err := os.Chmod(path, 0o664); err != nil {
		t.Fatal(err)
	}
	if err := cli.WriteFile(path, half); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	holds(t, path, "old", 0o664, 1)

	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := cli.WriteFile(link, whole); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "new", 0o664, 1)
	if to, err := os.Readlink(link); err != nil || to != path {
		t.Errorf("the link leads to %s: %v", to, err)
	}

	ahead, unmade := filepath.Join(t.TempDir(), "link.json"), filepath.Join(t.TempDir(), "out.json")
	if err := os.Symlink(unmade, ahead); err != nil {
		t.Fatal(err)
	}
	if err := cli.WriteFile(ahead, whole); err != nil {
		t.Errorf("by a link to a file that is not there yet: %v", err)
	}
	holds(t, unmade, "new", 0o600, 1)

	if os.Getuid() != 0 { // who may write to everything
		if err := os.Chmod(path, 0o400); err != nil {
			t.Fatal(err)
		}
		if err := cli.WriteFile(path, half); !errors.Is(err, os.ErrPermission) {
			t.Errorf("a file that may not be written to: %v", err)
		}
		holds(t, path, "new", 0o400, 1)
	}

	nowhere := filepath.Join(t.TempDir(), "none", "out.json")
	for _, path := range []string{nowhere, t.TempDir()} {
		if err := cli.WriteFile(path, whole); err == nil || !strings.Contains(err.Error(), path) && !strings.Contains(err.Error(), filepath.Dir(path)) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := cli.WriteFile(os.DevNull, whole); err != nil {
		t.Errorf("a device: %v", err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("a file stands in the place of the device: %v %v", info, err)
	}
}

// TestCommandsReplaceTheirFiles sees by another name of the file that there was that it was not written to.
func TestCommandsReplaceTheirFiles(t *testing.T) {
	endpoint, hook := listening(t)
	send(t, hook, "application/json", `{"a":1}`)
	cases := t.TempDir()
	write(t, filepath.Join(cases, "a.yaml"), "name: a\nstatus: 2xx\nrequest: {method: POST, headers: []}\n")
	path := filepath.Join(t.TempDir(), "out")
	for name, args := range map[string][]string{
		"endpoints export":        {"endpoints", "export", endpoint, "-o", path},
		"endpoints export --json": {"endpoints", "export", endpoint, "--json", "-o", path},
		"bundle create":           {"bundle", "create", "-e", endpoint, "-q", "method:POST", "-o", path},
		"cases run --junit":       {"cases", "run", "--dir", cases, "--target", "http://127.0.0.1:1", "--junit", path},
	} {
		before := filepath.Join(t.TempDir(), "before")
		_ = os.Remove(path)
		write(t, path, "before")
		if err := os.Link(path, before); err != nil {
			t.Fatal(err)
		}
		r := run(t, "", args...)
		holds(t, before, "before", 0o600, 1)
		if text, err := os.ReadFile(path); err != nil || string(text) == "before" || len(text) == 0 {
			t.Errorf("%s: %+v, and the file holds %q (%v)", name, r, text, err)
		}
	}
}
