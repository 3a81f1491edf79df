package storetest_test

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"hookglass/internal/store/storetest"
)

// dieWithFiles is the child of TestAKilledProcessLeavesNoEmbeddedDatabase: it says where they would be, and is killed.
func dieWithFiles() {
	dir, err := storetest.Files()
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	os.Stdout.WriteString(dir + "\n")
	select {}
}

func TestAKilledProcessLeavesNoEmbeddedDatabase(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "STORETEST_DIE_FILES=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(said)
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s is still there", dir)
		}
	}
}

// A database that a test has closed is gone with the test, not only with the process.
func TestAnEmbeddedDatabaseEndsWithItsTest(t *testing.T) {
	dir, err := storetest.Files()
	if err != nil {
		t.Fatal(err)
	}
	count := func() int {
		t.Helper()
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := count()
	t.Run("open", func(t *testing.T) {
		storetest.SQLite(t)
		if count() != before+1 {
			t.Errorf("%d databases, want one more than %d", count(), before)
		}
	})
	if count() != before {
		t.Errorf("%d databases are left, want %d", count(), before)
	}
}
