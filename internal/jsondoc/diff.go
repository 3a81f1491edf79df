package jsondoc

import (
	"strconv"
	"strings"
)

// maxShownPath bounds the bytes of a place: names may be as long as a body.
const maxShownPath = 1_000

// Difference is a place where two values differ. A side that is nil has no value there.
type Difference struct {
	Path        string // see ShownPointer
	Left, Right *Value
}

// Diff lists the places where two values differ, at most limit of them, and whether there are more: members by name
// whatever their order, elements by index, numbers by value. Whole objects and arrays are listed where the other side
// has none.
func Diff(left, right Value, limit int) (differences []Difference, more bool) {
	d := differ{limit: limit}
	d.compare(&left, &right, nil)
	return d.found, d.more
}

type differ struct {
	limit int
	found []Difference
	more  bool
}

func (d *differ) add(path []string, left, right *Value) {
	if len(d.found) == d.limit {
		d.more = true
		return
	}
	d.found = append(d.found, Difference{ShownPointer(path), left, right})
}

// ShownPointer is a pointer as people are told it: what is longer than they read is cut, and ends in ….
func ShownPointer(path []string) string {
	shown, _ := PointerOf(path)
	return shown
}

// PointerOf is ShownPointer for whoever wants to follow it: whole says that it is all of the pointer.
func PointerOf(path []string) (shown string, whole bool) {
	var b strings.Builder
	for _, token := range path {
		rest := maxShownPath - b.Len()
		if len(token) < rest {
			token = escape(token)
		}
		if len(token) >= rest {
			b.WriteString(strings.ToValidUTF8("/"+token[:max(rest-1, 0)], "") + "…")
			return b.String(), false
		}
		b.WriteString("/" + token)
	}
	return b.String(), true
}

func (d *differ) compare(left, right *Value, path []string) {
	switch {
	case d.more:
	case left.kind != right.kind, left.Scalar():
		if !Same(*left, *right) {
			d.add(path, left, right)
		}
	case left.kind == Array:
		for i := range max(left.Len(), right.Len()) {
			at := append(path[:len(path):len(path)], strconv.Itoa(i))
			switch {
			case i >= left.Len():
				d.add(at, nil, &right.in.values[i])
			case i >= right.Len():
				d.add(at, &left.in.values[i], nil)
			default:
				d.compare(&left.in.values[i], &right.in.values[i], at)
			}
		}
	default:
		d.objects(left, right, path)
	}
}

func (d *differ) objects(left, right *Value, path []string) {
	at := func(name string) []string { return append(path[:len(path):len(path)], name) }
	others := right.places()
	for i := range left.Len() {
		name := left.in.names[i]
		if j, ok := others[name]; ok {
			d.compare(&left.in.values[i], &right.in.values[j], at(name))
		} else {
			d.add(at(name), &left.in.values[i], nil)
		}
	}
	own := left.places()
	for i := range right.Len() {
		if _, ok := own[right.in.names[i]]; !ok {
			d.add(at(right.in.names[i]), nil, &right.in.values[i])
		}
	}
}

// places are the indexes of an object's members.
func (v Value) places() map[string]int {
	m := make(map[string]int, v.Len())
	for i := range v.Len() {
		m[v.in.names[i]] = i
	}
	return m
}
