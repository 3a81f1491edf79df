package server

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"hookglass/internal/store"
)

// A backup is a gzipped tar of JSON, the same for both databases and readable without this program:
//
//	manifest.json              what it is
//	rows/000001.ndjson …       a line with the table's shape, then a line for each row: an array with null,
//	                           a number, a string, or base64 where the column holds bytes
//	counters.json              the last id that each table has given away
//	keys.json                  the keyset, unless it was left out
//	checksums.json             SHA-256 of each entry above, by name; the last entry, so that a file that
//	                           was cut off has none
const (
	archiveFormat   = 1
	manifestEntry   = "manifest.json"
	countersEntry   = "counters.json"
	keysEntry       = "keys.json"
	checksumsEntry  = "checksums.json"
	rowsEntryPrefix = "rows/"
)

// partBytes is the size of an entry of rows. That much, plus the row that exceeds it, is in memory when it is written
// or read.
const partBytes = 4 << 20

// maxEntry bounds an entry: a row with a body of 1 GiB, the largest that can be configured, in base64.
const maxEntry = 2 << 30

// manifest is the first entry of a backup.
type manifest struct {
	Format    int       `json:"format"`
	Program   string    `json:"program"`
	Schema    int64     `json:"schema"`
	CreatedAt time.Time `json:"created_at"`
	Database  string    `json:"database"` // the kind it was made from; it can be restored into any kind
	Keys      bool      `json:"keys"`     // whether the keyset is in it
	// KeyCheck is a constant sealed with the keyset, to recognise that keyset; empty if there was none.
	KeyCheck []byte `json:"key_check,omitempty"`
}

// archiveWriter writes a backup. It is a store.Sink.
type archiveWriter struct {
	zip   *gzip.Writer
	tar   *tar.Writer
	now   time.Time
	sums  map[string]string
	table store.Table
	part  bytes.Buffer
	parts int
	rows  int64
}

func newArchiveWriter(w io.Writer, m manifest) (*archiveWriter, error) {
	zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	a := &archiveWriter{zip: zip, tar: tar.NewWriter(zip), now: m.CreatedAt, sums: make(map[string]string)}
	return a, a.entryJSON(manifestEntry, m)
}

func (a *archiveWriter) entry(name string, content []byte) error {
	sum := sha256.Sum256(content)
	a.sums[name] = hex.EncodeToString(sum[:])
	if err := a.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), ModTime: a.now, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err := a.tar.Write(content)
	return err
}

func (a *archiveWriter) entryJSON(name string, v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return a.entry(name, append(content, '\n'))
}

// Table implements store.Sink.
func (a *archiveWriter) Table(t store.Table) error {
	if err := a.flush(); err != nil {
		return err
	}
	a.table = t
	return a.startPart()
}

func (a *archiveWriter) startPart() error {
	head, err := json.Marshal(a.table)
	if err != nil {
		return err
	}
	a.part.Write(append(head, '\n'))
	return nil
}

// Row implements store.Sink.
func (a *archiveWriter) Row(values []any) error {
	if err := appendRow(&a.part, values); err != nil {
		return err
	}
	a.rows++
	if a.part.Len() < partBytes {
		return nil
	}
	if err := a.flush(); err != nil {
		return err
	}
	return a.startPart()
}

// Counters implements store.Sink.
func (a *archiveWriter) Counters(counters map[string]int64) error {
	if err := a.flush(); err != nil {
		return err
	}
	return a.entryJSON(countersEntry, counters)
}

func (a *archiveWriter) flush() error {
	if a.part.Len() == 0 {
		return nil
	}
	a.parts++
	err := a.entry(fmt.Sprintf("%s%06d.ndjson", rowsEntryPrefix, a.parts), a.part.Bytes())
	a.part.Reset()
	return err
}

// close ends the backup with its checksums.
func (a *archiveWriter) close() error {
	if err := a.entryJSON(checksumsEntry, a.sums); err != nil {
		return err
	}
	return errors.Join(a.tar.Close(), a.zip.Close())
}

func appendRow(b *bytes.Buffer, values []any) error {
	b.WriteByte('[')
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		switch v := v.(type) {
		case nil:
			b.WriteString("null")
		case int64:
			b.Write(strconv.AppendInt(b.AvailableBuffer(), v, 10))
		case []byte:
			b.WriteByte('"')
			b.Write(base64.StdEncoding.AppendEncode(b.AvailableBuffer(), v))
			b.WriteByte('"')
		default: // string, float64
			text, err := json.Marshal(v)
			if err != nil {
				return err
			}
			b.Write(text)
		}
	}
	b.WriteString("]\n")
	return nil
}

func parseRow(row []byte, columns []store.Column) ([]any, error) {
	var cells []json.RawMessage
	if err := json.Unmarshal(row, &cells); err != nil {
		return nil, err
	}
	if len(cells) != len(columns) {
		return nil, fmt.Errorf("a row of %d values for %d columns", len(cells), len(columns))
	}
	values := make([]any, len(cells))
	for i, cell := range cells {
		if string(cell) == "null" {
			continue
		}
		var err error
		switch columns[i].Type {
		case store.IntColumn:
			values[i], err = strconv.ParseInt(string(cell), 10, 64)
		case store.TextColumn:
			values[i], err = into[string](cell)
		case store.BytesColumn:
			values[i], err = into[[]byte](cell)
		case store.RealColumn:
			values[i], err = into[float64](cell)
		default:
			err = fmt.Errorf("a column of type %q", columns[i].Type)
		}
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", columns[i].Name, err)
		}
	}
	return values, nil
}

func into[T any](cell []byte) (any, error) {
	var v T
	err := json.Unmarshal(cell, &v)
	return v, err
}

// archive is what a completely read backup contains besides rows.
type archive struct {
	manifest manifest
	keys     []byte // nil: not in it
	rows     int64
}

// readArchive reads and verifies a backup from beginning to end, and passes its rows to the sink. The sink may get rows
// of a damaged backup before the error is found.
func readArchive(r io.Reader, sink store.Sink) (*archive, error) {
	zip, err := gzip.NewReader(bufio.NewReaderSize(r, 1<<20))
	if err != nil {
		return nil, errors.New("this is not a backup")
	}
	defer zip.Close()
	reader := archiveReader{sink: sink, sums: make(map[string]string)}
	for t := tar.NewReader(zip); ; {
		head, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the backup is damaged: %w", err)
		}
		if reader.complete {
			return nil, errors.New("the backup is damaged: something follows its end")
		}
		if head.Size > maxEntry {
			return nil, fmt.Errorf("the backup is damaged: %s has %d bytes", head.Name, head.Size)
		}
		content, err := io.ReadAll(io.LimitReader(t, head.Size)) // grows with the data, not with the declared size
		if err == nil && int64(len(content)) != head.Size {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, fmt.Errorf("the backup is damaged: %s: %w", head.Name, err)
		}
		if err := reader.entry(head.Name, content); err != nil {
			return nil, err
		}
	}
	if _, err := io.Copy(padding{}, zip); err != nil { // as far as gzip's own checksum
		return nil, fmt.Errorf("the backup is damaged: %w", err)
	}
	if !reader.complete {
		return nil, errors.New("the backup is damaged: its end is missing")
	}
	return &reader.archive, nil
}

// padding accepts what may follow the end of a tar: zeros that fill a block. Another backup appended to it is refused,
// since that may be the intended one.
type padding struct{}

func (padding) Write(p []byte) (int, error) {
	if len(bytes.Trim(p, "\x00")) > 0 {
		return 0, errors.New("something follows its end")
	}
	return len(p), nil
}

type archiveReader struct {
	archive
	sink     store.Sink
	sums     map[string]string
	counted  bool
	complete bool
}

func (r *archiveReader) entry(name string, content []byte) error {
	if len(r.sums) == 0 && name != manifestEntry {
		return errors.New("this is not a backup")
	}
	damaged := func(err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("the backup is damaged: %s: %w", name, err)
	}
	if name == checksumsEntry {
		return damaged(r.finish(content))
	}
	if _, twice := r.sums[name]; twice {
		return damaged(errors.New("it comes twice"))
	}
	sum := sha256.Sum256(content)
	r.sums[name] = hex.EncodeToString(sum[:])
	switch {
	case name == manifestEntry:
		if err := json.Unmarshal(content, &r.manifest); err != nil || r.manifest.Format == 0 {
			return errors.New("this is not a backup")
		}
		if r.manifest.Format > archiveFormat {
			return fmt.Errorf("the backup was made by a newer version (%s): restore it with that", r.manifest.Program)
		}
		return nil
	case name == countersEntry:
		var counters map[string]int64
		if err := json.Unmarshal(content, &counters); err != nil {
			return damaged(err)
		}
		r.counted = true
		return r.sink.Counters(counters)
	case name == keysEntry:
		r.keys = content
		return nil
	case strings.HasPrefix(name, rowsEntryPrefix) && !r.counted:
		return r.part(name, content)
	}
	return damaged(errors.New("it does not belong there"))
}

// part reads one entry of rows. For a table with several entries, the sink's Table is called for each.
func (r *archiveReader) part(name string, content []byte) error {
	var table store.Table
	for n := 0; len(content) > 0; n++ {
		var text []byte
		text, content, _ = bytes.Cut(content, []byte("\n"))
		if n == 0 {
			if err := json.Unmarshal(text, &table); err != nil {
				return fmt.Errorf("the backup is damaged: %s: %w", name, err)
			}
			if err := r.sink.Table(table); err != nil {
				return err
			}
			continue
		}
		values, err := parseRow(text, table.Columns)
		if err != nil {
			return fmt.Errorf("the backup is damaged: %s, line %d: %w", name, n+1, err)
		}
		if err := r.sink.Row(values); err != nil {
			return err
		}
		r.rows++
	}
	return nil
}

// finish compares the checksums of the entries with those written.
func (r *archiveReader) finish(content []byte) error {
	var want map[string]string
	if err := json.Unmarshal(content, &want); err != nil {
		return err
	}
	if len(want) != len(r.sums) || !r.counted {
		return errors.New("entries are missing")
	}
	for name, sum := range r.sums {
		if want[name] != sum {
			return fmt.Errorf("%s is not what was written", name)
		}
	}
	if r.manifest.Keys != (r.keys != nil) {
		return errors.New("the keyset is missing")
	}
	r.complete = true
	return nil
}

// check is a sink that discards everything, to verify a backup before anything is written.
type check struct{}

func (check) Table(store.Table) error         { return nil }
func (check) Row([]any) error                 { return nil }
func (check) Counters(map[string]int64) error { return nil }
