package store

import (
	"container/list"
	"context"
	"database/sql"
	"database/sql/driver"

	"modernc.org/sqlite"
)

// Parsing a statement costs SQLite more than most of ours take to run, and the driver parses each one anew. So each
// connection keeps its most recently used statements prepared, including begin, commit and rollback.
const (
	keptStatements = 96
	// keptText is the longest text that is kept: longer ones contain lists of values and do not recur.
	keptText = 4 << 10
)

// openKeeping opens a database whose connections keep their statements. begin starts transactions that are not
// read-only.
func openKeeping(dsn, begin string) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(keepingConnector{c, begin}), nil
}

type keepingConnector struct {
	driver.Connector
	begin string
}

// Connect implements driver.Connector.
func (c keepingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &keepingConn{sqliteConn: conn.(sqliteConn), begin: c.begin, kept: make(map[string]*list.Element)}, nil
}

// sqliteConn lists the methods of the driver's connections.
type sqliteConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	sqlite.DBStatus
}

type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// keepingConn is one connection. As database/sql requires, it serves one goroutine at a time.
type keepingConn struct {
	sqliteConn
	begin  string
	kept   map[string]*list.Element
	recent list.List // of *keptStmt, most recently used first
}

type keptStmt struct {
	sqliteStmt
	query string
	busy  bool // its rows are being read
	owned bool // not kept: closed after use
}

// take returns a prepared statement that is not in use.
func (c *keepingConn) take(ctx context.Context, query string) (*keptStmt, error) {
	if e := c.kept[query]; e != nil {
		if s := e.Value.(*keptStmt); !s.busy {
			s.busy = true
			c.recent.MoveToFront(e)
			return s, nil
		}
	}
	prepared, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s := &keptStmt{sqliteStmt: prepared.(sqliteStmt), query: query, busy: true}
	if c.kept[query] != nil || len(query) > keptText {
		s.owned = true
		return s, nil
	}
	c.kept[query] = c.recent.PushFront(s)
	if c.recent.Len() > keptStatements {
		last := c.recent.Back()
		old := last.Value.(*keptStmt)
		c.recent.Remove(last)
		delete(c.kept, old.query)
		if old.busy {
			old.owned = true
		} else if err := old.Close(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// give ends the use of a statement.
func (s *keptStmt) give() error {
	s.busy = false
	if s.owned {
		return s.Close()
	}
	return nil
}

// ExecContext implements driver.ExecerContext.
func (c *keepingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	result, err := s.ExecContext(ctx, args)
	if closed := s.give(); err == nil {
		err = closed
	}
	return result, err
}

// QueryContext implements driver.QueryerContext.
func (c *keepingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		_ = s.give() // err matters more
		return nil, err
	}
	return &keptRows{rows, s}, nil
}

// keptRows end the use of their statement when closed.
type keptRows struct {
	driver.Rows
	of *keptStmt
}

// Close implements driver.Rows.
func (r *keptRows) Close() error {
	err := r.Rows.Close()
	if closed := r.of.give(); err == nil {
		err = closed
	}
	return err
}

// BeginTx implements driver.ConnBeginTx. The statement runs without the context: if that ended just after the
// transaction began, the error would say that nothing had begun, and the next user of the connection would be inside
// the transaction.
func (c *keepingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	begin := c.begin
	if opts.ReadOnly {
		begin = "begin"
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := c.ExecContext(context.WithoutCancel(ctx), begin, nil); err != nil {
		return nil, err
	}
	return keptTx{c}, nil
}

type keptTx struct{ conn *keepingConn }

// Commit implements driver.Tx. After an error it rolls back, because database/sql assumes that no transaction is open.
func (t keptTx) Commit() error {
	_, err := t.conn.ExecContext(context.Background(), "commit", nil)
	if err != nil {
		_ = t.Rollback() // fails if the error has rolled back already
	}
	return err
}

// Rollback implements driver.Tx.
func (t keptTx) Rollback() error {
	_, err := t.conn.ExecContext(context.Background(), "rollback", nil)
	return err
}

// Close implements driver.Conn.
func (c *keepingConn) Close() error {
	for e := c.recent.Front(); e != nil; e = e.Next() {
		_ = e.Value.(*keptStmt).Close() // closing the connection frees what is left
	}
	return c.sqliteConn.Close()
}
