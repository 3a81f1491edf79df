// Package secrets is the page of the secrets that templates of actions name. It never holds a value.
package secrets

import (
	"embed"
	"strconv"
	"time"

	"hookglass"
	"hookglass/internal/web/layout"
)

// Files is the style.
//
//go:embed secrets.css
var Files embed.FS

// Model is what the page shows.
type Model struct {
	layout.Frame
	Workspaces []Workspace
	Forbidden  string // why the account may not set secrets; empty: it may
	Now        time.Time
	Notice     string // what was done
	Problem    string // what could not be done

	// What was typed before, except for values, and what is wrong with it.
	Form Form
}

// Form is what was typed.
type Form struct {
	Workspace   int64
	Secret      string // the id of the one that was to be changed; empty: a new one
	Name        string
	Description string
	Stale       bool // what is stored was changed since the form was shown, and nothing was saved
	Faults      []hookglass.FieldError
}

// Mark tells a secret as it is stored from what it becomes by a change, that of its value among them.
func Mark(s hookglass.ActionSecret) string { return strconv.FormatInt(s.UpdatedAt.UnixMicro(), 10) }

// Workspace is a workspace with its secrets.
type Workspace struct {
	hookglass.Workspace
	Secrets []Secret
}

// Secret is a secret, with the steps that name it.
type Secret struct {
	hookglass.ActionSecret
	References []hookglass.StepReference
}

// fault says what is wrong with a field of the form for one secret, or for a new one.
func (m Model) fault(secret, field string) string {
	if m.Form.Secret != secret {
		return ""
	}
	for _, f := range m.Form.Faults {
		if f.Field == "action_secret."+field {
			return words[field] + " " + f.Message + "."
		}
	}
	return ""
}

var words = map[string]string{"name": "The name", "secret_value": "The value", "description": "The description"}

// stale reports whether the form for a secret was not saved because the secret was changed meanwhile.
func (m Model) stale(s Secret) bool { return m.Form.Stale && m.Form.Secret == s.ID }

func (m Model) typed(s Secret) string {
	if m.Form.Secret == s.ID {
		return m.Form.Description
	}
	return s.Description
}
