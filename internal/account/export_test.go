package account

// ReadPHC reads and writes a stored password.
func ReadPHC(s string) (string, bool) {
	p, ok := parsePHC(s)
	return p.String(), ok
}

// EndSpate has the time of what failed lately be over.
func EndSpate(s *Service) { s.endSpate(true) }
