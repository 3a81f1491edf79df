// Package alerts renders the pages of an endpoint's alerts: the list, and one alert with its history.
package alerts

import (
	"embed"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/alert"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files holds the style.
//
//go:embed alerts.css
var Files embed.FS

// List is the part of the page with the alerts of an endpoint. It refreshes.
type List struct {
	Endpoint hookglass.EndpointID
	Alerts   []hookglass.Alert
	Channels []hookglass.Channel // of its workspace
	Now      time.Time
}

// Model is the content of the list page.
type Model struct {
	layout.Frame
	List   List
	Notice string
	Form   Form
}

// EditModel is the content of the page of one alert.
type EditModel struct {
	layout.Frame
	Alert    hookglass.Alert
	Channels []hookglass.Channel
	History  History
	Notice   string
	Stale    bool // the alert changed after the form was shown
	Form     Form
}

// History is the part of the page with the incidents of an alert, newest first. It refreshes.
type History struct {
	Self      string // its address
	Alert     hookglass.Alert
	Incidents []hookglass.Incident
	Older     string // the address of the next page; empty: none
	Now       time.Time
}

// Form holds what was typed, and its faults.
type Form struct {
	Name                                                string
	Kind                                                hookglass.AlertKind
	Enabled                                             bool
	ChannelIDs                                          []string
	Window, Threshold, Keyword, Field, Factor, MinCount string
	EventType                                           string
	Seen                                                string // the mark of the stored alert when the form was shown
	Refused                                             string
	Faults                                              []hookglass.FieldError
}

// Blank returns the form of a new alert.
func Blank() Form {
	return Form{Kind: hookglass.AlertMissingWebhook, Enabled: true, Window: "60", Threshold: "5", Field: hookglass.KeywordAny, Factor: "3", MinCount: "10"}
}

// NewForm returns the form of a stored alert.
func NewForm(a hookglass.Alert) Form {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	f := Form{
		Name: a.Name, Kind: a.Kind, Enabled: a.Enabled, ChannelIDs: a.ChannelIDs, Window: number(a.Config.WindowMinutes), Threshold: number(a.Config.Threshold),
		Keyword: a.Config.Keyword, Field: a.Config.Field, Factor: strconv.FormatFloat(a.Config.Factor, 'f', -1, 64), MinCount: number(a.Config.MinCount),
		EventType: a.Config.EventType,
	}
	f.Seen = layout.Mark(f)
	return f
}

// ReadForm reads what was typed. An existing alert keeps its kind.
func ReadForm(v url.Values, kind hookglass.AlertKind) Form {
	get := func(name string) string { return strings.TrimSpace(v.Get(name)) }
	return Form{
		Name: get("name"), Kind: kind, Enabled: v.Get("enabled") == "true", ChannelIDs: v["channels"], Window: get("window_minutes"), Threshold: get("threshold"),
		Keyword: v.Get("keyword"), Field: get("field"), Factor: get("factor"), MinCount: get("min_count"),
		EventType: get("event_type"), Seen: v.Get("seen"),
	}
}

// Draft returns what the form sets. Texts that are not numbers are its faults.
func (f Form) Draft() alert.Draft {
	ids := append([]string{}, f.ChannelIDs...)
	d := alert.Draft{Name: &f.Name, Kind: &f.Kind, Enabled: &f.Enabled, ChannelIDs: &ids, Config: &alert.Settings{}}
	number := func(field, text string) *int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			d.Faults = append(d.Faults, hookglass.FieldError{Field: "alert.config." + field, Message: "must be a whole number"})
		}
		return &n
	}
	if f.Kind != hookglass.AlertKeywordMatch && f.Kind != hookglass.AlertSchemaDrift {
		d.Config.WindowMinutes = number("window_minutes", f.Window)
	}
	switch f.Kind {
	case hookglass.AlertErrorResponse:
		d.Config.Threshold = number("threshold", f.Threshold)
	case hookglass.AlertKeywordMatch:
		d.Config.Keyword = &f.Keyword
		if f.Field != "" {
			d.Config.Field = &f.Field
		}
	case hookglass.AlertSchemaDrift:
		d.Config.EventType = &f.EventType
	case hookglass.AlertVolumeSpike:
		factor, err := strconv.ParseFloat(f.Factor, 64)
		if err != nil {
			d.Faults = append(d.Faults, hookglass.FieldError{Field: "alert.config.factor", Message: "must be a number"})
		}
		d.Config.Factor, d.Config.MinCount = &factor, number("min_count", f.MinCount)
	}
	return d
}

// fault returns what is wrong with a field.
func (f Form) fault(field string) string {
	for _, x := range f.Faults {
		name := strings.TrimPrefix(strings.TrimPrefix(x.Field, "alert."), "config.")
		first, _, _ := strings.Cut(name, ".")
		if first == field {
			return words[field] + " " + x.Message + "."
		}
	}
	return ""
}

var words = map[string]string{
	"name": "The name", "kind": "The kind", "window_minutes": "The window", "threshold": "The number of failed deliveries", "keyword": "The keyword", "field": "The location", "factor": "The factor",
	"min_count": "The minimum", "event_type": "The event type", "channel_ids": "A channel", "alert": "The alert",
}

func (f Form) tells(channel string) bool { return slices.Contains(f.ChannelIDs, channel) }

// kindName returns the name of a kind.
func kindName(k hookglass.AlertKind) string {
	switch k {
	case hookglass.AlertMissingWebhook:
		return "Missing webhook"
	case hookglass.AlertErrorResponse:
		return "Error responses"
	case hookglass.AlertKeywordMatch:
		return "Keyword match"
	case hookglass.AlertSchemaDrift:
		return "Schema drift"
	}
	return "Volume spike"
}

// watches describes what an alert watches for, in a sentence.
func watches(a hookglass.Alert) string {
	c := a.Config
	switch a.Kind {
	case hookglass.AlertMissingWebhook:
		return "Nothing arrives for " + show.Plural(c.WindowMinutes, "minute") + "."
	case hookglass.AlertErrorResponse:
		return show.Count(c.Threshold) + " or more deliveries fail or get a status of 400 or above within " + show.Plural(c.WindowMinutes, "minute") + "."
	case hookglass.AlertKeywordMatch:
		where := "anywhere"
		if c.Field != hookglass.KeywordAny {
			where = "in " + c.Field
		}
		return fmt.Sprintf("%q appears %s.", show.Line(c.Keyword), show.Line(where))
	case hookglass.AlertSchemaDrift:
		of := "any event type"
		if c.EventType != "" {
			of = show.Line(c.EventType)
		}
		return "Bodies of " + of + " differ from the accepted schema."
	}
	return fmt.Sprintf("At least %s arrive within %s, and more than %s times the average before.",
		show.Plural(c.MinCount, "request"), show.Plural(c.WindowMinutes, "minute"), strconv.FormatFloat(c.Factor, 'f', -1, 64))
}

// state returns the state of an alert, and the class of its badge.
func state(a hookglass.Alert) (word, class string) {
	switch {
	case !a.Enabled:
		return "disabled", "badge"
	case a.State == hookglass.AlertTriggered:
		return "triggered", "badge bad"
	}
	return "ok", "badge good"
}

// Rank orders alerts by how much they matter now: what is triggered is at the top, what is disabled at the end.
func Rank(a hookglass.Alert) int {
	switch {
	case !a.Enabled:
		return 2
	case a.State == hookglass.AlertTriggered:
		return 0
	}
	return 1
}

// told returns the names of the channels of an alert.
func told(a hookglass.Alert, channels []hookglass.Channel) string {
	var names []string
	for _, c := range channels {
		if slices.Contains(a.ChannelIDs, c.ID) {
			names = append(names, show.Line(c.Name))
		}
	}
	return strings.Join(names, ", ")
}

func (l List) path(below string) string {
	return "/endpoints/" + string(l.Endpoint) + "/alerts" + below
}

func path(a hookglass.Alert, below string) string {
	return "/endpoints/" + string(a.EndpointID) + "/alerts/" + a.ID + below
}

// lasted returns the duration of an incident.
func lasted(i hookglass.Incident) string {
	d := i.ResolvedAt.Sub(i.StartedAt)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// say lists the triggered alerts. It is announced to screen readers when it changes.
func (l List) say() string {
	var names []string
	for _, a := range l.Alerts {
		if a.Enabled && a.State == hookglass.AlertTriggered {
			names = append(names, a.Name)
		}
	}
	if len(names) == 0 {
		return "No alerts are triggered"
	}
	return "Triggered: " + show.Line(strings.Join(names, ", "))
}
