package rest

import (
	"context"
	"net/http"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/action"
	"hookglass/internal/store"
)

type (
	// InWorkspace is the path of what belongs to a workspace.
	InWorkspace struct {
		WorkspaceID int64 `path:"workspace_id" doc:"The workspace's id." example:"1"`
	}

	secretList struct {
		InWorkspace
		OptionalPaging
	}

	// SecretPath is the path of one action secret.
	SecretPath struct {
		InWorkspace
		SecretID string `path:"secret_id" doc:"The action secret's id." example:"asec_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	}
)

func (s *service) actionSecrets(t *table) {
	const tag, base = "Action secrets", "/workspaces/{workspace_id}/action_secrets"
	read, write := access{scope: hookglass.ScopeRead}, access{scope: hookglass.ScopeWrite}
	handle(t, operation{
		id: "list-action-secrets", method: http.MethodGet, path: base, tag: tag, summary: "List action secrets", access: read, strict: true,
		text: "Oldest first. Values are never answered.",
	}, s.listActionSecrets)
	handleBody(t, operation{
		id: "create-action-secret", method: http.MethodPost, path: base, tag: tag, summary: "Create an action secret", access: write, status: http.StatusCreated,
		text: "Templates of http_request and transform steps name it as {{ secrets.NAME }}. It needs the Business plan.",
	}, s.createActionSecret)
	handle(t, operation{
		id: "get-action-secret", method: http.MethodGet, path: base + "/{secret_id}", tag: tag, summary: "Read an action secret", access: read,
		text: "Without its value, which nobody reads again.",
	}, s.getActionSecret)
	handleBody(t, operation{
		id: "update-action-secret", method: http.MethodPatch, path: base + "/{secret_id}", tag: tag, summary: "Change an action secret", access: write,
		text: "What the body does not name stays as it is. The name cannot be changed.",
	}, s.updateActionSecret)
	handle(t, operation{
		id: "delete-action-secret", method: http.MethodDelete, path: base + "/{secret_id}", tag: tag, summary: "Delete an action secret", access: write,
		text: "While a step refers to it the answer is 409 secret_in_use with `references`.", errors: []int{http.StatusConflict},
	}, s.deleteActionSecret)
}

func (s *service) listActionSecrets(ctx context.Context, in *secretList) (api.List[api.ActionSecret], error) {
	return listed(ctx, s, ofSecrets, in, func(v *store.View, behind int64, most int) ([]hookglass.ActionSecret, error) {
		return v.ActionSecrets(in.WorkspaceID, behind, most)
	}, func(secret hookglass.ActionSecret) int64 { return secret.Num }, api.FromActionSecret)
}

func (s *service) createActionSecret(ctx context.Context, in *InWorkspace, body *api.CreateActionSecret) (out api.One[api.ActionSecret], err error) {
	if body.ActionSecret == nil {
		return out, hookglass.Invalid("action_secret", "is required")
	}
	d, err := secretDraft(api.ActionSecretChange(*body.ActionSecret))
	if err != nil {
		return out, err
	}
	secret, err := s.Actions.CreateSecret(ctx, asker(ctx), in.WorkspaceID, d)
	out.Data = api.FromActionSecret(secret)
	return out, err
}

func (s *service) getActionSecret(ctx context.Context, in *SecretPath) (api.One[api.ActionSecret], error) {
	return single(ctx, s, func(v *store.View) (hookglass.ActionSecret, error) {
		return v.ActionSecret(in.WorkspaceID, in.SecretID)
	}, api.FromActionSecret)
}

func (s *service) updateActionSecret(ctx context.Context, in *SecretPath, body *api.UpdateActionSecret) (out api.One[api.ActionSecret], err error) {
	if body.ActionSecret == nil {
		return out, hookglass.Invalid("action_secret", "is required")
	}
	d, err := secretDraft(*body.ActionSecret)
	if err != nil {
		return out, err
	}
	secret, err := s.Actions.UpdateSecret(ctx, asker(ctx), in.WorkspaceID, in.SecretID, d)
	out.Data = api.FromActionSecret(secret)
	return out, err
}

func (s *service) deleteActionSecret(ctx context.Context, in *SecretPath) (out api.One[api.Deleted], err error) {
	err = s.Actions.DeleteSecret(ctx, asker(ctx), in.WorkspaceID, in.SecretID)
	out.Data = api.Deleted{ID: in.SecretID, Deleted: true}
	return out, err
}

// secretDraft refuses null where a field has none.
func secretDraft(c api.ActionSecretChange) (d action.SecretDraft, err error) {
	var faults []hookglass.FieldError
	const in = "action_secret."
	d.Name = given(&faults, in+"name", c.Name, false)
	d.Value = given(&faults, in+"secret_value", c.SecretValue, false)
	d.Description = given(&faults, in+"description", c.Description, true)
	return d, hookglass.Refusal(faults, nil)
}
