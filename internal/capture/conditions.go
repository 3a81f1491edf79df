package capture

import (
	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// chooser is a forwarding target that does not get all events.
type chooser struct {
	target int64
	when   query.Condition
}

// choosers are those among targets, in their order.
func choosers(targets []store.TargetCondition) (all []chooser) {
	for _, t := range targets {
		if t.When == "" {
			continue
		}
		when, err := query.ParseCondition(t.When)
		if err != nil {
			continue // of a later version of the program: an event too many is better than one too few
		}
		all = append(all, chooser{t.TargetID, when})
	}
	return all
}

// following is the work that follows an event.
func (t *target) following(ev *hookglass.Event) store.Work {
	work := t.work
	for _, c := range t.choosers {
		if !c.when.Means(ev) {
			work.But = append(work.But, c.target)
		}
	}
	return work
}
