// Package tags renders the page of the tags of each workspace.
package tags

import (
	"embed"
	"slices"
	"strconv"

	"hookglass"
	"hookglass/internal/web/layout"
)

// Files holds the style.
//
//go:embed tags.css
var Files embed.FS

// Model is the content of the page.
type Model struct {
	layout.Frame
	Workspaces []Workspace
	Notice     string                    // what was done
	Problem    string                    // why the last request failed
	References []hookglass.StepReference // the steps because of which it failed
	Form       Form
}

// Form holds what was typed, and its faults.
type Form struct {
	Tag       int64 // the tag to change; 0: a new one
	Workspace int64
	Name      string
	Color     string
	Stale     bool // not saved: the tag changed after the form was shown
	Faults    []hookglass.FieldError
}

// Mark returns a digest of a stored tag, which changes with it.
func Mark(t hookglass.Tag) string { return layout.Mark([2]string{t.Name, t.Color}) }

// Workspace is a workspace with its tags.
type Workspace struct {
	hookglass.Workspace
	Tags []hookglass.Tag
}

// fault returns what is wrong with a field of the form of a tag, or of a new one.
func (m Model) fault(tag int64, field string) string {
	if m.Form.Tag != tag {
		return ""
	}
	for _, f := range m.Form.Faults {
		if f.Field == "tag."+field || field == "name" && f.Field == "tag" {
			return words[f.Field] + " " + f.Message + "."
		}
	}
	return ""
}

var words = map[string]string{"tag": "The tag", "tag.name": "The name", "tag.color": "The colour", "tag.workspace_id": "The workspace"}

// typed returns what a form holds: what was typed, or the stored tag.
func (m Model) typed(t hookglass.Tag) hookglass.Tag {
	if m.Form.Tag == t.ID {
		t.Name, t.Color = m.Form.Name, m.Form.Color
	}
	return t
}

// stale reports whether the form of a tag was not saved because the tag changed meanwhile.
func (m Model) stale(t hookglass.Tag) bool { return m.Form.Stale && m.Form.Tag == t.ID }

// color is a colour to choose.
type color struct{ value, name string }

var colors = []color{
	{"", "None"}, {"#c2410c", "Orange"}, {"#b91c1c", "Red"}, {"#be185d", "Pink"}, {"#7c3aed", "Violet"}, {"#2563eb", "Blue"}, {"#0e7490", "Cyan"}, {"#15803d", "Green"},
	{"#a16207", "Yellow"}, {"#64748b", "Grey"},
}

// offered returns the colours to choose from, plus the current one of a tag if it is another.
func offered(chosen string) []color {
	if slices.ContainsFunc(colors, func(c color) bool { return c.value == chosen }) {
		return colors
	}
	return append([]color{{chosen, chosen}}, colors...)
}

// shade returns a colour to draw, or "none" if it is empty or invalid.
func shade(c string) string {
	if !hookglass.ValidTagColor(c) {
		return "none"
	}
	return c
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
