package capture

import (
	"time"

	"hookglass"
	"hookglass/internal/query"
)

// rule is an answer to some of the events of an endpoint.
type rule struct {
	when  query.Query
	reads bool // the body
	reply *hookglass.Response
	is    *hookglass.ReplyRule
}

// readRules reads rules, in their order.
func readRules(written []hookglass.ResponseRule) []rule {
	var rules []rule
	for i, r := range written {
		when, err := query.Parse(r.When, time.Time{})
		if err != nil {
			continue // of a later version of the program: the endpoint answers as without it
		}
		_, body := when.Reads()
		rules = append(rules, rule{when, body, &r.Response, &hookglass.ReplyRule{Index: i, When: r.When}})
	}
	return rules
}

// own is the custom answer of an endpoint to an event: that of the first rule that means it, which is returned too, or
// the one that it has for all. Nil where there is none.
func (t Target) own(ev *hookglass.Event) (*hookglass.Response, *hookglass.ReplyRule) {
	for _, r := range t.known.rules {
		if (!r.reads || ev.Size <= query.MaxLooked) && r.when.Match(ev) {
			return r.reply, r.is
		}
	}
	return t.Endpoint.Response, nil
}
