package api

import "hookglass"

// Declare is the body of POST /declarations.
type Declare struct {
	_           struct{}       `additionalProperties:"false"`
	Declaration *Declaration   `json:"declaration,omitempty" required:"true"`
	DryRun      Optional[bool] `json:"dry_run,omitzero" doc:"Say what would change, and change nothing; default false." example:"true"`
}

// Declaration is the wanted state of a workspace: the content of an endpoints file with its secrets filled in. Anything
// it does not name stays unchanged.
type Declaration struct {
	_         struct{}           `additionalProperties:"false"`
	Version   Optional[int64]    `json:"version,omitzero" minimum:"1" maximum:"1" doc:"Of the form; 1." example:"1"`
	Set       Optional[string]   `json:"set,omitzero" pattern:"^[a-z0-9][a-z0-9-]{0,62}$" doc:"Tells this declaration from others for the workspace: each prunes only what it declared itself. Default: default." example:"default"`
	Workspace Optional[string]   `json:"workspace,omitzero" doc:"The name or id of a workspace; default: the token's, or the account's oldest." example:"Default"`
	Prune     Optional[bool]     `json:"prune,omitzero" doc:"Delete what the set declared before, does not declare any more, and would not be there without it; default false." example:"false"`
	Endpoints []DeclaredEndpoint `json:"endpoints,omitempty" maxItems:"500" doc:"500 at most."`
}

// DeclaredEndpoint is the wanted state of an endpoint and its parts. It is identified by custom_id, or by id if it
// exists already. A new one without a name is named like its custom_id. Its workspace is that of the declaration.
type DeclaredEndpoint struct {
	_  struct{}         `additionalProperties:"false"`
	ID Optional[string] `json:"id,omitzero" doc:"Of an endpoint that is there already. Needed where custom_id is not given." example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	EndpointChange
	Kind              Optional[string]           `json:"kind,omitzero" enum:"webhook,email" doc:"Default webhook." example:"webhook"`
	EmailLocalPart    Optional[string]           `json:"email_local_part,omitzero" null:"true" pattern:"^[a-z0-9._-]{2,50}$" doc:"For email endpoints only; random when absent."`
	SignatureConfigs  []DeclaredSignatureConfig  `json:"signature_configs,omitempty" doc:"Each by its provider."`
	ForwardingTargets []DeclaredForwardingTarget `json:"forwarding_targets,omitempty" doc:"Each by its name."`
	Actions           []NewAction                `json:"actions,omitempty" doc:"Each by its name."`
	Alerts            []DeclaredAlert            `json:"alerts,omitempty" doc:"Each by its name."`
}

// DeclaredSignatureConfig is the wanted state of a signature config.
type DeclaredSignatureConfig struct {
	_        struct{}                 `additionalProperties:"false"`
	Provider Optional[string]         `json:"provider,omitzero" required:"true" minLength:"1" doc:"github, stripe, shopify, slack, twilio, generic_hmac, or another provider whose signatures can be checked." example:"github"`
	Secret   Optional[string]         `json:"secret,omitzero" minLength:"1" maxLength:"4096" doc:"Needed where the config is new. It is sealed and never shown again." example:"It's a Secret to Everybody"`
	Enabled  Optional[bool]           `json:"enabled,omitzero" doc:"Default true." example:"true"`
	Options  Optional[GenericOptions] `json:"options,omitzero" doc:"With generic_hmac alone."`
}

// DeclaredForwardingTarget is the wanted state of a forwarding target.
type DeclaredForwardingTarget struct {
	_              struct{}                    `additionalProperties:"false"`
	Name           Optional[string]            `json:"name,omitzero" required:"true" minLength:"1" maxLength:"200" doc:"A label for people." example:"Staging"`
	URL            Optional[string]            `json:"url,omitzero" maxLength:"2048" format:"uri" pattern:"^[Hh][Tt][Tt][Pp][Ss]?://" doc:"http or https, publicly reachable. Needed where the target is new." example:"https://staging.example.com/webhooks"`
	When           Optional[string]            `json:"when,omitzero" null:"true" maxLength:"1000" doc:"Which events go to it: a query as of lists, of what is known when one comes: method, path, header, query, body, provider, event, signature and the like, not status, tag, note, ignored, delivery, tunnel or the time. null, the default: all." example:"event:invoice.* -body./livemode:false"`
	Headers        Optional[map[string]string] `json:"headers,omitzero" null:"true" maxProperties:"20" doc:"Sent with every request, by their names, in the place of headers of the event with the same name: 20 at most, 8,192 bytes together. Not headers that frame the request or belong to its connection, and none beginning with X-Service-. Values are sealed and never shown again. They replace those there are. null: all stay." example:"{\"Authorization\":\"Bearer t0ken\",\"X-Environment\":\"staging\"}"`
	Enabled        Optional[bool]              `json:"enabled,omitzero" doc:"Default true." example:"true"`
	TimeoutSeconds Optional[int64]             `json:"timeout_seconds,omitzero" minimum:"1" maximum:"300" doc:"1 to 300, default 30." example:"30"`
	RetryCount     Optional[int64]             `json:"retry_count,omitzero" minimum:"0" maximum:"5" doc:"0 to 5, default 3." example:"3"`
	RateLimit      Optional[int64]             `json:"rate_limit,omitzero" null:"true" minimum:"1" maximum:"1000" doc:"At most so many requests in a rate_period, retries among them; more waits. 1 to 1000; null, the default: no limit." example:"5"`
	RatePeriod     Optional[string]            `json:"rate_period,omitzero" null:"true" enum:"second,minute" doc:"Of a rate_limit. Default second." example:"second"`
	DedupeBy       Optional[string]            `json:"dedupe_by,omitzero" null:"true" pattern:"^((id|body)$|header[.]|/)" maxLength:"200" doc:"What identifies a webhook that the sender sends again, so that the target gets the first only: id, the sender's own id of the delivery or the event; header. and the name of a header; a JSON Pointer to a string or number of the body; body, all of it with method, path and query. An event without it is always sent, and so is one of which the first failed for good. null, the default: every event is sent." example:"header.Idempotency-Key"`
	DedupeSeconds  Optional[int64]             `json:"dedupe_seconds,omitzero" null:"true" minimum:"1" maximum:"604800" doc:"Of a dedupe_by: for how long after the first a webhook is the same, and no longer than that is kept. 1 to 604800, default 86400." example:"86400"`
}

// DeclaredAlert is the wanted state of an alert.
type DeclaredAlert struct {
	_        struct{}                `additionalProperties:"false"`
	Name     Optional[string]        `json:"name,omitzero" required:"true" minLength:"1" maxLength:"200" example:"Deliveries fail"`
	Kind     Optional[string]        `json:"kind,omitzero" enum:"missing_webhook,error_response,keyword_match,volume_spike,schema_drift" doc:"Needed where the alert is new, and so is config." example:"error_response"`
	Enabled  Optional[bool]          `json:"enabled,omitzero" doc:"Default true." example:"true"`
	Config   Optional[AlertSettings] `json:"config,omitzero"`
	Channels Optional[[]string]      `json:"channels,omitzero" maxItems:"20" doc:"Notification channels of the workspace, by name or id."`
}

// Declared lists what a declaration changed, or would change.
type Declared struct {
	Applied bool             `json:"applied" doc:"false after a dry run." example:"true"`
	Changed int              `json:"changed" doc:"How many of the changes are not unchanged, keep or release." example:"1"`
	Changes []DeclaredChange `json:"changes"`
}

// DeclaredChange is the change of one object.
type DeclaredChange struct {
	Op       string        `json:"op" enum:"create,update,unchanged,delete,keep,release" doc:"keep: no longer declared, and would be deleted with prune. release: no longer declared, but made by hand, so it stays." example:"update"`
	Kind     string        `json:"kind" enum:"endpoint,signature_config,forwarding_target,action,alert" example:"endpoint"`
	Endpoint string        `json:"endpoint" doc:"Its custom id, or its id." example:"payments"`
	Name     string        `json:"name" doc:"Of what belongs to the endpoint; empty for the endpoint itself." example:""`
	ID       *string       `json:"id" doc:"null for what a dry run would make." example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	Fields   []FieldChange `json:"fields" doc:"What differs; empty for what is made or deleted whole."`
}

// FieldChange is a field that changes.
type FieldChange struct {
	Field  string  `json:"field" example:"name"`
	Before *string `json:"before" doc:"As JSON; null where there was none, and for secrets." example:"\"Payments\""`
	After  *string `json:"after" doc:"As JSON; null where there is none, and for secrets." example:"\"Payments, live\""`
}

// FromDeclared converts the changes of a declaration.
func FromDeclared(changes []hookglass.DeclaredChange, dryRun bool) Declared {
	out := Declared{Applied: !dryRun, Changes: make([]DeclaredChange, len(changes))}
	for i, c := range changes {
		one := DeclaredChange{Op: c.Op, Kind: string(c.Kind), Endpoint: c.Endpoint, Name: c.Name, Fields: make([]FieldChange, len(c.Fields))}
		if !dryRun || c.Op != hookglass.OpCreate {
			one.ID = nonzero(c.ID)
		}
		for k, f := range c.Fields {
			one.Fields[k] = FieldChange{Field: f.Field, Before: nonzero(f.Before), After: nonzero(f.After)}
		}
		switch c.Op {
		case hookglass.OpCreate, hookglass.OpUpdate, hookglass.OpDelete:
			out.Changed++
		}
		out.Changes[i] = one
	}
	return out
}
