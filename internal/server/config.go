// Package server assembles the service: configuration, wiring, lifecycle. It is the only package that reads flags and
// environment for serve and dev, and it hides the order in which parts start and stop.
package server

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"hookglass/internal/alert"
	"hookglass/internal/email"
	"hookglass/internal/outbound"
	"hookglass/internal/release"
	"hookglass/internal/store"
)

// Storage is where the data is; every command that opens the database has it.
type Storage struct {
	Data          string `name:"data" env:"HOOKGLASS_DATA" default:"./hookglass-data" type:"path" placeholder:"DIR" help:"Directory of the embedded database and the keys; created when missing (default: ${default})."`
	DatabaseURL   string `name:"database-url" env:"HOOKGLASS_DATABASE_URL" placeholder:"URL" help:"postgres://… for one or many nodes instead of the embedded database."`
	SecretKeyFile string `name:"secret-key-file" env:"HOOKGLASS_SECRET_KEY_FILE" type:"path" placeholder:"FILE" help:"Keyset that encrypts secrets at rest (default: keys.json in the data directory)."`
}

// keyFile is the path of the keyset.
func (s Storage) keyFile() string {
	return cmp.Or(s.SecretKeyFile, filepath.Join(s.Data, "keys.json"))
}

// Config is everything that can be set about a server (spec: decisions, section 2).
type Config struct {
	Storage

	Listen                string        `env:"HOOKGLASS_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address for HTTP; port 0 picks a free one (default: ${default})."`
	TLSCert               string        `name:"tls-cert" env:"HOOKGLASS_TLS_CERT" type:"path" placeholder:"FILE" help:"Certificate chain for https on --listen, PEM; read again when it changes."`
	TLSKey                string        `name:"tls-key" env:"HOOKGLASS_TLS_KEY" type:"path" placeholder:"FILE" help:"Its private key, PEM."`
	ACMEDomain            []string      `name:"acme-domain" env:"HOOKGLASS_ACME_DOMAIN" placeholder:"NAME" help:"Have a certificate for this name made and renewed by an ACME authority, accepting its terms; may be given again."`
	ACMEEmail             string        `name:"acme-email" env:"HOOKGLASS_ACME_EMAIL" placeholder:"ADDRESS" help:"Where the authority may write to."`
	ACMEDirectory         string        `name:"acme-directory" env:"HOOKGLASS_ACME_DIRECTORY" placeholder:"URL" default:"https://acme-v02.api.letsencrypt.org/directory" help:"The authority (default: ${default})."`
	ACMERoots             string        `name:"acme-roots" env:"HOOKGLASS_ACME_ROOTS" type:"path" placeholder:"FILE" help:"Certificates that the authority's own address is trusted by, PEM (default: the system's)."`
	HTTPListen            string        `name:"http-listen" env:"HOOKGLASS_HTTP_LISTEN" placeholder:"ADDR" help:"Second address, without TLS: takes webhooks, answers ACME, and sends people on to https."`
	SMTPListen            string        `name:"smtp-listen" env:"HOOKGLASS_SMTP_LISTEN" default:"127.0.0.1:2525" placeholder:"ADDR" help:"Address for SMTP, or off (default: ${default})."`
	SMTPTLSCert           string        `name:"smtp-tls-cert" env:"HOOKGLASS_SMTP_TLS_CERT" type:"path" placeholder:"FILE" help:"Certificate chain for STARTTLS, PEM; read again when it changes."`
	SMTPTLSKey            string        `name:"smtp-tls-key" env:"HOOKGLASS_SMTP_TLS_KEY" type:"path" placeholder:"FILE" help:"Its private key, PEM."`
	SMTPAuth              string        `name:"smtp-auth" env:"HOOKGLASS_SMTP_AUTH" default:"off" enum:"off,inbox" help:"inbox: programs may sign in by SMTP with an inbox's address and any password, and what they send to anybody is caught there (default: ${default})."`
	LMTPListen            string        `name:"lmtp-listen" env:"HOOKGLASS_LMTP_LISTEN" placeholder:"PATH|ADDR" help:"Unix socket or address for LMTP, from a mail server of one's own."`
	MailDNS               string        `name:"mail-dns" env:"HOOKGLASS_MAIL_DNS" default:"system" placeholder:"ADDR|FILE" help:"Who is asked for SPF, DKIM and DMARC: system (the default), a DNS server, or a file of records."`
	MetricsListen         string        `env:"HOOKGLASS_METRICS_LISTEN" placeholder:"ADDR" help:"Address for /metrics and pprof; without it /metrics answers on the main address, to loopback alone."`
	PublicURL             string        `name:"public-url" env:"HOOKGLASS_PUBLIC_URL" placeholder:"URL" help:"What URLs in answers are built from (default: from --listen)."`
	SMTPRelay             string        `name:"smtp-relay" env:"HOOKGLASS_SMTP_RELAY" placeholder:"HOST:PORT" help:"Mail server that takes over what notification channels send by email and what people release; 465 is spoken to under TLS."`
	SMTPRelayUser         string        `name:"smtp-relay-user" env:"HOOKGLASS_SMTP_RELAY_USER" placeholder:"NAME" help:"User at the relay."`
	SMTPRelayPasswordFile string        `name:"smtp-relay-password-file" env:"HOOKGLASS_SMTP_RELAY_PASSWORD_FILE" type:"path" placeholder:"FILE" help:"Its password; or HOOKGLASS_SMTP_RELAY_PASSWORD."`
	MailFrom              string        `env:"HOOKGLASS_MAIL_FROM" placeholder:"ADDRESS" help:"Sender of that mail (default: hookglass@ and the mail domain)."`
	ReleaseTo             []string      `name:"release-to" env:"HOOKGLASS_RELEASE_TO" placeholder:"ADDRESS|@DOMAIN" help:"Whom people may send caught mail on to, through the relay; may be given again. Without it nobody."`
	MailDomain            string        `env:"HOOKGLASS_MAIL_DOMAIN" default:"localhost" placeholder:"NAME" help:"Domain of generated email addresses (default: ${default})."`
	TrustedProxies        []string      `env:"HOOKGLASS_TRUSTED_PROXIES" placeholder:"CIDR" help:"Proxies whose X-Forwarded-* and Forwarded headers are believed."`
	OutboundAllow         []string      `env:"HOOKGLASS_OUTBOUND_ALLOW" placeholder:"CIDR" help:"Networks that outbound requests may reach besides public addresses."`
	Retention             time.Duration `env:"HOOKGLASS_RETENTION" default:"720h" help:"Age at which events are purged; an account may set its own."`
	MaxBodyBytes          int64         `env:"HOOKGLASS_MAX_BODY_BYTES" default:"26214400" help:"Largest webhook body and mail."`
	Signup                string        `env:"HOOKGLASS_SIGNUP" default:"closed" enum:"open,closed" help:"Whether anyone may create an account in the web app (${enum})."`
	TemporaryEndpoints    string        `env:"HOOKGLASS_TEMPORARY_ENDPOINTS" default:"on" enum:"on,off" help:"Whether anyone may make an endpoint that lives 24 hours (${enum})."`
	EndpointsFile         string        `env:"HOOKGLASS_ENDPOINTS_FILE" type:"path" placeholder:"FILE" help:"YAML that declares endpoints; applied at start, when it changes, and on SIGHUP."`
	LogFormat             string        `env:"HOOKGLASS_LOG_FORMAT" default:"text" enum:"text,json" help:"Form of the log (${enum})."`
	LogLevel              string        `env:"HOOKGLASS_LOG_LEVEL" default:"info" enum:"debug,info,warn,error" help:"What is logged (${enum})."`

	anySMTPPort bool // use any port if the default SMTP port is taken; set by dev
}

// checked is a Config after Validate, in the types that the parts take.
type checked struct {
	Config
	publicURL *url.URL // nil: derived from the listener
	proxies   []netip.Prefix
	allow     []outbound.Rule
	mailRelay *alert.Relay // nil: no mail is sent
	releaseTo release.Recipients

	pair        *certificate   // nil: no TLS, or by ACME
	acmeRoots   *x509.CertPool // nil: the system's
	certificate *certificate   // nil: no STARTTLS
	mailDNS     email.Resolver
}

var domainPattern = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$`)

// isDomain reports whether the DNS allows a name (RFC 1035, section 2.3.4).
func isDomain(name string) bool { return len(name) <= 253 && domainPattern.MatchString(name) }

// faults are the errors of a configuration.
type faults []error

func (f *faults) add(flag, format string, args ...any) {
	*f = append(*f, fmt.Errorf("--"+flag+": "+format, args...))
}

func (f *faults) address(flag, addr string) {
	if !isAddress(addr) {
		f.add(flag, "%q is not host:port", addr)
	}
}

// isAddress reports whether an address is valid for a listener: a host, which may be empty, and a port.
func isAddress(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	return err == nil && isPort(port)
}

// isPort reports whether text is the number of a port, or the name of one as net.Listen takes it.
func isPort(text string) bool {
	_, err := net.LookupPort("tcp", text)
	return err == nil
}

// certificate loads a certificate if both of its files are given, and returns nil otherwise.
func (f *faults) certificate(flag, cert, key string) *certificate {
	if (cert == "") != (key == "") {
		f.add(flag+"-cert", "goes with --"+flag+"-key")
	}
	if cert == "" || key == "" {
		return nil
	}
	pair, err := loadCertificate(cert, key)
	if err != nil {
		f.add(flag+"-cert", "cannot be used: %v", err)
	}
	return pair
}

// Validate returns the configuration in its final types, or all of its errors.
func (c Config) Validate() (*checked, error) {
	out, found := &checked{Config: c}, &faults{}
	out.validateWeb(found)
	out.validateMail(found)
	out.validateNetworks(found)
	out.validateStorage(found)
	if err := new(slog.Level).UnmarshalText([]byte(c.LogLevel)); err != nil {
		found.add("log-level", "must be debug, info, warn or error")
	}
	if len(*found) > 0 {
		return out, UsageError{errors.Join(*found...)}
	}
	return out, nil
}

// validateWeb checks the addresses for HTTP and their certificates.
func (c *checked) validateWeb(f *faults) {
	f.address("listen", c.Listen)
	c.pair = f.certificate("tls", c.TLSCert, c.TLSKey)
	c.validateACME(f)
	if c.HTTPListen != "" {
		f.address("http-listen", c.HTTPListen)
		if !c.secure() {
			f.add("http-listen", "goes with --tls-cert or --acme-domain; without them --listen is without TLS itself")
		}
	}
	if c.MetricsListen != "" {
		f.address("metrics-listen", c.MetricsListen)
	}
	if c.PublicURL == "" {
		return
	}
	u, err := parsePublicURL(c.PublicURL)
	if err != nil {
		f.add("public-url", "%v", err)
	} else if c.secure() && u.Scheme != "https" {
		f.add("public-url", "must begin with https:// where --listen speaks TLS")
	}
	c.publicURL = u
}

// validateMail checks how mail is received, authenticated and sent.
func (c *checked) validateMail(f *faults) {
	if c.SMTPListen != "off" {
		f.address("smtp-listen", c.SMTPListen)
	}
	if c.LMTPListen != "" && !strings.ContainsRune(c.LMTPListen, '/') {
		f.address("lmtp-listen", c.LMTPListen)
	} else if len(c.LMTPListen) > longestSocket {
		f.add("lmtp-listen", "the path of a socket has %d bytes at most", longestSocket)
	}
	c.certificate = f.certificate("smtp-tls", c.SMTPTLSCert, c.SMTPTLSKey)
	var err error
	if c.mailDNS, err = openResolver(c.MailDNS); err != nil {
		f.add("mail-dns", "%q %v", c.MailDNS, err)
	}
	if !isDomain(c.MailDomain) {
		f.add("mail-domain", "%q is not a domain", c.MailDomain)
	}
	c.MailDomain = strings.ToLower(c.MailDomain) // an event's path is its recipient address in lower case
	if c.mailRelay, err = c.relay(); err != nil {
		*f = append(*f, err)
	}
	if len(c.ReleaseTo) == 0 {
		return
	}
	if c.SMTPRelay == "" {
		f.add("release-to", "goes with --smtp-relay, through which the mail is sent")
	}
	if c.releaseTo, err = release.ParseRecipients(c.ReleaseTo, c.MailDomain); err != nil {
		f.add("release-to", "%v", err)
	}
}

// longestSocket bounds the path of a socket; Linux allows 107 bytes, others 103.
const longestSocket = 103

// validateNetworks checks which proxies are trusted and which networks may be reached.
func (c *checked) validateNetworks(f *faults) {
	for _, p := range c.TrustedProxies {
		prefix, err := parsePrefix(strings.TrimSpace(p))
		if err != nil {
			f.add("trusted-proxies", "%q is not a network such as 10.0.0.0/8", p)
		}
		c.proxies = append(c.proxies, prefix)
	}
	for _, p := range c.OutboundAllow {
		rule, err := outbound.ParseRule(strings.TrimSpace(p))
		if err != nil {
			f.add("outbound-allow", "%q: %v", p, err)
		}
		c.allow = append(c.allow, rule)
	}
}

// validateStorage checks where events are kept, for how long and up to which size.
func (c *checked) validateStorage(f *faults) {
	if c.DatabaseURL != "" && !isPostgresURL(c.DatabaseURL) {
		f.add("database-url", "must begin with postgres://")
	} else if c.DatabaseURL != "" {
		if err := store.CheckURL(c.DatabaseURL); err != nil {
			f.add("database-url", "%w", err)
		}
	}
	if c.EndpointsFile != "" {
		if _, err := ReadEndpointsFile(c.EndpointsFile); err != nil {
			f.add("endpoints-file", "is not valid:\n%w", err)
		}
	}
	if c.Retention < time.Minute {
		f.add("retention", "must be a minute or more")
	}
	if c.MaxBodyBytes < 1 || c.MaxBodyBytes > 1<<30 {
		f.add("max-body-bytes", "must be 1 byte to 1 GiB")
	} else if c.DatabaseURL != "" && c.MaxBodyBytes > maxPostgresBody {
		f.add("max-body-bytes", "must be 512 MiB at most on PostgreSQL")
	}
}

// UsageError is an error in flags or environment variables that parsing alone does not find.
type UsageError struct{ error }

// Unwrap returns the error itself.
func (e UsageError) Unwrap() error { return e.error }

// maxPostgresBody keeps an event with its headers and answer below the 1 GiB that PostgreSQL accepts in one message.
const maxPostgresBody = 512 << 20

// validateACME checks the settings of certificates by ACME.
func (c *checked) validateACME(f *faults) {
	if len(c.ACMEDomain) == 0 {
		if c.ACMEEmail != "" {
			f.add("acme-email", "goes with --acme-domain")
		}
		if c.ACMERoots != "" {
			f.add("acme-roots", "goes with --acme-domain")
		}
		return
	}
	if c.TLSCert != "" {
		f.add("acme-domain", "does not go with --tls-cert: one of them gives the certificate")
	}
	if a, err := mail.ParseAddress(c.ACMEEmail); c.ACMEEmail != "" && (err != nil || a.Address != c.ACMEEmail) {
		f.add("acme-email", "%q is not a mail address", c.ACMEEmail)
	}
	for _, name := range c.ACMEDomain {
		if _, err := netip.ParseAddr(name); err == nil || !isDomain(name) || !strings.Contains(name, ".") || name != strings.ToLower(name) {
			f.add("acme-domain", "%q is not a full domain name in lower case", name)
		}
	}
	if u, err := url.Parse(c.ACMEDirectory); err != nil || u.Scheme != "https" || u.Host == "" {
		f.add("acme-directory", "%q is not an https address", c.ACMEDirectory)
	}
	if c.ACMERoots != "" {
		c.acmeRoots = x509.NewCertPool()
		if text, err := os.ReadFile(c.ACMERoots); err != nil {
			f.add("acme-roots", "%v", err)
		} else if !c.acmeRoots.AppendCertsFromPEM(text) {
			f.add("acme-roots", "%s holds no certificate", c.ACMERoots)
		}
	}
}

// parsePrefix reads a network, or a single address as a network of one. An IPv4 network may be written within IPv6, as
// some logs show addresses; those of connections are compared as IPv4.
func parsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if mapped := 128 - 32; p.Addr().Is4In6() && p.Bits() >= mapped {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mapped)
	}
	return p.Masked(), err
}
