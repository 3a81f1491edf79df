package action

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/jsondoc"
)

// Mark stands in place of what is blotted out.
const Mark = "[redacted]"

// Mask is a value that must not be seen, and what to show for it; empty: Mark.
type Mask struct{ Value, Shown string }

// Redactor blots secrets out of what a run records and answers: the values themselves, their usual encodings, longer parts of
// them, and what stands under a name that tells of a credential. It is safe for concurrent use.
type Redactor struct {
	forms     []Mask               // of at least shortSecret bytes, longest first
	starts    func() *[1024]uint64 // a bit for each hash of the first bytes of a form: most text is passed over by it
	words     []Mask               // too short to be looked for inside words
	fragments fragments
}

// shortSecret is the length below which a secret is blotted out only where it stands as a word of its own: elsewhere it
// would tear up text that has nothing to do with it.
const shortSecret = 4

// NewRedactor returns a redactor for these values.
func NewRedactor(masks ...Mask) *Redactor {
	r := &Redactor{}
	known := map[string]bool{}
	for _, m := range masks {
		if m.Shown == "" {
			m.Shown = Mark
		}
		switch {
		case m.Value == "":
		case len(m.Value) < shortSecret:
			r.words = append(r.words, m)
		default:
			for _, form := range formsOf(m.Value) {
				if !known[form] {
					known[form] = true
					r.forms = append(r.forms, Mask{form, m.Shown})
				}
			}
			r.fragments.add(m.Value)
		}
	}
	slices.SortFunc(r.forms, func(a, b Mask) int { return len(b.Value) - len(a.Value) })
	r.starts = sync.OnceValue(func() *[1024]uint64 {
		starts := new([1024]uint64)
		for _, form := range r.forms {
			bit := startOf(form.Value, 0)
			starts[bit/64] |= 1 << (bit % 64)
		}
		return starts
	})
	return r
}

// startOf hashes the shortSecret bytes at a place.
func startOf(s string, i int) uint32 {
	return (uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16 | uint32(s[i+3])<<24) * 0x9E3779B1 >> 16
}

// Preview makes stand-ins for secrets: a rendering names secrets, gets words that nobody can have written, and the redactor
// that is made of the masks shows each as {{secrets.NAME}}. So text of the event that looks like a placeholder is not
// taken for one.
func Preview(names []string) (secret func(name string) (string, bool), masks []Mask) {
	words := make(map[string]string, len(names))
	for _, name := range names {
		words[name] = strings.ToLower(rand.Text())
		masks = append(masks, Mask{words[name], Placeholder(name)})
	}
	return func(name string) (string, bool) {
		word, ok := words[name]
		return word, ok
	}, masks
}

// formsOf are the spellings of a value that are looked for.
func formsOf(value string) []string {
	forms := []string{value, percentEncoded(value), url.QueryEscape(value), url.PathEscape(value), html.EscapeString(value)}
	for _, f := range forms[1:4] {
		forms = append(forms, lowerEscapes(f))
	}
	quoted := jsondoc.Text(value).Bytes()
	inner := string(quoted[1 : len(quoted)-1])
	forms = append(forms, inner, strings.ReplaceAll(inner, "/", `\/`))
	if other, err := json.Marshal(value); err == nil { // with <, > and & escaped
		forms = append(forms, string(other[1:len(other)-1]))
	}
	digits := hex.EncodeToString([]byte(value))
	forms = append(forms, digits, strings.ToUpper(digits))
	forms = append(forms, base64Of(value)...)
	return slices.DeleteFunc(forms, func(f string) bool { return len(f) < shortSecret })
}

// base64Of are the texts by which a value shows in base64, alone and wherever it stands in what is encoded, as in Basic
// credentials behind a user's name.
func base64Of(value string) []string {
	var forms []string
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		forms = append(forms, enc.EncodeToString([]byte(value)), enc.WithPadding(base64.NoPadding).EncodeToString([]byte(value)))
		for before := range 3 {
			text := enc.EncodeToString(append(make([]byte, before), value...))
			first := (before*8 + 5) / 6            // characters that the bytes before it reach into
			whole := (before + len(value)) * 8 / 6 // characters that nothing behind it reaches into
			if core := text[first:whole]; len(core) > shortSecret {
				forms = append(forms, core)
			}
		}
	}
	return forms
}

// lowerEscapes spells percent-encoding in lower case.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// Text blots secrets out of a text, and credentials out of what is a URL in it. It answers whether it changed.
func (r *Redactor) Text(s string) (string, bool) {
	shown := r.secrets(s)
	shown = hideUserinfo(hidePairs(shown))
	return shown, shown != s
}

func (r *Redactor) secrets(s string) string {
	s = r.whole(s)
	for _, w := range r.words {
		s = replaceWord(s, w.Value, w.Shown)
	}
	return r.fragments.hide(s)
}

// whole replaces the forms, of two that begin at one place the longer.
func (r *Redactor) whole(s string) string {
	if len(r.forms) == 0 || len(s) <= shortText && !slices.ContainsFunc(r.forms, func(m Mask) bool { return strings.Contains(s, m.Value) }) {
		return s
	}
	starts := r.starts()
	var b strings.Builder
	from := 0
	for i := 0; i+shortSecret <= len(s); {
		bit := startOf(s, i)
		if starts[bit/64]&(1<<(bit%64)) == 0 {
			i++
			continue
		}
		at := slices.IndexFunc(r.forms, func(m Mask) bool { return strings.HasPrefix(s[i:], m.Value) })
		if at < 0 {
			i++
			continue
		}
		b.WriteString(s[from:i])
		b.WriteString(r.forms[at].Shown)
		i += len(r.forms[at].Value)
		from = i
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// replaceWord replaces a word where no letter or digit is beside it.
func replaceWord(s, word, shown string) string {
	if !strings.Contains(s, word) {
		return s
	}
	var b strings.Builder
	from := 0
	for at := 0; ; {
		i := strings.Index(s[at:], word)
		if i < 0 {
			break
		}
		start, end := at+i, at+i+len(word)
		before, _ := utf8.DecodeLastRuneInString(s[:start])
		after, _ := utf8.DecodeRuneInString(s[end:])
		if inWord(before) || inWord(after) {
			_, size := utf8.DecodeRuneInString(s[start:])
			at = start + size
			continue
		}
		b.WriteString(s[from:start])
		b.WriteString(shown)
		from, at = end, end
	}
	b.WriteString(s[from:])
	return b.String()
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// Headers returns a copy with credentials by their name, and secrets, blotted out.
func (r *Redactor) Headers(h hookglass.Headers) hookglass.Headers {
	out := make(hookglass.Headers, len(h))
	for i, f := range h {
		out[i].Name = r.secrets(f.Name)
		if SensitiveHeader(f.Name) && f.Value != "" {
			out[i].Value = r.credential(f.Value)
		} else {
			out[i].Value, _ = r.Text(f.Value)
		}
	}
	return out
}

// Value returns a copy with secrets and the members that tell of credentials blotted out, also in strings that hold JSON, and
// the JSON Pointers at which that happened.
func (r *Redactor) Value(v jsondoc.Value) (jsondoc.Value, []string) {
	return v.Redact(jsondoc.Redaction{Hidden: r.hidden, Text: func(s string) (string, bool) {
		shown := r.embedded(s)
		return shown, shown != s
	}})
}

// hidden judges a member by its name.
func (r *Redactor) hidden(name string, v jsondoc.Value) (string, bool) {
	if !SensitiveName(name) {
		return "", false
	}
	if v.Kind() == jsondoc.String {
		return r.credential(v.Text()), true
	}
	return Mark, true
}

// credential is what is shown of a text that is one: the names of its secrets, where it is nothing but a scheme and what is shown
// of secrets, as in Bearer {{secrets.NAME}}.
func (r *Redactor) credential(s string) string {
	shown := r.secrets(s)
	if shown == s {
		return Mark
	}
	scheme := shown
	for _, m := range slices.Concat(r.forms, r.words) {
		scheme = strings.ReplaceAll(scheme, m.Shown, "")
	}
	scheme = strings.TrimSpace(scheme)
	if len(scheme) > 12 || strings.ContainsFunc(scheme, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return Mark
	}
	return shown
}

// embedded redacts a string of a value: as a value where it is JSON.
func (r *Redactor) embedded(s string) string {
	if len(s) > 1 && (s[0] == '{' || s[0] == '[') {
		if v, err := jsondoc.Parse([]byte(s), jsondoc.Wide()); err == nil {
			inside, paths := v.Redact(jsondoc.Redaction{Hidden: r.hidden, Text: r.Text})
			if len(paths) == 0 {
				return s
			}
			return string(inside.Bytes())
		}
	}
	shown, _ := r.Text(s)
	return shown
}

// Body redacts a body as its Content-Type has it: JSON and forms by the names of their fields, and any text by its secrets.
func (r *Redactor) Body(body string) string { return r.embedded(strings.ToValidUTF8(body, "�")) }

// Cut shortens a text to n bytes at most, at the end of a character, and answers whether it did. Redact first: of a secret
// that is cut in two, the half is not found.
func Cut(s string, n int) (string, bool) {
	short := cut(s, n)
	return short, len(short) < len(s)
}

// hidePairs blots out the values of sensitive names in a query string or a form.
func hidePairs(s string) string {
	if !strings.Contains(s, "=") || strings.ContainsAny(s, " \r\n\t") {
		return s
	}
	head, pairs, found := strings.Cut(s, "?")
	if !found {
		head, pairs = "", s
	} else {
		head += "?"
	}
	changed := false
	parts := strings.Split(pairs, "&")
	for i, part := range parts {
		if name, value, ok := strings.Cut(part, "="); ok && value != "" && value != Mark && SensitiveName(unescaped(name)) {
			parts[i], changed = name+"="+Mark, true
		}
	}
	if !changed {
		return s
	}
	return head + strings.Join(parts, "&")
}

// hideUserinfo blots out the user and the password of URLs.
func hideUserinfo(s string) string {
	var b strings.Builder
	from := 0
	for at := 0; ; {
		i := strings.Index(s[at:], "://")
		if i < 0 {
			break
		}
		at += i + 3
		end := strings.IndexAny(s[at:], "/?# \t\r\n\"'<>")
		if end < 0 {
			end = len(s) - at
		}
		if user := strings.LastIndexByte(s[at:at+end], '@'); user > 0 && s[at:at+user] != Mark {
			b.WriteString(s[from:at])
			b.WriteString(Mark)
			from = at + user
		}
		at += end
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}
