//go:build !unix

package seal

import "os"

// hold takes the file of a rotation by its name alone where there is no flock: what one that was cut off left there is
// for the operator to remove. It answers fs.ErrExist while the name is taken.
func hold(name string) (release func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return func() {}, f.Close()
}

// giveToOwner does nothing where files have no owner of this kind.
func giveToOwner(*os.File, string) error { return nil }
