package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hookglass/internal/server"
	"hookglass/internal/store/storetest"
)

// examined is what doctor says of a configuration: the worst of each thing that it looked at.
func examined(t *testing.T, cfg server.Config) map[string]string {
	t.Helper()
	var out bytes.Buffer
	cmd := &server.DoctorCmd{Config: cfg}
	cmd.JSON = true
	failed := cmd.Run(context.WithoutCancel(t.Context()), &server.Terminal{Out: &out, Err: &out})
	var said struct {
		OK       bool
		Findings []struct{ Name, Status, Detail string }
	}
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	worst := map[string]string{}
	for _, f := range said.Findings {
		if now := worst[f.Name]; now == "" || now == "ok" || f.Status == "wrong" {
			worst[f.Name] = f.Status
		}
		if f.Detail == "" {
			t.Errorf("%s is %s, and nothing more is said", f.Name, f.Status)
		}
	}
	if said.OK != (failed == nil) {
		t.Errorf("ok is %v, and the command ended with %v", said.OK, failed)
	}
	return worst
}

func TestDoctorLooksAtTheServiceAsTheWorldSeesIt(t *testing.T) {
	ca := newAuthority(t)
	in := func(d time.Duration, name string) func(*server.Config) {
		return func(c *server.Config) {
			c.TLSCert, c.TLSKey = ca.write(t, t.TempDir(), 1, name, time.Now().Add(d))
			c.PublicURL = "https://hooks.example"
		}
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	running := config(filepath.Join(t.TempDir(), "data"))
	running.Listen = freePort(t)
	running.SMTPListen = freePort(t)
	start(t, running)
	zone := filepath.Join(t.TempDir(), "zone")
	if err := os.WriteFile(zone, []byte("inside.example MX 10 mx.inside.example\nmx.inside.example A 10.0.0.1\nmail.example MX 10 mx.mail.example\nmx.mail.example A 93.184.216.34\nnowhere.example MX 10 mx.nowhere.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	for name, row := range map[string]struct {
		change       func(*server.Config)
		what, status string
	}{
		"two flags that go together":         {func(c *server.Config) { c.TLSCert = "x" }, "configuration", "wrong"},
		"proxies: everyone":                  {func(c *server.Config) { c.TrustedProxies = []string{"0.0.0.0/0"} }, "trusted proxies", "wrong"},
		"proxies: everyone by IPv6":          {func(c *server.Config) { c.TrustedProxies = []string{"::/0"} }, "trusted proxies", "wrong"},
		"proxies: a private network":         {func(c *server.Config) { c.TrustedProxies = []string{"10.0.0.0/8"} }, "trusted proxies", "ok"},
		"proxies: forgotten":                 {func(c *server.Config) { c.PublicURL = "https://127.0.0.1:1" }, "trusted proxies", "warning"},
		"proxies: none needed":               {func(*server.Config) {}, "trusted proxies", "ok"},
		"outbound: everything":               {func(c *server.Config) { c.OutboundAllow = []string{"0.0.0.0/0"} }, "outbound", "wrong"},
		"outbound: everything at a port":     {func(c *server.Config) { c.OutboundAllow = []string{"::/0:443"} }, "outbound", "wrong"},
		"outbound: everything in halves":     {func(c *server.Config) { c.OutboundAllow = []string{"0.0.0.0/1", "128.0.0.0/1"} }, "outbound", "wrong"},
		"outbound: a rule beside everything": {func(c *server.Config) { c.OutboundAllow = []string{"169.254.0.0/16", "0.0.0.0/0"} }, "outbound", "wrong"},
		"outbound: the metadata of clouds":   {func(c *server.Config) { c.OutboundAllow = []string{"169.254.0.0/16"} }, "outbound", "warning"},
		"outbound: this machine, in public":  {func(c *server.Config) { c.OutboundAllow, c.PublicURL = []string{"127.0.0.1"}, "http://"+running.Listen }, "outbound", "warning"},
		"outbound: a port of it, in public": {func(c *server.Config) {
			c.OutboundAllow, c.PublicURL = []string{"127.0.0.1:3000"}, "http://"+running.Listen
		}, "outbound", "ok"},
		"outbound: this machine by IPv6":     {func(c *server.Config) { c.OutboundAllow, c.PublicURL = []string{"[::1]"}, "http://"+running.Listen }, "outbound", "warning"},
		"outbound: one's own by IPv6":        {func(c *server.Config) { c.OutboundAllow = []string{"fc00::/7"} }, "outbound", "ok"},
		"outbound: this machine, at home":    {func(c *server.Config) { c.OutboundAllow = []string{"127.0.0.0/8"} }, "outbound", "ok"},
		"outbound: a network":                {func(c *server.Config) { c.OutboundAllow = []string{"10.1.0.0/16:9000-9010"} }, "outbound", "ok"},
		"certificate: well":                  {in(60*day, "hooks.example"), "certificate", "ok"},
		"certificate: lives for six days":    {in(5*day, "hooks.example"), "certificate", "ok"},
		"certificate: ends soon":             {in(3*time.Hour, "hooks.example"), "certificate", "warning"}, // of 27
		"certificate: has ended":             {in(-time.Minute, "hooks.example"), "certificate", "wrong"},
		"certificate: of another name":       {in(60*day, "other.example"), "certificate", "wrong"},
		"address: none":                      {func(*server.Config) {}, "public address", "ok"},
		"address: nobody answers":            {func(c *server.Config) { c.PublicURL = "http://" + freePort(t) }, "public address", "wrong"},
		"address: something else answers":    {func(c *server.Config) { c.PublicURL = other.URL }, "public address", "wrong"},
		"address: this service answers":      {func(c *server.Config) { c.PublicURL = "http://" + running.Listen }, "public address", "ok"},
		"address: it believes to be another": {func(c *server.Config) { c.PublicURL = "http://" + running.Listen + "/below" }, "public address", "wrong"},
		"mail: off":                          {func(*server.Config) {}, "mail", "ok"},
		"mail: greets":                       {func(c *server.Config) { c.SMTPListen = running.SMTPListen }, "mail", "ok"},
		"mail: does not":                     {func(c *server.Config) { c.SMTPListen = freePort(t) }, "mail", "warning"},
		"mail: another greets":               {func(c *server.Config) { c.SMTPListen = strings.TrimPrefix(other.URL, "http://") }, "mail", "warning"},
		"mail: no way there": {func(c *server.Config) {
			c.SMTPListen, c.MailDomain, c.MailDNS = running.SMTPListen, "none.example", zone
		}, "mail exchanger", "warning"},
		"mail: the way leads inside": {func(c *server.Config) {
			c.SMTPListen, c.MailDomain, c.MailDNS = running.SMTPListen, "inside.example", zone
		}, "mail exchanger", "warning"},
		"mail: the way leads nowhere": {func(c *server.Config) {
			c.SMTPListen, c.MailDomain, c.MailDNS = running.SMTPListen, "nowhere.example", zone
		}, "mail exchanger", "wrong"},
		"mail: another port than the way leads to": {func(c *server.Config) {
			c.SMTPListen, c.MailDomain, c.MailDNS = running.SMTPListen, "mail.example", zone
		}, "mail exchanger", "warning"},
		"mail: all is well": {func(c *server.Config) {
			c.SMTPListen, c.MailDomain, c.MailDNS = "127.0.0.1:25", "mail.example", zone
		}, "mail exchanger", "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(running.Data)
			row.change(&cfg)
			if found := examined(t, cfg); found[row.what] != row.status {
				t.Errorf("%s is %q, want %q; all: %v", row.what, found[row.what], row.status, found)
			}
		})
	}
}

func TestDoctorSaysWhyAPublicAddressIsNotTrusted(t *testing.T) {
	ca := newAuthority(t) // that nobody knows
	cfg := config(filepath.Join(t.TempDir(), "data"))
	cfg.Listen = freePort(t)
	cfg.TLSCert, cfg.TLSKey = ca.write(t, t.TempDir(), 1, "hooks.example", time.Now().Add(90*24*time.Hour))
	cfg.PublicURL = "https://" + cfg.Listen
	start(t, cfg)
	if found := examined(t, cfg); found["public address"] != "wrong" || found["certificate"] != "ok" {
		t.Errorf("%v", found)
	}
}

// Whoever answers at the public address writes what its certificate says.
func TestDoctorRepeatsNoOrdersForATerminal(t *testing.T) {
	cfg := config(filepath.Join(t.TempDir(), "data"))
	cfg.TLSCert, cfg.TLSKey = newAuthority(t).write(t, t.TempDir(), 1, "\x1b]0;pwned\x07.example", time.Now().Add(90*24*time.Hour))
	cfg.PublicURL = "https://hooks.example"
	var out bytes.Buffer
	cmd := &server.DoctorCmd{Config: cfg}
	if err := cmd.Run(t.Context(), &server.Terminal{Out: &out, Err: &out}); err == nil || !strings.Contains(out.String(), "pwned") || strings.ContainsAny(out.String(), "\x1b\x07") {
		t.Errorf("%v: %q", err, out.String())
	}
}

func TestHealthAsksTheServiceOnThisMachine(t *testing.T) {
	ca := newAuthority(t)
	for _, secure := range []bool{false, true} {
		cfg := config(filepath.Join(t.TempDir(), "data"))
		cfg.Listen = freePort(t)
		if secure {
			cfg.TLSCert, cfg.TLSKey = ca.write(t, t.TempDir(), 1, "hooks.example", time.Now().Add(time.Hour))
		}
		health := &server.HealthCmd{Listen: cfg.Listen, TLSCert: cfg.TLSCert}
		var out bytes.Buffer
		if err := health.Run(t.Context(), &server.Terminal{Out: &out}); err == nil || !strings.HasPrefix(err.Error(), "the service does not answer at "+cfg.Listen) {
			t.Errorf("nothing runs, and health says: %v", err)
		}
		_, stop := start(t, cfg)
		if err := health.Run(t.Context(), &server.Terminal{Out: &out}); err != nil || !strings.Contains(out.String(), `"ready"`) {
			t.Errorf("secure %v: %v, %s", secure, err, out.String())
		}
		stop()
	}
}

func TestWhoStopsAProbeDoesNotWaitForItsAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		if asking, err := silent.Accept(); err == nil {
			defer asking.Close()
			stop()
			<-t.Context().Done()
		}
	}()
	elapsed := storetest.Watch(t)
	health := &server.HealthCmd{Listen: silent.Addr().String()}
	if err := health.Run(ctx, &server.Terminal{Out: io.Discard}); err == nil || elapsed() > 9*time.Second { // the answer would be waited for for 10 s
		t.Errorf("after %v: %v", elapsed(), err)
	}
}

func TestDoctorTellsOfTheReserve(t *testing.T) {
	cfg := config(filepath.Join(t.TempDir(), "data"))
	migrate := &server.MigrateCmd{Storage: cfg.Storage}
	if err := migrate.Run(t.Context(), &server.Terminal{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		held int64
		want string
	}{{-1, "ok"}, {0, "wrong"}, {1 << 20, "warning"}, {64 << 20, "ok"}} {
		if row.held >= 0 {
			f, err := os.Create(filepath.Join(cfg.Data, "hookglass.db-reserve"))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(f.Truncate(row.held), f.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if got := examined(t, cfg)["reserve"]; got != row.want {
			t.Errorf("with %d bytes in reserve doctor says %s; want %s", row.held, got, row.want)
		}
	}
}
