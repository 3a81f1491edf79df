package release

import (
	"net/mail"
	"strings"
	"time"

	"hookglass"
)

// fields returns the Resent-* header fields that precede a released mail (RFC 5322, section 3.6.6). It returns none for
// a mail that begins with a space or a tab: its first line would continue Resent-Message-ID as a folded line.
func fields(r *hookglass.Release, from mail.Address, raw []byte) []byte {
	if len(raw) == 0 || raw[0] == ' ' || raw[0] == '\t' {
		return nil
	}
	_, domain := cutLast(from.Address)
	var b strings.Builder
	b.WriteString("Resent-Date: " + r.CreatedAt.UTC().Format(time.RFC1123Z) + "\r\n")
	b.WriteString("Resent-From: " + from.String() + "\r\n")
	b.WriteString("Resent-To: " + strings.Join(r.To, ",\r\n ") + "\r\n") // one per line: 20 do not fit into a line
	b.WriteString("Resent-Message-ID: <" + r.ID + "@" + domain + ">\r\n")
	return []byte(b.String())
}
