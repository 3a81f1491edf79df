package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hookglass/internal/seal"
	"hookglass/internal/store"
)

// RestoreCmd is `hookglass restore`.
type RestoreCmd struct {
	Storage
	output
	File  string `arg:"" type:"path" help:"The backup."`
	Force bool   `help:"Replace what the data directory or database holds."`
}

// restoreFile is the file in which a restore builds the new database.
const restoreFile = "restore.db"

// Run implements the command. It checks everything that can be checked before it writes anything.
func (c *RestoreCmd) Run(ctx context.Context, t *Terminal) error {
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(0, io.SeekCurrent); err != nil {
		return fmt.Errorf("restore: %s is read twice, which a pipe cannot be: it must be a file", c.File)
	}
	a, err := readArchive(file, check{})
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if err := c.mayReplace(ctx); err != nil {
		return err
	}
	newKeys, err := c.chooseKeys(a)
	if err != nil {
		return err
	}
	if c.DatabaseURL == "" || newKeys != nil && c.SecretKeyFile == "" {
		if err := c.makeDirectory(); err != nil {
			return err
		}
	}
	if newKeys != nil { // before the rows, which could not be used without them
		if err := writable(filepath.Dir(c.keyPlace())); err != nil {
			return remedied(fmt.Errorf("the keyset cannot be written to %s: %w", c.keyFile(), err))
		}
	}
	if c.DatabaseURL == "" {
		release, err := lockData(c.Data)
		if err != nil {
			return err
		}
		defer release()
	}
	load := func(sink store.Sink) error {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := readArchive(file, sink)
		return err
	}
	if c.DatabaseURL != "" {
		err = c.intoPostgres(ctx, a, newKeys, load, t.log())
	} else {
		err = c.intoSQLite(ctx, a, newKeys, load)
	}
	if errors.Is(err, store.ErrNotEmpty) {
		return errors.New("the database is not empty; --force replaces what it holds")
	}
	if err != nil {
		return fmt.Errorf("restore: %w", remedied(err))
	}
	return c.print(t, map[string]any{"file": c.File, "rows": a.rows, "keys": a.keys != nil, "created_at": stamp(a.manifest.CreatedAt)},
		line("Restored %d rows from the backup of %s.", a.rows, date(a.manifest.CreatedAt)))
}

// mayReplace refuses a data directory that is in use, and one that is not empty without --force.
func (c *RestoreCmd) mayReplace(ctx context.Context) error {
	if c.DatabaseURL != "" {
		used, err := store.PostgresInUse(ctx, c.DatabaseURL)
		if err != nil {
			return err
		}
		if used {
			return errors.New("the database is in use by another hookglass process; stop it first")
		}
		return nil // Load refuses one that is not empty
	}
	entries, err := os.ReadDir(c.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		release, err := lockData(c.Data)
		if err != nil {
			return err
		}
		release()
	}
	backup, err := os.Stat(c.File)
	if err != nil {
		return err
	}
	for _, e := range entries {
		// Leftovers of an interrupted restore are fine, and so is the backup itself, since the service's user may be
		// able to write nowhere else. The keyset may be one of them, or was put there; chooseKeys judges it.
		info, err := e.Info()
		own := e.Name() == lockFile || err == nil && os.SameFile(info, backup) || filepath.Join(c.Data, e.Name()) == filepath.Clean(c.keyFile()) ||
			strings.HasPrefix(e.Name(), restoreFile) || temporary(e.Name(), freshPrefix) || temporary(e.Name(), probePrefix)
		if !own && !c.Force {
			return fmt.Errorf("%s is not empty; --force replaces the database in it", c.Data)
		}
	}
	return nil
}

// chooseKeys returns the keyset to write, or nil if the existing one opens the backup's secrets, even after a rotation.
// It refuses if neither keyset does.
func (c *RestoreCmd) chooseKeys(a *archive) ([]byte, error) {
	opens := func(k *seal.Keys) bool {
		_, err := k.Open(a.manifest.KeyCheck, keyCheckWhere)
		return err == nil
	}
	present, err := seal.Load(c.keyFile())
	switch {
	case err == nil && (len(a.manifest.KeyCheck) == 0 || opens(present)):
		return nil, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !c.Force:
		return nil, err
	case len(a.manifest.KeyCheck) == 0:
		return nil, nil // nothing was sealed
	case a.keys == nil && err == nil:
		return nil, fmt.Errorf("the keyset %s is not the one that the backup's secrets were sealed with", c.keyFile())
	case a.keys == nil:
		return nil, fmt.Errorf("the backup was made without its keyset: put that at %s first", c.keyFile())
	case err == nil && !c.Force:
		return nil, fmt.Errorf("there is another keyset at %s; --force puts the backup's in its place and keeps the other beside it", c.keyFile())
	}
	k, err := seal.Parse(a.keys)
	if err != nil {
		return nil, err
	}
	if !opens(k) {
		return nil, errors.New("the keyset in the backup does not open its secrets")
	}
	return a.keys, nil
}

// restored answers an error when a restore into the data directory was cut off before there was a database: who makes
// what is missing would begin an empty one, and nobody would notice that the restored one is missing.
func (s Storage) restored() error {
	if _, err := os.Stat(filepath.Join(s.Data, restoreFile)); err != nil || s.exists() {
		return nil
	}
	return fmt.Errorf("a restore into %s was cut off: run it again, or remove %s there to begin with an empty database", s.Data, restoreFile)
}

// intoSQLite fills a new file and finally replaces the old one with it.
func (c *RestoreCmd) intoSQLite(ctx context.Context, a *archive, newKeys []byte, load func(store.Sink) error) error {
	fresh := filepath.Join(c.Data, restoreFile)
	removeFresh := func() {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			os.Remove(fresh + suffix)
		}
	}
	removeFresh() // left by an interrupted restore
	defer removeFresh()
	if err := fill(ctx, store.Config{Path: fresh}, a, false, load); err != nil {
		return err
	}
	if _, err := os.Stat(fresh + "-wal"); err == nil { // only the file itself replaces the old one
		return errors.New("the new database could not be written in full: is the disk full?")
	}
	if err := c.placeKeys(newKeys); err != nil {
		return err
	}
	// Remove the old file's log, or it would be applied to the new file. The old file goes first: without its log it
	// lacks the latest changes, and a server would start with that if this was cut off.
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(c.databasePath() + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(fresh, c.databasePath()); err != nil {
		return err
	}
	return syncDir(c.Data)
}

func (c *RestoreCmd) intoPostgres(ctx context.Context, a *archive, newKeys []byte, load func(store.Sink) error, log *slog.Logger) error {
	return fill(ctx, store.Config{URL: c.DatabaseURL, Log: log}, a, c.Force, func(sink store.Sink) error {
		if err := load(sink); err != nil {
			return err
		}
		return c.placeKeys(newKeys) // before the rows are committed: once the database is filled, the next try is refused
	})
}

// fill loads the backup into a database with the backup's schema, and then migrates it.
func fill(ctx context.Context, cfg store.Config, a *archive, replace bool, load func(store.Sink) error) (err error) {
	db, err := store.Open(ctx, cfg)
	if err != nil {
		return remedied(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	have, need, err := db.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if a.manifest.Schema > need {
		return fmt.Errorf("the backup was made by a newer version (%s): restore it with that", a.manifest.Program)
	}
	unused := have == 0
	if 0 < have && have <= a.manifest.Schema { // the first migration may have been cut off, also before its last step
		used, err := db.Used(ctx)
		if err != nil {
			return err
		}
		unused = !used
	}
	if unused {
		if err := db.PrepareLoad(ctx, a.manifest.Schema); err != nil {
			return remedied(err)
		}
	}
	if err := db.Load(ctx, a.manifest.Schema, replace, load); err != nil {
		return err
	}
	return db.Migrate(ctx)
}

// keyPlace is the path that the keyset is written to: where a link leads, as in a rotation.
func (c *RestoreCmd) keyPlace() string {
	if there, err := filepath.EvalSymlinks(c.keyFile()); err == nil {
		return there
	}
	return c.keyFile()
}

// placeKeys writes the keyset, and keeps the replaced one under another name: keys are never destroyed.
func (c *RestoreCmd) placeKeys(content []byte) error {
	if content == nil {
		return nil
	}
	path := c.keyPlace()
	return replaceFile(path, content, func() error {
		old := path + ".before-" + time.Now().UTC().Format("20060102T150405.000")
		if err := os.Link(path, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}
