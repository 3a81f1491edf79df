package email

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the search for codes.
const (
	maxCodes    = 10
	maxMentions = 200 // words that announce a code, in one text
	codeReach   = 160 // bytes after such a word in which to look for the code
	codeBefore  = 60  // ... and before it
	maxDoubt    = 100
	maxGroups   = 64  // of one row of digits: more than codeReach holds of groups of three
	lineReach   = 256 // bytes around a code that count as its line
)

// announcing are the words near a one-time code, in lower case, in the usual languages of mail.
var announcing = []string{
	"code", "passcode", "otp", "pin", "one-time", "one time", "one-time password", "one time password", "verification", "2fa", "token", "security number",
	"einmalpasswort", "einmalkennwort", "tan", "código", "codigo", "clave", "codice", "senha", "kod", "kód", "kode", "koodi", "mã", "şifre", "mot de passe",
	"код", "пароль", "コード", "認証番号", "暗証番号", "验证码", "驗證碼", "校验码", "动态码", "動態碼", "인증번호", "인증 코드", "보안 코드", "코드", "رمز", "קוד", "कोड", "รหัส", "κωδικός", "κωδικό",
}

// afterCode are words that directly follow a code: "use 123456 to verify".
var afterCode = []string{"to verify", "to sign in", "to log in", "to login", "to confirm", "to complete", "to continue"}

// otherCodes are words before "code" that make it another kind of code.
var otherCodes = []string{"zip", "postal", "post", "area", "country", "error", "status", "exit", "source", "qr", "bar", "promo", "promotion", "promotional", "coupon", "discount", "voucher", "dress", "response", "sort"}

// otherKods are such words of Scandinavian languages, before "kode" and "kod".
var otherKods = []string{"fejl", "feil", "lands", "status", "områdes"}

// found is a code with its doubt: less is more likely.
type found struct {
	code        string
	doubt       int
	offset, end int  // in its text
	mixed       bool // has small letters, like a word: it counts only directly after its announcement
	row         bool // single spaced digits: before its announcement it counts only at the start of a line
}

// codesIn finds what looks like a code near words that announce one. The texts are searched in order; a code that
// occurs in several counts once.
func codesIn(texts ...string) []string {
	var all []found
	base := 0
	for _, text := range texts {
		for _, f := range codesNear(text) {
			f.offset += base
			all = append(all, f)
		}
		base += len(text)
	}
	slices.SortStableFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.doubt, b.doubt), cmp.Compare(a.offset, b.offset))
	})
	codes := []string{}
	for _, f := range all {
		if len(codes) < maxCodes && !slices.Contains(codes, f.code) {
			codes = append(codes, f.code)
		}
	}
	return codes
}

// codesNear searches one text around each word that announces a code.
func codesNear(text string) (all []found) {
	text = withoutLinks(text)
	lower := foldCase(text)
	for _, words := range afterCode {
		for at, n := 0, 0; n < maxMentions; n++ {
			i := strings.Index(lower[at:], words)
			if i < 0 {
				break
			}
			at += i
			all = append(all, codesJustBefore(text, at)...)
			at += len(words)
		}
	}
	for _, m := range mentionsIn(lower) {
		all = append(all, codesBehind(text, m)...)
		all = append(all, codesBefore(text, m)...)
	}
	return slices.DeleteFunc(all, func(f found) bool { return f.doubt > maxDoubt })
}

// codesJustBefore returns the codes that such words directly follow.
func codesJustBefore(text string, at int) (codes []found) {
	for _, f := range candidates(text, max(at-16, 0), at) {
		if !f.mixed && f.end <= at && strings.TrimSpace(text[f.end:at]) == "" {
			f.doubt += 20
			codes = append(codes, f)
		}
	}
	return codes
}

// codesBehind returns the codes after a word that announces one. Text between the two makes a code less likely.
func codesBehind(text string, m mention) (codes []found) {
	for _, f := range candidates(text, m.end, min(m.end+codeReach, len(text))) {
		gap := text[m.end:f.offset]
		if f.mixed && !announced(text, gap, f) {
			continue
		}
		f.doubt += len(gap) + 40*min(strings.Count(gap, "\n"), 2) + 40*strings.Count(gap, ". ")
		if aloneOnLine(text, f.offset, f.end) {
			f.doubt /= 4
		}
		if hasAnyPrefix(strings.TrimLeft(gap, " \t\u00a0"), []string{":", "：", "is ", "is:", "="}) || strings.TrimSpace(gap) == "" {
			f.doubt /= 4
		}
		codes = append(codes, f)
	}
	return codes
}

// codesBefore returns the codes before a word that announces one, which is rare.
func codesBefore(text string, m mention) (codes []found) {
	for _, f := range candidates(text, max(m.start-codeBefore, 0), m.start) {
		if f.mixed || f.end > m.start || f.row && !beginsLine(text, f.offset) {
			continue
		}
		gap := text[f.end:m.start]
		f.doubt += 20 + 2*len(gap) + 40*min(strings.Count(gap, "\n"), 2)
		codes = append(codes, f)
	}
	return codes
}

// announced reports whether there are only joining words between an announcement and a code with small letters. If
// there is nothing between them, the code must be on a line of its own and have digits in more than one place.
func announced(text, gap string, f found) bool {
	rest, is := strings.CutPrefix(strings.TrimLeft(gap, " \t\u00a0"), "is")
	if strings.Trim(rest, " \t\r\n\u00a0:：=\"'[(*") != "" {
		return false
	}
	return is || strings.ContainsAny(rest, ":：=") || aloneOnLine(text, f.offset, f.end) && digitRuns(f.code) > 1
}

func digitRuns(s string) (n int) {
	for i := 0; i < len(s); i++ {
		if isDigit(s[i]) && (i == 0 || !isDigit(s[i-1])) {
			n++
		}
	}
	return n
}

// withoutLinks blanks out web addresses: numbers in them are not codes.
func withoutLinks(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	b := []byte(text)
	for pos := 0; ; {
		i := strings.Index(text[pos:], "://")
		if i < 0 {
			return string(b)
		}
		pos += i
		for pos < len(b) && b[pos] > ' ' {
			b[pos] = ' '
			pos++
		}
	}
}

// foldCase returns text in lower case, with every letter at its old offset.
func foldCase(text string) string {
	b := []byte(text)
	for i, r := range text {
		if l := unicode.ToLower(r); l != r && utf8.RuneLen(l) == utf8.RuneLen(r) {
			utf8.EncodeRune(b[i:], l)
		}
	}
	return string(b)
}

// mention is where a word announces a code.
type mention struct{ start, end int }

// mentionsIn finds the words that announce a code, the first maxMentions of a text.
func mentionsIn(lower string) (all []mention) {
	for _, word := range announcing {
		count := 0
		for at := 0; count < maxMentions; {
			i := strings.Index(lower[at:], word)
			if i < 0 {
				break
			}
			at += i
			if announces(lower, at, word) {
				all = append(all, mention{at, at + len(word)})
				count++
			}
			at += len(word)
		}
	}
	slices.SortFunc(all, func(a, b mention) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	return all[:min(len(all), maxMentions)]
}

// announces reports whether the word at an offset stands alone there (short ones are part of many words) and means the
// right kind of code.
func announces(lower string, at int, word string) bool {
	before, _ := utf8.DecodeLastRuneInString(lower[:at])
	after, _ := utf8.DecodeRuneInString(lower[at+len(word):])
	first, _ := utf8.DecodeRuneInString(word)
	switch {
	case first >= 0x3000: // scripts without spaces between words
		return true
	case hasAnyPrefix(word, []string{"kod", "kód", "код"}): // these take endings
		return !unicode.IsLetter(before) && !hasAnySuffix(strings.TrimRight(lower[:at], " -\t"), otherKods) ||
			before == 's' && endsWithLetter(lower[:at-1]) && !hasAnySuffix(lower[:at], otherKods) // engangskode, verifieringskod
	case len(word) <= 4 && word != "code" && (unicode.IsLetter(before) || unicode.IsLetter(after)):
		return false
	case word == "code" && unicode.IsLetter(after) && !strings.HasPrefix(lower[at:], "codes"):
		return false // codec, coded
	}
	if word == "code" {
		preceding := strings.TrimRight(lower[max(0, at-14):at], " -\t")
		return !hasAnySuffix(preceding, otherCodes)
	}
	return true
}

// candidates returns the tokens between two offsets that have the shape of a code, with the doubt inherent in the
// token. One that the offsets cut is none of them: it does not stand alone.
func candidates(text string, from, to int) (all []found) {
	for i := from; i < to; {
		if !isCodeByte(text[i]) {
			i++
			continue
		}
		code, end, next := spaced(text, i)
		row := end > i+1 && end-i > len(code) && !isDigit(text[i+1])
		if end == 0 {
			end = i
			for end < to && (isCodeByte(text[end]) || text[end] == '-' && end+1 < to && isCodeByte(text[end+1])) {
				end++
			}
			code, next = text[i:end], end
		}
		if f := (found{code: code, offset: i, end: end, doubt: 15, row: row}); standsAlone(text, i, end) && (isCode(code) || isMixedCode(code)) {
			switch {
			case !isCode(code):
				f.doubt, f.mixed = 30, true
			case isYear(code):
				f.doubt = 100
			case isDigits(f.code):
				f.doubt = 0
			}
			if !aloneOnLine(text, i, end) {
				f.doubt += 10
			}
			all = append(all, f)
		}
		i = next
	}
	return all
}

// maxBlank is the space allowed between two digits of a spaced code: table cells, one per line.
const maxBlank = 64

// spaced parses digits separated by space: single digits, or two groups of three or four. If the two groups are not one
// code, it returns the first. The search continues at next. end is 0 if there are none at i. The code is empty for a
// longer row of groups, such as a card or telephone number, and for two years.
func spaced(text string, i int) (code string, end, next int) {
	size := digitsAt(text, i)
	if size != 1 && size != 3 && size != 4 || size == 1 && rowBefore(text, i) {
		return "", 0, 0
	}
	groups := []string{text[i : i+size]}
	end = i + size
	for len(groups) < maxGroups && (size > 1 || len(groups) < 16) {
		next := end + blankAt(text, end, size == 1)
		if next == end || digitsAt(text, next) != size {
			break
		}
		groups, end = append(groups, text[next:next+size]), next+size
	}
	code = strings.Join(groups, "")
	switch {
	case size == 1 && 4 <= len(code) && len(code) <= 8 && !counts(code) && !goesOn(text, end):
		return code, end, end
	case size == 1:
		return "", 0, 0
	case len(groups) > 2, len(groups) == 2 && isYear(groups[0]) && isYear(groups[1]):
		return "", end, end
	case len(groups) == 2 && joins(text, i, end, groups):
		return code, end, end
	case len(groups) == 2 && size == 4 && !isYear(groups[0]):
		return groups[0], i + size, end
	}
	return "", 0, 0
}

// joins reports whether two groups of digits are one code, rather than a code followed by a year or another number.
func joins(text string, from, to int, groups []string) bool {
	switch {
	case !standsAlone(text, from, to):
		return false
	case len(groups[0]) != 4:
		return true
	case aloneOnLine(text, from, to):
		return true
	case isYear(groups[0]) || isYear(groups[1]):
		return false
	}
	rest := strings.TrimLeft(text[to:min(to+maxBlank, len(text))], " \t\u00a0")
	next, _ := utf8.DecodeRuneInString(rest)
	return !unicode.IsDigit(next) && (!unicode.IsLetter(next) || next >= 0x3000) || hasAnyPrefix(rest, []string{"is ", "and ", "to "})
}

// isYear reports whether four digits may be one.
func isYear(digits string) bool {
	return len(digits) == 4 && (strings.HasPrefix(digits, "19") || strings.HasPrefix(digits, "20"))
}

// counts reports whether digits ascend or descend by one each, like the answers of a survey.
func counts(digits string) bool {
	step := int(digits[1]) - int(digits[0])
	for i := 1; i < len(digits); i++ {
		if int(digits[i])-int(digits[i-1]) != step {
			return false
		}
	}
	return step == 1 || step == -1
}

// goesOn reports whether another number follows a row of single digits, on the same line or alone on the next.
func goesOn(text string, end int) bool {
	next := end + blankAt(text, end, true)
	n := digitsAt(text, next)
	return n > 0 && (!strings.Contains(text[end:next], "\n") || aloneOnLine(text, next, next+n))
}

// digitsAt returns how many digits there are at an offset, 9 for more.
func digitsAt(text string, at int) (n int) {
	for n < 9 && at+n < len(text) && isDigit(text[at+n]) {
		n++
	}
	return n
}

// blankAt returns the length of the space at an offset: a single one, or all of it.
func blankAt(text string, at int, all bool) (n int) {
	for n < maxBlank {
		r, size := utf8.DecodeRuneInString(text[at+n:])
		if size == 0 || !unicode.IsSpace(r) || !all && (n > 0 || r == '\n') {
			break
		}
		n += size
	}
	return n
}

// rowBefore reports whether a single digit precedes the one at an offset, so that a row does not begin there.
func rowBefore(text string, at int) bool {
	before := strings.TrimRightFunc(text[max(at-maxBlank-1, 0):at], unicode.IsSpace)
	n := len(before)
	return n > 0 && isDigit(before[n-1]) && (n == 1 || !isCodeByte(before[n-2]))
}

// standsAlone reports whether a token is not part of something else: a longer word, a decimal number, a price, a path,
// an address, an order number.
func standsAlone(text string, from, to int) bool {
	before, n := utf8.DecodeLastRuneInString(text[:from])
	switch {
	case n == 0:
	case unicode.IsDigit(before), unicode.IsLetter(before) && before < 0x3000, strings.ContainsRune("#$€£¥/@_%", before):
		return false
	case before == ':' && from > 1 && isDigit(text[from-2]): // a time; a word with a colon announces
		return false
	case strings.ContainsRune(".,-", before) && from > 1 && isCodeByte(text[from-2]):
		return false
	}
	after, n := utf8.DecodeRuneInString(text[to:])
	switch {
	case n == 0:
	case unicode.IsDigit(after), unicode.IsLetter(after) && after < 0x3000, strings.ContainsRune("/@_%€£", after):
		return false
	case strings.ContainsRune(".,:-", after) && to+1 < len(text) && isCodeByte(text[to+1]):
		return false
	}
	return true
}

// isCode reports whether a token has the shape of a code: 4 to 8 digits, in one group or two equal ones; 4 to 10 digits
// and capital letters in up to three groups; two groups of capital letters.
func isCode(token string) bool {
	plain := strings.ReplaceAll(token, "-", "")
	digits, capitals := 0, 0
	for i := 0; i < len(plain); i++ {
		switch c := plain[i]; {
		case isDigit(c):
			digits++
		case 'A' <= c && c <= 'Z':
			capitals++
		default:
			return false
		}
	}
	groups := strings.Split(token, "-")
	twins := len(groups) == 2 && len(groups[0]) == len(groups[1])
	switch {
	case capitals == 0:
		return 4 <= digits && digits <= 8 && (len(groups) == 1 || twins)
	case digits == 0: // otherwise it is a word
		return twins && 6 <= capitals && capitals <= 10
	}
	return 4 <= len(plain) && len(plain) <= 10 && len(groups) <= 3
}

// isMixedCode reports whether a token has letters of any case and digits, the digits not only at the end.
func isMixedCode(token string) bool {
	digits := 0
	for i := 0; i < len(token); i++ {
		if isDigit(token[i]) {
			digits++
		} else if !isCodeByte(token[i]) {
			return false
		}
	}
	if isDigits(strings.TrimLeftFunc(token, unicode.IsLetter)) && !isDigit(token[0]) {
		return false // Chrome119
	}
	return 5 <= len(token) && len(token) <= 10 && 0 < digits && digits < len(token)
}

func aloneOnLine(text string, from, to int) bool {
	rest, _, _ := strings.Cut(text[to:min(to+lineReach, len(text))], "\n")
	return beginsLine(text, from) && strings.TrimSpace(rest) == ""
}

func beginsLine(text string, at int) bool {
	before := text[max(at-lineReach, 0):at]
	return strings.TrimSpace(before[strings.LastIndexByte(before, '\n')+1:]) == ""
}

func isCodeByte(c byte) bool {
	return isDigit(c) || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

func hasAnySuffix(s string, suffixes []string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(s, suffix) })
}

func endsWithLetter(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsLetter(r)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}
