package drift

import "time"

// ReadFor bounds the time in which schemas are inferred when they are asked for.
func (s *Service) ReadFor(d time.Duration) { s.readFor = d }
