package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hookglass/internal/store/storetest"
)

// The databases.
const (
	sqlite   = "sqlite"
	postgres = "postgres"
)

// readyLimit bounds how long a start may take.
const readyLimit = 2 * time.Minute

// service is one hookglass on a database of its own.
type service struct {
	database string
	binary   string
	dir      string // data and log
	dsn      string // empty: SQLite in dir
	keys     string // empty: in dir
	cluster  *storetest.Cluster
	token    string
	endpoint string // its id
	hook     string // its URL
	smtp     string // where it takes mail
	metrics  string // where it gives profiles, if it shall
	process
}

// process is a child that serves HTTP on a loopback port.
type process struct {
	base   string
	cmd    *exec.Cmd
	exited chan error
}

// service makes the database, starts the program on it and gives it an endpoint.
func (p *plan) service(ctx context.Context, dir, database string) (s *service, err error) {
	s = &service{database: database, binary: p.binary}
	if p.profiles != "" {
		if s.metrics, err = freeAddress(); err != nil {
			return nil, err
		}
	}
	// PostgreSQL's own user has to pass through.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp(dir, database); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.remove())
		}
	}()
	if database == postgres {
		if s.cluster, err = p.scale.cluster(dir); err != nil {
			return s, err
		}
		if s.dsn, err = s.cluster.CreateDatabase(""); err != nil {
			return s, err
		}
	}
	if err := s.admin(ctx, nil, "user", "create", "--email", "bench@example.com"); err != nil {
		return s, err
	}
	var token struct{ Token string }
	if err := s.admin(ctx, &token, "token", "create", "--email", "bench@example.com"); err != nil {
		return s, err
	}
	s.token = token.Token
	if _, err := s.start(ctx); err != nil {
		return s, err
	}
	var made struct {
		Data struct {
			ID         string `json:"id"`
			WebhookURL string `json:"webhook_url"`
		} `json:"data"`
	}
	if err := s.call(ctx, http.MethodPost, "/endpoints", `{"endpoint":{"name":"bench"}}`, &made); err != nil {
		return s, err
	}
	s.endpoint, s.hook = made.Data.ID, made.Data.WebhookURL
	return s, nil
}

// storage are the flags that say where the data is.
func (s *service) storage() []string {
	flags := []string{"--data", filepath.Join(s.dir, "data")}
	if s.dsn != "" {
		flags = append(flags, "--database-url", s.dsn)
	}
	if s.keys != "" {
		flags = append(flags, "--secret-key-file", s.keys)
	}
	return flags
}

// admin runs an administration command and decodes what it prints.
func (s *service) admin(ctx context.Context, v any, args ...string) error {
	args = append(append([]string{"admin"}, args...), append(s.storage(), "--json")...)
	cmd := exec.CommandContext(ctx, s.binary, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args[:3], " "), err, stderr.Bytes())
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(out, v); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(args[:3], " "), err)
	}
	return nil
}

// start starts the program, at the same address each time, and returns how long it took until it was ready.
func (s *service) start(ctx context.Context) (time.Duration, error) {
	if s.base == "" {
		address, err := freeAddress()
		if err != nil {
			return 0, err
		}
		s.base = "http://" + address
		if s.smtp, err = freeAddress(); err != nil {
			return 0, err
		}
	}
	args := append([]string{"serve", "--listen", strings.TrimPrefix(s.base, "http://"), "--smtp-listen", s.smtp, "--mail-dns", os.DevNull, "--outbound-allow", "127.0.0.0/8"}, s.storage()...)
	if s.metrics != "" {
		args = append(args, "--metrics-listen", s.metrics)
	}
	return s.run(ctx, exec.Command(s.binary, args...), filepath.Join(s.dir, "log"), "/readyz")
}

// freeAddress is a loopback address that nobody listens on at the moment.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// run starts a child and waits until it answers 200 at the path.
func (p *process) run(ctx context.Context, cmd *exec.Cmd, logFile, path string) (time.Duration, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	p.cmd, p.exited = cmd, make(chan error, 1)
	go func() { p.exited <- cmd.Wait() }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	// A connection of its own each time: the first ones are refused.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	for {
		resp, err := client.Get(p.base + path)
		if err == nil {
			err = drain(resp.Body)
			if resp.StatusCode == http.StatusOK && err == nil {
				return time.Since(began), nil
			}
		}
		select {
		case err := <-p.exited:
			p.cmd = nil
			return 0, fmt.Errorf("%s ended at its start: %v\n%s", cmd.Path, err, tail(logFile))
		case <-ctx.Done():
			return 0, errors.Join(ctx.Err(), p.kill())
		case <-tick.C:
		}
		if time.Since(began) > readyLimit {
			return 0, errors.Join(fmt.Errorf("%s was not ready after %v\n%s", cmd.Path, readyLimit, tail(logFile)), p.kill())
		}
	}
}

// stop ends the child softly.
func (p *process) stop() error {
	if p.cmd == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.exited:
		p.cmd = nil
		return err
	case <-time.After(35 * time.Second): // it has 30 s (spec: decisions, section 14)
		return errors.Join(errors.New("did not end within 35 s of SIGTERM"), p.kill())
	}
}

// kill ends the child at once (kill -9).
func (p *process) kill() error {
	if p.cmd == nil {
		return nil
	}
	err := p.cmd.Process.Kill()
	<-p.exited
	p.cmd = nil
	return err
}

// memory is the resident memory of the child now, and at its highest so far, in bytes.
func (p *process) memory() (now, peak int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	field := func(name string) int64 {
		_, rest, _ := strings.Cut(string(b), "\n"+name+":")
		words := strings.Fields(rest)
		if len(words) == 0 {
			return 0
		}
		kb, _ := strconv.ParseInt(words[0], 10, 64) // 0 shows in the report
		return kb << 10
	}
	return field("VmRSS"), field("VmHWM"), nil
}

// remove ends the service and removes its database.
func (s *service) remove() error {
	err := s.kill()
	if s.cluster != nil {
		err = errors.Join(err, s.cluster.Stop())
		s.cluster = nil
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// call makes an API call and decodes its answer.
func (s *service) call(ctx context.Context, method, path, body string, v any) error {
	req, err := http.NewRequestWithContext(ctx, method, s.base+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, b[:min(len(b), 500)])
	}
	if v == nil {
		return nil
	}
	return json.Unmarshal(b, v)
}

// page is a list of events as far as the benchmark looks at it.
type page struct {
	Data []struct {
		ID string `json:"id"`
	} `json:"data"`
	Meta struct {
		Total      int64   `json:"total"`
		NextCursor *string `json:"next_cursor"`
	} `json:"meta"`
}

// list reads a page of the endpoint's events.
func (s *service) list(ctx context.Context, q url.Values) (page, error) {
	var p page
	err := s.call(ctx, http.MethodGet, "/endpoints/"+s.endpoint+"/requests?"+q.Encode(), "", &p)
	return p, err
}

// stored is how many events the endpoint holds.
func (s *service) stored(ctx context.Context) (int64, error) {
	p, err := s.list(ctx, url.Values{"limit": {"1"}})
	return p.Meta.Total, err
}

// checkStored compares what was acknowledged since there were so many events with what is stored.
func (s *service) checkStored(ctx context.Context, before int64, o outcome) error {
	n, err := s.stored(ctx)
	if err != nil {
		return err
	}
	if got := n - before; got < o.acked || got > o.acked+o.unsure {
		return fmt.Errorf("%s acknowledged %d events (and left %d requests unanswered) but stored %d", s.database, o.acked, o.unsure, got)
	}
	return nil
}

// tail is the end of a log, for an error.
func tail(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-2000):])
}

// version is what the program says of itself.
func (p *plan) version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, p.binary, "version").Output()
	if err != nil {
		return "", fmt.Errorf("%s version: %w (make build makes it)", p.binary, err)
	}
	name, _, _ := strings.Cut(strings.TrimSpace(string(out)), " (") // what it was built with is said of the machine
	return name, nil
}
