package rest

import (
	"context"
	"net/http"

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
}
