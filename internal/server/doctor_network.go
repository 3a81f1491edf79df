package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Thresholds of findings about the network.
const (
	renewSoon    = 14 * 24 * time.Hour // an authority's certificate of 90 days is renewed a month before its end
	fewFiles     = 4096                // open files; each connection is one
	widestProxy  = 8                   // bits of an IPv4 network of trusted proxies; fewer covers much of the internet
	widestProxy6 = 16
	widestAllow  = 7 // bits of a network that outbound requests may reach; fc00::/7 is private
)

// examineService checks the configuration for the service, which it returns if that is valid, and how the service looks
// from outside.
func (c *DoctorCmd) examineService(ctx context.Context, f *findings) *checked {
	checked, err := c.Validate()
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			f.wrong("configuration", "%s", line)
		}
		return nil
	}
	f.ok("configuration", "every value can be used")
	c.examineFiles(f)
	checked.examineProxies(f)
	checked.examineOutbound(f)
	checked.examineCertificate(f)
	checked.examinePublic(ctx, f)
	checked.examineMail(ctx, f)
	return checked
}

func (c *DoctorCmd) examineFiles(f *findings) {
	switch limit, err := fileLimit(); {
	case err != nil:
	case limit < fewFiles:
		f.warn("open files", "%d at most, and each connection is one: raise ulimit -n (LimitNOFILE= of systemd, ulimits of compose)", limit)
	default:
		f.ok("open files", "%d at most", limit)
	}
}

func (c *checked) examineProxies(f *findings) {
	const name = "trusted proxies"
	for _, p := range c.proxies {
		if p.Addr().Is4() && p.Bits() < widestProxy || p.Addr().Is6() && p.Bits() < widestProxy6 {
			f.wrong(name, "%s lets nearly anyone say who they are: name the proxy's own addresses in --trusted-proxies", p)
			return
		}
	}
	switch {
	case len(c.proxies) > 0:
		f.ok(name, "%s", strings.Join(c.TrustedProxies, ", "))
	case c.publicURL != nil && c.publicURL.Scheme == "https" && !c.secure():
		f.warn(name, "none are named, while --public-url is https and --listen is not: the proxy's address will stand where the senders' should; name it in --trusted-proxies")
	default:
		f.ok(name, "none: addresses are those of the connections")
	}
}

// examineOutbound checks which private addresses are allowed: anybody who may replay can read what answers there.
func (c *checked) examineOutbound(f *findings) {
	const name = "outbound"
	metadata := netip.MustParseAddr("169.254.169.254")
	found := len(*f)
	for i, rule := range c.allow {
		text := c.OutboundAllow[i]
		switch network, ports := rule.Network(); {
		case network.Bits() < widestAllow:
			f.wrong(name, "%s opens nearly every address, this machine's and its network's too, to everyone who may replay: name what is needed in --outbound-allow", text)
		case network.Contains(metadata):
			f.warn(name, "%s holds the address where clouds keep the machine's credentials (%s), which stays shut whatever is allowed: name what is needed in --outbound-allow", text, metadata)
		case network.Addr().IsLoopback() && !ports && c.publicURL != nil:
			f.warn(name, "%s opens what listens on this machine to everyone who may replay; with a port behind it (%s:3000) it opens that alone", text, network)
		}
	}
	switch {
	case len(*f) > found:
	case len(c.allow) == 0:
		f.ok(name, "public addresses alone")
	default:
		f.ok(name, "public addresses, and %s", strings.Join(c.OutboundAllow, ", "))
	}
}

// examineCertificate checks the files of --tls-cert; ACME certificates are checked at the public URL.
func (c *checked) examineCertificate(f *findings) {
	if c.pair == nil {
		return
	}
	host := ""
	if c.publicURL != nil {
		host = c.publicURL.Hostname()
	}
	judgeCertificate(f, c.TLSCert, c.pair.at(time.Now()).Leaf, host)
}

func judgeCertificate(f *findings, where string, leaf *x509.Certificate, host string) {
	const name = "certificate"
	now := time.Now()
	switch left := leaf.NotAfter.Sub(now); {
	case now.Before(leaf.NotBefore):
		f.wrong(name, "%s is valid from %s on: is the clock right?", where, leaf.NotBefore.UTC().Format(time.RFC3339))
	case left <= 0:
		f.wrong(name, "%s ended at %s: renew it", where, leaf.NotAfter.UTC().Format(time.RFC3339))
	case host != "" && leaf.VerifyHostname(host) != nil:
		f.wrong(name, "%s is for %s, not for %s", where, strings.Join(leaf.DNSNames, ", "), host)
	case left < renewalDue(leaf):
		f.warn(name, "%s ends at %s: is it being renewed?", where, leaf.NotAfter.UTC().Format(time.RFC3339))
	default:
		f.ok(name, "%s, until %s", where, leaf.NotAfter.UTC().Format(time.DateOnly))
	}
}

// examinePublic requests the description of the API from the public URL. It contains that URL, so such an answer is
// ours.
func (c *checked) examinePublic(ctx context.Context, f *findings) {
	const name = "public address"
	at := c.publicURL
	if at == nil && len(c.ACMEDomain) > 0 {
		at = &url.URL{Scheme: "https", Host: c.ACMEDomain[0]}
	}
	if at == nil {
		f.ok(name, "none is given; addresses are built from --listen")
		return
	}
	asked := *at
	asked.Path += "/api/v1/openapi.json"
	// The certificate is checked separately, so that its errors are reported as such.
	a, err := ask(ctx, &asked, &tls.Config{})
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		if len(e.UnverifiedCertificates) > 0 {
			judgeCertificate(f, "what "+at.Host+" shows", e.UnverifiedCertificates[0], at.Hostname())
		}
		f.wrong(name, "%s is not trusted from here: %v", at, e.Err)
		return
	}
	if err != nil {
		f.wrong(name, "%s does not answer: %v. Is the service running, and do its name and the proxy lead to it?", at, err)
		return
	}
	if a.tls != nil && c.pair == nil {
		judgeCertificate(f, "what "+at.Host+" shows", a.tls.PeerCertificates[0], at.Hostname())
	}
	var description struct {
		Servers []struct{ URL string }
	}
	if err := json.Unmarshal(a.body, &description); a.status != 200 || err != nil || len(description.Servers) == 0 {
		f.wrong(name, "%s answers %d, but not like a hookglass server: does the proxy lead here, with the whole path or that of --public-url cut from it?", &asked, a.status)
		return
	}
	if told := strings.TrimSuffix(description.Servers[0].URL, "/api/v1"); told != at.String() {
		f.wrong(name, "a hookglass answers at %s, but it believes to be at %s: start it with the same --public-url", at, told)
		return
	}
	f.ok(name, "%s answers as this service", at)
}

// examineMail checks the mail port and whether it can be reached.
func (c *checked) examineMail(ctx context.Context, f *findings) {
	const name = "mail"
	if c.SMTPListen == "off" {
		f.ok(name, "not received by SMTP")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := greeted(ctx, c.SMTPListen); err != nil {
		f.warn(name, "nothing greets at --smtp-listen %s (%v). Is the service running?", c.SMTPListen, err)
	} else {
		f.ok(name, "%s greets", c.SMTPListen)
	}
	if c.MailDomain == "localhost" {
		return
	}
	const way = "mail exchanger"
	hosts, err := c.mailDNS.LookupMX(ctx, c.MailDomain)
	if err != nil || len(hosts) == 0 {
		f.warn(way, "%s has no MX record: the world's mail for it goes nowhere. Add one that names this machine", c.MailDomain)
		return
	}
	var names []string
	for _, mx := range hosts {
		host := strings.TrimSuffix(mx.Host, ".")
		names = append(names, host)
		addresses, err := c.mailDNS.LookupIPAddr(ctx, host)
		if err != nil || len(addresses) == 0 {
			f.wrong(way, "%s, the MX of %s, has no address", host, c.MailDomain)
			return
		}
		for _, a := range addresses {
			if a.IP.IsLoopback() || a.IP.IsPrivate() {
				f.warn(way, "%s, the MX of %s, leads to %s, which the world cannot reach", host, c.MailDomain, a.IP)
				return
			}
		}
	}
	if _, port, _ := net.SplitHostPort(c.SMTPListen); port != "25" {
		f.warn(way, "%s leads to port 25, as all MX records do, and --smtp-listen is %s: something must forward between them", strings.Join(names, ", "), c.SMTPListen)
		return
	}
	f.ok(way, "%s", strings.Join(names, ", "))
}

// greeted connects as a mail server does.
func greeted(ctx context.Context, listen string) error {
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", reachable(listen))
	if err != nil {
		return err
	}
	defer nc.Close()
	defer within(ctx, nc, 5*time.Second)()
	line, err := bufio.NewReader(nc).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "220") {
		return fmt.Errorf("it says %q", strings.TrimSpace(line))
	}
	return nil
}
