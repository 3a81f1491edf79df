package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"hookglass/api"
	"hookglass/internal/server"
)

// MetricsCmd is `hookglass metrics`.
type MetricsCmd struct {
	remote
	ofEndpoint
	Window string `placeholder:"TIME" help:"How far back: a number and m, h or d, up to 90d; default 24h."`
	Step   string `placeholder:"TIME" help:"The length of a step; default one that gives about 24."`
}

func (c *MetricsCmd) Run(ctx context.Context, t *server.Terminal) error {
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	m, err := from.Metrics(ctx, c.Endpoint, c.Window, c.Step)
	if err != nil {
		return err
	}
	return c.print(t, api.One[api.Metrics]{Data: m}, func(w io.Writer) { printMetrics(w, m) })
}

func printMetrics(w io.Writer, m api.Metrics) {
	rows := [][]string{
		{"Events", fmt.Sprintf("%d, %d of them ignored", m.Total, m.Ignored)},
		{"Bytes", strconv.FormatInt(m.Bytes, 10)},
		{"Providers", tally(m.ByProvider)},
		{"Event types", tally(m.ByEventType)},
		{"Answered", tally(m.ByStatus)},
		{"Signatures", tally(m.BySignature)},
		{"Forwarded", deliveries(m.Forwarding)},
		{"Tunnel", deliveries(m.Tunnel)},
		{"Action runs", tally(m.Actions.RunsByStatus)},
	}
	table([]string{"Last " + m.Window, ""}, rows)(w)
	fmt.Fprintln(w)
	rows = make([][]string, 0, len(m.Series))
	for _, p := range m.Series {
		if p.Count+p.Deliveries > 0 {
			rows = append(rows, []string{clock(&p.Time), strconv.FormatInt(p.Count, 10), strconv.FormatInt(p.SignatureFailed, 10), strconv.FormatInt(p.Deliveries, 10), strconv.FormatInt(p.DeliveriesFailed, 10)})
		}
	}
	table([]string{"FROM", "EVENTS", "FORGED", "DELIVERIES", "FAILED"}, rows)(w)
}

// maxTallied bounds the names on a line.
const maxTallied = 8

// tally formats counts by name, the largest first.
func tally(counts map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		if counts[name] == 0 {
			continue
		}
		if len(parts) == maxTallied {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

func deliveries(d api.MetricsDelivery) string {
	if d.Delivered+d.Failed == 0 {
		return "-"
	}
	text := fmt.Sprintf("%d, %d failed", d.Delivered+d.Failed, d.Failed)
	if d.P50MS != nil && d.P95MS != nil && d.P99MS != nil {
		text += fmt.Sprintf("; p50 %.0f ms, p95 %.0f ms, p99 %.0f ms", *d.P50MS, *d.P95MS, *d.P99MS)
	}
	return text
}
