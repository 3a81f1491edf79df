package server_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/smtp"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass/internal/server"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// patience is how long a test waits for what comes: a busy machine takes its time.
const patience = 2 * time.Minute

// dev is what `hookglass dev --json` prints.
type dev struct {
	Web        string `json:"web"`
	SignIn     string `json:"sign_in"`
	WebhookURL string `json:"webhook_url"`
	Email      string `json:"email"`
	SMTP       string `json:"smtp"`
	Token      string `json:"token"`
	API        string `json:"api"`
	EndpointID string `json:"endpoint_id"`
	MailURL    string `json:"mail_url"`
	Curl       string `json:"curl"`

	Environment string `json:"environment"`
}

func config(data string) server.Config {
	return server.Config{
		Storage: server.Storage{Data: data}, Listen: "127.0.0.1:0", SMTPListen: "off", MailDomain: "localhost",
		Retention: 720 * time.Hour, MaxBodyBytes: 25 << 20, Signup: "closed", TemporaryEndpoints: "on", LogFormat: "text", LogLevel: "warn",
	}
}

// start runs `hookglass dev` in this process and returns what it printed, and how to stop it.
func start(t *testing.T, cfg server.Config) (d dev, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	printed, out := io.Pipe()
	var log bytes.Buffer
	ended := make(chan error, 1)
	cmd := &server.DevCmd{Config: cfg, JSON: true}
	go func() {
		err := cmd.Run(ctx, &server.Terminal{Out: out, Err: &log})
		out.CloseWithError(io.ErrUnexpectedEOF)
		ended <- err
	}()
	if err := json.NewDecoder(printed).Decode(&d); err != nil {
		cancel()
		t.Fatalf("%v: %v\n%s", err, <-ended, log.String())
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%v\n%s", err, log.String())
		}
	})
	t.Cleanup(stop)
	return d, stop
}

func call(t *testing.T, method, url, token, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer
}

func TestWhatDevPrintsCanBePastedIntoATerminal(t *testing.T) {
	for _, c := range [][3]string{
		{"linux", `curl -X POST 'http://a/hooks/x' -H 'Content-Type: application/json' -d '{"hello":"world"}'`, "export A=1 B=http://b"},
		{"windows", `curl.exe -X POST "http://a/hooks/x" -d hello=world`, `$env:A="1"; $env:B="http://b"`},
	} {
		if got := server.CurlLine(c[0], "http://a/hooks/x"); got != c[1] {
			t.Errorf("%s: %s", c[0], got)
		}
		if got := server.EnvironmentLine(c[0], "A=1 B=http://b"); got != c[2] {
			t.Errorf("%s: %s", c[0], got)
		}
	}
}

func TestDevCatchesAWebhookAndFindsItAgainAfterARestart(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { return storetest.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(filepath.Join(t.TempDir(), "data"))
			cfg.DatabaseURL = url(t)
			d, stop := start(t, cfg)
			status, answer := call(t, "POST", d.WebhookURL+"/a%2Fb?x=1", "", `{"hello":"world"}`)
			if status != 200 || !strings.Contains(string(answer), `"received":true`) {
				t.Fatalf("%d %s", status, answer)
			}
			stop()

			again, _ := start(t, cfg)
			if want := "HOOKGLASS_SERVER=" + strings.TrimSuffix(d.Web, "/") + " HOOKGLASS_TOKEN=" + d.Token + " HOOKGLASS_ENDPOINT=" + d.EndpointID; d.Environment != want {
				t.Errorf("a shell is to have %s, want %s", d.Environment, want)
			}
			if again.Token != d.Token || again.EndpointID != d.EndpointID || again.Email != d.Email {
				t.Errorf("started again it made another: %+v, before %+v", again, d)
			}
			status, answer = call(t, "GET", again.API+"/endpoints/"+d.EndpointID, d.Token, "")
			if status != 200 || !strings.Contains(string(answer), `"event_count":1`) {
				t.Errorf("%d %s", status, answer)
			}
			if info, err := os.Stat(filepath.Join(cfg.Data, "dev.json")); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("dev.json: %v %v", info, err)
			}
			if info, err := os.Stat(cfg.Data); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the data directory: %v %v", info, err)
			}
		})
	}
}

// A program under test signs in with the address of an inbox, and what it sends to its users is there (--smtp-auth).
func TestAProgramThatSignsInIsCaughtWhoeverItWritesTo(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { return storetest.Migrated(t) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t.TempDir())
			cfg.DatabaseURL, cfg.MailDNS, cfg.SMTPListen, cfg.SMTPAuth = url(t), os.DevNull, "127.0.0.1:0", "inbox"
			d, _ := start(t, cfg)
			to := []string{"Alice@example.com", "bob@example.net"}
			err := smtp.SendMail(d.SMTP, smtp.PlainAuth("", d.Email, "any", "127.0.0.1"), "app@example.org", to, []byte("Subject: Welcome\r\n\r\nHi\r\n"))
			if err != nil {
				t.Fatal(err)
			}
			inbox := d.MailURL[strings.LastIndexByte(d.MailURL, '/')+1:]
			var found struct {
				Data []struct{ ID, Path, Subject string }
			}
			if status, answer := call(t, "GET", d.API+"/endpoints/"+inbox+"/requests", d.Token, ""); status != 200 || json.Unmarshal(answer, &found) != nil || len(found.Data) != 1 {
				t.Fatalf("%d %s", status, answer)
			}
			if e := found.Data[0]; e.Subject != "Welcome" || e.Path != "alice@example.com" {
				t.Errorf("%+v", e)
			}
			_, answer := call(t, "GET", d.API+"/endpoints/"+inbox+"/requests/"+found.Data[0].ID, d.Token, "")
			if !bytes.Contains(answer, []byte(`"rcpt_to":["Alice@example.com","bob@example.net"]`)) || !bytes.Contains(answer, []byte(`"protocol":"ESMTPA"`)) {
				t.Errorf("%s", answer)
			}
		})
	}
}

// What is sent on of a mail says whether it is from whom it claims to be, which is looked up after the mail is stored.
func TestAMailIsForwardedWithItsVerdict(t *testing.T) {
	bodies := make(chan string, 1)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	}))
	defer target.Close()
	cfg := config(t.TempDir())
	cfg.MailDNS, cfg.OutboundAllow = os.DevNull, []string{"127.0.0.0/8"}
	d, _ := start(t, cfg)
	inbox := d.MailURL[strings.LastIndexByte(d.MailURL, '/')+1:]
	if status, answer := call(t, "POST", d.API+"/endpoints/"+inbox+"/forwarding_targets", d.Token, `{"forwarding_target":{"name":"app","url":"`+target.URL+`"}}`); status != 201 {
		t.Fatalf("%d %s", status, answer)
	}
	res, err := http.Post(d.MailURL, "message/rfc822", strings.NewReader("From: ann@example.org\r\nSubject: Hi\r\n\r\nHi\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	select {
	case body := <-bodies:
		if strings.Contains(body, `"pending"`) || !strings.Contains(body, `"authentication":{"spf":"`) {
			t.Errorf("%d: %s", res.StatusCode, body)
		}
	case <-time.After(patience):
		t.Error("it was not forwarded")
	}
}

// However the domain is written on the command line, an endpoint's address is the path of what comes to it.
func TestAMailIsListedUnderTheAddressOfItsEndpoint(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.MailDomain, cfg.MailDNS = "Mail.Example.COM", os.DevNull
	d, _ := start(t, cfg)
	inbox := d.API + "/endpoints/" + d.MailURL[strings.LastIndexByte(d.MailURL, '/')+1:]
	res, err := http.Post(d.MailURL, "message/rfc822", strings.NewReader("Subject: Hi\r\n\r\nHi\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if _, answer := call(t, "GET", inbox+"/requests", d.Token, ""); !strings.Contains(string(answer), `"path":"`+d.Email+`"`) {
		t.Errorf("%s is the address, %d: %s", d.Email, res.StatusCode, answer)
	}
	if _, answer := call(t, "GET", inbox, d.Token, ""); !strings.Contains(string(answer), `"email_address":"`+d.Email+`"`) {
		t.Errorf("%s is the address: %s", d.Email, answer)
	}
}

func TestASecondServerOnTheSameDataIsRefused(t *testing.T) {
	cfg := config(t.TempDir())
	_, _ = start(t, cfg)
	if _, err := server.New(cfg, nil); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v", err)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	d, _ := start(t, config(t.TempDir()))
	base := strings.TrimSuffix(d.Web, "/")
	if status, answer := call(t, "GET", base+"/healthz", "", ""); status != 200 {
		t.Errorf("/healthz: %d %s", status, answer)
	}
	status, answer := call(t, "GET", base+"/readyz", "", "")
	if status != 200 || !strings.Contains(string(answer), `"answers":"after the log is synced"`) {
		t.Errorf("/readyz: %d %s", status, answer)
	}
	status, answer = call(t, "GET", base+"/metrics", "", "")
	if status != 200 || !strings.Contains(string(answer), "hookglass_events_captured_total") {
		t.Errorf("/metrics: %d %.200s", status, answer)
	}
	// Through a proxy, and through the service itself.
	for _, header := range []string{"X-Forwarded-For", "Forwarded", "X-Service-Original-Request", "X-Service-Hops"} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", base+"/metrics", nil)
		req.Header.Set(header, "192.0.2.1")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 404 {
			t.Errorf("/metrics with %s: %d", header, res.StatusCode)
		}
	}
}

func TestTheLogSaysWhenRequestsAreTaken(t *testing.T) {
	cfg := config(t.TempDir())
	var log bytes.Buffer
	s, err := server.New(cfg, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	if err := s.Run(ctx, func(context.Context) error { stop(); return nil }); err != nil {
		t.Fatal(err)
	}
	var said []string
	for line := range strings.Lines(log.String()) {
		_, message, _ := strings.Cut(line, "msg=")
		said = append(said, strings.Trim(strings.Fields(message)[0], `"`))
	}
	if got := strings.Join(said, " "); got != "listening schema ready stopping" {
		t.Errorf("it says %s", got)
	}
}

// Who types a password is asked for it; a program that gives it is not.
func TestAPasswordIsAskedForWhereItIsTyped(t *testing.T) {
	for _, typed := range []bool{true, false} {
		var said bytes.Buffer
		terminal := &server.Terminal{In: strings.NewReader("correct horse battery\n"), Out: io.Discard, Err: &said, Typed: typed}
		admin := &server.AdminCmd{Storage: server.Storage{Data: t.TempDir()}}
		if err := (&server.UserCreateCmd{Email: "ada@example.com", PasswordStdin: true}).Run(t.Context(), terminal, admin); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(said.String(), "Password") != typed {
			t.Errorf("typed %v: it says %q", typed, said.String())
		}
	}
}

func TestServeSaysHowTheFirstUserComesToBe(t *testing.T) {
	data := t.TempDir()
	// serve runs the service until a line of its log holds the text, and returns the log.
	serve := func(signup, until string) string {
		t.Helper()
		cfg := config(data)
		cfg.LogLevel, cfg.Signup = "info", signup
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		read, log := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- (&server.ServeCmd{Config: cfg}).Run(ctx, &server.Terminal{Out: io.Discard, Err: log})
			log.Close()
		}()
		var said strings.Builder
		for lines := bufio.NewScanner(read); lines.Scan(); {
			fmt.Fprintln(&said, lines.Text())
			if strings.Contains(lines.Text(), until) {
				stop()
			}
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		return said.String()
	}
	const how = "hookglass admin user create"
	if said := serve("open", "msg=ready"); strings.Contains(said, how) {
		t.Errorf("although accounts are for anyone to create it says\n%s", said)
	}
	serve("closed", how)
	terminal := &server.Terminal{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}
	if err := (&server.UserCreateCmd{Email: "ada@example.com"}).Run(t.Context(), terminal, &server.AdminCmd{Storage: server.Storage{Data: data}}); err != nil {
		t.Fatal(err)
	}
	if said := serve("closed", "msg=ready"); strings.Contains(said, how) {
		t.Errorf("although there is a user it says\n%s", said)
	}
}

// A sender that doubled a slash must see that it is wrong: it would follow a redirect without the body. The alert that
// a node takes no webhooks goes by this figure, and a database that takes no writes is the likeliest reason.
func TestAFigureSaysThatStorageTakesNoWrites(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.DatabaseURL = storetest.Migrated(t)
	d, _ := start(t, cfg)
	ready := func() bool {
		_, figures := call(t, "GET", strings.TrimSuffix(d.Web, "/")+"/metrics", "", "")
		return strings.Contains(string(figures), "\nhookglass_ready 1\n")
	}
	if !ready() {
		t.Error("a node that takes work says that it does not")
	}
	db, err := sql.Open("pgx", cfg.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), "LOCK TABLE rate_limits"); err != nil {
		t.Fatal(err)
	}
	if ready() {
		t.Error("a node whose storage takes no writes says that it takes work")
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if !ready() {
		t.Error("it does not say that it takes work again")
	}
}

// The row that readiness writes is small and there already: it finds room on a disk that has none for webhooks.
func TestReadinessFollowsFromCapturesThatFindNoRoom(t *testing.T) {
	t.Parallel()
	cfg := config(t.TempDir())
	cfg.DatabaseURL = storetest.Migrated(t)
	d, _ := start(t, cfg)
	db, err := sql.Open("pgx", cfg.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		"CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$",
		"CREATE TRIGGER full_disk BEFORE INSERT ON payloads FOR EACH ROW WHEN (length(NEW.body) > 10000) EXECUTE FUNCTION full_disk()",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	readyz := strings.TrimSuffix(d.Web, "/") + "/readyz"
	if status, answer := call(t, "POST", d.WebhookURL, "", "small"); status != 200 {
		t.Fatalf("a small webhook: %d %s", status, answer)
	}
	if status, answer := call(t, "GET", readyz, "", ""); status != 200 {
		t.Errorf("before: %d %s", status, answer)
	}
	large := strings.Repeat("x", 20_000)
	if status, answer := call(t, "POST", d.WebhookURL, "", large); status != 503 {
		t.Fatalf("a large webhook: %d %s", status, answer)
	}
	if status, answer := call(t, "GET", readyz, "", ""); status != 503 || !strings.Contains(string(answer), `"unavailable"`) {
		t.Errorf("while webhooks find no room: %d %s", status, answer)
	}
	if _, err := db.ExecContext(t.Context(), "DROP TRIGGER full_disk ON payloads"); err != nil {
		t.Fatal(err)
	}
	if status, answer := call(t, "POST", d.WebhookURL, "", large); status != 200 {
		t.Fatalf("with room again: %d %s", status, answer)
	}
	for status, _ := call(t, "GET", readyz, "", ""); status != 200; status, _ = call(t, "GET", readyz, "", "") {
		<-time.After(100 * time.Millisecond)
	}
}

func TestAPathThatIsNotCleanIsNotRedirected(t *testing.T) {
	d, _ := start(t, config(t.TempDir()))
	base := strings.TrimSuffix(d.Web, "/")
	for _, path := range []string{"//hooks/" + d.EndpointID, "/x/../hooks/" + d.EndpointID, "/./endpoints", "//", "/api/v1//endpoints", "//healthz"} {
		for _, method := range []string{"GET", "POST"} {
			req, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != 404 || !strings.Contains(string(answer), `"not_found"`) {
				t.Errorf("%s %s: %d %s %v", method, path, res.StatusCode, answer, err)
			}
		}
	}
}

// The database's URL may stand on it, with a password.
func TestTheCommandLineIsNoProfile(t *testing.T) {
	for path, want := range map[string]int{"/metrics": 200, "/debug/pprof/": 200, "/debug/pprof/goroutine": 200, "/debug/pprof/cmdline": 404} {
		answer := httptest.NewRecorder()
		server.Private().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		if answer.Code != want || strings.Contains(answer.Body.String(), os.Args[0]) && want == 404 {
			t.Errorf("%s: %d %.100s", path, answer.Code, answer.Body)
		}
	}
}

func TestEveryFaultOfAConfigurationIsNamedAtOnce(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.Listen, cfg.PublicURL, cfg.Retention, cfg.TrustedProxies = "nonsense", "ftp://x", time.Second, []string{"10.0.0.0/99"}
	cfg.DatabaseURL, cfg.SMTPRelay = "mysql://user:hunter2@x", "smtp://user:hunter2@x:25"
	_, err := cfg.Validate()
	if err == nil {
		t.Fatal("it is accepted")
	}
	for _, flag := range []string{"--listen", "--public-url", "--retention", "--trusted-proxies", "--database-url", "--smtp-relay"} {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("%s is not named in: %v", flag, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a password is shown: %v", err)
	}
}

// Whom mail may be released to is judged with everything else: it needs a relay, and never leads back here.
func TestWhomMailMayBeReleasedToIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		relay string
		to    []string
		says  string // "": it is accepted
	}{
		"addresses and domains": {"127.0.0.1:25", []string{"dev@example.com", "@example.org", "@bücher.example"}, ""},
		"nobody":                {"127.0.0.1:25", nil, ""},
		"no relay":              {"", []string{"dev@example.com"}, "goes with --smtp-relay"},
		"a word":                {"127.0.0.1:25", []string{"dev@example.com", "example.org"}, "example.org"},
		"this installation":     {"127.0.0.1:25", []string{"@LocalHost"}, "--mail-domain"},
	} {
		cfg := config(t.TempDir())
		cfg.SMTPRelay, cfg.ReleaseTo = c.relay, c.to
		_, err := cfg.Validate()
		if (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), "--release-to: ") || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPortThatThereIsNotIsAFaultOfTheConfiguration(t *testing.T) {
	for flag, set := range map[string]func(*server.Config, string){
		"--listen":         func(c *server.Config, port string) { c.Listen = "127.0.0.1:" + port },
		"--smtp-listen":    func(c *server.Config, port string) { c.SMTPListen = ":" + port },
		"--lmtp-listen":    func(c *server.Config, port string) { c.LMTPListen = "localhost:" + port },
		"--metrics-listen": func(c *server.Config, port string) { c.MetricsListen = "[::1]:" + port },
		"--mail-dns":       func(c *server.Config, port string) { c.MailDNS = "192.0.2.1:" + port },
		"--public-url":     func(c *server.Config, port string) { c.PublicURL = "https://hooks.example.com:" + port + "/x" },
	} {
		for port, want := range map[string]bool{"65535": true, "25": true, "65536": false, "99999999999": false, "-1": false, "nowhere": false} {
			cfg := config(t.TempDir())
			set(&cfg, port)
			if _, err := cfg.Validate(); (err == nil) != want || err != nil && !strings.Contains(err.Error(), flag+": ") {
				t.Errorf("%s at port %s: %v", flag, port, err)
			}
		}
	}
}

func TestAMailDomainIsOneThatTheDNSCanHold(t *testing.T) {
	label := strings.Repeat("a", 63)
	for domain, want := range map[string]bool{
		"localhost": true, "mail.example.com": true, "xn--bcher-kva.example": true, "Mail.Example.COM": true, "1.example": true, label + ".example": true,
		strings.Repeat("a.", 126) + "a": true, strings.Repeat("a.", 126) + "aa": false, label + "a.example": false,
		"": false, ".": false, "a..b": false, ".example": false, "example.": false, "-a.example": false, "a-.example": false, "a b": false, "a@b": false,
	} {
		cfg := config(t.TempDir())
		cfg.MailDomain = domain
		if _, err := cfg.Validate(); (err == nil) != want {
			t.Errorf("%q: %v", domain, err)
		}
	}
}

func TestFiguresAreServedApartUntilTheServerHasEnded(t *testing.T) {
	cfg := config(filepath.Join(t.TempDir(), "data"))
	cfg.MetricsListen = "127.0.0.1:0"
	s, err := server.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, nil) }()
	apart := server.PrivateAddr(s)
	if status, figures := call(t, "GET", "http://"+apart+"/metrics", "", ""); status != 200 || !strings.Contains(string(figures), "hookglass_info") {
		t.Errorf("apart: %d %.200s", status, figures)
	}
	if status, _ := call(t, "GET", "http://"+s.Addr()+"/metrics", "", ""); status == 200 {
		t.Error("they are on the main listener too")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if nc, err := net.Dial("tcp", apart); err == nil {
		nc.Close()
		t.Error("their listener is open after the end")
	}
}

// Every listener is named by its flag when its address cannot be had.
func TestAnAddressThatIsTakenIsToldWithItsFlag(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for flag, set := range map[string]func(*server.Config){
		"--listen":         func(c *server.Config) { c.Listen = taken.Addr().String() },
		"--smtp-listen":    func(c *server.Config) { c.SMTPListen = taken.Addr().String() },
		"--lmtp-listen":    func(c *server.Config) { c.LMTPListen = taken.Addr().String() },
		"--metrics-listen": func(c *server.Config) { c.MetricsListen = taken.Addr().String() },
	} {
		cfg := config(t.TempDir())
		set(&cfg)
		if _, err := server.New(cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.HasPrefix(err.Error(), flag+": ") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

func TestAConfigurationTakesSmallBodiesAndSpacesInLists(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.MaxBodyBytes, cfg.TrustedProxies, cfg.OutboundAllow = 1, []string{"10.0.0.0/8", " ::1/128"}, []string{"127.0.0.0/8", " 10.1.0.0/16 "}
	if _, err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	cfg.MaxBodyBytes = 0
	if _, err := cfg.Validate(); err == nil {
		t.Error("a limit of 0 is accepted")
	}
}

// TestAProxyMayBeNamedAsLogsShowIt: 127.0.0.1 is ::ffff:127.0.0.1 in the logs of a program that listens on IPv6.
func TestAProxyMayBeNamedAsLogsShowIt(t *testing.T) {
	for _, named := range []string{"::ffff:127.0.0.1", "::ffff:127.0.0.0/104", "127.0.0.1"} {
		cfg := config(filepath.Join(t.TempDir(), "data"))
		cfg.TrustedProxies = []string{named}
		d, stop := start(t, cfg)
		req, err := http.NewRequestWithContext(t.Context(), "POST", d.WebhookURL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Forwarded-For", "192.0.2.7")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if _, list := call(t, "GET", d.API+"/endpoints/"+d.EndpointID+"/requests", d.Token, ""); !strings.Contains(string(list), `"ip_address":"192.0.2.7"`) {
			t.Errorf("%s is not believed: %s", named, list)
		}
		stop()
	}
}

// TestAStopDoesNotWaitForWhatHangs: background work that the storage holds up must not keep the process.
func TestAStopDoesNotWaitForWhatHangs(t *testing.T) {
	var parts sync.WaitGroup
	parts.Add(1)
	defer parts.Done()
	var log bytes.Buffer
	if err := server.Settle(&parts, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "the storage does not answer") {
		t.Errorf("nothing is said of it: %s", &log)
	}
}
