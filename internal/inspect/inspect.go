// Package inspect explains captured events: what became of one and what to do about it, and how two differ. Findings
// are data, so that every edge shows the same. It hides which facts matter and what they mean together.
//
// It is pure and safe for concurrent use.
package inspect

import (
	_ "embed"
	"encoding/json"
	"sync"

	"hookglass"
)

// sendersText is what senders say of how they send, from their own documentation. A sender without a row is one of
// which neither is known for certain.
//
//go:embed senders.json
var sendersText []byte

var senders = sync.OnceValue(func() map[string]hookglass.SenderFacts {
	var rows []struct {
		Provider, Expects, Retries string
		Schedule                   []int64
	}
	if err := json.Unmarshal(sendersText, &rows); err != nil {
		panic("inspect: senders.json: " + err.Error()) // a fault in the table, found by every test
	}
	facts := make(map[string]hookglass.SenderFacts, len(rows))
	for _, r := range rows {
		facts[r.Provider] = hookglass.SenderFacts(r)
	}
	return facts
})

// Sender returns what is known of how a provider sends; its fields are empty where nothing is.
func Sender(provider string) hookglass.SenderFacts {
	if facts, ok := senders()[provider]; ok {
		return facts
	}
	return hookglass.SenderFacts{Provider: provider}
}

// maxNamed bounds the bytes of a text in a sentence.
const maxNamed = 200

// brief shortens a text to that many bytes, and marks that it did.
func brief(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return hookglass.Beginning(s, most) + "…"
}
