package schema

import (
	"cmp"
	"slices"
	"strings"

	"hookglass/internal/jsondoc"
)

// Kinds of drift.
const (
	Added       = "added"        // a member that the baseline does not have
	Removed     = "removed"      // a member that was always present and now never is
	NowOptional = "now_optional" // a member that was always present and now is not always
	TypeChanged = "type_changed" // a type that the baseline does not have at this place
	NewValue    = "new_value"    // a word outside the baseline's small set
)

// maxDrifts bounds the listed drifts.
const maxDrifts = 100

// Drift is one difference between what was observed and a baseline.
type Drift struct {
	Kind    string
	Pointer string   // RFC 6901, with * for members whose names are data and for items
	Was     []string // the types before; empty for added and new_value
	Is      []string // the types now; empty for removed, now_optional and new_value
	Value   string   // of new_value; "": too many to be a set any more
	Event   string   // where it was first seen
	Count   int64    // how often it was seen
}

// Diff lists the differences between what was observed since a baseline was accepted and that baseline, in the order of
// their pointers. since must have started as the baseline's Skeleton.
func Diff(baseline, since *Schema) []Drift {
	d := &differ{}
	d.node(baseline.Root, since.Root, nil)
	slices.SortStableFunc(d.found, func(a, b Drift) int { return strings.Compare(a.Pointer, b.Pointer) })
	return d.found
}

type differ struct{ found []Drift }

func (d *differ) add(path []string, drift Drift) {
	if len(d.found) < maxDrifts {
		drift.Pointer = pointer(path)
		d.found = append(d.found, drift)
	}
}

// pointer formats a path, whose parts may be *.
func pointer(path []string) string { return jsondoc.PointerTo(path...).String() }

func (d *differ) node(was, is *Node, path []string) {
	if was == nil || is == nil || was.N == 0 || is.N == 0 {
		return
	}
	if is.Collapsed && !was.Collapsed {
		s := (&Schema{Root: was}).Clone()
		s.collapse(s.Root)
		was = s.Root
	}
	for _, t := range types {
		seen := is.Types[t]
		if seen == nil || was.Types[t] != nil || t == Integer && was.Types[Number] != nil {
			continue
		}
		d.add(path, Drift{Kind: TypeChanged, Was: was.types(), Is: []string{t}, Event: seen.First, Count: seen.N})
	}
	d.words(was, is, path)
	at := func(name string) []string { return append(path[:len(path):len(path)], name) }
	for _, name := range sortedNames(is.Members) {
		if m := is.Members[name]; was.Members[name] != nil {
			d.node(was.Members[name], m, at(name))
		} else if m.N > 0 && was.objects() > 0 {
			d.add(at(name), Drift{Kind: Added, Is: m.types(), Event: m.First, Count: m.N})
		}
	}
	for _, name := range sortedNames(was.Members) {
		b, s := was.Members[name], is.Members[name]
		if s == nil || !was.always(b) || s.N >= is.objects() {
			continue
		}
		kind := NowOptional
		if s.N == 0 {
			kind = Removed
		}
		d.add(at(name), Drift{Kind: kind, Was: b.types(), Event: s.Absent.First, Count: is.objects() - s.N})
	}
	for _, part := range []struct{ was, is *Node }{{was.Rest, is.Rest}, {was.Items, is.Items}} {
		switch {
		case part.is == nil || part.is.N == 0:
		case part.was != nil && part.was.N > 0:
			d.node(part.was, part.is, at("*"))
		case part.is == is.Rest && was.objects() > 0:
			d.add(at("*"), Drift{Kind: Added, Is: part.is.types(), Event: part.is.First, Count: part.is.N})
		}
	}
}

func (d *differ) words(was, is *Node, path []string) {
	if was.closed() == nil {
		return
	}
	if is.Many {
		d.add(path, Drift{Kind: NewValue, Event: is.Types[String].First, Count: is.Types[String].N})
		return
	}
	for _, w := range sortedNames(is.Words) {
		if was.Words[w] == nil {
			d.add(path, Drift{Kind: NewValue, Value: w, Event: is.Words[w].First, Count: is.Words[w].N})
		}
	}
}

// types returns the types seen here; number includes integer.
func (n *Node) types() (all []string) {
	for _, t := range types {
		if n.Types[t] != nil && (t != Integer || n.Types[Number] == nil) {
			all = append(all, t)
		}
	}
	return all
}

// String describes a drift without captured values.
func (d Drift) String() string {
	is, was := strings.Join(d.Is, " or "), strings.Join(d.Was, " or ")
	place := cmp.Or(d.Pointer, "the body")
	switch d.Kind {
	case Added:
		return place + " is new (" + is + ")"
	case Removed:
		return place + " is gone"
	case NowOptional:
		return place + " is not always there any more"
	case TypeChanged:
		return place + " is " + is + " where it was " + was
	}
	return place + " has a value outside its set"
}
