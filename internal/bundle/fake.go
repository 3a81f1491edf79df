package bundle

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"hookglass/internal/jsondoc"
)

// fakes makes substitutes and remembers them, so that no two values share one.
type fakes struct {
	key   []byte
	made  map[string]string // by kind and value
	taken map[string]string // by kind and substitute: the value it stands for
}

func newFakes(key []byte) *fakes {
	return &fakes{key, map[string]string{}, map[string]string{}}
}

// tries bounds the search for an unused substitute. A form with few values, such as a name of two letters, may run out,
// and then two values share one.
const tries = 40

// of returns the substitute of a value: of the same form, and the same for any capitalisation or grouping of the value.
func (f *fakes) of(kind Kind, s string) string {
	switch kind {
	case Address, Pointed: // their words are looked for as names
		kind = Name
	case Secret: // it may also stand in a field of credentials
		kind = Token
	}
	id := string(kind) + "\x00" + s
	if fake, ok := f.made[id]; ok {
		return fake
	}
	if kind == Name { // word by word, so that a first name alone gets the same substitute
		if parts := strings.FieldsFunc(s, space); len(parts) > 1 {
			fake := eachWord(s, func(word string) string { return f.of(kind, word) })
			f.made[id] = fake
			return fake
		}
	}
	whose := strings.ToLower(s)
	switch kind {
	case Phone, Card, IBAN:
		whose = alphanumeric(whose)
	case Token: // also where it stands behind a scheme
		whose = s[len(tokenPrefix.FindString(s)):]
	case JWT, Encoded:
		whose = s
	case IP:
		if dotted, ok := integerIP(s); ok { // the same address as where it is written out
			whose = dotted
		}
	}
	fake := ""
	for attempt := range tries {
		n := &numbers{key: f.key, seed: string(kind) + "\x00" + whose + "\x00" + strconv.Itoa(attempt)}
		fake = f.make(kind, s, n)
		if strings.HasPrefix(fake, "0") && !strings.HasPrefix(s, "0") { // the value may also be a JSON number
			fake = strconv.Itoa(1+n.below(9)) + fake[1:]
		}
		other := string(kind) + "\x00" + strings.ToLower(fake)
		if kind == Phone || kind == Card || kind == IBAN {
			other = string(kind) + "\x00" + alphanumeric(strings.ToLower(fake))
		}
		if owner, taken := f.taken[other]; !strings.EqualFold(fake, s) && (!taken || owner == whose) {
			f.taken[other] = whose
			break
		}
	}
	f.made[id] = fake
	return fake
}

func (f *fakes) make(kind Kind, s string, n *numbers) string {
	switch kind {
	case Email:
		at := strings.LastIndexByte(s, '@')
		domain := &numbers{key: f.key, seed: "domain\x00" + strings.ToLower(s[at+1:])}
		return shape(s[:at], n) + "@" + letters(8, domain) + ".example" // RFC 2606
	case Phone:
		kept := 0
		return digits(s, func() byte {
			if kept++; kept <= 2 && strings.HasPrefix(s, "+") { // the country code
				return 0
			}
			return n.digit()
		})
	case Card:
		return card(s, n)
	case IBAN:
		return iban(s, n)
	case IP:
		if dotted, ok := integerIP(s); ok {
			return asInteger(address(dotted, n))
		}
		return address(s, n)
	case JWT:
		return jwt(s, n)
	case Token:
		kept := tokenPrefix.FindString(s)
		return kept + shape(s[len(kept):], n)
	case Birth:
		if birthForm.MatchString(s) {
			return fmt.Sprintf("%d-%02d-%02d%s", 1950+n.below(55), 1+n.below(12), 1+n.below(28), s[10:])
		}
		return shape(s, n)
	case Name:
		if !hexadecimal(s) { // as of an id that the caller named
			return spoken(s, n)
		}
	}
	return shape(s, n)
}

var (
	// tokenPrefix matches the fixed prefixes of credentials, which only identify the issuer.
	tokenPrefix = regexp.MustCompile(`^(?i:Bearer |Basic |Token )?(?:[srp]k_(?:live|test)_|whsec_|whpk_|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|AIza|SG\.|npm_|shp(?:at|ca|pa|ss)_|tk_|v[01]=|sha(?:1|256|512)=)?`)
	birthForm   = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}`)
)

// numbers is a pseudo-random sequence, made by HMAC-SHA256 of a seed.
type numbers struct {
	key   []byte
	seed  string
	block [sha256.Size]byte
	used  int
	count uint32
}

func (n *numbers) byte() byte {
	if n.count == 0 { // once, because a value may have megabytes
		h := hmac.New(sha256.New, n.key)
		h.Write([]byte(n.seed))
		n.key = h.Sum(nil)
	}
	if n.count == 0 || n.used == len(n.block) {
		h := hmac.New(sha256.New, n.key)
		h.Write(binary.BigEndian.AppendUint32(nil, n.count))
		h.Sum(n.block[:0])
		n.count++
		n.used = 0
	}
	n.used++
	return n.block[n.used-1]
}

func (n *numbers) below(bound int) int {
	return (int(n.byte())<<16 | int(n.byte())<<8 | int(n.byte())) % bound
}

func (n *numbers) digit() byte { return byte('0' + n.below(10)) }

func letters(count int, n *numbers) string {
	b := make([]byte, count)
	for i := range b {
		b[i] = byte('a' + n.below(26))
	}
	return string(b)
}

// shape replaces letters and digits by others of their class; hexadecimal text stays hexadecimal.
func shape(s string, n *numbers) string {
	span := 26
	if hexadecimal(s) {
		span = 6
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9':
			return rune(n.digit())
		case r >= 'a' && r <= 'z':
			return rune('a' + n.below(span))
		case r >= 'A' && r <= 'Z':
			return rune('A' + n.below(span))
		}
		return foreign(r, n)
	}, s)
}

func hexadecimal(s string) bool {
	return len(s) >= 8 && strings.Trim(s, "0123456789abcdefABCDEF-") == ""
}

// spoken is shape for words that people read: vowels stay vowels.
func spoken(s string, n *numbers) string {
	const vowels, consonants = "aeiou", "bcdfghklmnprstvwz"
	return strings.Map(func(r rune) rune {
		lower := r | 0x20
		switch {
		case r >= '0' && r <= '9':
			return rune(n.digit())
		case lower >= 'a' && lower <= 'z' && r < 0x80:
			from := consonants
			if strings.ContainsRune("aeiouy", lower) {
				from = vowels
			}
			return rune(from[n.below(len(from))]) - (lower - r)
		}
		return foreign(r, n)
	}, s)
}

// foreign replaces a letter beyond ASCII by a nearby one.
func foreign(r rune, n *numbers) rune {
	if r < 0x80 || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
		return r
	}
	for range 8 {
		if c := r&^0xf | rune(n.below(16)); c != r && unicode.IsLetter(c) == unicode.IsLetter(r) && unicode.IsUpper(c) == unicode.IsUpper(r) {
			return c
		}
	}
	return 'x'
}

// digits replaces the digits of a text; a next of 0 keeps one.
func digits(s string, next func() byte) string {
	b := []byte(s)
	for i, c := range b {
		if c >= '0' && c <= '9' {
			if d := next(); d != 0 {
				b[i] = d
			}
		}
	}
	return string(b)
}

// card keeps the first digit, which identifies the network, and computes the check digit (ISO/IEC 7812-1).
func card(s string, n *numbers) string {
	fake := make([]byte, digitsIn(s))
	for i := range fake {
		fake[i] = n.digit()
	}
	if last := len(fake) - 1; last > 0 {
		fake[0] = s[strings.IndexAny(s, "0123456789")]
		for fake[last] = '0'; !luhn(fake); fake[last]++ { // one of the ten digits fits
		}
	}
	next := 0
	return digits(s, func() byte {
		next++
		return fake[next-1]
	})
}

// luhn reports whether the check digit of a number is correct.
func luhn(number []byte) bool {
	sum := 0
	for i := range len(number) {
		d := int(number[len(number)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// iban keeps the country and computes the check digits (ISO 13616).
func iban(s string, n *numbers) string {
	plain := strings.ToUpper(alphanumeric(s))
	account := strings.ToUpper(shape(plain[4:]+"       x", n))[:len(plain)-4] // padded so that it is not taken for hexadecimal
	fake := fmt.Sprintf("%s%02d%s", plain[:2], 98-ibanRest([]byte(plain[:2]+"00"+account)), account)
	var b strings.Builder
	next := 0
	for i := range len(s) {
		if alphanumericByte(s[i]) {
			b.WriteByte(fake[next])
			next++
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ibanStart reports whether a number begins as those of accounts do: with a country and two check digits.
func ibanStart(number []byte) bool {
	upper := func(c byte) bool { return c >= 'A' && c <= 'Z' }
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	return upper(number[0]) && upper(number[1]) && digit(number[2]) && digit(number[3])
}

// ibanRest returns the checksum of an account number; 1 is correct.
func ibanRest(number []byte) (rest int) {
	for i := range number {
		switch c := number[(i+4)%len(number)]; {
		case c >= '0' && c <= '9':
			rest = (rest*10 + int(c-'0')) % 97
		case c >= 'A' && c <= 'Z':
			rest = (rest*100 + int(c-'A') + 10) % 97
		default:
			return -1
		}
	}
	return rest
}

// address returns an address from a range that nobody uses: 198.18.0.0/15 (RFC 2544) or 2001:db8::/32 (RFC 3849).
func address(s string, n *numbers) string {
	if strings.Contains(s, ":") {
		b := [16]byte{0x20, 0x01, 0x0d, 0xb8}
		for i := 8; i < 16; i++ {
			b[i] = n.byte() | 1
		}
		return netip.AddrFrom16(b).String()
	}
	return netip.AddrFrom4([4]byte{198, 18 | n.byte()&1, n.byte(), 1 + n.byte()%254}).String()
}

// jwt returns a token with the same claims but other texts and numbers; times and the algorithm stay.
func jwt(s string, n *numbers) string {
	parts := strings.Split(s, ".")
	for i, part := range parts {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if i == 2 || err != nil {
			parts[i] = shape(part, n)
			continue
		}
		text, err = jsondoc.Rewrite(text, jsondoc.Wide(), func(l jsondoc.Leaf) (string, bool) {
			switch l.Member() {
			case "alg", "typ", "cty", "exp", "iat", "nbf", "auth_time":
				return "", false
			}
			if l.Kind == jsondoc.Number {
				return figures(l.Text, n), true
			}
			return shape(l.Text, n), !l.Name
		})
		if err != nil {
			parts[i] = shape(part, n)
			continue
		}
		parts[i] = base64.RawURLEncoding.EncodeToString(text)
	}
	return strings.Join(parts, ".")
}

// figures replaces the digits of a JSON number so that it stays valid.
func figures(s string, n *numbers) string {
	first := true
	exponent := strings.IndexAny(s, "eE")
	at := -1
	return strings.Map(func(r rune) rune {
		at++
		if r < '0' || r > '9' || exponent >= 0 && at > exponent {
			return r
		}
		if first {
			if first = false; r == '0' {
				return r
			}
			return rune('1' + n.below(9))
		}
		return rune(n.digit())
	}, s)
}

func alphanumericByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func alphanumeric(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && alphanumericByte(byte(r)) {
			return r
		}
		return -1
	}, s)
}

func space(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == '"' }

// eachWord replaces the words of a text and keeps what is between them.
func eachWord(s string, fn func(string) string) string {
	var b strings.Builder
	for s != "" {
		start := strings.IndexFunc(s, func(r rune) bool { return !space(r) })
		if start < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:start])
		s = s[start:]
		end := strings.IndexFunc(s, space)
		if end < 0 {
			end = len(s)
		}
		b.WriteString(fn(s[:end]))
		s = s[end:]
	}
	return b.String()
}
