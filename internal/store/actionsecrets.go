package store

import (
	"database/sql"
	"time"

	"hookglass"
)

const secretColumns = `s.num, s.id, s.workspace_id, s.name, s.description, s.sealed, s.created_at, s.updated_at, s.last_used_at`

func scanActionSecret(scan func(...any) error) (s hookglass.ActionSecret, err error) {
	var created, updated int64
	var used sql.NullInt64
	err = scan(&s.Num, &s.ID, &s.WorkspaceID, &s.Name, &s.Description, &s.Sealed, &created, &updated, &used)
	s.CreatedAt, s.UpdatedAt, s.LastUsedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC(), fromMicros(used)
	return s, err
}

// ActionSecrets lists the secrets of a workspace with a Num above after, oldest first; limit 0 is all. Values are
// sealed. It answers not_found for a workspace that is not the principal's.
func (v *View) ActionSecrets(workspaceID, after int64, limit int) ([]hookglass.ActionSecret, error) {
	if _, err := v.Workspace(workspaceID); err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT " + secretColumns + " FROM action_secrets s WHERE " + v.dialect.oldestOf(a, "s.workspace_id", workspaceID, "s.num", after, limit)
	return queryAll(v, scanActionSecret, query, a.all()...)
}

// ActionSecret returns one secret of a workspace. It answers not_found.
func (v *View) ActionSecret(workspaceID int64, id string) (s hookglass.ActionSecret, err error) {
	if _, err := v.Workspace(workspaceID); err != nil {
		return s, err
	}
	return v.actionSecret("s.workspace_id = $1 AND s.id = $2", workspaceID, id)
}

func (v *View) actionSecret(condition string, values ...any) (hookglass.ActionSecret, error) {
	return one(v, "action secret", scanActionSecret, "SELECT "+secretColumns+" FROM action_secrets s WHERE "+condition, &args{values})
}

// LockActionSecret is ActionSecret with a lock: nobody else can change, delete or refer to the secret until the
// transaction ends.
func (tx *Tx) LockActionSecret(workspaceID int64, id string) (s hookglass.ActionSecret, err error) {
	if _, err := tx.Workspace(workspaceID); err != nil {
		return s, err
	}
	return tx.actionSecret("s.workspace_id = $1 AND s.id = $2"+tx.dialect.forUpdate(), workspaceID, id)
}

// RequireActionSecrets returns the Nums of the secrets of the given names that exist in a workspace, and keeps these
// from being deleted until the transaction ends.
func (tx *Tx) RequireActionSecrets(workspaceID int64, names []string) (map[string]int64, error) {
	found, err := tx.namedSecrets(workspaceID, names, tx.dialect.forUpdate())
	nums := make(map[string]int64, len(found))
	for _, s := range found {
		nums[s.Name] = s.Num
	}
	return nums, err
}

// NamedActionSecrets returns the secrets of the given names that exist in a workspace.
func (v *View) NamedActionSecrets(workspaceID int64, names []string) ([]hookglass.ActionSecret, error) {
	return v.namedSecrets(workspaceID, names, "")
}

// WorkspaceActionSecrets returns all secrets of a workspace, oldest first.
func (v *View) WorkspaceActionSecrets(workspaceID int64) ([]hookglass.ActionSecret, error) {
	a := &args{}
	query := "SELECT " + secretColumns + " FROM action_secrets s WHERE " + v.dialect.oldestOf(a, "s.workspace_id", workspaceID, "s.num", 0, 0)
	return queryAll(v, scanActionSecret, query, a.all()...)
}

// namedSecrets reads and locks the secrets in a fixed order, so that transactions do not deadlock.
func (v *View) namedSecrets(workspaceID int64, names []string, lock string) ([]hookglass.ActionSecret, error) {
	if len(names) == 0 {
		return nil, nil
	}
	a := &args{}
	query := "SELECT " + secretColumns + " FROM action_secrets s WHERE s.workspace_id = " + a.add(workspaceID) + " AND s.name IN ("
	for i, name := range names {
		if i > 0 {
			query += ", "
		}
		query += a.add(name)
	}
	return queryAll(v, scanActionSecret, query+") ORDER BY s.num"+lock, a.all()...)
}

// CreateActionSecret stores a new secret and sets its Num and times. It answers validation_failed for a name in use.
func (tx *Tx) CreateActionSecret(s *hookglass.ActionSecret) error {
	s.CreatedAt, s.UpdatedAt = tx.Now, tx.Now
	tx.AnnounceAtOnce(TopicSecrets)
	err := tx.queryRow("action secret", `INSERT INTO action_secrets (id, workspace_id, name, description, sealed, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $6) RETURNING num`,
		[]any{s.ID, s.WorkspaceID, s.Name, s.Description, s.Sealed, tx.Now.UnixMicro()}, &s.Num)
	if uniqueViolation(err, "name") {
		return hookglass.Invalid("action_secret.name", "is in use already")
	}
	return err
}

// SaveActionSecret stores a secret's description and value.
func (tx *Tx) SaveActionSecret(s *hookglass.ActionSecret) error {
	s.UpdatedAt = tx.Now
	tx.AnnounceAtOnce(TopicSecrets)
	return tx.change("action secret", "UPDATE action_secrets SET description = $2, sealed = $3, updated_at = $4 WHERE num = $1",
		s.Num, s.Description, s.Sealed, tx.Now.UnixMicro())
}

// DeleteActionSecret deletes a secret.
func (tx *Tx) DeleteActionSecret(num int64) error {
	tx.AnnounceAtOnce(TopicSecrets)
	return tx.change("action secret", "DELETE FROM action_secrets WHERE num = $1", num)
}

// UseActionSecret records when a secret was last used; an earlier time than the recorded one is ignored.
func (tx *Tx) UseActionSecret(num int64, at time.Time) error {
	_, err := tx.exec("UPDATE action_secrets SET last_used_at = cast($2 AS bigint) WHERE num = $1 AND (last_used_at IS NULL OR last_used_at < cast($2 AS bigint))",
		num, at.UnixMicro())
	return err
}
