package endpoint

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// retagFor is how long one job runs before other jobs get their turn.
const retagFor = 10 * time.Second

// TagDraft is what a caller sets on a tag. A nil field is not set.
type TagDraft struct {
	Name        *string
	Color       *string // "" clears
	WorkspaceID *int64  // create only
}

// CreateTag stores a new tag, in the draft's workspace or else in the principal's own or its account's oldest. It
// answers validation_failed.
func (s *Service) CreateTag(ctx context.Context, who hookglass.Principal, d TagDraft) (t hookglass.Tag, err error) {
	if err := who.MayManage(); err != nil {
		return t, err
	}
	var faults []hookglass.FieldError
	if d.Name == nil {
		faults = append(faults, hookglass.FieldError{Field: "tag.name", Message: "is required"})
	}
	if faults = append(faults, d.apply(&t)...); len(faults) > 0 {
		return t, hookglass.InvalidFields(faults)
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		w, err := tx.HomeWorkspace(deref(d.WorkspaceID))
		if hookglass.Is(err, hookglass.CodeNotFound) && d.WorkspaceID != nil {
			return hookglass.Invalid("tag.workspace_id", "is no workspace of yours")
		}
		if err != nil {
			return err
		}
		t.WorkspaceID = w.ID
		return tx.CreateTag(&t)
	})
	return t, err
}

// UpdateTag changes the fields that the draft sets. Events with the tag get its new name, in the background if there
// are many. It answers conflict while a step of an action uses the old name.
func (s *Service) UpdateTag(ctx context.Context, who hookglass.Principal, id int64, d TagDraft) (t hookglass.Tag, err error) {
	if err := who.MayManage(); err != nil {
		return t, err
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		if t, err = tx.LockTag(id); err != nil {
			return err
		}
		old := t.Name
		if faults := d.apply(&t); len(faults) > 0 {
			return hookglass.InvalidFields(faults)
		}
		if t.Name != old {
			if err := unused(tx, t, "renamed"); err != nil {
				return err
			}
		}
		if err := tx.SaveTag(t); err != nil || t.Name == old {
			return err
		}
		return retag(tx, hookglass.RetagJob{WorkspaceID: t.WorkspaceID, TagID: t.ID, From: old, To: t.Name})
	})
	return t, err
}

// DeleteTag deletes a tag and removes it from events, in the background if there are many. It answers conflict, with
// the references, while a step of an action uses it.
func (s *Service) DeleteTag(ctx context.Context, who hookglass.Principal, id int64) error {
	if err := who.MayManage(); err != nil {
		return err
	}
	return s.db.Update(ctx, who, func(tx *store.Tx) error {
		t, err := tx.LockTag(id)
		if err != nil {
			return err
		}
		if err := unused(tx, t, "deleted"); err != nil {
			return err
		}
		if err := tx.DeleteTag(t.ID); err != nil {
			return err
		}
		return retag(tx, hookglass.RetagJob{WorkspaceID: t.WorkspaceID, TagID: t.ID, From: t.Name})
	})
}

// Retag continues a renaming or deletion for a while, and enqueues a job for the rest.
func (s *Service) Retag(ctx context.Context, j hookglass.RetagJob) error {
	for began := time.Now(); ; {
		var reached int64
		last := time.Since(began) >= retagFor
		err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error {
			reached = 0
			to, err := nameNow(tx, j)
			if err != nil || to == j.From { // it got its old name back
				return err
			}
			reached, err = tx.Retag(j.WorkspaceID, j.After, j.From, to)
			if rest := j; err == nil && reached != 0 && last {
				rest.After = reached
				tx.Enqueue(rest)
			}
			return err
		})
		if err != nil || reached == 0 || last {
			return err
		}
		j.After = reached
	}
}

// nameNow returns the current name of a job's tag and locks it until the transaction ends; "" is a deleted tag. The tag
// may have been renamed again since the job was enqueued; if two jobs used their own names, events could end up with an
// intermediate one.
func nameNow(tx *store.Tx, j hookglass.RetagJob) (string, error) {
	if j.TagID == 0 {
		return j.To, nil
	}
	t, err := tx.LockTag(j.TagID)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return "", nil
	}
	return t.Name, err
}

// retag does the first batch at once, which usually is everything.
func retag(tx *store.Tx, j hookglass.RetagJob) error {
	reached, err := tx.Retag(j.WorkspaceID, 0, j.From, j.To)
	if j.After = reached; err == nil && reached != 0 {
		tx.Enqueue(j)
	}
	return err
}

// unused answers conflict, with the references, if a step uses the tag.
func unused(tx *store.Tx, t hookglass.Tag, done string) error {
	steps, err := tx.ActionReferences(store.RefTag, t.ID)
	if err != nil {
		return err
	}
	return hookglass.InUse(hookglass.CodeConflict, "The tag cannot be "+done+": steps of actions use it.", steps)
}

func (d TagDraft) apply(t *hookglass.Tag) (faults []hookglass.FieldError) {
	if d.Name != nil {
		if t.Name = *d.Name; !hookglass.ValidTag(t.Name) {
			faults = append(faults, hookglass.Invalid("tag.name", "must have 1 to %d printable characters, and no space around them", hookglass.MaxTagLength).Details...)
		}
	}
	if d.Color != nil {
		if t.Color = *d.Color; t.Color != "" && !hookglass.ValidTagColor(t.Color) {
			faults = append(faults, hookglass.FieldError{Field: "tag.color", Message: "must be #rrggbb, #rgb or the name of a colour"})
		}
	}
	return faults
}
