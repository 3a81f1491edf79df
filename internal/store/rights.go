package store

import (
	"context"
	"fmt"
)

// MissingRight says that a PostgreSQL role may not create tables in its schema.
type MissingRight struct {
	Role, Database string
	Schema         string // the first existing one of its search path; empty: none exists
	Grant          string // the statement that grants the right
}

func (m *MissingRight) Error() string {
	if m.Schema == "" {
		return fmt.Sprintf("none of the schemas in the search_path of the role %q is there in the database %q", m.Role, m.Database)
	}
	return fmt.Sprintf("the role %q lacks the right CREATE (or USAGE) on the schema %q of the database %q", m.Role, m.Schema, m.Database)
}

// MayCreate returns a [MissingRight] or a [NotWritable] if tables cannot be created. The ranges of payloads are tables
// too, which are created while the service runs. It changes nothing.
func (db *DB) MayCreate(ctx context.Context) error {
	if db.dialect != postgres {
		return nil
	}
	if err := db.Writable(ctx); err != nil {
		return err
	}
	m := &MissingRight{}
	var may bool
	// current_schema skips schemas that the role may not use.
	err := db.read.QueryRowContext(ctx, `SELECT current_user, current_database(), coalesce(n.name, ''),
			CASE WHEN n.name IS NULL THEN 'CREATE SCHEMA AUTHORIZATION ' || quote_ident(current_user)
				ELSE 'GRANT USAGE, CREATE ON SCHEMA ' || quote_ident(n.name) || ' TO ' || quote_ident(current_user) END,
			coalesce(has_schema_privilege(n.name, 'USAGE') AND has_schema_privilege(n.name, 'CREATE'), false)
		FROM (SELECT coalesce(current_schema()::text, (SELECT s.nspname::text
			FROM regexp_split_to_table(current_setting('search_path'), ' *, *') WITH ORDINALITY AS p (name, place)
				JOIN pg_namespace s ON s.nspname = CASE btrim(p.name, '"') WHEN '$user' THEN current_user ELSE btrim(p.name, '"') END
			ORDER BY p.place LIMIT 1)) AS name) AS n`).Scan(&m.Role, &m.Database, &m.Schema, &m.Grant, &may)
	if err != nil {
		return fmt.Errorf("store: rights: %w", classify(err))
	}
	if !may {
		return m
	}
	return nil
}
