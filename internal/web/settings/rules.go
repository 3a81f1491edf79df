package settings

import (
	"fmt"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/show"
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

// answeredBy says in words what answers where no rule does.
var answeredBy = map[capture.AnsweredBy]string{
	capture.ByResponse: "the response above", capture.ByDefault: "the default response", capture.ByHandshake: "the handshake",
	capture.ByScript: "the response script", capture.ByTunnel: "the connected machine",
}

// triedVerdict is what a try came to, in a sentence or two.
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
