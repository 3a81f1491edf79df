package httpd

import (
	"context"
	"net/http"
	"strings"
	"time"

	"hookglass"
)

// Authenticator finds who a bearer token is. It answers unauthorized for one that is not valid.
type Authenticator func(ctx context.Context, bearer string) (hookglass.Principal, error)

// Bearer returns the token of a request: one Authorization field, the scheme Bearer, one space and a token
// (RFC 6750, section 2.1). It answers unauthorized for anything else, a second field and odd spacing included:
// where two readers of one request might see two tokens, none is believed.
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

// Authenticate finds who asks and notes it in the request's context. It answers unauthorized.
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

// StillPermitted answers unauthorized when the token of a request was revoked or has expired since it was shown.
// Trouble in the storage is no answer, and is not waited for longer than patience.
func StillPermitted(r *http.Request, find Authenticator, patience time.Duration) error {
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
