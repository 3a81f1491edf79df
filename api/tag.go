package api

import "hookglass"

// Tag is a label of a workspace for its events.
type Tag struct {
	ID          int64   `json:"id" example:"4"`
	WorkspaceID int64   `json:"workspace_id" example:"1"`
	Name        string  `json:"name" example:"billing"`
	Color       *string `json:"color" example:"#0a7d33"`
	CreatedAt   Time    `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
}

// CreateTag is the body of POST /tags.
type CreateTag struct {
	_   struct{} `additionalProperties:"false"`
	Tag *NewTag  `json:"tag,omitempty" required:"true"`
}

// NewTag describes a new tag.
type NewTag struct {
	_           struct{}         `additionalProperties:"false"`
	Name        Optional[string] `json:"name,omitzero" required:"true" minLength:"1" maxLength:"64" doc:"1 to 64 characters; unique in its workspace." example:"billing"`
	Color       Optional[string] `json:"color,omitzero" null:"true" pattern:"^(#[0-9a-fA-F]{3}|#[0-9a-fA-F]{6}|[a-zA-Z]{3,32})?$" doc:"#rrggbb, #rgb or the name of a colour." example:"#0a7d33"`
	WorkspaceID Optional[int64]  `json:"workspace_id,omitzero" null:"true" minimum:"1" doc:"A workspace of the account; default is the token's own, or the account's oldest."`
}

// UpdateTag is the body of PATCH /tags/{tag_id}.
type UpdateTag struct {
	_   struct{}   `additionalProperties:"false"`
	Tag *TagChange `json:"tag,omitempty" required:"true"`
}

// TagChange lists the fields to change; absent ones stay.
type TagChange struct {
	_     struct{}         `additionalProperties:"false"`
	Name  Optional[string] `json:"name,omitzero" minLength:"1" maxLength:"64" doc:"1 to 64 characters; unique in its workspace." example:"invoices"`
	Color Optional[string] `json:"color,omitzero" null:"true" pattern:"^(#[0-9a-fA-F]{3}|#[0-9a-fA-F]{6}|[a-zA-Z]{3,32})?$" doc:"#rrggbb, #rgb or the name of a colour." example:"#0a7d33"`
}

// FromTag converts a tag.
func FromTag(t hookglass.Tag) Tag {
	return Tag{ID: t.ID, WorkspaceID: t.WorkspaceID, Name: t.Name, Color: nonzero(t.Color), CreatedAt: Time{t.CreatedAt}}
}
