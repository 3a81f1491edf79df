package jsondoc

import (
	"errors"
	"slices"
)

// What an edit refuses.
var (
	errMissing = errors.New("there is no value at")
	errParent  = errors.New("there is no object or array that could hold")
	errExists  = errors.New("there is already a value at")
	errElement = errors.New("there is no element to replace at")
)

// With is the value with another one at a pointer: in the place of what is there, or as a new member of an object that
// is there. Its error is a sentence for a person.
func (v Value) With(at Pointer, put Value) (Value, error) { return told(v.with(at.tokens, put))(at) }

// with is the value with another one at a pointer. A member that is there keeps its place, a new one comes last; the
// object that holds it must be there. Of an array it replaces elements alone.
func (v Value) with(tokens []string, put Value) (Value, error) {
	if len(tokens) == 0 {
		return put, nil
	}
	i := v.find(tokens[0])
	switch {
	case i >= 0:
		child, err := v.in.values[i].with(tokens[1:], put)
		if err != nil {
			return v, err
		}
		return v.replaced(i, child), nil
	case len(tokens) > 1, v.Scalar():
		return v, errParent
	case v.kind == Array:
		return v, errElement
	}
	return v.appended(tokens[0], put), nil
}

// without is the value without what a pointer of at least one token means.
func (v Value) without(tokens []string) (Value, error) {
	i := v.find(tokens[0])
	if i < 0 {
		return v, errMissing
	}
	if len(tokens) == 1 {
		return v.removed(i), nil
	}
	child, err := v.in.values[i].without(tokens[1:])
	if err != nil {
		return v, err
	}
	return v.replaced(i, child), nil
}

// moved is the value with what is at one pointer at another, where nothing may be. In one object the member keeps its
// place.
func (v Value) moved(from, to []string) (Value, error) {
	without, err := v.without(from) // first: it finds nothing within a field of a form, as At does
	if err != nil {
		return v, err
	}
	what, _ := v.At(Pointer{from})
	if _, ok := v.At(Pointer{to}); ok {
		return v, errExists
	}
	if len(to) > len(from) && slices.Equal(from, to[:len(from)]) { // into itself, not what follows it in an array
		return v, errParent
	}
	last := len(from) - 1
	if parent, _ := v.At(Pointer{from[:last]}); parent.kind == Object && slices.Equal(from[:last], to[:len(to)-1]) {
		return v.with(from[:last], parent.renamed(parent.index(from[last]), to[last]))
	}
	if _, ok := without.At(Pointer{to}); ok { // the indexes behind a removed element are others now
		return v, errExists
	}
	return without.with(to, what)
}

func (v Value) replaced(i int, child Value) Value {
	in := inner{v.in.names, slices.Clone(v.in.values)}
	size := v.size - in.values[i].bytes() + child.bytes()
	in.values[i] = child
	return in.value(v.kind == Object, size)
}

func (v Value) appended(name string, child Value) Value {
	size := v.size + quotedSize(name) + 1 + child.bytes()
	in := inner{names: []string{name}, values: []Value{child}}
	if v.in != nil {
		in.names, in.values = slices.Concat(v.in.names, in.names), slices.Concat(v.in.values, in.values)
		size++
	}
	return in.value(true, size)
}

func (v Value) removed(i int) Value {
	size := v.size - v.in.values[i].bytes()
	in := inner{values: slices.Concat(v.in.values[:i], v.in.values[i+1:])}
	if v.kind == Object {
		size -= quotedSize(v.in.names[i]) + 1
		in.names = slices.Concat(v.in.names[:i], v.in.names[i+1:])
	}
	if len(in.values) > 0 {
		size--
	}
	return in.value(v.kind == Object, size)
}

func (v Value) renamed(i int, name string) Value {
	in := inner{slices.Clone(v.in.names), v.in.values}
	size := v.size - quotedSize(in.names[i]) + quotedSize(name)
	in.names[i] = name
	return in.value(true, size)
}
