package delivery

// Shares opens the places to the tests.
type Shares struct{ shares }

// Take and Give open take and give.
func (s *Shares) Take(tenant string, target int64) bool { return s.take(tenant, target) }
func (s *Shares) Give(tenant string, target int64)      { s.give(tenant, target) }

// Empty reports whether nothing is remembered.
func (s *Shares) Empty() bool { return s.taken == 0 && len(s.tenants) == 0 }

// Room opens the bytes to the tests.
type Room struct{ room }

// Take and Give open take and give.
func (r *Room) Take(tenant string, n int64) bool { return r.take(tenant, n) }
func (r *Room) Give(tenant string, n int64)      { r.give(tenant, n) }
