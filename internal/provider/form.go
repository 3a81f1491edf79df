package provider

import (
	"bytes"
	"cmp"
	"io"
	"mime/multipart"
	"slices"
	"strings"

	"hookglass/internal/coding"
)

// pair is one name and value of a form or query, decoded.
type pair struct{ name, value string }

// parseForm parses application/x-www-form-urlencoded as browsers and Node do: pairs are separated by "&" only, "+" is a
// blank, an invalid escape stays as it is. It never fails.
func parseForm(s string) []pair {
	if s == "" {
		return nil
	}
	pairs := make([]pair, 0, min(strings.Count(s, "&")+1, 1024))
	for s != "" {
		var part string
		part, s, _ = strings.Cut(s, "&")
		if part == "" {
			continue
		}
		name, val, _ := strings.Cut(part, "=")
		pairs = append(pairs, pair{unescapeForm(name), unescapeForm(val)})
	}
	return pairs
}

// Bounds of a multipart form. Only its short fields are of interest.
const (
	maxParts  = 500
	partBytes = 64 << 10
)

// parseParts reads the fields of a multipart form as far as possible.
func parseParts(body []byte, boundary string) []pair {
	var pairs []pair
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for range maxParts {
		part, err := r.NextRawPart()
		if err != nil {
			break
		}
		if part.FileName() != "" {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(part, partBytes))
		if err != nil {
			break
		}
		pairs = append(pairs, pair{part.FormName(), string(text)})
	}
	return pairs
}

func unescapeForm(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			b = append(b, ' ')
		case s[i] == '%' && i+2 < len(s) && unhex(s[i+1]) >= 0 && unhex(s[i+2]) >= 0:
			b = append(b, byte(unhex(s[i+1])<<4|unhex(s[i+2])))
			i += 2
		default:
			b = append(b, s[i])
		}
	}
	return string(b)
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// formValue returns the first value of a name.
func formValue(pairs []pair, name string) (string, bool) {
	for _, p := range pairs {
		if p.name == name {
			return p.value, true
		}
	}
	return "", false
}

// sortedParams joins names and values without separators as Twilio and its imitators sign them: names in byte order,
// the distinct values of a name in byte order, empty ones included (providers.md section 3, 6).
func sortedParams(pairs []pair) string {
	sorted := inOrder(pairs)
	size := 0
	for _, p := range sorted {
		size += len(p.name) + len(p.value)
	}
	var b strings.Builder
	b.Grow(size)
	for _, p := range slices.Compact(sorted) {
		b.WriteString(p.name)
		b.WriteString(p.value)
	}
	return b.String()
}

// inOrder returns pairs by name and value, in byte order.
func inOrder(pairs []pair) []pair {
	return slices.SortedFunc(slices.Values(pairs), func(a, b pair) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.value, b.value))
	})
}

// signedParams is sortedParams of the form. It is read once, though there may be many URLs and secrets to try. A form
// may be longer than what is searched for hints: Mandrill puts received mail with its attachments into one.
func (in *input) signedParams() []byte {
	if !in.didSigned {
		in.didSigned = true
		pairs := in.params()
		if in.isForm() && len(in.Body) > hintBytes && coding.Of(in.Headers) == "" && bytes.Count(in.Body, []byte("&")) < maxLongPairs {
			pairs = parseForm(string(in.Body))
		}
		in.signed = []byte(sortedParams(pairs))
	}
	return in.signed
}

// maxLongPairs bounds the pairs of a long form. A sender of so many would not put them into a form.
const maxLongPairs = 1 << 14
