package capture

import (
	"slices"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// chooser is a forwarding target with a condition.
type chooser struct {
	target int64
	when   query.Condition
}

// choosers returns the targets with conditions, in their order.
func choosers(targets []store.TargetChoice) (all []chooser) {
	for _, t := range targets {
		if t.When == "" {
			continue
		}
		when, err := query.ParseCondition(t.When)
		if err != nil {
			continue // from a newer version of the program: forwarding too much is better than too little
		}
		all = append(all, chooser{t.TargetID, when})
	}
	return all
}

// following returns the work that follows an event.
func (t *target) following(ev *hookglass.Event) store.Work {
	work := t.work
	for _, c := range t.choosers {
		if !c.when.Means(ev) {
			work.But = append(work.But, c.target)
		}
	}
	for _, k := range t.keyers {
		if slices.Contains(work.But, k.target) {
			continue
		}
		if key, ok := k.key(ev); ok {
			work.Keys = append(work.Keys, store.TargetKey{TargetID: k.target, Key: key})
		}
	}
	return work
}
