package tunnel

import (
	"context"
	"maps"
	"slices"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// watch is the slow poll, and closes sockets whose rights end.
func (s *Service) watch(ctx context.Context) {
	tokens := s.db.Listen(store.TopicTokens)
	defer tokens.Close()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	newest := int64(-1)
	for {
		select {
		case <-tick.C:
			newest = s.look(ctx, newest)
		case <-tokens.C:
		case <-ctx.Done():
			return
		}
		if err := s.checkRights(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("the rights of tunnels could not be checked", "error", err)
		}
	}
}

// look wakes the sessions of endpoints that have events since the last look.
func (s *Service) look(ctx context.Context, since int64) int64 {
	var endpoints []int64
	newest := since
	err := s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		endpoints, newest, err = v.EndpointsSince(since)
		return err
	})
	if err != nil {
		return since
	}
	changed := make(map[int64]bool, len(endpoints))
	for _, num := range endpoints {
		changed[num] = true
	}
	for _, x := range s.all() {
		for _, sub := range x.list() {
			if changed[sub.EndpointNum] {
				sub.pending.Store(true)
				x.nudge()
			}
		}
		if x.command.Load() {
			x.nudge()
		}
	}
	return newest
}

func (s *Service) all() []*Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.AppendSeq(make([]*Session, 0, len(s.sessions)), maps.Keys(s.sessions))
}

// checkRights closes sockets whose token was revoked or has expired, and those whose endpoint is gone. A socket with
// other endpoints left only has that subscription rejected.
func (s *Service) checkRights(ctx context.Context) error {
	sessions := s.all()
	if len(sessions) == 0 {
		return nil
	}
	var tokens, endpoints []int64
	checked := make([][]*subscription, len(sessions))
	for i, x := range sessions {
		if x.who.Token != 0 {
			tokens = append(tokens, x.who.Token)
		}
		checked[i] = x.list()
		endpoints = append(endpoints, x.home)
		for _, sub := range checked[i] {
			endpoints = append(endpoints, sub.EndpointNum)
		}
	}
	var usable map[int64]bool
	var kept map[int64]hookglass.Endpoint
	err := s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		if usable, err = v.UsableTokens(distinct(tokens), v.Now); err != nil {
			return err
		}
		kept, err = v.KeptEndpoints(distinct(endpoints))
		return err
	})
	if err != nil {
		return err
	}
	for i, x := range sessions {
		x.checkRights(checked[i], usable, kept)
	}
	return nil
}

// checkRights ends what the session has no right to any more. Of its subscriptions it looks at the given ones: kept
// says nothing about the endpoints of newer ones.
func (x *Session) checkRights(subs []*subscription, usable map[int64]bool, kept map[int64]hookglass.Endpoint) {
	if x.who.Token != 0 && !usable[x.who.Token] {
		x.disconnect(ReasonUnauthorized, false)
		return
	}
	if _, there := kept[x.home]; x.who.Token == 0 && !there {
		x.disconnect(ReasonUnauthorized, false)
		return
	}
	var lost []*subscription
	for _, sub := range subs {
		e, there := kept[sub.EndpointNum]
		switch {
		case !there,
			x.who.Token == 0 && e.AccountID != 0,
			x.who.Token != 0 && (e.AccountID != x.who.Account || x.who.Workspace != 0 && e.WorkspaceID != x.who.Workspace):
			lost = append(lost, sub)
		}
	}
	if len(lost) == 0 {
		return
	}
	if !slices.ContainsFunc(x.list(), func(sub *subscription) bool { return !slices.Contains(lost, sub) }) {
		x.disconnect(ReasonUnauthorized, false)
		return
	}
	for _, sub := range lost {
		if x.remove(sub.key) == nil {
			continue
		}
		x.s.Hold(func() { // in the background: a stuck socket must not hold up others
			_ = x.conn.Reject(x.ctx, sub.key) // if the socket is broken, its reader notices
			x.s.end(store.TunnelEnd{Subscription: sub.Num})
		})
	}
}

// distinct sorts the numbers, each once.
func distinct(nums []int64) []int64 {
	slices.Sort(nums)
	return slices.Compact(nums)
}
