package hookglass

import "time"

// Envelope is what a sending server said of a mail apart from the mail itself (RFC 5321, section 2.3.1).
type Envelope struct {
	From     string   // the reverse path; empty: the null sender
	To       []string // the recipients by which the mail came to the endpoint, as the sender wrote them
	Helo     string   // how the sending server introduced itself; empty when it did not come by SMTP
	Protocol string   // SMTP, ESMTP, ESMTPS, ESMTPA, ESMTPSA, LMTP (RFC 3848), or HTTP
	Composed bool     // the mail was put together of what a mail service told; it is not what was sent
}

// AuthPending is the result of a check that has not been made yet.
const AuthPending = "pending"

// Authentication are the results of the checks that tell whether a mail is from whom it says: words of RFC 8601,
// section 2.7, or AuthPending.
type Authentication struct{ SPF, DKIM, DMARC string }

// Bounds of how long what tells others of a mail waits for its verdict. All of the look-up takes ten seconds; the rest
// is for one that has to queue, and a receiver that waits for mail is not kept waiting by a verdict that never comes.
const (
	verdictPatience = 30 * time.Second
	verdictSoon     = 100 * time.Millisecond
	verdictLatest   = time.Second
)

// VerdictWait is how soon to look again whether the results are there of an event that is a mail, before it is
// delivered and actions run on it: later the longer it took, from 0.1 s to 1 s. It is 0 where nothing is waited for:
// they are there, or were not within 30 s after reception, or the event is no mail.
func (e *Event) VerdictWait(now time.Time) time.Duration {
	if e.Type != EventEmail || e.Authentication.SPF != AuthPending {
		return 0
	}
	age := now.Sub(e.ReceivedAt)
	if age.Abs() >= verdictPatience { // before it was received: a clock was put back, and may take long to be there again
		return 0
	}
	return min(max(age, verdictSoon), verdictLatest, verdictPatience-age)
}
