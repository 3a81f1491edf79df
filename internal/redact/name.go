package redact

import (
	"bytes"
	"strings"

	"hookglass"
	"hookglass/internal/jsondoc"
)

// Names of fields and headers that hold credentials, and endings of such names, in lower case without marks between
// words. An ending has three letters at least.
var (
	credentialNames = set(`authorization proxyauthorization xauthorization auth cookie setcookie pwd pass credential
		credentials bearer otp cvc cvv cardnumber ssn sessionid csrf xsrf`)
	credentialEndings = byLast(`password passwd passphrase passcode secret token apikey accesskey accesskeyid
		secretkey privatekey signingkey encryptionkey authkey`)
)

// More names that no stranger may see what stands under. They are no reason to refuse a value, or to send it otherwise.
var (
	sensitiveNames = set(`sig hmac totp assertion clientassertion samlresponse codeverifier idtokenhint
		oauthverifier phpsessid jsessionid aspnetsessionid connectsid basicauth httpauth mnemonic secretkeybase
		secretstring secretbinary secretvalue tokenvalue securityanswer secretanswer socialsecuritynumber passwort
		kennwort motdepasse contraseña contrasena senha wachtwoord`)
	sensitiveEndings = byLast(`signature pwd cvv cvc cardnumber ssn credential credentials secrets passwords
		passwordhash passworddigest passwordconfirmation apikeys accesstokens refreshtokens authtokens apitokens
		sharedkey masterkey accountkey storagekey subscriptionkey functionskey appkey applicationkey consumerkey
		clientkey clientkeydata serverkey servicekey servicerolekey webhookkey hmackey sessionkey decryptionkey
		licensekey integrationkey connectionstring verificationcode securitycode recoverycode recoverycodes
		backupcode backupcodes mfacode otpcode onetimecode twofactorcode authcode authorizationcode magiclink
		seedphrase recoveryphrase dbpass userpass authpass adminpass smtppass mailpass ftppass mysqlpass`)
	// of headers alone
	headerEndings = byLast(`authorization authentication auth session sessionid jwt assertion bearer otp sig key
		oidcdata clientprincipal dpop honeycombteam trellowebhook cfaccessclientid`)
	// plainKeys are words before "key" in headers whose value is no secret, as of Bitbucket's X-Event-Key.
	plainKeys = byLast(`eventkey idempotencykey websocketkey cachekey surrogatekey routingkey partitionkey sortkey
		dedupkey dedupekey deduplicationkey messagekey objectkey publickey issuekey projectkey spacekey primarykey
		foreignkey orderkey orderingkey requestkey correlationkey groupkey tenantkey resourcekey shardkey recordkey
		rowkey itemkey entitykey topickey queuekey jobkey taskkey lockkey repositorykey repokey branchkey
		translationkey hashkey monkey turkey`)
)

func set(words string) map[string]bool {
	all := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		all[word] = true
	}
	return all
}

// lastOf is how many bytes at their ends endings are found by.
const lastOf = 3

// byLast indexes endings by their last bytes: most names have none of them.
func byLast(endings string) map[string][]string {
	all := make(map[string][]string)
	for ending := range strings.FieldsSeq(endings) {
		last := ending[len(ending)-lastOf:]
		all[last] = append(all[last], ending)
	}
	return all
}

// maxSensitive is the length of the longest name that can be sensitive.
const maxSensitive = 100

// Credential reports whether a field of this name holds a credential for sure, and no signature over the message,
// judged by the words of the name.
func Credential(name string) bool {
	var room [maxSensitive]byte
	word := fold(room[:0], name)
	return credentialNames[string(word)] || endsIn(word, credentialEndings)
}

// Sensitive reports whether a field of this name holds a credential or a signature, judged by the words of the name. A
// name that begins with x- is a header's.
func Sensitive(name string) bool {
	var room [maxSensitive]byte
	word := fold(room[:0], name)
	if sensitive(word) || len(name) > 1 && name[0]|0x20 == 'x' && name[1] == '-' && ofHeader(word) {
		return true
	}
	if i := strings.LastIndexByte(name, '['); i > 0 && len(name) <= maxSensitive { // of a form, as in user[pwd]
		return sensitive(fold(word[:0], name[i:]))
	}
	return false
}

// SensitiveHeader is Sensitive for a header, whose name tells more.
func SensitiveHeader(name string) bool {
	var room [maxSensitive]byte
	return Sensitive(name) || ofHeader(fold(room[:0], name))
}

func sensitive(word []byte) bool {
	return credentialNames[string(word)] || sensitiveNames[string(word)] ||
		endsIn(word, credentialEndings) || endsIn(word, sensitiveEndings)
}

// ofHeader reports whether the word is the name of a header that holds a credential or a signature.
func ofHeader(word []byte) bool {
	return bytes.Contains(word, []byte("signature")) || bytes.Contains(word, []byte("hmac")) ||
		endsIn(word, headerEndings) && !endsIn(word, plainKeys)
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
func endsIn(word []byte, endings map[string][]string) bool {
	for len(word) > 0 && '0' <= word[len(word)-1] && word[len(word)-1] <= '9' {
		word = word[:len(word)-1]
	}
	if len(word) < lastOf {
		return false
	}
	for _, ending := range endings[string(word[len(word)-lastOf:])] {
		if bytes.HasSuffix(word, []byte(ending)) {
			return true
		}
	}
	return false
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
