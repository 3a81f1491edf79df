package flow

import (
	"maps"
	"slices"
)

// turns says in which order flows are judged where there is not the time for all: accounts one after another, and the
// flows of each, so that neither many flows nor slow ones hold up those of others.
type turns struct {
	account int64           // that had the last turn
	flows   map[int64]int64 // by account: the flow that had it
}

// order puts flows, which come in the order of their Num, in that of their turns.
func (t *turns) order(all []*held) []*held {
	of := map[int64][]*held{}
	for _, h := range all {
		of[h.AccountID] = append(of[h.AccountID], h)
	}
	accounts := behind(slices.Sorted(maps.Keys(of)), func(account int64) bool { return account > t.account })
	flows := make(map[int64]int64, len(of)) // without those of accounts that have none any more
	for account, own := range of {
		flows[account] = t.flows[account]
		of[account] = behind(own, func(h *held) bool { return h.Num > flows[account] })
	}
	t.flows = flows
	ordered := make([]*held, 0, len(all))
	for rank := 0; len(ordered) < len(all); rank++ {
		for _, account := range accounts {
			if own := of[account]; rank < len(own) {
				ordered = append(ordered, own[rank])
			}
		}
	}
	return ordered
}

// behind is a list that begins with the first that is next, and has what is before it at its end.
func behind[T any](all []T, next func(T) bool) []T {
	first := max(slices.IndexFunc(all, next), 0)
	return slices.Concat(all[first:], all[:first])
}

// took notes whose turn it was.
func (t *turns) took(h *held) { t.account, t.flows[h.AccountID] = h.AccountID, h.Num }
