package rest

import (
	"context"
	"net/http"
	"time"

	"hookglass"
	"hookglass/api"
)

func (s *service) account(t *table) {
	handle(t, operation{
		id: "verify-token", method: http.MethodGet, path: "/auth/verify", tag: "Account",
		summary: "Say whose a token is",
		text:    "Any valid token may ask.",
	}, func(ctx context.Context, _ *struct{}) (api.Verification, error) {
		user, account, err := s.Accounts.Verify(ctx, asker(ctx))
		return api.FromIdentity(user, account), err
	})
	handleBody(t, operation{
		id: "exchange-code", method: http.MethodPost, path: "/cli_auth/exchange", tag: "Account",
		summary: "Sign a command line in by a one-time code",
		text:    "The page /auth/cli shows the code to who approves it. It is good once, for ten minutes. A token is exchanged for itself. At most 10 tries a minute for one address.",
		access:  access{public: true}, limit: rate{10, time.Minute}, loose: true, errors: []int{http.StatusUnauthorized},
	}, func(ctx context.Context, _ *struct{}, body *api.ExchangeCode) (out api.One[api.SignedIn], err error) {
		if body.Code == "" {
			return out, hookglass.Invalid("code", "is required")
		}
		token, user, account, err := s.Accounts.ExchangeCode(ctx, body.Code)
		who := api.FromIdentity(user, account)
		out.Data = api.SignedIn{Token: token, User: who.User, Account: who.Account}
		return out, err
	})
}
