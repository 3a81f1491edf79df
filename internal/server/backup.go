package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	db, err := c.open(ctx, nil)
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
	if fault, ok := errors.AsType[*fs.PathError](err); ok {               // the user's name for the file, not the temporary one
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
	text := fmt.Sprintf("Wrote %s: %d rows, %d bytes.", c.File, rows, size)
	if note := c.keysNote(keys); keys == keysMissing || keys == keysOfAnother {
		fmt.Fprintln(t.Err, "hookglass: "+note) // a timer's output goes nowhere or to a program, its errors to a person
	} else {
		text += " " + note
	}
	return c.print(t, map[string]any{"file": c.File, "bytes": size, "rows": rows, "keys": keys == keysIn}, line("%s", text))
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
		return fmt.Sprintf("The backup does not hold the keyset: %s is missing, and secrets were sealed with it. Name it by --secret-key-file, or keep it elsewhere: they cannot be read without it.", c.keyFile())
	case keysOfAnother:
		return fmt.Sprintf("The backup does not hold the keyset: %s opens none of the newest secrets. Bring the right one, without which they cannot be read.", c.keyFile())
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
