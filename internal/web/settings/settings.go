// Package settings renders the page on which an endpoint is changed and deleted: its name, its response to senders, its
// signature configs and its forwarding targets.
package settings

import (
	"embed"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/provider"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files holds the style.
//
//go:embed settings.css
var Files embed.FS

// Model is the content of the page.
type Model struct {
	layout.Frame
	Endpoint hookglass.Endpoint
	Notice   string // what was done
	NoticeAt string // in which part of the page
	General  General
	Answer   Answer
	Script   Script // of an email endpoint
	Rules    Rules
	Preview  *Preview            // nil: not asked for
	Tried    *capture.TriedRules // nil: not asked for
	Configs  []hookglass.SignatureConfig
	Config   NewConfig
	Targets  []Target
	Target   NewTarget // as typed, if the faults belong to its form
	Faults   []hookglass.FieldError
	FaultAt  string // the form of the faults: a part of the page, or the form of a config or target
	Unsaved  string // the part that shows what was typed and is stored nowhere; empty: none
	Stale    string // the part or target that changed after its form was shown; empty: none
	Now      time.Time

	OnlyOwn string // why secrets of other senders are refused; empty: they are not
	Unpaid  string // why forwarding is refused; empty: it is not
}

// General is the first form, as stored or as typed.
type General struct {
	Name, CustomID, Provider string
	Enabled, Handshake       bool
	Tunnel                   bool   // the connected local machine responds to senders
	Seen                     string // the mark of the stored state when the form was shown
}

// GeneralOf returns the form of a stored endpoint.
func GeneralOf(e hookglass.Endpoint) General {
	g := General{
		Name: e.Name, CustomID: e.CustomID, Provider: e.Provider,
		Enabled: e.Enabled, Handshake: e.ProviderConfig.Handshakes(), Tunnel: e.ProviderConfig.ResponseMode == hookglass.ResponseTunnel,
	}
	g.Seen = layout.Mark(g)
	return g
}

// Answer is the form of a custom response.
type Answer struct {
	Custom                       bool
	Status, Headers, Body, Delay string
	Seen                         string // as in General
}

// Same reports whether both say the same.
func (a Answer) Same(b Answer) bool {
	a.Custom, a.Seen = b.Custom, b.Seen
	return a == b
}

// AnswerOf returns the form of a stored response, or of a new one if r is nil.
func AnswerOf(r *hookglass.Response) Answer {
	if r == nil {
		a := Answer{Status: "200", Headers: "Content-Type: application/json\n", Body: "{\"received\":true}", Delay: "0"}
		a.Seen = layout.Mark(a)
		return a
	}
	var headers strings.Builder
	for _, name := range sorted(r.Headers) {
		headers.WriteString(name + ": " + r.Headers[name] + "\n")
	}
	a := Answer{Custom: true, Status: itoa(int64(r.Status)), Headers: headers.String(), Body: r.Body, Delay: itoa(r.Delay.Milliseconds())}
	a.Seen = layout.Mark(a)
	return a
}

// Script is the form of an email endpoint's script of answers.
type Script struct {
	Text string
	Seen string // as of General
}

// ScriptOf fills the form with the stored script.
func ScriptOf(e hookglass.Endpoint) Script {
	return Script{Text: e.ResponseScript, Seen: layout.Mark(e.ResponseScript)}
}

// Preview is a response as a sender would get it.
type Preview struct {
	Reply *hookglass.Reply
	To    string // the request that it answers
}

// NewConfig is the form of a new signature config as typed, without the secret.
type NewConfig struct {
	Provider  string
	Options   hookglass.GenericOptions
	Tolerance string // seconds
}

// Target is a forwarding target with its recent deliveries.
type Target struct {
	hookglass.ForwardingTarget
	Deliveries []hookglass.Forward
	Failed     []hookglass.Forward // the most recent failures
	AllFailed  int                 // how many failed, up to MostFailed
	Backlog    hookglass.ForwardBacklog
}

// MostFailed is where the count of failed deliveries stops.
const MostFailed = 1000

// failed returns the number of failed deliveries.
func (t Target) failed() string {
	if t.AllFailed == MostFailed {
		return itoa(MostFailed) + " or more"
	}
	return itoa(int64(t.AllFailed))
}

// waiting says how many deliveries wait and for what. The caller appends the time, if there is one.
func (t Target) waiting() string {
	text := itoa(int64(t.Backlog.Pending)) + " deliveries are waiting"
	switch t.Backlog.Pending {
	case 1:
		text = "1 delivery is waiting"
	case hookglass.MostPending:
		text = itoa(hookglass.MostPending) + " or more deliveries are waiting"
	}
	switch {
	case !t.Backlog.Until.IsZero():
		return text + "; the last is sent at the earliest at"
	case t.Enabled:
		return text + " for the target to be resumed."
	}
	return text + "."
}

// once says what the target does with duplicates.
func (t Target) once() string {
	return " within " + show.Span(t.Dedupe.Window) + " is sent once"
}

// resendable reports whether a delivery can be sent again.
func (t Target) resendable(d hookglass.Forward) bool {
	put, err := d.Resend()
	return t.Enabled && put && err == nil
}

// NewTarget is the form of a forwarding target, as typed.
type NewTarget struct {
	Name, URL, When       string
	Headers               string   // one a line; a value that is not shown stands as [hookglass.Redacted]
	Withheld              []string // names of the headers whose typed values do not come back; empty: a line that is no header
	Timeout, Retries      string
	RateLimit, RatePeriod string
	DedupeBy              string
	DedupeSeconds         string
	Seen                  string // as in General; empty for a new target
}

// TargetOf returns the form of a stored target.
func TargetOf(t hookglass.ForwardingTarget) NewTarget {
	form := NewTarget{Name: t.Name, URL: t.URL, When: t.When, Timeout: itoa(int64(t.Timeout / time.Second)), Retries: itoa(int64(t.RetryCount)), RatePeriod: t.Rate.PeriodName()}
	for _, name := range t.HeaderNames {
		form.Headers += name + ": " + hookglass.Redacted + "\n"
	}
	if t.Rate.Bounded() {
		form.RateLimit = itoa(int64(t.Rate.Limit))
	}
	if t.Dedupe.On() {
		form.DedupeBy, form.DedupeSeconds = string(t.Dedupe.By), itoa(int64(t.Dedupe.Window/time.Second))
	}
	form.Seen = layout.Mark(form)
	return form
}

// Parts lists the parts of the page that have forms.
var Parts = []string{"general", "response", "rules", "signatures", "forwarding"}

// StaleTarget says that a forwarding target changed after its form was shown.
func (m *Model) StaleTarget(id int64) { m.AtTarget(id); m.Stale = m.FaultAt }

// AtConfig and AtTarget assign the faults to the form of a signature config or a forwarding target.
func (m *Model) AtConfig(id int64) { m.FaultAt = configForm(id) }
func (m *Model) AtTarget(id int64) { m.FaultAt = targetForm(id) }

func configForm(id int64) string { return "config-" + itoa(id) }
func targetForm(id int64) string { return "target-" + itoa(id) }

// typed returns the form of an existing target, as stored or as typed.
func (m Model) typed(t Target) NewTarget {
	if m.FaultAt == targetForm(t.ID) {
		return m.Target
	}
	return TargetOf(t.ForwardingTarget)
}

// again says which of the typed headers have to be typed again.
func (t NewTarget) again() (text string) {
	names := slices.DeleteFunc(slices.Clone(t.Withheld), func(name string) bool { return name == "" })
	if len(names) > 0 {
		text = "Type the value of " + strings.Join(names, ", ") + " again: it may be a secret, so it is not shown. "
	}
	if len(names) < len(t.Withheld) {
		text += "A line without a colon was left out, because it may be one."
	}
	return strings.TrimSpace(text)
}

// hints returns the ids of what describes the field of headers.
func (t NewTarget) hints(form string) []string {
	if t.again() == "" {
		return nil
	}
	return []string{form + "-headers-again"}
}

// Signer guesses the provider of the next secret: the endpoint's own provider, else the one of the newest request, if
// it signs and has no secret here yet. It is empty if there is no guess.
func Signer(e hookglass.Endpoint, configs []hookglass.SignatureConfig, newest []*hookglass.Event) string {
	likely := []string{e.Provider}
	for _, event := range newest {
		likely = append(likely, event.Provider)
	}
	for _, id := range likely {
		signs := slices.ContainsFunc(verifiable(), func(p provider.Info) bool { return p.ID == id })
		if signs && !slices.ContainsFunc(configs, func(c hookglass.SignatureConfig) bool { return c.Provider == id }) {
			return id
		}
	}
	return ""
}

// blank returns the form of a new target.
func (m Model) blank() NewTarget {
	if m.FaultAt == "forwarding" {
		return m.Target
	}
	return NewTarget{Timeout: "30", Retries: "3"}
}

// notice returns the notice for a part of the page.
func (m Model) notice(part string) string {
	if m.NoticeAt != part {
		return ""
	}
	return m.Notice
}

func (m Model) path(below string) string { return "/endpoints/" + string(m.Endpoint.ID) + below }

// fault returns what is wrong with a field of a form.
func (m Model) fault(form, field string) string {
	if m.FaultAt != form {
		return ""
	}
	for _, f := range m.Faults {
		if f.Field == field || strings.HasSuffix(f.Field, "."+field) {
			return show.Fault(field, f.Message)
		}
	}
	return ""
}

// rest returns the faults of a form that none of the given fields shows.
func (m Model) rest(form string, fields ...string) string {
	if m.FaultAt != form {
		return ""
	}
	for _, f := range m.Faults {
		known := false
		for _, field := range fields {
			known = known || f.Field == field || strings.HasSuffix(f.Field, "."+field)
		}
		switch {
		case f.Field == "": // the form as a whole, which the message is about
			return f.Message
		case !known:
			return show.Fault(f.Field, f.Message)
		}
	}
	return ""
}

// verifiable returns the providers whose signatures can be verified.
func verifiable() []provider.Info {
	var all []provider.Info
	for _, p := range provider.Providers() {
		if p.Verifiable {
			all = append(all, p)
		}
	}
	return all
}
