package replay

import "time"

// SetRecordTime bounds how long the service tries to write down what was sent at once.
func (s *Service) SetRecordTime(most time.Duration) { s.recordTime = most }
