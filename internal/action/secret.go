package action

import (
	"context"
	"unicode"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/store"
)

// SecretDraft is what a caller sets on a secret. A nil field is not named.
type SecretDraft struct {
	Name        *string // create; on update it may only be repeated
	Value       *string
	Description *string
}

// valueOf names where a secret's value is sealed (spec: decisions, section 9).
func valueOf(secretID string) string { return "action_secrets:value:" + secretID }

// CreateSecret stores a secret of a workspace. It answers not_found for a workspace of others, plan_required and
// validation_failed.
func (s *Service) CreateSecret(ctx context.Context, who hookglass.Principal, workspaceID int64, d SecretDraft) (hookglass.ActionSecret, error) {
	secret := hookglass.ActionSecret{ID: hookglass.NewSortableID(hookglass.PrefixActionSecret, s.db.Now()), WorkspaceID: workspaceID}
	faults := d.faults()
	if d.Name == nil {
		faults = append(faults, secretFault("name", "is required"))
	} else if secret.Name = *d.Name; !hookglass.ValidSecretName(secret.Name) {
		faults = append(faults, secretFault("name", "must be 1 to 64 of A-Z, a-z, 0-9 and underscore, beginning with a letter"))
	}
	if d.Value == nil {
		faults = append(faults, secretFault("secret_value", "is required"))
	}
	var sealed []byte
	if len(faults) == 0 {
		var err error
		if sealed, err = s.Sealer.Seal([]byte(*d.Value), valueOf(secret.ID)); err != nil {
			return hookglass.ActionSecret{}, err
		}
	}
	err := s.db.Update(ctx, who, func(tx *store.Tx) error {
		if err := maySetSecrets(tx, workspaceID); err != nil {
			return err
		}
		if len(faults) > 0 {
			return hookglass.InvalidFields(faults)
		}
		secret.Sealed = sealed
		if d.Description != nil {
			secret.Description = *d.Description
		}
		return tx.CreateActionSecret(&secret)
	})
	return secret, err
}

// UpdateSecret replaces a secret's value or description. It answers not_found, plan_required and validation_failed.
func (s *Service) UpdateSecret(ctx context.Context, who hookglass.Principal, workspaceID int64, id string, d SecretDraft) (secret hookglass.ActionSecret, err error) {
	var sealed []byte
	if d.Value != nil {
		if sealed, err = s.Sealer.Seal([]byte(*d.Value), valueOf(id)); err != nil {
			return secret, err
		}
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		if secret, err = tx.LockActionSecret(workspaceID, id); err != nil {
			return err
		}
		if err := maySetSecrets(tx, workspaceID); err != nil {
			return err
		}
		faults := d.faults()
		if d.Name != nil && *d.Name != secret.Name {
			faults = append(faults, secretFault("name", "cannot be changed"))
		}
		if len(faults) > 0 {
			return hookglass.InvalidFields(faults)
		}
		if d.Value != nil {
			secret.Sealed = sealed
		}
		if d.Description != nil {
			secret.Description = *d.Description
		}
		return tx.SaveActionSecret(&secret)
	})
	return secret, err
}

// DeleteSecret deletes a secret that no step names. It answers not_found, and secret_in_use with the steps that do.
func (s *Service) DeleteSecret(ctx context.Context, who hookglass.Principal, workspaceID int64, id string) error {
	return s.db.Update(ctx, who, func(tx *store.Tx) error {
		secret, err := tx.LockActionSecret(workspaceID, id)
		if err != nil {
			return err
		}
		refs, err := tx.ActionReferences(store.RefSecret, secret.Num)
		if err != nil {
			return err
		}
		if err := hookglass.InUse(hookglass.CodeSecretInUse, "Steps of actions refer to this secret.", refs); err != nil {
			return err
		}
		return tx.DeleteActionSecret(secret.Num)
	})
}

func maySetSecrets(tx *store.Tx, workspaceID int64) error {
	w, err := tx.Workspace(workspaceID)
	if err != nil {
		return err
	}
	account, err := tx.Account(w.AccountID)
	if err != nil {
		return err
	}
	return account.Entitlements().MayUseSecrets()
}

// faults says what is wrong with the parts that may change.
func (d SecretDraft) faults() (faults []hookglass.FieldError) {
	if d.Value != nil && (*d.Value == "" || len(*d.Value) > hookglass.MaxSecretValue) {
		faults = append(faults, secretFault("secret_value", "must have 1 to 16,384 bytes"))
	}
	if d.Description != nil {
		if utf8.RuneCountInString(*d.Description) > hookglass.MaxSecretDescription {
			faults = append(faults, secretFault("description", "may have 500 characters at most"))
		}
		for _, r := range *d.Description {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				faults = append(faults, secretFault("description", "may not hold control characters"))
				break
			}
		}
	}
	return faults
}

func secretFault(field, message string) hookglass.FieldError {
	return hookglass.FieldError{Field: "action_secret." + field, Message: message}
}
