package outbound

import (
	"strconv"
	"strings"

	"hookglass"
)

// HopHeader counts how often an event has been forwarded from one hookglass endpoint to another. Automatic forwarding
// (targets, action steps) raises it; a replay, which a person asks for, passes it on as captured.
const HopHeader = "X-Service-Hops"

// MaxHops is how often an event is forwarded before a loop is presumed.
const MaxHops = 3

// Hops returns how often the event with these headers has been forwarded. Of several counts it takes the highest; it
// ignores values that are not numbers.
func Hops(h hookglass.Headers) int {
	hops := 0
	for _, v := range h.Values(HopHeader) {
		if n, err := strconv.ParseUint(v, 10, 16); err == nil {
			hops = max(hops, int(n))
		}
	}
	return hops
}

// NextHop returns a copy of the headers with the hop count raised by one. It fails with loop_detected for an event that
// has already been forwarded MaxHops times.
func NextHop(h hookglass.Headers) (hookglass.Headers, error) {
	hops := Hops(h)
	if hops >= MaxHops {
		return nil, failed(CodeLoopDetected, "The event was forwarded "+strconv.Itoa(MaxHops)+" times already, so this looks like a loop.")
	}
	out := without(h, func(name string) bool { return strings.EqualFold(name, HopHeader) })
	return append(out, hookglass.Header{Name: HopHeader, Value: strconv.Itoa(hops + 1)}), nil
}
