package store

import (
	"context"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pressly/goose/v3"
)

// ColumnType is the type of a column, in terms that both databases share.
type ColumnType string

// The column types.
const (
	IntColumn   ColumnType = "int"   // int64
	TextColumn  ColumnType = "text"  // string
	BytesColumn ColumnType = "bytes" // []byte
	RealColumn  ColumnType = "real"  // float64
)

// Column is one column of a table.
type Column struct {
	Name string     `json:"name"`
	Type ColumnType `json:"type"`
}

// Table is the shape of one table.
type Table struct {
	Name    string   `json:"table"`
	Columns []Column `json:"columns"`
}

// columnNames lists the names of the columns.
func (t Table) columnNames() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

// queueTable stands for the job queue in a dump. The queue's own tables differ between the databases and between
// versions of its library; the jobs do not.
var queueTable = Table{"queue", []Column{
	{"kind", TextColumn}, {"args", TextColumn}, {"queue", TextColumn}, {"priority", IntColumn}, {"max_attempts", IntColumn}, {"scheduled_at", IntColumn},
}}

// catalog lists our tables, each after those that it refers to. It reads them from the database, so that it works at
// any version of the schema.
func (d dialect) catalog(ctx context.Context, q querier) ([]Table, error) {
	columns := `SELECT t.name, c.name, c.type FROM pragma_table_list t, pragma_table_info(t.name) c
		WHERE t.schema = 'main' AND t.type = 'table' ORDER BY t.name, c.cid`
	references := `SELECT t.name, f."table" FROM pragma_table_list t, pragma_foreign_key_list(t.name) f
		WHERE t.schema = 'main' AND t.type = 'table'`
	if d == postgres {
		columns = `SELECT c.table_name, c.column_name, c.data_type FROM information_schema.columns c
			JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
			WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE'
				AND NOT EXISTS (SELECT FROM pg_class k WHERE k.relname = t.table_name AND k.relnamespace = quote_ident(current_schema())::regnamespace AND k.relispartition)
			ORDER BY c.table_name, c.ordinal_position`
		references = `SELECT a.relname, b.relname FROM pg_constraint f JOIN pg_class a ON a.oid = f.conrelid JOIN pg_class b ON b.oid = f.confrelid
			WHERE f.contype = 'f' AND f.connamespace = quote_ident(current_schema())::regnamespace`
	}
	var tables []Table
	err := eachTriple(ctx, q, columns, func(table, column, kind string) error {
		if !ours(table) {
			return nil
		}
		t, ok := columnTypes[strings.ToLower(kind)]
		if !ok {
			return fmt.Errorf("store: column %s.%s has the type %s, which no dump can hold", table, column, kind)
		}
		if n := len(tables); n == 0 || tables[n-1].Name != table {
			tables = append(tables, Table{Name: table})
		}
		last := &tables[len(tables)-1]
		last.Columns = append(last.Columns, Column{column, t})
		return nil
	})
	if err != nil {
		return nil, err
	}
	refers := make(map[string][]string)
	err = eachTriple(ctx, q, references, func(from, to, _ string) error {
		if from != to {
			refers[from] = append(refers[from], to)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return inOrder(tables, refers)
}

var columnTypes = map[string]ColumnType{
	"integer": IntColumn, "bigint": IntColumn, "text": TextColumn, "blob": BytesColumn, "bytea": BytesColumn, "real": RealColumn, "double precision": RealColumn,
}

// ours reports whether our migrations create the table and it holds data. Tables of the database, of libraries and of
// other users are neither dumped nor emptied, and neither are the two that record how this very database was filled.
func ours(table string) bool { return made()[table] && table != "moves" && table != "move_tables" }

// A database is recognised as ours by these two tables: the schema version, a name that others who use the same library
// have too, and a table of the first migration that nobody else has.
const (
	versionTable = "goose_db_version"
	firstTable   = "endpoint_stats"
)

// ofLibraries reports whether the table is created by a library that we use.
func ofLibraries(table string) bool {
	return table == versionTable || strings.HasPrefix(table, "river_")
}

// made returns the names of all tables that any migration creates.
var made = sync.OnceValue(func() map[string]bool {
	names := make(map[string]bool)
	for _, d := range []dialect{sqliteDialect, postgres} {
		for _, one := range d.created() {
			names[one.name] = names[one.name] || one.kind == "TABLE"
		}
	}
	return names
})

// creation is a table or an index that a migration creates.
type creation struct{ kind, name string }

// ofQueue is what the migrations of the queue's library leave behind, which drop some of what they create.
func (d dialect) ofQueue() []creation {
	all := []creation{
		{"TABLE", "river_client"}, {"TABLE", "river_client_queue"}, {"TABLE", "river_job"}, {"TABLE", "river_leader"}, {"TABLE", "river_migration"}, {"TABLE", "river_queue"},
		{"INDEX", "river_job_kind"}, {"INDEX", "river_job_prioritized_fetching_index"}, {"INDEX", "river_job_state_and_finalized_at_index"}, {"INDEX", "river_job_unique_idx"},
	}
	if d == postgres {
		all = append(all, creation{"INDEX", "river_job_args_index"}, creation{"INDEX", "river_job_metadata_index"})
	}
	return all
}

var (
	creates = regexp.MustCompile(`(?m)^\s*CREATE (?:UNIQUE )?(TABLE|INDEX) (?:CONCURRENTLY )?(\w+)`)
	renames = regexp.MustCompile(`(?m)^ALTER INDEX (\w+) RENAME TO`)
)

// created returns what the migrations create, which drop none of it. An index that is renamed takes the place of
// another one.
func (d dialect) created() (all []creation) {
	files, err := fs.Glob(migrations, "migrations/"+d.String()+"/*.sql")
	if err != nil {
		panic(err) // of a pattern that stands here
	}
	for _, file := range files {
		text, err := migrations.ReadFile(file)
		if err != nil {
			panic(err) // of an embedded file
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		for _, found := range creates.FindAllStringSubmatch(up, -1) {
			all = append(all, creation{found[1], found[2]})
		}
		for _, found := range renames.FindAllStringSubmatch(up, -1) {
			all = slices.DeleteFunc(all, func(one creation) bool { return one.name == found[1] })
		}
	}
	return all
}

// Missing returns the tables and indexes that a current schema has and this one lacks, as "table events", and the steps
// that it does not know to have been taken, as "version 7 in goose_db_version": the next start would take them again.
func (db *DB) Missing(ctx context.Context) (missing []string, err error) {
	query := "SELECT name, type FROM sqlite_master"
	if db.dialect == postgres {
		query = `SELECT relname, CASE WHEN relkind IN ('i', 'I') THEN 'index' ELSE 'table' END FROM pg_class
			WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind IN ('r', 'p', 'i', 'I')`
	}
	there := make(map[string]bool)
	err = eachTriple(ctx, db.read, query, func(name, kind, _ string) error {
		there[kind+" "+name] = true
		return nil
	})
	for _, one := range append(db.dialect.created(), db.dialect.ofQueue()...) {
		if name := strings.ToLower(one.kind) + " " + one.name; !there[name] {
			missing = append(missing, name)
		}
	}
	if err != nil || !there["table "+versionTable] { // the library would create it in order to look
		return missing, classify(err)
	}
	provider, err := db.migrations(db.write)
	if err != nil {
		return missing, err
	}
	steps, err := provider.Status(ctx)
	for _, step := range steps {
		if step.State == goose.StatePending {
			missing = append(missing, fmt.Sprintf("version %d in %s", step.Source.Version, versionTable))
		}
	}
	return missing, notConnected(err)
}

// tablesOf lists the tables and views in our database or schema, except those of extensions and partitions.
func (d dialect) tablesOf(ctx context.Context, q querier) (names []string, err error) {
	query := "SELECT name, '' FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%' ORDER BY name"
	if d == postgres {
		query = `SELECT c.relname, '' FROM pg_class c WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind IN ('r', 'p', 'f', 'v', 'm')
			AND NOT c.relispartition AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e')
			ORDER BY c.relname`
	}
	err = eachTriple(ctx, q, query, func(name, _, _ string) error {
		names = append(names, name)
		return nil
	})
	return names, err
}

// inOrder puts each table after those that it refers to.
func inOrder(tables []Table, refers map[string][]string) ([]Table, error) {
	var ordered []Table
	placed := make(map[string]bool)
	for len(ordered) < len(tables) {
		before := len(ordered)
		for _, t := range tables {
			if !placed[t.Name] && !slices.ContainsFunc(refers[t.Name], func(to string) bool { return !placed[to] }) {
				ordered = append(ordered, t)
				placed[t.Name] = true
			}
		}
		if len(ordered) == before {
			return nil, fmt.Errorf("store: tables refer to each other in a circle, among them %v", refers)
		}
	}
	return ordered, nil
}

// hasTable returns the question whether our database or schema has a table. Of the schemas in the search_path the first
// is ours; the others may hold another program's table of that name.
func (d dialect) hasTable(name string) string {
	if d == postgres {
		return "SELECT to_regclass(quote_ident(current_schema()) || '." + name + "') IS NOT NULL"
	}
	return "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '" + name + "')"
}

// eachTriple calls fn for rows of two or three texts.
func eachTriple(ctx context.Context, q querier, query string, fn func(a, b, c string) error) error {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		var v [3]string
		if err := rows.Scan([]any{&v[0], &v[1], &v[2]}[:len(columns)]...); err != nil {
			return err
		}
		if err := fn(v[0], v[1], v[2]); err != nil {
			return err
		}
	}
	return rows.Err()
}

// counters returns the last id that each table with generated ids has assigned. Ids are never assigned twice, even
// after their rows are gone, because cursors hold them.
func (d dialect) counters(ctx context.Context, q querier) (map[string]int64, error) {
	counters := make(map[string]int64)
	if d == sqliteDialect {
		rows, err := q.QueryContext(ctx, "SELECT name, seq FROM sqlite_sequence")
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var last int64
			if err := rows.Scan(&name, &last); err != nil {
				return nil, err
			}
			if ours(name) {
				counters[name] = last
			}
		}
		return counters, rows.Err()
	}
	sequences, err := identitySequences(ctx, q)
	if err != nil {
		return nil, err
	}
	for table, sequence := range sequences {
		var last int64
		var used bool
		if err := q.QueryRowContext(ctx, "SELECT last_value, is_called FROM "+sequence).Scan(&last, &used); err != nil {
			return nil, err
		}
		if used {
			counters[table] = last
		}
	}
	return counters, nil
}

// identitySequences returns the PostgreSQL sequence behind each table's identity column.
func identitySequences(ctx context.Context, q querier) (map[string]string, error) {
	sequences := make(map[string]string)
	err := eachTriple(ctx, q, `SELECT table_name, pg_get_serial_sequence(quote_ident(table_name), column_name) FROM information_schema.columns
		WHERE table_schema = current_schema() AND is_identity = 'YES'`, func(table, sequence, _ string) error {
		if ours(table) {
			sequences[table] = sequence
		}
		return nil
	})
	return sequences, err
}

// setCounter makes a table continue after the last id that was assigned.
func (d dialect) setCounter(ctx context.Context, q querier, table string, last int64) error {
	if d == sqliteDialect {
		_, err := q.ExecContext(ctx, "DELETE FROM sqlite_sequence WHERE name = $1", table)
		if err == nil {
			_, err = q.ExecContext(ctx, "INSERT INTO sqlite_sequence (name, seq) VALUES ($1, $2)", table, last)
		}
		return err
	}
	sequences, err := identitySequences(ctx, q)
	if err != nil {
		return err
	}
	if sequences[table] == "" {
		return fmt.Errorf("store: table %s gives no ids", table)
	}
	_, err = q.ExecContext(ctx, "SELECT setval(cast($1 AS text)::regclass, $2)", sequences[table], last)
	return err
}
