package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// EncodingError says that a PostgreSQL database cannot store every text that senders write.
type EncodingError struct{ Encoding string }

func (e *EncodingError) Error() string {
	return fmt.Sprintf("the database has the encoding %s, in which not every character can be stored", e.Encoding)
}

// complete reports whether the encoding can hold any text: UTF8 can, and SQL_ASCII keeps bytes as they are.
func (e *EncodingError) complete() bool { return e.Encoding == "UTF8" || e.Encoding == "SQL_ASCII" }

// encodingOf returns the encoding that a server reported at the start of a session.
func encodingOf(conn *pgconn.PgConn) *EncodingError {
	return &EncodingError{conn.ParameterStatus("server_encoding")}
}

// Encodes returns an [EncodingError] if the database cannot store every text. It changes nothing.
func (db *DB) Encodes(ctx context.Context) error {
	if db.dialect != postgres {
		return nil
	}
	e := &EncodingError{}
	if err := db.read.QueryRowContext(ctx, "SHOW server_encoding").Scan(&e.Encoding); err != nil {
		return fmt.Errorf("store: encoding: %w", classify(err))
	}
	if !e.complete() {
		return e
	}
	return nil
}

// oldestMajor is the first version that lets a transaction add to an enumeration, as a migration of the job queue does.
const oldestMajor = 12

// TooOldError says that a PostgreSQL server does not know some of our statements.
type TooOldError struct{ Version string }

func (e *TooOldError) Error() string {
	return fmt.Sprintf("PostgreSQL %s is too old: the oldest that will do is %d", e.Version, oldestMajor)
}

// is reports whether the version is one that is known to be too old.
func (e *TooOldError) is() bool {
	var major int
	_, err := fmt.Sscanf(e.Version, "%d", &major)
	return err == nil && major < oldestMajor
}

// NotWritable says that PostgreSQL accepts no writes from this role, possibly on purpose.
type NotWritable struct {
	Role, Database string
	Standby        bool // a standby, until it is promoted; otherwise default_transaction_read_only is on
}

func (e *NotWritable) Error() string {
	if e.Standby {
		return "PostgreSQL is a standby here, which takes no writes"
	}
	return fmt.Sprintf("PostgreSQL takes no writes from the role %q in the database %q: default_transaction_read_only is on", e.Role, e.Database)
}

// Writable returns a [NotWritable] if the server is a standby or a setting forbids writing. It writes nothing.
func (db *DB) Writable(ctx context.Context) error {
	if db.dialect != postgres {
		return nil
	}
	e, readOnly := &NotWritable{}, false
	err := db.read.QueryRowContext(ctx, `SELECT current_user, current_database(), pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'`).
		Scan(&e.Role, &e.Database, &e.Standby, &readOnly)
	if err != nil {
		return fmt.Errorf("store: check that it accepts writes: %w", classify(err))
	}
	if readOnly {
		return e
	}
	return nil
}
