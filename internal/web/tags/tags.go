// Package tags is the page of the tags of each workspace.
package tags

import (
	"embed"
	"strconv"

	"hookglass"
	"hookglass/internal/web/layout"
)

// Files is the style.
//
//go:embed tags.css
var Files embed.FS

// Model is what the page shows.
type Model struct {
	layout.Frame
	Workspaces []Workspace
	Notice     string                    // what was done
	Problem    string                    // what could not be done
	References []hookglass.StepReference // the steps for which it could not
	Form       Form
}

// Form is what was typed, and what is wrong with it.
type Form struct {
	Tag       int64 // the one that was to be changed; 0: a new one
	Workspace int64
	Name      string
	Color     string
	Stale     bool // what is stored was changed since then, and nothing was saved
	Faults    []hookglass.FieldError
}

// Mark tells a tag as it is stored from what it becomes by a change.
func Mark(t hookglass.Tag) string { return layout.Mark([2]string{t.Name, t.Color}) }

// Workspace is a workspace with its tags.
type Workspace struct {
	hookglass.Workspace
	Tags []hookglass.Tag
}

// fault says what is wrong with a field of the form for one tag, or for a new one.
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

// typed is what a form holds: what was typed into it, or the tag as it is.
func (m Model) typed(t hookglass.Tag) hookglass.Tag {
	if m.Form.Tag == t.ID {
		t.Name, t.Color = m.Form.Name, m.Form.Color
	}
	return t
}

// stale reports whether the form for a tag was not saved because the tag was changed meanwhile.
func (m Model) stale(t hookglass.Tag) bool { return m.Form.Stale && m.Form.Tag == t.ID }

// color is one that the page offers.
type color struct{ value, name string }

var colors = []color{
	{"", "None"}, {"#c2410c", "Orange"}, {"#b91c1c", "Red"}, {"#be185d", "Pink"}, {"#7c3aed", "Violet"}, {"#2563eb", "Blue"}, {"#0e7490", "Cyan"}, {"#15803d", "Green"},
	{"#a16207", "Yellow"}, {"#64748b", "Grey"},
}

// offered are the colours of the page and the one that a tag has, which may be another.
func offered(chosen string) []color {
	for _, c := range colors {
		if c.value == chosen {
			return colors
		}
	}
	return append([]color{{chosen, chosen}}, colors...)
}

// shade is what to draw a tag's colour with; a colour that is none, or no colour, has no shade.
func shade(c string) string {
	if !hookglass.ValidTagColor(c) {
		return "none"
	}
	return c
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
