package cli_test

import (
	"net/http"
	"reflect"
	"testing"

	"hookglass"
	"hookglass/internal/cli"
)

// A file that is not of our making may hold fields that frame a message, in spellings that net/http does not know.
func TestHeadersThatFrameAMessageAreNotSentBesideOurs(t *testing.T) {
	got := cli.HeadersFor(hookglass.Headers{
		{Name: "transfer-encoding", Value: "chunked"}, {Name: "trailer", Value: "X"}, {Name: "connection", Value: "close"}, {Name: "content-length", Value: "9"},
		{Name: "host", Value: "h"}, {Name: "x-one", Value: "1"}, {Name: "user-agent", Value: "a"},
	})
	if want := (http.Header{"x-one": {"1"}, "User-Agent": {"a"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
