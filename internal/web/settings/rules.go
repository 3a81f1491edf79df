package settings

import (
	"strconv"
	"strings"

	"hookglass"
	"hookglass/internal/web/layout"
)

// Rules is the form of the rules by which some webhooks are answered.
type Rules struct {
	Rules []Rule
	Seen  string // as of General
}

// Rule is one of them, as it is or as it was typed.
type Rule struct {
	When string
	Answer
}

// RulesOf is the form of rules as they are.
func RulesOf(rules []hookglass.ResponseRule) Rules {
	var form Rules
	for _, r := range rules {
		form.Rules = append(form.Rules, Rule{r.When, AnswerOf(&r.Response)})
	}
	form.Seen = layout.Mark(form.Rules)
	return form
}

// newRule is what a rule begins with.
func newRule() Rule { return Rule{Answer: AnswerOf(nil)} }

// rulePart begins the ids of a rule.
func rulePart(i int) string { return "rule-" + strconv.Itoa(i) + "-" }

// ruleFault says what is wrong with a field of a rule.
func (m Model) ruleFault(i int, field string) string {
	return m.fault("rules", ruleField(i)+field)
}

func ruleField(i int) string { return "response_rules." + strconv.Itoa(i) + "." }

// faultyRule reports whether something is wrong with a rule.
func (m Model) faultyRule(i int) bool {
	if m.FaultAt != "rules" {
		return false
	}
	for _, f := range m.Faults {
		if strings.Contains(f.Field, ruleField(i)) {
			return true
		}
	}
	return false
}

// ruleFaults says what is wrong with all rules together.
func (m Model) ruleFaults() string {
	for i := range m.Rules.Rules {
		if m.faultyRule(i) {
			return ""
		}
	}
	return m.rest("rules")
}
