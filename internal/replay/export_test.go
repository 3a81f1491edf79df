package replay

import "time"

// SetRecordTime bounds how long the service tries to write down what was sent at once.
func (s *Service) SetRecordTime(most time.Duration) { s.recordTime = most }

// SetRoomTime bounds how long who asks for a replay of a large event waits for room.
func (s *Service) SetRoomTime(most time.Duration) { s.roomTime = most }
