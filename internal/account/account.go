// Package account decides who a caller is and what they own: users and their passwords, accounts, workspaces, API
// tokens and browser sessions. It hides how secrets are made, stored and compared: passwords as argon2id, everything
// else as SHA-256 of enough random bits.
//
// What an account may do is decided by [hookglass.Entitlements].
//
// A Service is safe for concurrent use.
package account

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/mail"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/store"
)

// Service manages accounts.
type Service struct {
	db     *store.DB
	log    *slog.Logger
	hasher hasher
	used   chan int64   // tokens whose use is to be recorded
	purged atomic.Int64 // when tokens were last purged, in Unix nanoseconds

	beside   bool // it runs in an administration command, not in a server
	failures spate
}

// New returns the service. The last use of tokens is recorded only while [Service.Run] runs.
func New(db *store.DB, log *slog.Logger) *Service {
	return &Service{db: db, log: log, hasher: newHasher(), used: make(chan int64, 64)}
}

// Run records when tokens were used, and logs how many failed sign-ins were not logged one by one, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	noted := make(map[int64]time.Time)
	quiet := time.NewTicker(tellEvery)
	defer quiet.Stop()
	defer s.endSpate(true)
	for {
		select {
		case <-quiet.C:
			s.endSpate(false)
		case id := <-s.used:
			now := time.Now()
			if now.Sub(noted[id]) < useGrain {
				continue
			}
			if len(noted) >= maxNoted {
				clear(noted)
			}
			noted[id] = now
			err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.TouchToken(id) })
			if err != nil && ctx.Err() == nil {
				s.log.Warn("the use of a token was not noted", "token", id, "error", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// keepEnded is how long a token is listed after it was revoked or expired, and tokensEvery is how often older ones are
// purged.
const (
	keepEnded   = 90 * 24 * time.Hour
	tokensEvery = time.Hour
)

// Purge deletes expired sessions, login links, old tokens and rate limits. There may be as many rate limits as there
// were client addresses, so they are deleted in batches, with pauses in between for other users of the storage.
func (s *Service) Purge(ctx context.Context) error {
	if err := s.db.UpdateInPieces(ctx, (*store.Tx).PurgeSessions); err != nil {
		return err
	}
	if err := s.purgeTokens(ctx); err != nil {
		return err
	}
	last := ""
	return s.db.UpdateInPieces(ctx, func(tx *store.Tx) (more bool, err error) {
		next, err := tx.PurgeRateLimits(last)
		if err == nil {
			last = next
		}
		return next != "", err
	})
}

func (s *Service) purgeTokens(ctx context.Context) error {
	last, now := s.purged.Load(), time.Now()
	if now.Sub(time.Unix(0, last)).Abs() < tokensEvery || !s.purged.CompareAndSwap(last, now.UnixNano()) {
		return nil
	}
	err := s.db.UpdateInPieces(ctx, func(tx *store.Tx) (bool, error) { return tx.PurgeTokens(tx.Now.Add(-keepEnded)) })
	if err != nil {
		s.purged.Store(last)
	}
	return err
}

// Registration describes a new user.
type Registration struct {
	Email       string
	Password    string // empty: can sign in only by a link
	AccountName string // empty: the email address, or its beginning
	Join        *int64 // the account to join; nil: a new one
}

// Registered is the result of a registration.
type Registered struct {
	User      hookglass.User
	Account   hookglass.Account
	Workspace hookglass.Workspace
}

// Register creates a user with a new account and its default workspace, or one who joins an account and shares
// everything in it. A new account has all entitlements (spec: decisions, section 2: plan business, subscription active,
// payment method). It answers validation_failed for an invalid or taken address, a password out of bounds, and a name
// for an account that is joined; not_found if that account does not exist.
func (s *Service) Register(ctx context.Context, r Registration) (Registered, error) {
	return s.register(ctx, r, func(*store.Tx, hookglass.User) error { return nil })
}

// register is Register that does more with the new user in the same transaction.
func (s *Service) register(ctx context.Context, r Registration, more func(*store.Tx, hookglass.User) error) (Registered, error) {
	email, err := canonicalEmail(r.Email)
	if err != nil {
		return Registered{}, err
	}
	if r.Join != nil && r.AccountName != "" {
		return Registered{}, hookglass.Invalid("account", "is for a new account; the one that is joined has a name")
	}
	r.AccountName = cmp.Or(r.AccountName, beginning(email, maxName))
	if err := checkName("account", r.AccountName); err != nil {
		return Registered{}, err
	}
	var hash string
	if r.Password != "" {
		if hash, err = s.hasher.hash(ctx, r.Password); err != nil {
			return Registered{}, err
		}
	}
	var made Registered
	err = s.change(ctx, hookglass.System, func(tx *store.Tx) (string, []hookglass.Fact, error) {
		name, _, _ := strings.Cut(email, "@")
		made = Registered{
			User:      hookglass.User{Email: email, Name: name},
			Account:   hookglass.Account{Name: r.AccountName, Plan: hookglass.PlanBusiness, Subscription: hookglass.SubscriptionActive, PaymentMethod: true},
			Workspace: hookglass.Workspace{Name: "Default"},
		}
		if err := made.create(tx, hash, r.Join); err != nil {
			return "", nil, err
		}
		if err := more(tx, made.User); err != nil {
			return "", nil, err
		}
		text := "a user was created, with an account"
		if r.Join != nil {
			text = "a user was created, a member of an account"
		}
		return text, []hookglass.Fact{number("user", made.User.ID), {Name: "email", Value: email}, number("account", made.Account.ID)}, nil
	})
	return made, err
}

// create stores a registration.
func (made *Registered) create(tx *store.Tx, hash string, join *int64) error {
	if err := tx.CreateUser(&made.User, hash); err != nil {
		return err
	}
	if join != nil {
		return made.join(tx, *join)
	}
	if err := tx.CreateAccount(&made.Account, made.User.ID); err != nil {
		return err
	}
	made.Workspace.AccountID = made.Account.ID
	return tx.CreateWorkspace(&made.Workspace)
}

// join makes the new user a member of an existing account. The user's workspace is its oldest one.
func (made *Registered) join(tx *store.Tx, account int64) (err error) {
	if made.Account, err = tx.Account(account); err != nil {
		return err
	}
	workspaces, err := tx.Workspaces(account)
	if err != nil {
		return err
	}
	made.Workspace = workspaces[0] // every account has one, and none can be deleted
	return tx.AddMember(account, made.User.ID)
}

// passwordWasSet is the log message for a new password.
const passwordWasSet = "a user's password was set"

// SetPassword replaces a user's password and ends the user's browser sessions.
func (s *Service) SetPassword(ctx context.Context, user int64, password string) error {
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return err
	}
	return s.change(ctx, hookglass.System, func(tx *store.Tx) (string, []hookglass.Fact, error) {
		if err := tx.SetPasswordHash(user, hash); err != nil {
			return "", nil, err
		}
		return passwordWasSet, []hookglass.Fact{number("user", user)}, tx.DeleteSessionsOf(user)
	})
}

// Empty reports whether there are no users yet: nobody has signed up, and "admin user create" was not run.
func (s *Service) Empty(ctx context.Context) (bool, error) {
	has, err := store.Read(ctx, s.db, hookglass.System, (*store.View).HasUsers)
	return !has, err
}

// UserByEmail returns the user with an address in any spelling. It is for administration.
func (s *Service) UserByEmail(ctx context.Context, email string) (hookglass.User, error) {
	email, err := canonicalEmail(email)
	if err != nil {
		return hookglass.User{}, err
	}
	return store.Read(ctx, s.db, hookglass.System, func(v *store.View) (hookglass.User, error) { return v.UserByEmail(email) })
}

// CreateWorkspace adds a workspace to an account. It is forbidden for a principal of a single workspace.
func (s *Service) CreateWorkspace(ctx context.Context, who hookglass.Principal, account int64, name string) (hookglass.Workspace, error) {
	w := hookglass.Workspace{AccountID: account, Name: name}
	if who.Workspace != 0 {
		return w, hookglass.Errorf(hookglass.CodeForbidden, "A workspace's token cannot create workspaces.")
	}
	if err := checkName("name", name); err != nil {
		return w, err
	}
	err := s.change(ctx, who, func(tx *store.Tx) (string, []hookglass.Fact, error) {
		err := tx.CreateWorkspace(&w)
		return "a workspace was created", []hookglass.Fact{number("workspace", w.ID), number("account", account)}, err
	})
	return w, err
}

// Change is what to set on an account; nil fields stay unchanged.
type Change struct {
	Plan          *hookglass.Plan
	Subscription  *hookglass.Subscription
	PaymentMethod *bool
	Retention     *time.Duration // 0: the installation's
}

// minRetention is the shortest retention of an account (spec: decisions, section 14, "Operation").
const minRetention = time.Minute

// SetAccount changes an account's plan and settings. It is for administration.
func (s *Service) SetAccount(ctx context.Context, id int64, c Change) (hookglass.Account, error) {
	var faults []hookglass.FieldError
	if c.Plan != nil && !slices.Contains(hookglass.Plans, *c.Plan) {
		faults = append(faults, hookglass.FieldError{Field: "plan", Message: "must be free, pro, team or business"})
	}
	if c.Subscription != nil && !slices.Contains(hookglass.Subscriptions, *c.Subscription) {
		faults = append(faults, hookglass.FieldError{Field: "subscription", Message: "must be none, trialing, active, past_due or canceled"})
	}
	if c.Retention != nil && *c.Retention != 0 && *c.Retention < minRetention {
		faults = append(faults, hookglass.FieldError{Field: "retention", Message: "must be at least 1m, or 0 for the installation's"})
	}
	var account hookglass.Account
	if err := hookglass.InvalidFields(faults); err != nil {
		return account, err
	}
	err := s.change(ctx, hookglass.System, func(tx *store.Tx) (_ string, _ []hookglass.Fact, err error) {
		if account, err = tx.AccountToChange(id); err != nil {
			return "", nil, err
		}
		set(&account.Plan, c.Plan)
		set(&account.Subscription, c.Subscription)
		set(&account.PaymentMethod, c.PaymentMethod)
		set(&account.Retention, c.Retention)
		return "an account was changed", append([]hookglass.Fact{number("account", id)}, c.facts()...), tx.UpdateAccount(account)
	})
	return account, err
}

// facts returns what a change sets, for the log.
func (c Change) facts() (all []hookglass.Fact) {
	add := func(name string, value any) { all = append(all, hookglass.Fact{Name: name, Value: fmt.Sprint(value)}) }
	if c.Plan != nil {
		add("plan", *c.Plan)
	}
	if c.Subscription != nil {
		add("subscription", *c.Subscription)
	}
	if c.PaymentMethod != nil {
		add("payment_method", *c.PaymentMethod)
	}
	if c.Retention != nil {
		add("retention", *c.Retention)
	}
	return all
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// maxEmail is the longest possible address (RFC 5321, section 4.5.3.1.3, without the angle brackets).
const maxEmail = 254

// canonicalEmail returns an address as it is stored: in lower case, so that one person has one user.
func canonicalEmail(s string) (string, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Address != s || len(s) > maxEmail || strings.ContainsFunc(s, unfit) {
		return "", hookglass.Invalid("email", "must be an email address")
	}
	return s, nil
}

// maxName bounds names that people give to things.
const maxName = 100

func checkName(field, s string) error {
	if strings.TrimSpace(s) == "" || utf8.RuneCountInString(s) > maxName || !utf8.ValidString(s) || strings.ContainsFunc(s, unfit) {
		return hookglass.Invalid(field, "must be 1 to %d characters without control characters", maxName)
	}
	return nil
}

// beginning returns at most the first so many characters of a text.
func beginning(s string, most int) string {
	if all := []rune(s); len(all) > most {
		return string(all[:most])
	}
	return s
}

// unfit reports runes that no name or address may hold: control characters, and the code points that the store uses for
// bytes that are not text.
func unfit(r rune) bool { return unicode.IsControl(r) || r >= 0x10FF00 }

// newSecret returns 200 random bits as 40 characters, enough to show a few of them as a hint.
func newSecret() string {
	return strings.ToLower(rand.Text() + rand.Text()[:14]) // 5 bits per character
}

// digest hashes secrets with enough random bits for storage. They cannot be guessed, so a fast hash suffices.
func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
