package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/outbound"
	"hookglass/internal/provider"
	"hookglass/internal/server"
)

// TriggerCmd is `hookglass trigger`.
type TriggerCmd struct {
	remote
	Event    string   `arg:"" optional:"" placeholder:"PROVIDER.EVENT" help:"Which sample, for example stripe.invoice.payment_failed; the provider alone means its first, and an event alone that of the only provider that has it."`
	Endpoint string   `short:"e" placeholder:"EP" help:"Endpoint that receives it, signed with the endpoint's own config where no secret is given ($$HOOKGLASS_ENDPOINT)."`
	Secret   string   `placeholder:"SECRET" help:"Sign it here with this secret; - reads it from standard input, since other users can see flags."`
	To       string   `placeholder:"URL" help:"Send it from here to this URL instead of to an endpoint."`
	Set      []string `sep:"none" placeholder:"POINTER=VALUE" help:"Put this value into the sample's JSON, for example /data/object/customer=cus_1; may be repeated. It is JSON, or text where it is none or the sample has text."`
	Count    howMany  `default:"1" placeholder:"N" help:"Send as many, one after the other and each with ids of its own, until one fails (default: ${default})."`
	List     bool     `help:"List the samples there are."`
}

// Help implements kong.HelpProvider.
func (c *TriggerCmd) Help() string {
	return `Examples:

  hookglass trigger github.push -e ep_…
  hookglass trigger stripe.invoice.payment_failed --secret whsec_… --to http://localhost:3000/hooks
  hookglass trigger stripe.invoice.paid -e ep_… --set /data/object/customer=cus_1 --set /data/object/amount_paid=500
  hookglass trigger github.push -e ep_… --count 10`
}

// triggerTimeout is how long a local handler may take to answer.
const triggerTimeout = 30 * time.Second

// Validate says what is wrong with the flags together.
func (c *TriggerCmd) Validate() error {
	u, err := url.Parse(c.To)
	switch {
	case c.List:
		return nil
	case c.Event == "":
		return errors.New("say which sample to send, for example github.push; --list shows them all")
	case c.To != "" && c.Endpoint != "":
		return errors.New("--to and --endpoint are two places; name one")
	case c.To == "" && c.Endpoint == "" && os.Getenv(endpointVariable) == "":
		return errors.New("name the endpoint with -e, or a URL with --to")
	case c.To != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == ""):
		return errors.New("--to must be an http or https address")
	}
	if _, err := provider.Values("", "", c.Set); err != nil {
		return errors.New("--set takes a JSON Pointer and a value, for example /data/object/customer=cus_1")
	}
	return nil
}

// values returns what --set says as the API takes it, or nothing.
func (c *TriggerCmd) values(name, event string) api.JSONObject {
	set, _ := provider.Values(name, event, c.Set) // as Validate found
	return set
}

func (c *TriggerCmd) Run(ctx context.Context, t *server.Terminal) error {
	if c.List {
		return c.list(t)
	}
	var err error
	if c.Secret, err = secretOf(t, c.Secret); err != nil {
		return err
	}
	name, event := sampleOf(c.Event)
	if c.To != "" {
		return c.each(func() error { return c.send(ctx, t, name, event) })
	}
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	c.Endpoint = cmp.Or(c.Endpoint, os.Getenv(endpointVariable))
	if c.Secret != "" {
		e, err := to.Endpoint(ctx, c.Endpoint)
		if err != nil {
			return err
		}
		if e.WebhookURL == nil {
			return errors.New("the endpoint is for mail and has no address for webhooks")
		}
		c.To = *e.WebhookURL
		return c.each(func() error { return c.send(ctx, t, name, event) })
	}
	return c.each(func() error {
		id, err := to.SendTestRequest(ctx, c.Endpoint, api.SendTestRequest{Provider: name, EventType: event, Set: c.values(name, event)})
		if err != nil {
			return err
		}
		return c.say(t, api.One[api.SentTestRequest]{Data: api.SentTestRequest{RequestID: id}}, "Sent %s as %s\n", c.Event, id)
	})
}

// each sends as many as --count says, until one fails.
func (c *TriggerCmd) each(send func() error) error {
	for range c.Count {
		if err := send(); err != nil {
			return err
		}
	}
	return nil
}

// sampleOf returns the provider and the event that a word means. Without a provider it is the only provider's event of
// that name or type, such as payment_intent.succeeded or orders/create, as the provider's own CLI has it.
func sampleOf(word string) (name, event string) {
	name, event, _ = strings.Cut(word, ".")
	var of []string
	for _, s := range provider.Samples() {
		if s.Provider == name {
			return name, event
		}
		if (s.Event == word || s.EventType == word) && !slices.Contains(of, s.Provider) {
			of = append(of, s.Provider)
		}
	}
	if len(of) == 1 {
		return of[0], word
	}
	return name, event
}

func (c *TriggerCmd) list(t *server.Terminal) error {
	samples := provider.Samples()
	rows, listed := make([][]string, len(samples)), make([]listedSample, len(samples))
	for i, s := range samples {
		listed[i] = listedSample{s.Provider + "." + s.Event, s.Provider, s.EventType}
		rows[i] = []string{listed[i].Sample, s.EventType}
	}
	return c.print(t, api.One[[]listedSample]{Data: listed}, table([]string{"SAMPLE", "EVENT TYPE"}, rows))
}

// listedSample is a sample as --list --json prints it.
type listedSample struct {
	Sample    string `json:"sample"`
	Provider  string `json:"provider"`
	EventType string `json:"event_type"`
}

// send signs the sample here and sends it to a handler on this machine.
func (c *TriggerCmd) send(ctx context.Context, t *server.Terminal, name, event string) error {
	now := time.Now()
	out, err := provider.Sample(name, event, outbound.AsSent(c.To))
	if err != nil {
		return fmt.Errorf("%s \"hookglass trigger --list\" shows those there are", explain(err))
	}
	found := provider.Detect(&provider.Request{Method: out.Method, URL: out.URL, Headers: out.Headers, Body: out.Body, ReceivedAt: now})
	if fresh, _, err := provider.Regenerate(out, found, nil, provider.NewIdentity()); err == nil {
		out = fresh // forms keep the ids of the sample
	}
	if out, err = out.Set(c.values(name, event)); err != nil {
		return err
	}
	if c.Secret != "" {
		if out, err = provider.Sign(out, provider.Config{Provider: name, Secrets: []string{c.Secret}}, now); err != nil {
			return err
		}
	} else {
		out.Headers = provider.Strip(found, out.Headers)
	}
	result, err := post(ctx, out)
	if err != nil {
		return err
	}
	result.Sample = c.Event
	if err := c.print(t, result, result.write); err != nil {
		return err
	}
	if result.StatusCode < 200 || result.StatusCode > 299 {
		return hookglass.Errorf(hookglass.CodeConflict, "The handler answered %d.", result.StatusCode)
	}
	return nil
}

// triggered is the answer of a handler.
type triggered struct {
	Sample     string `json:"sample"`
	URL        string `json:"url"`
	StatusCode int    `json:"status_code"`
	Body       string `json:"body"`
	Truncated  bool   `json:"body_truncated,omitempty"` // the body is longer
	DurationMS int64  `json:"duration_ms"`
}

func (r triggered) write(w io.Writer) {
	fmt.Fprintf(w, "%s -> [%d] %s (%d ms)\n%s\n", visible(r.Sample), r.StatusCode, visible(r.URL), r.DurationMS, visibleLines(r.Body))
	if r.Truncated {
		fmt.Fprintln(w, "(the answer goes on)")
	}
}
