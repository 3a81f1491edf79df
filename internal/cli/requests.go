package cli

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/jsondoc"
	"hookglass/internal/query"
	"hookglass/internal/server"
)

// RequestsCmd is `hookglass requests`.
type RequestsCmd struct {
	remote
	ofEndpoint

	List   RequestsListCmd   `cmd:"" help:"List events, newest first."`
	Tail   RequestsTailCmd   `cmd:"" help:"Print events as they come, until it is stopped."`
	Wait   RequestsWaitCmd   `cmd:"" help:"Wait for an event, and show it, a value in it, or the link or code in a mail."`
	Get    RequestsGetCmd    `cmd:"" help:"Show an event with its headers, body and answer."`
	Export RequestsExportCmd `cmd:"" help:"Write events as a file, oldest first."`
	Delete RequestsDeleteCmd `cmd:"" help:"Delete events, by their ids or a search, or all."`

	Diagnose RequestsDiagnoseCmd `cmd:"" help:"Explain what became of an event: why its signature failed, who got it and who did not."`
	Release  RequestsReleaseCmd  `cmd:"" help:"Send a caught mail on to people, through the server's mail relay."`
	Releases RequestsReleasesCmd `cmd:"" help:"List whom a mail was sent on to, newest first."`

	Tag      RequestsTagCmd      `cmd:"" help:"Tag an event."`
	Untag    RequestsUntagCmd    `cmd:"" help:"Remove tags from an event."`
	Note     RequestsNoteCmd     `cmd:"" help:"Write a note on an event, or remove it."`
	Ignore   RequestsIgnoreCmd   `cmd:"" help:"Hide an event from lists, alerts and health figures."`
	Unignore RequestsUnignoreCmd `cmd:"" help:"Show an event again that was ignored."`
}

// RequestsListCmd is `hookglass requests list`.
type RequestsListCmd struct {
	Query  string  `short:"q" type:"query" placeholder:"QUERY" help:"Which events, for example: provider:stripe sig:failed after:2h."`
	Limit  howMany `default:"25" help:"How many, 1 to 100."`
	Cursor string  `placeholder:"CURSOR" help:"Go on where the list before ended."`
}

func (c *RequestsListCmd) Run(ctx context.Context, t *server.Terminal, r *RequestsCmd) error {
	from, _, err := r.connect()
	if err != nil {
		return err
	}
	page, err := from.Requests(ctx, r.Endpoint, client.Filter{Query: c.Query}, client.Page{Limit: int(c.Limit), Cursor: c.Cursor})
	if err != nil {
		return err
	}
	rows := make([][]string, len(page.Data))
	for i, e := range page.Data {
		rows[i] = eventRow(e)
	}
	return r.print(t, page, func(w io.Writer) {
		table(eventHeading(page.Data), rows)(w)
		if len(page.Data) == 0 && page.Meta.Total == 0 && page.Meta.TotalExact {
			r.advise(t, c.Query)
		}
		if page.Meta.NextCursor != nil {
			of := "of"
			if !page.Meta.TotalExact {
				of = "of at least"
			}
			fmt.Fprintf(w, "\n%d %s %d. More: --cursor %s\n", len(page.Data), of, page.Meta.Total, *page.Meta.NextCursor)
		}
	})
}

// advise helps people who wrote a query that found nothing.
func (r *remote) advise(t *server.Terminal, q string) {
	if advice := query.Advice(q); advice != "" && !r.JSON {
		fmt.Fprintln(t.Err, advice)
	}
}

// eventHeading names the columns of events of one endpoint, which are all webhooks or all mail.
func eventHeading(events []api.Event) []string {
	if len(events) > 0 && events[0].Type == "email" {
		return []string{"TIME", "ID", "TO", "FROM", "SUBJECT", "STATUS", "SIZE"}
	}
	return []string{"TIME", "ID", "METHOD", "PATH", "STATUS", "SIZE", "PROVIDER", "EVENT", "SIGNATURE"}
}

func eventRow(e api.Event) []string {
	status, name := "-", ""
	if e.Status != nil {
		status = strconv.Itoa(*e.Status)
	}
	size := strconv.FormatInt(e.Size, 10)
	if e.Type == "email" {
		return []string{clock(&e.RequestedAt), e.ID, e.Path, deref(e.From), deref(e.Subject), status, size}
	}
	if e.ProviderEventData != nil {
		name = deref(e.ProviderEventData.EventType)
	}
	return []string{clock(&e.RequestedAt), e.ID, e.Method, e.Path, status, size, e.DetectedProvider, name, e.SignatureStatus}
}

// RequestsTailCmd is `hookglass requests tail`.
type RequestsTailCmd struct {
	Query string `short:"q" type:"query" placeholder:"QUERY" help:"Which events, for example: provider:stripe."`
	After string `placeholder:"EVENT" help:"Begin after this event, instead of with what comes next."`
}

// Validate refuses an id for which the server's message would name a header.
func (c *RequestsTailCmd) Validate() error {
	if _, err := hookglass.ParseEventID(c.After); c.After != "" && err != nil {
		return errors.New("--after must be the id of an event")
	}
	return nil
}

// Run implements the command. With --json it prints one object per line.
func (c *RequestsTailCmd) Run(ctx context.Context, t *server.Terminal, r *RequestsCmd) error {
	from, _, err := r.connect()
	if err != nil {
		return err
	}
	// The stream waits for an unreachable server, but if it was never reached its address is probably wrong.
	var unreachable *url.Error
	if _, err = from.Endpoint(ctx, r.Endpoint); errors.As(err, &unreachable) && ctx.Err() == nil {
		return err
	}
	for e, err := range from.Stream(ctx, r.Endpoint, client.Filter{Query: c.Query}, c.After, tellAway(t)) {
		if err != nil {
			return err
		}
		cells := eventRow(e)
		for i := range cells {
			cells[i] = visible(cells[i])
		}
		if err := r.say(t, e, "%s\n", strings.Join(cells, "  ")); err != nil {
			return err
		}
	}
	return nil
}

// tellAway tells the user that the server is unreachable, and that it is back.
func tellAway(t *server.Terminal) func(error) {
	return func(err error) {
		text := "The server answers again; nothing that came meanwhile is left out."
		if err != nil {
			text = "Waiting for the server: " + err.Error()
		}
		fmt.Fprintln(t.Err, visible(text))
	}
}

// eventNamed returns the id of an event given as for agents: by its id, or latest, optionally of a type.
func eventNamed(ctx context.Context, from *client.Client, endpoint, word string) (string, error) {
	return eventAmong(ctx, from, endpoint, word, client.Filter{})
}

// eventAmong is eventNamed, where latest is of the events that a filter selects.
func eventAmong(ctx context.Context, from *client.Client, endpoint, word string, among client.Filter) (string, error) {
	eventType, ok := strings.CutPrefix(word, "latest")
	if !ok || eventType != "" && eventType[0] != ' ' {
		return word, nil
	}
	eventType = strings.TrimSpace(eventType)
	among.EventType = eventType
	page, err := from.Requests(ctx, endpoint, among, client.Page{Limit: 1})
	if err != nil {
		return "", err
	}
	switch {
	case len(page.Data) > 0:
		return page.Data[0].ID, nil
	case among.Ignored == "true" && eventType == "":
		return "", outcome{exitFailed, "nothing is ignored"}
	case among.Ignored == "true":
		return "", outcome{exitFailed, "nothing is ignored of the type " + visible(eventType)}
	case eventType == "":
		return "", outcome{exitFailed, "nothing came to this endpoint yet, or nothing is left"}
	}
	return "", outcome{exitFailed, "the endpoint has nothing of the type " + visible(eventType) + "; what comes from unknown senders has no type"}
}

// RequestsGetCmd is `hookglass requests get`.
type RequestsGetCmd struct {
	Event      string   `arg:"" help:"The event's id, latest, or latest and an event type."`
	Pointer    *pointer `xor:"bytes" placeholder:"POINTER" help:"Write the value at this place of the body alone, for example /data/id."`
	Body       bool     `xor:"bytes" help:"Write the body alone, byte for byte; of a mail the whole message."`
	Attachment *int     `xor:"bytes" placeholder:"N" help:"Write an attachment of a mail alone, by its number."`
	Part       *int     `xor:"bytes" placeholder:"N" help:"Write a part of a multipart body alone, by its number."`
	As         *string  `xor:"bytes" enum:"curl,httpie,fetch,go,python" placeholder:"LANGUAGE" help:"Write what sends the request again: curl, httpie, fetch, go or python."`
}

func (c *RequestsGetCmd) Run(ctx context.Context, t *server.Terminal, r *RequestsCmd) error {
	from, _, err := r.connect()
	if err != nil {
		return err
	}
	alone := c.Body || c.Attachment != nil || c.Part != nil
	if r.JSON && (alone || c.As != nil || c.Pointer != nil) {
		return outcome{exitUsage, "--pointer, --body, --attachment, --part and --as write no JSON: leave --json out"}
	}
	if c.Event, err = eventNamed(ctx, from, r.Endpoint, c.Event); err != nil {
		return err
	}
	if alone {
		return c.bytes(ctx, t, from, r.Endpoint)
	}
	e, err := from.Request(ctx, r.Endpoint, c.Event)
	if err != nil {
		return err
	}
	if c.As != nil {
		return pasted(t, e, *c.As)
	}
	if c.Pointer != nil {
		line, ok := c.Pointer.value(t, e)
		if !ok {
			return outcome{exitFailed, "the body has no value at " + c.Pointer.String()}
		}
		_, err = io.WriteString(t.Out, line)
		return err
	}
	return r.say(t, api.One[api.EventDetail]{Data: e}, "%s", detail(e))
}

// bytes writes captured bytes unchanged, which is not safe for a terminal.
func (c *RequestsGetCmd) bytes(ctx context.Context, t *server.Terminal, from *client.Client, endpoint string) error {
	if isTerminal(t.Out) {
		return outcome{exitUsage, "what came is written byte for byte, which is not for a terminal: direct it into a file or a pipe"}
	}
	switch {
	case c.Body:
		return from.RequestBody(ctx, endpoint, c.Event, t.Out)
	case c.Part != nil:
		e, err := from.Request(ctx, endpoint, c.Event)
		if err != nil {
			return err
		}
		parts := partsOf(e)
		if *c.Part < 0 || *c.Part >= len(parts) {
			return outcome{exitFailed, fmt.Sprintf("there is no such part: the body has %d", len(parts))}
		}
		_, err = t.Out.Write(parts[*c.Part].Content)
		return err
	}
	return from.Attachment(ctx, endpoint, c.Event, *c.Attachment, t.Out)
}

// detail formats an event for people: the request and the answer.
func detail(e api.EventDetail) string {
	if e.Type == "email" {
		return mailDetail(e)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  from %s  %s", e.ID, clock(&e.RequestedAt), orDash(e.IPAddress), e.DetectedProvider)
	if e.ProviderEventData != nil && e.ProviderEventData.EventType != nil {
		fmt.Fprintf(&b, " %s", visible(*e.ProviderEventData.EventType))
	}
	fmt.Fprintf(&b, "  signature %s", e.SignatureStatus)
	if e.SignatureReason != nil {
		fmt.Fprintf(&b, " (%s)", *e.SignatureReason)
	}
	b.WriteString(noted(e))
	fmt.Fprintf(&b, "\n\n%s %s\n", e.Method, visible(e.URL))
	for _, h := range e.HeaderList {
		fmt.Fprintf(&b, "%s: %s\n", visible(h[0]), visible(h[1]))
	}
	parts := partsOf(e)
	switch {
	case e.Body == nil || *e.Body == "":
	case len(parts) > 0:
		b.WriteString(listed(parts))
	case e.BodyEncoding == "base64":
		if text, of, ok := unpacked(e); ok {
			fmt.Fprintf(&b, "\n(%s, decompressed from %s)\n%s\n", plural(e.Size, "byte", "bytes"), of, visibleLines(indented(text)))
			break
		}
		body, _ := bodyOf(e)
		fmt.Fprintf(&b, "\n(%s, not text; --body writes them)\n%s", plural(e.Size, "byte", "bytes"), hex.Dump(body[:min(len(body), maxDump)]))
	default:
		fmt.Fprintf(&b, "\n%s\n", visibleLines(indented(*e.Body)))
	}
	switch {
	case e.ResponseStatusSent != nil:
		fmt.Fprintf(&b, "\nAnswered %d (%s)\n", *e.ResponseStatusSent, answeredBy(e))
	case e.ResponseSource != "":
		b.WriteString(notAnswered)
	}
	if e.SignatureStatus == string(hookglass.SignatureFailed) {
		fmt.Fprintf(&b, "Why the signature failed: hookglass requests diagnose %s -e %s\n", e.ID, e.EndpointID)
	}
	return b.String()
}

// maxDump is how many bytes of a body that is not text are shown: enough to tell what it is.
const maxDump = 256

// notAnswered stands in the place of an answer.
const notAnswered = "\nNot answered (by the script): the connection was reset\n"

// noted formats the note on an event, on its own lines.
func noted(e api.EventDetail) string {
	if e.Note == nil {
		return ""
	}
	return "\nNote: " + strings.ReplaceAll(visibleLines(*e.Note), "\n", "\n      ")
}

// answeredBy returns what determined the answer.
func answeredBy(e api.EventDetail) string {
	if e.ResponseRule == nil {
		return e.ResponseSource
	}
	return fmt.Sprintf("%s, by %s", e.ResponseSource, ruleName(e.ResponseRule))
}

// ruleName names a rule, counting from 1.
func ruleName(r *api.ReplyRule) string { return fmt.Sprintf("rule %d: %s", r.Index+1, visible(r.When)) }

// indented indents JSON. It leaves anything else alone, and JSON that would become very much longer: a small body of
// nested brackets would flood the terminal.
func indented(body string) string {
	if text, ok := jsondoc.Indent([]byte(body), "  ", 4<<10+16*len(body)); ok {
		return string(text)
	}
	return body
}
