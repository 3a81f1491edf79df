package smtpd

import (
	"fmt"
	"strconv"

	"hookglass"
)

// reply is one reply: a code of RFC 5321, an enhanced code of RFC 3463 and a sentence.
type reply struct {
	code     int
	enhanced string // empty: none
	text     string
}

var (
	replyOK         = reply{250, "2.0.0", "OK"}
	replyBye        = reply{221, "2.0.0", "Bye"}
	replyStopping   = reply{421, "4.3.2", "The service is stopping; try again later"}
	replyIdle       = reply{421, "4.4.2", "Nothing came in time; bye"}
	replyErrors     = reply{421, "4.7.0", "Too many errors; bye"}
	replyCommands   = reply{421, "4.7.0", "Too many commands without a message; bye"}
	replyConns      = reply{421, "4.7.0", "Too many connections from this address; try again later"}
	replyInternal   = reply{421, "4.3.0", "Something went wrong here; it has been recorded"}
	replyProxy      = reply{421, "4.5.0", "The PROXY header is malformed; bye"}
	replyLineEnd    = reply{500, "5.5.2", "A line ends with CR LF and holds no control characters"}
	replyLineLength = reply{500, "5.5.6", "The line is too long; bye"}
	replyUnknown    = reply{500, "5.5.1", "There is no such command"}
	replySyntax     = reply{501, "5.5.4", "The command's argument is not valid"}
	replyAddress    = reply{501, "5.1.3", "The address is not valid"}
	replyBadParam   = reply{555, "5.5.4", "A parameter is not recognised"}
	replyNotHere    = reply{502, "5.5.1", "The command is not implemented"}
	replyNoAuth     = reply{502, "5.5.1", "No authentication is needed to send to this service's own addresses"}
	replyGreetFirst = reply{503, "5.5.1", "Introduce yourself first"}
	replyMailFirst  = reply{503, "5.5.1", "MAIL first"}
	replyRcptFirst  = reply{503, "5.5.1", "RCPT first: no recipient has been accepted"}
	replyNested     = reply{503, "5.5.1", "A message is under way already; RSET abandons it"}
	replyTLSAlready = reply{503, "5.5.1", "TLS is in use already"}
	replyTooMany    = reply{452, "4.5.3", "There are too many recipients; send the message again for the rest"}
	replyTooLarge   = reply{552, "5.3.4", "The message is larger than this service accepts"}
	replyRelay      = reply{550, "5.7.1", "This service does not relay; it accepts mail for its own addresses alone"}
	replyNoMailbox  = reply{550, "5.1.1", "There is no such mailbox here"}
	replyDisabled   = reply{550, "5.2.1", "This mailbox is disabled"}
	replyBusy       = reply{451, "4.3.2", "Too much mail for this mailbox is under way; try again"}
	replyNotNow     = reply{451, "4.3.0", "The message cannot be stored now; try again later"}
	replyMemory     = reply{451, "4.3.1", "Too many large messages are being received; try again"}
	replySlow       = reply{451, "4.4.2", "The message came too slowly"}
)

// reasons under which refusals are counted.
const (
	reasonRelay       = "relay"
	reasonUnknown     = "unknown_recipient"
	reasonDisabled    = "disabled"
	reasonTooLarge    = "too_large"
	reasonBusy        = "busy"
	reasonUnavailable = "unavailable"
	reasonInternal    = "internal"
	reasonScript      = "script"
)

// replyOf returns the reply for an error of the capturer, and the reason under which it is counted.
func replyOf(err error) (r reply, reason string) {
	switch hookglass.CodeOf(err) {
	case hookglass.CodeNotFound:
		return replyNoMailbox, reasonUnknown
	case hookglass.CodeGone:
		return replyDisabled, reasonDisabled
	case hookglass.CodeRateLimited:
		return replyBusy, reasonBusy
	case hookglass.CodeUnavailable:
		return replyNotNow, reasonUnavailable
	}
	return replyNotNow, reasonInternal
}

func (r reply) append(dst []byte) []byte {
	dst = strconv.AppendInt(dst, int64(r.code), 10)
	dst = append(dst, ' ')
	if r.enhanced != "" {
		dst = append(dst, r.enhanced...)
		dst = append(dst, ' ')
	}
	dst = append(dst, r.text...)
	return append(dst, '\r', '\n')
}

// stored returns the reply to a message that is on disk.
func stored(id hookglass.EventID, events int) reply {
	if events == 1 {
		return reply{250, "2.0.0", "Stored as " + string(id)}
	}
	return reply{250, "2.0.0", fmt.Sprintf("Stored as %s and %d more", id, events-1)}
}
