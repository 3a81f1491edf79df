package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// LedgerCmd is `hookglass ledger`.
type LedgerCmd struct {
	remote
	byWordOrFlag
	Endpoint string `arg:"" optional:"" placeholder:"EP" help:"The endpoint's id or custom id."`
	From     ago    `placeholder:"TIME" help:"When the window begins: ISO 8601, or a duration as 2h that counts back from now. Default: an hour before --to."`
	To       ago    `placeholder:"TIME" help:"When it ends. Default: now."`
}

// Run implements the command. A ledger that does not balance fails.
func (c *LedgerCmd) Run(ctx context.Context, t *server.Terminal) error {
	endpoint, err := c.endpoint(c.Endpoint)
	if err != nil {
		return err
	}
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	page, err := from.Ledger(ctx, endpoint, string(c.From), string(c.To), client.Page{})
	if err != nil {
		return err
	}
	if err := c.print(t, page, func(w io.Writer) { printLedger(w, page.Data) }); err != nil {
		return err
	}
	if !page.Data.Balanced && len(page.Data.Differences) > 0 {
		return fmt.Errorf("the ledger does not balance: %s", visible(page.Data.Differences[0].Message))
	}
	return nil
}

func printLedger(w io.Writer, l api.Ledger) {
	n := l.Totals
	fmt.Fprintf(w, "%s from %s to %s\n\n", l.EndpointID, l.From, l.To)
	rows := [][]string{
		{"received", count(n.Received), ""},
		{"  refused", count(n.Refused), counted(n.Reasons)},
		{"  stored", count(n.Stored), ""},
		{"    kept", count(n.Kept), counted(n.Answers)},
		{"    deleted", count(n.Deleted), ""},
	}
	table([]string{"ARRIVALS", "COUNT", "OF WHICH"}, rows)(w)
	fmt.Fprintln(w)
	rows = nil
	for _, c := range l.Consumers {
		name := deref(c.Name)
		if c.ID == nil {
			name = "-"
		} else if c.Name == nil {
			name = *c.ID + " (deleted)"
		}
		rows = append(rows, []string{c.Kind, name, count(c.Delivered), count(c.Failed), count(c.Skipped), count(c.Pending), count(c.Expired), count(c.Deleted)})
	}
	if r := n.Replays; r.Delivered+r.Failed+r.Pending > 0 {
		rows = append(rows, []string{"replays", "-", count(r.Delivered), count(r.Failed), "-", count(r.Pending), "-", "-"})
	}
	table([]string{"CONSUMER", "NAME", "DELIVERED", "FAILED", "SKIPPED", "PENDING", "EXPIRED", "DELETED"}, rows)(w)
	if l.Balanced {
		fmt.Fprintln(w, "\nBalanced: nothing is lost.")
		return
	}
	fmt.Fprintln(w, "\nNot balanced:")
	for _, d := range l.Differences {
		fmt.Fprintf(w, "  %s: expected %d, got %d. %s\n", visible(d.Name), d.Expected, d.Actual, visible(d.Message))
	}
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

// counted lists counts by name.
func counted(counts map[string]int64) string {
	parts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, visible(name)+" × "+count(counts[name]))
	}
	return strings.Join(parts, ", ")
}
