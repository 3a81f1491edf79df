package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/store"
)

// TokenCmd is `hookglass admin token`.
type TokenCmd struct {
	Create TokenCreateCmd `cmd:"" help:"Create an API token and print it, the only time that it is shown."`
	List   TokenListCmd   `cmd:"" help:"List a user's tokens."`
	Revoke TokenRevokeCmd `cmd:"" help:"End a token at once."`
}

// TokenCreateCmd is `hookglass admin token create`.
type TokenCreateCmd struct {
	Email     string                `required:"" placeholder:"ADDRESS" help:"The user whose token it is."`
	Level     *hookglass.TokenLevel `enum:"account,workspace" placeholder:"LEVEL" help:"account (all workspaces; default) or workspace."`
	Workspace *int64                `placeholder:"ID" help:"The workspace of a token of that level (default: the account's oldest)."`
	Scopes    []string              `enum:"read,write,tunnel" default:"read,write,tunnel" placeholder:"SCOPE" help:"What it may do: read, write, tunnel (default: all)."`
	Name      string                `placeholder:"NAME" help:"What it is for."`
	ExpiresIn *span                 `placeholder:"D" help:"Its life, for example 30d (default: without end)."`
}

// Validate refuses a workspace for a token of the account, and a zero lifetime, which would otherwise mean no expiry.
func (c *TokenCreateCmd) Validate() error {
	if c.Level != nil && *c.Level == hookglass.LevelAccount && c.Workspace != nil {
		return errors.New("--workspace is for tokens of --level workspace")
	}
	if c.ExpiresIn != nil && *c.ExpiresIn == 0 {
		return errors.New("--expires-in must be more than 0; leave it out for a token without end")
	}
	return nil
}

func (c *TokenCreateCmd) Run(ctx context.Context, t *Terminal, a *AdminCmd) error {
	scopes, err := hookglass.ParseScopes(c.Scopes)
	if err != nil {
		return err
	}
	var life time.Duration
	if c.ExpiresIn != nil {
		life = time.Duration(*c.ExpiresIn)
	}
	level := hookglass.LevelAccount
	switch {
	case c.Level != nil:
		level = *c.Level
	case c.Workspace != nil:
		level = hookglass.LevelWorkspace
	}
	return a.with(ctx, t, func(_ *store.DB, s *account.Service) error {
		user, err := s.UserByEmail(ctx, c.Email)
		if err != nil {
			return err
		}
		secret, token, err := s.CreateToken(ctx, hookglass.System, account.TokenRequest{
			User: user.ID, Workspace: c.Workspace, Level: level, Name: c.Name, Scopes: scopes, ExpiresIn: life,
		})
		if err != nil {
			return err
		}
		object := tokenJSON(token)
		object["token"] = secret
		return a.print(t, object, line("%s", secret))
	})
}

// TokenListCmd is `hookglass admin token list`.
type TokenListCmd struct {
	Email string `required:"" placeholder:"ADDRESS" help:"The user whose tokens they are."`
}

func (c *TokenListCmd) Run(ctx context.Context, t *Terminal, a *AdminCmd) error {
	return a.look(ctx, func(db *store.DB, s *account.Service) error {
		user, err := s.UserByEmail(ctx, c.Email)
		if err != nil {
			return err
		}
		all, err := store.Read(ctx, db, hookglass.System, func(v *store.View) ([]hookglass.Token, error) { return v.Tokens(user.ID) })
		if err != nil {
			return err
		}
		objects, rows := make([]any, len(all)), make([]string, len(all))
		for i, tok := range all {
			objects[i] = tokenJSON(tok)
			rows[i] = fmt.Sprintf("%d\t%s…\t%s\t%s\t%s\t%s\t%s\t%s", tok.ID, tok.Hint, tok.Name, tok.Level, scopeNames(tok.Scopes), date(tok.LastUsedAt), date(tok.ExpiresAt), tokenState(tok))
		}
		return a.print(t, map[string]any{"tokens": objects}, table("ID\tTOKEN\tNAME\tLEVEL\tSCOPES\tLAST USED\tEXPIRES\tSTATE", rows))
	})
}

// TokenRevokeCmd is `hookglass admin token revoke`.
type TokenRevokeCmd struct {
	ID int64 `name:"id" required:"" placeholder:"N" help:"The token, as list shows it."`
}

func (c *TokenRevokeCmd) Run(ctx context.Context, t *Terminal, a *AdminCmd) error {
	return a.with(ctx, t, func(_ *store.DB, s *account.Service) error {
		if err := s.RevokeToken(ctx, hookglass.System, c.ID); err != nil {
			return err
		}
		return a.print(t, map[string]any{"id": c.ID, "revoked": true}, line("Revoked token %d.", c.ID))
	})
}

func scopeNames(scopes []hookglass.Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ",")
}

func tokenState(t hookglass.Token) string {
	switch {
	case !t.RevokedAt.IsZero():
		return "revoked"
	case !t.Usable(time.Now()):
		return "expired"
	}
	return "valid"
}

func tokenJSON(t hookglass.Token) map[string]any {
	var workspace any
	if t.WorkspaceID != 0 {
		workspace = t.WorkspaceID
	}
	return map[string]any{
		"id": t.ID, "name": t.Name, "hint": t.Hint, "level": t.Level, "scopes": t.Scopes, "account_id": t.AccountID, "workspace_id": workspace,
		"created_at": stamp(t.CreatedAt), "expires_at": stamp(t.ExpiresAt), "last_used_at": stamp(t.LastUsedAt), "revoked_at": stamp(t.RevokedAt),
		"state": tokenState(t),
	}
}
