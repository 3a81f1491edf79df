package storetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// initdb takes a second of a processor, and each package that is tested has a cluster of its own. So a directory as
// initdb has made it is kept among the user's caches, and copied.

// initdbFlags are what every cluster is made with. It is created in a moment, and does not outlive the tests.
var initdbFlags = []string{"-N", "-A", "trust", "-U", "hookglass", "-E", "UTF8", "--locale=C", "--no-instructions"}

// initdb makes the data directory of the cluster.
func (c *Cluster) initdb() error {
	if out, err := c.command("initdb", append([]string{"-D", c.data()}, initdbFlags...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("storetest: initdb: %w\n%s", err, out)
	}
	return nil
}

// kept is where a data directory is kept for this version of PostgreSQL, or empty where nothing can be.
func (c *Cluster) kept() string {
	caches, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	program := filepath.Join(c.bin, "postgres")
	info, err := os.Stat(program)
	if err != nil {
		return ""
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s %d %v %q", program, info.Size(), info.ModTime(), initdbFlags))
	return filepath.Join(caches, "hookglass", "storetest", fmt.Sprintf("%x", key[:8]))
}

// copyKept makes the data directory of what is kept.
func (c *Cluster) copyKept(kept string) error {
	if kept == "" {
		return errors.ErrUnsupported
	}
	uid, gid := -1, -1
	if c.cred != nil {
		uid, gid = int(c.cred.Uid), int(c.cred.Gid)
	}
	return copyTree(kept, c.data(), uid, gid)
}

// keep keeps the data directory for those who come later, in place of one that did not start. That it can not is no
// fault, and neither is another who was quicker.
func (c *Cluster) keep(kept string, broken bool) {
	if kept == "" || os.MkdirAll(filepath.Dir(kept), 0o700) != nil {
		return
	}
	part, err := os.MkdirTemp(filepath.Dir(kept), "new")
	if err != nil {
		return
	}
	defer os.RemoveAll(part)
	if copyTree(c.data(), filepath.Join(part, "data"), -1, -1) != nil {
		return
	}
	if broken {
		_ = os.Rename(kept, filepath.Join(part, "broken"))
	}
	_ = os.Rename(filepath.Join(part, "data"), kept)
}

// copyTree copies a directory of files and directories, and gives the copy to a user.
func copyTree(from, to string, uid, gid int) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(to, path[len(from):])
		if d.IsDir() {
			err = os.Mkdir(at, 0o700)
		} else {
			var content []byte
			if content, err = os.ReadFile(path); err == nil {
				err = os.WriteFile(at, content, 0o600)
			}
		}
		if err == nil && uid >= 0 {
			err = os.Lchown(at, uid, gid)
		}
		return err
	})
}
