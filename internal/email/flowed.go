package email

import "strings"

// unflow joins lines that the sender's program wrapped (RFC 3676). It does so only with DelSp, where a wrap may split a
// word, such as a long link. Otherwise wraps are between words, and the text stays as it was sent.
func (n *node) unflow(text string) string {
	if n.media != "text/plain" || !strings.EqualFold(n.params["format"], "flowed") || !strings.EqualFold(n.params["delsp"], "yes") {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	open, depth := false, 0 // whether the line before goes on, and how deep it was quoted
	for i, line := range strings.Split(text, "\n") {
		rest := strings.TrimLeft(line, ">")
		quoted := len(line) - len(rest)
		rest = strings.TrimPrefix(rest, " ") // space-stuffing: the line would look quoted, or like mbox's "From "
		goesOn := strings.HasSuffix(rest, " ") && rest != "-- "
		if rest == "-- " || rest == "" || quoted != depth {
			open = false
		}
		if !open {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(line[:quoted])
			if quoted > 0 && rest != "" {
				b.WriteByte(' ')
			}
		}
		if goesOn {
			rest = rest[:len(rest)-1]
		}
		b.WriteString(rest)
		open, depth = goesOn, quoted
	}
	return b.String()
}
