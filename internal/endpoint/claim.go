package endpoint

import (
	"context"
	"fmt"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// Claim makes a temporary endpoint, identified by its key, a permanent one of the principal. The key becomes invalid.
// It answers not_found if another principal was faster, and validation_failed.
func (s *Service) Claim(ctx context.Context, who, key hookglass.Principal, name *string, workspace *int64) (e hookglass.Endpoint, err error) {
	if err := who.MayManage(); err != nil {
		return e, err
	}
	err = s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error {
		if e, err = tx.EndpointToChange(string(key.Endpoint)); err != nil {
			return err
		}
		if e.AccountID != 0 {
			return hookglass.NotFound("temporary endpoint")
		}
		w, err := tx.HomeWorkspaceOf(who, deref(workspace))
		if hookglass.Is(err, hookglass.CodeNotFound) && deref(workspace) != 0 {
			return hookglass.Invalid("workspace_id", "is no workspace of yours")
		}
		if err != nil {
			return err
		}
		if faults := (Draft{Name: name}).apply(&e); len(faults) > 0 {
			return hookglass.InvalidFields(faults)
		}
		e.AccountID, e.WorkspaceID, e.ExpiresAt = w.AccountID, w.ID, time.Time{}
		tx.Announce(store.TopicTokens) // ends the sockets that use its key
		return tx.SaveEndpoint(&e)
	})
	if err != nil {
		return e, fmt.Errorf("claim endpoint: %w", err)
	}
	return e, nil
}
