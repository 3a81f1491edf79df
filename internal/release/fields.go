package release

import (
	"net/mail"
	"strings"
	"time"

	"hookglass"
)

// fields are what stands before a mail that is released: who sent it on, to whom and when (RFC 5322, section 3.6.6). A
// mail whose first line would go on with the last of them, as nothing that is a header does, gets none.
func fields(r *hookglass.Release, from mail.Address, raw []byte) []byte {
	if len(raw) == 0 || raw[0] == ' ' || raw[0] == '\t' {
		return nil
	}
	_, domain, _ := cutLast(from.Address)
	var b strings.Builder
	b.WriteString("Resent-Date: " + r.CreatedAt.UTC().Format(time.RFC1123Z) + "\r\n")
	b.WriteString("Resent-From: " + from.String() + "\r\n")
	b.WriteString("Resent-To: " + strings.Join(r.To, ",\r\n ") + "\r\n") // one a line: 20 would not fit into one
	b.WriteString("Resent-Message-ID: <" + r.ID + "@" + domain + ">\r\n")
	return []byte(b.String())
}
