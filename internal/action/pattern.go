package action

import (
	"errors"
	"time"

	"github.com/dlclark/regexp2/v2"

	"hookglass"
)

// Bounds of regular expressions (spec, "Limits"). The engine's clock ticks every 100 ms, so it is stopped ahead of the
// bound.
const (
	patternBound   = time.Second // for one pattern
	patternTimeout = 800 * time.Millisecond
	patternBudget  = 5 * time.Second // for all conditions of an action's run
	maxMatched     = 64 << 10        // bytes of a value that a pattern looks at
	maxBacktrack   = 1 << 20         // slots of the engine's stack, 8 MiB
)

// pattern is a regular expression that can be stopped, as that of the standard library cannot.
type pattern struct{ re *regexp2.Regexp }

var (
	errPattern = errors.New("must be a regular expression")
	errSlow    = errors.New("the regular expression took too long")
	errSpent   = errors.New("the time for regular expressions is used up")
)

func compilePattern(text string) (pattern, error) {
	re, err := regexp2.Compile(text, regexp2.RE2, regexp2.OptionMaxBacktrackingStackSize(maxBacktrack))
	if err != nil {
		return pattern{}, errPattern
	}
	re.MatchTimeout = patternTimeout
	return pattern{re}, nil
}

// budget is the time that the patterns of one run may still take.
type budget struct{ spent time.Duration }

// match reports whether the pattern matches in the first 64 KiB of a text. The engine's own error quotes the text, so
// it is not passed on.
func (b *budget) match(p pattern, text string) (bool, error) {
	if b.spent+patternBound > patternBudget {
		return false, errSpent
	}
	began := time.Now()
	text, _ = cut(text, maxMatched)
	matched, err := p.re.MatchString(text)
	b.spent += time.Since(began)
	if err != nil {
		return false, errSlow
	}
	return matched, nil
}

// cut shortens a text to n bytes at most, at the end of a character, and reports whether it did. Redact before: half of
// a secret is not found.
func cut(s string, n int) (string, bool) {
	short := hookglass.Beginning(s, n)
	return short, len(short) < len(s)
}
