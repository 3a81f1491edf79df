package hookglass

import "time"

// Envelope is what the sending server said in the SMTP dialogue, apart from the mail itself (RFC 5321, section
// 2.3.1).
type Envelope struct {
	From     string   // the reverse path; empty: the null sender
	To       []string // the recipients by which the mail came to the endpoint, as the sender wrote them
	Helo     string   // how the sending server introduced itself; empty when it did not come by SMTP
	Protocol string   // SMTP, ESMTP, ESMTPS, ESMTPA, ESMTPSA, LMTP (RFC 3848), or HTTP
	Composed bool     // the message was rebuilt from the fields of a mail service; it is not the one that was sent
}

// AuthPending is the result of a check that has not been made yet.
const AuthPending = "pending"

// Authentication holds the results of the checks of a mail's origin: words of RFC 8601, section 2.7, or AuthPending.
type Authentication struct{ SPF, DKIM, DMARC string }

// Bounds on how long deliveries and actions of a mail wait for its verdict. A look-up takes ten seconds at most; the
// rest allows for queueing. A verdict that never comes must not hold up the receiver for longer.
const (
	verdictPatience = 30 * time.Second
	verdictSoon     = 100 * time.Millisecond
	verdictLatest   = time.Second
)

// VerdictWait returns how soon to check again whether the authentication results of a mail are there, before it is
// delivered and actions run on it. It grows with the age of the mail, from 0.1 s to 1 s. It is 0 if there is nothing
// to wait for: the results are there, 30 s have passed since reception, or the event is not a mail.
func (e *Event) VerdictWait(now time.Time) time.Duration {
	if e.Type != EventEmail || e.Authentication.SPF != AuthPending {
		return 0
	}
	age := now.Sub(e.ReceivedAt)
	if age.Abs() >= verdictPatience { // far before reception: the clock was set back and may take long to catch up
		return 0
	}
	return min(max(age, verdictSoon), verdictLatest, verdictPatience-age)
}
