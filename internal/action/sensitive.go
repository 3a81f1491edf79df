package action

import "strings"

// sensitiveNames are names of fields and headers that hold credentials, and endings of such names, in lower case without marks
// between words.
var (
	sensitiveNames = map[string]bool{
		"authorization": true, "proxyauthorization": true, "auth": true, "cookie": true, "setcookie": true, "pwd": true, "pass": true,
		"credential": true, "credentials": true, "bearer": true, "otp": true, "cvc": true, "cvv": true, "cardnumber": true, "ssn": true,
		"sessionid": true, "csrf": true, "xsrf": true,
	}
	sensitiveEndings = []string{
		"password", "passwd", "passphrase", "passcode", "secret", "token", "apikey", "accesskey", "accesskeyid", "secretkey",
		"privatekey", "signingkey", "encryptionkey", "authkey", "signature",
	}
)

// SensitiveName reports whether what a field by this name holds is a credential, by the words of its name.
func SensitiveName(name string) bool {
	if len(name) > 100 {
		return false
	}
	lower := strings.ToLower(name)
	word := strings.Map(func(r rune) rune {
		switch r {
		case '-', '_', ' ', '.', '[', ']':
			return -1
		}
		return r
	}, lower)
	if sensitiveNames[word] {
		return true
	}
	word = strings.TrimRight(word, "0123456789") // x-hub-signature-256
	for _, ending := range sensitiveEndings {
		if strings.HasSuffix(word, ending) {
			return true
		}
	}
	return strings.HasPrefix(lower, "x-") && strings.Contains(lower, "signature")
}

// SensitiveHeader is SensitiveName for a header, whose name tells of a signature anywhere in it.
func SensitiveHeader(name string) bool {
	return SensitiveName(name) || strings.Contains(strings.ToLower(name), "signature")
}
