package api

import "hookglass"

// ActionSecret is a value for templates of actions. It cannot be read back.
type ActionSecret struct {
	ID          string  `json:"id" example:"asec_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	WorkspaceID int64   `json:"workspace_id" example:"1"`
	Name        string  `json:"name" doc:"Templates name it as {{ secrets.NAME }}. It never changes." example:"CRM_TOKEN"`
	Description *string `json:"description" example:"The CRM's API token"`
	LastUsedAt  *Time   `json:"last_used_at" doc:"When a step last used it, to within a minute; null: never." example:"2026-11-20T10:15:30.123456Z"`
	CreatedAt   Time    `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	UpdatedAt   Time    `json:"updated_at" example:"2026-11-20T10:15:30.123456Z"`
}

// CreateActionSecret is the body of POST /workspaces/{workspace_id}/action_secrets.
type CreateActionSecret struct {
	_            struct{}         `additionalProperties:"false"`
	ActionSecret *NewActionSecret `json:"action_secret,omitempty" required:"true"`
}

// NewActionSecret describes a new secret.
type NewActionSecret struct {
	_           struct{}         `additionalProperties:"false"`
	Name        Optional[string] `json:"name,omitzero" required:"true" pattern:"^[A-Za-z][A-Za-z0-9_]{0,63}$" doc:"1 to 64 of A-Z, a-z, 0-9 and underscore, beginning with a letter; unique in the workspace." example:"CRM_TOKEN"`
	SecretValue Optional[string] `json:"secret_value,omitzero" required:"true" minLength:"1" maxLength:"16384" doc:"Up to 16 KiB. It is never answered." example:"s3cr3t"`
	Description Optional[string] `json:"description,omitzero" null:"true" maxLength:"500" doc:"For people, up to 500 characters." example:"The CRM's API token"`
}

// UpdateActionSecret is the body of PATCH /workspaces/{workspace_id}/action_secrets/{secret_id}.
type UpdateActionSecret struct {
	_            struct{}            `additionalProperties:"false"`
	ActionSecret *ActionSecretChange `json:"action_secret,omitempty" required:"true"`
}

// ActionSecretChange lists the fields to change; absent ones stay.
type ActionSecretChange struct {
	_           struct{}         `additionalProperties:"false"`
	Name        Optional[string] `json:"name,omitzero" doc:"It cannot be changed: only its present name is taken."`
	SecretValue Optional[string] `json:"secret_value,omitzero" minLength:"1" maxLength:"16384" doc:"Replaces the value." example:"n3w"`
	Description Optional[string] `json:"description,omitzero" null:"true" maxLength:"500" doc:"For people, up to 500 characters." example:"The CRM's API token"`
}

// FromActionSecret converts a secret without its value.
func FromActionSecret(s hookglass.ActionSecret) ActionSecret {
	return ActionSecret{
		ID: s.ID, WorkspaceID: s.WorkspaceID, Name: s.Name, Description: nonzero(s.Description), LastUsedAt: at(s.LastUsedAt),
		CreatedAt: Time{s.CreatedAt}, UpdatedAt: Time{s.UpdatedAt},
	}
}
