package schema

// Merge adds the observations of another schema, which is not changed.
func (s *Schema) Merge(o *Schema) {
	s.Events += o.Events
	s.Truncated = s.Truncated || o.Truncated
	s.Root.merge(o.Root)
	s.Nodes = s.Root.size()
}

func (n *Node) merge(o *Node) {
	if o == nil {
		return
	}
	if o.Collapsed && !n.Collapsed {
		(&Schema{Root: n}).collapse(n)
	}
	n.Types = withSeen(n.Types, o.Types)
	n.mergeMembers(o)
	if o.Rest != nil {
		n.Rest = merged(n.Rest, o.Rest)
	}
	if o.Items != nil {
		n.Items = merged(n.Items, o.Items)
	}
	n.add(o.Seen)
	n.Absent.add(o.Absent)
	for f, count := range o.Formats {
		if n.Formats == nil {
			n.Formats = make(map[string]int64, len(o.Formats))
		}
		n.Formats[f] += count
	}
	if n.Many = n.Many || o.Many; !n.Many {
		n.Words = withSeen(n.Words, o.Words)
		n.Many = len(n.Words) > MaxValues
	}
	if n.Many {
		n.Words = nil
	}
}

func (n *Node) mergeMembers(o *Node) {
	for _, name := range sortedNames(o.Members) {
		switch {
		case n.Collapsed:
			n.Rest = merged(n.Rest, o.Members[name])
			n.Rest.Absent = Seen{}
		case n.Members[name] == nil && len(n.Members) == MaxNames:
			(&Schema{Root: n}).collapse(n)
			n.Rest = merged(n.Rest, o.Members[name])
		default:
			if n.Members == nil {
				n.Members = make(map[string]*Node, len(o.Members))
			}
			n.Members[name] = merged(n.Members[name], o.Members[name])
		}
	}
}

// withSeen adds counts by name.
func withSeen(all, others map[string]*Seen) map[string]*Seen {
	for name, seen := range others {
		if all == nil {
			all = make(map[string]*Seen, len(others))
		}
		if all[name] == nil {
			all[name] = &Seen{}
		}
		all[name].add(*seen)
	}
	return all
}

func merged(n, o *Node) *Node {
	if n == nil {
		n = &Node{}
	}
	n.merge(o)
	return n
}

// Clone returns a copy.
func (s *Schema) Clone() *Schema {
	c := New()
	c.Merge(s)
	return c
}

// Skeleton returns a schema with the same places and no observations. Observing into it shows what departs from s.
func (s *Schema) Skeleton() *Schema {
	return &Schema{Nodes: s.Nodes, Root: s.Root.skeleton()}
}

func (n *Node) skeleton() *Node {
	if n == nil {
		return nil
	}
	k := &Node{Collapsed: n.Collapsed, Rest: n.Rest.skeleton(), Items: n.Items.skeleton()}
	for name, m := range n.Members {
		if k.Members == nil {
			k.Members = make(map[string]*Node, len(n.Members))
		}
		k.Members[name] = m.skeleton()
	}
	return k
}

// Accept returns a new baseline: the old one merged with what was observed since. Members that were always present and
// now never are, are dropped.
func Accept(before, since *Schema) *Schema {
	next := before.Clone()
	next.Merge(since)
	next.Root.forget(before.Root, since.Root)
	next.Nodes = next.Root.size()
	return next
}

func (n *Node) forget(before, since *Node) {
	if n == nil || before == nil || since == nil {
		return
	}
	for name, m := range n.Members {
		b, s := before.Members[name], since.Members[name]
		if b != nil && s != nil && before.always(b) && since.objects() > 0 && s.N == 0 {
			delete(n.Members, name)
			continue
		}
		m.forget(b, s)
	}
	n.Rest.forget(before.Rest, since.Rest)
	n.Items.forget(before.Items, since.Items)
}
