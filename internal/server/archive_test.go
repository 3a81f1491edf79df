package server_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"hookglass/internal/server"
	"hookglass/internal/store"
)

var shape = store.Table{Name: "things", Columns: []store.Column{
	{Name: "id", Type: store.IntColumn}, {Name: "name", Type: store.TextColumn}, {Name: "body", Type: store.BytesColumn}, {Name: "weight", Type: store.RealColumn},
}}

func archived(t testing.TB, rows [][]any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := server.WriteArchive(&b, shape, rows); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestABackupGivesBackWhatWasPutIn(t *testing.T) {
	rows := [][]any{
		{int64(1), "plain", []byte("bytes"), 1.5},
		{int64(-1 << 63), "", []byte{}, math.Copysign(0, -1)},
		{int64(1<<63 - 1), "\u2028<&>\"\\\n\U0010FFFF", []byte{0, 0xff, '\n'}, 1e300},
		{nil, nil, nil, nil},
		{int64(2), strings.Repeat("large", 1<<20), bytes.Repeat([]byte{7}, 5<<20), nil}, // more than a part
		{int64(3), "behind it", nil, nil},
	}
	got, err := server.ReadRows(bytes.NewReader(archived(t, rows)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(rows, got) { // not cmp, which takes a minute for large values
		t.Errorf("put in %.500q, given back %.500q", rows, got)
	}
}

// rewritten changes the entries of a backup, leaving gzip and tar sound.
func rewritten(t *testing.T, backup []byte, change func(name string, content []byte) (keep bool, _ []byte)) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(backup))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for tr := tar.NewReader(zip); ; {
		head, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		keep, content := change(head.Name, content)
		if !keep {
			continue
		}
		head.Size = int64(len(content))
		if err := tw.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestABackupThatWasChangedIsRefused(t *testing.T) {
	good := archived(t, [][]any{{int64(1), "one", nil, nil}, {int64(2), "two", nil, nil}})
	if same := rewritten(t, good, func(_ string, c []byte) (bool, []byte) { return true, c }); len(same) == 0 {
		t.Fatal("nothing was written")
	} else if n, err := server.ReadArchive(bytes.NewReader(same)); err != nil || n != 2 {
		t.Fatalf("unchanged: %d rows, %v", n, err)
	}
	for _, entry := range []string{"manifest.json", "rows/000001.ndjson", "counters.json", "checksums.json"} {
		without := rewritten(t, good, func(name string, c []byte) (bool, []byte) { return name != entry, c })
		if _, err := server.ReadArchive(bytes.NewReader(without)); err == nil {
			t.Errorf("without %s: accepted", entry)
		}
		changed := rewritten(t, good, func(name string, c []byte) (bool, []byte) {
			if name == entry {
				c = append(bytes.TrimSpace(c), " \n"...)
			}
			return true, c
		})
		if _, err := server.ReadArchive(bytes.NewReader(changed)); err == nil && entry != "checksums.json" {
			t.Errorf("with %s changed: accepted", entry)
		}
	}
	fewer := rewritten(t, good, func(name string, c []byte) (bool, []byte) {
		return true, bytes.Replace(c, []byte("[2,\"two\",null,null]\n"), nil, 1)
	})
	if _, err := server.ReadArchive(bytes.NewReader(fewer)); err == nil {
		t.Error("with a row less: accepted")
	}
	if _, err := server.ReadArchive(bytes.NewReader(append(bytes.Clone(good), good...))); err == nil || !strings.Contains(err.Error(), "something follows its end") {
		t.Errorf("with another behind it: %v", err)
	}
	newer := rewritten(t, good, func(name string, c []byte) (bool, []byte) {
		return true, bytes.Replace(c, []byte(`"format":1`), []byte(`"format":2`), 1)
	})
	if _, err := server.ReadArchive(bytes.NewReader(newer)); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("of a newer format: %v", err)
	}
}

func FuzzReadArchive(f *testing.F) {
	f.Add(archived(f, [][]any{{int64(1), "one", []byte{1}, 0.5}, {nil, nil, nil, nil}}))
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, backup []byte) {
		_, _ = server.ReadArchive(bytes.NewReader(backup)) // whatever it says, it ends
	})
}

// FuzzArchiveRows reads rows that no checksum guards, as a backup that somebody edited would have them.
func FuzzArchiveRows(f *testing.F) {
	f.Add([]byte(`[1,"x","AQ==",0.5]`))
	f.Add([]byte(`[null,null,null,null]`))
	f.Add([]byte(`[1e3,2,"!",{}]`))
	f.Fuzz(func(t *testing.T, row []byte) {
		values, err := server.ParseRow(row, shape.Columns)
		if err != nil {
			return
		}
		if len(values) != len(shape.Columns) {
			t.Errorf("%d values", len(values))
		}
		for i, v := range values {
			switch v.(type) {
			case nil:
			case int64:
				if i != 0 {
					t.Errorf("column %d is %T", i, v)
				}
			case string:
				if i != 1 {
					t.Errorf("column %d is %T", i, v)
				}
			case []byte:
				if i != 2 {
					t.Errorf("column %d is %T", i, v)
				}
			case float64:
				if i != 3 {
					t.Errorf("column %d is %T", i, v)
				}
			default:
				t.Errorf("column %d is %T", i, v)
			}
		}
	})
}
