package cli

import (
	"bytes"
	"context"
	"encoding/json"
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

// SchemasCmd is `hookglass schemas`.
type SchemasCmd struct {
	remote
	byWordOrFlag
	Endpoint  string `arg:"" optional:"" placeholder:"EP" help:"The endpoint's id or custom id."`
	EventType string `arg:"" optional:"" help:"Show the schema of this event type, behind the endpoint or -e; - is for events without one. All are listed without it."`
	Provider  string `placeholder:"NAME" help:"Of this sender, where several have events of the type."`
	Lang      string `enum:",jsonschema,go,ts" default:"" placeholder:"LANG" help:"Print jsonschema, go or ts instead of a table."`
	Drift     bool   `xor:"do" help:"Show how what arrives departs from the baseline; exit 1 where it does."`
	Accept    bool   `xor:"do" help:"Make what is known by now the baseline."`
	Track     *bool  `negatable:"" help:"First have the endpoint keep schemas of all that arrives, or stop doing so."`
}

func (c *SchemasCmd) Run(ctx context.Context, t *server.Terminal) error {
	if c.Flag != "" && c.EventType == "" { // with the flag, the only word is the type
		c.Endpoint, c.EventType = "", c.Endpoint
	}
	var err error
	if c.Endpoint, err = c.endpoint(c.Endpoint); err != nil {
		return err
	}
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	if c.EventType == "" && (c.Lang != "" || c.Drift || c.Accept) {
		return outcome{exitUsage, "name the event type"}
	}
	if c.Track != nil {
		if _, err := from.UpdateEndpoint(ctx, c.Endpoint, api.EndpointChange{SchemaTracking: api.Some(*c.Track)}); err != nil {
			return err
		}
	}
	switch {
	case c.EventType == "":
		return c.list(ctx, t, from)
	case c.Drift:
		return c.drift(ctx, t, from)
	case c.Accept:
		s, err := from.AcceptSchema(ctx, c.Endpoint, c.EventType, c.Provider)
		if err != nil {
			return err
		}
		return c.say(t, api.One[api.Schema]{Data: s}, "The schema of %s, of %s, is the baseline now.\n", visible(nameOf(s.SchemaSummary)), plural(s.Events, "event", "events"))
	case c.Lang == "go" || c.Lang == "ts":
		code, err := from.SchemaTypes(ctx, c.Endpoint, c.EventType, c.Provider, c.Lang)
		if err != nil {
			return err
		}
		return c.say(t, api.One[api.SchemaCode]{Data: code}, "%s", visibleLines(code.Code))
	}
	s, err := from.Schema(ctx, c.Endpoint, c.EventType, c.Provider)
	if err != nil {
		return err
	}
	if c.Lang == "jsonschema" {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, s.JSONSchema, "", "  "); err != nil {
			return err
		}
		pretty.WriteByte('\n')
		return copyJSON(t.Out, pretty.Bytes())
	}
	return c.print(t, api.One[api.Schema]{Data: s}, func(w io.Writer) { printSchema(w, s) })
}

func (c *SchemasCmd) list(ctx context.Context, t *server.Terminal, from *client.Client) error {
	list, err := from.Schemas(ctx, c.Endpoint)
	if err != nil {
		return err
	}
	rows := make([][]string, len(list.Data))
	for i, s := range list.Data {
		baseline := "-"
		if s.Baseline {
			baseline = clock(s.AcceptedAt)
		}
		rows[i] = []string{nameOf(s), s.Provider, strconv.FormatInt(s.Events, 10), strconv.Itoa(s.FieldCount), baseline, strconv.Itoa(s.DriftCount), clock(&s.LastSeenAt)}
	}
	return c.print(t, list, func(w io.Writer) {
		table([]string{"EVENT TYPE", "PROVIDER", "EVENTS", "FIELDS", "BASELINE", "DRIFTS", "LAST SEEN"}, rows)(w)
		if list.Meta.Source == "sample" {
			note := "--track keeps schemas of all that arrives."
			if list.Meta.Tracking {
				note = "Schemas are kept of all that arrives from now on."
			}
			fmt.Fprintf(w, "\nInferred from the newest %s. %s\n", plural(list.Meta.Events, "event", "events"), note)
		}
	})
}

func (c *SchemasCmd) drift(ctx context.Context, t *server.Terminal, from *client.Client) error {
	d, err := from.SchemaDrift(ctx, c.Endpoint, c.EventType, c.Provider)
	if err != nil {
		return err
	}
	err = c.print(t, api.One[api.SchemaDrifts]{Data: d}, func(w io.Writer) {
		switch {
		case !d.Baseline:
			fmt.Fprintln(w, "No baseline was accepted: --accept makes one.")
			return
		case len(d.Drifts) == 0:
			fmt.Fprintf(w, "None of %s since %s departs from the baseline.\n", plural(d.Events, "event", "events"), clock(d.AcceptedAt))
			return
		}
		rows := make([][]string, len(d.Drifts))
		for i, one := range d.Drifts {
			rows[i] = []string{one.Kind, one.Pointer, orDash(dashed(one.Was)), orDash(dashed(one.Is)), orDash(one.Value), strconv.FormatInt(one.Count, 10), one.FirstSeen}
		}
		table([]string{"KIND", "POINTER", "WAS", "IS", "VALUE", "COUNT", "FIRST SEEN IN"}, rows)(w)
	})
	if err == nil && len(d.Drifts) > 0 {
		return outcome{exitFailed, plural(len(d.Drifts), "departure", "departures") + " from the baseline"}
	}
	return err
}

func dashed(types []string) *string {
	if len(types) == 0 {
		return nil
	}
	return new(strings.Join(types, "|"))
}

func nameOf(s api.SchemaSummary) string { return orDash(s.EventType) }

func printSchema(w io.Writer, s api.Schema) {
	fmt.Fprintf(w, "%s of %s: %s, %s (%s)\n\n", visible(nameOf(s.SchemaSummary)), visible(s.Provider), plural(s.Events, "event", "events"), plural(s.FieldCount, "field", "fields"), s.Source)
	rows := make([][]string, len(s.Fields))
	for i, f := range s.Fields {
		types := slices.Sorted(maps.Keys(f.Types))
		required := "optional"
		if f.Required {
			required = "required"
		}
		what := deref(f.Format)
		if len(f.Enum) > 0 {
			what = strings.Join(f.Enum, "|")
		}
		rows[i] = []string{f.Pointer, strings.Join(types, "|"), required, fmt.Sprintf("%d of %d", f.Present, f.Of), what}
	}
	table([]string{"POINTER", "TYPE", "", "PRESENT", "FORMAT OR VALUES"}, rows)(w)
}
