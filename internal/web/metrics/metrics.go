// Package metrics renders the page of an endpoint's figures. Its charts are drawn on the server. Each has a table with
// the same figures, so that none is shown by colour or length alone.
package metrics

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Files holds the style.
//
//go:embed metrics.css
var Files embed.FS

// windows lists the windows to choose from.
var windows = []layout.Window{
	{Value: "1h", Name: "1 hour"}, {Value: "6h", Name: "6 hours"}, {Value: "24h", Name: "24 hours"},
	{Value: "7d", Name: "7 days"}, {Value: "30d", Name: "30 days"}, {Value: "90d", Name: "90 days"},
}

// DefaultWindow is shown if the address names none.
const DefaultWindow = "24h"

// Model is the content of the page.
type Model struct {
	layout.Frame
	Asked string // the requested window, as written
	Fault string // why the window cannot be shown; then there are no figures
	Part  Part
}

// Part is the part with the figures. It refreshes.
type Part struct {
	Self string // its address
	Mail bool   // an email endpoint: mails have no signature, and a status only by a script
	api.Metrics
}

// Count is a name and its count.
type Count struct {
	Name string
	N    int64
}

// ranked sorts counts, highest first.
func ranked(all map[string]int64) []Count {
	counts := make([]Count, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		counts = append(counts, Count{name, all[name]})
	}
	slices.SortStableFunc(counts, func(a, b Count) int { return cmp.Compare(b.N, a.N) })
	return counts
}

// known drops counts of zero.
func known(all []Count) (some []Count) {
	for _, c := range all {
		if c.N != 0 {
			some = append(some, c)
		}
	}
	return some
}

// shownCounts is how many rows of a breakdown are visible. The others are folded.
const shownCounts = 8

// share returns a part of a whole in percent, as text and as a width.
func share(n, of int64) string {
	if of <= 0 {
		return "0%"
	}
	return strconv.FormatFloat(float64(n)*100/float64(of), 'f', 1, 64) + "%"
}

func total(all []Count) (n int64) {
	for _, c := range all {
		n += c.N
	}
	return n
}

// bar is one step of a chart, in the units of the chart: 10 wide, up to chartHeight high.
type bar struct {
	X, Top, Height    string // of the whole
	PartTop, PartHigh string // of the part at the bottom, which is marked by a pattern
	Label             string
	Whole, Part       int64
}

const (
	chartHeight = 120.0
	stepWidth   = 10
)

// chart draws the total of each step with its marked part.
type chart struct {
	Width     string
	Most      int64 // the top of the scale
	Bars      []bar
	From, To  string
	Sum, Part int64
}

func draw(series []api.MetricsPoint, step string, whole, part func(api.MetricsPoint) int64) chart {
	c := chart{Width: strconv.Itoa(len(series) * stepWidth), Most: 1}
	for _, p := range series {
		c.Most = max(c.Most, whole(p))
		c.Sum += whole(p)
		c.Part += part(p)
	}
	for i, p := range series {
		high := float64(whole(p)) / float64(c.Most) * chartHeight
		if whole(p) > 0 {
			high = max(high, 1.5) // anything above zero is visible
		}
		low := float64(part(p)) / float64(c.Most) * chartHeight
		if part(p) > 0 {
			low = max(low, 1.5)
		}
		c.Bars = append(c.Bars, bar{
			X: strconv.Itoa(i*stepWidth + 1), Top: decimal(chartHeight - high), Height: decimal(high), PartTop: decimal(chartHeight - low), PartHigh: decimal(low),
			Label: moment(p.Time.Time, step), Whole: whole(p), Part: part(p),
		})
	}
	if len(series) > 0 {
		c.From, c.To = moment(series[0].Time.Time, step), moment(series[len(series)-1].Time.Time, step)
	}
	return c
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

// moment formats the start of a step, in UTC like all times of the app.
func moment(t time.Time, step string) string {
	if step != "" && step[len(step)-1] == 'd' {
		return t.UTC().Format("Jan 2")
	}
	return t.UTC().Format("Jan 2 15:04")
}

func volume(m api.Metrics) chart {
	return draw(m.Series, m.Step, func(p api.MetricsPoint) int64 { return p.Count }, func(p api.MetricsPoint) int64 { return p.Ignored })
}

func deliveries(m api.Metrics) chart {
	return draw(m.Series, m.Step, func(p api.MetricsPoint) int64 { return p.Deliveries }, func(p api.MetricsPoint) int64 { return p.DeliveriesFailed })
}

// tells describes a chart in a sentence.
func (c chart) tells(what, part string) string {
	return fmt.Sprintf("%s by time: %s in all, %s of them %s, at most %s in a step.", what, show.Count(c.Sum), show.Count(c.Part), part, show.Count(c.Most))
}

// took formats a duration in milliseconds.
func took(ms *float64) string {
	switch {
	case ms == nil:
		return "–"
	case *ms >= 1000:
		return strconv.FormatFloat(*ms/1000, 'f', 2, 64) + " s"
	case *ms >= 10:
		return strconv.FormatFloat(*ms, 'f', 0, 64) + " ms"
	}
	return strconv.FormatFloat(*ms, 'f', 1, 64) + " ms"
}

func rate(r *float64) string {
	if r == nil {
		return "–"
	}
	return strconv.FormatFloat(*r*100, 'f', 1, 64) + "%"
}

// providerName returns the name of a provider, or a word for requests of unknown senders.
func providerName(id string) string { return cmp.Or(show.Provider(id), "unknown") }

func signatureName(s string) string {
	switch hookglass.SignatureStatus(s) {
	case hookglass.SignatureVerified:
		return "✓ verified"
	case hookglass.SignatureFailed:
		return "✗ failed"
	}
	return "– " + s
}
