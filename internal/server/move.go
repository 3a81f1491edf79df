package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/move"
	"hookglass/internal/seal"
	"hookglass/internal/store"
)

// progressEvery is how often a person or a machine is told how far a move is.
const progressEvery = time.Second

// moveTo is `hookglass migrate --to`.
func (c *MigrateCmd) moveTo(ctx context.Context, t *Terminal) error {
	if c.DatabaseURL != "" {
		return UsageError{errors.New("--to moves the embedded database of --data; it does not go with --database-url")}
	}
	if !isPostgresURL(c.To) {
		return UsageError{errors.New("--to must begin with postgres://")}
	}
	if !c.exists() {
		return fmt.Errorf("there is no database in %s: name the directory of the service by --data", c.Data)
	}
	release, err := lockData(c.Data)
	if errors.Is(err, errInUse) {
		return errors.New("the data directory is in use by a running server; stop it first: what it took in during the move would be lost")
	}
	if err != nil {
		return err
	}
	defer release()
	used, err := store.PostgresInUse(ctx, c.To)
	if err != nil {
		return err
	}
	if used {
		return errors.New("the destination is in use by another hookglass process; stop it first")
	}
	from, err := c.Storage.open(ctx, nil)
	if err != nil {
		return err
	}
	defer from.Close()
	keys, err := c.keyFacts(ctx, from)
	if err != nil {
		return err
	}
	log := t.log()
	if c.JSON { // as the progress
		log = slog.New(slog.NewJSONHandler(t.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	to, err := store.Open(ctx, store.Config{URL: c.To, Log: log})
	if err != nil {
		return err
	}
	defer to.Close()
	report, err := c.move(ctx, t, from, to)
	if words, known := move.Explain(err); known {
		return errors.New(words)
	}
	for _, lasting := range []any{new(*store.SchemaError), new(*store.MissingRight), new(*store.NotWritable), new(*store.EncodingError), new(*store.TooOldError)} {
		if errors.As(err, lasting) {
			return remedied(err)
		}
	}
	if err != nil {
		return cutShort(ctx, err)
	}
	if err := c.print(t, c.reportJSON(report, keys), c.reportText(report, keys)); err != nil {
		return err
	}
	return unequal(report)
}

// cutShort says what to do about a move that was broken off. It wraps nothing: of an error with a code its own sentence
// is what people are told, and this one would not be.
func cutShort(ctx context.Context, err error) error {
	why := err.Error()
	if coded, ok := errors.AsType[*hookglass.Error](err); ok && coded.Err != nil {
		why = coded.Err.Error()
	}
	if ctx.Err() != nil {
		why = "it was stopped"
	}
	return fmt.Errorf("the move did not come to its end: %s; what was copied stays: run the same command again, and it goes on where it was", why)
}

// unequal says what to do about a destination that is not what the source is.
func unequal(r *move.Report) error {
	switch {
	case r.Equal:
		return nil
	case r.Complete: // both were the same when the move ended: to empty the destination now would lose what it took in since
		return errors.New("the move had ended, with both sides the same, and they differ now: the destination was served since, or one of them was written to by hand; nothing was changed, and there is nothing to do. --restart would empty the destination, with all that it received since")
	}
	return errors.New("the destination is not what the source is, and is not served; --restart empties it and begins anew")
}

func (c *MigrateCmd) move(ctx context.Context, t *Terminal, from, to *store.DB) (r *move.Report, err error) {
	if err := to.Virgin(ctx); err != nil {
		return nil, err
	}
	have, need, err := to.SchemaVersion(ctx)
	if err != nil {
		return nil, err
	}
	if have > need {
		return nil, fmt.Errorf("the destination: %w", &store.SchemaError{Have: have, Need: need})
	}
	source, err := from.OpenMoveSource(ctx)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	used, err := to.Used(ctx)
	if err != nil {
		return nil, err
	}
	if used && have < need { // a new database is made what it has to be, also where that was cut off; one that somebody used is his
		err := &store.SchemaError{Have: have, Need: need}
		return nil, remedy{fmt.Errorf("the destination: %w", err), "give it a new, empty database, or run hookglass migrate on it"}
	}
	if err := to.Migrate(ctx); err != nil {
		return nil, err
	}
	target, err := to.OpenMoveTarget(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	var told time.Time
	r, err = move.Run(ctx, source, target, move.Options{Restart: c.Restart, Progress: func(p move.Progress) {
		if time.Since(told) >= progressEvery {
			told = time.Now()
			c.tell(t.Err, p)
		}
	}})
	if r != nil {
		r.Schema = need
	}
	return r, err
}

var errFilling = errors.New("the database is being filled by hookglass migrate --to or hookglass restore, or that was cut off: finish it first")

// filled answers errFilling for a database that a move or a restore has not filled yet. A row that anything else puts
// there would be one too many in the comparison at the move's end.
func filled(ctx context.Context, db *store.DB) error {
	unfinished, err := db.Unfinished(ctx)
	if err == nil && unfinished {
		err = errFilling
	}
	return err
}

func (c *MigrateCmd) tell(w io.Writer, p move.Progress) {
	if c.JSON {
		_ = json.NewEncoder(w).Encode(map[string]any{"progress": map[string]any{
			"doing": p.Doing, "table": p.Table, "table_rows": p.TableRows, "table_total": p.TableOf, "rows": p.Rows, "total": p.Of,
			"bytes": p.Bytes, "rows_per_second": int64(p.PerSecond), "left_seconds": int64(p.Left.Seconds()),
		}})
		return
	}
	percent := 100.0
	if p.Of > 0 {
		percent = 100 * float64(p.Rows) / float64(p.Of)
	}
	fmt.Fprintf(w, "%s %s: %d of %d rows; in all %d of %d (%.1f %%), %.1f MiB, %.0f rows/s, about %v left\n",
		p.Doing, p.Table, p.TableRows, p.TableOf, p.Rows, p.Of, percent, float64(p.Bytes)/(1<<20), p.PerSecond, p.Left)
}

// keyFacts says what the keyset is worth to the destination.
type keyFacts struct {
	file   string
	sealed int // secrets of the source, as far as they were looked at
	opened int
}

func (c *MigrateCmd) keyFacts(ctx context.Context, db *store.DB) (f keyFacts, err error) {
	f.file = c.keyFile()
	have, need, err := db.SchemaVersion(ctx)
	if err != nil || have != need {
		return f, err // which is refused in a moment
	}
	sealed, err := newestSealed(ctx, db, sealedSample)
	if err != nil {
		return f, err
	}
	f.sealed = len(sealed)
	keys, err := seal.Load(f.file)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	f.opened = len(sealed) - foreign(keys, sealed)
	return f, nil
}

// advice says what must go with the data.
func (f keyFacts) advice() string {
	switch {
	case f.sealed == 0:
		return fmt.Sprintf("Nothing is sealed yet. Each node that serves the destination needs the same keyset: give them %s, by --secret-key-file.", f.file)
	case f.opened < f.sealed:
		return fmt.Sprintf("The keyset %s opens %d of the %d secrets that were looked at. They were copied as they are, sealed; find the keyset that opens the others.", f.file, f.opened, f.sealed)
	}
	return fmt.Sprintf("Secrets were copied as they are, sealed, and %s opens them (%d were tried). Carry that file over: each node that serves the destination needs it, by --secret-key-file.", f.file, f.sealed)
}

// place is the destination without what of its address may be secret.
func place(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "postgres://…"
	}
	return "postgres://" + cmp.Or(u.Host, u.Query().Get("host")) + u.Path
}

func (c *MigrateCmd) reportJSON(r *move.Report, keys keyFacts) map[string]any {
	tables := make([]map[string]any, len(r.Tables))
	for i, t := range r.Tables {
		differences := make([]map[string]string, len(t.Differences))
		for k, d := range t.Differences {
			differences[k] = map[string]string{"key": d.Key, "what": d.What}
		}
		tables[i] = map[string]any{
			"table": t.Table, "source_rows": t.Source, "destination_rows": t.Destination, "bytes": t.Bytes, "digest": t.Digest,
			"differing": t.Differing, "differences": differences,
		}
	}
	return map[string]any{
		"ok": r.Equal, "schema_version": r.Schema, "source": c.databasePath(), "destination": place(c.To), "resumed": r.Resumed,
		"already_complete": r.Complete, "rows_copied": r.Copied, "copy_ms": r.CopyTime.Milliseconds(), "took_ms": r.Took.Milliseconds(),
		"tables": tables, "counters_differing": append([]string{}, r.Counters...),
		"keys": map[string]any{"file": keys.file, "secrets_tried": keys.sealed, "secrets_opened": keys.opened},
	}
}

func (c *MigrateCmd) reportText(r *move.Report, keys keyFacts) func(io.Writer) error {
	return func(w io.Writer) error {
		var rows []string
		var source, destination, size int64
		for _, t := range r.Tables {
			source, destination, size = source+t.Source, destination+t.Destination, size+t.Bytes
			if t.Source == 0 && t.Destination == 0 {
				continue
			}
			verdict := "same"
			if t.Differing > 0 {
				verdict = fmt.Sprintf("%d DIFFER", t.Differing)
			}
			rows = append(rows, fmt.Sprintf("%s\t%d\t%d\t%.1f\t%s\t%s", t.Table, t.Source, t.Destination, float64(t.Bytes)/(1<<20), t.Digest[:16], verdict))
		}
		if err := table("TABLE\tROWS HERE\tROWS THERE\tMIB\tDIGEST\tROW BY ROW", rows)(w); err != nil {
			return err
		}
		for _, t := range r.Tables {
			for _, d := range t.Differences {
				fmt.Fprintf(w, "%s: %s is %s in the destination\n", t.Table, d.Key, d.What)
			}
			if more := t.Differing - int64(len(t.Differences)); more > 0 {
				fmt.Fprintf(w, "%s: and %d more\n", t.Table, more)
			}
		}
		for _, counter := range r.Counters {
			fmt.Fprintf(w, "the last id given away differs: %s\n", counter)
		}
		rate := ""
		if s := r.CopyTime.Seconds(); s > 0 && r.Copied > 0 {
			rate = fmt.Sprintf(" (%.0f rows/s)", float64(r.Copied)/s)
		}
		fmt.Fprintf(w, "Copied %d rows in %v%s; compared %d rows here with %d there, %.1f MiB; %v in all.\n",
			r.Copied, r.CopyTime.Round(time.Millisecond), rate, source, destination, float64(size)/(1<<20), r.Took.Round(time.Millisecond))
		if !r.Equal {
			return nil
		}
		lines := []string{
			"Everything of " + c.databasePath() + " is in " + place(c.To) + ", row for row. The source was not changed.",
			keys.advice(),
			"Start: hookglass serve --database-url postgres://… --secret-key-file " + keys.file + ", and do not serve from the source again.",
			"",
		}
		_, err := io.WriteString(w, strings.Join(lines, "\n"))
		return err
	}
}
