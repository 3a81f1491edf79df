package httpd

import (
	"context"
	"net/http"
	"strings"
	"time"

	"hookglass"
)

// Authenticator finds the principal of a bearer token. It answers unauthorized for an invalid one.
type Authenticator func(ctx context.Context, bearer string) (hookglass.Principal, error)

// Bearer returns the token of a request: exactly one Authorization field with the scheme Bearer, one space and a token
// (RFC 6750, section 2.1). It answers unauthorized for anything else, even a second field or odd spacing: if two
// readers of a request might see different tokens, neither is trusted.
func Bearer(r *http.Request) (string, error) {
	fields := r.Header["Authorization"]
	if len(fields) != 1 {
		return "", hookglass.Errorf(hookglass.CodeUnauthorized, "An API token is needed: Authorization: Bearer <token>.")
	}
	scheme, token, _ := strings.Cut(fields[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || !token68(token) {
		return "", hookglass.Errorf(hookglass.CodeUnauthorized, "The Authorization header is not of the form: Bearer <token>.")
	}
	return token, nil
}

// token68 is the form of a bearer token (RFC 9110, section 11.2).
func token68(s string) bool {
	body := strings.TrimRight(s, "=")
	if body == "" {
		return false
	}
	for i := range len(body) {
		c := body[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~+/", c) >= 0) {
			return false
		}
	}
	return true
}

// Authenticate finds the principal of a request and stores it in the request's context. It answers unauthorized.
func Authenticate(r *http.Request, find Authenticator) (hookglass.Principal, error) {
	token, err := Bearer(r)
	if err != nil {
		return hookglass.Principal{}, err
	}
	who, err := find(r.Context(), token)
	if err != nil {
		return hookglass.Principal{}, err
	}
	From(r.Context()).Who = who
	return who, nil
}

// patience is how long a stream or a wait stands still for the check of its token.
const patience = 3 * time.Second

// StillPermitted answers unauthorized if the token of a request has been revoked or has expired since it was first
// checked. An error of the storage, or an answer that takes longer than patience, counts as permitted.
func StillPermitted(r *http.Request, find Authenticator) error {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	token, err := Bearer(r)
	if err == nil {
		_, err = find(ctx, token)
	}
	if hookglass.Is(err, hookglass.CodeUnauthorized) {
		return err
	}
	return nil
}
