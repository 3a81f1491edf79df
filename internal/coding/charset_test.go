package coding_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"hookglass/internal/coding"
)

func TestTextIsReadInTheCharsetThatIsDeclared(t *testing.T) {
	for _, c := range []struct{ body, contentType, text, name string }{
		{"Gr\xfc\xdfe", "text/plain; charset=ISO-8859-1", "Grüße", "ISO-8859-1"},
		{"\x93\xfa\x96\x7b", "text/plain; charset=Shift_JIS", "日本", "Shift_JIS"},
		{"\xff\xfea\x00", "text/plain; charset=iso-8859-1", "a", "UTF-16LE"}, // the mark is nearer to the text
		{"\xfe\xff\x00a", "", "a", "UTF-16BE"},
		{"\x00a", "text/plain; charset=utf-16", "a", "utf-16"},
		{"a\x00", "text/plain; charset=utf-16", "a", "utf-16"},
		{"<?xml version='1.0' encoding='latin1'?>\xe9", "text/xml", "<?xml version='1.0' encoding='latin1'?>é", "latin1"},
		{"é", "text/plain; charset=iso-8859-1", "", ""},     // it is UTF-8, whatever it is called
		{"é\x00", "text/plain; charset=iso-8859-1", "", ""}, // so is this, with a slip
		{"日本", "text/plain; charset=utf-16", "", ""},        // and this
		{"\r\x00\n\x00\r\x00\n\x00\r\x00\n\x00", "text/plain; charset=utf-16", "\r\n\r\n\r\n", "utf-16"},
		{"\xe9", "text/plain; charset=utf-8", "", ""},
		{"\xe9", "text/plain; charset=nobody-knows", "", ""},
		{"\xe9", "text/plain; charset=iso-2022-kr", "", ""}, // of which browsers show nothing
		{"\xe9", "text/plain", "", ""},
		{"\x00\x01\x02\xff\x03\x04", "text/plain; charset=iso-8859-1", "", ""},
		{"\xff\xfe", "", "", ""},
		{"", "text/plain; charset=iso-8859-1", "", ""},
	} {
		if text, name := coding.Text([]byte(c.body), c.contentType, 1000); string(text) != c.text || name != c.name {
			t.Errorf("%q of %s: %q in %q", c.body, c.contentType, text, name)
		}
	}
	if text, _ := coding.Text([]byte(strings.Repeat("\xe9", 100)), "text/plain; charset=latin1", 10); string(text) != strings.Repeat("é", 10) {
		t.Errorf("of the first ten bytes %q", text)
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("\xff\xfea\x00"), "text/plain; charset=utf-16")
	f.Add([]byte("<?xml version='1.0' encoding='latin1'?>\xe9"), "")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		text, name := coding.Text(body, contentType, 1000)
		if !utf8.Valid(text) || len(text) > 3000 || (name == "") != (text == nil) {
			t.Errorf("%q in %q", text, name)
		}
	})
}
