package release

import "time"

// Hurry sets how long a release goes on once the server stops.
func (s *Service) Hurry(after time.Duration) { s.stopTime = after }
