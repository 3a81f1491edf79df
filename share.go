package hookglass

import "time"

// Share is a link by which anybody may read one event, without what is secret in it, until it expires or is revoked.
// Its text exists only in the answer that created it; the store keeps a hash.
type Share struct {
	ID          int64
	EndpointNum int64
	EventSeq    int64
	EventID     EventID
	CreatedBy   int64 // the user; 0: nobody's
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
	ID        string // tells sessions of a user apart, and is no secret
	Client    string // what the browser said of itself
	CreatedAt time.Time
	ExpiresAt time.Time
}
