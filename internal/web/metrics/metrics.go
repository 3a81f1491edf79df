// Package metrics is the page of an endpoint's figures. Its charts are drawn on the server, and each has its figures
// beside it as a table: no figure is told by a colour or a length alone.
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

// Files is the style.
//
//go:embed metrics.css
var Files embed.FS

// Windows are the windows that the page offers, and what they are called.
var Windows = []struct{ Window, Name string }{
	{"1h", "Last hour"}, {"6h", "Last 6 hours"}, {"24h", "Last 24 hours"}, {"7d", "Last 7 days"}, {"30d", "Last 30 days"}, {"90d", "Last 90 days"},
}

// DefaultWindow is the one that is shown when none is asked for.
const DefaultWindow = "24h"

// Model is what the page shows.
type Model struct {
	layout.Frame
	Asked string // the window as it was asked for
	Fault string // why it cannot be shown; then there are no figures
	Part  Part
}

// Part is the figures, a part that is kept fresh.
type Part struct {
	Self string // its address
	Mail bool   // of an email endpoint: its mails have no status and no signature
	api.Metrics
}

// Count is a name and how many there were of it.
type Count struct {
	Name string
	N    int64
}

// ranked are counts, the most frequent first.
func ranked(all map[string]int64) []Count {
	counts := make([]Count, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		counts = append(counts, Count{name, all[name]})
	}
	slices.SortStableFunc(counts, func(a, b Count) int { return cmp.Compare(b.N, a.N) })
	return counts
}

// known are counts of what is there.
func known(all []Count) (some []Count) {
	for _, c := range all {
		if c.N != 0 {
			some = append(some, c)
		}
	}
	return some
}

// shownCounts is how many rows of a breakdown stand open; the others are behind a summary.
const shownCounts = 8

// share is a part of a whole in percent, for a width and for a person.
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

// bar is one step of a chart, in the units of its picture: 10 by step, chartHeight in all.
type bar struct {
	X, Top, Height     string // of the whole
	PartTop, PartHigh  string // of the part below, that is marked by a pattern
	Label              string
	Whole, Part, Bytes int64
}

const (
	chartHeight = 120.0
	stepWidth   = 10
)

// chart draws whole by step and, in each, the part that is marked.
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
			high = max(high, 1.5) // what is there is seen
		}
		low := float64(part(p)) / float64(c.Most) * chartHeight
		if part(p) > 0 {
			low = max(low, 1.5)
		}
		c.Bars = append(c.Bars, bar{
			X: strconv.Itoa(i*stepWidth + 1), Top: decimal(chartHeight - high), Height: decimal(high), PartTop: decimal(chartHeight - low), PartHigh: decimal(low),
			Label: moment(p.Time.Time, step), Whole: whole(p), Part: part(p), Bytes: p.Bytes,
		})
	}
	if len(series) > 0 {
		c.From, c.To = moment(series[0].Time.Time, step), moment(series[len(series)-1].Time.Time, step)
	}
	return c
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

// moment is when a step begins, in UTC as all times of the app.
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

// tells is a chart in a sentence.
func (c chart) tells(what, part string) string {
	return fmt.Sprintf("%s by time: %s in all, %s of them %s, at most %s in a step.", what, show.Count(c.Sum), show.Count(c.Part), part, show.Count(c.Most))
}

// took is a time in milliseconds.
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

// providerName is how a provider is called; requests of none that is known are called so.
func providerName(id string) string {
	if name := show.Provider(id); name != "" {
		return name
	}
	return "unknown"
}

func signatureName(s string) string {
	switch hookglass.SignatureStatus(s) {
	case hookglass.SignatureVerified:
		return "✓ verified"
	case hookglass.SignatureFailed:
		return "✗ failed"
	}
	return "– " + s
}

func same(s string) string { return show.Line(s) }
