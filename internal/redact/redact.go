package redact

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/jsondoc"
)

// Mask is a value that must not be seen.
type Mask struct {
	Value string
	Shown string // what to show for it; empty: [hookglass.Redacted]
	Whole bool   // it may be no secret at all, so that parts of it are not looked for
	Ends  bool   // it ends with a name, so that it is another where letters, digits, - or _ follow
}

// Redactor redacts secrets from what a run records and answers: the values themselves, their usual encodings, longer
// parts of them, and what stands under a name that tells of a credential. It is safe for concurrent use.
type Redactor struct{ sets []*hiddenValues }

// hiddenValues is a set of values prepared for searching.
type hiddenValues struct {
	forms     []Mask           // of at least shortSecret bytes, longest first
	index     func() *formsMap // made when it is first needed
	often     bool             // for many texts: then the indexes pay, also for short ones
	words     []Mask           // too short to be looked for inside words
	fragments fragments
	size      int // bytes of the forms
}

// formsMap finds forms by their first bytes.
type formsMap struct {
	present [1024]uint64 // a bit for each hash of the first bytes of a form, so that most text needs no look-up
	by      map[string][]Mask
}

const (
	// shortSecret is the length below which a secret is redacted only as a word of its own: elsewhere that would tear
	// up unrelated text.
	shortSecret = 4
	// endOf is how many bytes at its end a value has also where some of it is escaped.
	endOf = 2
	// maxForms bounds the bytes of derived spellings that are looked for. Values beyond it are found only as they are
	// and as JSON writes them.
	maxForms = 4 << 20
	// longWhole is the length up to which a value that may be no secret is looked for in all spellings: tokens are no
	// longer, and strangers choose how long such a value is.
	longWhole = 2 << 10
	// maxWork bounds the comparisons for one text: its sender may have chosen values that nearly match at every place.
	// headSize is how much of a form is compared first.
	maxWork  = 64 << 20
	headSize = 32
)

// New returns a redactor of these values.
func New(masks ...Mask) *Redactor {
	return &Redactor{[]*hiddenValues{hide(masks, false)}}
}

// NewForMany is New for a redactor of so many texts that it pays to prepare the search in each of them.
func NewForMany(masks ...Mask) *Redactor {
	return &Redactor{[]*hiddenValues{hide(masks, true)}}
}

// With returns a redactor that knows more values. It shares the prepared sets of the others.
func (r *Redactor) With(masks ...Mask) *Redactor {
	if len(masks) == 0 {
		return r
	}
	return &Redactor{append([]*hiddenValues{hide(masks, false)}, r.sets...)}
}

// Size is about how many bytes it takes.
func (r *Redactor) Size() (n int) {
	for _, h := range r.sets {
		n += h.size + h.fragments.size
	}
	return n
}

func hide(masks []Mask, often bool) *hiddenValues {
	h := &hiddenValues{often: often}
	h.fragments.often = often
	var known map[string]bool // across masks
	if len(masks) > 1 {
		known = make(map[string]bool, 16*len(masks))
	}
	// Shortest first, so that passwords and keys come before the bounds on spellings and parts are reached.
	masks = slices.SortedStableFunc(slices.Values(masks), func(a, b Mask) int { return len(a.Value) - len(b.Value) })
	for _, m := range masks {
		if m.Shown == "" {
			m.Shown = hookglass.Redacted
		}
		switch {
		case m.Value == "":
		case len(m.Value) < shortSecret:
			h.words = append(h.words, m)
		default:
			forms, coded := []string{m.Value, inJSON(m.Value)}, (*codings)(nil)
			if h.size < maxForms && !(m.Whole && len(m.Value) > longWhole) {
				coded = codingsOf(m.Value)
				forms = formsOf(m.Value, coded)
			}
			for _, form := range forms {
				if known[form] {
					continue
				}
				if known != nil {
					known[form] = true
				}
				ends := m.Ends && strings.HasSuffix(form, m.Value[len(m.Value)-endOf:]) // and is not encoded as a whole
				h.forms = append(h.forms, Mask{Value: form, Shown: m.Shown, Ends: ends})
				h.size += len(form)
			}
			if !m.Whole {
				h.fragments.add(m.Value, coded)
			}
		}
	}
	slices.SortStableFunc(h.forms, func(a, b Mask) int { return len(b.Value) - len(a.Value) })
	h.index = sync.OnceValue(func() *formsMap {
		f := &formsMap{by: make(map[string][]Mask)}
		for _, form := range h.forms {
			bit := startOf(form.Value, 0)
			f.present[bit/64] |= 1 << (bit % 64)
			first := form.Value[:shortSecret]
			f.by[first] = append(f.by[first], form)
		}
		return f
	})
	return h
}

// at returns the longest form that begins at a place, or an empty Mask. It adds the cost of its comparisons to work.
func (f *formsMap) at(s string, i int, work *int) Mask {
	if bit := startOf(s, i); f.present[bit/64]&(1<<(bit%64)) == 0 {
		return Mask{}
	}
	for _, form := range f.by[s[i:i+shortSecret]] {
		*work++
		if !strings.HasPrefix(s[i:], form.Value[:min(len(form.Value), headSize)]) {
			continue
		}
		*work += len(form.Value) / headSize
		rest, found := strings.CutPrefix(s[i:], form.Value)
		if found && !(form.Ends && rest != "" && rest[0] != '.' && inName(rest[0])) {
			return form
		}
	}
	return Mask{}
}

// mayHold reports whether the forms need to be looked for in a text.
func (h *hiddenValues) mayHold(s string) bool {
	return len(h.forms) > 0 && len(s) >= shortSecret &&
		(h.often || len(s) > shortText || slices.ContainsFunc(h.forms, func(m Mask) bool { return strings.Contains(s, m.Value) }))
}

// startOf hashes the shortSecret bytes at a place.
func startOf(s string, i int) uint32 {
	return (uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16 | uint32(s[i+3])<<24) * 0x9E3779B1 >> 16
}

// Text redacts secrets in a text, what has the form of a credential, and credentials in its URLs.
func (r *Redactor) Text(s string) string { return r.inURLs(s, maxEscaped) }

// inURLs redacts secrets in a text, what has the form of a credential, and credentials in URLs. Text within is escaped
// that many times at most.
func (r *Redactor) inURLs(s string, depth int) string {
	s = hideForms(r.Secrets(s))
	if !mayName(s) {
		return s
	}
	return r.hideReferences(r.hideEscaped(hideUserinfo(hidePairs(s)), depth), depth)
}

// Secrets redacts only the values, whatever stands beside them.
func (r *Redactor) Secrets(s string) string {
	s = r.whole(s)
	for _, h := range r.sets {
		for _, w := range h.words {
			s = replaceWord(s, w.Value, w.Shown)
		}
		s = h.fragments.hide(s)
	}
	return s
}

// Cut is Secrets for a text that may have been cut off: the beginning of a value at its end goes too.
func (r *Redactor) Cut(s string) string {
	s = r.Secrets(s)
	cut := 0
	for _, h := range r.sets {
		for _, form := range h.forms {
			cut = max(cut, overlap(s, form.Value))
		}
	}
	if cut < window {
		return s
	}
	return s[:len(s)-cut] + hookglass.Redacted
}

// overlap returns the length of the longest end of s that is a beginning of form, but not all of it. Its time is
// linear in form (Knuth, Morris and Pratt), because strangers may have written both.
func overlap(s, form string) (n int) {
	if len(form) <= window {
		return 0
	}
	if s = s[max(0, len(s)-len(form)+1):]; !strings.Contains(s, form[:window]) { // as most
		return 0
	}
	border := make([]int, len(form)) // of each beginning of form: its longest end that is a shorter beginning
	for i := 1; i < len(form); i++ {
		for n > 0 && form[i] != form[n] {
			n = border[n-1]
		}
		if form[i] == form[n] {
			n++
		}
		border[i] = n
	}
	n = 0
	for i := range len(s) {
		for n > 0 && s[i] != form[n] {
			n = border[n-1]
		}
		if s[i] == form[n] {
			n++
		}
	}
	return n
}

// whole replaces the forms, the longest of those that begin at one place. A text whose search takes more than maxWork
// is redacted as a whole.
func (r *Redactor) whole(s string) string {
	var room [4]*formsMap
	indexes := room[:0]
	for _, h := range r.sets {
		if h.mayHold(s) {
			indexes = append(indexes, h.index())
		}
	}
	if len(indexes) == 0 {
		return s
	}
	p, work := splice{s: s}, 0
	for i := 0; i+shortSecret <= len(s); {
		var found Mask
		for _, index := range indexes {
			if m := index.at(s, i, &work); len(m.Value) > len(found.Value) {
				found = m
			}
		}
		if work > maxWork {
			return hookglass.Redacted
		}
		if found.Value == "" {
			i++
			continue
		}
		p.put(i, i+len(found.Value), found.Shown)
		i = p.from
	}
	return p.text()
}

// replaceWord replaces a word wherever no letter or digit stands next to it.
func replaceWord(s, word, shown string) string {
	p := splice{s: s}
	for at := 0; ; {
		i := strings.Index(s[at:], word)
		if i < 0 {
			return p.text()
		}
		start, end := at+i, at+i+len(word)
		before, _ := utf8.DecodeLastRuneInString(s[:start])
		after, _ := utf8.DecodeRuneInString(s[end:])
		if inWord(before) || inWord(after) {
			_, size := utf8.DecodeRuneInString(s[start:])
			at = start + size
			continue
		}
		p.put(start, end, shown)
		at = end
	}
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// Headers returns a copy in which secrets, and the values of headers that hold credentials by their name, are redacted.
func (r *Redactor) Headers(h hookglass.Headers) hookglass.Headers {
	out := make(hookglass.Headers, len(h))
	for i, f := range h {
		out[i].Name = r.Secrets(f.Name)
		if SensitiveHeader(f.Name) && f.Value != "" {
			out[i].Value = r.credential(f.Name, f.Value)
		} else {
			out[i].Value = r.named(f.Value, maxEscaped)
		}
	}
	return out
}

// Value returns a copy in which secrets and members that hold credentials by their name are redacted, also in strings
// that hold JSON. It returns the JSON Pointers at which that happened.
func (r *Redactor) Value(v jsondoc.Value) (jsondoc.Value, []string) {
	return v.Redact(jsondoc.Redaction{Hidden: r.hidden, Listed: r.listed, Text: r.embedded})
}

// hidden says what to show of a member, and whether its name makes it a credential.
func (r *Redactor) hidden(name string, v jsondoc.Value) (string, bool) {
	if !Sensitive(name) {
		return "", false
	}
	if v.Kind() == jsondoc.String {
		return r.credential(name, v.Text()), true
	}
	return hookglass.Redacted, true
}

// listed is hidden for what follows a text in an array: the value of a header.
func (r *Redactor) listed(name string, v jsondoc.Value) (string, bool) {
	if !CredentialHeader(name) {
		return "", false
	}
	return r.hidden(name, v)
}

// shownSecrets matches what is shown of a credential that consists of nothing but secrets.
var shownSecrets = regexp.MustCompile(`^(\{\{secrets\.[A-Za-z][A-Za-z0-9_]*\}\}|\[redacted\])+$`)

// schemes are the authentication schemes that credentials begin with (RFC 9110, section 11.4). They are not secret.
var schemes = []string{"Basic", "Bearer", "Digest", "DPoP", "Token", "ApiKey", "Api-Key", "Key"}

// credential returns what to show of a credential: the names of its secrets when it has nothing else but, in an
// authorization, a scheme, as in Bearer {{secrets.NAME}}.
func (r *Redactor) credential(name, s string) string {
	shown := r.Secrets(s)
	if shown == s || !onlySecrets(name, shown) {
		return hookglass.Redacted
	}
	return shown
}

// onlySecrets reports whether a text shows nothing but names of secrets and, in an authorization, a scheme.
func onlySecrets(name, shown string) bool {
	if isAuthorization(name) {
		scheme, rest, found := strings.Cut(shown, " ")
		if found && slices.ContainsFunc(schemes, func(known string) bool { return strings.EqualFold(known, scheme) }) {
			shown = strings.TrimLeft(rest, " ")
		}
	}
	return shownSecrets.MatchString(shown)
}

// isAuthorization reports whether values of this name begin with an authentication scheme.
func isAuthorization(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "authorization") || name == "auth"
}
