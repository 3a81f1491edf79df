// Package settings is the page on which an endpoint is changed and deleted: what it is called, what its senders are
// answered, which signatures are checked, where its events go on to.
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

// Files is the style.
//
//go:embed settings.css
var Files embed.FS

// Model is what the page shows.
type Model struct {
	layout.Frame
	Endpoint hookglass.Endpoint
	Address  string
	Notice   string // what was done
	NoticeAt string // in which part of the page
	General  General
	Answer   Answer
	Rules    Rules
	Preview  *Preview            // nil: none was asked for
	Tried    *capture.TriedRules // nil: not asked for
	Configs  []hookglass.SignatureConfig
	Config   NewConfig
	Targets  []Target
	Target   NewTarget // as typed in the form that the faults are of
	Faults   []hookglass.FieldError
	FaultAt  string // which form the faults are of: a part of the page, or that of a config or target
	Stale    string // the part or target of which what is stored was changed since its form was shown; empty: none
	Now      time.Time
}

// General is the first form, as it is or as it was typed.
type General struct {
	Name, CustomID, Provider string
	Enabled, Handshake       bool
	Tunnel                   bool   // the answer comes from the connected local machine
	Seen                     string // the mark of what was stored when the form was shown
}

// GeneralOf is the form of an endpoint as it is.
func GeneralOf(e hookglass.Endpoint) General {
	g := General{
		Name: e.Name, CustomID: e.CustomID, Provider: e.Provider,
		Enabled: e.Enabled, Handshake: e.ProviderConfig.Handshakes(), Tunnel: e.ProviderConfig.ResponseMode == hookglass.ResponseTunnel,
	}
	g.Seen = layout.Mark(g)
	return g
}

// Answer is the form of the endpoint's own answer.
type Answer struct {
	Custom                       bool
	Status, Headers, Body, Delay string
	Seen                         string // as of General
}

// AnswerOf is the form of an answer as it is; of none, what to begin with.
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

// Preview is an answer as a sender would get it.
type Preview struct {
	Reply *hookglass.Reply
	To    string // the request that it answers
}

// NewConfig is the form of a new signature config, as typed. The secret is never shown again.
type NewConfig struct {
	Provider  string
	Options   hookglass.GenericOptions
	Tolerance string // seconds
}

// Target is a forwarding target with its last deliveries.
type Target struct {
	hookglass.ForwardingTarget
	Deliveries []hookglass.Forward
	Failed     []hookglass.Forward // the last of those that failed
	AllFailed  int                 // how many failed, MostFailed at most
	Backlog    hookglass.ForwardBacklog
}

// MostFailed is up to how many deliveries that failed are counted.
const MostFailed = 1000

// failed is how many deliveries have failed.
func (t Target) failed() string {
	if t.AllFailed == MostFailed {
		return itoa(MostFailed) + " or more"
	}
	return itoa(int64(t.AllFailed))
}

// waiting says how many deliveries wait and until when; the time itself follows where there is one.
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

// resendable reports whether a delivery can be sent again.
func (t Target) resendable(d hookglass.Forward) bool {
	put, err := d.Resend()
	return t.Enabled && put && err == nil
}

// NewTarget is the form of a forwarding target, as typed.
type NewTarget struct {
	Name, URL, When       string
	Timeout, Retries      string
	RateLimit, RatePeriod string
	Seen                  string // as of General; empty for one that is not there yet
}

// TargetOf is the form of a target as it is.
func TargetOf(t hookglass.ForwardingTarget) NewTarget {
	form := NewTarget{Name: t.Name, URL: t.URL, When: t.When, Timeout: itoa(int64(t.Timeout / time.Second)), Retries: itoa(int64(t.RetryCount)), RatePeriod: t.Rate.PeriodName()}
	if t.Rate.Bounded() {
		form.RateLimit = itoa(int64(t.Rate.Limit))
	}
	form.Seen = layout.Mark(form)
	return form
}

// Parts are the parts of the page that have forms.
var Parts = []string{"general", "response", "rules", "signatures", "forwarding"}

// StaleTarget says that a forwarding target was changed since its form was shown.
func (m *Model) StaleTarget(id int64) { m.AtTarget(id); m.Stale = m.FaultAt }

// AtConfig and AtTarget say that faults are of the form that changes a signature config or a forwarding target.
func (m *Model) AtConfig(id int64) { m.FaultAt = configForm(id) }
func (m *Model) AtTarget(id int64) { m.FaultAt = targetForm(id) }

func configForm(id int64) string { return "config-" + itoa(id) }
func targetForm(id int64) string { return "target-" + itoa(id) }

// typed is the form of a target that is there, as it is or as it was typed.
func (m Model) typed(t Target) NewTarget {
	if m.FaultAt == targetForm(t.ID) {
		return m.Target
	}
	return TargetOf(t.ForwardingTarget)
}

// Signer is the provider whose secret is most likely the next to be given: the endpoint's own, else that of the newest
// request, of those that sign and have no secret here yet. It is empty where there is none, and has to be chosen.
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

// blank is the form of a target that is not there yet.
func (m Model) blank() NewTarget {
	if m.FaultAt == "forwarding" {
		return m.Target
	}
	return NewTarget{Timeout: "30", Retries: "3"}
}

// notice is what was done in a part of the page.
func (m Model) notice(part string) string {
	if m.NoticeAt != part {
		return ""
	}
	return m.Notice
}

func (m Model) path(below string) string { return "/endpoints/" + string(m.Endpoint.ID) + below }

// fault says what is wrong with a field of a form.
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

// rest says what is wrong with a form apart from the fields that say it themselves.
func (m Model) rest(form string, fields ...string) string {
	if m.FaultAt != form {
		return ""
	}
	for _, f := range m.Faults {
		known := false
		for _, field := range fields {
			known = known || f.Field == field || strings.HasSuffix(f.Field, "."+field)
		}
		if !known {
			return show.Fault(f.Field, f.Message)
		}
	}
	return ""
}

// verifiable are the providers whose signatures can be checked.
func verifiable() []provider.Info {
	var all []provider.Info
	for _, p := range provider.Providers() {
		if p.Verifiable {
			all = append(all, p)
		}
	}
	return all
}
