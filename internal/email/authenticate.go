package email

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"blitiri.com.ar/go/spf"
)

// dnsDeadline bounds all lookups of one authentication together. RFC 7208, section 4.6.4, allows at least 20 s for SPF
// alone, which is too long to wait.
const dnsDeadline = 10 * time.Second

// Result is an outcome in the terms of RFC 8601, section 2.7.
type Result string

// The results.
const (
	Pass      Result = "pass"
	Fail      Result = "fail"
	SoftFail  Result = "softfail"
	Neutral   Result = "neutral"
	None      Result = "none"
	TempError Result = "temperror"
	PermError Result = "permerror"
)

// Envelope is what the transport of a mail knows. It is empty for mail that did not come by SMTP.
type Envelope struct {
	RemoteIP netip.Addr // of the client; the zero Addr when not known
	HELO     string
	MailFrom string // empty for the null sender
}

// Results are the outcomes for a message, with their reasons, which are stable words.
type Results struct {
	SPF   SPF   `json:"spf"`
	DKIM  DKIM  `json:"dkim"`
	DMARC DMARC `json:"dmarc"`
	ARC   *ARC  `json:"arc,omitempty"`
}

// SPF is the outcome of RFC 7208.
type SPF struct {
	Result   Result `json:"result"`
	Domain   string `json:"domain,omitempty"`   // whose record was looked up
	Identity string `json:"identity,omitempty"` // mailfrom, or helo for the null sender
	ClientIP string `json:"client_ip,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// DKIM is the outcome of RFC 6376: pass if any signature passes.
type DKIM struct {
	Result     Result      `json:"result"`
	Signatures []Signature `json:"signatures,omitempty"` // in the order of the message, at most ten
	Reason     string      `json:"reason,omitempty"`
}

// Signature is one DKIM signature.
type Signature struct {
	Result    Result `json:"result"`
	Domain    string `json:"domain"`
	Selector  string `json:"selector"`
	Algorithm string `json:"algorithm"`
	Reason    string `json:"reason,omitempty"`
}

// DMARC is the outcome of RFC 7489, with organisational domains from the public suffix list.
type DMARC struct {
	Result       Result   `json:"result"`
	Domain       string   `json:"domain,omitempty"`        // of From
	PolicyDomain string   `json:"policy_domain,omitempty"` // whose record applies
	Policy       string   `json:"policy,omitempty"`        // none, quarantine or reject, for this domain
	Alignment    string   `json:"alignment,omitempty"`     // required: relaxed, or strict for either
	Aligned      []string `json:"aligned,omitempty"`       // which of spf and dkim passed for an aligned domain
	Reason       string   `json:"reason,omitempty"`
}

// ARC is the claim of the newest set of RFC 8617. It is not verified and nothing depends on it.
type ARC struct {
	Instance int    `json:"instance"`
	Domain   string `json:"domain"`
	Claim    string `json:"claim"` // cv: none, pass or fail
}

// Authenticate verifies the sender of a raw message. It trusts nothing that the message itself claims, including
// Authentication-Results fields. All lookups end within ten seconds or with ctx; what was not answered by then is
// temperror.
func Authenticate(ctx context.Context, dns Resolver, env Envelope, raw []byte) Results {
	ctx, cancel := context.WithTimeout(ctx, dnsDeadline)
	defer cancel()
	q := &inquiry{Resolver: dns, ctx: ctx, txt: map[string]answer{}}

	var damage []Fault
	h, _ := scanHeader(raw, maxHeaderBytes, func(f Fault) { damage = append(damage, f) })

	var r Results
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }() // pass a panic on to the caller: a sender's DNS may answer anything
		r.SPF = checkSPF(ctx, q, env)
	}()
	r.DKIM = checkDKIM(q, h, raw, len(damage) > 0)
	if broke := <-done; broke != nil {
		panic(broke)
	}
	r.DMARC = checkDMARC(ctx, q, h, r.SPF, r.DKIM)
	r.ARC = readARC(h)
	return r
}

func checkSPF(ctx context.Context, q *inquiry, env Envelope) SPF {
	if !env.RemoteIP.IsValid() {
		return SPF{Result: None, Reason: "no_client_address"}
	}
	client := env.RemoteIP.Unmap().WithZone("")
	s := SPF{Result: None, Identity: "mailfrom", Domain: Address{Address: env.MailFrom}.domain(), ClientIP: client.String()}
	sender := env.MailFrom
	if at := strings.LastIndexByte(sender, '@'); at > 0 { // the library would split at the first at sign
		sender = strings.ReplaceAll(sender[:at], "@", "%40") + sender[at:]
	}
	if s.Domain == "" { // RFC 7208, section 2.4
		s.Identity, s.Domain = "helo", strings.ToLower(strings.TrimSuffix(env.HELO, "."))
		sender = "postmaster@" + s.Domain
	}
	if !isDomain(s.Domain) { // section 4.3
		s.Reason = "no_domain"
		return s
	}
	result, err := spf.CheckHostWithSender(client.AsSlice(), env.HELO, sender, spf.WithContext(ctx), spf.WithResolver(spfRecords{q}))
	s.Result = Result(result)
	s.Reason = spfReason(s.Result, err)
	return s
}

func spfReason(r Result, err error) string {
	switch err {
	case spf.ErrNoResult:
		return "no_record"
	case spf.ErrLookupLimitReached:
		return "too_many_lookups"
	case spf.ErrVoidLookupLimitReached:
		return "too_many_void_lookups"
	case spf.ErrTooManyMXRecords:
		return "too_many_mx"
	case spf.ErrMultipleRecords:
		return "multiple_records"
	case spf.ErrMatchedAll:
		return "matched_all"
	case spf.ErrMatchedA:
		return "matched_a"
	case spf.ErrMatchedIP:
		return "matched_ip"
	case spf.ErrMatchedMX:
		return "matched_mx"
	case spf.ErrMatchedPTR:
		return "matched_ptr"
	case spf.ErrMatchedExists:
		return "matched_exists"
	}
	switch r {
	case TempError:
		return "dns_error"
	case PermError:
		return "invalid_record"
	case Neutral:
		return "no_match"
	}
	return ""
}

// isDomain reports whether a name has at least two labels and can be looked up.
func isDomain(name string) bool { return strings.Contains(name, ".") && isName(name) }

// isName reports whether a name is valid in the DNS. It may be a local host name ("localhost").
func isName(name string) bool {
	if _, err := asciiName(name); err != nil {
		return false
	}
	for _, label := range strings.Split(name, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool {
			return r <= ' ' || strings.ContainsRune(`"()<>@,;:\[]/%`, r)
		}) {
			return false
		}
	}
	return true
}

// readARC reads the claim of the newest ARC-Seal.
func readARC(h block) *ARC {
	var newest *ARC
	for _, f := range h {
		if !strings.EqualFold(f.name, "ARC-Seal") {
			continue
		}
		tags := parseTags(f.value)
		i, err := strconv.Atoi(tags["i"])
		if err != nil || i < 1 || i > 50 || newest != nil && i <= newest.Instance { // RFC 8617, section 4.2.1
			continue
		}
		newest = &ARC{Instance: i, Domain: printable(guessUTF8(tags["d"])), Claim: printable(guessUTF8(strings.ToLower(tags["cv"])))}
	}
	return newest
}

// parseTags reads a tag list (RFC 6376, section 3.2), without its white space.
func parseTags(s string) map[string]string {
	tags := map[string]string{}
	for tag := range strings.SplitSeq(s, ";") {
		if name, value, ok := strings.Cut(tag, "="); ok {
			tags[strings.TrimSpace(name)] = strings.Join(strings.Fields(value), "")
		}
	}
	return tags
}

// senders returns the addresses of all From fields.
func senders(h block) (list []Address, fields int) {
	for _, f := range h {
		if strings.EqualFold(f.name, "From") {
			fields++
			list = append(list, parseAddresses(f.value, func(Fault) {})...)
		}
	}
	return list, fields
}
