package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"hookglass/internal/email"
	"hookglass/internal/neterr"
	"hookglass/internal/smtpd"
)

// defaultSMTP is the default of --smtp-listen.
const defaultSMTP = "127.0.0.1:2525"

// systemDNS is the value of --mail-dns that means the machine's own resolver.
const systemDNS = "system"

// smtpAuthInbox is the value of --smtp-auth with which programs may sign in.
const smtpAuthInbox = "inbox"

// bindMail binds the listeners for mail. Other mail catchers use the default address, too: if it is taken, the service
// runs without SMTP and logs that, or uses any free port if anyPort.
func (s *Server) bindMail(anyPort bool) error {
	c := s.cfg
	if c.SMTPListen != "off" {
		ln, err := net.Listen("tcp", c.SMTPListen)
		switch {
		case err == nil:
		case c.SMTPListen != defaultSMTP || !neterr.InUse(err):
			return bindFailure("smtp-listen", err)
		case anyPort:
			if ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
				return bindFailure("smtp-listen", err)
			}
			s.log.Warn("the default port for SMTP is in use; another one was taken", "default", defaultSMTP, "smtp", ln.Addr().String())
		default:
			s.log.Error("mail is not received by SMTP: the default address is in use; give another with --smtp-listen, or off", "address", defaultSMTP)
			ln = nil
		}
		s.smtpListener = ln
	}
	if c.LMTPListen == "" {
		return nil
	}
	var err error
	if strings.ContainsRune(c.LMTPListen, '/') {
		if s.lmtpListener, err = listenUnix(c.LMTPListen); err != nil {
			err = fmt.Errorf("--lmtp-listen: %w", err)
		}
	} else if s.lmtpListener, err = net.Listen("tcp", c.LMTPListen); err != nil {
		err = bindFailure("lmtp-listen", err)
	}
	return err
}

// listenUnix listens on a socket in the file system, replacing the socket of a dead process.
func listenUnix(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		nc, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			nc.Close()
			return nil, fmt.Errorf("%s is in use", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	// The mail server that connects runs as another user. It can do nothing but deliver mail.
	if err := os.Chmod(path, 0o666); err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

// smtpAddr returns the address in use for SMTP, empty if there is none.
func (s *Server) smtpAddr() string {
	if s.smtpListener == nil {
		return ""
	}
	return s.smtpListener.Addr().String()
}

func (s *Server) newMail() *smtpd.Server {
	_, conns := connections(fileLimit())
	cfg := smtpd.Config{
		Domain: s.cfg.MailDomain, TrustedProxies: s.cfg.proxies, MaxMessageBytes: s.cfg.MaxBodyBytes, MaxConns: conns,
		SignIn:  s.cfg.SMTPAuth == smtpAuthInbox,
		Refused: func(reason string) { s.metrics.mailRefused.WithLabelValues(reason).Inc() },
	}
	if s.cfg.certificate != nil {
		s.cfg.certificate.log = s.log.With("part", "smtp")
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.cfg.certificate.get}
	}
	return smtpd.New(cfg, s.gate, s.log.With("part", "smtp"))
}

// serveMail serves until the listeners are closed by a shutdown.
func (s *Server) serveMail(failed func(error)) {
	serve := func(ln net.Listener, what string, f func(net.Listener) error) {
		if ln == nil {
			return
		}
		s.log.Info("listening for mail", what, ln.Addr().String(), "domain", s.cfg.MailDomain)
		go func() {
			if err := f(ln); !errors.Is(err, smtpd.ErrClosed) {
				failed(fmt.Errorf("%s: %w", what, err))
			}
		}()
	}
	serve(s.smtpListener, "smtp", s.mail.Serve)
	serve(s.lmtpListener, "lmtp", s.mail.ServeLMTP)
}

// openResolver returns the DNS for the authentication of mail: the system's, a server at host:port, or a file of
// records in zone format.
func openResolver(value string) (email.Resolver, error) {
	if value == "" || value == systemDNS {
		return &net.Resolver{PreferGo: true}, nil
	}
	if isAddress(value) && !strings.ContainsRune(value, '/') {
		dialer := &net.Dialer{Timeout: 5 * time.Second}
		return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, value)
		}}, nil
	}
	text, err := os.ReadFile(value)
	if err != nil {
		return nil, fmt.Errorf("is neither %s, nor host:port, nor a file that can be read: %w", systemDNS, err)
	}
	return email.ParseZone(text)
}
