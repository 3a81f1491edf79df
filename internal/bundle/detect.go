package bundle

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"hookglass/internal/redact"
)

// Values that are recognised by their form. Each expression is tried only on texts with its marker.
var (
	phoneForm  = regexp.MustCompile(`\+\d[\d ().-]{5,}\d`)
	localForm  = regexp.MustCompile(`\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4}`)
	ibanForm   = regexp.MustCompile(`[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,}(?: ?[A-Z0-9]{1,4})?`)
	cardForm   = regexp.MustCompile(`\d(?:[ -]?\d){13,}`)
	ip4Form    = regexp.MustCompile(`\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`)
	ip6Form    = regexp.MustCompile(`[0-9A-Fa-f:]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]+`)
	paramForm  = regexp.MustCompile(`[?&;]([\w.-]{2,60})=([^&#\s"'<>;]+)`)
	elementTag = regexp.MustCompile(`<([A-Za-z_][\w.:-]{0,60})[^<>]{0,500}>([^<>]{1,500})</`)
)

// detect returns the values in a text that are recognised by their form; of overlapping ones the longest comes first.
func (m *Maker) detect(s string) []span {
	f := finder{m: m, s: s}
	f.addresses()
	f.tokens()
	f.numbers()
	f.machines()
	f.elements()
	return slices.DeleteFunc(f.found, func(sp span) bool { return sp.kind == "" })
}

// finder searches one text.
type finder struct {
	m     *Maker
	s     string
	found []span
}

func (f *finder) add(start, end int, kind Kind) {
	if start < end && !f.m.keepKinds[kind] && !f.m.known.exempt[lower(f.s[start:end])] {
		f.found = append(f.found, span{start: start, end: end, kind: kind})
	}
}

// all adds the matches of a form that also satisfy ok and are no part of a word.
func (f *finder) all(form *regexp.Regexp, kind Kind, ok func(start, end int) bool) {
	for _, at := range form.FindAllStringIndex(f.s, -1) {
		if !inWord(f.s, at[0], at[1]) && ok(at[0], at[1]) {
			f.add(at[0], at[1], kind)
		}
	}
}

// addresses finds mail addresses, and the names in front of them.
func (f *finder) addresses() {
	for i := 0; ; {
		at := strings.IndexByte(f.s[i:], '@')
		if at < 0 {
			return
		}
		i += at + 1
		start, end, ok := mailAddress(f.s, i-1)
		if !ok {
			continue
		}
		f.add(start, end, Email)
		if first, last, ok := phrase(f.s, start); ok {
			f.add(first, last, Name)
		}
	}
}

func (f *finder) tokens() {
	s := f.s
	for form := range redact.Forms(s) {
		kind := Token
		if form.JWT {
			kind = JWT
		}
		f.add(form.Start, form.End, kind)
	}
	for start, end := range redact.CredentialsIn(s) {
		f.add(start, end, Token)
	}
	for start, end := range redact.Userinfo(s) {
		_, password, _ := strings.Cut(s[start:end], ":")
		f.add(end-len(password), end, Token)
	}
	if strings.Contains(s, "=") && strings.ContainsAny(s, "?&;") {
		for _, at := range paramForm.FindAllStringSubmatchIndex(s, -1) {
			if redact.Sensitive(s[at[2]:at[3]]) {
				f.add(at[4], at[5], Token)
			}
		}
	}
}

// numbers finds the numbers of telephones, accounts and cards.
func (f *finder) numbers() {
	s, digits := f.s, digitsIn(f.s)
	if digits >= 8 {
		alone := func(start, end int) bool {
			return (start == 0 || strings.IndexByte("-.+", s[start-1]) < 0) && (end == len(s) || s[end] != '-')
		}
		f.grouped(phoneForm, Phone, 15, func(start, end int, plain []byte) bool {
			return s[start] == '+' && len(plain) >= 8 && alone(start, end)
		})
		f.all(localForm, Phone, alone)
		f.grouped(ibanForm, IBAN, 34, func(_, _ int, plain []byte) bool {
			return len(plain) >= 15 && ibanStart(plain) && ibanRest(plain) == 1
		})
	}
	if digits >= 14 {
		f.grouped(cardForm, Card, 19, func(start, _ int, plain []byte) bool {
			return len(plain) >= 14 && (start == 0 || s[start-1] != '.') && network(plain) && luhn(plain)
		})
	}
}

// grouped finds numbers of at most most letters and digits, whose groups may be separated. Groups that are none of
// theirs may stand beside them in a match of the form: a date behind a telephone number, a quantity before that of a
// card. So each group may be the first of a number, and of those that begin with it and satisfy ok the longest counts.
func (f *finder) grouped(form *regexp.Regexp, kind Kind, most int, ok func(start, end int, plain []byte) bool) {
	room := make([]byte, most)
	for _, at := range form.FindAllStringIndex(f.s, -1) {
		for start := at[0]; start < at[1]; {
			next, end := f.longest(start, at[1], room, ok)
			if end > 0 {
				f.add(start, end, kind)
				next = end
			}
			for start = next; start < at[1] && (!alphanumericByte(f.s[start]) || alphanumericByte(f.s[start-1])); start++ {
			}
		}
	}
}

// longest returns where the group at start ends, and where the longest number does that begins with it, ends at limit
// at most, fits into room and satisfies ok; 0 if there is none.
func (f *finder) longest(start, limit int, room []byte, ok func(start, end int, plain []byte) bool) (group, number int) {
	group = -1
	plain := room[:0]
	for i := start; i < limit && len(plain) < len(room); i++ {
		if !alphanumericByte(f.s[i]) {
			continue
		}
		plain = append(plain, f.s[i])
		end := i + 1
		if end < len(f.s) && wordByte(f.s[end]) {
			continue
		}
		if group < 0 {
			group = end
		}
		if !inWord(f.s, start, end) && ok(start, end, plain) {
			number = end
		}
	}
	if group < 0 { // longer than a number
		group = start + 1
	}
	return group, number
}

// digitsIn counts the digits of a text.
func digitsIn(s string) (n int) {
	for i := range len(s) {
		if s[i] >= '0' && s[i] <= '9' {
			n++
		}
	}
	return n
}

// machines finds IP addresses.
func (f *finder) machines() {
	s := f.s
	if strings.Contains(s, ".") && digitsIn(s) >= 4 {
		f.all(ip4Form, IP, func(start, end int) bool {
			// Chrome/120.0.0.0 and v1.2.3.4 are versions; http://1.2.3.4 is an address.
			version := start > 0 && (s[start-1] == '.' || s[start-1] == '/' && (start < 2 || s[start-2] != '/')) ||
				end < len(s)-1 && s[end] == '.' && wordByte(s[end+1])
			return !version && someone(s[start:end])
		})
	}
	if strings.Count(s, ":") >= 2 {
		for _, at := range ip6Form.FindAllStringIndex(s, -1) {
			text := strings.TrimRight(s[at[0]:at[1]], ".") // of a sentence: from 2001:db8::1.
			if strings.HasSuffix(text, ":") && !strings.HasSuffix(text, "::") {
				text = text[:len(text)-1] // of a message: 2001:db8::1: refused
			}
			start := at[0]
			if strings.HasPrefix(text, ":") && !strings.HasPrefix(text, "::") {
				start, text = start+1, text[1:] // behind a name: peer:2001:db8::1
			}
			if end := start + len(text); !inWord(s, start, end) && someone(text) {
				f.add(start, end, IP)
			}
		}
	}
}

// elements finds the content of markup elements whose names say what it is.
func (f *finder) elements() {
	if !strings.Contains(f.s, "</") {
		return
	}
	for _, at := range elementTag.FindAllStringSubmatchIndex(f.s, -1) {
		name := f.s[at[2]:at[3]]
		if i := strings.LastIndexByte(name, ':'); i >= 0 {
			name = name[i+1:]
		}
		if value := f.s[at[4]:at[5]]; strings.TrimSpace(value) != "" {
			f.add(at[4], at[5], f.m.fieldKind(spot{name: name}, value))
		}
	}
}

// someone reports whether an IP address identifies a host, and is not loopback or unspecified.
func someone(text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && !a.IsLoopback() && !a.IsUnspecified()
}

// network reports whether a number has the prefix and the length of a payment card.
func network(number []byte) bool {
	two, four := string(number[:2]), string(number[:4])
	switch len(number) {
	case 14:
		return two == "36" || two == "38" || two == "30"
	case 15:
		return two == "34" || two == "37"
	case 16:
		return number[0] == '4' || two >= "51" && two <= "55" || four >= "2221" && four <= "2720" || four == "6011" || two == "65" || two == "35" || two == "62" || two == "81"
	case 19:
		return number[0] == '4' || two == "62"
	}
	return false
}

// mailAddress finds the address around an at sign.
func mailAddress(s string, at int) (start, end int, ok bool) {
	for start = at; start > 0 && (wordByte(s[start-1]) || strings.IndexByte(".!#$&'*+/=?^_`{|}~-", s[start-1]) >= 0); start-- {
	}
	for start < at && strings.IndexByte("./=?&'`{|}*", s[start]) >= 0 { // part of a path or a query, or a quotation mark
		start++
	}
	if cut := strings.LastIndexAny(s[start:at], "/=?&"); cut >= 0 {
		start += cut + 1
	}
	for end = at + 1; end < len(s) && (wordByte(s[end]) || s[end] == '.' || s[end] == '-'); end++ {
	}
	for end > at+1 && (s[end-1] == '.' || s[end-1] == '-') {
		end--
	}
	if start == at || at-start > 64 || end-at > 254 || !utf8.ValidString(s[start:end]) {
		return 0, 0, false
	}
	domain := s[at+1 : end]
	dot := strings.LastIndexByte(domain, '.')
	return start, end, domain == "localhost" || dot > 0 && len(domain)-dot > 2 && !strings.Contains(domain, "..") && strings.Trim(domain[dot+1:], "0123456789") != ""
}

// phrase finds the name before an address in angle brackets (RFC 5322, section 3.4).
func phrase(s string, address int) (start, end int, ok bool) {
	if address < 2 || s[address-1] != '<' {
		return 0, 0, false
	}
	end = address - 1
	for end > 0 && strings.IndexByte(" \t\"'\\", s[end-1]) >= 0 {
		end--
	}
	for start = end; start > 0 && end-start < 80 && strings.IndexByte("<>,;:\"\r\n()[]{}\\", s[start-1]) < 0; start-- {
	}
	for start < end && strings.IndexByte(" \t'", s[start]) >= 0 {
		start++
	}
	return start, end, start < end && plainName(s[start:end])
}
