package delivery

// Bounds of the deliveries that one node has under way. outbound lets 256 requests out at a time and 64 of one tenant; what is left is for
// people's replays.
const (
	forwardsAtOnce   = 192
	forwardsOfTenant = 64
)

// shares divides what a node sends at a time. A tenant may take another place as long as it holds fewer than are free, and a target as long
// as it holds fewer than its tenant has left. So one that never answers gets half, the next a quarter, and some are always free for
// whoever comes (dynamic thresholds: Choudhury and Hahne, 1998). The caller locks.
type shares struct {
	taken   int
	tenants map[string]*tenantShare
}

type tenantShare struct {
	taken   int
	targets map[int64]int
}

// take takes a place for a target and reports whether there was one.
func (s *shares) take(tenant string, target int64) bool {
	t := s.tenants[tenant]
	if t == nil {
		t = &tenantShare{targets: map[int64]int{}}
	}
	if t.taken >= min(forwardsOfTenant, forwardsAtOnce-s.taken) || t.targets[target] >= forwardsOfTenant-t.taken {
		return false
	}
	if t.taken == 0 {
		if s.tenants == nil {
			s.tenants = map[string]*tenantShare{}
		}
		s.tenants[tenant] = t
	}
	s.taken++
	t.taken++
	t.targets[target]++
	return true
}

// give returns a place.
func (s *shares) give(tenant string, target int64) {
	t := s.tenants[tenant]
	s.taken--
	t.taken--
	if t.targets[target]--; t.targets[target] == 0 {
		delete(t.targets, target)
	}
	if t.taken == 0 {
		delete(s.tenants, tenant)
	}
}

// largeBytes bounds the bodies over smallBody that are in memory at a time, for one tenant by what the others have left free.
const largeBytes = 96 << 20

// room divides bytes as shares does places; a body that is larger than all of it goes alone. The caller locks.
type room struct {
	taken   int64
	tenants map[string]int64
}

func (r *room) take(tenant string, n int64) bool {
	if r.taken > 0 && r.tenants[tenant]+n > largeBytes-r.taken {
		return false
	}
	if r.tenants == nil {
		r.tenants = map[string]int64{}
	}
	r.taken += n
	r.tenants[tenant] += n
	return true
}

func (r *room) give(tenant string, n int64) {
	r.taken -= n
	if r.tenants[tenant] -= n; r.tenants[tenant] == 0 {
		delete(r.tenants, tenant)
	}
}
