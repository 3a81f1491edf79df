package capture

import (
	"slices"

	"hookglass"
	"hookglass/internal/provider"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// keyer is a forwarding target that gets a webhook only once.
type keyer struct {
	target int64
	by     hookglass.DedupeBy
}

// keyers returns the targets that get a webhook only once, in their order.
func keyers(targets []store.TargetChoice) (all []keyer) {
	for _, t := range targets {
		if t.By != "" {
			all = append(all, keyer{t.TargetID, t.By})
		}
	}
	return all
}

// key returns what the event has in common with the same webhook, sent again. It returns false where nothing is found
// that identifies it, or where that may be cut: such an event is always forwarded, because one too many is better than
// one too few.
func (k keyer) key(ev *hookglass.Event) (key hookglass.DeliveryKey, ok bool) {
	if k.by == hookglass.DedupeID {
		if ev.Type == hookglass.EventWebhook && !provider.Identified(ev) {
			return key, false
		}
		_, id, ok := hookglass.SenderIdentity(ev)
		return k.by.Key([]byte(ev.EventType), id[:]), ok
	}
	if ev.Payload == nil {
		return key, false
	}
	if name, ok := k.by.Header(); ok {
		var values [][]byte
		for _, v := range ev.Headers.Values(name) {
			values = append(values, []byte(v))
		}
		return k.by.Key(values...), slices.ContainsFunc(values, func(v []byte) bool { return len(v) > 0 })
	}
	if pointer, ok := k.by.Pointer(); ok {
		value, found := query.Scalar(ev, pointer)
		return k.by.Key(value), found
	}
	if k.by != hookglass.DedupeBody || len(ev.Body) == 0 {
		return key, false
	}
	return k.by.Key([]byte(ev.Method), []byte(ev.Path), []byte(ev.RawQuery), ev.Body), true
}
