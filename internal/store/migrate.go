package store

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// Migrate brings the schema up to date. Processes that start together wait for each other, and the next call repeats or
// continues a migration that a crash interrupted. It refuses the schema of a newer program with a [SchemaError],
// because it cannot know what to preserve. It returns a [MissingRight] if the role lacks the right, a [NotWritable] if
// nobody may write, and an [EncodingError], even with a current schema, if the database cannot hold what senders write.
func (db *DB) Migrate(ctx context.Context) error {
	if err := db.Foreign(ctx); err != nil {
		return err
	}
	if err := db.Encodes(ctx); err != nil {
		return err
	}
	have, need, err := db.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if err := refuseNewer(have, need); err != nil {
		return err
	}
	if have < need {
		if err := db.MayCreate(ctx); err != nil {
			return err
		}
	}
	return notConnected(db.migrate(ctx, func(ctx context.Context, p *goose.Provider) ([]*goose.MigrationResult, error) { return p.Up(ctx) }))
}

// ErrForeign says that a database holds tables of another program.
var ErrForeign = errors.New("store: the database holds tables of another program")

// ErrHidden says that our tables stand in a schema behind the first one of the search_path, where new ones would go.
var ErrHidden = errors.New("store: the tables are not in the first schema of the role's search_path")

// Foreign returns ErrForeign if tables of another program have names that ours need, or ErrHidden. It changes nothing.
func (db *DB) Foreign(ctx context.Context) error {
	have, _, err := db.SchemaVersion(ctx) // first: the tables and the version are created in one transaction
	if err != nil {
		return err
	}
	there, err := db.dialect.tablesOf(ctx, db.read)
	if err != nil {
		return classify(err)
	}
	if slices.Contains(there, firstTable) {
		return nil
	}
	if db.dialect == postgres {
		var hidden bool
		// Another node may have created the tables since, in the schema where they belong.
		err := db.read.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('"+firstTable+"') "+
			"AND relnamespace IS DISTINCT FROM (SELECT oid FROM pg_namespace WHERE nspname = current_schema()))").Scan(&hidden)
		if err != nil || hidden {
			return cmp.Or(classify(err), ErrHidden)
		}
	}
	if i := slices.IndexFunc(there, func(name string) bool { return made()[name] || name == versionTable && have > 0 }); i >= 0 {
		return fmt.Errorf("%w: %s", ErrForeign, there[i])
	}
	return nil
}

// SchemaError says that the schema of a database is not the one that this program knows.
type SchemaError struct {
	Have, Need int64 // versions; Have is 0 if there is no schema
}

func (e *SchemaError) Error() string {
	switch {
	case e.Newer():
		return fmt.Sprintf("the schema has version %d and was made by a newer program than this one, which knows %d", e.Have, e.Need)
	case e.Have == 0:
		return "the database has no schema yet"
	}
	return fmt.Sprintf("the schema has version %d and this program needs %d", e.Have, e.Need)
}

// Newer reports whether a newer program than this one made the schema.
func (e *SchemaError) Newer() bool { return e.Have > e.Need }

// Current returns a [SchemaError] if the schema is not this program's, and ErrForeign as Foreign does. It changes
// nothing.
func (db *DB) Current(ctx context.Context) error {
	if err := db.Foreign(ctx); err != nil {
		return err
	}
	have, need, err := db.SchemaVersion(ctx)
	if err != nil || have == need {
		return err
	}
	return &SchemaError{have, need}
}

// refuseNewer returns a [SchemaError] if the schema is of a newer program.
func refuseNewer(have, need int64) error {
	if have <= need {
		return nil
	}
	return &SchemaError{have, need}
}

// MigrateTo brings the schema of an empty database to an earlier version, that of a dump to load.
func (db *DB) MigrateTo(ctx context.Context, version int64) error {
	for _, refuses := range []func(context.Context) error{db.Foreign, db.Encodes, db.MayCreate} {
		if err := refuses(ctx); err != nil {
			return err
		}
	}
	return notConnected(db.migrate(ctx, func(ctx context.Context, p *goose.Provider) ([]*goose.MigrationResult, error) {
		return p.UpTo(ctx, version)
	}))
}

// notConnected gives err the code unavailable where a connection was wanted and not given. What else stands in the way
// of a migration a second try would not mend.
func notConnected(err error) error {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return classify(err)
	}
	return err
}

// quietFor is how long the schema may take before the operator is told what a start waits for.
const quietFor = 2 * time.Second

func (db *DB) migrate(ctx context.Context, up func(context.Context, *goose.Provider) ([]*goose.MigrationResult, error)) error {
	defer time.AfterFunc(quietFor, func() {
		db.log.Warn("still preparing the schema, which takes a while on a slow disk, with much data, and while others use its tables or prepare it")
	}).Stop()
	by, unlock, err := db.engine.lockSchema(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	provider, err := db.migrations(by)
	if err != nil {
		return err
	}
	began := time.Now()
	from, _, err := db.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	results, err := up(ctx, provider)
	for db.engine.makeRoom(err) || letBy(ctx, err) {
		results, err = up(ctx, provider)
	}
	if err != nil {
		return fmt.Errorf("store: migrate: %w", err)
	}
	for _, r := range results {
		db.log.Debug("a step of the schema", "version", r.Source.Version, "took", r.Duration)
	}
	err = db.queue.migrate(ctx)
	for db.engine.makeRoom(err) {
		err = db.queue.migrate(ctx)
	}
	if err != nil || len(results) == 0 {
		return err
	}
	db.log.Info("schema migrated", "from", from, "to", results[len(results)-1].Source.Version, "took", time.Since(began))
	// Some migrations commit asynchronously; a durable update afterwards brings them to the disk.
	return db.engine.update(ctx, func(*sql.Tx) (mayBeLost bool, err error) { return false, nil })
}

// SchemaVersion returns the version of the database's schema, 0 if there is none, and the version that this program
// needs. It changes nothing.
func (db *DB) SchemaVersion(ctx context.Context) (have, need int64, err error) {
	provider, err := db.migrations(db.write)
	if err != nil {
		return 0, 0, err
	}
	var any bool
	if err := db.read.QueryRowContext(ctx, db.dialect.hasTable(versionTable)).Scan(&any); err != nil {
		return 0, 0, fmt.Errorf("store: schema version: %w", classify(err))
	}
	if !any { // the library would create its table in order to look
		sources := provider.ListSources()
		return 0, sources[len(sources)-1].Version, nil
	}
	have, need, err = provider.GetVersions(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("store: schema version: %w", notConnected(err))
	}
	return have, need, nil
}

func (db *DB) migrations(by *sql.DB) (*goose.Provider, error) {
	dir, err := fs.Sub(migrations, "migrations/"+db.dialect.String())
	if err != nil {
		return nil, err
	}
	dialect := goose.DialectSQLite3
	if db.dialect == postgres {
		dialect = goose.DialectPostgres
	}
	// Some builds knew a version before those with lower numbers, which were being written beside it.
	provider, err := goose.NewProvider(dialect, by, dir,
		goose.WithDisableGlobalRegistry(true), goose.WithAllowOutofOrder(true))
	if err != nil {
		return nil, fmt.Errorf("store: migrations: %w", err)
	}
	return provider, nil
}
