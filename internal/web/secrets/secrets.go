// Package secrets renders the page of the secrets for templates of actions. It never holds a value.
package secrets

import (
	"embed"
	"strconv"
	"time"

	"hookglass"
	"hookglass/internal/web/layout"
)

// Files holds the style.
//
//go:embed secrets.css
var Files embed.FS

// Model is the content of the page.
type Model struct {
	layout.Frame
	Workspaces []Workspace
	Forbidden  string // why the account may not set secrets; empty: it may
	Now        time.Time
	Notice     string // what was done
	Problem    string // why the last request failed

	// What was typed, except for values, and its faults.
	Form Form
}

// Form is what was typed.
type Form struct {
	Workspace   int64
	Secret      string // the id of the secret to change; empty: a new one
	Name        string
	Description string
	Stale       bool // not saved: the secret changed after the form was shown
	Faults      []hookglass.FieldError
}

// Mark returns a mark of a stored secret that changes whenever the secret does, its value included.
func Mark(s hookglass.ActionSecret) string { return strconv.FormatInt(s.UpdatedAt.UnixMicro(), 10) }

// Workspace is a workspace with its secrets.
type Workspace struct {
	hookglass.Workspace
	Secrets []Secret
}

// Secret is a secret with the steps that use it.
type Secret struct {
	hookglass.ActionSecret
	References []hookglass.StepReference
}

// fault returns what is wrong with a field of the form of a secret, or of a new one.
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

// stale reports whether the form of a secret was not saved because the secret changed meanwhile.
func (m Model) stale(s Secret) bool { return m.Form.Stale && m.Form.Secret == s.ID }

func (m Model) typed(s Secret) string {
	if m.Form.Secret == s.ID {
		return m.Form.Description
	}
	return s.Description
}
