package jsondoc

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"

	"hookglass"
)

// Bounds of a transform (spec, "Limits"). Those of the value hold after every operation.
const (
	MaxOperations     = 50
	MaxTransformBytes = 256 << 10
	MaxTransformDepth = 32
)

// Bounds of an operation: the longest pointer and key in characters, and the members that pick makes, each of which is
// looked for.
const (
	maxPointer = 1_000
	maxPicked  = 500
)

// Transform is an ordered list of operations on a copy of a value of an action run's context (spec, "Step
// configurations"; spec: decisions, section 8).
type Transform struct {
	Source     string // the name of the value, as it was given
	operations []operation
}

type operation struct {
	op       string
	path     Pointer // of select, set and remove; rename's from
	to       Pointer // of rename
	value    Value   // of set
	from     Pointer // of set: into the whole context
	template string  // of set
	source   byte    // of set: 'v'alue, 'f'rom or 't'emplate
	fields   []field // of pick
	key      string  // of wrap
}

type field struct {
	name string
	path Pointer
}

// Scope is what a set operation draws on.
type Scope interface {
	// At finds a value in the whole context.
	At(Pointer) (Value, bool)
	// Render fills in a template.
	Render(template string) (string, error)
}

// ErrRender wraps what Scope.Render answered.
var ErrRender = errors.New("the template could not be filled in")

// Apply runs the operations in order. Its error is a sentence for a person, without any text of the value.
func (t Transform) Apply(v Value, scope Scope) (Value, error) {
	for i, o := range t.operations {
		next, err := o.apply(v, scope)
		if err != nil {
			return Value{}, fmt.Errorf("operation %d (%s): %w", i+1, o.op, err)
		}
		if next.Size() > MaxTransformBytes {
			return Value{}, fmt.Errorf("operation %d (%s): the value is larger than 256 KiB", i+1, o.op)
		}
		if next.Depth() > MaxTransformDepth {
			return Value{}, fmt.Errorf("operation %d (%s): the value is deeper than %d levels", i+1, o.op, MaxTransformDepth)
		}
		v = next
	}
	return v, nil
}

func (o *operation) apply(v Value, scope Scope) (Value, error) {
	switch o.op {
	case "select":
		at, ok := v.At(o.path)
		if !ok {
			return v, fmt.Errorf("%w %s", errMissing, o.path)
		}
		return at, nil
	case "set":
		put, err := o.put(scope)
		if err != nil {
			return v, err
		}
		return told(v.with(o.path.tokens, put))(o.path)
	case "remove":
		return told(v.without(o.path.tokens))(o.path)
	case "rename":
		next, err := v.moved(o.path.tokens, o.to.tokens)
		if errors.Is(err, errMissing) {
			return told(next, err)(o.path)
		}
		return told(next, err)(o.to)
	case "pick":
		in := inner{names: make([]string, len(o.fields)), values: make([]Value, len(o.fields))}
		size := int64(1)
		for i, f := range o.fields {
			at, ok := v.At(f.path)
			if !ok {
				return v, fmt.Errorf("%w %s", errMissing, f.path)
			}
			in.names[i], in.values[i] = f.name, at
			if size += int64(quotedSize(f.name)) + 2 + int64(at.bytes()); size > MaxTransformBytes {
				return v, errors.New("the value is larger than 256 KiB")
			}
		}
		return in.value(true, int32(size)), nil
	default: // wrap
		return Members(Member{o.key, v}), nil
	}
}

// told says where an edit failed.
func told(v Value, err error) func(Pointer) (Value, error) {
	return func(at Pointer) (Value, error) {
		if err != nil {
			err = fmt.Errorf("%w %s", err, at)
		}
		return v, err
	}
}

func (o *operation) put(scope Scope) (Value, error) {
	switch o.source {
	case 'f':
		v, ok := scope.At(o.from)
		if !ok {
			return v, fmt.Errorf("the context has no value at %s", o.from)
		}
		return v, nil
	case 't':
		s, err := scope.Render(o.template)
		if err != nil {
			return Value{}, fmt.Errorf("%w: %w", ErrRender, err)
		}
		return Text(s), nil
	}
	return o.value, nil
}

// Templates are the templates of the set operations, each with the field that it stands in.
func (t Transform) Templates() iter.Seq2[string, string] {
	return func(yield func(field, template string) bool) {
		for i, o := range t.operations {
			if o.source == 't' && !yield(fmt.Sprintf("operations.%d.template", i), o.template) {
				return
			}
		}
	}
}

// Reads are the pointers into the whole context that set operations draw on, each with the field that it stands in.
func (t Transform) Reads() iter.Seq2[string, Pointer] {
	return func(yield func(field string, p Pointer) bool) {
		for i, o := range t.operations {
			if o.source == 'f' && !yield(fmt.Sprintf("operations.%d.from", i), o.from) {
				return
			}
		}
	}
}

// ParseTransform reads a transform's configuration. Keys that are not known, operations of another shape and pointers
// that are none are faults, named by their field, for example operations.2.path. The source is taken as it is given.
func ParseTransform(config Value) (Transform, []hookglass.FieldError) {
	c := checker{}
	t := Transform{}
	if config.kind != Object {
		c.fault("", "must be an object")
		return t, c.faults
	}
	c.keys(config, "", "source", "operations")
	switch source, ok := config.Member("source"); {
	case !ok:
		c.fault("source", "is required")
	case source.kind != String:
		c.fault("source", "must be a string")
	case source.text == "":
		c.fault("source", "may not be empty")
	default:
		t.Source = source.text
	}
	operations, ok := config.Member("operations")
	switch {
	case ok && operations.kind != Array:
		c.fault("operations", "must be an array of operations")
	case !ok || operations.Len() == 0:
		c.fault("operations", "must hold at least one operation")
	case operations.Len() > MaxOperations:
		c.fault("operations", fmt.Sprintf("may hold %d operations at most", MaxOperations))
	default:
		for i, o := range operations.in.values {
			t.operations = append(t.operations, c.operation(o, fmt.Sprintf("operations.%d", i)))
		}
	}
	return t, c.faults
}

// checker collects what is wrong with a configuration.
type checker struct{ faults []hookglass.FieldError }

func (c *checker) fault(field, message string) {
	c.faults = append(c.faults, hookglass.FieldError{Field: field, Message: message})
}

// keys faults the members that are not named.
func (c *checker) keys(v Value, field string, known ...string) {
	for name := range v.All() {
		if !slices.Contains(known, name) {
			if field != "" {
				name = field + "." + name
			}
			c.fault(name, "is not a known key")
		}
	}
}

func (c *checker) operation(v Value, at string) (o operation) {
	if v.kind != Object {
		c.fault(at, "must be an object")
		return o
	}
	op, _ := v.Member("op")
	if op.kind == String {
		o.op = op.text
	}
	switch o.op {
	case "select":
		c.keys(v, at, "op", "path")
		o.path = c.pointer(v, at, "path", false)
	case "set":
		c.keys(v, at, "op", "path", "value", "from", "template")
		o.path = c.pointer(v, at, "path", false)
		c.set(&o, v, at)
	case "remove":
		c.keys(v, at, "op", "path")
		o.path = c.pointer(v, at, "path", true)
	case "rename":
		c.keys(v, at, "op", "from", "to")
		o.path = c.pointer(v, at, "from", true)
		o.to = c.pointer(v, at, "to", true)
	case "pick":
		c.keys(v, at, "op", "fields")
		fields, ok := v.Member("fields")
		if !ok || fields.kind != Object || fields.Len() == 0 {
			c.fault(at+".fields", "must be an object of at least one pointer")
			return o
		}
		if fields.Len() > maxPicked {
			c.fault(at+".fields", fmt.Sprintf("may hold %d pointers at most", maxPicked))
			return o
		}
		for name := range fields.All() {
			path := c.pointer(fields, at+".fields", name, false)
			o.fields = append(o.fields, field{name, path})
		}
	case "wrap":
		c.keys(v, at, "op", "key")
		key, _ := v.Member("key")
		if o.key = key.text; key.kind != String || o.key == "" || utf8.RuneCountInString(o.key) > maxPointer {
			c.fault(at+".key", "must be a string of 1 to 1,000 characters")
		}
	default:
		c.fault(at+".op", "must be one of select, set, remove, rename, pick and wrap")
	}
	return o
}

// set reads what a set operation writes: exactly one of three.
func (c *checker) set(o *operation, v Value, field string) {
	given := 0
	if value, ok := v.Member("value"); ok {
		given++
		o.source, o.value = 'v', value
	}
	if _, ok := v.Member("from"); ok {
		given++
		o.source, o.from = 'f', c.pointer(v, field, "from", false)
	}
	if template, ok := v.Member("template"); ok {
		given++
		o.source, o.template = 't', template.text
		if template.kind != String {
			c.fault(field+".template", "must be a string")
		}
	}
	if given != 1 {
		c.fault(field, "must have exactly one of value, from and template")
	}
}

// pointer reads a member that is a pointer; inside says that it must not mean the whole value.
func (c *checker) pointer(v Value, field, name string, inside bool) Pointer {
	m, ok := v.Member(name)
	field += "." + name
	if !ok || m.kind != String {
		c.fault(field, "must be a JSON Pointer")
		return Pointer{}
	}
	p, err := ParsePointer(m.text)
	switch {
	case err != nil:
		c.fault(field, err.Error())
	case utf8.RuneCountInString(m.text) > maxPointer:
		c.fault(field, "may have 1,000 characters at most")
	case inside && len(p.tokens) == 0:
		c.fault(field, "must not mean the whole value")
	}
	return p
}
