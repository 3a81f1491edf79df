package outbound

import (
	"strconv"
	"strings"

	"hookglass"
)

// HopHeader counts how often an event has been forwarded from one hookglass endpoint to another. What forwards by
// itself (targets, action steps) sends it; a replay, which a person asks for, passes it on as captured.
const HopHeader = "X-Service-Hops"

// MaxHops is how often an event is forwarded before a loop is presumed.
const MaxHops = 3

// Hops returns how often the event with these headers was forwarded already. Of several counts the highest is
// believed; what is not a count is none.
func Hops(h hookglass.Headers) int {
	hops := 0
	for _, v := range h.Values(HopHeader) {
		if n, err := strconv.ParseUint(v, 10, 16); err == nil {
			hops = max(hops, int(n))
		}
	}
	return hops
}

// NextHop returns the headers with which the event is forwarded once more: a copy with the count raised by one. It
// fails with loop_detected for an event that has been forwarded MaxHops times.
func NextHop(h hookglass.Headers) (hookglass.Headers, error) {
	hops := Hops(h)
	if hops >= MaxHops {
		return nil, failed(CodeLoopDetected, "The event was forwarded "+strconv.Itoa(MaxHops)+" times already, so this looks like a loop.")
	}
	out := without(h, func(name string) bool { return strings.EqualFold(name, HopHeader) })
	return append(out, hookglass.Header{Name: HopHeader, Value: strconv.Itoa(hops + 1)}), nil
}
