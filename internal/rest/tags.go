package rest

import (
	"context"
	"net/http"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
)

type (
	// workspaceList are the parameters of a list of things that belong to workspaces.
	workspaceList struct {
		WorkspaceID int64 `query:"workspace_id" minimum:"1" doc:"Of one workspace alone; default is all that the token reaches." example:"1"`
		OptionalPaging
	}

	tagPath struct {
		ID int64 `path:"tag_id" doc:"The tag's id." example:"4"`
	}
)

func (s *service) tags(t *table) {
	const tag, base = "Tags", "/tags"
	read, write := access{scope: hookglass.ScopeRead}, access{scope: hookglass.ScopeWrite}
	handle(t, operation{
		id: "list-tags", method: http.MethodGet, path: base, tag: tag, summary: "List tags", text: "Oldest first.", access: read, errors: []int{404},
	}, s.listTags)
	handleBody(t, operation{
		id: "create-tag", method: http.MethodPost, path: base, tag: tag, summary: "Create a tag",
		text: "Tagging an event makes the tag as well.", access: write, status: http.StatusCreated,
	}, s.createTag)
	handle(t, operation{
		id: "get-tag", method: http.MethodGet, path: base + "/{tag_id}", tag: tag, summary: "Read a tag", access: read,
		text: "Its name and color. Tags belong to a workspace; one of another workspace is 404.",
	}, s.getTag)
	handleBody(t, operation{
		id: "update-tag", method: http.MethodPatch, path: base + "/{tag_id}", tag: tag, summary: "Change a tag", access: write, errors: []int{409},
		text: "The events that have the tag get its new name; where there are more than 500, the rest follows in the background. A tag that a step of an action uses cannot be renamed.",
	}, s.updateTag)
	handle(t, operation{
		id: "delete-tag", method: http.MethodDelete, path: base + "/{tag_id}", tag: tag, summary: "Delete a tag", access: write, errors: []int{409},
		text: "It is taken off the events that have it; where there are more than 500, off the rest in the background. While a step of an action uses it the answer is 409, with references.",
	}, s.deleteTag)
}

func (s *service) listTags(ctx context.Context, in *workspaceList) (api.List[api.Tag], error) {
	return listed(ctx, s, ofTags, in, func(v *store.View, behind int64, most int) ([]hookglass.Tag, error) {
		if err := reaches(v, in.WorkspaceID); err != nil {
			return nil, err
		}
		return v.Tags(in.WorkspaceID, behind, most)
	}, func(t hookglass.Tag) int64 { return t.ID }, api.FromTag)
}

// reaches answers not_found for a workspace that the principal cannot access; 0 means none.
func reaches(v *store.View, workspaceID int64) error {
	if workspaceID == 0 {
		return nil
	}
	_, err := v.Workspace(workspaceID)
	return err
}

func (s *service) createTag(ctx context.Context, _ *struct{}, body *api.CreateTag) (out api.One[api.Tag], err error) {
	if body.Tag == nil {
		return out, hookglass.Invalid("tag", "is required")
	}
	var faults []hookglass.FieldError
	d := endpoint.TagDraft{
		Name: given(&faults, "tag.name", body.Tag.Name, false), Color: given(&faults, "tag.color", body.Tag.Color, true),
		WorkspaceID: workspaceOf(&faults, "tag.workspace_id", body.Tag.WorkspaceID),
	}
	if len(faults) > 0 {
		return out, hookglass.InvalidFields(faults)
	}
	t, err := s.Endpoints.CreateTag(ctx, asker(ctx), d)
	out.Data = api.FromTag(t)
	return out, err
}

func (s *service) getTag(ctx context.Context, in *tagPath) (api.One[api.Tag], error) {
	return single(ctx, s, func(v *store.View) (hookglass.Tag, error) { return v.Tag(in.ID) }, api.FromTag)
}

func (s *service) updateTag(ctx context.Context, in *tagPath, body *api.UpdateTag) (out api.One[api.Tag], err error) {
	if body.Tag == nil {
		return out, hookglass.Invalid("tag", "is required")
	}
	var faults []hookglass.FieldError
	d := endpoint.TagDraft{Name: given(&faults, "tag.name", body.Tag.Name, false), Color: given(&faults, "tag.color", body.Tag.Color, true)}
	if len(faults) > 0 {
		return out, hookglass.InvalidFields(faults)
	}
	t, err := s.Endpoints.UpdateTag(ctx, asker(ctx), in.ID, d)
	out.Data = api.FromTag(t)
	return out, err
}

func (s *service) deleteTag(ctx context.Context, in *tagPath) (out api.One[api.DeletedNumber], err error) {
	err = s.Endpoints.DeleteTag(ctx, asker(ctx), in.ID)
	out.Data = api.DeletedNumber{ID: in.ID, Deleted: true}
	return out, err
}
