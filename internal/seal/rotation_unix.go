//go:build unix

package seal

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// hold takes the file of a rotation for this process until release, or until the process ends in whatever way: what
// one that was cut off left there is taken over. It answers fs.ErrExist while another has it.
func hold(name string) (release func(), err error) {
	for {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		made := err == nil
		if errors.Is(err, fs.ErrExist) {
			f, err = os.OpenFile(name, os.O_WRONLY, 0)
			if errors.Is(err, fs.ErrNotExist) {
				continue // it has become the keyset just now
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
			return nil, fs.ErrExist // where the file system knows no such lock, the name alone is it
		}
		mine, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		if there, err := os.Stat(name); err == nil && os.SameFile(mine, there) {
			return func() { f.Close() }, nil
		}
		f.Close() // it has become the keyset between the two
	}
}

// giveToOwner gives a file to whom the one belongs that it is to replace: root may rotate where the service is another
// user, who could not read the keyset any more, neither now nor when it starts the next time.
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
