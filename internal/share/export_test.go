package share

import "time"

// SearchFor sets how long the query of a bundle is searched for.
func (s *Service) SearchFor(d time.Duration) { s.searchTime = d }
