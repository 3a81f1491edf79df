package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// SQLite is told a path as a URI, in which these characters mean something.
func TestADatabaseMayHaveAnyPath(t *testing.T) {
	for _, name := range []string{"a b", "p%20q%zz", "q?mode=ro", "h#frag", "s;x&y=1", "Ordnerä-日本", "it's \"q\"", "file:x"} {
		for _, linked := range []bool{false, true} {
			dir := filepath.Join(t.TempDir(), name)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			at := dir
			if linked {
				at = filepath.Join(t.TempDir(), "link")
				if err := os.Symlink(dir, at); err != nil {
					t.Fatal(err)
				}
			}
			db := storetest.Open(t, store.Config{Path: filepath.Join(at, "hookglass.db"), Reserve: true})
			if err := db.Migrate(t.Context()); err != nil {
				t.Errorf("%s: %v", at, err)
				continue
			}
			if err := db.Capture(t.Context(), 0, newEvent(newEndpoint(t, db), "{}")); err != nil {
				t.Errorf("%s: %v", at, err)
			}
			if err := db.Close(); err != nil {
				t.Errorf("%s: %v", at, err)
			}
			if info, err := os.Stat(filepath.Join(dir, "hookglass.db")); err != nil || info.Size() < 8192 {
				t.Errorf("%s: the file is not where it was asked for: %v", at, err)
			}
			beside, err := os.ReadDir(filepath.Dir(dir))
			if err != nil || len(beside) != 1 {
				t.Errorf("%s: beside the directory there is %v: %v", dir, beside, err)
			}
		}
	}
}
