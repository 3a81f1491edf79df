package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/text/width"

	"hookglass/api"
	"hookglass/internal/listen"
	"hookglass/internal/server"
)

// screen shows what a listener does: events on stdout, one per line, and everything else on stderr. On a terminal it
// redraws some lines at the bottom: events under way, and totals.
type screen struct {
	mu       sync.Mutex
	out, err io.Writer
	lost     error // the first error of writing to out
	mode     string
	targets  []string // of all endpoints, each once
	bodies   bool
	colour   bool

	live      bool // there are lines at the bottom
	width     func() int
	drawn     int // how many are drawn
	asking    bool
	typed     <-chan string // the line that the last question still waits for; nil: none
	state     string
	underWay  []*api.TunnelRequest
	delivered int
	failed    int
}

// maxShownCommand bounds, in columns, a command in the line of an event.
const maxShownCommand = 40

// maxUnderWay bounds the lines at the bottom.
const maxUnderWay = 5

// screen determines what stdout and stderr are, and what to show on them.
func (c *ListenCmd) screen(t *server.Terminal) *screen {
	s := &screen{out: t.Out, err: t.Err, mode: c.Output, bodies: c.ShowBody, state: "connecting"}
	terminal := isTerminal(t.Out) && isTerminal(t.Err) && inForeground(t.Err) && os.Getenv("TERM") != "dumb"
	if c.JSON {
		s.mode = "json"
	}
	if s.mode == "" {
		s.mode = "compact"
		if terminal {
			s.mode = "tui"
		}
	}
	if s.mode == "tui" && !terminal {
		s.mode = "compact" // stderr cannot be redrawn, or not without taking away what is not ours
	}
	s.live = s.mode == "tui"
	s.colour = isTerminal(t.Out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && s.mode != "json"
	s.width = func() int { return terminalWidth(t.Err) }
	return s
}

// introduce prints the address of an endpoint and the targets of its events.
func (s *screen) introduce(site string, e api.Endpoint, plan listen.Endpoint) {
	to := "shown here only"
	if plan.Target != nil {
		to = s.target(*plan.Target)
	}
	fmt.Fprintf(s.err, "%s  %s\n  -> %s\n", visible(address(e)), visible(e.Name), to)
	for _, r := range plan.Routes {
		fmt.Fprintf(s.err, "     %s -> %s\n", visible(r.Events), s.target(r.Target))
	}
	if len(plan.Events) > 0 || plan.Provider != "" {
		fmt.Fprintf(s.err, "     only %s\n", visible(strings.TrimSpace(plan.Provider+" "+strings.Join(plan.Events, ", "))))
	}
	by := ""
	if e.ExpiresAt != nil {
		by = "  (by its key)"
	}
	fmt.Fprintf(s.err, "  see %s/endpoints/%s%s\n", strings.TrimRight(site, "/"), visible(e.ID), by)
	if e.TunnelActive {
		fmt.Fprintln(s.err, "  another session is connected to it: both get every event")
	}
}

// target formats a target for people, and keeps it in mind.
func (s *screen) target(to listen.Target) string {
	text := place(to)
	if !slices.Contains(s.targets, text) {
		s.targets = append(s.targets, text)
	}
	return text
}

// place formats a target for people.
func place(to listen.Target) string {
	if to.Command != "" {
		return "exec: " + visible(strings.ReplaceAll(strings.TrimSpace(to.Command), "\n", "; "))
	}
	return to.String()
}

// tell shows a note.
func (s *screen) tell(n listen.Note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	defer s.draw()
	switch n := n.(type) {
	case listen.Connected:
		s.state = "connected"
		if n.Again {
			s.status("connected again")
		} else {
			s.status("connected; waiting for events (Ctrl-C ends)")
		}
	case listen.Disconnected:
		s.state = "reconnecting"
		s.status("connection lost (" + n.Err.Error() + "); connecting again")
	case listen.Offline:
		text := fmt.Sprintf("offline %s: %d missed, %d delivered, %d failed", span(n.For), n.Missed, n.Delivered, n.Failed)
		if n.Shown > 0 {
			text += fmt.Sprintf(", %d shown only", n.Shown)
		}
		s.status(text)
	case listen.Warning:
		s.status("warning: " + n.Text)
	case listen.Arrived:
		s.underWay = append(s.underWay, n.Event)
	case listen.Replayed:
		how := fmt.Sprintf("%d in %s", n.StatusCode, milliseconds(n.Took))
		if n.StatusCode == 0 {
			how = n.Problem
		}
		s.status(fmt.Sprintf("replayed %s %s: %s", n.Method, n.URL, how))
	case listen.Delivered:
		for i, e := range s.underWay {
			if e.ID == n.Event.ID {
				s.underWay = append(s.underWay[:i:i], s.underWay[i+1:]...)
				break
			}
		}
		if n.OK() {
			s.delivered++
		} else if n.TargetURL != "" && !n.Dropped {
			s.failed++
		}
		s.event(n)
	}
}

// status writes a line for people.
func (s *screen) status(text string) { fmt.Fprintln(s.err, visible(text)) }

// line is the JSON output for an event.
type line struct {
	ID                string   `json:"id"`
	EndpointID        string   `json:"endpoint_id"`
	Method            string   `json:"method"`
	Path              string   `json:"path"`
	QueryString       string   `json:"query_string"`
	Provider          string   `json:"provider"`
	EventType         *string  `json:"event_type"`
	RequestedAt       api.Time `json:"requested_at"`
	TargetURL         *string  `json:"target_url"`
	StatusCode        *int     `json:"status_code"`
	Delivered         bool     `json:"delivered"`
	DurationMS        int64    `json:"duration_ms"`
	FailureCategory   *string  `json:"failure_category"`
	Error             *string  `json:"error"`
	ExitCode          *int     `json:"exit_code,omitempty"`
	Recovered         bool     `json:"recovered"`
	Duplicate         bool     `json:"duplicate,omitempty"`
	Dropped           bool     `json:"dropped,omitempty"`
	Body              *string  `json:"body_base64,omitempty"`
	ResponseBody      *string  `json:"response_body,omitempty"`
	ResponseTruncated bool     `json:"response_truncated,omitempty"`
	Stderr            *string  `json:"stderr,omitempty"`
}

// event writes the line of an event.
func (s *screen) event(d listen.Delivered) {
	switch s.mode {
	case "quiet":
		return
	case "json":
		s.object(d)
		return
	}
	status, colour := "-", ""
	switch {
	case d.Dropped:
		status = "drop"
	case d.TargetURL == "":
	case d.StatusCode == 0:
		status, colour = "ERR", "31"
	default:
		status = fmt.Sprint(d.StatusCode)
		colour = map[int]string{2: "32", 3: "36", 4: "33", 5: "31"}[d.StatusCode/100]
	}
	took := "-"
	if d.TargetURL != "" && !d.Dropped {
		took = milliseconds(d.Took)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %6s  %s  %s", time.Now().Format("15:04:05"), s.paint(colour, fmt.Sprintf("%4s", status)), took, visible(d.Event.ID), visible(d.Event.Method+" "+pathOf(d.Event)))
	if name := eventName(d.Event); name != "" {
		b.WriteString("  " + s.paint("1", visible(name)))
	}
	if d.Target != nil && len(s.targets) > 1 {
		to := place(*d.Target)
		if d.Command {
			to = clipped(to, maxShownCommand)
		}
		b.WriteString("  -> " + to)
	}
	if d.Problem != "" {
		b.WriteString("  " + visible(d.Problem))
	}
	if d.Recovered {
		b.WriteString("  (caught up)")
	}
	if d.Duplicate {
		b.WriteString("  (second time)")
	}
	b.WriteByte('\n')
	if s.bodies {
		b.WriteString(indent("> ", bodyText(d.Event)))
	}
	if s.bodies || d.Command { // always show the output of a command
		b.WriteString(indent("< ", text(d.Body, d.Size, d.Truncated)) + indent("! ", d.Stderr))
	}
	_, err := io.WriteString(s.out, b.String())
	s.wrote(err)
}

// wrote records an error of writing a line: delivery continues, and the command fails in the end.
func (s *screen) wrote(err error) {
	if err != nil && s.lost == nil {
		s.lost = fmt.Errorf("not all events were printed: %w", err)
		s.status("warning: events cannot be printed (" + err.Error() + "); they are delivered all the same")
	}
}

func (s *screen) object(d listen.Delivered) {
	l := line{
		ID: d.Event.ID, EndpointID: d.Event.EndpointID, Method: d.Event.Method, Path: d.Event.Path, QueryString: d.Event.QueryString, Provider: d.Event.DetectedProvider,
		RequestedAt: d.Event.RequestedAt, Delivered: d.OK(), DurationMS: d.Took.Milliseconds(), Recovered: d.Recovered, Duplicate: d.Duplicate, Dropped: d.Dropped,
	}
	if p := d.Event.ProviderEventData; p != nil {
		l.EventType = p.EventType
	}
	if d.TargetURL != "" {
		l.TargetURL = &d.TargetURL
	}
	if d.StatusCode != 0 {
		l.StatusCode = &d.StatusCode
	}
	if d.Failure != "" {
		l.FailureCategory = &d.Failure
	}
	if d.Problem != "" {
		l.Error = &d.Problem
	}
	if d.Command && d.ExitCode >= 0 && d.StatusCode != 0 {
		l.ExitCode = &d.ExitCode
	}
	if d.Stderr != "" {
		l.Stderr = &d.Stderr
	}
	if s.bodies {
		answer := text(d.Body, d.Size, d.Truncated)
		l.Body, l.ResponseBody, l.ResponseTruncated = &d.Event.Body, &answer, d.Truncated
	}
	s.wrote(writeJSON(s.out, l))
}

// ask asks on a terminal whether to deliver missed events.
func (s *screen) ask(ctx context.Context, in io.Reader, n int) bool {
	s.mu.Lock()
	s.clear()
	s.asking = true
	fmt.Fprintf(s.err, "%s missed while nobody listened. Deliver now? [Y/n] ", plural(n, "event was", "events were"))
	if s.typed == nil { // or what is typed would go to the question that the connection took away
		s.typed = typedLine(in)
	}
	typed := s.typed
	s.mu.Unlock()
	said, ok := "", false
	select {
	case said, ok = <-typed:
		typed = nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking, s.typed = false, typed
	s.draw()
	return ok && (said == "" || strings.EqualFold(said, "y") || strings.EqualFold(said, "yes"))
}

// end prints the totals, and returns the error if something was not printed.
func (s *screen) end(sum listen.Summary) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.live = false
	text := fmt.Sprintf("%s in %s: %d delivered, %d failed", plural(sum.Received, "event", "events"), span(sum.Elapsed), sum.Delivered, sum.Failed)
	for _, more := range []struct {
		n    int
		what string
	}{{sum.Shown, "shown only"}, {sum.Filtered, "left out"}, {sum.Waiting, "not delivered any more"}, {sum.Unreported, "not reported"}} {
		if more.n > 0 {
			text += fmt.Sprintf(", %d %s", more.n, more.what)
		}
	}
	if sum.Reconnects > 0 {
		text += ", reconnected " + plural(sum.Reconnects, "time", "times")
	}
	s.status(text)
	if c := sum.Chaos; c != nil {
		s.status(fmt.Sprintf("chaos with seed %d: %s, %d dropped, %d delivered twice, %d overtaken", c.Seed, plural(c.Events, "event", "events"), c.Dropped, c.Duplicated, c.Overtaken))
		s.status(fmt.Sprintf("  answered differently the second time: %d %s", len(c.Differing), strings.Join(c.Differing, " ")))
		s.status(fmt.Sprintf("  refused the second time:              %d %s", len(c.RefusedAgain), strings.Join(c.RefusedAgain, " ")))
	}
	return s.lost
}

// clear removes the lines at the bottom.
func (s *screen) clear() {
	if s.drawn == 0 {
		return
	}
	text := "\r"
	if s.drawn > 1 {
		text += fmt.Sprintf("\x1b[%dA", s.drawn-1)
	}
	fmt.Fprint(s.err, text+"\x1b[J")
	s.drawn = 0
}

// draw draws them.
func (s *screen) draw() {
	if !s.live || s.asking {
		return
	}
	var lines []string
	for i, e := range s.underWay {
		if i == maxUnderWay {
			lines = append(lines, fmt.Sprintf("  ... and %d more", len(s.underWay)-i))
			break
		}
		lines = append(lines, visible(fmt.Sprintf("  ...  %s  %s %s  %s", e.ID, e.Method, pathOf(e), eventName(e))))
	}
	lines = append(lines, fmt.Sprintf("%s, %d delivered, %d failed", s.state, s.delivered, s.failed))
	columns := s.width()
	for i, l := range lines {
		lines[i] = clipped(l, columns-1)
	}
	text := strings.Join(lines, "\n")
	if s.colour {
		text = "\x1b[2m" + strings.Join(lines, "\x1b[0m\n\x1b[2m") + "\x1b[0m"
	}
	fmt.Fprint(s.err, text)
	s.drawn = len(lines)
}

// clipped cuts a line to a number of terminal columns. A longer line would wrap, and would not be removed completely.
func clipped(l string, columns int) string {
	for i, r := range l {
		columns--
		if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
			columns--
		}
		if columns < 0 {
			return l[:i]
		}
	}
	return l
}

func (s *screen) paint(colour, text string) string {
	if !s.colour || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func pathOf(e *api.TunnelRequest) string {
	if e.QueryString != "" {
		return e.Path + "?" + e.QueryString
	}
	return e.Path
}

// eventName returns the provider and the type of an event, as far as known.
func eventName(e *api.TunnelRequest) string {
	name := e.DetectedProvider
	if name == "unknown" {
		name = ""
	}
	if p := e.ProviderEventData; p != nil && p.EventType != nil {
		name += " " + *p.EventType
	}
	return strings.TrimSpace(name)
}

// milliseconds formats a duration briefly.
func milliseconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return fmt.Sprintf("%ds", int(d.Seconds()))
}

// span formats a duration for people: 2m13s.
func span(d time.Duration) string { return d.Round(time.Second).String() }

// plural returns a number with the matching form of its noun.
func plural[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// maxShownBody bounds a displayed body.
const maxShownBody = 2 << 10

func bodyText(e *api.TunnelRequest) string {
	body, err := e.Bytes()
	if err != nil {
		return ""
	}
	return text(body, int64(len(body)), false)
}

// text makes a body safe for a terminal. size is the length of the whole body in bytes; with truncated, body is only
// its beginning.
func text(body []byte, size int64, truncated bool) string {
	if len(body) > maxShownBody {
		body, truncated = body[:maxShownBody], true
	}
	if truncated { // it may end within a character
		for i := 0; i < utf8.UTFMax-1 && !utf8.Valid(body); i++ {
			body = body[:len(body)-1]
		}
	}
	switch {
	case !utf8.Valid(body):
		return "(" + plural(int(size), "byte", "bytes") + ", not text)"
	case truncated:
		return string(body) + " ..."
	}
	return string(body)
}

func indent(mark, body string) string {
	if body == "" {
		return ""
	}
	return "    " + mark + strings.ReplaceAll(visibleLines(indented(strings.TrimSpace(body))), "\n", "\n    "+mark) + "\n"
}
