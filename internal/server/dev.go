package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/endpoint"
	"hookglass/internal/paste"
	"hookglass/internal/store"
)

// DevCmd is `hookglass dev`: serve for one person on one machine.
type DevCmd struct {
	Config
	JSON bool `name:"json" help:"Print one JSON object instead of text."`
}

// The owner of an installation made by dev.
const devEmail = "dev@localhost"

// devState is what dev stores in plain text, in <data>/dev.json (spec: decisions, section 2).
type devState struct {
	Token    string               `json:"token"`
	Endpoint hookglass.EndpointID `json:"endpoint_id"`
	Inbox    hookglass.EndpointID `json:"email_endpoint_id"`
}

// devInfo is what dev prints.
type devInfo struct {
	Web         string `json:"web"`
	SignIn      string `json:"sign_in"`
	WebhookURL  string `json:"webhook_url"`
	Email       string `json:"email"`
	MailURL     string `json:"mail_url"`
	Token       string `json:"token"`
	API         string `json:"api"`
	MCP         string `json:"mcp"`
	EndpointID  string `json:"endpoint_id"`
	Curl        string `json:"curl"`
	Environment string `json:"environment"` // shell commands that set up the command line
	SMTP        string `json:"smtp"`        // empty: no SMTP
	Swaks       string `json:"swaks,omitempty"`
}

// Run creates what is missing (owner, token, endpoints), serves until ctx ends, and prints where everything is.
func (c *DevCmd) Run(ctx context.Context, t *Terminal) error {
	c.anySMTPPort = true
	c.OutboundAllow = append(c.OutboundAllow, "127.0.0.0/8", "::1/128")
	level := c.LogLevel
	if level == "info" {
		level = "warn" // keep the terminal readable
	}
	log, closeLog := newLogger(t.Err, c.LogFormat, level)
	defer closeLog()
	s, err := New(c.Config, log)
	if err != nil {
		return err
	}
	return s.Run(ctx, func(ctx context.Context) error {
		info, err := s.prepareDev(ctx)
		if err != nil {
			return fmt.Errorf("dev: %w", err)
		}
		if c.JSON {
			return json.NewEncoder(t.Out).Encode(info)
		}
		_, err = io.WriteString(t.Out, info.text())
		return err
	})
}

// prepareDev finds or creates the owner, the token and the endpoints. It reuses those of an earlier start, and
// recreates deleted ones.
func (s *Server) prepareDev(ctx context.Context) (devInfo, error) {
	path := filepath.Join(s.cfg.Data, devFile)
	state, err := readDevState(path)
	if err != nil {
		return devInfo{}, err
	}
	user, err := s.devUser(ctx)
	if err != nil {
		return devInfo{}, err
	}
	who, err := s.accounts.Authenticate(ctx, state.Token)
	if err != nil {
		if state.Token, who, err = s.devToken(ctx, user); err != nil {
			return devInfo{}, err
		}
	}
	hooks, err := s.devEndpoint(ctx, who, state.Endpoint, "default", hookglass.KindWebhook)
	if err != nil {
		return devInfo{}, err
	}
	inbox, err := s.devEndpoint(ctx, who, state.Inbox, "inbox", hookglass.KindEmail)
	if err != nil {
		return devInfo{}, err
	}
	state.Endpoint, state.Inbox = hooks.ID, inbox.ID
	if err := writePrivate(path, state); err != nil {
		return devInfo{}, err
	}
	link, err := s.accounts.LoginLink(ctx, user.ID)
	if err != nil {
		return devInfo{}, err
	}
	return s.devInfo(state.Token, link, hooks, inbox), nil
}

// readDevState reads the state of an earlier start; before the first it is empty.
func readDevState(path string) (state devState, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return state, nil
	}
	if err != nil {
		return state, err
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return state, fmt.Errorf("%s is damaged (%w); without this file, dev makes a new token", path, err)
	}
	return state, nil
}

// devUser finds or creates the owner.
func (s *Server) devUser(ctx context.Context) (hookglass.User, error) {
	user, err := s.accounts.UserByEmail(ctx, devEmail)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		var made account.Registered
		made, err = s.accounts.Register(ctx, account.Registration{Email: devEmail, AccountName: "Development"})
		user = made.User
	}
	return user, err
}

// devToken creates the owner's token.
func (s *Server) devToken(ctx context.Context, user hookglass.User) (token string, who hookglass.Principal, err error) {
	token, _, err = s.accounts.CreateToken(ctx, hookglass.System, account.TokenRequest{
		User: user.ID, Level: hookglass.LevelAccount, Name: "hookglass dev",
		Scopes: hookglass.Scopes,
	})
	if err == nil {
		who, err = s.accounts.Authenticate(ctx, token)
	}
	return token, who, err
}

// devInfo returns the addresses of everything.
func (s *Server) devInfo(token, link string, hooks, inbox hookglass.Endpoint) devInfo {
	hook := s.URL() + "/hooks/" + string(hooks.ID)
	info := devInfo{
		Web: s.URL() + "/", SignIn: s.URL() + "/auth/link/" + link, WebhookURL: hook,
		Email: inbox.EmailLocalPart + "@" + s.cfg.MailDomain, Token: token, API: s.URL() + "/api/v1", MCP: s.URL() + "/mcp",
		EndpointID:  string(hooks.ID),
		Curl:        curlLine(runtime.GOOS, hook),
		Environment: "HOOKGLASS_SERVER=" + s.URL() + " HOOKGLASS_TOKEN=" + token + " HOOKGLASS_ENDPOINT=" + string(hooks.ID),
		MailURL:     s.URL() + "/mail/" + string(inbox.ID), SMTP: s.smtpAddr(),
	}
	if info.SMTP != "" {
		info.Swaks = "swaks --server " + reachable(info.SMTP) + " --to " + info.Email
	}
	return info
}

// devEndpoint returns the remembered endpoint, or one of that name, or a new one.
func (s *Server) devEndpoint(ctx context.Context, who hookglass.Principal, id hookglass.EndpointID, name string, kind hookglass.EndpointKind) (hookglass.Endpoint, error) {
	var found hookglass.Endpoint
	err := s.db.View(ctx, who, func(v *store.View) error {
		all, err := v.Endpoints(0, 0)
		for _, e := range all {
			if e.ID == id || found.ID == "" && e.Name == name && e.Kind == kind {
				found = e
			}
		}
		return err
	})
	if err != nil || found.ID != "" {
		return found, err
	}
	return s.endpoints.Create(ctx, who, endpoint.Draft{Name: &name, Kind: &kind})
}

// writePrivate writes JSON to a file that only its owner may read.
func writePrivate(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(path, append(data, '\n'), func() error { return nil })
}

// text returns the information for people. The longest items are on their own lines, for copying.
func (i devInfo) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, `
  hookglass is running.

  Open       %s
             (a link for this browser, good once; later just %s)
  Webhooks   %s
  Email      %s
  API token  %s

  Try it:

    %s
%s
  From a command line:

    %s
    %s listen 3000     # every webhook also at localhost:3000, until Ctrl-C

  For an agent (MCP):

    claude mcp add --transport http hookglass %s --header "Authorization: Bearer %s"

    {"mcpServers":{"hookglass":{"type":"http","url":"%s","headers":{"Authorization":"Bearer %s"}}}}

  Ctrl-C stops it.

`, i.SignIn, i.Web, i.WebhookURL, i.emailText(), i.Token, i.Curl, i.swaksText(), environmentLine(runtime.GOOS, i.Environment), program(), i.MCP, i.Token, i.MCP, i.Token)
	return b.String()
}

// curlLine returns a line that sends a webhook from a terminal. On Windows it has no quotes within quotes, which no two
// of its shells read alike, and names the program in full, since curl may be an alias of something else.
func curlLine(goos, hook string) string {
	if goos == "windows" {
		return `curl.exe -X POST "` + hook + `" -d hello=world`
	}
	return paste.Curl(hook)
}

// environmentLine returns a line that sets variables, given as NAME=value with spaces between: for PowerShell on
// Windows, for a POSIX shell elsewhere.
func environmentLine(goos, variables string) string {
	if goos != "windows" {
		return "export " + variables
	}
	var lines []string
	for one := range strings.FieldsSeq(variables) {
		name, value, _ := strings.Cut(one, "=")
		lines = append(lines, `$env:`+name+`="`+value+`"`)
	}
	return strings.Join(lines, "; ")
}

// program returns how the user called the program, which may not be in the PATH.
func program() string {
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == "hookglass" && !strings.ContainsAny(os.Args[0], " '\"$") {
		return os.Args[0]
	}
	return "hookglass"
}

// emailText returns the mail address and how to reach it.
func (i devInfo) emailText() string {
	if i.SMTP == "" {
		return i.Email + "\n             (SMTP is off; mail is taken by POST " + i.MailURL + ")"
	}
	return i.Email + "  (SMTP at " + i.SMTP + ")"
}

func (i devInfo) swaksText() string {
	if i.Swaks == "" {
		return ""
	}
	return "    " + i.Swaks + "\n"
}
