//go:build unix

package seal

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// hold locks the file of a rotation until release or the end of the process. It takes over a file that an interrupted
// rotation left. It returns fs.ErrExist while another process holds it.
func hold(name string) (release func(), err error) {
	for {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		made := err == nil
		if errors.Is(err, fs.ErrExist) {
			f, err = os.OpenFile(name, os.O_WRONLY, 0)
			if errors.Is(err, fs.ErrNotExist) {
				continue // it has just become the keyset
			}
		}
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EINTR) {
			f.Close()
			continue
		}
		if err != nil && (!made || errors.Is(err, syscall.EWOULDBLOCK)) {
			f.Close()
			return nil, fs.ErrExist // without flock support, an existing file is the lock
		}
		mine, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		if there, err := os.Stat(name); err == nil && os.SameFile(mine, there) {
			return func() { f.Close() }, nil
		}
		f.Close() // it has become the keyset meanwhile
	}
}

// giveToOwner gives a file to the owner of the one that it will replace. Without this, after a rotation by root, a
// service that runs as another user could not read the keyset, neither now nor at its next start.
func giveToOwner(f *os.File, replaced string) error {
	own, err := f.Stat()
	if err != nil {
		return err
	}
	theirs, err := os.Stat(replaced)
	if err != nil {
		return err
	}
	owner := theirs.Sys().(*syscall.Stat_t)
	if owner.Uid == own.Sys().(*syscall.Stat_t).Uid {
		return nil
	}
	return f.Chown(int(owner.Uid), int(owner.Gid))
}
