// Package hookglass holds the nouns and the pure rules of the service: what an
// endpoint, an event, a token or a plan is, and what may be said of one without
// touching a database, a network or a clock.
//
// It imports the standard library alone. Everything that acts lives below
// internal/ and imports this package; see docs/architecture.md for the map.
//
// # Glossary
//
//   - Endpoint: an address that catches webhooks (kind webhook) or mail (kind email).
//   - Event: one captured webhook or mail, an "ingress event" in the specification.
//   - Arrival: bytes that reached an endpoint and are not an event yet.
//   - Reply: the answer that the sender of a webhook was given.
//   - Principal: who asks, what of the installation is theirs, and with which scopes.
//   - Account, workspace: an account owns workspaces, a workspace owns endpoints.
//   - Plan, subscription, payment method: what an account is entitled to.
//   - Activity: one line of the account's feed.
package hookglass

// Version is the version of the program, set at link time.
var Version = "dev"
