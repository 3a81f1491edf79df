package hookglass

import "slices"

// Scope is a right of a token (spec, "Authentication").
type Scope string

// The scopes.
const (
	ScopeRead   Scope = "read"
	ScopeWrite  Scope = "write"
	ScopeTunnel Scope = "tunnel"
)

// Scopes lists all scopes.
var Scopes = []Scope{ScopeRead, ScopeWrite, ScopeTunnel}

// Principal is who asks. The store shows a principal only its own rows: those of others do not exist for it.
//
// Exactly one of these holds: System is set; Endpoint is set (the key of a temporary endpoint); Account is set, and
// Workspace is 0 for all its workspaces.
type Principal struct {
	System    bool
	Account   int64
	Workspace int64
	User      int64
	Token     int64      // id of the API token, 0 for a browser session
	Endpoint  EndpointID // the one endpoint of a tunnel key
	Scopes    []Scope
}

// System is the program itself: jobs, administration, reception.
var System = Principal{System: true, Scopes: Scopes}

// May answers insufficient_scope unless the principal has the scope.
func (p Principal) May(s Scope) error {
	if slices.Contains(p.Scopes, s) {
		return nil
	}
	return Errorf(CodeInsufficientScope, "This token lacks the scope %q.", s)
}

// MayManage answers forbidden to the key of a temporary endpoint, which may only read and delete its events
// (spec: decisions, section 13).
func (p Principal) MayManage() error {
	if p.Endpoint != "" {
		return Errorf(CodeForbidden, "The key of a temporary endpoint reads and deletes its events, nothing else.")
	}
	return nil
}

// ParseScopes reads scope names, answering validation_failed for an unknown or missing one.
func ParseScopes(names []string) ([]Scope, error) {
	var scopes []Scope
	for _, n := range names {
		s := Scope(n)
		if !slices.Contains(Scopes, s) {
			return nil, Invalid("scopes", "may hold read, write and tunnel, not %q", n)
		}
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	if len(scopes) == 0 {
		return nil, Invalid("scopes", "must name at least one of read, write and tunnel")
	}
	return scopes, nil
}
