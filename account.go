package hookglass

import "time"

// User is a person who can sign in.
type User struct {
	ID        int64
	Email     string
	Name      string
	CreatedAt time.Time
}

// Account owns workspaces and is what a plan applies to.
type Account struct {
	ID            int64
	Name          string
	Plan          Plan
	Subscription  Subscription
	PaymentMethod bool
	Retention     time.Duration // 0: the installation's
	CreatedAt     time.Time
}

// Workspace owns endpoints, tags, channels and action secrets.
type Workspace struct {
	ID        int64
	AccountID int64
	Name      string
	CreatedAt time.Time
}

// TokenLevel says how far a token reaches (spec, "Authentication", 2).
type TokenLevel string

// The levels.
const (
	LevelAccount   TokenLevel = "account"
	LevelWorkspace TokenLevel = "workspace"
)

// Token is an API token. Its text exists only in the answer that created it; the store keeps a hash.
type Token struct {
	ID          int64
	UserID      int64
	AccountID   int64
	WorkspaceID int64 // 0 at account level
	Name        string
	Level       TokenLevel
	Scopes      []Scope
	Hint        string // the first characters, to tell tokens apart
	CreatedAt   time.Time
	ExpiresAt   time.Time // zero: never
	LastUsedAt  time.Time // zero: never
	RevokedAt   time.Time // zero: valid
}

// Usable reports whether the token is valid at the given time.
func (t Token) Usable(now time.Time) bool {
	return t.RevokedAt.IsZero() && (t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt))
}
