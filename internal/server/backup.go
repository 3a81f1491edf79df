package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/seal"
	"hookglass/internal/store"
)

// BackupCmd is `hookglass backup`.
type BackupCmd struct {
	Storage
	output
	File        string `arg:"" type:"path" help:"The file to write; an existing one is replaced when the backup is complete."`
	WithoutKeys bool   `help:"Leave out the keyset, to keep it elsewhere: without it secrets cannot be read."`
}

// keyCheck is the constant that a backup seals to recognise the keyset, and its place.
const (
	keyCheckText  = "hookglass backup"
	keyCheckWhere = "backup.key_check"
)

// Run implements the command.
func (c *BackupCmd) Run(ctx context.Context, t *Terminal) error {
	if c.File == "-" { // usually it means standard output, so a file of that name would surprise
		return UsageError{errors.New("a backup is a file that takes its name once it is complete: name one")}
	}
	if !c.exists() {
		return c.missing()
	}
	if err := c.mayTake(); err != nil {
		return err
	}
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	place := c.File
	if there, err := filepath.EvalSymlinks(c.File); err == nil { // replace the file that a link points to, not the link
		place = there
	}
	sweep(filepath.Dir(place), unfinished(place))
	out, err := os.CreateTemp(filepath.Dir(place), unfinished(place)+"*") // mode 0600
	if fault := (*fs.PathError)(nil); errors.As(err, &fault) {            // the user's name for the file, not the temporary one
		return remedied(fmt.Errorf("%s cannot be written: %w", c.File, fault.Err))
	}
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	_ = holdFile(out) // the backup does not depend on the lock
	rows, keys, err := c.write(ctx, db, out)
	if err != nil {
		return fmt.Errorf("backup: %w", remedied(err))
	}
	size, err := out.Seek(0, io.SeekCurrent)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := os.Rename(out.Name(), place); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := syncDir(filepath.Dir(place)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return c.print(t, map[string]any{"file": c.File, "bytes": size, "rows": rows, "keys": keys == keysIn},
		line("Wrote %s: %d rows, %d bytes. %s", c.File, rows, size, c.keysNote(keys)))
}

// keysTaken is what happened to the keyset in a backup.
type keysTaken int

const (
	keysOut       keysTaken = iota // left out, or there is none
	keysIn                         // in the backup
	keysMissing                    // secrets were sealed with it, but its file is missing
	keysOfAnother                  // left out, because the secrets were sealed with another
)

// keysNote describes what happened to the keyset.
func (c *BackupCmd) keysNote(taken keysTaken) string {
	switch taken {
	case keysIn:
		return "It holds the keyset: keep it as safe as the secrets."
	case keysMissing:
		return fmt.Sprintf("It does not hold the keyset: %s is missing, and secrets were sealed with it. Name it by --secret-key-file, or keep it elsewhere: they cannot be read without it.", c.keyFile())
	case keysOfAnother:
		return fmt.Sprintf("It does not hold the keyset: %s opens none of the newest secrets. Bring the right one, without which they cannot be read.", c.keyFile())
	}
	return "It does not hold the keyset, without which secrets cannot be read."
}

// mayTake refuses a destination that a backup must not replace: a device, pipe or directory, and the installation's own
// files, which someone may name who takes the argument for what to back up.
func (c *BackupCmd) mayTake() error {
	there, err := os.Stat(c.File)
	if err == nil && !there.Mode().IsRegular() {
		return fmt.Errorf("%s is there and is no file", c.File)
	}
	owns := []string{c.keyFile(), filepath.Join(c.Data, lockFile), filepath.Join(c.Data, devFile)}
	for _, database := range []string{databaseFile, restoreFile} {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal", "-reserve"} {
			owns = append(owns, filepath.Join(c.Data, database+suffix))
		}
	}
	for _, own := range owns {
		named := filepath.Base(own) == filepath.Base(c.File) && sameFile(filepath.Dir(own), filepath.Dir(c.File))
		if named || sameFile(own, c.File) {
			return UsageError{fmt.Errorf("%s is a file of the installation itself; name another, which the backup is written to", c.File)}
		}
	}
	return nil
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
		if !strings.HasPrefix(e.Name(), prefix) || !e.Type().IsRegular() {
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

// write writes the backup, and returns the number of rows and what happened to the keyset.
func (c *BackupCmd) write(ctx context.Context, db *store.DB, out io.Writer) (rows int64, taken keysTaken, err error) {
	m, taken, err := c.describe(ctx, db)
	if err != nil {
		return 0, taken, err
	}
	a, err := newArchiveWriter(out, m)
	if err != nil {
		return 0, taken, err
	}
	schema, err := db.Dump(ctx, a)
	if err != nil {
		return 0, taken, err
	}
	if schema != m.Schema {
		return 0, taken, errors.New("the schema was migrated meanwhile; try again")
	}
	if m.Keys {
		// After the rows: a key that was added meanwhile may have sealed some of them, and keys are never removed.
		content, err := os.ReadFile(c.keyFile())
		if err != nil {
			return 0, taken, err
		}
		if err := a.entry(keysEntry, content); err != nil {
			return 0, taken, err
		}
	}
	return a.rows, taken, a.close()
}

// describe returns the manifest. It refuses a database that makes no useful backup.
func (c *BackupCmd) describe(ctx context.Context, db *store.DB) (m manifest, taken keysTaken, err error) {
	m = manifest{Format: archiveFormat, Program: hookglass.Version, CreatedAt: time.Now().UTC(), Database: "sqlite"}
	if db.Postgres() {
		m.Database = "postgres"
	}
	var need int64
	if m.Schema, need, err = db.SchemaVersion(ctx); err != nil {
		return m, taken, err
	}
	if err := db.Foreign(ctx); err != nil {
		return m, taken, err
	}
	if m.Schema == 0 { // an empty backup would replace the last good one, and could not be restored
		return m, taken, errors.New("nothing was ever stored in the database: name the one of the service by --data or --database-url")
	}
	current := m.Schema == need
	if current {
		if err := filled(ctx, db); err != nil { // once restored, an incomplete installation could not be told from a complete one
			return m, taken, err
		}
	}
	taken, err = c.takeKeys(ctx, db, current, &m)
	return m, taken, err
}

// takeKeys records in the manifest whether the keyset is in the backup, and how to recognise it. A keyset that opens
// none of the secrets is left out: whoever restores it would believe to have the right one, and the right one would be
// refused. With an outdated schema the secrets cannot be checked.
func (c *BackupCmd) takeKeys(ctx context.Context, db *store.DB, current bool, m *manifest) (keysTaken, error) {
	keys, err := seal.Load(c.keyFile())
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return keysOut, err
	}
	var sealed []store.SealedSecret
	if current {
		var err error
		if sealed, err = newestSealed(ctx, db, startSample); err != nil {
			return keysOut, err
		}
	}
	switch {
	case missing && len(sealed) > 0 && !c.WithoutKeys:
		return keysMissing, nil
	case missing: // there is no keyset
		return keysOut, nil
	case opensNone(keys, sealed):
		return keysOfAnother, nil
	}
	if m.KeyCheck, err = keys.Seal([]byte(keyCheckText), keyCheckWhere); err != nil {
		return keysOut, err
	}
	if m.Keys = !c.WithoutKeys; m.Keys {
		return keysIn, nil
	}
	return keysOut, nil
}

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
		err = c.intoPostgres(ctx, a, newKeys, load)
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
			slices.ContainsFunc([]string{restoreFile, freshPrefix, probePrefix}, func(left string) bool { return strings.HasPrefix(e.Name(), left) })
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

func (c *RestoreCmd) intoPostgres(ctx context.Context, a *archive, newKeys []byte, load func(store.Sink) error) error {
	return fill(ctx, store.Config{URL: c.DatabaseURL}, a, c.Force, func(sink store.Sink) error {
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
