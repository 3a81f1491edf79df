package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// ErrNoPostgres says that PostgreSQL's server programs are not installed.
var ErrNoPostgres = errors.New("storetest: PostgreSQL's initdb and postgres were not found in $PATH or /usr/lib/postgresql/*/bin")

// startLimit bounds how long a server may take until it accepts a connection, recovery after a kill included.
const startLimit = 60 * time.Second

// Cluster is one private PostgreSQL server with its own data directory, reachable only through a unix socket. It keeps
// the server's default durability: fsync and synchronous_commit are on.
//
// Its methods are for one goroutine, except for CreateDatabase.
type Cluster struct {
	bin      string   // directory of initdb and postgres
	settings []string // name=value
	dir      string   // holds data/ and log
	socket   string   // directory of the socket; short, because a socket's path ends at 107 bytes
	cred     *syscall.Credential

	keeper      *exec.Cmd
	keeperStdin io.Closer
	server      *exec.Cmd
	exited      chan struct{} // closed when server has been waited for
	databases   atomic.Int64

	mu       sync.Mutex
	work     *sql.DB // see maintenance
	strategy string  // of CREATE DATABASE, where the version of the server knows any
}

// Start creates a cluster below dir and starts it. An empty dir selects memory if it is large enough, else /tmp. The
// cluster is removed when the process that started it ends, however that happens; Stop removes it earlier. Start
// returns ErrNoPostgres if PostgreSQL's programs are missing, but not where $PG_BIN names other ones than there are.
func Start(dir string) (*Cluster, error) {
	// Tests start many clusters, so each uses little memory and disk.
	return start(dir, "shared_buffers=64MB", "max_wal_size=256MB", "min_wal_size=32MB")
}

// StartStock is Start with PostgreSQL's default settings for memory, checkpoints and vacuum, and with a write-ahead log
// that has been filled once: a server that has run for a while reuses its log files, while a new one must create each.
func StartStock(dir string) (*Cluster, error) {
	c, err := start(dir)
	if err != nil {
		return nil, err
	}
	if err := c.goRound(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// goRound fills the files of the write-ahead log between two checkpoints, and makes the server keep them for reuse.
func (c *Cluster) goRound() error {
	db, err := sql.Open("pgx", c.dsn("postgres"))
	if err != nil {
		return fmt.Errorf("storetest: %w", err)
	}
	defer db.Close()
	statements := []string{"CREATE TABLE round (n int)"}
	for range 1 << 30 / (16 << 20) / 2 {
		statements = append(statements, "INSERT INTO round VALUES (1)", "SELECT pg_switch_wal()")
	}
	for _, s := range append(statements, "CHECKPOINT", "DROP TABLE round", "CHECKPOINT") {
		if _, err := db.Exec(s); err != nil {
			return fmt.Errorf("storetest: %w", err)
		}
	}
	return nil
}

func start(dir string, settings ...string) (*Cluster, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	cred, err := serverCredential()
	if err != nil {
		return nil, err
	}
	if dir == "" {
		dir = fastDir()
	}
	c := &Cluster{bin: bin, cred: cred, settings: settings}
	if c.dir, err = os.MkdirTemp(dir, "hgpg"); err != nil {
		return nil, fmt.Errorf("storetest: %w", err)
	}
	if c.socket, err = os.MkdirTemp("/tmp", "hgpg"); err != nil {
		return nil, errors.Join(fmt.Errorf("storetest: %w", err), os.RemoveAll(c.dir))
	}
	if err := c.create(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) create() error {
	if err := c.startKeeper(); err != nil {
		return err
	}
	if c.cred != nil {
		for _, dir := range []string{c.dir, c.socket} {
			if err := os.Chown(dir, int(c.cred.Uid), int(c.cred.Gid)); err != nil {
				return fmt.Errorf("storetest: %w", err)
			}
		}
	}
	kept := c.kept()
	notCopied := c.copyKept(kept)
	if notCopied == nil && c.Restart() == nil {
		return nil
	}
	if err := errors.Join(c.Shutdown(), os.RemoveAll(c.data())); err != nil {
		return fmt.Errorf("storetest: %w", err)
	}
	if err := c.initdb(); err != nil {
		return err
	}
	c.keep(kept, notCopied == nil)
	return c.Restart()
}

// startKeeper starts a shell that outlives this process by a moment. When the pipe that it reads closes, which happens
// even if this process is killed, it stops the server and removes the directories.
func (c *Cluster) startKeeper() error {
	const script = `trap '' INT TERM HUP
cat >/dev/null
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ] && kill -QUIT "$pid" 2>/dev/null; then
	n=0
	while kill -0 "$pid" 2>/dev/null && [ $n -lt 100 ]; do n=$((n+1)); sleep 0.1; done
fi
rm -rf "$1" "$2"`
	c.keeper = exec.Command("/bin/sh", "-c", script, "keeper", c.dir, c.socket)
	c.keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := c.keeper.StdinPipe()
	if err != nil {
		return fmt.Errorf("storetest: keeper: %w", err)
	}
	if err := c.keeper.Start(); err != nil {
		c.keeper = nil
		return fmt.Errorf("storetest: keeper: %w", err)
	}
	c.keeperStdin = stdin
	return nil
}

// Restart starts the server on its data directory, after Kill9 or Shutdown, and returns when it accepts connections.
func (c *Cluster) Restart() error {
	if c.running() {
		return errors.New("storetest: the server is running")
	}
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("storetest: %w", err)
	}
	defer log.Close()
	args := []string{"-D", c.data(), "-k", c.socket,
		"-c", "listen_addresses=", "-c", "max_connections=400", "-c", "dynamic_shared_memory_type=mmap"}
	for _, setting := range c.settings {
		args = append(args, "-c", setting)
	}
	server := c.command("postgres", args...)
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		return fmt.Errorf("storetest: postgres: %w", err)
	}
	exited := make(chan struct{})
	c.server, c.exited = server, exited
	go func() {
		_ = server.Wait() // how it ended is in its log
		close(exited)
	}()
	return c.ready()
}

// ready waits until the server accepts a connection.
func (c *Cluster) ready() error {
	db, err := sql.Open("pgx", c.dsn("postgres"))
	if err != nil {
		return fmt.Errorf("storetest: %w", err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		err := db.PingContext(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.exited:
			return fmt.Errorf("storetest: postgres ended at its start:\n%s", c.logTail())
		case <-ctx.Done():
			return fmt.Errorf("storetest: postgres was not ready within %v: %w\n%s", startLimit, err, c.logTail())
		case <-retry.C:
		}
	}
}

// DSN addresses the cluster's maintenance database.
func (c *Cluster) DSN() string { return c.dsn("postgres") }

// CreateDatabase creates a database and returns its DSN: a copy of the database at the DSN template, to which nothing
// may be connected, or an empty one if template is "". More options are those of CREATE DATABASE.
func (c *Cluster) CreateDatabase(template string, options ...string) (dsn string, err error) {
	source := "template0"
	if template != "" {
		u, err := url.Parse(template)
		if err != nil {
			return "", fmt.Errorf("storetest: template: %w", err)
		}
		source = strings.TrimPrefix(u.Path, "/")
	}
	name := fmt.Sprintf("t%d", c.databases.Add(1))
	db, err := c.maintenance()
	if err != nil {
		return "", err
	}
	if _, err := db.Exec(fmt.Sprintf(`create database %q template %q %s %s`, name, source, c.strategy, strings.Join(options, " "))); err != nil {
		return "", fmt.Errorf("storetest: create database: %w", err)
	}
	return c.dsn(name), nil
}

// dropDatabase drops a database that CreateDatabase created, and disconnects its clients.
func (c *Cluster) dropDatabase(dsn string) error {
	u, err := url.Parse(dsn)
	if err != nil {
		return fmt.Errorf("storetest: %w", err)
	}
	db, err := c.maintenance()
	if err != nil {
		return err
	}
	if _, err := db.Exec(fmt.Sprintf(`drop database if exists %q with (force)`, strings.TrimPrefix(u.Path, "/"))); err != nil {
		return fmt.Errorf("storetest: drop database: %w", err)
	}
	return nil
}

// maintenance is a pool on the maintenance database, which keeps its connection as long as the server runs: to make one
// costs more than what it is for.
func (c *Cluster) maintenance() (*sql.DB, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.work == nil {
		db, err := sql.Open("pgx", c.DSN())
		if err != nil {
			return nil, fmt.Errorf("storetest: %w", err)
		}
		var version int
		if err := db.QueryRow(`select current_setting('server_version_num')::int`).Scan(&version); err != nil {
			return nil, errors.Join(fmt.Errorf("storetest: %w", err), db.Close())
		}
		if version >= 150_000 {
			c.strategy = "strategy file_copy" // costs less than to write a small database to the log
		}
		c.work = db
	}
	return c.work, nil
}

// disconnect ends what maintenance keeps.
func (c *Cluster) disconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.work != nil {
		_ = c.work.Close() // of a server that is gone it says so
		c.work = nil
	}
}

// Shutdown ends the server, not waiting for its clients; Restart starts it again.
func (c *Cluster) Shutdown() error { return c.end(syscall.SIGINT) }

func (c *Cluster) end(how syscall.Signal) error {
	c.disconnect()
	if !c.running() {
		return nil
	}
	if err := c.server.Process.Signal(how); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("storetest: stop postgres: %w", err)
	}
	select {
	case <-c.exited:
		return nil
	case <-time.After(startLimit):
		return fmt.Errorf("storetest: postgres did not end within %v\n%s", startLimit, c.logTail())
	}
}

// Stop ends the server and removes all files of the cluster.
func (c *Cluster) Stop() error {
	err := c.end(syscall.SIGQUIT) // without writing what nobody reads
	if c.keeper != nil {
		err = errors.Join(err, c.keeperStdin.Close(), c.keeper.Wait())
		c.keeper = nil
	}
	return errors.Join(err, os.RemoveAll(c.dir), os.RemoveAll(c.socket))
}

func (c *Cluster) running() bool {
	if c.server == nil {
		return false
	}
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) dsn(database string) string {
	q := url.Values{"host": {c.socket}, "user": {"hookglass"}, "sslmode": {"disable"}}
	return "postgres:///" + database + "?" + q.Encode()
}

// command prepares one of PostgreSQL's programs: as the unprivileged user that it requires, out of reach of a
// terminal's Ctrl-C, and in a directory that this user may enter.
func (c *Cluster) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, program), args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.cred, Setsid: true}
	return cmd
}

// logTail returns the end of the server's log, for an error.
func (c *Cluster) logTail() string {
	const tail = 4 << 10
	b, err := os.ReadFile(filepath.Join(c.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-tail):])
}

// binaries finds the directory that holds both initdb and postgres: the one that was named, or the newest version.
func binaries() (string, error) {
	server := func(dir string) bool {
		return executable(filepath.Join(dir, "initdb")) && executable(filepath.Join(dir, "postgres"))
	}
	if dir := os.Getenv("PG_BIN"); dir != "" {
		if !server(dir) {
			return "", fmt.Errorf("storetest: PG_BIN=%s does not hold PostgreSQL's initdb and postgres", dir)
		}
		return dir, nil
	}
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		// Distributions link initdb into the path, but not always the postgres that it starts.
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is valid
	slices.SortFunc(installed, func(a, b string) int { return debianVersion(b) - debianVersion(a) })
	for _, dir := range append(dirs, installed...) {
		if server(dir) {
			return dir, nil
		}
	}
	return "", ErrNoPostgres
}

// debianVersion returns 15 for /usr/lib/postgresql/15/bin.
func debianVersion(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin))) // 0 sorts last
	return n
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// serverCredential returns the user to run the server as if this process is root, which PostgreSQL refuses.
func serverCredential() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("storetest: PostgreSQL refuses to run as root, and there is neither a user postgres nor a user nobody")
}

// fastDir returns the directory for a cluster that lives only for a test: in memory, where fsync costs nothing, if
// there is room for a few databases and their log.
func fastDir() string {
	const memory, room = "/dev/shm", 2 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err == nil && fs.Bavail*uint64(fs.Bsize) >= room {
		if probe, err := os.MkdirTemp(memory, "hgpg"); err == nil && os.Remove(probe) == nil {
			return memory
		}
	}
	return "/tmp"
}
