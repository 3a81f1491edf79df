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
	maxMentions = 200 // of words that announce a code, in one text
	codeReach   = 160 // bytes behind such a word in which its code is looked for
	codeBefore  = 60  // ... and before it
	maxDoubt    = 100
)

// announcing are the words that stand by a one-time code, in lower case, in the languages that mails are met in.
var announcing = []string{
	"code", "passcode", "otp", "pin", "one-time", "one time", "verification", "2fa", "token", "security number",
	"einmalpasswort", "einmalkennwort", "tan", "código", "codigo", "clave", "codice", "senha", "kod", "kód", "kode", "koodi", "mã", "şifre", "mot de passe",
	"код", "пароль", "コード", "認証番号", "暗証番号", "验证码", "驗證碼", "校验码", "动态码", "動態碼", "인증번호", "인증 코드", "보안 코드", "코드", "رمز", "קוד", "कोड", "รหัส", "κωδικός", "κωδικό",
}

// afterCode are words that follow a code at once: "use 123456 to verify".
var afterCode = []string{"to verify", "to sign in", "to log in", "to login", "to confirm", "to complete", "to continue"}

// otherCodes are words before "code" that make it another thing.
var otherCodes = []string{"zip", "postal", "post", "area", "country", "error", "status", "exit", "source", "qr", "bar", "promo", "promotion", "promotional", "coupon", "discount", "voucher", "dress", "response", "sort"}

// found is a code with how likely it is one, less being likelier.
type found struct {
	code   string
	doubt  int
	offset int
}

// codesIn finds what looks like a code near words that announce one. The texts are read in order; a code that several have counts once.
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
		for at, found := 0, 0; found < maxMentions; found++ {
			i := strings.Index(lower[at:], words)
			if i < 0 {
				break
			}
			at += i
			for _, f := range candidates(text, max(at-16, 0), at) {
				if f.offset > at-16 && strings.TrimSpace(text[f.offset+len(f.code):at]) == "" {
					f.doubt += 20
					all = append(all, f)
				}
			}
			at += len(words)
		}
	}
	for _, m := range mentionsIn(lower) {
		ahead := min(m.end+codeReach, len(text))
		for ahead < len(text) && ahead < m.end+codeReach+16 && isCodeByte(text[ahead]) {
			ahead++ // not into a code
		}
		for _, f := range candidates(text, m.end, ahead) {
			gap := text[m.end:f.offset]
			f.doubt += len(gap) + 40*min(strings.Count(gap, "\n"), 2) + 40*strings.Count(gap, ". ")
			if aloneOnLine(text, f.offset, f.offset+len(f.code)) {
				f.doubt /= 4
			}
			if hasAnyPrefix(strings.TrimLeft(gap, " \t\u00a0"), []string{":", "：", "is ", "is:", "="}) || strings.TrimSpace(gap) == "" {
				f.doubt /= 4
			}
			all = append(all, f)
		}
		behind := max(m.start-codeBefore, 0)
		for behind > 0 && behind > m.start-codeBefore-16 && isCodeByte(text[behind-1]) {
			behind--
		}
		for _, f := range candidates(text, behind, m.start) {
			gap := text[f.offset+len(f.code) : m.start]
			f.doubt += 20 + 2*len(gap) + 40*min(strings.Count(gap, "\n"), 2)
			all = append(all, f)
		}
	}
	return slices.DeleteFunc(all, func(f found) bool { return f.doubt > maxDoubt })
}

// withoutLinks blanks web addresses, whose numbers are no codes.
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

// foldCase is text in lower case, every letter at its old offset.
func foldCase(text string) string {
	if lower := strings.ToLower(text); len(lower) == len(text) {
		return lower
	}
	return strings.Map(func(r rune) rune {
		if l := unicode.ToLower(r); utf8.RuneLen(l) == utf8.RuneLen(r) {
			return l
		}
		return r
	}, text)
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

// announces reports whether the word at an offset is a word of its own there (short ones of letters are parts of many), and of the
// kind of code that is meant.
func announces(lower string, at int, word string) bool {
	before, _ := utf8.DecodeLastRuneInString(lower[:at])
	after, _ := utf8.DecodeRuneInString(lower[at+len(word):])
	first, _ := utf8.DecodeRuneInString(word)
	switch {
	case first >= 0x3000: // scripts without spaces between words
		return true
	case hasAnyPrefix(word, []string{"kod", "kód", "код"}): // which take endings
		return !unicode.IsLetter(before)
	case len(word) <= 4 && word != "code" && (unicode.IsLetter(before) || unicode.IsLetter(after)):
		return false
	case word == "code" && unicode.IsLetter(after) && !strings.HasPrefix(lower[at:], "codes"):
		return false // codec, coded
	}
	if word == "code" {
		preceding := strings.TrimRight(lower[max(0, at-14):at], " -\t")
		for _, other := range otherCodes {
			if strings.HasSuffix(preceding, other) {
				return false
			}
		}
	}
	return true
}

// candidates are the tokens between two offsets that have the shape of a code, with the doubt that lies in the token itself.
func candidates(text string, from, to int) (all []found) {
	for i := from; i < to; {
		if !isCodeByte(text[i]) {
			i++
			continue
		}
		end := i
		for end < to && (isCodeByte(text[end]) || text[end] == '-' && end+1 < to && isCodeByte(text[end+1])) {
			end++
		}
		if end-i == 3 && end+4 <= to && text[end] == ' ' && isDigits(text[i:end]) && isDigits(text[end+1:end+4]) && (end+4 == len(text) || !isCodeByte(text[end+4])) {
			end += 4 // 123 456
		}
		if code := text[i:end]; standsAlone(text, i, end) && isCode(strings.Replace(code, " ", "-", 1)) {
			f := found{code: strings.Replace(code, " ", "", 1), offset: i, doubt: 15}
			switch {
			case len(code) == 4 && (strings.HasPrefix(code, "19") || strings.HasPrefix(code, "20")): // a year?
				f.doubt = 100
			case isDigits(f.code):
				f.doubt = 0
			}
			if !aloneOnLine(text, i, end) {
				f.doubt += 10
			}
			all = append(all, f)
		}
		i = end
	}
	return all
}

// standsAlone reports whether nothing around a token makes it part of another thing: a longer word, a decimal number, a price, a path, an
// address, an order's number.
func standsAlone(text string, from, to int) bool {
	before, n := utf8.DecodeLastRuneInString(text[:from])
	switch {
	case n == 0:
	case unicode.IsDigit(before), unicode.IsLetter(before) && before < 0x3000, strings.ContainsRune("#$€£¥/@_%", before):
		return false
	case strings.ContainsRune(".,:-", before) && from > 1 && isCodeByte(text[from-2]):
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

// isCode reports the shapes of codes: 4 to 8 digits, in one group or two equal ones; 4 to 10 digits and capital letters in up to three groups;
// two groups of capital letters.
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
	case digits == 0: // else a word
		return twins && 6 <= capitals && capitals <= 10
	}
	return 4 <= len(plain) && len(plain) <= 10 && len(groups) <= 3
}

func aloneOnLine(text string, from, to int) bool {
	start := strings.LastIndexByte(text[:from], '\n') + 1
	rest, _, _ := strings.Cut(text[to:], "\n")
	return strings.TrimSpace(text[start:from]) == "" && strings.TrimSpace(rest) == ""
}

func isCodeByte(c byte) bool {
	return isDigit(c) || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
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
