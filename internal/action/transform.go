package action

import (
	"errors"
	"slices"
	"strings"

	"hookglass"
	"hookglass/internal/jsondoc"
)

// Transform is the checked configuration of a transform step. It is safe for concurrent use.
type Transform struct {
	operations jsondoc.Transform
	templates  map[string]*Template
}

// ParseTransform parses the configuration of a transform step (spec: decisions, section 8). The faults name source,
// operations.0.path and the like; a transform with faults is not to be used. The caller checks with [Transform.Steps]
// that the steps it reads run earlier.
func ParseTransform(config []byte) (*Transform, []hookglass.FieldError) {
	v, err := jsondoc.Parse(config, jsondoc.Wide())
	if err != nil {
		return nil, []hookglass.FieldError{{Message: "must be an object without repeated names"}}
	}
	t := &Transform{templates: map[string]*Template{}}
	var faults []hookglass.FieldError
	t.operations, faults = jsondoc.ParseTransform(v)
	fault := func(field, message string) {
		faults = append(faults, hookglass.FieldError{Field: field, Message: message})
	}
	if s := t.operations.Source; s != "" && !validSource(s, "request", "provider", "email") {
		fault("source", "must be request, provider, email or steps.<reference_key>")
	}
	for field, text := range t.operations.Templates() {
		template, err := ParseTemplate(text, InText)
		if err != nil {
			fault(field, err.Error())
			continue
		}
		t.templates[text] = template
	}
	for field, p := range t.operations.Reads() {
		if tokens := p.Tokens(); len(tokens) > 0 && !slices.Contains(roots, tokens[0]) {
			fault(field, "must begin with /request, /provider, /email, /endpoint or /steps")
		}
	}
	return t, faults
}

// Secrets returns the names of the secrets that the templates use, each once.
func (t *Transform) Secrets() []string {
	var names []string
	for _, template := range t.templates {
		names = append(names, template.Secrets()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Steps returns the reference keys of the steps that the transform reads, each once.
func (t *Transform) Steps() []string {
	var keys []string
	if ref, ok := strings.CutPrefix(t.operations.Source, "steps."); ok {
		keys = append(keys, ref)
	}
	for _, p := range t.operations.Reads() {
		if tokens := p.Tokens(); len(tokens) > 1 && tokens[0] == "steps" {
			keys = append(keys, tokens[1])
		}
	}
	for _, template := range t.templates {
		keys = append(keys, template.Steps()...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Run returns the output of the step. Its failures are template_error and transform_error.
func (t *Transform) Run(v Values) (jsondoc.Value, *hookglass.Failure) {
	source, err := v.Context.Source(t.operations.Source)
	if err != nil {
		return jsondoc.Value{}, &hookglass.Failure{Code: hookglass.FailureTransform, Message: "The source " + t.operations.Source + " is not available: " + err.Error() + "."}
	}
	out, err := t.operations.Apply(source, scope{t, v})
	if errors.Is(err, jsondoc.ErrRender) {
		return out, &hookglass.Failure{Code: hookglass.FailureTemplate, Message: sentence(err)}
	}
	if err != nil {
		return out, &hookglass.Failure{Code: hookglass.FailureTransform, Message: sentence(err)}
	}
	return out, nil
}

// scope gives the set operations of one run access to the context and to templates.
type scope struct {
	*Transform
	values Values
}

func (s scope) At(p jsondoc.Pointer) (jsondoc.Value, bool) { return s.values.Context.At(p) }

func (s scope) Render(template string) (string, error) {
	rendered, err := s.templates[template].Render(s.values)
	return rendered.Text, err
}
