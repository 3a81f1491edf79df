package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hookglass/internal/store"
)

// Commands are the commands that run the service or work directly on its data; the program adds those that talk to a
// server.
type Commands struct {
	Serve   ServeCmd   `cmd:"" group:"server" help:"Run the service."`
	Dev     DevCmd     `cmd:"" group:"server" help:"Run the service for one person on one machine, and print how to use it."`
	Migrate MigrateCmd `cmd:"" group:"server" help:"Bring the database's schema up to date, which serve does by itself; or move an embedded database to PostgreSQL."`
	Backup  BackupCmd  `cmd:"" group:"server" help:"Write everything that is stored to a file, also while the service runs."`
	Restore RestoreCmd `cmd:"" group:"server" help:"Fill a data directory or database from a backup."`
	Doctor  DoctorCmd  `cmd:"" group:"server" help:"Look for what is wrong: configuration, data, database, keys, certificates, mail, and the way to the public address."`
	Health  HealthCmd  `cmd:"" group:"server" help:"Ask the service on this machine whether it is ready; for health checks."`
	Admin   AdminCmd   `cmd:"" group:"server" help:"Manage users, accounts, workspaces, tokens and keys, with or without a running server."`
}

// Terminal is what a command reads and writes.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	Typed    bool // In is a keyboard, so prompt
}

// log says on the terminal what a command waits for, such as others that use the tables of a schema that it changes.
func (t *Terminal) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// output selects how a command that works on the data prints its result.
type output struct {
	JSON bool `name:"json" help:"Print one JSON object instead of text."`
}

// print writes the object, or what text writes.
func (o output) print(t *Terminal, object any, text func(io.Writer) error) error {
	if !o.JSON {
		return text(t.Out)
	}
	e := json.NewEncoder(t.Out)
	e.SetEscapeHTML(false)
	return e.Encode(object)
}

// line is a text of one line.
func line(format string, args ...any) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		return err
	}
}

// span is a duration that may be in days, as is usual for the life of tokens and data.
type span time.Duration

// UnmarshalText reads what [ParseDuration] does.
func (s *span) UnmarshalText(text []byte) error {
	d, err := ParseDuration(string(text))
	*s = span(d)
	return err
}

// ParseDuration parses 720h, 90m or 30d, the form of all duration flags.
func ParseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("%q is not a number of days up to 65535", text)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 30d, 720h or 15m", text)
	}
	return d, nil
}

// isPostgresURL reports whether the address of a database is one of PostgreSQL. Errors about one that is not must not
// quote it: it may hold a password.
func isPostgresURL(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// databasePath is the file of the embedded database.
func (s Storage) databasePath() string { return filepath.Join(s.Data, databaseFile) }

// exists reports whether there is a database to work on. It assumes so for a PostgreSQL URL, and for a file that cannot
// be examined: opening it will say why.
func (s Storage) exists() bool {
	if s.DatabaseURL != "" {
		return true
	}
	_, err := os.Stat(s.databasePath())
	return !errors.Is(err, fs.ErrNotExist)
}

// missing returns the error when there is no database to work on.
func (s Storage) missing() error {
	return fmt.Errorf("there is no database in %s: name the one of the service by --data or --database-url", s.Data)
}

// open opens the database without migrating it. What it says goes to log, if that is not nil.
func (s Storage) open(ctx context.Context, log *slog.Logger) (*store.DB, error) {
	if s.DatabaseURL != "" && !isPostgresURL(s.DatabaseURL) {
		return nil, UsageError{errors.New("--database-url must begin with postgres://")}
	}
	db, err := store.Open(ctx, store.Config{Path: s.databasePath(), URL: s.DatabaseURL, Log: log})
	return db, remedied(err)
}

// makeDirectory creates the data directory if it is missing.
func (s Storage) makeDirectory() error {
	err := os.MkdirAll(s.Data, 0o700)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("data directory: %w", err)
	switch {
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENOTDIR):
		return remedy{err, "a part of its path is a file, or a link to what is not there: name a directory by --data"}
	case errors.Is(err, fs.ErrPermission):
		return remedy{err, "name a directory that this user may make by --data, or run this as the user whose it is (with a package, by hookglass-service)"}
	case errors.Is(err, fs.ErrNotExist):
		return remedy{err, "the directory that this was started in is gone, or takes no other: name one by its whole path in --data"}
	}
	return remedied(err)
}

// prepare opens the database with its schema up to date, creating what is missing. A remote database needs no local
// directory, which might be impossible to create.
func (s Storage) prepare(ctx context.Context, log *slog.Logger) (*store.DB, error) {
	if s.DatabaseURL == "" {
		if err := s.makeDirectory(); err != nil {
			return nil, err
		}
		if err := s.restored(); err != nil {
			return nil, err
		}
	}
	db, err := s.open(ctx, log)
	if err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx); err != nil {
		db.Close()
		return nil, remedied(err)
	}
	return db, nil
}

// MigrateCmd is `hookglass migrate`.
type MigrateCmd struct {
	Storage
	output
	To      string `env:"HOOKGLASS_MIGRATE_TO" placeholder:"URL" help:"Copy the embedded database into this empty postgres://… database and compare the two row by row. What was cut off goes on."`
	Restart bool   `help:"With --to: empty a destination that an earlier copy filled, with all that it received since, and begin anew."`
}

func (c *MigrateCmd) Run(ctx context.Context, t *Terminal) error {
	if c.To != "" {
		return c.moveTo(ctx, t)
	}
	if c.Restart {
		return UsageError{errors.New("--restart begins a move anew: it goes with --to")}
	}
	db, err := c.prepare(ctx, t.log())
	if err != nil && ctx.Err() != nil { // the last error may be what it waited for
		return errors.New("the change of the schema did not come to its end: it was stopped; run the same command again, and it goes on where it was")
	}
	if err != nil {
		return err
	}
	defer db.Close()
	have, _, err := db.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	return c.print(t, map[string]any{"schema_version": have}, line("The schema is at version %d.", have))
}
