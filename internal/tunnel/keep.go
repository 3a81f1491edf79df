package tunnel

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// keep renews the node's lease, stores how far clients have received events, and ends the sessions of dead nodes.
func (s *Service) keep(ctx context.Context) {
	tick := time.NewTicker(s.lease / 5)
	defer tick.Stop()
	first, purged := true, time.Now()
	for {
		err := s.renew(ctx)
		if err == nil && first {
			first = false
			close(s.held)
			err = s.sweep(ctx, s.alone)
		} else if err == nil {
			err = s.sweep(ctx, false)
		}
		if err == nil {
			s.settle(ctx)
			if time.Since(purged) >= purgeEvery {
				purged = time.Now()
				err = s.db.UpdateInPieces(ctx, func(tx *store.Tx) (more bool, err error) { return tx.PurgeTunnels(s.Retention, gapRest) })
			}
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("the tunnels of this node could not be kept", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// gapRest is how long a gap is kept after its events are gone.
const gapRest = 7 * 24 * time.Hour

func (s *Service) renew(ctx context.Context) error {
	var kept map[int64]bool
	received, stored := make(map[int64]int64), make(map[*subscription]int64)
	had := s.all()
	for _, x := range had {
		x.mu.Lock()
		for _, sub := range x.subs {
			if sub.received > sub.stored {
				received[sub.Num], stored[sub] = sub.received, sub.received
			}
		}
		x.mu.Unlock()
	}
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		if kept, err = tx.RenewTunnelNode(s.node, tx.Now.Add(s.lease)); err != nil {
			return err
		}
		return tx.SaveTunnelReceived(received)
	})
	if err != nil {
		return err
	}
	for sub, seq := range stored {
		sub.stored = seq
	}
	for _, x := range had {
		if !kept[x.record.Num] { // other nodes have ended it as lost
			x.disconnect(ReasonRestart, true)
		}
	}
	return nil
}

// sweep ends the sessions of nodes whose lease has ended, or of all other nodes if this one must be alone.
func (s *Service) sweep(ctx context.Context, alone bool) error {
	var ahead time.Duration
	if alone {
		ahead = s.lease
	}
	lost, err := store.Read(ctx, s.db, hookglass.System, func(v *store.View) ([]store.LostTunnelNode, error) {
		return v.LostTunnelNodes(s.node, v.Now.Add(ahead))
	})
	if err != nil {
		return err
	}
	for _, n := range lost {
		for done := false; !done; {
			if err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
				done, err = tx.EndTunnelNode(n, endAtOnce)
				return err
			}); err != nil {
				return err
			}
		}
		s.Log.Info("tunnels of a node that is gone were ended", "node", n.ID)
	}
	return nil
}

// endAtOnce bounds the sessions that one transaction ends: captures wait behind it.
const endAtOnce = 100
