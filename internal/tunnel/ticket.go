package tunnel

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/store"
)

// maxWord bounds each text in which a client describes itself, in bytes.
const maxWord = 255

// maxCapabilities bounds how many capabilities a client names.
const maxCapabilities = 32

// Grant is a ticket with its secrets, which are shown only in this answer.
type Grant struct {
	Ticket     string
	Endpoint   hookglass.Endpoint
	ClientID   string
	Credential string
}

// Connect creates a ticket for a socket. A ticket of an authenticated principal is valid for all of its endpoints, and
// is requested for one of them; a ticket of a temporary endpoint's key is valid for that endpoint only. It answers
// not_found, forbidden for an email endpoint, and validation_failed.
func (s *Service) Connect(ctx context.Context, who hookglass.Principal, ref string, client hookglass.TunnelClient) (g Grant, err error) {
	if err := checkClient(&client); err != nil {
		return g, err
	}
	if ref = cmp.Or(ref, string(who.Endpoint)); ref == "" {
		return g, hookglass.Invalid("endpoint_id", "is required")
	}
	g.Ticket, g.Credential = hookglass.NewRandomID(hookglass.PrefixTunnelTicket), hookglass.NewRandomID(hookglass.PrefixTunnelCredential)
	g.ClientID = hookglass.NewSortableID(hookglass.PrefixTunnelClient, s.db.Now())
	client.ID = g.ClientID
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		if g.Endpoint, err = tx.Endpoint(ref); err != nil {
			return err
		}
		if g.Endpoint.Kind != hookglass.KindWebhook {
			return hookglass.Errorf(hookglass.CodeForbidden, "A tunnel is opened for a webhook endpoint; subscribe to an email endpoint on that tunnel's socket.")
		}
		return tx.CreateTunnelTicket(hookglass.TunnelTicket{
			EndpointNum: g.Endpoint.Num, Who: who, Client: client, ExpiresAt: tx.Now.Add(s.life),
		}, digest(g.Ticket), digest(g.Credential))
	})
	return g, err
}

func checkClient(c *hookglass.TunnelClient) error {
	var f faults
	for _, said := range []struct{ name, value string }{
		{"installation_id", c.InstallationID}, {"client_name", c.Name},
		{"client_metadata.hostname", c.Hostname}, {"client_metadata.os", c.OS}, {"client_metadata.arch", c.Arch},
	} {
		if !word(said.value) {
			f.add(said.name, "must be at most %d bytes of text without control characters", maxWord)
		}
	}
	if len(c.Capabilities) > maxCapabilities || slices.ContainsFunc(c.Capabilities, func(s string) bool { return !word(s) }) {
		f.add("capabilities", "must be at most %d texts of at most %d bytes without control characters", maxCapabilities, maxWord)
	}
	if len(f) > 0 {
		return hookglass.InvalidFields(f)
	}
	return nil
}

// word reports whether a client may use a text to describe itself.
func word(s string) bool {
	return len(s) <= maxWord && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// redeem uses up a ticket, stores the session that it opens, and returns the principal that its bearer acts as. It
// answers unauthorized for a ticket that does not exist, was used, or has expired, and when the right that it is based
// on has ended; and unavailable while the node has no lease.
func (s *Service) redeem(ctx context.Context, ticket string, session *hookglass.TunnelSession) (t hookglass.TunnelTicket, err error) {
	none := hookglass.Errorf(hookglass.CodeUnauthorized, "The ticket is not valid.")
	if len(ticket) > maxWord {
		return t, none
	}
	hash := digest(ticket)
	known, err := store.Read(ctx, s.db, hookglass.System, func(v *store.View) (bool, error) {
		return v.HasTunnelTicket(hash)
	})
	if err != nil {
		return t, err
	}
	if !known {
		return t, none
	}
	err = s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error {
		if t, err = tx.RedeemTunnelTicket(hash); err != nil {
			return err
		}
		e, err := tx.EndpointByNum(t.EndpointNum)
		if err != nil || !tx.Now.Before(t.ExpiresAt) {
			known = false // the ticket is used up nevertheless
			return nil
		}
		t.Who.Scopes = []hookglass.Scope{hookglass.ScopeRead, hookglass.ScopeTunnel}
		if t.Who.Token == 0 {
			t.Who.Endpoint = e.ID
			known = e.AccountID == 0 // a key ends when its endpoint is claimed
		} else {
			usable, err := tx.UsableTokens([]int64{t.Who.Token}, tx.Now)
			if err != nil {
				return err
			}
			known = usable[t.Who.Token]
		}
		if !known {
			return nil
		}
		if held, err := tx.HoldsTunnelLease(session.Node); err != nil {
			return err
		} else if !held { // the node was suspended and counts as dead; the ticket stays valid
			return &hookglass.Error{Code: hookglass.CodeUnavailable, Message: "The service is starting."}
		}
		session.Client = t.Client
		return tx.CreateTunnelSession(session)
	})
	if hookglass.Is(err, hookglass.CodeNotFound) || err == nil && !known {
		return t, none
	}
	return t, err
}
