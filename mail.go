package hookglass

// Envelope is what a sending server said of a mail apart from the mail itself (RFC 5321, section 2.3.1).
type Envelope struct {
	From     string   // the reverse path; empty: the null sender
	To       []string // the recipients by which the mail came to the endpoint, as the sender wrote them
	Helo     string   // how the sending server introduced itself; empty when it did not come by SMTP
	Protocol string   // SMTP, ESMTP, ESMTPS, LMTP (RFC 3848), or HTTP
	Composed bool     // the mail was put together of what a mail service told; it is not what was sent
}

// AuthPending is the result of a check that has not been made yet.
const AuthPending = "pending"

// Authentication are the results of the checks that tell whether a mail is from whom it says: words of RFC 8601, section 2.7,
// or AuthPending.
type Authentication struct{ SPF, DKIM, DMARC string }
