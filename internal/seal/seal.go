// Package seal encrypts the secrets in the database. It uses authenticated encryption (XAES-256-GCM, by Tink) bound to
// the row that holds the secret, with a keyset in a separate file. It hides the keys, never prints them, and treats
// secrets as mere bytes.
//
// The file is Tink's JSON keyset in cleartext, mode 0600. Whoever can read it can open every secret, so it belongs
// neither in a repository nor in a place that more people can reach than the database. Nodes share it.
//
// Keys is safe for concurrent use.
package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// ErrForeign says that no key of the keyset opens the data, or that it was sealed for another row.
var ErrForeign = errors.New("seal: no key of the keyset opens this, or it was sealed for another row")

// maxFile bounds what is read as a keyset; a key takes about 200 bytes.
const maxFile = 1 << 20

// Keys is a keyset in use. It follows its file: after another process rotates it, the next call uses the new keys.
type Keys struct {
	path string

	mu     sync.Mutex
	seen   fs.FileInfo // the file as last read
	handle *keyset.Handle
	cipher tink.AEAD
}

// Load reads a keyset. The error is fs.ErrNotExist if there is no file, and says what to do if others can read it or it
// is not a keyset.
func Load(path string) (*Keys, error) {
	k := &Keys{path: path}
	if err := k.read(); err != nil {
		return nil, err
	}
	return k, nil
}

// LoadOrCreate reads a keyset, creating it if there is none. If several processes create it at the same time, one
// succeeds and all use its keyset.
func LoadOrCreate(path string) (*Keys, error) {
	k, err := Load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	handle, err := keyset.NewHandle(aead.XAES256GCM192BitNonceKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("seal: new keyset: %w", err)
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), ".keys-*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("seal: new keyset: %w", err)
	}
	defer os.Remove(fresh.Name())
	if err := writeTo(fresh, handle); err != nil {
		return nil, err
	}
	if err := place(fresh.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("seal: new keyset: %w", err)
	}
	if err := syncDir(path); err != nil {
		return nil, err
	}
	return Load(path)
}

// Parse reads a keyset from the content of a file. It follows no file, so it never changes.
func Parse(content []byte) (*Keys, error) {
	k := &Keys{}
	if err := k.parse(content); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return k, nil
}

// Seal encrypts plaintext for one place: where names its table, column and row, and must be the same for Open.
func (k *Keys) Seal(plaintext []byte, where string) ([]byte, error) {
	cipher, err := k.current()
	if err != nil {
		return nil, err // a secret sealed with keys that are on no disk would be lost with the process
	}
	sealed, err := cipher.Encrypt(plaintext, []byte(where))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return sealed, nil
}

// Open decrypts what Seal made for the same place. It returns ErrForeign for anything else.
func (k *Keys) Open(sealed []byte, where string) ([]byte, error) {
	cipher, err := k.current()
	if cipher == nil {
		return nil, err
	}
	plaintext, err := cipher.Decrypt(sealed, []byte(where))
	if err != nil {
		return nil, ErrForeign
	}
	return plaintext, nil
}

// Prepare adds a key that opens from now on and seals from the next rotation on, unless one is prepared already. Nodes
// with separate copies of the file must all receive the prepared keyset before any receives the rotated one; otherwise
// those with the old file could not open what the others seal.
func (k *Keys) Prepare() error {
	return k.change(func(manager *keyset.Manager, prepared uint32) error {
		if prepared != 0 {
			return nil
		}
		_, err := manager.Add(aead.XAES256GCM192BitNonceKeyTemplate())
		return err
	})
}

// Rotate makes a key the one that seals from now on, in all processes that share the file: the prepared one, or a new
// one. What older keys sealed stays readable.
func (k *Keys) Rotate() error {
	return k.change(func(manager *keyset.Manager, prepared uint32) (err error) {
		if prepared == 0 {
			if prepared, err = manager.Add(aead.XAES256GCM192BitNonceKeyTemplate()); err != nil {
				return err
			}
		}
		return manager.SetPrimary(prepared)
	})
}

// change rewrites the keyset as modified by fn. prepared is the id of the prepared key, or 0.
func (k *Keys) change(fn func(manager *keyset.Manager, prepared uint32) error) error {
	// The file that a link leads to is replaced, not the link: others may follow that file, or back it up.
	path, err := filepath.EvalSymlinks(k.path)
	if err != nil {
		return fmt.Errorf("seal: rotate: %w", err)
	}
	// The new file is also the lock: of two concurrent rotations, one would lose the other's key.
	name := path + ".new"
	release, err := hold(name)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("seal: a rotation is under way; if none is, one was cut off: remove %s", name)
	}
	if err != nil {
		return fmt.Errorf("seal: rotate: %w", err)
	}
	defer release()
	k.mu.Lock()
	defer k.mu.Unlock()
	fresh, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("seal: rotate: %w", err)
	}
	if err := k.writeChanged(fresh, fn); err != nil {
		fresh.Close()
		os.Remove(name) // it is ours until the rename; later the name may belong to another rotation
		return err
	}
	if err := os.Rename(name, path); err != nil {
		return fmt.Errorf("seal: rotate: %w", err)
	}
	if err := syncDir(path); err != nil {
		return err
	}
	return k.read()
}

// writeChanged writes the keyset as modified by fn.
func (k *Keys) writeChanged(to *os.File, fn func(manager *keyset.Manager, prepared uint32) error) error {
	if err := k.read(); err != nil {
		return err
	}
	if err := giveToOwner(to, k.path); err != nil {
		return fmt.Errorf("seal: rotate: %w", err)
	}
	var prepared uint32
	if newest, err := k.handle.Entry(k.handle.Len() - 1); err != nil {
		return fmt.Errorf("seal: rotate: %w", err)
	} else if !newest.IsPrimary() {
		prepared = newest.KeyID()
	}
	manager := keyset.NewManagerFromHandle(k.handle)
	if err := fn(manager, prepared); err != nil {
		return fmt.Errorf("seal: rotate: %w", err)
	}
	handle, err := manager.Handle()
	if err != nil {
		return fmt.Errorf("seal: rotate: %w", err)
	}
	return writeTo(to, handle)
}

// Count returns the number of keys.
func (k *Keys) Count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.handle.Len()
}

// current returns the cipher of the file as it is now or, with an error, the last one that could be read.
func (k *Keys) current() (tink.AEAD, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.path == "" {
		return k.cipher, nil
	}
	now, err := os.Stat(k.path)
	if err != nil {
		return k.cipher, fmt.Errorf("seal: %w", err)
	}
	if os.SameFile(now, k.seen) && now.ModTime().Equal(k.seen.ModTime()) && now.Size() == k.seen.Size() && now.Mode() == k.seen.Mode() {
		return k.cipher, nil
	}
	err = k.read() // replaces the cipher
	return k.cipher, err
}

// read reads the file. On failure the keys stay unchanged.
func (k *Keys) read() error {
	f, err := os.Open(k.path)
	if err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	if info.IsDir() {
		return fmt.Errorf("seal: %s is a directory", k.path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("seal: %s can be read by others (mode %04o): chmod 600 %s", k.path, mode, k.path)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	if err := k.parse(content); err != nil {
		return fmt.Errorf("seal: %s: %w", k.path, err)
	}
	k.seen = info
	return nil
}

// parse decodes a keyset. Errors of the library may quote parts of a damaged one, so they are not passed on.
func (k *Keys) parse(content []byte) error {
	if len(content) > maxFile {
		return errors.New("larger than any keyset; restore it from a backup")
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(content)))
	if err != nil {
		return errors.New("not a keyset, or a damaged one; restore it from a backup")
	}
	cipher, err := aead.New(handle)
	if err != nil {
		return errors.New("a keyset of another kind; restore the right one from a backup")
	}
	k.handle, k.cipher = handle, cipher
	return nil
}

// writeTo writes the keyset, syncs and closes the file.
func writeTo(f *os.File, handle *keyset.Handle) error {
	err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(f))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("seal: write keyset: %w", err)
	}
	return nil
}

// syncDir makes the name of a new file durable.
func syncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && runtime.GOOS != "windows" {
		return fmt.Errorf("seal: %w", err)
	}
	return nil
}
