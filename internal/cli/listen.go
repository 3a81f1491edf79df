package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/listen"
	"hookglass/internal/server"
)

// exitTimeout is the exit code when --timeout passes before --exit-after is reached (spec: decisions, section 14).
const exitTimeout = 4

// ListenCmd is `hookglass listen`.
type ListenCmd struct {
	remote
	To       string   `arg:"" optional:"" name:"port-or-url" help:"Where events go: 3000, localhost:3000/hooks or a whole URL. Without one they are shown only."`
	ToFlag   string   `name:"forward-to" short:"f" placeholder:"URL" help:"The same, as a flag."`
	Exec     *string  `placeholder:"COMMAND" help:"Run this by the shell for each event instead: the body is its stdin, and exit code 0 means delivered."`
	Endpoint []string `short:"e" placeholder:"EP" help:"Endpoint to listen to, by id or custom id; may be repeated. Without one: that of $$HOOKGLASS_ENDPOINT, or the only one there is."`
	All      bool     `help:"Listen to every endpoint."`
	New      bool     `help:"Create an endpoint and listen to it."`
	Key      string   `placeholder:"tk_…" help:"Listen to the temporary endpoint of this key, without an account."`
	Route    []string `sep:"none" placeholder:"EVENT=URL" help:"Send events of this type elsewhere, for example invoice.*=localhost:3000/invoices; may be repeated, the first that matches counts."`
	Events   []string `placeholder:"EVENT,…" help:"Only events of these types; * stands for any text."`
	Provider string   `placeholder:"NAME" help:"Only events of this provider."`
	When     string   `type:"query" placeholder:"QUERY" help:"Only events that this search means, such as 'body./type:invoice.* -method:GET'."`
	Header   []string `sep:"none" placeholder:"'N: V'" help:"Add this field to each request, in the place of one of the same name; may be repeated."`
	Recover  string   `enum:"all,ask,recent,none," default:"" help:"What is delivered of what was missed before: all, recent (120 minutes) or none, or ask. (default: ask on a terminal, else recent)"`
	Output   string   `enum:"tui,compact,json,quiet," default:"" help:"tui, compact, json or quiet. (default: tui on a terminal, else compact)"`
	ShowBody bool     `help:"Show the bodies of events and of answers."`
	Insecure bool     `help:"Do not check the certificates of local targets."`

	ExitAfter int           `placeholder:"N" help:"End after so many events."`
	Timeout   time.Duration `placeholder:"D" help:"End after this time; with --exit-after, exit with 4 when it passes first."`
	Config    string        `placeholder:"FILE" type:"path" help:"Read endpoints, routes and headers from a file such as hookglass.yaml."`
	Chaos     string        `placeholder:"LIST" help:"Try the handler: duplicate=20%,reorder=5s,drop=5%,delay=0-3s,seed=7."`
}

// Help implements kong.HelpProvider.
func (c *ListenCmd) Help() string {
	return `Events of the server arrive at an address on this machine as their senders sent them. Without a login a temporary
endpoint is made, which lives for 24 hours. Outages of the connection are caught up on.

  hookglass listen 3000
  hookglass listen localhost:3000/webhooks -e payments --route 'invoice.*=localhost:3000/invoices'
  hookglass listen -e payments --exec './handle.sh "$HOOKGLASS_EVENT_TYPE"'

Events go to stdout, one a line; everything else to stderr.`
}

// Validate checks the flags.
func (c *ListenCmd) Validate() error {
	if _, err := c.plan(); err != nil {
		return err
	}
	switch {
	case c.To == "help": // a host of that name must be written as a URL
		return errors.New(`help is no address of a local service, which is a port, a host or a URL: "hookglass listen --help" explains them`)
	case c.To != "" && c.ToFlag != "":
		return fmt.Errorf("where events go is named twice, %s and --forward-to %s", c.To, c.ToFlag)
	case c.Exec != nil && (c.To != "" || c.ToFlag != ""):
		return fmt.Errorf("events go to %s or to the command of --exec, not to both", cmp.Or(c.To, c.ToFlag))
	case c.All && len(c.Endpoint) > 0:
		return errors.New("--all and --endpoint exclude one another")
	case c.New && (c.All || len(c.Endpoint) > 0):
		return errors.New("--new makes an endpoint of its own; leave --endpoint and --all out")
	case c.Key != "" && (c.All || c.New || len(c.Endpoint) > 0):
		return errors.New("--key names its endpoint by itself; leave --endpoint, --all and --new out")
	case c.Key != "" && !strings.HasPrefix(c.Key, hookglass.PrefixTunnelKey+"_"): // the server refuses a wrong key
		return errors.New("--key is the key of a temporary endpoint, which begins with tk_")
	case c.Config != "" && (c.All || c.New || c.Key != ""):
		return errors.New("--config names the endpoints; leave --all, --new and --key out")
	case c.ExitAfter < 0:
		return errors.New("--exit-after must not be negative")
	case c.Timeout < 0:
		return errors.New("--timeout must not be negative")
	}
	return nil
}

// plan returns the settings that the flags give for every endpoint.
func (c *ListenCmd) plan() (e listen.Endpoint, err error) {
	if where := cmp.Or(c.To, c.ToFlag); where != "" {
		to, err := listen.ParseTarget(where)
		if err != nil {
			return e, err
		}
		e.Target = &to
	}
	if c.Exec != nil {
		to, err := listen.RunCommand(*c.Exec)
		if err != nil {
			return e, fmt.Errorf("--%w", err)
		}
		e.Target = &to
	}
	for _, r := range c.Route {
		route, err := listen.ParseRoute(r)
		if err != nil {
			return e, err
		}
		e.Routes = append(e.Routes, route)
	}
	for _, h := range c.Header {
		field, err := headerFlag(h)
		if err != nil {
			return e, err
		}
		e.Headers = append(e.Headers, field)
	}
	e.Events, e.Provider = c.Events, c.Provider
	if c.When != "" {
		if e.When, err = listenFilter(c.When); err != nil {
			return e, fmt.Errorf("--when: %w", err)
		}
	}
	if c.Chaos != "" {
		_, err = listen.ParseChaos(c.Chaos)
	}
	return e, err
}

// Run implements the command. It ends on a signal, --exit-after or --timeout.
func (c *ListenCmd) Run(ctx context.Context, t *server.Terminal) error {
	c.defaultEndpoint()
	plan, err := c.plan()
	if err != nil {
		return outcome{exitUsage, err.Error()}
	}
	var file *listenFile
	if c.Config != "" {
		if file, err = readListenFile(c.Config); err != nil {
			return outcome{exitUsage, err.Error()}
		}
		c.fill(file)
	}
	show := c.screen(t)
	cfg, err := c.config(t, show)
	if err != nil {
		return outcome{exitUsage, err.Error()}
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	address := ""
	if cfg.Client, address, err = c.reach(); err != nil {
		return err
	}
	found, err := c.patiently(ctx, t, &cfg, file)
	if err != nil && c.late(ctx, 0) {
		return fmt.Errorf("%w: %s", c.tooFew(0), explain(err))
	}
	if err != nil {
		return err
	}
	for _, e := range found {
		one := plan
		one.ID, one.Email = e.ID, e.Kind == "email"
		if file != nil {
			if one, err = file.endpoint(e, one); err != nil {
				return outcome{exitUsage, err.Error()}
			}
		}
		cfg.Endpoints = append(cfg.Endpoints, one)
		show.introduce(address, e, one)
	}
	return c.listen(ctx, cfg, show)
}

// defaultEndpoint uses the endpoint of the environment if the command line names none.
func (c *ListenCmd) defaultEndpoint() {
	named := os.Getenv(endpointVariable)
	if named != "" && len(c.Endpoint) == 0 && !c.All && !c.New && c.Key == "" && c.Config == "" {
		c.Endpoint = []string{named}
	}
}

// config returns the configuration from the flags, without the client and the endpoints.
func (c *ListenCmd) config(t *server.Terminal, show *screen) (listen.Config, error) {
	cfg := listen.Config{Insecure: c.Insecure, ExitAfter: c.ExitAfter, Tell: show.tell, Machine: machine(), Environment: os.Environ(), Recover: c.recovery(t)}
	if cfg.Recover == listen.RecoverAsk {
		cfg.Ask = func(ctx context.Context, n int) bool { return !asks(t) || show.ask(ctx, t.In, n) } // it may be sent to the background
	}
	if c.Chaos != "" {
		chaos, err := listen.ParseChaos(c.Chaos)
		if err != nil {
			return cfg, err
		}
		cfg.Chaos = &chaos
	}
	return cfg, nil
}

// listen probes each target once, so that a target that does not answer is reported at once, and then listens.
func (c *ListenCmd) listen(ctx context.Context, cfg listen.Config, show *screen) error {
	listener := listen.New(cfg)
	for _, to := range targetsOf(cfg.Endpoints) {
		probing, cancel := context.WithTimeout(ctx, time.Second)
		listener.Probe(probing, to)
		cancel()
	}
	sum, err := listener.Run(ctx)
	lost := show.end(sum)
	if n := sum.Received - sum.Waiting; err == nil && c.late(ctx, n) {
		return c.tooFew(n)
	}
	if cfg.Client.Anonymous() && keyRefused(err) {
		err = errKeyOver
	}
	return cmp.Or(err, lost)
}

// late reports whether --timeout passed before --exit-after was reached, after n events.
func (c *ListenCmd) late(ctx context.Context, n int) bool {
	return n < c.ExitAfter && errors.Is(ctx.Err(), context.DeadlineExceeded)
}

func (c *ListenCmd) tooFew(n int) outcome {
	return outcome{exitTimeout, fmt.Sprintf("%d of %d events came within %s", n, c.ExitAfter, c.Timeout)}
}

// reach returns a client and its server's address. The client has the key, the token of the signed-in user, or nothing;
// then a temporary endpoint is created.
func (c *ListenCmd) reach() (*client.Client, string, error) {
	if c.Key != "" {
		c.Token = c.Key
	}
	to, address, err := c.connect()
	if err == nil || !hookglass.Is(err, hookglass.CodeUnauthorized) || c.All || len(c.Endpoint) > 0 || c.Config != "" {
		return to, address, err
	}
	if to, err = client.New(address, ""); err != nil {
		err = outcome{exitUsage, err.Error()}
	}
	return to, address, err
}

// patiently calls endpoints until the server answers. It waits when the server asks for that (429, 503), and from then
// on also while the server is unreachable: it may be restarting.
func (c *ListenCmd) patiently(ctx context.Context, t *server.Terminal, cfg *listen.Config, file *listenFile) ([]api.Endpoint, error) {
	for told := false; ; told = true {
		found, err := c.endpoints(ctx, t, cfg, file)
		var busy *client.Error
		var lost *client.Unanswered
		wait := 500 * time.Millisecond
		switch {
		case errors.As(err, &busy) && (busy.Status == 503 || busy.Status == 429):
			wait = min(max(busy.RetryAfter, wait), time.Minute)
		case told && errors.As(err, &lost) && lost.Repeatable():
		default:
			return found, err
		}
		if !told {
			fmt.Fprintln(t.Err, visible(busy.Error())+" Trying again.")
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// endpoints finds the endpoints to listen to, and creates one if the flags ask for it.
func (c *ListenCmd) endpoints(ctx context.Context, t *server.Terminal, cfg *listen.Config, file *listenFile) ([]api.Endpoint, error) {
	switch {
	case c.Key != "" && !cfg.Client.Anonymous(): // not a key by its form
		return nil, errWrongKey
	case cfg.Client.Anonymous():
		return c.keyed(ctx, cfg)
	case !cfg.Client.SignedIn():
		e, err := cfg.Client.CreateTemporaryEndpoint(ctx)
		if err != nil {
			return nil, err
		}
		cfg.Client, cfg.Since = cfg.Client.As(e.TunnelKey), e.CreatedAt.Time
		fmt.Fprintf(t.Err, "You are not signed in: this is a temporary endpoint, until %s. Go on with it by --key %s\n", clock(e.ExpiresAt), visible(e.TunnelKey))
		return []api.Endpoint{e}, nil
	case c.New:
		return c.create(ctx, cfg)
	}
	found, err := c.named(ctx, cfg, file)
	if err != nil || slices.ContainsFunc(found, takesWebhooks) {
		return found, err
	}
	return c.chosen(ctx, cfg, found)
}

var errWrongKey = outcome{exitRefused, "no temporary endpoint has this key; they live for 24 hours. Without --key a new one is made"}

// errKeyOver ends listening with a key that was valid when it began.
var errKeyOver = outcome{exitRefused, "the temporary endpoint is no more: its 24 hours are over, or it was deleted, or an account took it over"}

func keyRefused(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Status == http.StatusUnauthorized
}

func takesWebhooks(e api.Endpoint) bool { return e.Kind == "webhook" }

// keyed returns the temporary endpoint of the key.
func (c *ListenCmd) keyed(ctx context.Context, cfg *listen.Config) ([]api.Endpoint, error) {
	ticket, err := cfg.Client.ConnectTunnel(ctx, api.ConnectTunnel{ClientName: "hookglass"})
	if keyRefused(err) {
		return nil, errWrongKey
	}
	if err != nil {
		return nil, err
	}
	e, err := cfg.Client.Endpoint(ctx, ticket.EndpointID)
	return []api.Endpoint{e}, err
}

// named returns the endpoints that flags or the file name. With both, the flags select some of the file's.
func (c *ListenCmd) named(ctx context.Context, cfg *listen.Config, file *listenFile) (found []api.Endpoint, err error) {
	names, all := c.Endpoint, file != nil && len(c.Endpoint) == 0
	if all {
		names = file.names()
	}
	for _, name := range names {
		e, err := endpointNamed(ctx, cfg.Client, name)
		refused := new(client.Error)
		if file != nil && file.entry(name, e) == nil && (err == nil || errors.As(err, &refused) && refused.Code == hookglass.CodeNotFound) {
			return nil, outcome{exitUsage, fmt.Sprintf("%s does not name %s", c.Config, name)}
		}
		if err != nil {
			return nil, fmt.Errorf("endpoint %s: %w", name, err)
		}
		twice := slices.ContainsFunc(found, func(o api.Endpoint) bool { return o.ID == e.ID })
		switch {
		case twice && all: // the second entry would be ignored
			return nil, outcome{exitUsage, fmt.Sprintf("%s names %s twice", c.Config, name)}
		case !twice:
			found = append(found, e)
		}
	}
	return found, nil
}

// endpointNamed returns an endpoint by id or custom id. A token with only the tunnel scope is enough for an id.
func endpointNamed(ctx context.Context, at *client.Client, name string) (api.Endpoint, error) {
	e, err := at.Endpoint(ctx, name)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code == hookglass.CodeInsufficientScope && hookglass.IsEndpointID(name) {
		return api.Endpoint{ID: name, Kind: "webhook"}, nil // its name is not known
	}
	return e, err
}

// chosen returns the endpoints to listen to if no webhook endpoint was named: the named mailboxes, if there is a
// webhook endpoint whose tunnel they can use, or all endpoints, or the only one.
func (c *ListenCmd) chosen(ctx context.Context, cfg *listen.Config, mailboxes []api.Endpoint) ([]api.Endpoint, error) {
	all, err := cfg.Client.Endpoints(ctx)
	if err != nil {
		return nil, err
	}
	hooks := slices.DeleteFunc(slices.Clone(all), func(e api.Endpoint) bool { return !takesWebhooks(e) })
	switch {
	case len(hooks) == 0 && (len(mailboxes) > 0 || c.All && len(all) > 0):
		return nil, listen.ErrNoDoor
	case len(mailboxes) > 0:
		return mailboxes, nil
	case c.All && len(all) > 0:
		return all, nil
	case len(hooks) == 0:
		return c.create(ctx, cfg)
	case len(hooks) == 1:
		return hooks, nil
	}
	var list strings.Builder
	for _, e := range hooks[:min(len(hooks), 20)] {
		fmt.Fprintf(&list, "\n  %s  %s", visible(e.ID), visible(e.Name))
	}
	return nil, outcome{exitUsage, "there are several endpoints; name one with -e, or listen to --all:" + list.String()}
}

func (c *ListenCmd) create(ctx context.Context, cfg *listen.Config) ([]api.Endpoint, error) {
	name := "listen"
	if cfg.Machine.Hostname != "" {
		name += " on " + cfg.Machine.Hostname
	}
	e, err := cfg.Client.CreateEndpoint(ctx, api.NewEndpoint{Name: api.Some(name)})
	cfg.Since = e.CreatedAt.Time
	return []api.Endpoint{e}, err
}

func machine() api.TunnelMetadata {
	host, _ := os.Hostname() // may be empty
	return api.TunnelMetadata{Hostname: host, OS: runtime.GOOS, Arch: runtime.GOARCH}
}

// targetsOf returns the target addresses of endpoints, each once.
func targetsOf(endpoints []listen.Endpoint) (all []listen.Target) {
	add := func(to listen.Target) {
		if to.Command == "" && !slices.ContainsFunc(all, func(o listen.Target) bool { return o.Scheme == to.Scheme && o.Host == to.Host }) {
			all = append(all, to)
		}
	}
	for _, e := range endpoints {
		if e.Target != nil {
			add(*e.Target)
		}
		for _, r := range e.Routes {
			add(r.Target)
		}
	}
	return all
}

// recovery returns what to do about missed events: ask, unless a flag says otherwise or nobody can be asked.
func (c *ListenCmd) recovery(t *server.Terminal) listen.Recovery {
	switch wanted := listen.Recovery(c.Recover); {
	case wanted != "" && wanted != listen.RecoverAsk:
		return wanted
	case asks(t):
		return listen.RecoverAsk
	}
	return listen.RecoverRecent
}

// asks reports whether there is somebody to ask. In the background there is not: reading from the terminal would stop
// the program, and with it the events.
func asks(t *server.Terminal) bool {
	return isTerminal(t.In) && isTerminal(t.Err) && inForeground(t.In)
}

// readLine reads a line from the keyboard; ok is false if there was none.
func readLine(ctx context.Context, in io.Reader) (line string, ok bool) {
	select {
	case line, ok = <-typedLine(in):
		return line, ok
	case <-ctx.Done():
		return "", false
	}
}

// typedLine reads a line in the background: a read from a terminal cannot be interrupted.
func typedLine(in io.Reader) <-chan string {
	typed := make(chan string, 1)
	go func() { // ends with the line or the program
		if line, err := bufio.NewReader(in).ReadString('\n'); err == nil || line != "" {
			typed <- strings.TrimSpace(line)
		}
		close(typed)
	}()
	return typed
}
