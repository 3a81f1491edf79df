package email

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"hookglass"
)

//go:embed table.json
var tableJSON []byte

// table is the parsed table.json, which is part of the program: any test finds a mistake in it.
var table = sync.OnceValue(func() [][]sender {
	layers, err := parseTable(tableJSON)
	if err != nil {
		panic("internal/email/table.json: " + err.Error())
	}
	return layers
})

// sender is a service that mail comes from.
type sender struct {
	ID        string   `json:"id"`
	Strong    []string `json:"strong"`    // any of these conjunctions of header conditions names it (condition)
	Domains   []string `json:"domains"`   // ... or its domain, or one below, in Message-ID, the return path or a DKIM signature
	Received  []string `json:"received"`  // ... or in a hop
	Event     string   `json:"event"`     // the header with its own event type
	Marketing bool     `json:"marketing"` // what it sends is newsletters

	strong [][]condition
	app    bool // creates mail rather than relaying it
}

// condition is a condition on a header: "Name" requires its presence (a final * is a wildcard), "Name=text" compares
// its value, ^ its beginning, $ its end, ~ any part. A leading ! negates. Case is ignored.
type condition struct {
	not        bool
	name       string // lower case
	prefix     bool
	comparison byte // 0 for presence
	text       string
}

// The layers in order of precedence: who created the mail identifies it before who relayed it.
const (
	layerApp = iota
	layerList
	layerESP
	layerMailbox
)

func parseTable(text []byte) ([][]sender, error) {
	var file struct{ App, List, ESP, Mailbox []sender }
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		return nil, err
	}
	layers := [][]sender{layerApp: file.App, layerList: file.List, layerESP: file.ESP, layerMailbox: file.Mailbox}
	seen := map[string]bool{}
	for number, layer := range layers {
		for i := range layer {
			s := &layer[i]
			s.app = number == layerApp
			if s.ID == "" || seen[s.ID] || len(s.Strong)+len(s.Domains)+len(s.Received) == 0 {
				return nil, fmt.Errorf("%q has no id of its own, or nothing to know it by", s.ID)
			}
			seen[s.ID] = true
			for _, c := range s.Strong {
				var all []condition
				for _, one := range strings.Split(c, " + ") {
					all = append(all, parseCondition(one))
				}
				s.strong = append(s.strong, all)
			}
		}
	}
	return layers, nil
}

func parseCondition(s string) (c condition) {
	s, c.not = strings.CutPrefix(s, "!")
	if i := strings.IndexAny(s, "=^$~"); i >= 0 {
		c.comparison, c.text, s = s[i], strings.ToLower(s[i+1:]), s[:i]
	}
	s, c.prefix = strings.CutSuffix(s, "*")
	c.name = strings.ToLower(s)
	return c
}

// met reports whether the condition holds for headers whose names and values are in lower case.
func (c condition) met(headers hookglass.Headers) bool {
	for _, h := range headers {
		if h.Name != c.name && !(c.prefix && strings.HasPrefix(h.Name, c.name)) {
			continue
		}
		holds := true
		switch c.comparison {
		case '=':
			holds = h.Value == c.text
		case '^':
			holds = strings.HasPrefix(h.Value, c.text)
		case '$':
			holds = strings.HasSuffix(h.Value, c.text)
		case '~':
			holds = strings.Contains(h.Value, c.text)
		}
		if holds {
			return !c.not
		}
	}
	return c.not
}
