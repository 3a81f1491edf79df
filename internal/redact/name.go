package redact

import (
	"bytes"
	"strings"

	"hookglass"
	"hookglass/internal/jsondoc"
)

// Names of fields and headers that hold credentials, and endings of such names, in lower case without marks between
// words.
var (
	credentialNames = map[string]bool{
		"authorization": true, "proxyauthorization": true, "xauthorization": true, "auth": true, "cookie": true, "setcookie": true, "pwd": true, "pass": true,
		"credential": true, "credentials": true, "bearer": true, "otp": true, "cvc": true, "cvv": true, "cardnumber": true, "ssn": true,
		"sessionid": true, "csrf": true, "xsrf": true,
	}
	credentialEndings = []string{
		"password", "passwd", "passphrase", "passcode", "secret", "token", "apikey", "accesskey", "accesskeyid", "secretkey",
		"privatekey", "signingkey", "encryptionkey", "authkey",
	}
)

// maxSensitive is the length of the longest name that can be sensitive.
const maxSensitive = 100

// Credential reports whether a field of this name holds a credential rather than a signature over the message, judged
// by the words of the name.
func Credential(name string) bool {
	var room [maxSensitive]byte
	word := fold(room[:0], name)
	return credentialNames[string(word)] || endsIn(word, credentialEndings...)
}

// Sensitive reports whether a field of this name holds a credential or a signature, judged by the words of the name.
func Sensitive(name string) bool {
	var room [maxSensitive]byte
	word := fold(room[:0], name)
	return credentialNames[string(word)] || endsIn(word, credentialEndings...) || endsIn(word, "signature") ||
		len(name) > 1 && name[0]|0x20 == 'x' && name[1] == '-' && bytes.Contains(word, []byte("signature"))
}

// fold appends a name to word in lower case without marks between words; of a longer one than maxSensitive, nothing.
func fold(word []byte, name string) []byte {
	if len(name) > maxSensitive {
		return word
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c == '-', c == '_', c == ' ', c == '.', c == '[', c == ']':
		case 'A' <= c && c <= 'Z':
			word = append(word, c|0x20)
		default:
			word = append(word, c)
		}
	}
	return word
}

// endsIn reports whether a word ends in one of these, before a number, as x-hub-signature-256 does.
func endsIn(word []byte, endings ...string) bool {
	for len(word) > 0 && '0' <= word[len(word)-1] && word[len(word)-1] <= '9' {
		word = word[:len(word)-1]
	}
	for _, ending := range endings {
		if len(word) >= len(ending) && string(word[len(word)-len(ending):]) == ending {
			return true
		}
	}
	return false
}

// SensitiveHeader is Sensitive for a header, where "signature" counts anywhere in the name.
func SensitiveHeader(name string) bool {
	return Sensitive(name) || strings.Contains(strings.ToLower(name), "signature")
}

// Bounds of the values looked for in answers. A shorter text could be any word; and a sender can give any number of
// fields sensitive names.
const (
	minSensitive  = 6
	mostSensitive = 100
)

// CredentialsOf returns the values of headers that hold credentials.
func CredentialsOf(h hookglass.Headers) (masks []Mask) {
	for _, f := range h {
		if SensitiveHeader(f.Name) && len(f.Value) >= 8 {
			masks = append(masks, Mask{Value: f.Value})
		}
	}
	return masks
}

// ValuesIn returns the texts and numbers under sensitive names in a value, also inside its strings: those may
// hold JSON, and a body that is not JSON is one string.
func ValuesIn(v jsondoc.Value) (masks []Mask) {
	add := func(text string) {
		if len(masks) < mostSensitive && len(text) >= minSensitive {
			masks = append(masks, Mask{Value: text})
		}
	}
	inside := func(text string) (jsondoc.Value, bool) {
		if len(text) <= minSensitive || text[0] != '{' && text[0] != '[' {
			return jsondoc.Value{}, false
		}
		v, err := jsondoc.Parse([]byte(text), jsondoc.Wide())
		return v, err == nil
	}
	var walk func(v jsondoc.Value, sensitive bool)
	walk = func(v jsondoc.Value, sensitive bool) {
		switch kind := v.Kind(); {
		case len(masks) == mostSensitive:
		case !v.Scalar():
			i := 0
			for name, inside := range v.All() {
				beside := v.NameBeside(i)
				i++
				walk(inside, sensitive || kind == jsondoc.Object && (Sensitive(name) || Sensitive(beside)) || kind == jsondoc.Array && CredentialHeader(beside))
			}
		case sensitive && (kind == jsondoc.String || kind == jsondoc.Number):
			add(v.Text())
		case kind == jsondoc.String:
			if v, ok := inside(v.Text()); ok { // Slack sends forms that hold JSON
				walk(v, false)
				return
			}
			for text := range namedTexts(v.Text()) {
				add(text)
				if v, ok := inside(text); ok {
					walk(v, true)
				}
			}
		}
	}
	walk(v, false)
	return masks
}
