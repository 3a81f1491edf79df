package web

import (
	"net/http"
	"strconv"

	"hookglass"
	"hookglass/internal/store"
)

// eachWorkspace calls fn with the workspaces that a visitor may see, oldest first.
func eachWorkspace(view *store.View, v visitor, fn func(hookglass.Workspace) error) error {
	workspaces, err := view.Workspaces(v.who.Account)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		if err := fn(ws); err != nil {
			return err
		}
	}
	return nil
}

// workspaceIn returns the workspace of a form, or 0.
func workspaceIn(r *http.Request) (int64, error) {
	text := r.PostFormValue("workspace")
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, hookglass.NotFound("workspace")
	}
	return id, nil
}
