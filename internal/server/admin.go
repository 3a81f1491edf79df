package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/store"
)

// AdminCmd is `hookglass admin`. Whoever can open the database can administer it; a running server sees changes within
// two seconds.
type AdminCmd struct {
	Storage
	output

	User      UserCmd      `cmd:"" help:"Users."`
	Token     TokenCmd     `cmd:"" help:"API tokens."`
	Account   AccountCmd   `cmd:"" help:"Accounts, and what they have bought."`
	Workspace WorkspaceCmd `cmd:"" help:"Workspaces."`
	Keys      KeysCmd      `cmd:"" help:"The keyset that encrypts secrets."`
}

// with runs fn on the existing database.
func (a *AdminCmd) with(ctx context.Context, t *Terminal, fn func(*store.DB, *account.Service) error) error {
	if !a.exists() {
		return a.missing()
	}
	return a.begin(ctx, t, fn)
}

// look runs fn, which only reads, on the existing database without migrating it: a newer program that only lists must
// not update the schema, because the older program that serves it could then not start again.
func (a *AdminCmd) look(ctx context.Context, fn func(*store.DB, *account.Service) error) error {
	if !a.exists() {
		return a.missing()
	}
	db, err := a.open(ctx, nil)
	if err != nil {
		return err
	}
	return a.on(ctx, db, db.Current(ctx), fn)
}

// begin runs fn on the database, which is created if it is missing: the first user may be created before the service
// first starts.
func (a *AdminCmd) begin(ctx context.Context, t *Terminal, fn func(*store.DB, *account.Service) error) error {
	db, err := a.prepare(ctx, t.log())
	if err != nil {
		return err
	}
	return a.on(ctx, db, nil, fn)
}

// on runs fn on a complete database, and closes it.
func (a *AdminCmd) on(ctx context.Context, db *store.DB, wrong error, fn func(*store.DB, *account.Service) error) error {
	err := wrong
	if err == nil {
		err = filled(ctx, db)
	}
	if err == nil {
		err = fn(db, account.Administer(db))
	}
	return errors.Join(remedied(err), db.Close())
}

// table prints rows under a heading; cells are separated by tabs.
func table(heading string, rows []string) func(io.Writer) error {
	return func(w io.Writer) error {
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, heading)
		for _, r := range rows {
			fmt.Fprintln(tw, r)
		}
		return tw.Flush()
	}
}

// UserCmd is `hookglass admin user`.
type UserCmd struct {
	List     UserListCmd     `cmd:"" help:"List users and their accounts."`
	Create   UserCreateCmd   `cmd:"" help:"Create a user with an account and a default workspace, or in an account that is there."`
	Password UserPasswordCmd `cmd:"" help:"Set a user's password and sign the user out everywhere."`
}

// UserListCmd is `hookglass admin user list`.
type UserListCmd struct {
	Account *int64 `placeholder:"ID" help:"Only the members of this account."`
}

func (c *UserListCmd) Run(ctx context.Context, t *Terminal, a *AdminCmd) error {
	return a.look(ctx, func(db *store.DB, _ *account.Service) error {
		objects, rows := []any{}, []string{}
		err := db.View(ctx, hookglass.System, func(v *store.View) (err error) {
			var accounts []hookglass.Account
			if c.Account == nil {
				accounts, err = v.Accounts()
			} else {
				accounts = make([]hookglass.Account, 1)
				accounts[0], err = v.Account(*c.Account)
			}
			if err != nil {
				return err
			}
			for _, acc := range accounts {
				users, err := v.Members(acc.ID)
				if err != nil {
					return err
				}
				for _, u := range users {
					objects = append(objects, map[string]any{"user": userJSON(u), "account": accountJSON(acc)})
					rows = append(rows, fmt.Sprintf("%d\t%s\t%d\t%s\t%s", u.ID, u.Email, acc.ID, acc.Name, u.CreatedAt.UTC().Format(time.RFC3339)))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return a.print(t, map[string]any{"users": objects}, table("ID\tEMAIL\tACCOUNT\tNAME\tSINCE", rows))
	})
}

// UserCreateCmd is `hookglass admin user create`.
type UserCreateCmd struct {
	Email         string `required:"" placeholder:"ADDRESS" help:"The user's email address."`
	PasswordStdin bool   `help:"Read the password, a line, from standard input; without one the user cannot sign in to the web app."`
	Account       string `placeholder:"NAME" help:"Name of the account (default: the address)."`
	Join          *int64 `placeholder:"ID" help:"Make the user a member of this account instead, with all that its members may (\"admin account list\" has the ids)."`
}

func (c *UserCreateCmd) Run(ctx context.Context, t *Terminal, a *AdminCmd) error {
	r := account.Registration{Email: c.Email, AccountName: c.Account, Join: c.Join}
	if c.PasswordStdin {
		var err error
		if r.Password, err = readPassword(t); err != nil {
			return err
		}
	}
	first := !a.exists()
	return a.begin(ctx, t, func(_ *store.DB, s *account.Service) error {
		made, err := s.Register(ctx, r)
		if err != nil {
			return err
		}
		text := "Created user %d (%s), account %d (%s) and workspace %d (%s)."
		if r.Join != nil {
			text = "Created user %d (%s), a member of account %d (%s), whose first workspace is %d (%s)."
		}
		if r.Password == "" {
			text += "\nWithout a password the user cannot sign in to the web app: \"admin user password --password-stdin\" sets one."
		}
		if first {
			text += "\nThere was no database yet: one is made. Start the service with the same --data, or it does not know this user: " + strings.ReplaceAll(a.Data, "%", "%%")
		}
		return a.print(t, map[string]any{
			"user": userJSON(made.User), "account": accountJSON(made.Account), "workspace": workspaceJSON(made.Workspace),
		}, line(text, made.User.ID, made.User.Email, made.Account.ID, made.Account.Name, made.Workspace.ID, made.Workspace.Name))
	})
}

// UserPasswordCmd is `hookglass admin user password`.
type UserPasswordCmd struct {
	Email         string `required:"" placeholder:"ADDRESS" help:"The user's email address."`
	PasswordStdin bool   `required:"" help:"Read the password, a line, from standard input."`
}

func (c *UserPasswordCmd) Run(ctx context.Context, t *Terminal, a *AdminCmd) error {
	password, err := readPassword(t)
	if err != nil {
		return err
	}
	return a.with(ctx, t, func(_ *store.DB, s *account.Service) error {
		user, err := s.UserByEmail(ctx, c.Email)
		if err != nil {
			return err
		}
		if err := s.SetPassword(ctx, user.ID, password); err != nil {
			return err
		}
		return a.print(t, map[string]any{"user": userJSON(user)}, line("Set the password of %s.", user.Email))
	})
}

// maxPasswordInput bounds the input; the account's own bound for passwords is lower.
const maxPasswordInput = 4096

// readPassword reads up to the end of the line or of the input.
func readPassword(t *Terminal) (string, error) {
	if t.Typed {
		fmt.Fprint(t.Err, "Password (it shows as you type): ")
	}
	text, err := bufio.NewReader(io.LimitReader(t.In, maxPasswordInput)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("read the password: %w", err)
	}
	password := strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	if password == "" {
		return "", errors.New("no password on standard input")
	}
	return password, nil
}

// AccountCmd is `hookglass admin account`.
type AccountCmd struct {
	List AccountListCmd `cmd:"" help:"List accounts."`
	Set  AccountSetCmd  `cmd:"" help:"Set an account's plan, subscription, payment method or retention."`
}

// AccountListCmd is `hookglass admin account list`.
type AccountListCmd struct{}

func (c *AccountListCmd) Run(ctx context.Context, t *Terminal, a *AdminCmd) error {
	return a.look(ctx, func(db *store.DB, _ *account.Service) error {
		all, err := store.Read(ctx, db, hookglass.System, (*store.View).Accounts)
		if err != nil {
			return err
		}
		objects, rows := make([]any, len(all)), make([]string, len(all))
		for i, acc := range all {
			objects[i], rows[i] = accountJSON(acc), accountRow(acc)
		}
		return a.print(t, map[string]any{"accounts": objects}, table(accountHeading, rows))
	})
}

// AccountSetCmd is `hookglass admin account set`.
type AccountSetCmd struct {
	Account       int64                   `required:"" placeholder:"ID" help:"The account."`
	Plan          *hookglass.Plan         `enum:"free,pro,team,business" placeholder:"PLAN" help:"${enum}."`
	Subscription  *hookglass.Subscription `enum:"none,trialing,active,past_due,canceled" placeholder:"STATE" help:"${enum}."`
	PaymentMethod *string                 `enum:"true,false" placeholder:"BOOL" help:"${enum}."`
	Retention     *span                   `placeholder:"D" help:"Age at which events are purged, at least 1m; 0 for the installation's."`
}

// Validate refuses a command that sets nothing.
func (c *AccountSetCmd) Validate() error {
	if c.Plan == nil && c.Subscription == nil && c.PaymentMethod == nil && c.Retention == nil {
		return errors.New("nothing to set: give --plan, --subscription, --payment-method or --retention")
	}
	return nil
}

func (c *AccountSetCmd) Run(ctx context.Context, t *Terminal, a *AdminCmd) error {
	change := account.Change{Plan: c.Plan, Subscription: c.Subscription}
	if c.PaymentMethod != nil {
		change.PaymentMethod = new(*c.PaymentMethod == "true")
	}
	if c.Retention != nil {
		change.Retention = new(time.Duration(*c.Retention))
	}
	return a.with(ctx, t, func(_ *store.DB, s *account.Service) error {
		acc, err := s.SetAccount(ctx, c.Account, change)
		if err != nil {
			return err
		}
		return a.print(t, map[string]any{"account": accountJSON(acc)}, table(accountHeading, []string{accountRow(acc)}))
	})
}

// WorkspaceCmd is `hookglass admin workspace`.
type WorkspaceCmd struct {
	Create WorkspaceCreateCmd `cmd:"" help:"Add a workspace to an account."`
	List   WorkspaceListCmd   `cmd:"" help:"List an account's workspaces."`
}

// WorkspaceCreateCmd is `hookglass admin workspace create`.
type WorkspaceCreateCmd struct {
	Account int64  `required:"" placeholder:"ID" help:"The account."`
	Name    string `required:"" placeholder:"NAME" help:"The workspace's name."`
}

func (c *WorkspaceCreateCmd) Run(ctx context.Context, t *Terminal, a *AdminCmd) error {
	return a.with(ctx, t, func(_ *store.DB, s *account.Service) error {
		w, err := s.CreateWorkspace(ctx, hookglass.System, c.Account, c.Name)
		if err != nil {
			return err
		}
		return a.print(t, map[string]any{"workspace": workspaceJSON(w)}, line("Created workspace %d (%s).", w.ID, w.Name))
	})
}

// WorkspaceListCmd is `hookglass admin workspace list`.
type WorkspaceListCmd struct {
	Account int64 `required:"" placeholder:"ID" help:"The account."`
}

func (c *WorkspaceListCmd) Run(ctx context.Context, t *Terminal, a *AdminCmd) error {
	return a.look(ctx, func(db *store.DB, _ *account.Service) error {
		var all []hookglass.Workspace
		err := db.View(ctx, hookglass.System, func(v *store.View) (err error) {
			if _, err = v.Account(c.Account); err != nil {
				return err
			}
			all, err = v.Workspaces(c.Account)
			return err
		})
		if err != nil {
			return err
		}
		objects, rows := make([]any, len(all)), make([]string, len(all))
		for i, w := range all {
			objects[i], rows[i] = workspaceJSON(w), fmt.Sprintf("%d\t%s\t%s", w.ID, w.Name, date(w.CreatedAt))
		}
		return a.print(t, map[string]any{"workspaces": objects}, table("ID\tNAME\tCREATED", rows))
	})
}

// KeysCmd is `hookglass admin keys`.
type KeysCmd struct {
	Rotate KeysRotateCmd `cmd:"" help:"Add a key that encrypts from now on; what older keys encrypted stays readable."`
}

// KeysRotateCmd is `hookglass admin keys rotate`.
type KeysRotateCmd struct {
	Prepare bool `help:"Add the key without encrypting with it yet. Nodes with copies of the keyset are given this one before it is rotated."`
}

func (c *KeysRotateCmd) Run(ctx context.Context, t *Terminal, a *AdminCmd) error {
	run := a.with
	if _, err := os.Stat(a.keyFile()); err == nil {
		run = a.begin // a copy of a keyset may be rotated without its database
	}
	return run(ctx, t, func(db *store.DB, s *account.Service) error {
		keys, err := a.openKeys(ctx, db)
		if err != nil {
			return err
		}
		change, note, done := keys.Rotate, "the keyset was rotated", "Rotated: %d keys in %s. Back it up."
		if c.Prepare {
			change, note, done = keys.Prepare, "a rotation of the keyset was prepared", "Prepared: %d keys in %s. Give it to every node, then rotate."
		}
		if err := change(); err != nil {
			return err
		}
		noted := s.Note(ctx, note) // the rotation stands even if this fails
		return errors.Join(a.print(t, map[string]any{"keys": keys.Count(), "prepared": c.Prepare}, line(done, keys.Count(), a.keyFile())), noted)
	})
}

const accountHeading = "ID\tNAME\tPLAN\tSUBSCRIPTION\tPAYMENT METHOD\tRETENTION"

func accountRow(a hookglass.Account) string {
	retention := "default"
	if a.Retention > 0 {
		retention = a.Retention.String()
	}
	return fmt.Sprintf("%d\t%s\t%s\t%s\t%t\t%s", a.ID, a.Name, a.Plan, a.Subscription, a.PaymentMethod, retention)
}

func userJSON(u hookglass.User) any {
	return map[string]any{"id": u.ID, "email": u.Email, "name": u.Name}
}

func accountJSON(a hookglass.Account) any {
	var retention any
	if a.Retention > 0 {
		retention = a.Retention.String()
	}
	return map[string]any{
		"id": a.ID, "name": a.Name, "plan": a.Plan, "subscription": a.Subscription, "payment_method": a.PaymentMethod,
		"retention": retention, "created_at": stamp(a.CreatedAt),
	}
}

func workspaceJSON(w hookglass.Workspace) any {
	return map[string]any{"id": w.ID, "name": w.Name, "account_id": w.AccountID, "created_at": stamp(w.CreatedAt)}
}

// stamp returns a time for JSON (spec: decisions, section 3); null for none.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// date formats a time for people; - for none.
func date(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}
