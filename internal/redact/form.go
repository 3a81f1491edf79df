package redact

import (
	"iter"
	"strings"
	"unicode/utf8"

	"hookglass"
)

// form is how credentials of a sender begin that have a form of their own.
type form struct {
	start string
	least int    // bytes behind the start
	more  string // characters of it besides letters, digits, - and _
}

// forms are the known ones, by their first bytes.
var forms = byFirst(
	form{"sk_live_", 8, ""}, form{"sk_test_", 8, ""}, form{"rk_live_", 8, ""}, form{"rk_test_", 8, ""},
	form{"pk_live_", 8, ""}, form{"pk_test_", 8, ""}, form{"whsec_", 8, "+/="}, form{"tk_", 16, ""},
	form{"hg_", 32, ""}, form{"ghp_", 20, ""}, form{"gho_", 20, ""}, form{"ghu_", 20, ""}, form{"ghs_", 20, ""},
	form{"ghr_", 20, ""}, form{"github_pat_", 20, ""}, form{"glpat-", 16, "."}, form{"gldt-", 16, ""},
	form{"glrt-", 16, "."}, form{"glptt-", 16, ""}, form{"xoxa-", 10, ""}, form{"xoxb-", 10, ""},
	form{"xoxc-", 10, ""}, form{"xoxd-", 10, "%"}, form{"xoxe-", 10, ""}, form{"xoxe.xox", 10, ""},
	form{"xoxp-", 10, ""}, form{"xoxr-", 10, ""}, form{"xoxs-", 10, ""}, form{"xapp-", 10, ""},
	form{"hooks.slack.com/", 20, "/"}, form{"hooks.slack-gov.com/", 20, "/"},
	form{"api.telegram.org/bot", 30, ":"}, form{"discord.com/api/webhooks/", 30, "/"},
	form{"discordapp.com/api/webhooks/", 30, "/"}, form{"webhook.office.com/webhookb2/", 30, "/@"},
	form{"AKIA", 16, ""}, form{"ASIA", 16, ""}, form{"amzn.mws.", 20, ""}, form{"AIza", 30, ""},
	form{"ya29.", 16, ""}, form{"GOCSPX-", 20, ""}, form{"SG.", 33, "."}, form{"npm_", 30, ""},
	form{"pypi-AgE", 16, ""}, form{"dckr_pat_", 16, ""}, form{"rubygems_", 32, ""}, form{"shpat_", 16, ""},
	form{"shpca_", 16, ""}, form{"shppa_", 16, ""}, form{"shpss_", 16, ""}, form{"sq0atp-", 16, ""},
	form{"sq0csp-", 16, ""}, form{"sk-proj-", 16, ""}, form{"sk-ant-", 16, ""}, form{"sk-svcacct-", 16, ""},
	form{"sk-or-v1-", 16, ""}, form{"hf_", 30, ""}, form{"gsk_", 32, ""}, form{"dop_v1_", 16, ""},
	form{"doo_v1_", 16, ""}, form{"dor_v1_", 16, ""}, form{"dp.st.", 20, "."}, form{"hvs.", 20, ""},
	form{"hvb.", 20, ""}, form{"dapi", 32, ""}, form{"AGE-SECRET-KEY-1", 20, ""}, form{"lin_api_", 20, ""},
	form{"secret_", 40, ""}, form{"ntn_", 40, ""}, form{"figd_", 20, ""}, form{"ATATT3", 40, "="},
	form{"PMAK-", 24, ""}, form{"NRAK-", 20, ""}, form{"glsa_", 20, ""}, form{"sntrys_", 20, "=+/"},
	form{"sbp_", 32, ""}, form{"pscale_tkn_", 20, ""}, form{"pscale_pw_", 20, ""}, form{"xkeysib-", 32, ""},
	form{"CFPAT-", 20, ""}, form{"dt0c01.", 20, "."}, form{"Bearer ", 12, moreOfScheme},
	form{"bearer ", 12, moreOfScheme}, form{"BEARER ", 12, moreOfScheme}, form{"Basic ", 12, moreOfScheme},
	form{"basic ", 12, moreOfScheme}, form{"BASIC ", 12, moreOfScheme},
)

// moreOfScheme are the other characters of what follows an authentication scheme (RFC 9110, section 11.2).
const moreOfScheme = ".~+/="

func byFirst(all ...form) (by [256][]form) {
	for _, f := range all {
		by[f.start[0]] = append(by[f.start[0]], f)
	}
	return by
}

// Form is where in a text something has the form of a credential.
type Form struct {
	Start, End int
	JWT        bool
}

// Forms finds what has the form of a credential, whatever its name: tokens of known senders, JWTs, private keys, and
// what follows Bearer or Basic.
func Forms(s string) iter.Seq[Form] {
	return func(yield func(Form) bool) {
		for i := 0; i < len(s); {
			f, past := formAt(s, i)
			if f.End > 0 && !yield(f) {
				return
			}
			i = max(i+1, past)
		}
	}
}

// hideForms redacts what has the form of a credential.
func hideForms(s string) string {
	p := splice{s: s}
	for f := range Forms(s) {
		p.put(f.Start, f.End, hookglass.Redacted)
	}
	return p.text()
}

// formAt returns the form that begins at a place, if there is one, and up to where none begins that is not found.
func formAt(s string, i int) (f Form, past int) {
	if !startsWord(s, i) {
		return f, 0
	}
	switch c := s[i]; {
	case c == 'e':
		return jwtAt(s, i)
	case c == '-':
		return keyAt(s, i)
	case '0' <= c && c <= '9':
		return botAt(s, i)
	}
	for _, known := range forms[s[i]] {
		from, found := pastStart(s, i, known.start)
		if !found {
			continue
		}
		end := runEnd(s[:min(len(s), from+maxWords)], from, known.more)
		if end-from >= known.least && (known.least < leastRandom && known.more != moreOfScheme || random(s[from:end])) {
			end = runEnd(s, from, known.more)
			return Form{Start: i, End: end}, end
		}
	}
	return f, 0
}

// startsWord reports whether a word may begin at a place, as also behind an escape of a URL or of JSON.
func startsWord(s string, i int) bool {
	if i == 0 {
		return true
	}
	c := s[i-1]
	inWord := c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || c >= utf8.RuneSelf
	return !inWord || i > 2 && s[i-3] == '%' || i > 1 && s[i-2] == '\\'
}

// pastStart returns where a start ends that begins at a place, also as JSON may have it.
func pastStart(s string, at int, start string) (end int, found bool) {
	for i := range len(start) {
		if start[i] == '/' {
			at = toSlash(s, at)
		}
		if at == len(s) || s[at] != start[i] {
			return 0, false
		}
		at++
	}
	return at, true
}

// toSlash skips backslashes before a slash: PHP and Slack write JSON so.
func toSlash(s string, at int) int {
	if past := len(s) - len(strings.TrimLeft(s[at:], `\`)); past < len(s) && s[past] == '/' {
		return past
	}
	return at
}

// runEnd returns where letters, digits, -, _ and more of them end. A mark at the end of a sentence is no part of them.
func runEnd(s string, at int, more string) int {
	slashes, end := strings.Contains(more, "/"), at
	for end < len(s) {
		if slashes && s[end] == '\\' {
			end = toSlash(s, end)
		}
		if (s[end] == '.' || !inName(s[end])) && strings.IndexByte(more, s[end]) < 0 {
			break
		}
		end++
	}
	return at + len(strings.TrimRight(s[at:end], "."))
}

const (
	// leastRandom is the length from which on a form begins so shortly that words may have it: then it must look
	// random.
	leastRandom = 20
	// maxWords is how much of it must. There may be no more, because others may begin within what is no credential.
	maxWords = 200
)

// random reports whether a text cannot be words: it has a digit, or capitals within.
func random(s string) bool {
	return strings.ContainsAny(s, "0123456789") ||
		strings.ToUpper(s) != s && strings.ContainsFunc(s[1:], func(r rune) bool { return 'A' <= r && r <= 'Z' })
}

// jwtAt is formAt for a JSON Web Token (RFC 7519): the first two of its parts are JSON objects in base64.
func jwtAt(s string, i int) (f Form, past int) {
	const object, least = "eyJ", 8
	if !strings.HasPrefix(s[i:], object) {
		return f, 0
	}
	head := runEnd(s, i, "")
	if head-i < least || !strings.HasPrefix(s[head:], "."+object) {
		return f, head
	}
	claims := runEnd(s, head+1, "")
	if claims-head <= least || !strings.HasPrefix(s[claims:], ".") {
		return f, head
	}
	end := runEnd(s, claims+1, "")
	return Form{Start: i, End: end, JWT: true}, end
}

// botAt is formAt for the token of a Telegram bot: its id and 35 characters. Many bots have it in the path of their
// webhook, as Telegram advised.
func botAt(s string, i int) (f Form, past int) {
	const secret, least, most, length = ":AA", 8, 10, 35
	past = len(s) - len(strings.TrimLeft(s[i:], "0123456789"))
	if past-i < least || past-i > most || !strings.HasPrefix(s[past:], secret) || runEnd(s, past+1, "") != past+1+length {
		return f, past
	}
	return Form{Start: i, End: past + 1 + length}, past + 1 + length
}

// keyAt is formAt for a private key in PEM (RFC 7468). One that is cut off ends with its base64, whose lines may be
// escaped as JSON has them.
func keyAt(s string, i int) (f Form, past int) {
	const begin, end, dashes = "-----BEGIN ", "-----END ", "-----"
	if !strings.HasPrefix(s[i:], begin) {
		return f, 0
	}
	label, _, found := strings.Cut(s[i+len(begin):min(len(s), i+maxSensitive)], dashes)
	if !found || !strings.Contains(label, "PRIVATE KEY") {
		return f, 0
	}
	past = i + len(begin+dashes) + len(label)
	text, _, _ := strings.Cut(s[past:], dashes)
	if strings.HasPrefix(s[past+len(text):], end+label+dashes) {
		past += len(text + end + label + dashes)
	} else {
		past = len(s) - len(strings.TrimLeft(s[past:], inBase64+"\r\n\\"))
		past = i + len(strings.TrimRight(s[i:past], "\r\n\\"))
	}
	return Form{Start: i, End: past}, past
}

const inBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
