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
	WithoutKeys bool   `help:"Leave out the keyset, to keep it elsewhere: without it secrets can not be read."`
}

// keyCheck is what a backup seals to recognise the keyset, and where.
const (
	keyCheckText  = "hookglass backup"
	keyCheckWhere = "backup.key_check"
)

// Run implements the command.
func (c *BackupCmd) Run(ctx context.Context, t *Terminal) error {
	if c.File == "-" { // elsewhere it stands for standard output, and a file of that name would surprise
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
	if there, err := filepath.EvalSymlinks(c.File); err == nil { // a link keeps leading where it leads
		place = there
	}
	sweep(place)
	out, err := os.CreateTemp(filepath.Dir(place), unfinished(place)+"*") // mode 0600
	if fault := (*fs.PathError)(nil); errors.As(err, &fault) {            // and not the name of the file that was to take its place
		return remedied(fmt.Errorf("%s can not be written: %w", c.File, fault.Err))
	}
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	_ = holdFile(out) // where it cannot be held it is written all the same
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

// keysTaken is what became of the keyset in a backup.
type keysTaken int

const (
	keysOut       keysTaken = iota // left out, or there is none
	keysIn                         // in the backup
	keysMissing                    // secrets were sealed with it, and it is not where it was said to be
	keysOfAnother                  // left out, because it is not what the secrets were sealed with
)

// keysNote says what became of the keyset.
func (c *BackupCmd) keysNote(taken keysTaken) string {
	switch taken {
	case keysIn:
		return "It holds the keyset: keep it as safe as the secrets."
	case keysMissing:
		return fmt.Sprintf("It does not hold the keyset: %s is missing, and secrets were sealed with it. Name it by --secret-key-file, or keep it elsewhere: they can not be read without it.", c.KeyFile())
	case keysOfAnother:
		return fmt.Sprintf("It does not hold the keyset: %s opens none of the newest secrets. Bring the right one, without which they can not be read.", c.KeyFile())
	}
	return "It does not hold the keyset, without which secrets can not be read."
}

// mayTake refuses a file whose place the backup cannot take. No device, pipe or directory is there for that, and what
// the installation consists of would be gone: its name is given by whoever takes it for what is backed up.
func (c *BackupCmd) mayTake() error {
	there, err := os.Stat(c.File)
	if err == nil && !there.Mode().IsRegular() {
		return fmt.Errorf("%s is there and is no file", c.File)
	}
	database := c.databasePath()
	for _, own := range []string{database, database + "-wal", database + "-shm", c.KeyFile(), filepath.Join(c.Data, lockFile), filepath.Join(c.Data, devFile)} {
		mine, missing := os.Stat(own)
		if filepath.Clean(own) == filepath.Clean(c.File) || err == nil && missing == nil && os.SameFile(there, mine) {
			return UsageError{fmt.Errorf("%s is a file of the installation itself; name another, which the backup is written to", c.File)}
		}
	}
	return nil
}

// unfinished is how the name of a backup that is being written begins.
func unfinished(place string) string { return "." + filepath.Base(place) + ".unfinished-" }

// sweep removes what backups into this file that were killed have left. Each is as large as a backup, and nobody looks
// for it. One that another process holds is being written; one that it has not come to hold yet cannot take the file's
// place any more, and says so.
func sweep(place string) {
	entries, _ := os.ReadDir(filepath.Dir(place)) // without them the backup says what is wrong
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), unfinished(place)) || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(filepath.Dir(place), e.Name())
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

// write writes the backup and reports how many rows it has and what became of the keyset.
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
		// After the rows: a key that was added meanwhile has sealed some of them, and none is ever taken away.
		content, err := os.ReadFile(c.KeyFile())
		if err != nil {
			return 0, taken, err
		}
		if err := a.entry(keysEntry, content); err != nil {
			return 0, taken, err
		}
	}
	return a.rows, taken, a.close()
}

// describe says what the backup will hold. It refuses a database that makes no backup worth the name.
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
	if m.Schema == 0 { // the empty backup would take the place of the last good one, and none restores it
		return m, taken, errors.New("nothing was ever stored in the database: name the one of the service by --data or --database-url")
	}
	current := m.Schema == need
	if current {
		if err := filled(ctx, db); err != nil { // half of an installation is not one that can be told from the whole once it is restored
			return m, taken, err
		}
	}
	taken, err = c.takeKeys(ctx, db, current, &m)
	return m, taken, err
}

// takeKeys says in the manifest whether the keyset is in the backup, and what tells it from others. One that opens no
// secret is left out: who restores it would believe to have the right one, and be refused with the right one. The
// secrets of a schema that is not current cannot be told.
func (c *BackupCmd) takeKeys(ctx context.Context, db *store.DB, current bool, m *manifest) (keysTaken, error) {
	keys, err := seal.Load(c.KeyFile())
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return keysOut, err
	}
	var sealed []store.SealedSecret
	if current {
		var err error
		if sealed, err = newestSealed(ctx, db); err != nil {
			return keysOut, err
		}
	}
	switch {
	case missing && len(sealed) > 0 && !c.WithoutKeys:
		return keysMissing, nil
	case missing: // there is nothing to take
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

// restoreFile is where a restore fills the database that takes the other's place.
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
	if err := c.mayReplace(ctx, a); err != nil {
		return err
	}
	newKeys, err := c.chooseKeys(a)
	if err != nil {
		return err
	}
	if c.DatabaseURL == "" || newKeys != nil {
		if err := c.makeDirectory(); err != nil {
			return err
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
		return fmt.Errorf("restore: %w", err)
	}
	return c.print(t, map[string]any{"file": c.File, "rows": a.rows, "keys": a.keys != nil, "created_at": stamp(a.manifest.CreatedAt)},
		line("Restored %d rows from the backup of %s.", a.rows, date(a.manifest.CreatedAt)))
}

// mayReplace refuses a place in use, and one that is not empty without --force.
func (c *RestoreCmd) mayReplace(ctx context.Context, a *archive) error {
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
		// What a restore that was cut off left is not in the way, nor is the backup itself where the service's user may
		// write nowhere else, and a backup without the keyset needs it to be there first.
		info, err := e.Info()
		own := e.Name() == lockFile || strings.HasPrefix(e.Name(), restoreFile) || err == nil && os.SameFile(info, backup) ||
			a.keys == nil && filepath.Join(c.Data, e.Name()) == filepath.Clean(c.KeyFile())
		if !own && !c.Force {
			return fmt.Errorf("%s is not empty; --force replaces the database in it", c.Data)
		}
	}
	return nil
}

// chooseKeys returns the keyset to write, nil when the one that is there opens the backup's secrets, as one
// that was rotated since does. It refuses when neither does.
func (c *RestoreCmd) chooseKeys(a *archive) ([]byte, error) {
	opens := func(k *seal.Keys) bool {
		_, err := k.Open(a.manifest.KeyCheck, keyCheckWhere)
		return err == nil
	}
	present, err := seal.Load(c.KeyFile())
	switch {
	case err == nil && (len(a.manifest.KeyCheck) == 0 || opens(present)):
		return nil, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !c.Force:
		return nil, err
	case len(a.manifest.KeyCheck) == 0:
		return nil, nil // nothing was sealed
	case a.keys == nil && err == nil:
		return nil, fmt.Errorf("the keyset %s is not the one that the backup's secrets were sealed with", c.KeyFile())
	case a.keys == nil:
		return nil, fmt.Errorf("the backup was made without its keyset: put that at %s first", c.KeyFile())
	case err == nil && !c.Force:
		return nil, fmt.Errorf("there is another keyset at %s; --force puts the backup's in its place and keeps the other beside it", c.KeyFile())
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

// intoSQLite fills a new file and puts it in the place of the old one at the end.
func (c *RestoreCmd) intoSQLite(ctx context.Context, a *archive, newKeys []byte, load func(store.Sink) error) error {
	fresh := filepath.Join(c.Data, restoreFile)
	removeFresh := func() {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			os.Remove(fresh + suffix)
		}
	}
	removeFresh() // of a restore that was cut off
	defer removeFresh()
	if err := fill(ctx, store.Config{Path: fresh}, a, false, load); err != nil {
		return err
	}
	if _, err := os.Stat(fresh + "-wal"); err == nil { // the file alone takes the place of the old one
		return errors.New("the new database could not be written in full: is the disk full?")
	}
	if err := c.placeKeys(newKeys); err != nil {
		return err
	}
	// The old file's log goes first: it would be taken for the new one's.
	for _, suffix := range []string{"-wal", "-shm"} {
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
	if err := fill(ctx, store.Config{URL: c.DatabaseURL}, a, c.Force, load); err != nil {
		return err
	}
	return c.placeKeys(newKeys)
}

// fill loads the backup into a database with the backup's schema, and migrates it from there.
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
	if have == 0 {
		if err := db.MigrateTo(ctx, a.manifest.Schema); err != nil {
			return remedied(err)
		}
	}
	if err := db.Load(ctx, a.manifest.Schema, replace, load); err != nil {
		return err
	}
	return db.Migrate(ctx)
}

// placeKeys writes the keyset, keeping one that it replaces under another name: keys are never destroyed.
func (c *RestoreCmd) placeKeys(content []byte) error {
	if content == nil {
		return nil
	}
	path := c.KeyFile()
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
	if err := dir.Sync(); err != nil && runtime.GOOS != "windows" { // where a directory cannot be synced
		return err
	}
	return nil
}
