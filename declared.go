package hookglass

// DeclaredKind is a kind of thing that a file may declare (docs/endpoints-file.md).
type DeclaredKind string

// The kinds.
const (
	DeclaredEndpoint  DeclaredKind = "endpoint"
	DeclaredSignature DeclaredKind = "signature_config"
	DeclaredTarget    DeclaredKind = "forwarding_target"
	DeclaredAction    DeclaredKind = "action"
	DeclaredAlert     DeclaredKind = "alert"
)

// Declared records that a file declared something, so that the service notices when the file no longer names it.
type Declared struct {
	Num         int64
	Set         string // the name of the set that the file holds
	Kind        DeclaredKind
	EndpointNum int64
	EndpointID  EndpointID
	Ref         string // the id of the thing; "" for the endpoint itself
	Name        string // what the file calls it
	Made        bool   // the file created it
}

// What a declaration does, or did, to one thing.
const (
	OpCreate    = "create"
	OpUpdate    = "update"
	OpUnchanged = "unchanged"
	OpDelete    = "delete"  // no longer declared, and created by a declaration
	OpKeep      = "keep"    // no longer declared; deleted only if deletion is asked for
	OpRelease   = "release" // no longer declared, but created by hand: it stays
)

// DeclaredChange is what a declaration does to one thing.
type DeclaredChange struct {
	Op       string
	Kind     DeclaredKind
	Endpoint string // as the file calls it
	Name     string // as the file calls it; "" for the endpoint itself
	ID       string // "" where it is not made yet
	Fields   []FieldChange
}

// FieldChange is one field that changes, as JSON.
type FieldChange struct {
	Field  string
	Before string // "" where there was none, and for secrets
	After  string // likewise
}
