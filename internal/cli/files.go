package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"hookglass/internal/server"
)

// readInput reads a file that the user names; - is standard input.
func readInput(t *server.Terminal, path string, limit int64) ([]byte, error) {
	if path == "-" {
		return readAll(t.In, "standard input", limit)
	}
	text, err := readFile(path, limit)
	if errors.Is(err, fs.ErrNotExist) { // it may be meant as the text itself
		err = fmt.Errorf("%w; name a file, or - for standard input", err)
	}
	return text, err
}

func readFile(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file, path, limit)
}

// readAll refuses input beyond the limit, because a part of it may mean something else.
func readAll(file io.Reader, name string, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s is longer than %d bytes", name, limit)
	}
	return text, err
}

// writeFile writes a file that the user names, completely or not at all: an existing file stays until the new one is
// complete. It writes through to devices and pipes, and follows links.
func writeFile(path string, write func(io.Writer) error) error {
	there, err := os.Stat(path)
	if err == nil && !there.Mode().IsRegular() {
		out, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(out), out.Close())
	}
	if to, link := unfollowed(path, err); link {
		return writeFile(to, write)
	}
	if err == nil {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return cannotWrite(path, replaceFile(dir, filepath.Base(path), write))
}

// unfollowed returns where a link leads that could not be followed because there is no file yet.
func unfollowed(path string, missing error) (to string, link bool) {
	if !errors.Is(missing, fs.ErrNotExist) {
		return "", false
	}
	to, err := os.Readlink(path)
	if err == nil && !filepath.IsAbs(to) {
		to = filepath.Dir(path) + string(filepath.Separator) + to
	}
	return to, err == nil
}

// cannotWrite returns an error of writing a file, if there is one, with the user's name for it, not the temporary one.
// An error of the connection that the text came by stays what it is.
func cannotWrite(path string, err error) error {
	_, away := errors.AsType[*net.OpError](err)
	if fault, ok := errors.AsType[syscall.Errno](err); ok && !away {
		return fmt.Errorf("%s cannot be written: %w", path, fault)
	}
	return err
}

// mayWrite reports why [writeFile] could not write a file, so that a command which has much to do first can say so
// before it begins. It changes no file. Whether a device or a pipe takes anything shows only when it is written.
func mayWrite(path string) error {
	there, err := os.Stat(path)
	if to, link := unfollowed(path, err); link {
		return mayWrite(to)
	}
	switch {
	case err == nil && there.IsDir():
		return fmt.Errorf("%s cannot be written: it is a directory", path)
	case err == nil && !there.Mode().IsRegular():
		return nil
	case err == nil:
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
		old, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return old.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	beside, err := os.CreateTemp(filepath.Dir(path), ".hookglass-")
	if err != nil {
		return cannotWrite(path, err)
	}
	return errors.Join(beside.Close(), os.Remove(beside.Name()))
}

// replaceFile atomically replaces a file in a directory. It writes directly to a device or a pipe, and to a file in a
// directory that is not writable.
func replaceFile(dir *os.Root, name string, write func(io.Writer) error) error {
	mode := fs.FileMode(0o600)
	there, err := dir.Lstat(name)
	if err == nil {
		mode = there.Mode()
	}
	if there != nil && mode.IsRegular() { // a read-only file must not be replaced either
		old, err := dir.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		old.Close()
	}
	if mode.IsRegular() {
		beside := ".hookglass-" + rand.Text()
		out, err := dir.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode.Perm())
		if err == nil {
			_ = out.Chmod(mode.Perm()) // undo the umask; an error means that there are no modes
			err = errors.Join(write(out), out.Sync(), out.Close())
			if err == nil {
				err = dir.Rename(beside, name)
			}
			if err != nil {
				_ = dir.Remove(beside)
			}
			return err
		}
		if there == nil || !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	out, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(write(out), out.Close())
}

// only returns a function that writes a given text.
func only(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}
