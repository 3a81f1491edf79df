// Package fair divides what a process can do at a time among tenants, so that one whose machines never answer cannot
// hold up the others: whoever comes finds something free.
//
// A tenant may take another part as long as it holds fewer than are free (dynamic thresholds: Choudhury and Hahne,
// 1998). So one that never lets go gets half, the next a quarter, and so on. Types that do not say
// so are not safe for concurrent use: their owner locks.
package fair

import "strconv"

// Tenant names who shares as one: the account that an endpoint is of or, where it is of none, the endpoint.
func Tenant(account, endpointNum int64) string {
	if account != 0 {
		return "account " + strconv.FormatInt(account, 10)
	}
	return "endpoint " + strconv.FormatInt(endpointNum, 10)
}

// Places divides places. Within a tenant each line, such as a target or an endpoint, may take another as long as it
// holds fewer than the tenant has left.
type Places struct {
	total, perTenant int
	taken            int
	tenants          map[string]*tenant
	turn             int // which line the next Share begins with
}

// Line is one that takes places: a tenant's, with a number that no other line has.
type Line struct {
	Tenant string
	Num    int64
	Most   int // that it takes of a Share; 0: as many as there are
}

// Few is the Most of a line that probably has little to do.
const Few = 8

type tenant struct {
	taken int
	lines map[int64]int
}

// NewPlaces returns so many places, of which one tenant has perTenant at most.
func NewPlaces(total, perTenant int) *Places {
	return &Places{total: total, perTenant: perTenant, tenants: make(map[string]*tenant)}
}

// Take takes a place for a line of a tenant and reports whether there was one.
func (p *Places) Take(of string, line int64) bool {
	t := p.tenants[of]
	if t == nil {
		t = &tenant{lines: make(map[int64]int)}
	}
	if t.taken >= min(p.perTenant, p.total-p.taken) || t.lines[line] >= p.perTenant-t.taken {
		return false
	}
	p.tenants[of] = t
	p.taken++
	t.taken++
	t.lines[line]++
	return true
}

// Share takes places for lines that wait for some, one each in turn until no more are to be had, and begins with
// another line each time. It returns how many each got by its number, and whether one got none.
func (p *Places) Share(lines []Line) (places map[int64]int, starved bool) {
	places = make(map[int64]int)
	full := make(map[int64]bool)
	for len(full) < len(lines) {
		for i := range lines {
			l := lines[(i+p.turn)%len(lines)]
			switch {
			case full[l.Num]:
			case l.Most > 0 && places[l.Num] == l.Most:
				full[l.Num] = true
			case p.Take(l.Tenant, l.Num):
				places[l.Num]++
			default:
				full[l.Num] = true
			}
		}
	}
	p.turn++
	return places, len(places) < len(lines)
}

// Give returns a place.
func (p *Places) Give(of string, line int64) {
	t := p.tenants[of]
	p.taken--
	t.taken--
	if t.lines[line]--; t.lines[line] == 0 {
		delete(t.lines, line)
	}
	if t.taken == 0 {
		delete(p.tenants, of)
	}
}
