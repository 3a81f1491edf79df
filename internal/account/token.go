package account

import (
	"context"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

const (
	useGrain = time.Minute // how often the last use of a token is recorded at most
	maxNoted = 10_000      // tokens whose recording is remembered
)

// hintLen is the length of the hint in lists of tokens: the prefix and 25 of the 200 random bits.
const hintLen = len(hookglass.PrefixToken) + 1 + 5

// maxBearer bounds what is accepted as a token; none is longer.
const maxBearer = 128

// TokenRequest describes a new token.
type TokenRequest struct {
	User      int64
	Account   int64  // 0: the user's oldest
	Workspace *int64 // with level workspace; nil: the account's oldest
	Level     hookglass.TokenLevel
	Name      string
	Scopes    []hookglass.Scope
	ExpiresIn time.Duration // 0: never
}

// CreateToken creates a token and returns its text, which is not stored. Only administration creates tokens for other
// users, and nobody creates one with more rights than their own.
func (s *Service) CreateToken(ctx context.Context, who hookglass.Principal, r TokenRequest) (string, hookglass.Token, error) {
	if err := r.check(who); err != nil {
		return "", hookglass.Token{}, err
	}
	var secret string
	var token hookglass.Token
	err := s.change(ctx, who, func(tx *store.Tx) (_ string, _ []hookglass.Fact, err error) {
		secret, token, err = r.create(tx)
		return tokenWasCreated, tokenFacts(token), err
	})
	if err != nil {
		return "", hookglass.Token{}, err
	}
	return secret, token, nil
}

// create stores a new token.
func (r TokenRequest) create(tx *store.Tx) (secret string, token hookglass.Token, err error) {
	account, workspace, err := r.place(&tx.View)
	if err != nil {
		return "", token, err
	}
	secret = hookglass.PrefixToken + "_" + newSecret()
	token = hookglass.Token{
		UserID: r.User, AccountID: account, WorkspaceID: workspace,
		Name: r.Name, Level: r.Level, Scopes: r.Scopes, Hint: secret[:hintLen],
	}
	if r.ExpiresIn > 0 {
		token.ExpiresAt = tx.Now.Add(r.ExpiresIn)
	}
	return secret, token, tx.CreateToken(&token, digest(secret))
}

// tokenWasCreated is the log message for a new token.
const tokenWasCreated = "a token was created"

// tokenFacts returns what is logged of a new token: what it allows, nothing of its text.
func tokenFacts(t hookglass.Token) []hookglass.Fact {
	facts := []hookglass.Fact{number("token", t.ID), number("user", t.UserID), number("account", t.AccountID)}
	if t.WorkspaceID != 0 {
		facts = append(facts, number("workspace", t.WorkspaceID))
	}
	scopes := make([]string, len(t.Scopes))
	for i, scope := range t.Scopes {
		scopes[i] = string(scope)
	}
	return append(facts, hookglass.Fact{Name: "scopes", Value: strings.Join(scopes, ",")})
}

func (r TokenRequest) check(who hookglass.Principal) error {
	if !who.System && (who.User != r.User || who.Workspace != 0 && r.Level != hookglass.LevelWorkspace) {
		return hookglass.Errorf(hookglass.CodeForbidden, "A token cannot have more rights than its creator.")
	}
	for _, scope := range r.Scopes {
		if err := who.May(scope); err != nil {
			return err
		}
	}
	var faults []hookglass.FieldError
	fault := func(field, message string) {
		faults = append(faults, hookglass.FieldError{Field: field, Message: message})
	}
	if r.Name != "" && checkName("name", r.Name) != nil {
		fault("name", "must be at most 100 characters without control characters")
	}
	if len(r.Scopes) == 0 {
		fault("scopes", "must name at least one of read, write and tunnel")
	}
	switch {
	case r.Level != hookglass.LevelAccount && r.Level != hookglass.LevelWorkspace:
		fault("level", "must be account or workspace")
	case r.Level == hookglass.LevelAccount && r.Workspace != nil:
		fault("workspace", "is for tokens of level workspace")
	}
	if r.ExpiresIn < 0 {
		fault("expires_in", "must not be negative")
	}
	return hookglass.Refusal(faults, nil)
}

// place determines the account of a token, and the workspace of a workspace-level one. Both must be the user's.
func (r TokenRequest) place(v *store.View) (account, workspace int64, err error) {
	accounts, err := v.AccountsOf(r.User)
	if err != nil {
		return 0, 0, err
	}
	if len(accounts) == 0 {
		return 0, 0, hookglass.NotFound("user with an account")
	}
	account = accounts[0].ID
	if r.Workspace != nil {
		w, err := v.Workspace(*r.Workspace)
		if err != nil {
			return 0, 0, err
		}
		account, workspace = w.AccountID, w.ID
		if r.Account != 0 && r.Account != account {
			return 0, 0, hookglass.NotFound("workspace")
		}
	} else if r.Account != 0 {
		account = r.Account
	}
	if !slices.ContainsFunc(accounts, func(a hookglass.Account) bool { return a.ID == account }) {
		return 0, 0, hookglass.NotFound("account of this user")
	}
	if r.Level == hookglass.LevelWorkspace && workspace == 0 {
		workspaces, err := v.Workspaces(account)
		if err != nil {
			return 0, 0, err
		}
		if len(workspaces) == 0 {
			return 0, 0, hookglass.NotFound("workspace")
		}
		workspace = workspaces[0].ID
	}
	return account, workspace, nil
}

// RevokeToken revokes a token at once, on all nodes. Its sockets learn of it by [store.TopicTokens].
func (s *Service) RevokeToken(ctx context.Context, who hookglass.Principal, id int64) error {
	return s.change(ctx, who, func(tx *store.Tx) (string, []hookglass.Fact, error) {
		return "a token was revoked", []hookglass.Fact{number("token", id)}, tx.RevokeToken(id)
	})
}

// Authenticate returns the principal of a bearer token: the holder of an API token, or a temporary endpoint's key,
// which is valid for that endpoint only. Whatever is wrong with the token, it answers the same unauthorized.
func (s *Service) Authenticate(ctx context.Context, bearer string) (hookglass.Principal, error) {
	if len(bearer) > maxBearer {
		return hookglass.Principal{}, unauthorized()
	}
	hash, now := digest(bearer), s.db.Now()
	var who hookglass.Principal
	var token hookglass.Token
	err := s.db.Glance(ctx, hookglass.System, func(v *store.View) error {
		if hookglass.IsTunnelKey(bearer) {
			id, err := v.EndpointByTunnelKey(hash, now)
			who = hookglass.Principal{Endpoint: id, Scopes: hookglass.Scopes}
			return err
		}
		var err error
		token, err = v.TokenByHash(hash)
		who = hookglass.Principal{Account: token.AccountID, Workspace: token.WorkspaceID, User: token.UserID, Token: token.ID, Scopes: token.Scopes}
		return err
	})
	if hookglass.Is(err, hookglass.CodeNotFound) || err == nil && token.ID != 0 && !token.Usable(now) {
		return hookglass.Principal{}, unauthorized()
	}
	if err != nil {
		return hookglass.Principal{}, err
	}
	if token.ID != 0 && now.Sub(token.LastUsedAt) >= useGrain {
		select {
		case s.used <- token.ID:
		default: // the next use will be recorded
		}
	}
	return who, nil
}

// Verify returns the user and the account of a principal, for GET /auth/verify. It answers forbidden for the key of a
// temporary endpoint, which has no user.
func (s *Service) Verify(ctx context.Context, who hookglass.Principal) (user hookglass.User, account hookglass.Account, err error) {
	if who.User == 0 {
		return user, account, hookglass.Errorf(hookglass.CodeForbidden, "This key belongs to an endpoint, not to a user.")
	}
	err = s.db.View(ctx, who, func(v *store.View) (err error) {
		if user, err = v.User(who.User); err != nil {
			return err
		}
		account, err = v.Account(who.Account)
		return err
	})
	return user, account, err
}

func unauthorized() error {
	return hookglass.Errorf(hookglass.CodeUnauthorized, "The API token is missing or not valid.")
}
