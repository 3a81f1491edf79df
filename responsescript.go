package hookglass

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ResponseScript is the sequence of answers that an endpoint gives to the attempts of one delivery: the first answer
// to the first attempt, and so on. The last one answers all further attempts.
type ResponseScript []ScriptedAnswer

// ScriptedAnswer is an entry of a script.
type ScriptedAnswer struct {
	Status     int           // 0: no answer, the connection is reset
	Delay      time.Duration // before the answer or the reset
	RetryAfter time.Duration // sent in whole seconds; 0: not sent
	Times      int           // attempts in a row that it answers, at least 1
	Enhanced   string        // for mail: the enhanced status code; empty: the default for the status
	Text       string        // for mail: the text of the reply; empty: the default
}

// Bounds of a script. MaxScriptDelay is the bound of a custom answer's delay (spec: decisions, section 4).
// MaxScriptHold is how long the most patient senders wait: a minute or two.
const (
	MaxScript        = 1000 // characters
	MaxScriptEntries = 100
	MaxScriptTimes   = 1000
	MaxScriptDelay   = 30 * time.Second
	MaxScriptHold    = 120 * time.Second
	MaxRetryAfter    = 24 * time.Hour

	// DefaultHold is how long a timeout without a time of its own holds the connection.
	DefaultHold = 60 * time.Second
)

// ParseResponseScript parses a script: entries separated by commas. An entry is a status from 200 to 599, "reset"
// (the connection is closed at once, without an answer) or "timeout" (it is held, then closed). These may follow, in
// this order and each at most once: "+2s" (a delay, or the duration of a timeout), "@30s" (Retry-After, with a status
// only) and "*3" (the number of attempts that the entry answers). It answers validation_failed for response_script
// and names the entry at fault.
func ParseResponseScript(text string) (ResponseScript, error) {
	return parseScript(text, utf8.RuneCountInString(text), func(entry string) (ScriptedAnswer, string) {
		return parseScripted(strings.ToLower(entry), httpStatuses)
	})
}

// parseScript parses the entries of a script of size characters.
func parseScript(text string, size int, parse func(entry string) (a ScriptedAnswer, fault string)) (ResponseScript, error) {
	if size > MaxScript {
		return nil, Invalid("response_script", "may have %d characters at most", MaxScript)
	}
	entries := strings.Split(text, ",")
	if len(entries) > MaxScriptEntries {
		return nil, Invalid("response_script", "may have %d entries at most", MaxScriptEntries)
	}
	script := make(ResponseScript, 0, len(entries))
	for i, entry := range entries {
		a, fault := parse(strings.TrimSpace(entry))
		if fault != "" {
			return nil, Invalid("response_script", "entry %d %s", i+1, fault)
		}
		script = append(script, a)
	}
	return script, nil
}

// statuses describes the statuses that entries of a script may have.
type statuses struct {
	must    string // what an entry must be, in words
	include func(status int64) bool
}

var httpStatuses = statuses{"be a status from 200 to 599, reset or timeout", func(status int64) bool { return status >= 200 && status <= 599 }}

func parseScripted(entry string, of statuses) (a ScriptedAnswer, fault string) {
	a.Times = 1
	if rest, times, found := strings.Cut(entry, "*"); found {
		n, ok := digits(times)
		if !ok || n < 1 || n > MaxScriptTimes {
			return a, fmt.Sprintf("must be repeated 1 to %d times", MaxScriptTimes)
		}
		entry, a.Times = rest, int(n)
	}
	if rest, after, found := strings.Cut(entry, "@"); found {
		d, ok := scriptedTime(after)
		if !ok || d < time.Second || d > MaxRetryAfter || d%time.Second != 0 {
			return a, "must have a Retry-After of 1s to 24h, in whole seconds"
		}
		entry, a.RetryAfter = rest, d
	}
	answer, delay, delayed := strings.Cut(entry, "+")
	if delayed {
		d, ok := scriptedTime(delay)
		if !ok {
			return a, `has a time that is not a number and ms, s, m or h`
		}
		a.Delay = d
	}
	switch answer {
	case "reset":
		if delayed || a.RetryAfter > 0 {
			return a, "has a reset, which takes neither a delay nor a Retry-After"
		}
		return a, ""
	case "timeout":
		if !delayed {
			a.Delay = DefaultHold
		}
		if a.RetryAfter > 0 {
			return a, "has a timeout, which takes no Retry-After"
		}
		if a.Delay < time.Second || a.Delay > MaxScriptHold {
			return a, fmt.Sprintf("may hold the connection 1s to %s", scriptTime(MaxScriptHold))
		}
		return a, ""
	}
	status, ok := digits(answer)
	if !ok || !of.include(status) {
		return a, "must " + of.must
	}
	if a.Delay > MaxScriptDelay {
		return a, fmt.Sprintf("may be delayed by %s at most", scriptTime(MaxScriptDelay))
	}
	a.Status = int(status)
	return a, ""
}

// digits reads a number of up to six digits.
func digits(s string) (n int64, ok bool) {
	if s == "" || len(s) > 6 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// scriptUnits lists "ms" before "s" and "m": a suffix of another unit must come after it.
var scriptUnits = []struct {
	name string
	unit time.Duration
}{{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}}

func scriptedTime(s string) (time.Duration, bool) {
	for _, u := range scriptUnits {
		if number, ok := strings.CutSuffix(s, u.name); ok {
			n, ok := digits(number)
			return time.Duration(n) * u.unit, ok
		}
	}
	return 0, false
}

func scriptTime(d time.Duration) string {
	switch {
	case d%time.Hour == 0 && d > 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d%time.Second == 0:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}

// Success reports whether it is a 2xx.
func (a ScriptedAnswer) Success() bool { return a.Status >= 200 && a.Status <= 299 }

// At returns the answer to the n-th attempt, counted from 1.
func (s ResponseScript) At(n int64) ScriptedAnswer {
	for _, a := range s {
		if n -= int64(a.Times); n <= 0 {
			return a
		}
	}
	return s[len(s)-1]
}

// String returns the script in canonical form, which [ParseResponseScript] reads.
func (s ResponseScript) String() string {
	entries := make([]string, len(s))
	for i, a := range s {
		entries[i] = a.String()
	}
	return strings.Join(entries, ",")
}

// String returns the entry as a script spells it.
func (a ScriptedAnswer) String() string {
	var b strings.Builder
	switch {
	case a.Status != 0:
		b.WriteString(strconv.Itoa(a.Status))
	case a.Delay == 0:
		b.WriteString("reset")
	default:
		b.WriteString("timeout")
	}
	if a.Delay > 0 && (a.Status != 0 || a.Delay != DefaultHold) {
		b.WriteString("+" + scriptTime(a.Delay))
	}
	if a.RetryAfter > 0 {
		b.WriteString("@" + scriptTime(a.RetryAfter))
	}
	if a.Times > 1 {
		b.WriteString("*" + strconv.Itoa(a.Times))
	}
	for _, said := range []string{a.Enhanced, a.Text} {
		if said != "" {
			b.WriteString(" " + said)
		}
	}
	return b.String()
}
