package drift

import (
	"cmp"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/schema"
)

// Where schemas come from, as the API names it.
const (
	Tracked = "tracked"
	Sample  = "sample"
)

// Source returns where the schemas come from.
func (all Types) Source() string {
	if all.Sampled {
		return Sample
	}
	return Tracked
}

// name returns the name of the event type.
func (t Type) name() string {
	if t.EventType == "" {
		return noType
	}
	return t.EventType
}

// Summary returns the list form of the schema.
func (t Type) Summary() api.SchemaSummary {
	s := api.SchemaSummary{
		Provider: t.Provider, Events: t.Events, FieldCount: len(t.Current.Fields()), Truncated: t.Current.Truncated, Baseline: t.Accepted != nil,
		DriftCount: len(t.Departing), FirstSeenAt: api.Time{Time: t.FirstAt}, LastSeenAt: api.Time{Time: t.LastAt},
	}
	if t.EventType != "" {
		s.EventType = &t.EventType
	}
	if !t.AcceptedAt.IsZero() {
		s.AcceptedAt = &api.Time{Time: t.AcceptedAt}
	}
	return s
}

// Whole returns the full form of the schema.
func (t Type) Whole(source string) api.Schema {
	out := api.Schema{SchemaSummary: t.Summary(), Source: source, JSONSchema: t.Current.JSONSchema(t.title()), Fields: []api.SchemaField{}}
	if t.Accepted != nil {
		out.Accepted = t.Accepted.JSONSchema(t.title())
	}
	for _, f := range t.Current.Fields() {
		field := api.SchemaField{
			Pointer: f.Pointer, Types: f.Types, Present: f.Present, Of: f.Of, Required: f.Required, Enum: f.Enum, FirstSeen: f.First,
		}
		if f.Format != "" {
			field.Format = &f.Format
		}
		out.Fields = append(out.Fields, field)
	}
	return out
}

func (t Type) title() string {
	if t.Provider == hookglass.UnknownProvider {
		return t.name()
	}
	return t.Provider + " " + t.name()
}

// Drift returns how the type departs from its baseline.
func (t Type) Drift() api.SchemaDrifts {
	s := t.Summary()
	out := api.SchemaDrifts{EventType: s.EventType, Provider: s.Provider, Baseline: s.Baseline, AcceptedAt: s.AcceptedAt, Drifts: []api.SchemaDrift{}}
	if t.Accepted == nil {
		return out
	}
	out.Events = t.Since.Events
	for _, d := range t.Departing {
		one := api.SchemaDrift{Kind: d.Kind, Pointer: d.Pointer, Was: d.Was, Is: d.Is, FirstSeen: d.Event, Count: d.Count, Message: d.String()}
		if d.Kind == schema.NewValue && d.Value != "" {
			one.Value = &d.Value
		}
		for _, types := range []*[]string{&one.Was, &one.Is} {
			if *types == nil {
				*types = []string{}
			}
		}
		out.Drifts = append(out.Drifts, one)
	}
	return out
}

// Code returns the schema as types of a language, go or ts.
func (t Type) Code(language string) string {
	return t.Current.Code(language, cmp.Or(t.EventType, t.Provider+" event"))
}
