//go:build unix

package seal_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// A process that is killed while it rotates leaves its new file behind, whole or not. The next rotation needs nobody to
// clean up; one that is really under way keeps others out.
func TestARotationThatWasCutOffDoesNotStopTheNext(t *testing.T) {
	path := file(t)
	k := keys(t, path)
	s := sealed(t, k, "secret", "row")
	for i, left := range []string{"", `{"primaryKeyId":1,"key":[{"keyData":`, strings.Repeat("x", 4096)} {
		if err := os.WriteFile(path+".new", []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := k.Rotate(); err != nil {
			t.Fatal(err)
		}
		if n := keys(t, path).Count(); n != i+2 {
			t.Errorf("%d keys after %d rotations", n, i+1)
		}
	}
	opens(t, keys(t, path), s, "row", "secret")

	other, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := k.Rotate(); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("beside another rotation: %v", err)
	}
	other.Close()
	if err := k.Rotate(); err != nil {
		t.Error(err)
	}
}

// Nodes that share one keyset may reach it by links. All of them use the new key, whichever link it was rotated by.
func TestARotationFollowsALink(t *testing.T) {
	path := file(t)
	shared := keys(t, path)
	link := file(t)
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	linked := keys(t, link)
	if err := linked.Rotate(); err != nil {
		t.Fatal(err)
	}
	opens(t, shared, sealed(t, linked, "secret", "row"), "row", "secret")
	if to, err := os.Readlink(link); err != nil || to != path {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}

// Administration runs as root where the service has a user of its own, who must still be able to read the keyset.
func TestARotationLeavesTheKeysetToItsOwner(t *testing.T) {
	path := file(t)
	k := keys(t, path)
	owner := os.Getuid()
	if owner == 0 { // who alone can give files away
		owner = 1
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Rotate(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Sys().(*syscall.Stat_t); int(got.Uid) != owner || info.Mode().Perm() != 0o600 {
		t.Errorf("the keyset is user %d's, mode %v; it was user %d's", got.Uid, info.Mode(), owner)
	}
}
