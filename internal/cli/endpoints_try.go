package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"hookglass/api"
	"hookglass/internal/server"
)

// EndpointsTryCmd is `hookglass endpoints try`.
type EndpointsTryCmd struct {
	Endpoint string  `arg:"" placeholder:"EP" help:"Its id or custom id."`
	Rules    string  `placeholder:"FILE" help:"The rules to try, as of endpoints update; default: those that the endpoint has. - is standard input, none is no rules."`
	Query    string  `short:"q" type:"query" placeholder:"QUERY" help:"Which events, for example: method:POST after:2h."`
	Limit    howMany `default:"25" help:"How many of the last, 1 to 100."`
}

// Help implements kong.HelpProvider.
func (c *EndpointsTryCmd) Help() string {
	return `Examples:

  hookglass endpoints try payments
  echo '[{"when": "signature:failed", "status": 401}]' | hookglass endpoints try payments --rules - -q 'provider:stripe after:2h'

Nothing is sent or changed. "hookglass endpoints update --rules" gives an endpoint the rules.`
}

func (c *EndpointsTryCmd) Run(ctx context.Context, t *server.Terminal, e *EndpointsCmd) error {
	at, _, err := e.connect()
	if err != nil {
		return err
	}
	with := api.TryRules{Limit: api.Some(int64(c.Limit))}
	if c.Query != "" {
		with.Q = api.Some(c.Query)
	}
	if c.Rules != "" {
		rules, err := readRules(t, c.Rules)
		if err != nil {
			return err
		}
		with.ResponseRules = api.Some(rules)
	}
	tried, err := at.TryRules(ctx, c.Endpoint, with)
	if err != nil {
		return err
	}
	if tried.Evaluated == 0 && tried.Complete {
		e.advise(t, c.Query)
	}
	rows := make([][]string, len(tried.Events))
	for i, one := range tried.Events {
		status, by := "-", one.AnsweredBy
		if one.Status != nil {
			status = strconv.Itoa(*one.Status)
		}
		if one.Rule != nil {
			by = ruleName(one.Rule)
		}
		rows[i] = []string{clock(&one.RequestedAt), one.EventID, one.Method, one.Path, status, by}
	}
	return e.print(t, api.One[api.TriedRules]{Data: tried}, func(w io.Writer) {
		table([]string{"TIME", "ID", "METHOD", "PATH", "STATUS", "ANSWERED BY"}, rows)(w)
		fmt.Fprintf(w, "\n%d of %s would be answered by a rule.\n", tried.Matched, plural(tried.Evaluated, "event", "events"))
		if !tried.Complete {
			fmt.Fprintln(w, "There was not enough time to try them all.")
		}
	})
}
