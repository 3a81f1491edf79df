package cli_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/cli"
	"hookglass/internal/seal"
	"hookglass/internal/store"
)

func open(t testing.TB, s storage) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), s.config())
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// whole checks that everything of the installation is at the other place, and works.
func (i installation) whole(t testing.TB, at storage) {
	t.Helper()
	if who, err := service(t, at).Authenticate(t.Context(), i.token); err != nil || who.User != 1 {
		t.Errorf("the token is %+v, %v", who, err)
	}
	if r := run(t, "", at.args("doctor")...); r.code != 0 || !strings.Contains(r.out, ", secrets: 1, all open") {
		t.Errorf("doctor: %+v", r)
	}
}

func TestABackupMadeUnderLoadHoldsWhatWasAcknowledgedBefore(t *testing.T) {
	for from, fresh := range kinds {
		t.Run(from, func(t *testing.T) {
			i := install(t, fresh(t))
			db := open(t, i.storage)
			defer db.Close()
			capture := func() {
				at := i.endpoint.CreatedAt
				ev := &hookglass.Event{
					ID: hookglass.NewEventID(hookglass.EventWebhook, at), EndpointNum: i.endpoint.Num, EndpointID: i.endpoint.ID, Type: hookglass.EventWebhook,
					ReceivedAt: at, Method: "POST", Path: "/", Proto: "HTTP/1.1", Size: 1500, Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked,
					Payload: &hookglass.Payload{Body: bytes.Repeat([]byte{0, 0xff, '"'}, 500)},
				}
				if err := db.CaptureWith(t.Context(), 1, ev, store.Work{Tasks: []store.TaskKind{store.TaskActions}}); err != nil {
					t.Error(err)
				}
			}
			const before = 3000 // more than one part of the file
			var left atomic.Int64
			left.Store(before)
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						capture()
					}
				})
			}
			wg.Wait()

			file := filepath.Join(t.TempDir(), "backup.tgz")
			var stop atomic.Bool
			for range 4 {
				wg.Go(func() {
					for !stop.Load() {
						capture()
					}
				})
			}
			made := object(t, "", i.args("backup", file)...)
			stop.Store(true)
			wg.Wait()
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || float64(info.Size()) != made["bytes"] || made["keys"] != true {
				t.Errorf("backup: %v, %v, %v", made, info, err)
			}

			for to, fresh := range kinds {
				t.Run("into "+to, func(t *testing.T) {
					s := fresh(t)
					if restored := object(t, "", s.args("restore", file)...); restored["rows"] != made["rows"] {
						t.Errorf("restored %v of %v", restored, made)
					}
					i.whole(t, s)
					there := open(t, s)
					defer there.Close()
					err := there.View(t.Context(), hookglass.System, func(v *store.View) error {
						e, err := v.Endpoint(string(i.endpoint.ID))
						if e.EventCount < before {
							t.Errorf("%d events, %d were acknowledged before", e.EventCount, before)
						}
						return err
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

// serve runs the service until stop, and returns when it is ready.
func serve(t testing.TB, s storage) (address string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	var log bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main(ctx, s.args("serve", "--listen", "127.0.0.1:0", "--smtp-listen", "off"), strings.NewReader(""), write, &log)
		write.Close()
	}()
	out := bufio.NewReader(read)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatalf("serve printed nothing: %v", err)
	}
	go io.Copy(io.Discard, out)
	fields := strings.Fields(line)
	for ready := false; !ready; <-time.After(5 * time.Millisecond) { // it needs the processor, too
		answer, err := http.Get(fields[len(fields)-1] + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		ready = answer.StatusCode == http.StatusOK
	}
	return fields[len(fields)-1], func() {
		t.Helper()
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("serve ended with %d: %s", code, log.String())
		}
	}
}

func TestRestoreRefusesAPlaceThatIsNotEmptyOrInUse(t *testing.T) {
	each(t, func(t *testing.T, s storage) {
		i := install(t, s)
		file := filepath.Join(t.TempDir(), "backup.tgz")
		object(t, "", i.args("backup", file)...)
		object(t, "", i.args("admin", "user", "create", "--email", "bob@example.com")...)

		fails(t, 1, "not empty", i.args("restore", file)...)
		if n := len(member(t, object(t, "", i.args("admin", "account", "list")...), "accounts").([]any)); n != 2 {
			t.Fatalf("a refused restore left %d accounts", n)
		}

		_, stop := serve(t, s)
		fails(t, 1, "in use", i.args("restore", file)...)
		fails(t, 1, "in use", i.args("restore", file, "--force")...)
		stop()

		object(t, "", i.args("restore", file, "--force")...)
		if n := len(member(t, object(t, "", i.args("admin", "account", "list")...), "accounts").([]any)); n != 1 {
			t.Errorf("%d accounts after the restore", n)
		}
		i.whole(t, s)
	})
}

// The service's user may write to its data directory alone, so backups come and go through it.
// Its rows are written while it is read a second time. Nothing is begun before that is known to be possible.
func TestABackupFromAPipeIsRefused(t *testing.T) {
	pipe, dir := filepath.Join(t.TempDir(), "pipe"), filepath.Join(t.TempDir(), "data")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	fails(t, 1, "which a pipe cannot be: it must be a file", "restore", "--data", dir, pipe)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", dir, err)
	}
}

func TestABackupInTheDataDirectoryIsNotInItsOwnWay(t *testing.T) {
	i := install(t, freshSQLite(t))
	file := filepath.Join(i.dir, "before.backup")
	object(t, "", i.args("backup", file)...)
	target := freshSQLite(t)
	if err := os.Mkdir(target.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(target.dir, "before.backup")
	if err := os.Rename(file, moved); err != nil {
		t.Fatal(err)
	}
	object(t, "", target.args("restore", moved)...)
	i.whole(t, target)
	fails(t, 1, "not empty", target.args("restore", moved)...)
}

func TestNothingBeginsEmptyAfterARestoreThatWasCutOff(t *testing.T) {
	i := install(t, freshSQLite(t))
	file := filepath.Join(t.TempDir(), "before.backup")
	object(t, "", i.args("backup", file)...)
	target := freshSQLite(t)
	if err := os.Mkdir(target.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(target.dir, "restore.db")
	if err := os.WriteFile(left, []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, begins := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"migrate"}, {"admin", "user", "create", "--email", "bob@example.com"}} {
		fails(t, 1, "restore into", target.args(begins...)...)
	}
	if r := run(t, "", target.args("doctor")...); r.code != 1 || !strings.Contains(r.out, "run it again") || strings.Contains(r.out, "hookglass migrate") {
		t.Errorf("doctor: %+v", r)
	}
	object(t, "", target.args("restore", file)...)
	i.whole(t, target)
	if err := os.WriteFile(left, []byte("of a restore with --force, whose database stayed"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stop := serve(t, target)
	stop()
}

func TestADamagedBackupIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	i := install(t, freshSQLite(t))
	dir := t.TempDir()
	file := filepath.Join(dir, "backup.tgz")
	object(t, "", i.args("backup", file)...)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	target := freshSQLite(t)
	try := func(name string, content []byte) {
		t.Helper()
		bad := filepath.Join(dir, "bad.tgz")
		if err := os.WriteFile(bad, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := run(t, "", target.args("restore", bad)...); r.code != 1 || r.out != "" {
			t.Errorf("%s: %+v", name, r)
		}
		if _, err := os.Stat(target.dir); !os.IsNotExist(err) {
			t.Fatalf("%s: the data directory was made: %v", name, err)
		}
	}
	try("empty", nil)
	try("text", []byte("-- PostgreSQL database dump"))
	for n := 1; n < len(good); n += 97 {
		try("cut off", good[:n])
	}
	whole, err := unzipped(good)
	if err != nil {
		t.Fatal(err)
	}
	for n := 10; n < len(good); n += 101 { // behind gzip's head, whose time and system mean nothing
		turned := bytes.Clone(good)
		turned[n] ^= 0x10
		if text, err := unzipped(turned); err == nil && bytes.Equal(text, whole) {
			continue // a bit that fills up a byte, and means nothing
		}
		try("a bit turned", turned)
	}
	fails(t, 1, "no such file", target.args("restore", filepath.Join(dir, "none"))...)
}

func unzipped(b []byte) ([]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(zip)
}

func TestABackupWithoutKeysNeedsTheKeysetThatItWasMadeWith(t *testing.T) {
	each(t, func(t *testing.T, s storage) {
		i := install(t, s)
		dir := t.TempDir()
		file := filepath.Join(dir, "backup.tgz")
		if made := object(t, "", i.args("backup", file, "--without-keys")...); made["keys"] != false {
			t.Errorf("backup: %v", made)
		}
		keyset, err := os.ReadFile(filepath.Join(i.dir, "keys.json"))
		if err != nil {
			t.Fatal(err)
		}

		target := freshSQLite(t)
		fails(t, 1, "made without its keyset", target.args("restore", file)...)
		if err := os.Mkdir(target.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(target.dir, "keys.json")
		if _, err := seal.LoadOrCreate(path); err != nil {
			t.Fatal(err)
		}
		fails(t, 1, "not the one", target.args("restore", file)...)
		if err := os.WriteFile(path, keyset, 0o600); err != nil {
			t.Fatal(err)
		}
		object(t, "", target.args("restore", file)...)
		i.whole(t, target)
	})
}

// strangeKeys puts the keyset of another installation in the place of its own, and returns where that is now.
func (i installation) strangeKeys(t *testing.T) (right string) {
	t.Helper()
	path := filepath.Join(i.dir, "keys.json")
	right = path + ".kept"
	if err := os.Rename(path, right); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.LoadOrCreate(path); err != nil {
		t.Fatal(err)
	}
	return right
}

// A node with a keyset of its own would seal what no other opens, and refuse arrivals at endpoints whose secrets it
// does not open.
func TestAServerDoesNotStartWithTheKeysetOfAnother(t *testing.T) {
	each(t, func(t *testing.T, s storage) {
		i := install(t, s)
		i.strangeKeys(t)
		fails(t, 1, "opens none of", i.args("admin", "keys", "rotate")...)
		if r := run(t, "", i.args("serve", "--listen", "127.0.0.1:0", "--smtp-listen", "off")...); r.code != 1 || !strings.Contains(r.err, "opens none of") {
			t.Errorf("%+v", r)
		}
	})
}

// Who restores such a backup would believe to have the keyset, and could not bring the right one.
func TestABackupTakesNoKeysetOfAnother(t *testing.T) {
	each(t, func(t *testing.T, s storage) {
		i := install(t, s)
		right := i.strangeKeys(t)
		file := filepath.Join(t.TempDir(), "backup.tgz")
		if r := run(t, "", i.args("backup", file)...); r.code != 0 || !strings.Contains(r.err, "does not hold the keyset") || !strings.Contains(r.err, "opens none of") {
			t.Errorf("%+v", r)
		}
		if r := run(t, "", i.args("backup", file, "--json")...); r.code != 0 || decode(t, r.out)["keys"] != false {
			t.Errorf("backup: %+v", r)
		}
		target := freshSQLite(t)
		if err := os.Mkdir(target.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(right, filepath.Join(target.dir, "keys.json")); err != nil {
			t.Fatal(err)
		}
		object(t, "", target.args("restore", file)...)
		i.whole(t, target)
	})
}

// A backup on another machine than the service's, with a wrong --data or without --secret-key-file, finds no keyset; it
// would be missed on the day of the restore. What a timer prints goes nowhere or to a program, its errors to a person.
func TestABackupSaysThatTheKeysetIsMissing(t *testing.T) {
	each(t, func(t *testing.T, s storage) {
		i := install(t, s)
		if err := os.Remove(filepath.Join(i.dir, "keys.json")); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "backup.tgz")
		for _, args := range [][]string{{"backup", file}, {"backup", file, "--json"}} {
			if r := run(t, "", i.args(args...)...); r.code != 0 || !strings.Contains(r.err, "keys.json is missing, and secrets were sealed with it") {
				t.Errorf("%+v", r)
			}
		}
		if r := run(t, "", i.args("backup", file, "--without-keys")...); r.code != 0 || r.err != "" {
			t.Errorf("%+v", r)
		}
	})
}

// A URL that leads to another database than the service's, or a file that something else left, holds nothing: what is made
// of it must not take the place of the last backup.
func TestNothingIsNoBackup(t *testing.T) {
	each(t, func(t *testing.T, s storage) {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(s.dir, "hookglass.db"), "") // of no matter to PostgreSQL
		file := filepath.Join(t.TempDir(), "backup.tgz")
		write(t, file, "the backup of yesterday")
		fails(t, 1, "nothing was ever stored in the database", s.args("backup", file)...)
		if kept, err := os.ReadFile(file); err != nil || string(kept) != "the backup of yesterday" {
			t.Errorf("the last backup is now %q, %v", kept, err)
		}
	})
}

func TestARestoreDestroysNoKeyset(t *testing.T) {
	i := install(t, freshSQLite(t))
	file := filepath.Join(t.TempDir(), "backup.tgz")
	object(t, "", i.args("backup", file)...)

	// Rotated since: the keyset that is there opens more than the backup's, and stays.
	object(t, "", i.args("admin", "keys", "rotate")...)
	object(t, "", i.args("restore", file, "--force")...)
	i.whole(t, i.storage)
	if keys := object(t, "", i.args("admin", "keys", "rotate")...); keys["keys"] != 4. {
		t.Errorf("keys after the restore: %v", keys)
	}

	// Another installation's: it is kept beside.
	other, err := furnish(freshSQLite(t))
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(other.dir, "keys.json")
	theirs, err := os.ReadFile(link)
	if err != nil {
		t.Fatal(err)
	}
	keyset := filepath.Join(t.TempDir(), "keyset.json")
	if err := errors.Join(os.Rename(link, keyset), os.Symlink(keyset, link)); err != nil {
		t.Fatal(err)
	}
	object(t, "", other.args("restore", file, "--force")...)
	i.whole(t, other.storage)
	if there, err := os.Lstat(link); err != nil || there.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link to the keyset is now %v, %v", there, err)
	}
	kept, err := filepath.Glob(keyset + ".before-*")
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	if content, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(content, theirs) {
		t.Errorf("what was kept is not what was there: %v", err)
	}
}

// Rows without the keyset would be of no use, and in the way of the next try.
func TestARestoreThatCannotPlaceItsKeysetWritesNothing(t *testing.T) {
	i := install(t, freshSQLite(t))
	file := filepath.Join(t.TempDir(), "backup.tgz")
	object(t, "", i.args("backup", file)...)
	each(t, func(t *testing.T, s storage) {
		keyset := filepath.Join(t.TempDir(), "keys", "keyset.json")
		fails(t, 1, "the keyset cannot be written", s.args("restore", file, "--secret-key-file", keyset)...)
		if err := os.Mkdir(filepath.Dir(keyset), 0o700); err != nil {
			t.Fatal(err)
		}
		object(t, "", s.args("restore", file, "--secret-key-file", keyset)...)
		if _, err := seal.Load(keyset); err != nil {
			t.Error(err)
		}
	})
}

func TestARestoreThatWasCutOffIsNotInTheWayOfTheNext(t *testing.T) {
	i := install(t, freshSQLite(t))
	file := filepath.Join(t.TempDir(), "backup.tgz")
	object(t, "", i.args("backup", file)...)
	target := freshSQLite(t)
	if err := os.Mkdir(target.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"lock", "restore.db", "restore.db-wal"} {
		if err := os.WriteFile(filepath.Join(target.dir, left), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	object(t, "", target.args("restore", file)...)
	i.whole(t, target)
	if left, _ := filepath.Glob(filepath.Join(target.dir, "restore.db*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A restore that is killed while it makes the tables leaves some of them, empty: without those of the queue, which are
// made last, or with those of an older schema.
func TestARestoreGoesOnWithTheTablesOfOneThatWasKilled(t *testing.T) {
	i := install(t, freshPostgres(t))
	file := filepath.Join(t.TempDir(), "backup.tgz")
	object(t, "", i.args("backup", file)...)
	for name, kill := range map[string]func(db *store.DB, dsn string) error{
		"while it made the tables": func(db *store.DB, _ string) error { return db.MigrateTo(t.Context(), 3) },
		"before it made those of the queue": func(db *store.DB, dsn string) error {
			if err := db.Migrate(t.Context()); err != nil {
				return err
			}
			other, err := sql.Open("pgx", dsn)
			if err != nil {
				return err
			}
			defer other.Close()
			_, err = other.ExecContext(t.Context(), `DO $$ DECLARE name text; BEGIN
				FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'river%' LOOP
					EXECUTE 'DROP TABLE ' || name || ' CASCADE';
				END LOOP;
			END $$; DROP TYPE river_job_state CASCADE`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			target := freshPostgres(t)
			db := open(t, target)
			if err := errors.Join(kill(db, target.config().URL), db.Close()); err != nil {
				t.Fatal(err)
			}
			object(t, "", target.args("restore", file)...)
			i.whole(t, target)
		})
	}
}

func TestABackupTakesThePlaceOfFilesAlone(t *testing.T) {
	s := install(t, freshSQLite(t)).storage
	device := filepath.Join(t.TempDir(), "device")
	if err := os.Symlink(os.DevNull, device); err != nil {
		t.Fatal(err)
	}
	fails(t, 1, "is no file", s.args("backup", device)...)
	fails(t, 2, "name one", s.args("backup", "-")...) // which stands for standard output elsewhere
	if there, err := os.Stat(device); err != nil || there.Mode().IsRegular() {
		t.Errorf("the device is %v, %v", there, err)
	}
}

func TestABackupGoesWhereALinkLeads(t *testing.T) {
	s := install(t, freshSQLite(t)).storage
	dir, elsewhere := t.TempDir(), t.TempDir()
	link, file := filepath.Join(dir, "latest.backup"), filepath.Join(elsewhere, "latest.backup")
	write(t, file, "the backup of yesterday")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	object(t, "", s.args("backup", link)...)
	object(t, "", freshSQLite(t).args("restore", file)...)
	if there, err := os.Lstat(link); err != nil || there.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", there, err)
	}
	nowhere := filepath.Join(dir, "none", "latest.backup")
	fails(t, 1, nowhere+" cannot be written: no such file", s.args("backup", nowhere)...)
}

// The name of the database is what somebody gives who takes FILE for what is backed up.
func TestABackupTakesNotThePlaceOfTheInstallation(t *testing.T) {
	i := install(t, freshSQLite(t))
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(i.dir, "hookglass.db"), link); err != nil {
		t.Fatal(err)
	}
	files := []string{link}
	for _, name := range []string{
		"hookglass.db", "hookglass.db-wal", "hookglass.db-shm", "hookglass.db-journal", "hookglass.db-reserve",
		"restore.db", "restore.db-wal", "restore.db-shm", "keys.json", "lock", "dev.json",
	} {
		files = append(files, filepath.Join(i.dir, name))
	}
	linked := filepath.Join(t.TempDir(), "data")
	if err := os.Symlink(i.dir, linked); err != nil {
		t.Fatal(err)
	}
	files = append(files, filepath.Join(linked, "restore.db"))
	for _, file := range files {
		fails(t, 2, "is a file of the installation itself", i.args("backup", file)...)
	}
	i.whole(t, i.storage)
	object(t, "", i.args("backup", filepath.Join(i.dir, "hookglass.db.backup"))...)
}

func TestWhatAKilledBackupLeftGoesWithTheNext(t *testing.T) {
	s := install(t, freshSQLite(t)).storage
	dir := t.TempDir()
	file := filepath.Join(dir, "backup.tgz")
	for _, name := range []string{".backup.tgz.unfinished-1", ".backup.tgz.unfinished-2", ".backup.tgz-3", ".other.tgz.unfinished-4"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	held, err := os.Open(filepath.Join(dir, ".backup.tgz.unfinished-2"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil { // as a backup that is being written
		t.Fatal(err)
	}
	object(t, "", s.args("backup", file)...)
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{".backup.tgz-3", ".backup.tgz.unfinished-2", ".other.tgz.unfinished-4", "backup.tgz"}; !slices.Equal(left, want) {
		t.Errorf("there are %q, want %q", left, want)
	}
}

func TestABackupOfNothingIsRefused(t *testing.T) {
	s := freshSQLite(t)
	file := filepath.Join(t.TempDir(), "backup.tgz")
	fails(t, 1, "no database", s.args("backup", file)...)
	for _, path := range []string{s.dir, file} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s was made: %v", path, err)
		}
	}
}
