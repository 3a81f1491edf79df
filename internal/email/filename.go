package email

import (
	"path"
	"strconv"
	"strings"
	"unicode"

	"hookglass"
)

// cleanFilename returns a name that is safe to offer for a download: the last element of a path of any system, without
// characters that control, reorder or hide text or are special in file systems, at most 200 bytes with the extension
// kept.
func cleanFilename(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			return -1
		case strings.ContainsRune(`<>:"|?*`, r):
			return '_'
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
	name = strings.TrimRight(strings.Trim(name, " "), ". ")
	if len(name) > 200 {
		ext := path.Ext(name)
		if len(ext) > 20 {
			ext = ""
		}
		name = hookglass.Beginning(name, 200-len(ext)) + ext
	}
	return name
}

// fallbackName names an attachment that has no name of its own.
func fallbackName(index int, media string) string {
	ext := ".bin"
	switch media {
	case "message/rfc822", "message/global":
		ext = ".eml"
	case "text/plain", "message/delivery-status", "message/feedback-report", "message/disposition-notification", "text/rfc822-headers":
		ext = ".txt"
	case "text/calendar":
		ext = ".ics"
	case "application/pkcs7-signature", "application/x-pkcs7-signature":
		ext = ".p7s"
	case "application/pgp-signature":
		ext = ".asc"
	default:
		if _, subtype, _ := strings.Cut(media, "/"); len(subtype) <= 5 && isWord(subtype) { // pdf, png, jpeg, html, csv, zip
			ext = "." + subtype
		}
	}
	return "attachment-" + strconv.Itoa(index+1) + ext
}

func isWord(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < 'a' || 'z' < c) && (c < '0' || '9' < c) {
			return false
		}
	}
	return s != ""
}
