package main

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Sizes of a plot in pixels.
const (
	plotWidth  = 860
	plotHeight = 400
	barHeight  = 20
)

// plotFrame is the start of a plot: its size, its name for who cannot see it, and its colours in the light and in the
// dark.
const plotFrame = `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%[3]s">
<style>
text{font:13px system-ui,sans-serif;fill:#24292f}.title{font-weight:600;font-size:15px}.quiet{fill:#57606a}.grid{stroke:#d0d7de;stroke-width:1}
.c0{--c:#8c959f}.c1{--c:#0969da}.c2{--c:#54aeff}.c3{--c:#1a7f37}.c4{--c:#4ac26b}.c5{--c:#bc4c00}.c6{--c:#8250df}.c7{--c:#bf3989}
rect{fill:var(--c)}polyline{fill:none;stroke:var(--c);stroke-width:2}circle,.key{fill:var(--c)}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.quiet{fill:#9198a1}.grid{stroke:#3d444d}}
</style>
<text class="title" x="16" y="26">%[3]s</text>
`

// colours is how many of the classes c0, c1 and so on there are.
const colours = 8

// bar is one value of a bar plot, with the words that stand at its end.
type bar struct {
	group, name, words string
	value              float64
}

// barPlot draws the bars below each other, in the order in which they come, and names a group before its first.
func barPlot(title string, bars []bar) string {
	var longest float64
	var names []string
	for _, b := range bars {
		longest = max(longest, b.value)
		if !slices.Contains(names, b.name) {
			names = append(names, b.name)
		}
	}
	var s strings.Builder
	y, group := 44, ""
	for _, b := range bars {
		if b.group != group {
			group = b.group
			y += 10
			fmt.Fprintf(&s, "<text class=\"quiet\" x=\"16\" y=\"%d\">%s</text>\n", y+14, html.EscapeString(group))
			y += barHeight
		}
		fmt.Fprintf(&s, "<text x=\"16\" y=\"%d\">%s</text><rect class=\"c%d\" x=\"250\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"2\"/><text x=\"%.1f\" y=\"%d\">%s</text>\n",
			y+15, html.EscapeString(b.name), slices.Index(names, b.name)%colours, y+2, 420*b.value/longest, barHeight-4,
			258+420*b.value/longest, y+15, html.EscapeString(b.words))
		y += barHeight
	}
	return fmt.Sprintf(plotFrame, plotWidth, y+16, html.EscapeString(title)) + s.String() + "</svg>\n"
}

// line is one row of a line plot: values, each above the number that it belongs to.
type line struct {
	name   string
	values map[int]time.Duration
}

// linePlot draws times over numbers, both on logarithmic scales.
func linePlot(title string, lines []line) string {
	const left, top, width, height = 80, 50, 440, plotHeight - 100
	var numbers []int
	least, most := math.Inf(1), math.Inf(-1)
	for _, l := range lines {
		for n, d := range l.values {
			if !slices.Contains(numbers, n) {
				numbers = append(numbers, n)
			}
			least, most = min(least, math.Log10(float64(d))), max(most, math.Log10(float64(d)))
		}
	}
	slices.Sort(numbers)
	least, most = math.Floor(least), math.Ceil(most)
	x := func(n int) float64 {
		first, last := math.Log10(float64(numbers[0])), math.Log10(float64(numbers[len(numbers)-1]))
		if first == last {
			return left
		}
		return left + width*(math.Log10(float64(n))-first)/(last-first)
	}
	y := func(log float64) float64 { return top + height*(most-log)/max(1, most-least) }

	var s strings.Builder
	for log := least; log <= most; log++ {
		fmt.Fprintf(&s, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"quiet\" x=\"16\" y=\"%.1f\">%s</text>\n",
			left, y(log), left+width, y(log)+4, time.Duration(math.Pow(10, log)).Round(time.Microsecond))
	}
	for _, n := range numbers {
		fmt.Fprintf(&s, "<text class=\"quiet\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x(n), top+height+24, thousands(int64(n)))
	}
	fmt.Fprintf(&s, "<text class=\"quiet\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">events stored</text>\n", left+width/2, top+height+44)
	for i, l := range lines {
		var points strings.Builder
		for _, n := range numbers {
			if d, measured := l.values[n]; measured {
				at := y(math.Log10(float64(d)))
				fmt.Fprintf(&points, "%.1f,%.1f ", x(n), at)
				fmt.Fprintf(&s, "<circle class=\"c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>", i%colours, x(n), at)
			}
		}
		fmt.Fprintf(&s, "<polyline class=\"c%d\" points=\"%s\"/>", i%colours, strings.TrimSpace(points.String()))
		fmt.Fprintf(&s, "<circle class=\"c%d\" cx=\"%d\" cy=\"%d\" r=\"5\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
			i%colours, left+width+24, top+10+22*i, left+width+36, top+14+22*i, html.EscapeString(l.name))
	}
	return fmt.Sprintf(plotFrame, plotWidth, plotHeight, html.EscapeString(title)) + s.String() + "</svg>\n"
}

// plotFile is where a plot lies beside the report, and what the report refers to it by.
func plotFile(name string) string { return "images/bench-" + name + ".svg" }

// plots draws what was measured, by the name of the plot.
func (r *report) plots() map[string]string {
	drawn := make(map[string]string)
	if len(r.captures) > 0 {
		var bars []bar
		for _, c := range r.captures {
			bars = append(bars, bar{
				group: fmt.Sprintf("%d connections", c.conns), name: c.system, value: c.ratio,
				words: fmt.Sprintf("%.2f  (%s a second)", c.ratio, thousands(int64(c.perSecond))),
			})
		}
		drawn["capture"] = barPlot("Captures, as a share of a server that stores nothing", bars)
	}
	for _, database := range r.plan.databases {
		if lines := r.growth(database); len(lines) > 0 {
			drawn["reads-"+database] = linePlot("Lists and searches on "+title(database)+", by the number of events", lines)
		}
	}
	return drawn
}

// growth is how the times of one database's lists and searches grow with what it holds.
func (r *report) growth(database string) []line {
	var lines []line
	for _, row := range r.reads {
		if row.database != database || row.problem != "" {
			continue
		}
		i := slices.IndexFunc(lines, func(l line) bool { return l.name == row.what })
		if i < 0 {
			i = len(lines)
			lines = append(lines, line{name: row.what, values: make(map[int]time.Duration)})
		}
		lines[i].values[row.events] = row.median
	}
	// Lines of one point show nothing, and more than there are colours cannot be told apart.
	lines = slices.DeleteFunc(lines, func(l line) bool { return len(l.values) < 2 })
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(len(b.values), len(a.values)) })
	return lines[:min(len(lines), colours)]
}

// writePlots writes the plots beside the report's file.
func (r *report) writePlots(file string) error {
	var errs []error
	for name, svg := range r.plots() {
		path := filepath.Join(filepath.Dir(file), filepath.FromSlash(plotFile(name)))
		errs = append(errs, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(svg), 0o644))
	}
	return errors.Join(errs...)
}
