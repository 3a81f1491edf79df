package web

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/endpoint"
	"hookglass/internal/web/settings"
)

// saveRules saves the response rules, in their order.
func (a *app) saveRules(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.ownLongForm(w, r)
	if err != nil {
		return err
	}
	do := r.PostFormValue("do")
	by, place := movement(do)
	typed := settings.Rules{Seen: r.PostFormValue("seen")}
	var at int
	typed.Rules, at = typedRules(r, place)
	show := func(m *settings.Model) { m.Rules = typed }
	if by != 0 {
		if to := at + by; at >= 0 && to >= 0 && to < len(typed.Rules) {
			typed.Rules[at], typed.Rules[to] = typed.Rules[to], typed.Rules[at]
			typed.Moved, typed.By = to+1, by
		}
		return a.renderSettings(w, r, http.StatusOK, func(m *settings.Model) { show(m); m.Unsaved = "rules" })
	}
	try := do == "try"
	if stored := settings.RulesOf(e.ResponseRules).Seen; !try && stale(typed.Seen, stored) {
		typed.Seen = stored
		return a.renderSettings(w, r, http.StatusConflict, func(m *settings.Model) { show(m); m.Stale = "rules" })
	}
	rules := make([]hookglass.ResponseRule, 0, len(typed.Rules))
	for i, t := range typed.Rules {
		answer, err := readResponse(t.Answer)
		if err != nil {
			return a.settle(w, r, within(err, fmt.Sprintf("response_rules.%d.", i)), "", "rules", show)
		}
		rules = append(rules, hookglass.ResponseRule{When: t.When, Response: *answer})
	}
	if try {
		return a.tryRules(w, r, v, e, rules, show)
	}
	_, err = a.Endpoints.Update(r.Context(), v.who, string(e.ID), endpoint.Draft{ResponseRules: &rules})
	return a.settle(w, r, err, "saved", "rules", show)
}

// tryRules shows how the last requests would be answered by the typed rules.
func (a *app) tryRules(w http.ResponseWriter, r *http.Request, v visitor, e hookglass.Endpoint, rules []hookglass.ResponseRule, show func(*settings.Model)) error {
	if err := endpoint.CheckRules(rules); err != nil {
		return a.settle(w, r, err, "", "rules", show)
	}
	tried, err := a.Captures.TryRules(r.Context(), v.who, string(e.ID), "", capture.DefaultTried, &rules)
	if err != nil {
		return err
	}
	return a.renderSettings(w, r, http.StatusOK, func(m *settings.Model) {
		if settings.RulesOf(rules).Seen != m.Rules.Seen {
			m.Unsaved = "rules"
		}
		show(m)
		m.Tried = &tried
	})
}

// typedRules returns the rules of a form, which has the fields of one rule after the other. A rule whose condition was
// cleared is removed. A new one without a condition is left out if nothing else was typed in it. at is the index of the
// rule that is at a place of the form, or -1.
func typedRules(r *http.Request, place int) (rules []settings.Rule, at int) {
	at = -1
	field := func(name string, i int) string {
		if all := r.PostForm[name]; i < len(all) {
			return strings.ReplaceAll(all[i], "\r\n", "\n")
		}
		return ""
	}
	for i, when := range r.PostForm["when"] {
		rule := settings.Rule{When: strings.TrimSpace(when), Answer: settings.Answer{
			Status: field("status", i), Headers: field("headers", i), Body: field("body", i), Delay: field("delay_ms", i),
		}}
		if rule.When == "" && (field("was", i) != "" || rule.Blank()) {
			continue
		}
		if i == place {
			at = len(rules)
		}
		rules = append(rules, rule)
	}
	return rules, at
}

// movement reads a button that moves a rule, "up 2" or "down 2": by how much, and the rule's place in the form. by is 0
// for another button.
func movement(do string) (by, place int) {
	direction, number, _ := strings.Cut(do, " ")
	place, err := strconv.Atoi(number)
	switch {
	case err == nil && direction == "up":
		by = -1
	case err == nil && direction == "down":
		by = 1
	}
	return by, place
}

// within puts a prefix before the fields at fault.
func within(err error, prefix string) error {
	var coded *hookglass.Error
	if !errors.As(err, &coded) {
		return err
	}
	faults := slices.Clone(coded.Details)
	for i := range faults {
		faults[i].Field = prefix + faults[i].Field
	}
	return hookglass.InvalidFields(faults)
}
