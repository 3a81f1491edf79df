package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// MissingRight says that a PostgreSQL role may not create tables in its schema, or not add any to those that are there.
type MissingRight struct {
	Role, Database string
	Schema         string // the first existing one of its search path; empty: none exists
	Owner          string // of the tables, if the role has not the rights of the one that has made them
	Grant          string // the statement that grants the right; empty: that would make the role a superuser
}

func (m *MissingRight) Error() string {
	if m.Schema == "" {
		return fmt.Sprintf("none of the schemas in the search_path of the role %q is there in the database %q", m.Role, m.Database)
	}
	if m.Owner != "" {
		return fmt.Sprintf("the tables in the schema %q of the database %q belong to the role %q, and only with its rights can the role %q add ranges of payloads and drop them", m.Schema, m.Database, m.Owner, m.Role)
	}
	return fmt.Sprintf("the role %q lacks the right CREATE (or USAGE) on the schema %q of the database %q", m.Role, m.Schema, m.Database)
}

// MayCreate returns a [MissingRight] or a [NotWritable] if tables cannot be created. The ranges of payloads are tables
// too, which are created while the service runs, and added to the one of all payloads by its owner alone. It changes
// nothing.
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
	// A member may not inherit: before PostgreSQL 16 that is of the role, since then of the grant.
	err = db.read.QueryRowContext(ctx, `SELECT o.rolname, CASE WHEN o.rolsuper THEN ''
			WHEN current_setting('server_version_num')::int >= 160000 THEN granted || ' WITH INHERIT TRUE'
			ELSE concat_ws('; ', CASE WHEN me.rolinherit OR NOT pg_has_role(o.oid, 'MEMBER') THEN granted END,
				CASE WHEN NOT me.rolinherit THEN 'ALTER ROLE ' || quote_ident(me.rolname) || ' INHERIT' END) END
		FROM pg_class c JOIN pg_roles o ON o.oid = c.relowner JOIN pg_roles me ON me.rolname = current_user
			CROSS JOIN LATERAL (SELECT 'GRANT ' || quote_ident(o.rolname) || ' TO ' || quote_ident(me.rolname) AS granted) AS g
		WHERE c.oid = to_regclass(quote_ident(current_schema()) || '.payloads') AND NOT pg_has_role(o.oid, 'USAGE')`).Scan(&m.Owner, &m.Grant)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("store: owner: %w", classify(err))
	}
	return m
}
