package store

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"hookglass/internal/neterr"
)

// dialect covers the differences between the two databases. The SQL is one text in their common subset, with $N
// placeholders. A parameter that is used twice or in arithmetic is cast to bigint.
type dialect int

const (
	sqliteDialect dialect = iota
	postgres
)

func (d dialect) String() string {
	if d == postgres {
		return "postgres"
	}
	return "sqlite"
}

func (d dialect) viewOptions() *sql.TxOptions {
	if d == postgres {
		return &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	}
	return &sql.TxOptions{ReadOnly: true}
}

// locking returns the end of a SELECT that locks its rows. SQLite has one writer and needs no lock.
func (d dialect) locking(how string) string {
	if d == postgres {
		return how
	}
	return ""
}

// forUpdate locks the rows of a SELECT.
func (d dialect) forUpdate() string { return d.locking(" FOR UPDATE") }

// forShare locks the rows of a SELECT against changes, but not against other shared locks.
func (d dialect) forShare() string { return d.locking(" FOR SHARE") }

// forKeyShare locks the rows of a SELECT against deletion and forUpdate, but not against other changes. It is for
// inserts of rows that refer to them.
func (d dialect) forKeyShare() string { return d.locking(" FOR KEY SHARE") }

// forUpdateOf locks the rows of one table of a SELECT over several.
func (d dialect) forUpdateOf(table string) string { return d.locking(" FOR UPDATE OF " + table) }

// forChangeOf locks the rows of one table of a SELECT against changes, but not against inserts of rows that refer to
// them.
func (d dialect) forChangeOf(table string) string { return d.locking(" FOR NO KEY UPDATE OF " + table) }

// skipLocked, behind a lock, leaves out the rows that another transaction has locked.
func (d dialect) skipLocked() string { return d.locking(" SKIP LOCKED") }

// uniqueViolation reports whether err says that a row with this value of the column exists.
func uniqueViolation(err error, column string) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "23505" && strings.Contains(pg.ConstraintName, column)
	}
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		code := lite.Code()
		return (code == sqlite3.SQLITE_CONSTRAINT_UNIQUE || code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY) &&
			strings.Contains(lite.Error(), column)
	}
	return false
}

// storageTrouble reports whether err is about the storage (full, unreachable, busy) rather than about the statement, so
// that a retry may succeed.
func storageTrouble(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true // whatever the server says: the next attempt may succeed
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code[:min(2, len(pg.Code))] {
		case "08", "53", "57", "58", "40", "55", "25", "XX": // connection, resources, intervention, system, rollback, not in state, transaction state, damage
			return true
		}
		return pg.Code == "42501" // insufficient_privilege: somebody took a right away
	}
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY,
			sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_CORRUPT:
			return true
		}
		return false
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		neterr.Closed(err) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn) ||
		strings.Contains(err.Error(), "conn closed")
}

// NoRoom reports whether err is due to a disk that is full or fails.
func NoRoom(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "53100" || pg.Code == "58030" // disk_full, io_error
	}
	return mayBeFull(err)
}

// NotLet reports whether an embedded database cannot be opened or written because of the permissions of its files or
// their directory.
func NotLet(err error) bool {
	lite, ok := errors.AsType[*sqlite.Error](err)
	return ok && (lite.Code()&0xff == sqlite3.SQLITE_READONLY || lite.Code()&0xff == sqlite3.SQLITE_CANTOPEN)
}

// Crowded reports whether PostgreSQL has no connection left for this role.
func Crowded(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "53300" // too_many_connections
}

// among returns the condition that a column is in a list of integers. Its text does not depend on their number.
func (d dialect) among(column, placeholder string) string {
	if d == postgres {
		return column + " = ANY(" + placeholder + ")"
	}
	return column + " IN (SELECT value FROM json_each(" + placeholder + "))"
}

// picked returns the condition that a column is one of the few integers that a query returns. PostgreSQL caches plans,
// often made while its tables are nearly empty, and may then scan a whole table on each use, also once it has grown.
// For an array it always uses the index.
func (d dialect) picked(column, query string) string {
	if d == postgres {
		return column + " = ANY(ARRAY(" + query + "))"
	}
	return column + " IN (" + query + ")"
}

// pickedRows is picked for the rows x of a table whose key has several columns; from is the query behind its SELECT. By
// the key, both databases look for the first column alone, which any number of rows may have, or read the whole table.
func (d dialect) pickedRows(from string) string {
	row := "rowid"
	if d == postgres {
		row = "ctid"
	}
	return d.picked(row, "SELECT x."+row+" "+from)
}

// each joins the rows so far to the rows of a table x that meet a condition on both, with one index look-up per row. By
// themselves both databases would scan all of x, which keeps growing.
func (d dialect) each(table, condition string) string {
	if d == postgres {
		return lookUp(table, condition, "x") + " WHERE true"
	}
	return " CROSS JOIN " + table + " x WHERE " + condition
}

// lookUp returns a join that looks up the rows of a table for each row so far, on PostgreSQL. By a plain join that it
// plans while there are a few rows it reads all of them each time, also once there are many.
func lookUp(table, condition, as string) string {
	return " JOIN LATERAL (SELECT ctid, * FROM " + table + " AS " + as + " WHERE " + condition + " OFFSET 0) AS " + as + " ON true"
}

// with returns a left join that looks up the rows of a table for each row so far; see [lookUp].
func (d dialect) with(table, as, condition string) string {
	if d == postgres {
		return " LEFT" + lookUp(table, condition, as)
	}
	return " LEFT JOIN " + table + " AS " + as + " ON " + condition
}

// rowsOf returns the condition that selects the rows of an owner with above < number < below. owner and number are
// columns, the others expressions. Use it with ORDER BY owner, number or the reverse of it.
//
// PostgreSQL gets a row comparison, which only an index that begins with the owner serves. With plain conditions it
// tends to choose the index on the number where a few owners have nearly all rows, and reads through those of all
// others; or, without statistics, it sorts all rows of the owner. SQLite uses the index well only with plain
// conditions.
//
// Join a table by owner + 0: by the plain column PostgreSQL may merge the two in the order of the owners, which reads
// the other table from one of its ends.
func (d dialect) rowsOf(owner, number, of, above, below string) string {
	if d == postgres {
		return fmt.Sprintf("(%[1]s, %[2]s) > (%[3]s, %[4]s) AND (%[1]s, %[2]s) < (%[3]s, %[5]s)", owner, number, of, above, below)
	}
	return fmt.Sprintf("%[1]s = %[3]s AND %[2]s > %[4]s AND %[2]s < %[5]s", owner, number, of, above, below)
}

// newestNum is above all numbers of rows.
const newestNum = "9223372036854775807"

// newestOf returns the end of a statement, behind AND or WHERE, for a page of what an owner has, newest first: the rows
// whose number is less than before, unless that is 0. See [dialect.rowsOf].
func (d dialect) newestOf(a *args, owner string, of int64, number string, before int64, limit int) string {
	if before <= 0 {
		before = math.MaxInt64
	}
	return d.rowsOf(owner, number, a.add(of), "0", a.add(before)) + " ORDER BY " + owner + " DESC, " + number + " DESC" + a.limit(limit)
}

// oldestOf is newestOf for a list that begins with the oldest: the rows whose number is greater than after.
func (d dialect) oldestOf(a *args, owner string, of int64, number string, after int64, limit int) string {
	return d.rowsOf(owner, number, a.add(of), a.add(after), newestNum) + " ORDER BY " + owner + ", " + number + a.limit(limit)
}

// ownNum returns a number by which an owner's rows are sorted where the index on the owner does not have it. It keeps
// PostgreSQL from reading the index on the number, in which the rows of all others lie before those of an owner who
// came late. SQLite has the number in each index.
func (d dialect) ownNum(number string) string {
	if d == postgres {
		return number + " + 0"
	}
	return number
}

// list is the argument for among.
func (d dialect) list(values []int64) any {
	if d == postgres {
		return values
	}
	if len(values) == 0 {
		return "[]" // nil would be null, which is a list of one
	}
	text, _ := json.Marshal(values) // of integers it never fails
	return string(text)
}

// bytes is the type of a column of bytes.
func (d dialect) bytes() string {
	if d == postgres {
		return "bytea"
	}
	return "blob"
}

// clock returns the expression for the database's time in microseconds. Times that several nodes compare use it,
// because their own clocks differ.
func (d dialect) clock() string {
	if d == postgres {
		return postgresClock
	}
	return sqliteClock
}

const (
	postgresClock = "cast(extract(epoch from clock_timestamp()) * 1000000 AS bigint)"
	sqliteClock   = "cast(unixepoch('subsec') * 1000000 AS integer)"
)

// jobTime returns the expression for a time that long ago by the database's clock, in the queue's type.
func (d dialect) jobTime(ago time.Duration) string {
	if d == postgres {
		return fmt.Sprintf("(clock_timestamp() - interval '%d milliseconds')", ago.Milliseconds())
	}
	return fmt.Sprintf("datetime('now', 'subsec', '-%.3f seconds')", ago.Seconds())
}

// jobState is the type of the state of a job.
func (d dialect) jobState() string {
	if d == postgres {
		return "river_job_state"
	}
	return "text"
}

// lower returns the expression for a text with its ASCII letters in lower case and all others unchanged.
func (d dialect) lower(text string) string {
	if d == postgres {
		return `lower((` + text + `) COLLATE "C")`
	}
	return "lower(" + text + ")"
}

// byBytes returns a text column that sorts by its bytes, whatever the locale of the database.
func (d dialect) byBytes(column string) string {
	if d == postgres {
		return column + ` COLLATE "C"`
	}
	return column
}
