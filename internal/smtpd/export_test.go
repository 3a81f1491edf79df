package smtpd

import (
	"bufio"
	"io"
	"net/netip"
)

// NewDataReader reads the message that follows DATA.
func NewDataReader(r io.Reader) io.Reader { return &dataReader{r: bufio.NewReader(r)} }

// ReadProxy reads a PROXY header.
func ReadProxy(r *bufio.Reader) (netip.Addr, bool, error) { return readProxy(r) }

// ParseChunk reads what follows BDAT.
func ParseChunk(rest string) (size int64, last, ok bool) { return parseChunk(rest) }

// ParsePath reads what follows MAIL or RCPT.
func ParsePath(rest, keyword string) (address, domain string, params map[string]string, err error) {
	p, err := parsePath(rest, keyword)
	return p.address, p.domain, p.params, err
}
