package flow

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

const (
	// lease is how long a node holds a flow without renewing it. After that, others take over a dead node's flows
	// (spec: decisions, section 14: within 60 s).
	lease       = 15 * time.Second
	claimAtOnce = 100
)

// held is a flow that this node leases.
type held struct {
	store.HeldFlow
	machine *machine
	dirty   atomic.Bool // something was captured, or may have been
	subs    []*store.Subscription
	saved   int64         // the cursor that is stored
	late    time.Duration // time spent on judging it after its deadline
	again   time.Time     // when to check again whether the next event's actions have run; zero: it waits for none
}

// due returns when the flow must be judged even if nothing arrives; zero: never.
func (h *held) due() time.Time {
	if !h.again.IsZero() { // nothing is decided before that
		return h.again
	}
	return h.machine.due()
}

func (h *held) close() {
	for _, s := range h.subs {
		s.Close()
	}
}

// claim leases flows that no node holds.
func (s *Service) claim(ctx context.Context, wake func()) error {
	free, err := store.Read(ctx, s.db, hookglass.System, (*store.View).HasFreeFlows)
	if err != nil || !free {
		return err
	}
	var claimed []store.HeldFlow
	whole := context.WithoutCancel(ctx) // a claim that is given up may be stored, and would be nobody's until its lease ends
	err = s.db.Update(whole, hookglass.System, func(tx *store.Tx) (err error) {
		claimed, err = tx.ClaimFlows(claimAtOnce, s.lease)
		return err
	})
	if err != nil {
		return err
	}
	var misread error
	for _, c := range claimed {
		h := &held{HeldFlow: c, saved: c.Cursor}
		m, err := newMachine(&h.Flow)
		if err != nil {
			s.log.Error("a flow is not understood", "flow", c.ID, "error", err)
			(&machine{flow: &h.Flow}).misread(s.now())
			h.Version++
			misread = errors.Join(misread, s.save(ctx, h))
			continue
		}
		h.machine = m
		for _, num := range endpointsOf(&h.Flow) {
			h.subs = append(h.subs, s.db.Watch(store.TopicEvents(num), func() {
				h.dirty.Store(true)
				wake()
			}))
		}
		h.dirty.Store(true) // after subscribing, so that nothing is missed in between
		s.hold(h)
	}
	return misread
}

func (s *Service) hold(h *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.held[h.Num]; before != nil {
		before.close()
	}
	s.held[h.Num] = h
}

// all lists the held flows, oldest first.
func (s *Service) all() []*held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.held), func(a, b *held) int { return cmp.Compare(a.Num, b.Num) })
}

// drop lets go of a flow that has ended or that another node holds.
func (s *Service) drop(h *held) {
	h.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[h.Num] == h {
		delete(s.held, h.Num)
	}
}

// save stores the progress of a flow. If another node holds it by now, it is dropped.
func (s *Service) save(ctx context.Context, h *held) error {
	kept := false
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		kept, err = tx.SaveFlow(h.HeldFlow)
		return err
	})
	if err != nil {
		return err
	}
	h.saved = h.Cursor
	if !kept {
		s.drop(h)
	}
	return nil
}

// renew extends the leases of the held flows, and stores their cursors.
func (s *Service) renew(ctx context.Context) error {
	all := s.all()
	if len(all) == 0 {
		return nil
	}
	rows := make([]store.HeldFlow, len(all))
	for i, h := range all {
		rows[i] = h.HeldFlow
	}
	var still []int64
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		still, err = tx.ExtendFlows(rows, s.lease)
		return err
	})
	if err != nil {
		return err
	}
	for _, h := range all {
		if !slices.Contains(still, h.Num) {
			s.drop(h)
		} else if h.Cursor != h.saved {
			err = errors.Join(err, s.save(ctx, h))
		}
	}
	return err
}

// release hands the held flows to other nodes.
func (s *Service) release() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var rows []store.HeldFlow
	for _, h := range s.all() {
		rows = append(rows, h.HeldFlow)
		s.drop(h)
	}
	s.tell(s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.ReleaseFlows(rows) }))
}
