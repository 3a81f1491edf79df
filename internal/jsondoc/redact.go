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
	v = w.value(v)
	return v, w.paths
}

type redactor struct {
	Redaction
	at    []place // where it is
	paths []string
}

// place is a name, or an index where it is not negative.
type place struct {
	name  string
	index int
}

// mark notes where something was blotted out.
func (w *redactor) mark() {
	tokens := make([]string, len(w.at))
	for i, p := range w.at {
		if tokens[i] = p.name; p.index >= 0 {
			tokens[i] = strconv.Itoa(p.index)
		}
	}
	w.paths = append(w.paths, Pointer{tokens}.String())
}

func (w *redactor) value(v Value) Value {
	switch {
	case v.kind == String, v.kind == Number:
		if shown, changed := w.Text(v.text); changed {
			w.mark()
			return Text(shown)
		}
		return v
	case v.in == nil:
		return v
	}
	in, size := *v.in, v.size
	here := len(w.at)
	w.at = append(w.at, place{})
	for i, old := range v.in.values {
		w.at[here] = place{index: i}
		if v.kind == Object {
			w.at[here] = place{v.in.names[i], -1}
			if shown, changed := w.Text(v.in.names[i]); changed {
				if &in.names[0] == &v.in.names[0] {
					in.names = slices.Clone(in.names)
				}
				in.names[i] = unused(in.names, shown)
				size += quotedSize(in.names[i]) - quotedSize(v.in.names[i])
				w.at[here].name = in.names[i]
				w.mark()
			}
		}
		next := old
		if v.kind == Object && w.Hidden(v.in.names[i]) && !empty(old) {
			next = Text(w.Mark)
			w.mark()
		} else {
			next = w.value(old)
		}
		if next == old {
			continue
		}
		if &in.values[0] == &v.in.values[0] {
			in.values = slices.Clone(in.values)
		}
		size += next.bytes() - old.bytes()
		in.values[i] = next
	}
	w.at = w.at[:here]
	if &in.values[0] == &v.in.values[0] && (in.names == nil || &in.names[0] == &v.in.names[0]) {
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
