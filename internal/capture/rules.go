package capture

import (
	"time"

	"hookglass"
	"hookglass/internal/query"
)

// rule is a custom answer to the events that match a condition.
type rule struct {
	when  query.Query
	reads bool // whether when reads the body
	reply *hookglass.Response
	is    *hookglass.ReplyRule
}

// readRules parses rules, in their order.
func readRules(written []hookglass.ResponseRule) []rule {
	var rules []rule
	for i, r := range written {
		when, err := query.Parse(r.When, time.Time{})
		if err != nil {
			continue // from a newer version of the program: the endpoint answers as without the rule
		}
		_, body := when.Reads()
		rules = append(rules, rule{when, body, &r.Response, &hookglass.ReplyRule{Index: i, When: r.When}})
	}
	return rules
}

// own returns the custom answer of an endpoint to an event: that of the first matching rule, with the rule, or else the
// one for all events. It returns nil if there is none.
func (t Target) own(ev *hookglass.Event) (*hookglass.Response, *hookglass.ReplyRule) {
	for _, r := range t.known.rules {
		if (!r.reads || ev.Size <= query.MaxLooked) && r.when.Match(ev) {
			return r.reply, r.is
		}
	}
	return t.Endpoint.Response, nil
}
