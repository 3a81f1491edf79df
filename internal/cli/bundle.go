package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/bundle"
	"hookglass/internal/coding"
	"hookglass/internal/delivery"
	"hookglass/internal/outbound"
	"hookglass/internal/provider"
	"hookglass/internal/server"
)

// BundleCmd is `hookglass bundle`.
type BundleCmd struct {
	Create  BundleCreateCmd  `cmd:"" help:"Make a file of captured events that can be given away."`
	Inspect BundleInspectCmd `cmd:"" help:"Show what is in a bundle, and what was replaced."`
	Verify  BundleVerifyCmd  `cmd:"" help:"Check the signatures of a bundle with its published test secrets."`
	Replay  BundleReplayCmd  `cmd:"" help:"Send the requests of a bundle to a handler on this machine."`
}

// BundleCreateCmd is `hookglass bundle create`.
type BundleCreateCmd struct {
	remote
	ofEndpoint
	Events   []string `arg:"" optional:"" help:"The events' ids, or latest; or --query."`
	Query    string   `short:"q" type:"query" placeholder:"QUERY" help:"Which events, in place of ids; 100 at most."`
	Pointers []string `name:"pointer" sep:"none" placeholder:"POINTER" help:"Replace this too: /data/email, header:NAME or query:NAME. Repeatable."`
	Keep     []string `sep:"none" placeholder:"PLACE|KIND" help:"Leave this as it is: a place, or a kind such as ip. Repeatable."`
	Output   string   `short:"o" default:"hookglass-bundle.json" placeholder:"FILE" help:"Where to write it; - is standard output (default: ${default})."`
}

// Help implements kong.HelpProvider.
func (c *BundleCreateCmd) Help() string {
	return `Examples:

  hookglass bundle create req_… -e ep_…
  hookglass bundle create -e ep_… -q 'provider:stripe event:invoice.*' --pointer /data/object/description`
}

// Run implements the command. The file is written completely or not at all.
func (c *BundleCreateCmd) Run(ctx context.Context, t *server.Terminal) error {
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	for i, word := range c.Events {
		if c.Events[i], err = eventNamed(ctx, from, c.Endpoint, word); err != nil {
			return err
		}
	}
	var text bytes.Buffer
	if err := from.ShareBundle(ctx, c.Endpoint, api.CreateShareBundle{RequestIDs: c.Events, Query: c.Query, Pointers: c.Pointers, Keep: c.Keep}, &text); err != nil {
		return err
	}
	file, err := bundle.Read(bytes.NewReader(text.Bytes()))
	if err != nil {
		return err
	}
	if c.Output == "-" {
		if isTerminal(t.Out) {
			return copyJSON(t.Out, text.Bytes())
		}
		_, err := t.Out.Write(text.Bytes())
		return err
	}
	if err := writeFile(c.Output, only(text.Bytes())); err != nil {
		return err
	}
	return c.print(t, bundleSummary{c.Output, len(file.Events), file.Replaced}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s, %s replaced. Look at it before you send it: what only you know to be personal stays.\n", visible(c.Output), plural(len(file.Events), "request", "requests"), plural(total(file.Replaced), "value", "values"))
		replacedTable(file)(w)
	})
}

type bundleSummary struct {
	File     string         `json:"file"`
	Requests int            `json:"requests"`
	Replaced []bundle.Count `json:"replaced"`
}

func total(replaced []bundle.Count) (n int) {
	for _, r := range replaced {
		n += r.Count
	}
	return n
}

func replacedTable(f bundle.File) func(io.Writer) {
	rows := make([][]string, len(f.Replaced))
	for i, r := range f.Replaced {
		rows[i] = []string{strconv.Itoa(r.Event), r.Pointer, r.Kind, strconv.Itoa(r.Count)}
	}
	return table([]string{"REQUEST", "POINTER", "KIND", "COUNT"}, rows)
}

// bundleFile is a bundle on this machine.
type bundleFile struct {
	File string `arg:"" placeholder:"FILE" help:"The bundle; - is standard input."`
	JSON bool   `name:"json" help:"Print JSON instead of text."`
}

func (c *bundleFile) read(t *server.Terminal) (bundle.File, error) {
	if c.File == "-" {
		return bundle.Read(t.In)
	}
	f, err := os.Open(c.File)
	if err != nil {
		return bundle.File{}, err
	}
	defer f.Close()
	return bundle.Read(f)
}

func (c *bundleFile) print(t *server.Terminal, object any, text func(io.Writer)) error {
	return (&remote{JSON: c.JSON}).print(t, object, text)
}

// BundleInspectCmd is `hookglass bundle inspect`.
type BundleInspectCmd struct{ bundleFile }

func (c *BundleInspectCmd) Run(t *server.Terminal) error {
	f, err := c.read(t)
	if err != nil {
		return err
	}
	return c.print(t, f, func(w io.Writer) {
		for _, e := range f.Events {
			fmt.Fprintf(w, "%s, received %s\n", visible(titleOf(e)), e.ReceivedAt.Format(time.RFC3339))
			fmt.Fprintf(w, "   %s\n", strings.ReplaceAll(strings.TrimSpace(visibleLines(e.Head)), "\n", "\n   "))
			fmt.Fprintf(w, "   body: %s, sha256 %s\n", plural(len(e.Body), "byte", "bytes"), visible(e.BodySHA256))
			if e.Signature != nil {
				fmt.Fprintf(w, "   verify with %s (%s)\n", visible(e.Signature.Secret), visible(e.Signature.Provider))
			} else {
				fmt.Fprintf(w, "   not signed: %s\n", visible(e.Unsigned))
			}
		}
		fmt.Fprintln(w)
		replacedTable(f)(w)
	})
}

// titleOf returns a title for a request of a bundle: its number, its sender and, if it has one, its event type.
func titleOf(e bundle.Event) string {
	return strings.TrimSpace(fmt.Sprintf("%d. %s %s", e.Number, e.Provider, e.EventType))
}

// BundleVerifyCmd is `hookglass bundle verify`.
type BundleVerifyCmd struct{ bundleFile }

// bundleVerdict is the result of one signature check.
type bundleVerdict struct {
	Number   int    `json:"number"`
	Provider string `json:"provider"`
	Status   string `json:"status"`
	Reason   string `json:"reason,omitempty"`
}

// Run implements the command. It fails if a signature does.
func (c *BundleVerifyCmd) Run(t *server.Terminal) error {
	f, err := c.read(t)
	if err != nil {
		return err
	}
	verdicts, failed := make([]bundleVerdict, len(f.Events)), 0
	rows := make([][]string, len(f.Events))
	for i, e := range f.Events {
		v, err := e.Verify()
		if err != nil {
			return err
		}
		verdicts[i] = bundleVerdict{e.Number, e.Provider, string(v.Status), v.Reason}
		if v.Reason == "" {
			verdicts[i].Reason = e.Unsigned
		}
		if v.Status == hookglass.SignatureFailed {
			failed++
		}
		rows[i] = []string{strconv.Itoa(e.Number), e.Provider, string(v.Status), verdicts[i].Reason}
	}
	if err := c.print(t, verdicts, table([]string{"REQUEST", "PROVIDER", "SIGNATURE", "WHY"}, rows)); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d signatures failed", failed, len(f.Events))
	}
	return nil
}

// BundleReplayCmd is `hookglass bundle replay`.
type BundleReplayCmd struct {
	bundleFile
	To   string `required:"" placeholder:"URL" help:"Where to send the requests; their path and query are appended."`
	AsIs bool   `help:"Send the signatures of the file, and do not sign anew for this address and this moment."`
}

// Validate says what is wrong with the flags.
func (c *BundleReplayCmd) Validate() error {
	if u, err := url.Parse(c.To); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("--to must be an http or https address")
	}
	return nil
}

// Run implements the command. It fails when a handler does not answer 2xx.
func (c *BundleReplayCmd) Run(ctx context.Context, t *server.Terminal) error {
	f, err := c.read(t)
	if err != nil {
		return err
	}
	sent, failed := make([]triggered, len(f.Events)), 0
	for i, e := range f.Events {
		out, err := e.Request()
		if err != nil {
			return err
		}
		path, query, _ := strings.Cut(bundle.Target(out), "?") // not net/url, which refuses what senders send (/50%)
		target := outbound.AsSent(delivery.AppendPath(c.To, path, query))
		if out.URL = target; !c.AsIs {
			if out, err = e.For(target, time.Now()); err != nil {
				return err
			}
		}
		if sent[i], err = post(ctx, out); err != nil {
			if c.JSON { // report the requests that were sent before
				err = errors.Join(c.print(t, sent[:i], nil), err)
			}
			return err
		}
		sent[i].Sample = titleOf(e)
		if sent[i].StatusCode < 200 || sent[i].StatusCode > 299 {
			failed++
		}
		if !c.JSON {
			if err := c.print(t, nil, sent[i].write); err != nil {
				return err
			}
		}
	}
	if c.JSON {
		if err := c.print(t, sent, nil); err != nil {
			return err
		}
	}
	if failed > 0 {
		return hookglass.Errorf(hookglass.CodeConflict, "The handler refused %d of %d requests.", failed, len(sent))
	}
	return nil
}

// maxAnswer bounds how much of a handler's answer is read and shown.
const maxAnswer = 64 << 10

// post sends a request from this machine and reads the beginning of the answer.
func post(ctx context.Context, out provider.Outgoing) (result triggered, err error) {
	ctx, cancel := context.WithTimeout(ctx, triggerTimeout)
	defer cancel()
	began := time.Now()
	req, err := requestTo(ctx, out)
	if err != nil {
		return result, err
	}
	req.Header = headersFor(out.Headers)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // or it would ask for gzip
	defer transport.CloseIdleConnections()
	if proxy, err := transport.Proxy(req); err == nil && proxy != nil && strings.HasPrefix(proxy.Scheme, "http") && req.URL.Scheme == "http" && req.URL.Opaque != "" {
		req.URL.Opaque = "//" + req.URL.Host + req.URL.Opaque // an HTTP proxy learns from the request where to send it
	}
	res, err := transport.RoundTrip(req) // a redirect is an answer and is not followed
	if err != nil {
		return result, fmt.Errorf("send to %s: %w", out.URL, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return result, fmt.Errorf("read the answer of %s: %w", out.URL, err)
	}
	took := time.Since(began)
	of := coding.Of(hookglass.Headers{{Name: "Content-Encoding", Value: strings.Join(res.Header.Values("Content-Encoding"), ",")}})
	plain, err := coding.Decoded(answer, of, maxAnswer)
	longer := len(answer) > maxAnswer || errors.Is(err, coding.ErrLonger)
	if err != nil && (!longer || len(plain) == 0) {
		plain = answer // some servers declare a coding that they do not use
	}
	plain = plain[:min(len(plain), maxAnswer)]
	return triggered{URL: out.URL, StatusCode: res.StatusCode, Body: string(plain), Truncated: longer, DurationMS: took.Milliseconds()}, nil
}

// requestTo is the request with its URL as it is: net/http would escape the path anew, and takes none with a % that
// escapes nothing. It reads a path that begins with two slashes as an address. Such a URL, and one that cannot be sent
// as it is, is left to it; where it takes none, the % is escaped.
func requestTo(ctx context.Context, out provider.Outgoing) (*http.Request, error) {
	scheme, rest, _ := strings.Cut(out.URL, "://")
	authority, path, ok := strings.Cut(rest, "/")
	req, err := http.NewRequestWithContext(ctx, out.Method, scheme+"://"+authority, bytes.NewReader(out.Body))
	if err != nil {
		return nil, err
	}
	whole, err := url.Parse(out.URL)
	switch {
	case ok && !strings.HasPrefix(path, "/") && !strings.ContainsAny(path, " #"):
		req.URL.Opaque = "/" + path
	case err == nil:
		req.URL = whole
	default:
		path, query, _ := strings.Cut(path, "?")
		req.URL.Path, req.URL.RawQuery = "/"+path, query
	}
	return req, nil
}

// headersFor returns the sender's headers in their spelling, and no others: net/http would canonicalise the names and
// add a User-Agent. Headers that frame a message are left out: net/http does not recognise them in another spelling,
// and would send Transfer-Encoding together with a length.
func headersFor(h hookglass.Headers) http.Header {
	const agent = "User-Agent" // net/http recognises only this spelling
	header := http.Header{agent: nil}
	for _, f := range outbound.Sanitize(h) {
		name := f.Name
		if strings.EqualFold(name, agent) {
			name = agent
		}
		header[name] = append(header[name], f.Value)
	}
	return header
}
