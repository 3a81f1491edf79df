package email

import (
	"context"
	"net"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// checkDMARC looks up the policy of From's domain, and whether SPF or DKIM passed for an aligned domain.
func checkDMARC(ctx context.Context, q *inquiry, h block, s SPF, d DKIM) DMARC {
	m := DMARC{Result: PermError}
	if m.Domain, m.Reason = fromDomain(h); m.Domain == "" {
		if m.Reason == "no_domain" {
			m.Result = None
		}
		return m
	}
	ascii, _ := asciiName(m.Domain) // it is one
	domain := strings.TrimSuffix(ascii, ".")

	found, record, reason, err := policyFor(ctx, q, domain)
	switch {
	case err != nil:
		m.PolicyDomain, m.Result, m.Reason = found, TempError, "dns_error"
		return m
	case record == nil:
		m.Reason = reason
		if reason == "no_record" || reason == "multiple_records" {
			m.Result = None
		}
		return m
	}
	m.PolicyDomain, m.Policy, m.Alignment = found, record.policy, alignments(record)
	if found != domain && record.subdomains != "" {
		m.Policy = record.subdomains
	}

	var open bool
	m.Aligned, open = authenticated(domain, record, s, d)
	switch {
	case len(m.Aligned) > 0:
		m.Result = Pass
	case open:
		m.Result, m.Reason = TempError, "dns_error"
	default:
		m.Result, m.Reason = Fail, "not_aligned"
		if s.Result != Pass && d.Result != Pass {
			m.Reason = "not_authenticated"
		}
	}
	return m
}

// fromDomain returns the domain of the From field, or the reason why there is not exactly one.
func fromDomain(h block) (domain, reason string) {
	from, fields := senders(h)
	several := fields > 1
	for _, a := range from {
		switch {
		case a.domain() == "":
		case domain == "":
			domain = a.domain()
		case domain != a.domain():
			several = true
		}
	}
	switch {
	case several: // RFC 7489, section 6.6.1: no single policy applies
		return "", "multiple_from"
	case !isName(domain):
		return "", "no_from"
	case !isDomain(domain): // a machine's own name, as in root@host: it cannot publish a policy
		return "", "no_domain"
	}
	return domain, ""
}

// authenticated returns which checks passed for a domain aligned with From's. open says that another may still pass.
func authenticated(from string, record *policyRecord, s SPF, d DKIM) (by []string, open bool) {
	if aligned(from, s.Domain, record.spfStrict) {
		if s.Result == Pass {
			by = append(by, "spf")
		}
		open = s.Result == TempError
	}
	byDKIM := false
	for _, sig := range d.Signatures {
		if aligned(from, sig.Domain, record.dkimStrict) {
			byDKIM = byDKIM || sig.Result == Pass
			open = open || sig.Result == TempError
		}
	}
	if byDKIM {
		by = append(by, "dkim")
	}
	return by, open
}

// policyFor looks up the record of a domain or, if it has none, that of its organisational domain (RFC 7489, section
// 6.6.3). It returns the domain it queried last, and without a record the reason.
func policyFor(ctx context.Context, q *inquiry, domain string) (asked string, record *policyRecord, reason string, err error) {
	record, reason, err = policyOf(ctx, q, domain)
	organisation := organisational(domain)
	if err != nil || record != nil || reason != "no_record" || organisation == domain {
		return domain, record, reason, err
	}
	record, reason, err = policyOf(ctx, q, organisation)
	return organisation, record, reason, err
}

// policyOf looks up the record of one domain. Without one it returns the reason.
func policyOf(ctx context.Context, q *inquiry, domain string) (*policyRecord, string, error) {
	records, err := q.LookupTXT(ctx, "_dmarc."+domain)
	if failure, ok := err.(*net.DNSError); ok && failure.IsNotFound {
		return nil, "no_record", nil
	} else if err != nil {
		return nil, "", err
	}
	var found []string
	for _, r := range records {
		if version, _, _ := strings.Cut(r, ";"); strings.Join(strings.Fields(version), "") == "v=DMARC1" {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return nil, "no_record", nil
	case 1:
	default:
		return nil, "multiple_records", nil
	}
	if record := readPolicy(found[0]); record != nil {
		return record, "", nil
	}
	return nil, "invalid_record", nil
}

// policyRecord is a domain's published policy.
type policyRecord struct {
	policy, subdomains    string // subdomains: empty if policy applies to them, too
	dkimStrict, spfStrict bool
}

// readPolicy parses a record; it returns nil for one without a policy. Other invalid tags count as missing (RFC 7489,
// section 6.3), so that a mistake in a tag that is not needed does not discard the policy.
func readPolicy(text string) *policyRecord {
	tags := parseTags(strings.ToLower(text))
	r := &policyRecord{policy: tags["p"], subdomains: tags["sp"], dkimStrict: tags["adkim"] == "s", spfStrict: tags["aspf"] == "s"}
	if isPolicy(r.policy) && (r.subdomains == "" || isPolicy(r.subdomains)) {
		return r
	}
	if tags["rua"] == "" {
		return nil
	}
	return &policyRecord{policy: "none"} // section 6.6.3: a record that asks for reports counts
}

func isPolicy(word string) bool { return word == "none" || word == "quarantine" || word == "reject" }

func alignments(r *policyRecord) string {
	switch {
	case r.dkimStrict && r.spfStrict:
		return "strict"
	case r.dkimStrict:
		return "dkim strict"
	case r.spfStrict:
		return "spf strict"
	}
	return "relaxed"
}

// aligned reports whether an authenticated domain is aligned with that of From (RFC 7489, section 3.1).
func aligned(from, authenticated string, strict bool) bool {
	ascii, err := asciiName(authenticated)
	if err != nil {
		return false
	}
	authenticated = strings.TrimSuffix(ascii, ".")
	if strict || from == authenticated {
		return from == authenticated
	}
	return organisational(from) == organisational(authenticated)
}

// organisational returns the registered domain of a name (section 3.2).
func organisational(domain string) string {
	if registered, err := publicsuffix.EffectiveTLDPlusOne(domain); err == nil {
		return registered
	}
	return domain
}
