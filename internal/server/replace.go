package server

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// freshPrefix begins the name of a file that is about to replace another.
const freshPrefix = ".fresh-"

// replaceFile atomically replaces a file with one that only its owner may read; aside may keep the old one. A crash
// leaves the old or the new file, and perhaps a third, which the next start sweeps.
func replaceFile(path string, content []byte, aside func() error) error {
	fresh, err := os.CreateTemp(filepath.Dir(path), freshPrefix+"*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(fresh.Name())
	_ = holdFile(fresh) // so that nobody sweeps it
	_, err = fresh.Write(content)
	if err == nil {
		err = fresh.Sync()
	}
	if err = errors.Join(err, fresh.Close()); err != nil {
		return err
	}
	if err := aside(); err != nil {
		return err
	}
	if err := os.Rename(fresh.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// sameFile reports whether two paths lead to the same file or directory, which exists.
func sameFile(one, other string) bool {
	a, err := os.Stat(one)
	if err != nil {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && os.SameFile(a, b)
}

// unfinished returns the prefix of the name of a backup that is being written.
func unfinished(place string) string { return "." + filepath.Base(place) + ".unfinished-" }

// sweep removes the temporary files of killed processes, whose names begin so: a backup's is as large as a backup, one
// that was to replace a keyset or dev.json holds secrets, and nobody looks for them. A file that another process has
// locked is still being written. One that is not locked yet may be removed, and its writer then fails with an error.
func sweep(dir, prefix string) {
	entries, _ := os.ReadDir(dir) // an error shows again when something is written
	for _, e := range entries {
		if !temporary(e.Name(), prefix) || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		left, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		free := holdFile(left) == nil
		left.Close()
		if free {
			os.Remove(path)
		}
	}
}

// temporary reports whether a name is one that os.CreateTemp makes: the prefix and a number. People may name a file of
// their own with the same prefix.
func temporary(name, prefix string) bool {
	number, found := strings.CutPrefix(name, prefix)
	return found && number != "" && strings.Trim(number, "0123456789") == ""
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && runtime.GOOS != "windows" { // Windows cannot sync directories
		return err
	}
	return nil
}
