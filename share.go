package hookglass

import "time"

// Share is a link that lets anybody read one event, with its secrets removed, until it expires or is revoked. The
// link is shown only in the answer that created it; the store keeps a hash.
type Share struct {
	ID          int64
	EndpointNum int64
	EventSeq    int64
	EventID     EventID
	CreatedBy   int64 // the user; 0: none
	CreatedAt   time.Time
	ExpiresAt   time.Time
}

// SavedSearch is a query of an endpoint's requests that has a name.
type SavedSearch struct {
	ID          int64
	EndpointNum int64
	Name        string
	Query       string
	CreatedAt   time.Time
}

// BrowserSession is a browser that a user is signed in with.
type BrowserSession struct {
	ID        string // identifies the session among those of its user; not a secret
	Client    string // how the browser described itself
	CreatedAt time.Time
	ExpiresAt time.Time
}
