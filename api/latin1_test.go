package api_test

import (
	"slices"
	"strings"
	"testing"

	"hookglass/api"
)

// A report may hold as many pointers as a message may have bytes, and one long value that all of them point to.
func TestAValueIsReadOnceHoweverOftenItIsPointedTo(t *testing.T) {
	e := api.TunnelEvidence{
		ResponseHeaders: map[string]string{"X-~/Name": strings.Repeat("x", 10_000) + "caf\u00e9", "X-Other": "caf\u00e9"},
		Latin1:          slices.Repeat([]string{"/response_headers/X-~0~1Name", "/response_headers/None", "X-Other"}, 1000),
	}
	fields := e.ReceivedHeaders()
	if !strings.HasSuffix(fields["X-~/Name"], "xcaf\xe9") || fields["X-Other"] != "caf\u00e9" || len(fields) != 2 {
		t.Errorf("%.100q", fields)
	}
	e.Latin1, e.ResponseHeaders["Plain"] = slices.Repeat([]string{"/response_headers/Plain"}, 1000), strings.Repeat("x", 10_000)
	if n := testing.AllocsPerRun(1, func() { e.ReceivedHeaders() }); n > 100 {
		t.Errorf("%v allocations for one value", n)
	}
}
