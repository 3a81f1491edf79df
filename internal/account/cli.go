package account

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// codeLife is how long a one-time code for the command line is valid (spec: decisions, section 10).
const codeLife = 10 * time.Minute

// codeLen is the length of a code without its hyphens: 60 random bits, which nobody guesses within codeLife.
const codeLen = 12

// commandLine is the name of tokens that the command line gets when a user signs in.
const commandLine = "Command line"

// wrongCode is the reason in the log for a code that is refused.
const wrongCode = "a one-time code that is wrong, was used or has expired"

// CommandLineToken creates a token for a command line that its user approved in the browser. Such tokens are valid for
// the whole account (spec, "Authentication").
func (s *Service) CommandLineToken(ctx context.Context, who hookglass.Principal) (string, error) {
	token, _, err := s.CreateToken(ctx, who, commandLineToken(who.User, who.Account))
	return token, err
}

func commandLineToken(user, account int64) TokenRequest {
	return TokenRequest{User: user, Account: account, Level: hookglass.LevelAccount, Name: commandLine, Scopes: hookglass.Scopes}
}

// CommandLineCode creates a code with which a command line can sign in once, within ten minutes, as the user who
// approved it. It is formatted as three groups of four.
func (s *Service) CommandLineCode(ctx context.Context, who hookglass.Principal) (string, error) {
	if who.User == 0 {
		return "", hookglass.Errorf(hookglass.CodeForbidden, "Only a user can sign a command line in.")
	}
	code := rand.Text()[:codeLen]
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error {
		return tx.CreateSession(store.SessionCode, digest(code), who.User, tx.Now.Add(codeLife))
	})
	return code[:4] + "-" + code[4:8] + "-" + code[8:], err
}

// ExchangeCode redeems a code for a token of the oldest account of its user. It answers unauthorized for a code that is
// wrong, used or expired. Hyphens, spaces and case do not matter. A token is exchanged for itself: the page on which a
// user approves sends it to the command line as a code, too.
func (s *Service) ExchangeCode(ctx context.Context, code string) (token string, user hookglass.User, account hookglass.Account, err error) {
	if strings.HasPrefix(code, hookglass.PrefixToken+"_") {
		who, err := s.Authenticate(ctx, code)
		if hookglass.Is(err, hookglass.CodeUnauthorized) {
			s.failed(ctx, wrongCode, 0)
		}
		if err != nil {
			return "", user, account, err
		}
		user, account, err = s.Verify(ctx, who)
		return code, user, account, err
	}
	code = strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(code))
	refused := hookglass.Errorf(hookglass.CodeUnauthorized, "This code is wrong, was used already or has expired.")
	if len(code) != codeLen {
		s.failed(ctx, wrongCode, 0)
		return "", user, account, refused
	}
	err = s.change(ctx, hookglass.System, func(tx *store.Tx) (_ string, _ []hookglass.Fact, err error) {
		id, err := tx.TakeSession(store.SessionCode, digest(code))
		if err != nil {
			return "", nil, err
		}
		if user, err = tx.User(id); err != nil {
			return "", nil, err
		}
		secret, made, err := commandLineToken(id, 0).create(tx)
		if err != nil {
			return "", nil, err
		}
		token = secret
		account, err = tx.Account(made.AccountID)
		return tokenWasCreated, append(s.author(hookglass.Principal{User: id}), tokenFacts(made)...), err
	})
	if hookglass.Is(err, hookglass.CodeNotFound) {
		s.failed(ctx, wrongCode, 0)
		err = refused
	}
	if err != nil {
		return "", user, account, err
	}
	return token, user, account, nil
}
