package cli

import (
	"hookglass"
	"hookglass/api"
	"hookglass/internal/coding"
	"hookglass/internal/jsondoc"
	"hookglass/internal/server"
)

// pointer is a flag for a place in a body.
type pointer struct{ jsondoc.Pointer }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *pointer) UnmarshalText(text []byte) (err error) {
	p.Pointer, err = jsondoc.ParsePointer(string(text))
	return err
}

// value returns the line with the value at a place of a JSON body, or of a form: of a string what it says, of anything
// else JSON. A terminal gets it without what would change its screen.
func (p *pointer) value(t *server.Terminal, e api.EventDetail) (line string, ok bool) {
	body, of := bodyOf(e)
	if plain, ok := coding.Beginning(body, of, maxUnpacked); ok {
		body = plain
	}
	doc, err := jsondoc.ParseBody(body, hookglass.IsForm(deref(e.ContentType)), jsondoc.Bounds{Bytes: maxUnpacked, Depth: jsondoc.MaxDepth})
	if err != nil {
		return "", false
	}
	v, ok := doc.At(p.Pointer)
	text := v.Text()
	if isTerminal(t.Out) {
		text = visibleLines(text)
	}
	return text + "\n", ok
}
