// Package fair divides limited capacity among tenants, so that a tenant whose machines never answer cannot hold up the
// others: a newcomer always finds something free.
//
// A tenant may take more as long as it holds less than is free (dynamic thresholds: Choudhury and Hahne, 1998). So a
// tenant that never lets go gets half, the next one a quarter, and so on. Types are not safe for concurrent use unless
// they say so: their owner locks.
package fair

import "strconv"

// Tenant names the tenant of an endpoint: its account or, without one, the endpoint itself.
func Tenant(account, endpointNum int64) string {
	if account != 0 {
		return "account " + strconv.FormatInt(account, 10)
	}
	return "endpoint " + strconv.FormatInt(endpointNum, 10)
}

// Places divides a number of places. Within a tenant each line, such as a target or an endpoint, may take more as long
// as it holds fewer than the tenant has left.
type Places struct {
	total, perTenant int
	taken            int
	tenants          map[string]*tenant
	turn             int // the line with which the next Share begins
}

// Line is one taker of places within a tenant. Its number is unique among all lines.
type Line struct {
	Tenant string
	Num    int64
	Most   int // of one Share; 0: no bound
}

// Few is the Most of a line that probably has little work.
const Few = 8

type tenant struct {
	taken int
	lines map[int64]int
}

// NewPlaces returns total places, of which one tenant gets at most perTenant.
func NewPlaces(total, perTenant int) *Places {
	return &Places{total: total, perTenant: perTenant, tenants: make(map[string]*tenant)}
}

// Take takes a place for a line of a tenant and reports whether there was one.
func (p *Places) Take(of string, line int64) bool {
	t := p.tenants[of]
	if t == nil {
		t = &tenant{lines: make(map[int64]int)}
	}
	if t.taken >= p.total-p.taken || t.lines[line] >= p.perTenant-t.taken {
		return false
	}
	p.tenants[of] = t
	p.taken++
	t.taken++
	t.lines[line]++
	return true
}

// Share takes places for waiting lines, one each in turn until none are left, beginning with a different line each
// time. It returns how many each line got, by number, and whether some line got none.
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
