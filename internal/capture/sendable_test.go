package capture_test

import (
	"testing"

	"hookglass"
	"hookglass/internal/capture"
)

func TestSendableFields(t *testing.T) {
	for h, want := range map[hookglass.Header]bool{
		{Name: "X-A", Value: "v"}:                     true,
		{Name: "!#$%&'*+-.^_`|~09azAZ", Value: ""}:    true,
		{Name: "X-A", Value: "a\tcaf\xe9"}:            true,
		{Name: "", Value: "v"}:                        false,
		{Name: "X A", Value: "v"}:                     false,
		{Name: "X-A:", Value: "v"}:                    false,
		{Name: "X-A\r\n", Value: "v"}:                 false,
		{Name: "X-\xe9", Value: "v"}:                  false,
		{Name: "X-A", Value: "a\r\nX-B: b"}:           false,
		{Name: "X-A", Value: "a\nb"}:                  false,
		{Name: "X-A", Value: "a\x00"}:                 false,
		{Name: "X-A", Value: "a\x7f"}:                 false,
		{Name: "content-length", Value: "1"}:          false,
		{Name: "Transfer-Encoding", Value: "chunked"}: false,
		{Name: "CONNECTION", Value: "close"}:          false,
		{Name: "Upgrade", Value: "x"}:                 false,
		{Name: "date", Value: "now"}:                  false,
		{Name: "Content-Lengths", Value: "1"}:         true,
	} {
		if got := capture.Sendable(h); got != want {
			t.Errorf("%q: got %v", h, got)
		}
	}
}
