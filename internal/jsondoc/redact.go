package jsondoc

import (
	"slices"
	"strconv"
)

// Redaction says what is blotted out of a value.
type Redaction struct {
	// Text judges strings, numbers and the names of members: what to show instead, and whether that is another text.
	Text func(s string) (shown string, changed bool)
	// Hidden reports whether a member by this name is blotted out whole, whatever it is; null, true, false and what is empty are not.
	Hidden func(name string) bool
	// Mark stands in place of what is hidden.
	Mark string
}

// Redact returns a copy with what the redaction means blotted out, and the pointers into the copy at which it stands.
func (v Value) Redact(r Redaction) (Value, []string) {
	w := redactor{Redaction: r}
	v = w.value(v, nil)
	return v, w.paths
}

type redactor struct {
	Redaction
	paths []string
}

func (w *redactor) mark(path []string) { w.paths = append(w.paths, Pointer{path}.String()) }

func (w *redactor) value(v Value, path []string) Value {
	switch {
	case v.kind == String, v.kind == Number:
		if shown, changed := w.Text(v.text); changed {
			w.mark(path)
			return Text(shown)
		}
		return v
	case v.in == nil:
		return v
	}
	changed := false
	in := inner{v.in.names, v.in.values}
	size := v.size
	for i := range v.in.values {
		old := v.in.values[i]
		next, at := old, ""
		if v.kind == Object {
			at = in.names[i]
			if shown, other := w.Text(at); other {
				if &in.names[0] == &v.in.names[0] {
					in.names = slices.Clone(in.names)
				}
				at = unused(in.names, shown)
				size += quotedSize(at) - quotedSize(in.names[i])
				in.names[i], changed = at, true
				w.mark(append(path[:len(path):len(path)], at))
			}
		} else {
			at = strconv.Itoa(i)
		}
		here := append(path[:len(path):len(path)], at)
		if v.kind == Object && w.Hidden(v.in.names[i]) && !empty(old) {
			next = Text(w.Mark)
			w.mark(here)
		} else {
			next = w.value(old, here)
		}
		if next.in == old.in && next.kind == old.kind && next.text == old.text {
			continue
		}
		if &in.values[0] == &v.in.values[0] {
			in.values = slices.Clone(in.values)
		}
		size += next.bytes() - old.bytes()
		in.values[i], changed = next, true
	}
	if !changed {
		return v
	}
	return in.value(v.kind == Object, size)
}

// empty reports whether there is nothing to hide.
func empty(v Value) bool {
	return v.kind == Null || v.kind == False || v.kind == True || v.kind == String && v.text == "" || !v.Scalar() && v.Len() == 0
}

// unused is a name that no member has.
func unused(names []string, name string) string {
	free := name
	for n := 2; slices.Contains(names, free); n++ {
		free = name + "_" + strconv.Itoa(n)
	}
	return free
}
