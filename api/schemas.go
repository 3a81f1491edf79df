package api

import "encoding/json"

// SchemaList are the schemas of an endpoint.
type SchemaList struct {
	Data []SchemaSummary `json:"data"`
	Meta SchemaMeta      `json:"meta"`
}

// SchemaMeta says where schemas come from.
type SchemaMeta struct {
	Tracking bool   `json:"tracking" doc:"Whether the endpoint's schema_tracking is on." example:"true"`
	Source   string `json:"source" enum:"tracked,sample" doc:"tracked: kept of all that arrived while tracking was on. sample: inferred for this answer." example:"tracked"`
	Events   int    `json:"events" doc:"Of a sample: the newest events, that were looked at." example:"0"`
	More     bool   `json:"more" doc:"Of a sample: whether there are older events. Where events is less than was asked for, reading ended for its time." example:"false"`
}

// SchemaSummary summarises the schema of one event type.
type SchemaSummary struct {
	EventType   *string `json:"event_type" doc:"null for events without one, which are called - in paths." example:"invoice.paid"`
	Provider    string  `json:"provider" example:"stripe"`
	Events      int64   `json:"events" doc:"Bodies that it was inferred from." example:"128"`
	FieldCount  int     `json:"field_count" example:"41"`
	Truncated   bool    `json:"truncated" doc:"Some of what arrived was too large or too deep." example:"false"`
	Baseline    bool    `json:"baseline" doc:"Whether a baseline was accepted." example:"true"`
	AcceptedAt  *Time   `json:"accepted_at" example:"2026-11-20T10:15:30.123456Z"`
	DriftCount  int     `json:"drift_count" doc:"Ways in which what arrived since departs from the baseline." example:"1"`
	FirstSeenAt Time    `json:"first_seen_at" example:"2026-11-20T10:15:30.123456Z"`
	LastSeenAt  Time    `json:"last_seen_at" example:"2026-11-20T10:15:30.123456Z"`
}

// Schema is the schema of one event type.
type Schema struct {
	SchemaSummary
	Source     string          `json:"source" enum:"tracked,sample" example:"tracked"`
	JSONSchema json.RawMessage `json:"json_schema" doc:"JSON Schema 2020-12, of what was accepted and what was seen since."`
	Accepted   json.RawMessage `json:"baseline_schema" doc:"JSON Schema of the baseline; null where none was accepted."`
	Fields     []SchemaField   `json:"fields" doc:"All places, by their pointers."`
}

// SchemaField is a place and what is known about it.
type SchemaField struct {
	Pointer   string           `json:"pointer" doc:"RFC 6901; * stands for members whose names are data, and for items." example:"/data/object/amount"`
	Types     map[string]int64 `json:"types" doc:"How often each type was seen." example:"{\"integer\":128}"`
	Present   int64            `json:"present" example:"128"`
	Of        int64            `json:"of" doc:"Objects that could have had it." example:"128"`
	Required  bool             `json:"required" doc:"Every object had it." example:"true"`
	Format    *string          `json:"format" enum:"date-time,date,uuid,email,uri" doc:"What all strings there are."`
	Enum      []string         `json:"enum,omitempty" doc:"The words of a small set that seems complete."`
	FirstSeen string           `json:"first_seen" doc:"The event in which it was first seen." example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
}

// SchemaDrifts are the differences from a baseline.
type SchemaDrifts struct {
	EventType  *string       `json:"event_type" example:"invoice.paid"`
	Provider   string        `json:"provider" example:"stripe"`
	Baseline   bool          `json:"baseline" doc:"Whether a baseline was accepted; without one nothing departs." example:"true"`
	AcceptedAt *Time         `json:"accepted_at" example:"2026-11-20T10:15:30.123456Z"`
	Events     int64         `json:"events" doc:"That arrived since." example:"12"`
	Drifts     []SchemaDrift `json:"drifts" doc:"100 at most."`
}

// SchemaDrift is one of them.
type SchemaDrift struct {
	Kind      string   `json:"kind" enum:"added,removed,now_optional,type_changed,new_value" example:"type_changed"`
	Pointer   string   `json:"pointer" example:"/data/object/amount"`
	Was       []string `json:"was" doc:"The types of the baseline." example:"[\"integer\"]"`
	Is        []string `json:"is" doc:"The types now." example:"[\"string\"]"`
	Value     *string  `json:"value" doc:"Of new_value; null where there are so many that they are no set any more."`
	FirstSeen string   `json:"first_seen" doc:"The event in which it was first seen." example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Count     int64    `json:"count" doc:"How often it was since." example:"3"`
	Message   string   `json:"message" example:"/data/object/amount is string where it was integer"`
}

// SchemaCode are types of a language.
type SchemaCode struct {
	Language string `json:"language" enum:"go,ts" example:"ts"`
	Code     string `json:"code" example:"export interface InvoicePaid {\n  id: string;\n}\n"`
}
