package store

import (
	"database/sql"
	"math"
	"slices"
	"time"

	"hookglass"
)

// retagAtOnce bounds the events that one transaction retags, and retagLooks those that it searches for them: captures
// wait behind it.
const (
	retagAtOnce = 500
	retagLooks  = 20_000
)

const tagColumns = "t.id, t.workspace_id, t.name, t.color, t.created_at"

const tagTables = " FROM tags t JOIN workspaces w ON w.id = t.workspace_id"

func scanTag(scan func(...any) error) (t hookglass.Tag, err error) {
	var color sql.NullString
	var created int64
	err = scan(&t.ID, &t.WorkspaceID, &t.Name, &color, &created)
	t.Color, t.CreatedAt = color.String, time.UnixMicro(created).UTC()
	return t, err
}

// Tags lists tags with an id above after, oldest first, of one workspace unless workspaceID is 0. Limit 0 is all.
func (v *View) Tags(workspaceID, after int64, limit int) ([]hookglass.Tag, error) {
	a := &args{}
	of := "SELECT w.id FROM workspaces w WHERE " + v.accountScope(a, "w.account_id", "w.id")
	if workspaceID != 0 {
		of += " AND w.id = " + a.add(workspaceID)
	}
	// "id + 0" keeps the index on the id out: in its order lie the tags of all other workspaces.
	query := "SELECT " + tagColumns + " FROM tags t WHERE " + v.dialect.picked("t.workspace_id", of) + a.oldestPage("t.id + 0", after, limit)
	return queryAll(v, scanTag, query, a.all()...)
}

// Tag returns one tag. It answers not_found.
func (v *View) Tag(id int64) (hookglass.Tag, error) { return v.tag(id, "") }

func (v *View) tag(id int64, lock string) (hookglass.Tag, error) {
	a := &args{}
	query := "SELECT " + tagColumns + tagTables + " WHERE t.id = " + a.add(id) + " AND " + v.accountScope(a, "w.account_id", "w.id") + lock
	return one(v, "tag", scanTag, query, a)
}

// LockTag is Tag with a lock: until the transaction ends nobody can change the tag, and no new step can refer to it.
func (tx *Tx) LockTag(id int64) (hookglass.Tag, error) {
	return tx.tag(id, tx.dialect.forUpdateOf("t"))
}

// CreateTag stores a new tag and sets its id. It answers validation_failed for a name in use.
func (tx *Tx) CreateTag(t *hookglass.Tag) error {
	t.CreatedAt = tx.Now
	err := tx.queryRow("tag", "INSERT INTO tags (workspace_id, name, color, created_at) VALUES ($1, $2, $3, $4) RETURNING id",
		[]any{t.WorkspaceID, t.Name, nullString(t.Color), tx.Now.UnixMicro()}, &t.ID)
	return tagConflict(err)
}

// SaveTag stores the name and colour of a tag.
func (tx *Tx) SaveTag(t hookglass.Tag) error {
	return tagConflict(tx.change("tag", "UPDATE tags SET name = $2, color = $3 WHERE id = $1", t.ID, t.Name, nullString(t.Color)))
}

// DeleteTag deletes a tag. Events keep its name until Retag removes it.
func (tx *Tx) DeleteTag(id int64) error {
	return tx.change("tag", "DELETE FROM tags WHERE id = $1", id)
}

func tagConflict(err error) error {
	if uniqueViolation(err, "name") {
		return hookglass.Invalid("tag.name", "is taken")
	}
	return err
}

// Retag removes a tag from some events of a workspace after a seq and, unless to is empty, adds another in its place.
// It returns the seq up to which it is done, or 0 if none is left.
func (tx *Tx) Retag(workspaceID, after int64, from, to string) (reached int64, err error) {
	return tx.retag(workspaceID, after, from, to, retagLooks)
}

func (tx *Tx) retag(workspaceID, after int64, from, to string, looks int) (reached int64, err error) {
	upTo, err := tx.first(math.MaxInt64, "SELECT seq FROM events WHERE seq > $1 ORDER BY seq LIMIT 1 OFFSET $2", after, looks-1)
	if err != nil {
		return 0, err
	}
	type row struct {
		seq, endpoint int64
		tags          string
	}
	rows, err := queryAll(&tx.View, func(scan func(...any) error) (r row, err error) {
		err = scan(&r.seq, &r.endpoint, &r.tags)
		return r, err
	}, `SELECT v.seq, v.endpoint, v.tags FROM events v JOIN endpoints e ON e.num = v.endpoint
		WHERE e.workspace_id = $1 AND e.deleted_at IS NULL AND v.tags IS NOT NULL AND v.seq > $2 AND v.seq <= $5 AND v.tags LIKE $3 ESCAPE '\'
		ORDER BY v.seq LIMIT $4`+tx.dialect.forUpdateOf("v"), workspaceID, after, "%"+likeEscaper.Replace(encodeTag(from))+"%", retagAtOnce, upTo)
	if err != nil {
		return 0, err
	}
	for _, r := range rows {
		tags, err := decodeTags(r.tags)
		if err != nil {
			return 0, err
		}
		at, found := slices.BinarySearch(tags, from)
		if !found {
			continue // LIKE ignores case
		}
		tags = slices.Delete(tags, at, at+1)
		if at, found := slices.BinarySearch(tags, to); to != "" && !found {
			tags = slices.Insert(tags, at, to)
		}
		if _, err := tx.exec("UPDATE events SET tags = $2 WHERE seq = $1", r.seq, encodeTags(tags)); err != nil {
			return 0, err
		}
		tx.Announce(TopicEvents(r.endpoint))
	}
	switch {
	case len(rows) == retagAtOnce:
		return rows[len(rows)-1].seq, nil
	case upTo == math.MaxInt64:
		return 0, nil
	}
	return upTo, nil
}
