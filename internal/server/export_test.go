package server

import (
	"io"

	"hookglass/internal/store"
)

// ReadArchive reads a backup whole and counts its rows.
func ReadArchive(r io.Reader) (rows int64, err error) {
	a, err := readArchive(r, check{})
	if err != nil {
		return 0, err
	}
	return a.rows, nil
}

// WriteArchive writes a backup of one table.
func WriteArchive(w io.Writer, t store.Table, rows [][]any) error {
	a, err := newArchiveWriter(w, manifest{Format: archiveFormat, Schema: 1})
	if err != nil {
		return err
	}
	if err := a.Table(t); err != nil {
		return err
	}
	for _, r := range rows {
		if err := a.Row(r); err != nil {
			return err
		}
	}
	if err := a.Counters(map[string]int64{t.Name: int64(len(rows))}); err != nil {
		return err
	}
	return a.close()
}

// ReadRows reads a backup into memory.
func ReadRows(r io.Reader) (rows [][]any, err error) {
	var m memory
	_, err = readArchive(r, &m)
	return m.rows, err
}

// ParseRow reads one row.
var ParseRow = parseRow

type memory struct {
	check
	rows [][]any
}

func (m *memory) Row(values []any) error { m.rows = append(m.rows, values); return nil }
