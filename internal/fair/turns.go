package fair

import (
	"maps"
	"slices"
)

// Turns determines the order of work if there is not enough time for all of it: tenants in turn, and the lines of each
// in turn, so that neither many nor slow lines of one tenant hold up the others. The zero Turns is ready to use. Not
// safe for concurrent use.
type Turns struct {
	tenant string           // the tenant that had the last turn
	lines  map[string]int64 // by tenant: the line that had its last turn
}

// Order returns the indexes of lines in the order of their turns. The lines must be sorted by number.
func (t *Turns) Order(lines []Line) (order []int) {
	of := map[string][]int{}
	for i, l := range lines {
		of[l.Tenant] = append(of[l.Tenant], i)
	}
	tenants := behind(slices.Sorted(maps.Keys(of)), func(tenant string) bool { return tenant > t.tenant })
	had := make(map[string]int64, len(of)) // drops tenants without lines
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

// behind rotates a list so that it begins with the first item for which next is true.
func behind[T any](all []T, next func(T) bool) []T {
	first := max(slices.IndexFunc(all, next), 0)
	return slices.Concat(all[first:], all[:first])
}

// Took records whose turn it was, among the lines of the last Order.
func (t *Turns) Took(l Line) { t.tenant, t.lines[l.Tenant] = l.Tenant, l.Num }
