package store

import (
	"database/sql"
	"time"

	"hookglass"
)

// accountScope returns the condition that rows belong to the principal. account and workspace name the columns of their
// owner; an empty workspace means that the rows belong to an account as a whole.
func (v *View) accountScope(a *args, account, workspace string) string {
	switch {
	case v.who.System:
		return "1 = 1"
	case v.who.Account == 0:
		return "1 = 0"
	case v.who.Workspace == 0 || workspace == "":
		return account + " = " + a.add(v.who.Account)
	default:
		return account + " = " + a.add(v.who.Account) + " AND " + workspace + " = " + a.add(v.who.Workspace)
	}
}

const userColumns = "u.id, u.email, u.name, u.created_at"

func scanUser(scan func(...any) error) (u hookglass.User, err error) {
	var created sql.NullInt64
	err = scan(&u.ID, &u.Email, &u.Name, &created)
	u.CreatedAt = fromMicros(created)
	return u, err
}

// userScope returns the condition that user u shares an account with the principal.
func (v *View) userScope(a *args) string {
	if v.who.System {
		return "1 = 1"
	}
	return "EXISTS (SELECT 1 FROM members m WHERE m.user_id = u.id AND " + v.accountScope(a, "m.account_id", "") + ")"
}

// User answers not_found for a user who shares no account with the principal.
func (v *View) User(id int64) (hookglass.User, error) { return v.userBy("id", id) }

// UserByEmail finds a user by the address as it is stored.
func (v *View) UserByEmail(email string) (hookglass.User, error) { return v.userBy("email", email) }

func (v *View) userBy(column string, value any) (hookglass.User, error) {
	var a args
	return one(v, "user", scanUser, "SELECT "+userColumns+" FROM users u WHERE u."+column+" = "+a.add(value)+" AND "+v.userScope(&a), &a)
}

// HasUsers reports whether there is a user whom the principal may see.
func (v *View) HasUsers() (has bool, err error) {
	var a args
	err = v.queryRow("user", "SELECT EXISTS (SELECT 1 FROM users u WHERE "+v.userScope(&a)+")", a.all(), &has)
	return has, err
}

// PasswordHash returns what SetPasswordHash stored, "" for a user without a password.
func (v *View) PasswordHash(user int64) (string, error) { return v.passwordHash(user, "") }

// PasswordHashToChange is PasswordHash with a lock: nobody else can change it until the transaction ends.
func (tx *Tx) PasswordHashToChange(user int64) (string, error) {
	return tx.passwordHash(user, tx.dialect.forChangeOf("u"))
}

func (v *View) passwordHash(user int64, lock string) (string, error) {
	var a args
	var hash sql.NullString
	query := "SELECT u.password FROM users u WHERE u.id = " + a.add(user) + " AND " + v.userScope(&a) + lock
	err := v.queryRow("user", query, a.all(), &hash)
	return hash.String, err
}

// CreateUser stores a new user and sets its ID. An address in use answers validation_failed.
func (tx *Tx) CreateUser(u *hookglass.User, passwordHash string) error {
	u.CreatedAt = tx.Now
	err := tx.queryRow("user", `INSERT INTO users (email, name, password, created_at) VALUES ($1, $2, $3, $4) RETURNING id`,
		[]any{u.Email, u.Name, nullString(passwordHash), micros(u.CreatedAt)}, &u.ID)
	if uniqueViolation(err, "email") {
		return hookglass.Invalid("email", "is in use already")
	}
	return err
}

// SetPasswordHash replaces a user's password.
func (tx *Tx) SetPasswordHash(user int64, hash string) error {
	return tx.change("user", "UPDATE users SET password = $1 WHERE id = $2", nullString(hash), user)
}

// retained is the retention of account c in microseconds or, if it has none, $2, that of the installation.
const retained = "CASE WHEN c.retention > 0 THEN c.retention ELSE cast($2 AS bigint) END"

const accountColumns = "c.id, c.name, c.plan, c.subscription, c.payment_method, c.retention, c.created_at"

func scanAccount(scan func(...any) error) (c hookglass.Account, err error) {
	var retention int64
	var created sql.NullInt64
	err = scan(&c.ID, &c.Name, &c.Plan, &c.Subscription, &c.PaymentMethod, &retention, &created)
	c.Retention = time.Duration(retention) * time.Microsecond
	c.CreatedAt = fromMicros(created)
	return c, err
}

// Account answers not_found for an account that is not the principal's.
func (v *View) Account(id int64) (hookglass.Account, error) { return v.account(id, "") }

// Entitlements returns those of the endpoint's account, or none if it has no account.
func (v *View) Entitlements(e hookglass.Endpoint) (hookglass.Entitlements, error) {
	if e.AccountID == 0 {
		return hookglass.Entitlements{}, nil
	}
	account, err := v.Account(e.AccountID)
	return account.Entitlements(), err
}

// AccountToChange is Account with a lock: nobody else can change it until the transaction ends.
func (tx *Tx) AccountToChange(id int64) (hookglass.Account, error) {
	return tx.account(id, tx.dialect.forUpdateOf("c"))
}

func (v *View) account(id int64, lock string) (hookglass.Account, error) {
	var a args
	return one(v, "account", scanAccount, "SELECT "+accountColumns+" FROM accounts c WHERE c.id = "+a.add(id)+" AND "+v.accountScope(&a, "c.id", "")+lock, &a)
}

// Accounts lists the accounts that the principal may see, oldest first.
func (v *View) Accounts() ([]hookglass.Account, error) {
	var a args
	query := "SELECT " + accountColumns + " FROM accounts c WHERE " + v.accountScope(&a, "c.id", "") + " ORDER BY c.id"
	return queryAll(v, scanAccount, query, a.all()...)
}

// AccountsOf lists the accounts that a user is a member of, oldest first.
func (v *View) AccountsOf(user int64) ([]hookglass.Account, error) {
	var a args
	query := "SELECT " + accountColumns + " FROM accounts c JOIN members m ON m.account_id = c.id WHERE m.user_id = " + a.add(user) +
		" AND " + v.accountScope(&a, "c.id", "") + " ORDER BY c.id"
	return queryAll(v, scanAccount, query, a.all()...)
}

// Members lists the users who share an account, oldest first.
func (v *View) Members(account int64) ([]hookglass.User, error) {
	var a args
	query := "SELECT " + userColumns + " FROM users u JOIN members m ON m.user_id = u.id WHERE m.account_id = " + a.add(account) +
		" AND " + v.accountScope(&a, "m.account_id", "") + " ORDER BY u.id"
	return queryAll(v, scanUser, query, a.all()...)
}

// CreateAccount stores a new account with its owner and sets its ID.
func (tx *Tx) CreateAccount(c *hookglass.Account, owner int64) error {
	c.CreatedAt = tx.Now
	err := tx.queryRow("account", `INSERT INTO accounts (name, plan, subscription, payment_method, retention, created_at)
		VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`,
		[]any{c.Name, string(c.Plan), string(c.Subscription), boolInt(c.PaymentMethod), c.Retention.Microseconds(), micros(c.CreatedAt)}, &c.ID)
	if err != nil {
		return err
	}
	return tx.AddMember(c.ID, owner)
}

// AddMember makes a user a member of an account. All members have the same rights, those of an owner.
func (tx *Tx) AddMember(account, user int64) error {
	_, err := tx.exec("INSERT INTO members (account_id, user_id, role) VALUES ($1, $2, 'owner')", account, user)
	return err
}

// UpdateAccount stores all fields of an account except CreatedAt.
func (tx *Tx) UpdateAccount(c hookglass.Account) error {
	var a args
	query := "UPDATE accounts SET name = " + a.add(c.Name) + ", plan = " + a.add(string(c.Plan)) + ", subscription = " + a.add(string(c.Subscription)) +
		", payment_method = " + a.add(boolInt(c.PaymentMethod)) + ", retention = " + a.add(c.Retention.Microseconds()) +
		" WHERE id = " + a.add(c.ID) + " AND " + tx.accountScope(&a, "id", "")
	tx.AnnounceAtOnce(TopicAccount(c.ID), TopicEndpoints)
	return tx.change("account", query, a.all()...)
}

const workspaceColumns = "w.id, w.account_id, w.name, w.created_at"

func scanWorkspace(scan func(...any) error) (w hookglass.Workspace, err error) {
	var created sql.NullInt64
	err = scan(&w.ID, &w.AccountID, &w.Name, &created)
	w.CreatedAt = fromMicros(created)
	return w, err
}

// Workspace answers not_found for a workspace that is not the principal's.
func (v *View) Workspace(id int64) (hookglass.Workspace, error) {
	var a args
	return one(v, "workspace", scanWorkspace, "SELECT "+workspaceColumns+" FROM workspaces w WHERE w.id = "+a.add(id)+
		" AND "+v.accountScope(&a, "w.account_id", "w.id"), &a)
}

// Workspaces lists the workspaces of an account that the principal may see, oldest first.
func (v *View) Workspaces(account int64) ([]hookglass.Workspace, error) {
	var a args
	query := "SELECT " + workspaceColumns + " FROM workspaces w WHERE w.account_id = " + a.add(account) +
		" AND " + v.accountScope(&a, "w.account_id", "w.id") + " ORDER BY w.id"
	return queryAll(v, scanWorkspace, query, a.all()...)
}

// HomeWorkspace returns the workspace in which the principal creates things: the one with the id or, for 0, the
// principal's own or the oldest of its account. It answers not_found for a workspace that is not the principal's.
func (v *View) HomeWorkspace(id int64) (hookglass.Workspace, error) {
	if id == 0 {
		id = v.who.Workspace
	}
	if v.who.Workspace != 0 && id != v.who.Workspace {
		return hookglass.Workspace{}, hookglass.NotFound("workspace")
	}
	return one(v, "workspace", scanWorkspace, "SELECT "+workspaceColumns+` FROM workspaces w
		WHERE w.account_id = $1 AND (cast($2 AS bigint) = 0 OR w.id = cast($2 AS bigint)) ORDER BY w.id LIMIT 1`, &args{[]any{v.who.Account, id}})
}

// HomeWorkspaceOf is HomeWorkspace for a principal other than the transaction's.
func (tx *Tx) HomeWorkspaceOf(who hookglass.Principal, id int64) (hookglass.Workspace, error) {
	return tx.as(who).HomeWorkspace(id)
}

// CreateWorkspace stores a new workspace and sets its ID. It answers not_found when there is no such account.
func (tx *Tx) CreateWorkspace(w *hookglass.Workspace) error {
	if _, err := tx.Account(w.AccountID); err != nil {
		return err
	}
	w.CreatedAt = tx.Now
	return tx.queryRow("workspace", "INSERT INTO workspaces (account_id, name, created_at) VALUES ($1, $2, $3) RETURNING id",
		[]any{w.AccountID, w.Name, micros(w.CreatedAt)}, &w.ID)
}
