// Package activity is the page of the account's feed.
package activity

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/web/inspector"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files is the style.
//
//go:embed activity.css
var Files embed.FS

// Model is what the page shows.
type Model struct {
	layout.Frame
	Filter Filter
	Fault  string // why it cannot be shown; then there is no feed
	Feed   Feed
}

// Filter is what a visitor asked for, as they spelled it.
type Filter struct{ Since, Limit, Type string }

// Feed is the newest lines, a part that is kept fresh.
type Feed struct {
	Self      string // its address
	Lines     []hookglass.Activity
	Names     map[hookglass.EndpointID]string // of endpoints
	Limit     int
	Now       time.Time
	NextOlder bool // as many as were asked for: there may be more
}

// Choice is what a filter offers, and what it is called.
type Choice struct{ Value, Name string }

// Since, Limits and Types are what the filters offer. The first of each is taken when none is asked for.
var (
	Since  = []Choice{{"24h", "Last 24 hours"}, {"1h", "Last hour"}, {"7d", "Last 7 days"}, {"30d", "Last 30 days"}}
	Limits = []Choice{{"50", "50"}, {"25", "25"}, {"100", "100"}, {"200", "200"}}
	Types  = []Choice{
		{"", "All types"}, {string(hookglass.ActivityWebhookReceived), "Webhook received"}, {string(hookglass.ActivityEmailReceived), "Email received"},
		{string(hookglass.ActivityForwardingFailed), "Forwarding failed"}, {string(hookglass.ActivityAlertTriggered), "Alert triggered"},
	}
)

// offered returns the choices, including the current one, which may be another.
func offered(all []Choice, made string) []Choice {
	if slices.ContainsFunc(all, func(c Choice) bool { return c.Value == made }) {
		return all
	}
	return append([]Choice{{made, show.Line(made)}}, all...)
}

func (f Feed) name(id hookglass.EndpointID) string {
	return show.Line(cmp.Or(f.Names[id], string(id)))
}

// title returns a short title for a kind of activity, and the class of its mark.
func title(t hookglass.ActivityType) (words, class string) {
	switch t {
	case hookglass.ActivityWebhookReceived:
		return "Webhook", "badge good"
	case hookglass.ActivityEmailReceived:
		return "Email", "badge activity-mail"
	case hookglass.ActivityForwardingFailed:
		return "Forwarding failed", "badge bad"
	case hookglass.ActivityAlertTriggered:
		return "Alert triggered", "badge activity-alert"
	}
	return string(t), "badge"
}

// tells describes a line in a sentence, which may contain a sender's text.
func tells(a hookglass.Activity) string {
	text := func(name string) string { return words(a.Data[name]) }
	switch a.Type {
	case hookglass.ActivityWebhookReceived:
		return request(a.Captured)
	case hookglass.ActivityEmailReceived:
		subject := cmp.Or(short(text("subject")), "(no subject)")
		if from := text("from"); from != "" { // a bounce has none
			subject += " from " + short(from)
		}
		return show.Line(subject)
	case hookglass.ActivityForwardingFailed:
		why := "it responded " + text("status_code")
		if e, ok := a.Data["error"].(map[string]any); ok {
			why = words(e["message"])
		}
		what := "To "
		if a.Captured != nil { // else it was deleted
			what = request(a.Captured) + ", to "
		}
		return what + show.Line(fmt.Sprintf("%s after %s: %s", text("url_host"), attempts(text("attempts")), why))
	case hookglass.ActivityAlertTriggered:
		return show.Line(text("name") + ": " + text("summary"))
	}
	return ""
}

// request names a request. Most senders send everything to one path, so its event type is told as well.
func request(e *hookglass.Event) string {
	title := inspector.Title(e)
	if e.Type == hookglass.EventEmail {
		return short(title)
	}
	called := e.Method + " " + short(title)
	if kind := show.Line(e.EventType); kind != "" && kind != title {
		called += " · " + short(kind)
	}
	if p := show.Provider(e.Provider); p != "" {
		called += " · " + p
	}
	return called
}

// short shortens a sender's text to enough to recognise a request, so that it does not crowd out other lines.
func short(text string) string { return show.Short(text, 200) }

func attempts(n string) string {
	if n == "1" {
		return "1 attempt"
	}
	return n + " attempts"
}

// words returns a member of a line's data as text. Stored lines have JSON values, new ones Go values.
func words(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case []string:
		return strings.Join(v, ", ")
	}
	return fmt.Sprint(value)
}

// leads returns the link of a line: its request, its alert, or its endpoint.
func leads(a hookglass.Activity) string {
	base := "/endpoints/" + string(a.EndpointID)
	if a.EventID != "" {
		return base + "/requests/" + string(a.EventID)
	}
	if id := words(a.Data["alert_id"]); id != "" {
		return base + "/alerts/" + id
	}
	return base
}

// mark identifies a line, so that the focus stays on it when newer ones arrive.
func mark(a hookglass.Activity) string {
	return strings.ReplaceAll(string(a.Type), ".", "-") + "-" + strconv.FormatInt(a.OccurredAt.UnixMicro(), 36) + "-" + string(a.EventID)
}

// say returns what is announced on a change: the newest line.
func (f Feed) say() string {
	if len(f.Lines) == 0 {
		return "No activity"
	}
	newest := f.Lines[0]
	what, _ := title(newest.Type)
	return what + ": " + tells(newest)
}
