package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/endpointsfile"
	"hookglass/internal/server"
)

// ApplyCmd is `hookglass apply`.
type ApplyCmd struct {
	remote
	File   string `short:"f" required:"" type:"path" placeholder:"FILE" help:"The endpoints file; - is standard input."`
	DryRun bool   `help:"Say what would change, and change nothing."`
	Prune  bool   `help:"Delete what the file declared before and no longer does, as if it said prune: true."`
}

func (c *ApplyCmd) Run(ctx context.Context, t *server.Terminal) error {
	file, wrong := c.read(t)
	if file == nil {
		return wrong
	}
	if file.Account != "" {
		return errors.Join(wrong, file.Fault("account", "is for a server's own file; here the token says whose the endpoints are"))
	}
	to, _, err := c.connect()
	if err != nil {
		return cmp.Or(wrong, err)
	}
	if c.Prune {
		file.Declaration.Prune = api.Some(true)
	}
	declared, err := to.Declare(ctx, file.Declaration, c.DryRun || wrong != nil) // of a file with faults, to find them all
	if refused, ok := errors.AsType[*client.Error](err); ok && len(refused.Details) > 0 {
		details := make([]hookglass.FieldError, len(refused.Details))
		for i, d := range refused.Details {
			details[i] = hookglass.FieldError{Field: d.Field, Message: d.Message}
		}
		return outcome{exitCode(err), errors.Join(wrong, file.Locate(details)).Error()}
	}
	if err := cmp.Or(wrong, err); err != nil {
		return err
	}
	return c.print(t, api.One[api.Declared]{Data: declared}, func(w io.Writer) { printDeclared(w, declared) })
}

// read reads the file. For standard input, files with secrets are relative to the working directory.
func (c *ApplyCmd) read(t *server.Terminal) (*endpointsfile.File, error) {
	if c.File != "-" {
		return server.ReadEndpointsFile(c.File)
	}
	text, err := readInput(t, c.File, endpointsfile.MaxBytes)
	if err != nil {
		return nil, err
	}
	return server.ParseEndpointsFile("standard input", text, ".")
}

// printDeclared prints changes as a diff.
func printDeclared(w io.Writer, d api.Declared) {
	unchanged := 0
	for _, c := range d.Changes {
		what := c.Kind + " " + c.Endpoint
		if c.Name != "" {
			what = fmt.Sprintf("%s %q of %s", c.Kind, visible(c.Name), c.Endpoint)
		}
		switch c.Op {
		case hookglass.OpUnchanged:
			unchanged++
		case hookglass.OpCreate:
			fmt.Fprintf(w, "+ %s\n", what)
		case hookglass.OpUpdate:
			fmt.Fprintf(w, "~ %s\n", what)
			for _, f := range c.Fields {
				if f.Before == nil && f.After == nil {
					fmt.Fprintf(w, "    ~ %s: (it is not shown)\n", f.Field)
					continue
				}
				if f.Before != nil {
					fmt.Fprintf(w, "    - %s: %s\n", f.Field, visible(*f.Before))
				}
				if f.After != nil {
					fmt.Fprintf(w, "    + %s: %s\n", f.Field, visible(*f.After))
				}
			}
		case hookglass.OpDelete:
			fmt.Fprintf(w, "- %s\n", what)
		case hookglass.OpKeep:
			fmt.Fprintf(w, "  %s is no longer declared; --prune deletes it\n", what)
		case hookglass.OpRelease:
			fmt.Fprintf(w, "  %s is no longer declared; it was made by hand and stays\n", what)
		}
	}
	done := "changed"
	if !d.Applied {
		done = "to change; this was a dry run"
	}
	fmt.Fprintf(w, "%d %s, %d as declared.\n", d.Changed, done, unchanged)
}

// EndpointsExportCmd is `hookglass endpoints export`.
type EndpointsExportCmd struct {
	Endpoint []string `arg:"" optional:"" placeholder:"EP" help:"Ids or custom ids; all endpoints when none is given."`
	Output   string   `short:"o" type:"path" placeholder:"FILE" help:"Write there instead of to standard output."`
}

func (c *EndpointsExportCmd) Run(ctx context.Context, t *server.Terminal, e *EndpointsCmd) error {
	from, _, err := e.connect()
	if err != nil {
		return err
	}
	existing, channels, err := c.gather(ctx, from)
	if err != nil {
		return err
	}
	if !e.JSON {
		for _, note := range endpointsfile.Distinct(existing) {
			fmt.Fprintln(t.Err, "warning:", visible(note))
		}
		if n := workspacesOf(existing); n > 1 {
			fmt.Fprintf(t.Err, "warning: these endpoints are of %d workspaces, and a file is for one: "+
				"to apply it to where they are, export those of one, by name or with a token of the workspace\n", n)
		}
	}
	write := func(out io.Writer) error {
		if e.JSON {
			return e.print(&server.Terminal{Out: out}, api.List[endpointsfile.Existing]{Data: existing}, nil)
		}
		return endpointsfile.Write(out, existing, channels)
	}
	if c.Output == "" || c.Output == "-" {
		return write(t.Out)
	}
	return writeFile(c.Output, write)
}

// workspacesOf returns in how many workspaces endpoints are.
func workspacesOf(existing []endpointsfile.Existing) int {
	ids := make(map[int64]bool)
	for _, e := range existing {
		if e.Endpoint.WorkspaceID != nil {
			ids[*e.Endpoint.WorkspaceID] = true
		}
	}
	return len(ids)
}

func (c *EndpointsExportCmd) gather(ctx context.Context, from *client.Client) (existing []endpointsfile.Existing, channels map[string]string, err error) {
	var endpoints []api.Endpoint
	if len(c.Endpoint) == 0 {
		if endpoints, err = from.Endpoints(ctx); err != nil {
			return nil, nil, err
		}
	}
	for _, ref := range c.Endpoint {
		one, err := from.Endpoint(ctx, ref)
		if err != nil {
			return nil, nil, err
		}
		endpoints = append(endpoints, one)
	}
	told, err := from.NotificationChannels(ctx)
	if err != nil {
		return nil, nil, err
	}
	channels = make(map[string]string)
	for _, one := range told {
		channels[one.ID] = one.Name
	}
	existing = []endpointsfile.Existing{} // an empty list is [] in JSON
	for _, one := range endpoints {
		x := endpointsfile.Existing{Endpoint: one}
		x.SignatureConfigs, err = from.SignatureConfigs(ctx, one.ID)
		if err == nil {
			x.Targets, err = from.ForwardingTargets(ctx, one.ID)
		}
		if err == nil {
			x.Actions, err = from.Actions(ctx, one.ID)
		}
		if err == nil {
			x.Alerts, err = from.Alerts(ctx, one.ID)
		}
		if err != nil {
			return nil, nil, err
		}
		existing = append(existing, x)
	}
	return existing, channels, nil
}
