package rest

import (
	"context"
	"errors"
	"net/http"

	"hookglass"
	"hookglass/api"
)

func (s *service) declarations(t *table) {
	handleBody(t, operation{
		id: "declare", method: http.MethodPost, path: "/declarations", tag: "Endpoints", summary: "Declare endpoints", access: access{scope: hookglass.ScopeWrite},
		text: "Makes a workspace what the body says, all of it or nothing: what is missing is made, what differs changed, what was made by hand left alone. " +
			"Sent again it changes nothing. It is the content of an endpoints file; hookglass apply sends one.",
	}, s.declare)
}

func (s *service) declare(ctx context.Context, _ *struct{}, body *api.Declare) (out api.One[api.Declared], err error) {
	if body.Declaration == nil {
		return out, hookglass.Invalid("declaration", "is required")
	}
	if body.DryRun.Null {
		return out, hookglass.Invalid("dry_run", "may not be null")
	}
	changes, err := s.Declarations.Apply(ctx, asker(ctx), *body.Declaration, body.DryRun.Value)
	if coded, ok := errors.AsType[*hookglass.Error](err); ok && len(coded.Details) > 0 {
		below := *coded
		below.Details = make([]hookglass.FieldError, len(coded.Details))
		for i, f := range coded.Details {
			below.Details[i] = hookglass.FieldError{Field: "declaration." + f.Field, Message: f.Message}
		}
		err = &below
	}
	out.Data = api.FromDeclared(changes, body.DryRun.Value)
	return out, err
}
