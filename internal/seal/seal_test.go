package seal_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass/internal/seal"
)

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "keys.json") }

func keys(t *testing.T, path string) *seal.Keys {
	t.Helper()
	k, err := seal.LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sealed(t *testing.T, k *seal.Keys, plaintext, where string) []byte {
	t.Helper()
	s, err := k.Seal([]byte(plaintext), where)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func opens(t *testing.T, k *seal.Keys, s []byte, where, want string) {
	t.Helper()
	if got, err := k.Open(s, where); err != nil || string(got) != want {
		t.Errorf("opened %q, %v; want %q", got, err, want)
	}
}

func TestASecretOpensWhereItWasSealedAndNowhereElse(t *testing.T) {
	k := keys(t, file(t))
	s := sealed(t, k, "whsec_canary", "signature_configs.sealed:7")
	if bytes.Contains(s, []byte("canary")) {
		t.Error("sealed in the clear")
	}
	opens(t, k, s, "signature_configs.sealed:7", "whsec_canary")
	opens(t, k, sealed(t, k, "", "x"), "x", "")

	other := keys(t, file(t))
	turned := bytes.Clone(s)
	turned[len(turned)-1] ^= 1
	for name, c := range map[string]struct {
		keys   *seal.Keys
		sealed []byte
		where  string
	}{
		"another row":     {k, s, "signature_configs.sealed:8"},
		"another keyset":  {other, s, "signature_configs.sealed:7"},
		"a bit turned":    {k, turned, "signature_configs.sealed:7"},
		"cut short":       {k, s[:len(s)-1], "signature_configs.sealed:7"},
		"nothing":         {k, nil, "signature_configs.sealed:7"},
		"never encrypted": {k, []byte("whsec_canary"), "signature_configs.sealed:7"},
	} {
		if got, err := c.keys.Open(c.sealed, c.where); !errors.Is(err, seal.ErrForeign) || got != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestTheFileIsCreatedOnceForItsOwnerAlone(t *testing.T) {
	path := file(t)
	if _, err := seal.Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("loading what is not there: %v", err)
	}
	const nodes = 8
	all := make([]*seal.Keys, nodes)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			var err error
			if all[i], err = seal.LoadOrCreate(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	s := sealed(t, all[0], "secret", "row")
	for _, k := range all {
		opens(t, k, s, "row", "secret")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("files left: %v", left)
	}
}

func TestAKeysetThatCanNotBeTrustedIsRefusedWithoutShowingIt(t *testing.T) {
	path := file(t)
	keys(t, path)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	secret := string(good[bytes.Index(good, []byte(`"value":"`))+9:][:20])
	for name, c := range map[string]struct {
		content []byte
		mode    os.FileMode
		says    string
	}{
		"readable by the group": {good, 0o640, "chmod 600"},
		"readable by all":       {good, 0o604, "chmod 600"},
		"empty":                 {nil, 0o600, "backup"},
		"cut off":               {good[:len(good)-40], 0o600, "backup"},
		"scrambled":             {bytes.Replace(good, []byte(`"value"`), []byte(`value`), 1), 0o600, "backup"},
		"not a keyset":          {[]byte(`{"key":[]}`), 0o600, "backup"},
		"huge":                  {append(good, bytes.Repeat([]byte(" "), 1<<20)...), 0o600, "backup"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			k, err := seal.LoadOrCreate(path)
			if k != nil || err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want one with %q", err, c.says)
			} else if strings.Contains(err.Error(), secret) {
				t.Error("the error shows the key")
			}
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
			if now, _ := os.ReadFile(path); !bytes.Equal(now, c.content) {
				t.Error("the file was changed")
			}
		})
	}
}

// A directory may well be open to others, and chmod 600 would shut it to its owner.
func TestADirectoryInPlaceOfTheKeysetIsCalledOne(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.LoadOrCreate(dir); err == nil || !strings.Contains(err.Error(), dir+" is a directory") {
		t.Error(err)
	}
}

func TestAfterARotationOldSecretsOpenAndAllNodesSealWithTheNewKey(t *testing.T) {
	path := file(t)
	node, admin := keys(t, path), keys(t, path)
	old := sealed(t, node, "old", "row")
	if err := admin.Rotate(); err != nil {
		t.Fatal(err)
	}
	if n := admin.Count(); n != 2 {
		t.Errorf("%d keys", n)
	}
	opens(t, admin, old, "row", "old")
	opens(t, node, sealed(t, admin, "new", "row"), "row", "new")

	mark := func(s []byte) string { return string(s[:5]) } // Tink's prefix names the key
	if a, b := mark(sealed(t, node, "x", "row")), mark(sealed(t, admin, "x", "row")); a != b || a == mark(old) {
		t.Errorf("nodes seal with %x and %x, before the rotation with %x", a, b, mark(old))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// Nodes with copies of the keyset are given one after the other: whichever has which, each opens what any seals.
func TestAPreparedRotationOpensEverywhereBeforeItSeals(t *testing.T) {
	path, copied := file(t), file(t)
	give := func() {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(copied+".new", content, 0o600), os.Rename(copied+".new", copied)); err != nil {
			t.Fatal(err)
		}
	}
	first := keys(t, path)
	give()
	other := keys(t, copied)
	agree := func(when string) {
		t.Helper()
		opens(t, other, sealed(t, first, when, "row"), "row", when)
		opens(t, first, sealed(t, other, when, "row"), "row", when)
	}
	mark := func(s []byte) string { return string(s[:5]) } // Tink's prefix names the key
	old := mark(sealed(t, first, "x", "row"))
	for range 2 { // the second finds it done
		if err := first.Prepare(); err != nil {
			t.Fatal(err)
		}
		if n, now := first.Count(), mark(sealed(t, first, "x", "row")); n != 2 || now != old {
			t.Errorf("%d keys, sealing with %x, before with %x", n, now, old)
		}
		agree("prepared at one")
	}
	give()
	agree("prepared at both")
	if err := first.Rotate(); err != nil {
		t.Fatal(err)
	}
	if n, now := first.Count(), mark(sealed(t, first, "x", "row")); n != 2 || now == old {
		t.Errorf("%d keys, sealing with %x, before with %x", n, now, old)
	}
	agree("rotated at one")
	give()
	agree("rotated at both")
	if err := first.Rotate(); err != nil || first.Count() != 3 {
		t.Errorf("a rotation that was not prepared: %v, %d keys", err, first.Count())
	}
}

// Whoever deploys a keyset may copy it over the old one, keep its time, or give it a length that the old one had.
func TestHoweverTheFileIsReplacedItsKeysAreUsed(t *testing.T) {
	at := time.Now()
	put := func(path string, content []byte, at time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, content, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	for name, replace := range map[string]func(path string, content []byte){
		"at another time":   func(path string, content []byte) { put(path, content, at.Add(time.Second)) },
		"by another length": func(path string, content []byte) { put(path, append(content, ' '), at) },
		"by another file": func(path string, content []byte) {
			put(path+".copy", content, at)
			if err := os.Rename(path+".copy", path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		path, other := file(t), file(t)
		keys(t, path)
		theirs := keys(t, other)
		before, err := os.ReadFile(path)
		after, err2 := os.ReadFile(other)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		long := max(len(before), len(after))
		pad := func(content []byte) []byte { return append(content, bytes.Repeat([]byte(" "), long-len(content))...) }
		put(path, pad(before), at)
		k := keys(t, path)
		replace(path, pad(after))
		if got, err := k.Open(sealed(t, theirs, "secret", "row"), "row"); err != nil || string(got) != "secret" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestRotationsAtTheSameTimeLoseNoKey(t *testing.T) {
	path := file(t)
	first := keys(t, path)
	var wg sync.WaitGroup
	var mu sync.Mutex
	rotated := 0
	var secrets [][]byte
	for range 6 {
		wg.Go(func() {
			k, err := seal.Load(path)
			if err != nil {
				t.Error(err)
				return
			}
			if err := k.Rotate(); err != nil {
				if !strings.Contains(err.Error(), "under way") {
					t.Error(err)
				}
				return
			}
			s, err := k.Seal([]byte("s"), "row")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			rotated++
			secrets = append(secrets, s)
		})
	}
	wg.Wait()
	if rotated == 0 {
		t.Fatal("no rotation succeeded")
	}
	for _, s := range secrets {
		opens(t, first, s, "row", "s")
	}
	if n := first.Count(); n != rotated+1 {
		t.Errorf("%d keys after %d rotations", n, rotated)
	}
}

func TestAFileThatOthersMayReadSealsNoMore(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // which has no such modes
	}
	path := file(t)
	k := keys(t, path)
	s := sealed(t, k, "secret", "row")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	opens(t, k, s, "row", "secret")
	if _, err := k.Seal([]byte("more"), "row"); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("sealed with keys that others may read: %v", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	opens(t, k, sealed(t, k, "more", "row"), "row", "more")
}

func TestWhenTheFileIsLostSecretsOpenButNoneIsSealed(t *testing.T) {
	path := file(t)
	k := keys(t, path)
	s := sealed(t, k, "secret", "row")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	opens(t, k, s, "row", "secret")
	if _, err := k.Seal([]byte("more"), "row"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sealed with keys that are on no disk: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	path := filepath.Join(f.TempDir(), "keys.json")
	if _, err := seal.LoadOrCreate(path); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"primaryKeyId":1,"key":[{}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		k, err := seal.Parse(content)
		if err != nil {
			return
		}
		s, err := k.Seal([]byte("secret"), "row")
		if err != nil {
			return
		}
		if got, err := k.Open(s, "row"); err != nil || string(got) != "secret" {
			t.Errorf("opened %q, %v", got, err)
		}
	})
}
