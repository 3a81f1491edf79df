package store

import (
	"sync/atomic"
	"time"
)

// Bounds of how many events one transaction deletes. How long that takes is another thing on each disk, and for events
// of which much became: 500 of them took 50 ms to a second on the same machine.
const (
	deleteRows  = 500
	deleteLeast = 25
	deleteFor   = 50 * time.Millisecond // about as long as captures may stand behind one
)

// pace is how many events a transaction deletes, by how long the last ones took. The zero value begins with the most.
// Safe for concurrent use.
type pace struct{ less atomic.Int64 }

func (p *pace) rows() int64 { return deleteRows - p.less.Load() }

// took tells how long a transaction needed for so many events.
func (p *pace) took(events int64, d time.Duration) {
	rows := p.rows()
	switch {
	case d > deleteFor:
		rows = max(rows/2, deleteLeast)
	case events >= rows && d < deleteFor/4:
		rows = min(rows*2, deleteRows)
	}
	p.less.Store(deleteRows - rows)
}
