package store

import (
	"sync/atomic"
	"time"
)

// Bounds on how many events one transaction deletes. The time that takes depends on the disk and on how much belongs to
// the events: 500 of them took from 50 ms to a second on the same machine.
const (
	deleteRows  = 500
	deleteLeast = 25
	deleteFor   = 50 * time.Millisecond // about how long captures may wait behind one transaction
)

// pace adapts the number of events per deleting transaction to how long the last ones took. The zero value starts at
// the maximum. Safe for concurrent use.
type pace struct{ less atomic.Int64 }

func (p *pace) rows() int64 { return deleteRows - p.less.Load() }

// took records how long a transaction took for a number of events.
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
