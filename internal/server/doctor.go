package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"hookglass/internal/action"
	"hookglass/internal/alert"
	"hookglass/internal/declare"
	"hookglass/internal/endpoint"
	"hookglass/internal/seal"
	"hookglass/internal/store"
)

// DoctorCmd is `hookglass doctor`: with the flags of serve, it checks the configuration, the stored data and how the
// service can be reached. It repairs nothing, and fails if something is wrong. To check whether the directory and the
// database are writable it writes something small to each.
type DoctorCmd struct {
	Config
	output
}

// Thresholds of findings.
const (
	lowDisk      = 256 << 20 // bytes; with less, a burst of large bodies fills the disk
	scarceDisk   = 1 << 30
	maxSkew      = 5 * time.Second // between this clock and the database's; tickets live 30 seconds
	maxBehind    = time.Minute     // between the newest event and this clock
	verifyFor    = 2 * time.Minute
	sealedSample = 10_000

	oldestPostgres = 15 // the oldest major version that its makers correct: 14 had its last correction in November 2026
)

// finding is the result of one check.
type finding struct {
	Name   string `json:"name"`
	Status string `json:"status"` // ok, warning or wrong
	Detail string `json:"detail"`
}

// findings are the results of all checks.
type findings []finding

func (f *findings) ok(name, format string, args ...any) { f.add(name, "ok", format, args) }

func (f *findings) warn(name, format string, args ...any) { f.add(name, "warning", format, args) }

func (f *findings) wrong(name, format string, args ...any) { f.add(name, "wrong", format, args) }

// add turns a detail into one line: errors of PostgreSQL have a line for each address tried. It also removes control
// characters, because details may quote whoever answers at the public URL, such as names in a certificate.
func (f *findings) add(name, status, format string, args []any) {
	lines := strings.Split(fmt.Sprintf(format, args...), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	detail := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.Join(lines, " "))
	*f = append(*f, finding{name, status, detail})
}

func (c *DoctorCmd) Run(ctx context.Context, t *Terminal) error {
	var f findings
	c.examine(ctx, &f)
	wrong := 0
	rows := make([]string, len(f))
	for i, one := range f {
		if one.Status == "wrong" {
			wrong++
		}
		rows[i] = one.Status + "\t" + one.Name + "\t" + one.Detail
	}
	if err := c.print(t, map[string]any{"ok": wrong == 0, "findings": f}, table("STATUS\tWHAT\tFOUND", rows)); err != nil {
		return err
	}
	switch wrong {
	case 0:
		return nil
	case 1:
		return errors.New("1 thing is wrong")
	}
	return fmt.Errorf("%d things are wrong", wrong)
}

func (c *DoctorCmd) examine(ctx context.Context, f *findings) {
	checked := c.examineService(ctx, f)
	c.examineDirectory(f)
	if !c.exists() {
		if err := c.restored(); err != nil {
			f.wrong("database", "%v", err)
		} else {
			f.wrong("database", "there is none at %s: start the service, or run hookglass migrate", c.databasePath())
		}
		c.examineKeys(nil, f)
		return
	}
	db, err := c.open(ctx, nil)
	if err != nil {
		f.wrong("database", "it cannot be opened: %v", err)
		c.examineKeys(nil, f)
		return
	}
	defer db.Close()
	if !c.examineSchema(ctx, db, f) {
		c.examineKeys(nil, f)
		return
	}
	if err := filled(ctx, db); err != nil { // before anything is written to it
		f.wrong("database", "%v", err)
		return
	}
	c.examineStorage(ctx, db, f)
	c.examineClock(ctx, db, f)
	sealed, err := newestSealed(ctx, db, sealedSample)
	if err != nil {
		f.wrong("secrets", "they cannot be read: %v", err)
		return
	}
	c.examineKeys(sealed, f)
	c.examineEndpointsFile(ctx, db, checked, f)
}

func (c *DoctorCmd) examineDirectory(f *findings) {
	const name = "data directory"
	info, err := os.Stat(c.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.DatabaseURL != "":
		f.ok(name, "there is none; the database is elsewhere")
		return
	case errors.Is(err, fs.ErrNotExist):
		f.wrong(name, "%s does not exist: start the service, which makes it, or name the right one by --data", c.Data)
		return
	case err != nil:
		f.wrong(name, "%v", remedied(err))
		return
	case !info.IsDir():
		f.wrong(name, "%s is not a directory: name one by --data", c.Data)
		return
	}
	faults := len(*f)
	if mode := info.Mode().Perm(); openToOthers(mode) {
		f.wrong(name, "others can enter it (mode %04o): chmod 700 %s", mode, c.Data)
	}
	if err := c.examineModes(name, f); err != nil {
		f.wrong(name, "%v", remedied(err))
		return
	}
	if err := writable(c.Data); err != nil {
		f.wrong(name, "it cannot be written to: %v", remedied(err))
	}
	c.examineLeftovers(name, f)
	switch {
	case len(*f) > faults:
	case runtime.GOOS == "windows":
		f.ok(name, "%s, writable", c.Data) // who else can read it was not looked at
	default:
		f.ok(name, "%s, private and writable", c.Data)
	}
	c.examineDiskSpace(f)
	if c.DatabaseURL == "" {
		c.examineReserve(f)
	}
}

// openToOthers reports whether a mode lets in others than the owner. Windows has no modes.
func openToOthers(mode fs.FileMode) bool { return mode&0o077 != 0 && runtime.GOOS != "windows" }

// examineModes finds files that others can read. The directory protects the database; files with keys and tokens need
// their own protection as well.
func (c *DoctorCmd) examineModes(name string, f *findings) error {
	entries, err := os.ReadDir(c.Data)
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && (e.Name() == devFile || strings.HasPrefix(e.Name(), "keys.json.")) && openToOthers(info.Mode().Perm()) {
			f.wrong(name, "others can read %s (mode %04o): chmod 600", e.Name(), info.Mode().Perm())
		}
	}
	return err
}

// examineLeftovers finds files that a command run as root left behind and that the service's user cannot write.
func (c *DoctorCmd) examineLeftovers(name string, f *findings) {
	for _, one := range []struct{ file, trouble string }{
		{lockFile, "its lock cannot be taken"}, {databaseFile + "-wal", "the log of the database cannot be written"}, {databaseFile + "-shm", "the index of that log cannot be written"},
	} {
		if there, err := os.OpenFile(filepath.Join(c.Data, one.file), os.O_RDWR, 0); err == nil {
			there.Close()
		} else if !errors.Is(err, fs.ErrNotExist) {
			f.wrong(name, "%s: %v", one.trouble, remedied(err))
		}
	}
}

func (c *DoctorCmd) examineDiskSpace(f *findings) {
	switch _, free, err := store.DiskSpace(c.Data); {
	case err != nil:
		f.wrong("disk space", "%v", err)
	case free < lowDisk:
		f.wrong("disk space", "%d MiB are free: "+moreRoom, free>>20)
	case free < scarceDisk:
		f.warn("disk space", "%d MiB are free: "+moreRoom, free>>20)
	default:
		f.ok("disk space", "%d GiB are free", free>>30)
	}
}

// examineReserve finds out whether the disk was completely full.
func (c *DoctorCmd) examineReserve(f *findings) {
	const name = "reserve"
	switch held, whole, err := store.Reserve(c.databasePath()); {
	case errors.Is(err, fs.ErrNotExist):
		f.ok(name, "there is none yet; the service makes it")
	case err != nil:
		f.wrong(name, "%v", remedied(err))
	case held == 0:
		f.wrong(name, "the disk is full, and what was held in reserve is given up for deleting: nothing is captured until there is room to make it again; "+moreRoom)
	case held < whole:
		f.warn(name, "%d of %d KiB are held for the time when the disk is full: there was no room for more, or the rest is given up; "+moreRoom, held>>10, whole>>10)
	default:
		f.ok(name, "%d KiB are held for the time when the disk is full", held>>10)
	}
}

// moreRoom is the advice for a disk that fills up.
const moreRoom = "make room, give the disk more, or keep events for less long (--retention)"

// probePrefix begins the name of a file by which it is found out whether a directory can be written to.
const probePrefix = ".doctor-"

// writable makes a file and removes it.
func writable(dir string) error {
	probe, err := os.CreateTemp(dir, probePrefix+"*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// examineSchema checks the schema, and reports whether the rest of the database can be checked.
func (c *DoctorCmd) examineSchema(ctx context.Context, db *store.DB, f *findings) bool {
	have, need, err := db.SchemaVersion(ctx)
	foreign := db.Foreign(ctx)
	missing, unlisted := db.Missing(ctx)
	switch {
	case cmp.Or(err, unlisted) != nil:
		f.wrong("schema", "%v", cmp.Or(err, unlisted))
	case errors.Is(foreign, store.ErrForeign), errors.Is(foreign, store.ErrHidden):
		f.wrong("schema", "%v", remedied(foreign))
	case have != need:
		f.wrong("schema", "%v", remedied(&store.SchemaError{Have: have, Need: need}))
	case len(missing) > 0:
		f.wrong("schema", "version %d, but somebody has removed what belongs to it (%s): restore a backup, or back this database up and restore that, which makes what is missing again, without its rows", have, strings.Join(missing, ", "))
	default:
		f.ok("schema", "version %d", have)
	}
	if err == nil && have <= need {
		c.examineRights(ctx, db, f)
		c.examineConnections(ctx, db, f)
		if err := db.Encodes(ctx); err != nil {
			f.wrong("encoding", "%v", remedied(err))
		}
	}
	return err == nil && foreign == nil && have == need
}

// examineRights checks whether tables can be created: all of them at first, and partitions of payloads every day.
func (c *DoctorCmd) examineRights(ctx context.Context, db *store.DB, f *findings) {
	if !db.Postgres() {
		return
	}
	const name = "rights"
	switch err := db.MayCreate(ctx); {
	case errors.As(err, new(*store.NotWritable)):
		f.wrong("database", "%v", remedied(err))
		return
	case err != nil:
		f.wrong(name, "%v", remedied(err))
		return
	}
	f.ok(name, "the role may make tables")
}

// examineConnections checks whether there are enough connections for one node.
func (c *DoctorCmd) examineConnections(ctx context.Context, db *store.DB, f *findings) {
	if !db.Postgres() {
		return
	}
	const name = "connections"
	switch allowed, taken, err := db.Connections(ctx); {
	case err != nil:
		f.wrong(name, "%v", err)
	case allowed < taken:
		f.warn(name, "PostgreSQL allows %d, and one node takes up to %d: set max_connections, or the CONNECTION LIMIT of the role or the database, to the sum of all nodes", allowed, taken)
	default:
		f.ok(name, "PostgreSQL allows %d, and one node takes up to %d", allowed, taken)
	}
}

func (c *DoctorCmd) examineStorage(ctx context.Context, db *store.DB, f *findings) {
	facts, err := db.Health(ctx)
	var said []string
	for name, value := range facts {
		said = append(said, name+" "+value)
	}
	slices.Sort(said)
	switch {
	case err != nil && errors.As(db.Writable(ctx), new(*store.NotWritable)): // reported by examineRights
	case err != nil:
		f.wrong("database", "it does not take writes: %v", err)
	default:
		f.ok("database", "takes writes; %s", strings.Join(said, ", "))
	}
	if version := facts["server_version"]; version != "" {
		if major, err := strconv.Atoi(strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' })[0]); err == nil && major < oldestPostgres {
			f.warn("durability", "PostgreSQL %s gets no more corrections from its makers: plan an upgrade", version)
		}
	}
	if facts["fsync"] == "off" {
		f.wrong("durability", "fsync is off: a crash of the database's machine loses events that were answered for, or the whole database; set fsync = on")
	}
	if facts["full_page_writes"] == "off" {
		f.warn("durability", "full_page_writes is off: after a crash of the machine pages may be torn, unless the disk writes them whole")
	}
	if db.Postgres() {
		return // it checks its pages itself, if they carry checksums
	}
	ctx, cancel := context.WithTimeout(ctx, verifyFor)
	defer cancel()
	switch err := db.Verify(ctx); {
	case ctx.Err() != nil:
		f.warn("integrity", "not all of the file was read in %v", verifyFor)
	case err != nil:
		f.wrong("integrity", "%v", remedied(err))
	default:
		f.ok("integrity", "no damage was found")
	}
}

func (c *DoctorCmd) examineClock(ctx context.Context, db *store.DB, f *findings) {
	skew, newest, err := db.Clock(ctx)
	here := time.Now()
	switch {
	case err != nil:
		f.wrong("clock", "%v", err)
	case skew.Abs() > maxSkew:
		f.wrong("clock", "this machine's differs from the database's by %v: have both set by NTP", skew.Abs().Round(time.Second))
	case newest.Sub(here) > maxBehind:
		f.wrong("clock", "it is %v behind the newest event: have it set by NTP", newest.Sub(here).Round(time.Second))
	default:
		f.ok("clock", "%s", here.UTC().Format(time.RFC3339))
	}
}

func (c *DoctorCmd) examineKeys(sealed []store.SealedSecret, f *findings) {
	keys, err := seal.Load(c.keyFile())
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(sealed) > 0:
		f.wrong("keyset", "%s is missing, and secrets were sealed with it: bring it back from a backup", c.keyFile())
		return
	case errors.Is(err, fs.ErrNotExist):
		f.ok("keyset", "there is none yet; the service makes it")
		return
	case err != nil:
		f.wrong("keyset", "%v", remedied(err))
		return
	}
	if n := foreign(keys, sealed); n > 0 {
		f.wrong("keyset", "it does not open %d of %d secrets: bring the right one back from a backup", n, len(sealed))
		return
	}
	f.ok("keyset", "keys: %d, secrets: %d, all open", keys.Count(), len(sealed))
}

// examineEndpointsFile tries the file on the stored data and rolls back. Errors in the file itself were reported with
// the configuration, and errors of the keyset, without which nothing can be tried, with that.
func (c *DoctorCmd) examineEndpointsFile(ctx context.Context, db *store.DB, checked *checked, f *findings) {
	const name = "endpoints file"
	if c.EndpointsFile == "" || checked == nil {
		return
	}
	keys, err := seal.Load(c.keyFile())
	if err != nil {
		return
	}
	var private net.Addr
	if c.MetricsListen != "" {
		if at, err := net.ResolveTCPAddr("tcp", c.MetricsListen); err == nil {
			private = at
		}
	}
	out := checked.outbound(private)
	log := slog.New(slog.DiscardHandler)
	file := &declaration{path: c.EndpointsFile, db: db, service: declare.New(db, endpoint.New(db, keys).Through(out),
		action.New(db, action.Config{Client: out, Sealer: keys, Log: log}), alert.New(db, alert.Config{Client: out, Sealer: keys, Log: log}))}
	switch _, err := file.declare(ctx, true); {
	case errors.Is(err, errNoAccount):
		f.ok(name, "%v", err)
	case err != nil:
		for line := range strings.SplitSeq(err.Error(), "\n") {
			f.wrong(name, "%s", line)
		}
	default:
		f.ok(name, "%s can be applied", c.EndpointsFile)
	}
}
