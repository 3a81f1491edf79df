package fair

import (
	"maps"
	"slices"
)

// Turns says in which order work is done where there is not the time for all of it: tenants one after another, and the
// lines of each, so that neither many lines nor slow ones hold up those of others. The zero Turns is ready for use. It
// is not safe for concurrent use.
type Turns struct {
	tenant string           // that had the last turn
	lines  map[string]int64 // by tenant: the line that had it
}

// Order are the indexes of lines, which come in the order of their numbers, in that of their turns.
func (t *Turns) Order(lines []Line) (order []int) {
	of := map[string][]int{}
	for i, l := range lines {
		of[l.Tenant] = append(of[l.Tenant], i)
	}
	tenants := behind(slices.Sorted(maps.Keys(of)), func(tenant string) bool { return tenant > t.tenant })
	had := make(map[string]int64, len(of)) // without tenants that have none any more
	for tenant, own := range of {
		had[tenant] = t.lines[tenant]
		of[tenant] = behind(own, func(i int) bool { return lines[i].Num > had[tenant] })
	}
	t.lines = had
	for rank := 0; len(order) < len(lines); rank++ {
		for _, tenant := range tenants {
			if own := of[tenant]; rank < len(own) {
				order = append(order, own[rank])
			}
		}
	}
	return order
}

// behind is a list that begins with the first that is next, and has what is before it at its end.
func behind[T any](all []T, next func(T) bool) []T {
	first := max(slices.IndexFunc(all, next), 0)
	return slices.Concat(all[first:], all[:first])
}

// Took notes whose turn it was, of those that were put in order last.
func (t *Turns) Took(l Line) { t.tenant, t.lines[l.Tenant] = l.Tenant, l.Num }
