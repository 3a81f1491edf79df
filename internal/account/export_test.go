package account

import (
	"context"

	"hookglass"
)

// Open is the end of a sign-in whose password was that of the stored hash.
func Open(ctx context.Context, s *Service, user int64, stored string) (Session, error) {
	return s.open(ctx, user, stored)
}

// ReplacePassword is the end of a change of a password that was that of the known hash.
func ReplacePassword(ctx context.Context, s *Service, who hookglass.Principal, known, hash, secret string) error {
	return s.replacePassword(ctx, who, known, hash, secret)
}

// ReadPHC reads and writes a stored password.
func ReadPHC(s string) (string, bool) {
	p, ok := parsePHC(s)
	return p.String(), ok
}

// EndSpate has the time of what failed lately be over.
func EndSpate(s *Service) { s.endSpate(true) }
