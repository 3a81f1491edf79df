package jsondoc

import (
	"slices"
	"strconv"
	"strings"
)

// Redaction says what is blotted out of a value.
type Redaction struct {
	// Text says what to show of a string, a number or the name of a member.
	Text func(s string) (shown string)
	// Hidden judges a member by its name: what to show instead of it, whatever it is, and whether it is hidden. It is
	// not asked about null, true, false and what is empty.
	Hidden func(name string, v Value) (shown string, hidden bool)
	// Listed is Hidden for what comes behind a text in an array, as in a list of names and values; nil: nothing is
	// hidden there.
	Listed func(name string, v Value) (shown string, hidden bool)
}

// maxPaths bounds the bytes of the pointers that Redact returns: each has all names on its way, however long they are.
const maxPaths = 1 << 20

// Redact returns a copy with what the redaction means blotted out, and the pointers into the copy at which it stands:
// the first MiB of them.
func (v Value) Redact(r Redaction) (Value, []string) {
	w := redactor{Redaction: r}
	v = w.value(v)
	return v, w.paths
}

type redactor struct {
	Redaction
	at    []place // where it is
	paths []string
	size  int // bytes of paths
}

// place is a name, or an index where it is not negative.
type place struct {
	name  string
	index int
}

// mark notes where something was blotted out.
func (w *redactor) mark() {
	if w.size > maxPaths {
		return
	}
	tokens := make([]string, len(w.at))
	for i, p := range w.at {
		if tokens[i] = p.name; p.index >= 0 {
			tokens[i] = strconv.Itoa(p.index)
		}
	}
	path := Pointer{tokens}.String()
	w.paths, w.size = append(w.paths, path), w.size+len(path)
}

func (w *redactor) value(v Value) Value {
	switch {
	case v.kind == String, v.kind == Number:
		if shown := w.Text(v.text); shown != v.text {
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
	var free namer
	for i, old := range v.in.values {
		w.at[here] = place{index: i}
		if v.kind == Object {
			w.at[here] = place{v.in.names[i], -1}
			if shown := w.Text(v.in.names[i]); shown != v.in.names[i] {
				if &in.names[0] == &v.in.names[0] {
					in.names = slices.Clone(in.names)
				}
				in.names[i] = free.name(in.names, shown)
				size += quotedSize(in.names[i]) - quotedSize(v.in.names[i])
				w.at[here].name = in.names[i]
				w.mark()
			}
		}
		next := w.member(v, i)
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

// member is what becomes of a member or element.
func (w *redactor) member(v Value, i int) Value {
	old := v.in.values[i]
	if empty(old) {
		return w.value(old)
	}
	if v.kind == Object {
		if shown, hidden := w.Hidden(v.in.names[i], old); hidden {
			w.mark()
			return Text(shown)
		}
	}
	if name := v.NameBeside(i); name != "" {
		judge := w.Hidden
		if v.kind == Array {
			judge = w.Listed
		}
		if judge != nil {
			if shown, hidden := judge(name, old); hidden {
				w.mark()
				return Text(shown)
			}
		}
	}
	return w.value(old)
}

// maxPair is the most members that an object has which is a pair of a name and a value, with what else is said of it.
const maxPair = 16

// NameBeside is the text that names a member or element and stands beside it: in an array the one before each second
// element, as in ["Cookie", "a=b"], and in an object that of a member name, key, header or field, for the member value,
// as in {"name": "Cookie", "value": "a=b"}. Empty: there is none.
func (v Value) NameBeside(i int) string {
	if v.kind == Array {
		if i%2 == 1 && v.in.values[i-1].kind == String {
			return v.in.values[i-1].text
		}
		return ""
	}
	if v.kind != Object || len(v.in.names) > maxPair || !oneOf(v.in.names[i], "value", "values", "val") {
		return ""
	}
	for j, name := range v.in.names {
		if v.in.values[j].kind == String && oneOf(name, "name", "key", "header", "field") {
			return v.in.values[j].text
		}
	}
	return ""
}

func oneOf(name string, known ...string) bool {
	return slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
}

// empty reports whether there is nothing to hide.
func empty(v Value) bool {
	return v.kind == Null || v.kind == False || v.kind == True || v.kind == String && v.text == "" || !v.Scalar() && v.Len() == 0
}

// namer finds names that no member of an object has.
type namer struct {
	taken map[string]bool
	next  int
}

func (n *namer) name(names []string, wanted string) string {
	if n.taken == nil {
		n.taken, n.next = make(map[string]bool, len(names)), 2
		for _, name := range names {
			n.taken[name] = true
		}
	}
	free := wanted
	for ; n.taken[free]; n.next++ {
		free = wanted + "_" + strconv.Itoa(n.next)
	}
	n.taken[free] = true
	return free
}
