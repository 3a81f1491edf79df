package coding_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/coding"
)

// packed is a text in a coding.
func packed(t *testing.T, coding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zlib":
		w = zlib.NewWriter(&b)
	case "raw":
		w, _ = flate.NewWriter(&b, flate.BestCompression)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGzipIsPutBack(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "text", strings.Repeat("more of it ", 10_000)} {
		if got, err := coding.Decoded(coding.Gzipped(text), "gzip", 1<<20); err != nil || string(got) != text {
			t.Errorf("%d bytes became %d: %v", len(text), len(got), err)
		}
	}
}

func TestBodiesAreDecoded(t *testing.T) {
	t.Parallel()
	const text = `{"a":1,"b":"é"}`
	for _, c := range []struct {
		coding, body, want string
		err                error
	}{
		{"", text, text, nil},
		{"identity", text, text, nil},
		{"gzip", packed(t, "gzip", text), text, nil},
		{" X-GZIP ", packed(t, "gzip", text), text, nil},
		{"gzip", packed(t, "gzip", text) + packed(t, "gzip", text), text + text, nil}, // members, RFC 1952
		{"deflate", packed(t, "zlib", text), text, nil},
		{"deflate", packed(t, "raw", text), text, nil},
		{"deflate, identity, gzip", packed(t, "gzip", packed(t, "zlib", text)), text, nil},
		{"gzip", "", "", nil},
		{"br", text, "", coding.ErrUnknown},
		{"gzip, gzip, gzip, gzip", text, "", coding.ErrUnknown},
		{"gzip", text, "", gzip.ErrHeader},
		{"gzip", packed(t, "gzip", text)[:30], text, io.ErrUnexpectedEOF},
		{"gzip", packed(t, "gzip", strings.Repeat("x", 64)), strings.Repeat("x", 64), nil},
		{"gzip", packed(t, "gzip", strings.Repeat("x", 65)), strings.Repeat("x", 64), coding.ErrLonger},
		{"gzip, gzip", packed(t, "gzip", packed(t, "gzip", strings.Repeat("x", 65))), strings.Repeat("x", 64), coding.ErrLonger},
	} {
		headers := hookglass.Headers{{Name: "content-encoding", Value: c.coding}}
		if c.coding == "" {
			headers = nil
		}
		got, err := coding.Decoded([]byte(c.body), coding.Of(headers), 64)
		if !errors.Is(err, c.err) {
			t.Errorf("%q: %v, want %v", c.coding, err, c.err)
		}
		if c.err != io.ErrUnexpectedEOF && string(got) != c.want || !strings.HasPrefix(c.want, string(got)) {
			t.Errorf("%q: %q, want %q", c.coding, got, c.want)
		}
	}
	two := hookglass.Headers{{Name: "Content-Encoding", Value: "deflate"}, {Name: "Content-Encoding", Value: "gzip"}}
	if got, err := coding.Decoded([]byte(packed(t, "gzip", packed(t, "zlib", text))), coding.Of(two), 64); err != nil || string(got) != text {
		t.Errorf("two headers: %q, %v", got, err)
	}
}

func TestWhatCanNotBeDecodedIsGivenAsItIs(t *testing.T) {
	t.Parallel()
	const text = `{"a":1}`
	for _, c := range []struct{ coding, body, want string }{
		{"", text, text}, {"gzip", packed(t, "gzip", text), text}, {"gzip", text, text}, {"utf-8", text, text},
		{"gzip", packed(t, "gzip", text)[:20], packed(t, "gzip", text)[:20]}, {"gzip", packed(t, "gzip", strings.Repeat("x", 65)), strings.Repeat("x", 64)},
	} {
		if got := coding.Plain([]byte(c.body), hookglass.Headers{{Name: "Content-Encoding", Value: c.coding}}, 64); string(got) != c.want {
			t.Errorf("%q: %q, want %q", c.coding, got, c.want)
		}
	}
}

// A body of many members that hold nothing is not read to its end.
func TestADecodedBodyThatMeansNothing(t *testing.T) {
	t.Parallel()
	body := strings.Repeat(packed(t, "gzip", ""), 10_000)
	got, err := coding.Decoded([]byte(body), "gzip", 64)
	if len(got) != 0 || err == nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func FuzzDecoded(f *testing.F) {
	f.Add("gzip", []byte{0x1f, 0x8b})
	f.Add("deflate, gzip", []byte("x"))
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		got, err := coding.Decoded(body, coding.Of(hookglass.Headers{{Name: "Content-Encoding", Value: name}}), 100)
		if len(got) > 100 && (err != nil || !bytes.Equal(got, body)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

func TestTheBeginningOfABody(t *testing.T) {
	t.Parallel()
	const text = `{"a":1,"b":"é"}`
	for _, c := range []struct {
		coding, body, want string
		ok                 bool
	}{
		{"", text, "", false},
		{"gzip", packed(t, "gzip", text), text, true},
		{"gzip", packed(t, "gzip", strings.Repeat("x", 65)), strings.Repeat("x", 64), true}, // of a longer one
		{"gzip", packed(t, "gzip", strings.Repeat(text, 4))[:28], text[:1], true},           // of one that was cut off
		{"gzip", text, "", false},
		{"br", text, "", false},
		{"gzip", "", "", false},
	} {
		got, ok := coding.Beginning([]byte(c.body), c.coding, 64)
		if ok != c.ok || !ok && len(got) > 0 || !strings.HasPrefix(string(got), c.want) {
			t.Errorf("%q of %d bytes: %q, %v; want %q, %v", c.coding, len(c.body), got, ok, c.want, c.ok)
		}
	}
}
