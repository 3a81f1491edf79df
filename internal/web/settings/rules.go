package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
)

// Rules is the form of the response rules.
type Rules struct {
	Rules []Rule
	Seen  string // as of General
	Moved int    // the number of the rule that was just moved, from 1; 0: none
	By    int    // -1: it was moved up; 1: down
}

// again reports whether a button of a rule moves on what was just moved: the same button, or the other one at the end.
func (r Rules) again(i, by int) bool {
	to := i + r.By
	return r.Moved == i+1 && (by == r.By) == (to >= 0 && to < len(r.Rules))
}

// Rule is a rule as stored, or as typed.
type Rule struct {
	When string
	Answer
}

// RulesOf returns the form of stored rules.
func RulesOf(rules []hookglass.ResponseRule) Rules {
	var form Rules
	for _, r := range rules {
		form.Rules = append(form.Rules, Rule{r.When, AnswerOf(&r.Response)})
	}
	form.Seen = layout.Mark(form.Rules)
	return form
}

// newRule returns the form of a new rule.
func newRule() Rule { return Rule{Answer: AnswerOf(nil)} }

// Blank reports whether nothing was typed in the form of a new rule.
func (r Rule) Blank() bool {
	return r.When == "" && (r.Same(newRule().Answer) || r.Same(Answer{}))
}

// answeredBy names what responds if no rule does.
var answeredBy = map[capture.AnsweredBy]string{
	capture.ByResponse: "the response above", capture.ByDefault: "the default response", capture.ByHandshake: "the handshake",
	capture.ByScript: "the response script", capture.ByTunnel: "the connected machine",
}

// triedVerdict sums up a try in a sentence or two.
func triedVerdict(t *capture.TriedRules) string {
	ruled := 0
	for _, e := range t.Events {
		if e.Rule != nil {
			ruled++
		}
	}
	verdict := fmt.Sprintf("Rules would answer %d of the last %s.", ruled, show.Plural(int64(len(t.Events)), "request"))
	if !t.Complete {
		verdict += " Time ran out before older requests were tried."
	}
	return verdict
}

// rulePart returns the prefix of the ids of a rule.
func rulePart(i int) string { return "rule-" + strconv.Itoa(i) + "-" }

// ruleFault returns what is wrong with a field of a rule.
func (m Model) ruleFault(i int, field string) string {
	return m.fault("rules", ruleField(i)+field)
}

func ruleField(i int) string { return "response_rules." + strconv.Itoa(i) + "." }

// faultyRule reports whether a rule has a fault.
func (m Model) faultyRule(i int) bool {
	return m.FaultAt == "rules" && slices.ContainsFunc(m.Faults, func(f hookglass.FieldError) bool { return strings.Contains(f.Field, ruleField(i)) })
}

// ruleFaults returns what is wrong with the rules as a whole.
func (m Model) ruleFaults() string {
	for i := range m.Rules.Rules {
		if m.faultyRule(i) {
			return ""
		}
	}
	return m.rest("rules")
}
