package paste

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"hookglass"
)

// maxCurl bounds the body that a copy carries itself.
const maxCurl = 32 << 10

// leftOut are fields that curl writes by itself, or that belonged to the connection.
var leftOut = []string{"host", "content-length", "connection", "accept-encoding", "transfer-encoding", "expect", "te", "keep-alive", "upgrade"}

// curl is a command that sends the request again, as it was. It holds no character that a terminal could take for a key
// press: a body with one is read from a file.
func (r pasted) curl() string {
	var b strings.Builder
	b.WriteString("curl")
	switch {
	case r.method != "HEAD":
		b.WriteString(" -X " + shell(r.method))
	case r.body == "" && r.file == "":
		b.WriteString(" --head")
	default: // curl refuses --head beside a body, and else waits for that of the answer, which never comes
		b.WriteString(" -X HEAD --ignore-content-length -H 'Connection: close'")
	}
	if strings.ContainsAny(r.url, "[]{}") {
		b.WriteString(" --globoff")
	}
	if strings.Contains(r.url, "/.") {
		b.WriteString(" --path-as-is")
	}
	b.WriteString(" " + shell(r.url))
	for _, h := range r.headers {
		switch {
		case h.Value == "":
			b.WriteString(" \\\n  -H " + shell(h.Name+";")) // curl drops a field that ends with the colon
		case !pasteable(h.Value):
			b.WriteString(" \\\n  -H " + printed(h.Name+": "+h.Value))
		default:
			b.WriteString(" \\\n  -H " + shell(h.Name+": "+h.Value))
		}
	}
	for _, name := range r.unsent {
		b.WriteString(" \\\n  -H " + shell(name+":"))
	}
	switch {
	case r.file != "":
		b.WriteString(" \\\n  --data-binary " + shell("@"+r.file))
	case r.body != "":
		b.WriteString(" \\\n  --data-raw " + shell(r.body))
	}
	return b.String()
}

// unsent are the fields that the request did not have, and that curl and HTTPie would add by themselves.
func unsent(e *hookglass.Event) []string {
	return slices.DeleteFunc([]string{"User-Agent", "Accept", "Content-Type"}, func(name string) bool {
		return e.Headers.Has(name) || name == "Content-Type" && len(e.Body) == 0
	})
}

// printable percent-encodes what cannot be pasted, and "#": clients send nothing that follows it.
func printable(s string) string {
	if pasteable(s) && !strings.ContainsAny(s, " \n\t#") {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '#' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// sendable reports whether the copies send the field: not what clients write by themselves, and nothing with a control
// character, which they refuse.
func sendable(h hookglass.Header) bool {
	return !slices.Contains(leftOut, strings.ToLower(h.Name)) && pasteable(h.Name) &&
		strings.IndexFunc(h.Value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
}

// printed is a word of a POSIX shell whose bytes cannot be pasted: printf writes them from octal numbers.
func printed(s string) string {
	var b strings.Builder
	b.WriteString(`"$(printf '`)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '%':
			b.WriteString("%%")
		case c == '\'' || c == '\\' || c == '!' || c < ' ' || c >= 0x7f: // the history of a shell is behind !
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteString(`')"`)
	return b.String()
}

// shell quotes a word for a POSIX shell.
func shell(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return r > 'z' || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func pasteable(s string) bool {
	for _, r := range s {
		if r == unicode.ReplacementChar || unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return false
		}
	}
	return true
}
