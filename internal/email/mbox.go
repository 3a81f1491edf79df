package email

import (
	"bytes"
	"strings"
	"time"
)

// AppendMbox appends a raw message to a mailbox in mboxrd format: a From_ line; the message with LF line ends, and with
// another ">" before each line of the form ">*From "; and an empty line. Nothing else changes, so a reader that undoes
// the quoting gets the message back.
func AppendMbox(dst, raw []byte, mailFrom string, received time.Time) []byte {
	sender := strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(mailFrom, ""))
	if sender == "" {
		sender = "MAILER-DAEMON"
	}
	dst = append(dst, "From "+sender+" "+received.UTC().Format(time.ANSIC)+"\n"...)
	for len(raw) > 0 {
		l := line(raw)
		raw = raw[len(l):]
		if bytes.HasPrefix(bytes.TrimLeft(l, ">"), []byte("From ")) {
			dst = append(dst, '>')
		}
		if text, ended := bytes.CutSuffix(l, []byte("\r\n")); ended {
			dst = append(append(dst, text...), '\n')
			continue
		}
		dst = append(dst, l...)
		if !bytes.HasSuffix(l, []byte("\n")) {
			dst = append(dst, '\n')
		}
	}
	return append(dst, '\n')
}
