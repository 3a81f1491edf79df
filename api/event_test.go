package api_test

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"hookglass"
	"hookglass/api"
)

func TestParametersOfAQuery(t *testing.T) {
	d := api.FromEventDetail(&hookglass.Event{RawQuery: "a=1&b=x+y&a=2&c&a=%C3%A9"})
	if want := map[string]any{"a": []string{"1", "2", "é"}, "b": "x y", "c": ""}; !reflect.DeepEqual(d.QueryParameters, want) {
		t.Errorf("%v, want %v", d.QueryParameters, want)
	}
	if want := map[string]string{"a": "1, 2, é", "b": "x y", "c": ""}; !reflect.DeepEqual(d.QueryParams, want) {
		t.Errorf("%v, want %v", d.QueryParams, want)
	}
}

// Existing clients send the fields of headers on, and their libraries refuse to send an Expect.
func TestALocalMachineIsNotToldWhatThisServerHasMet(t *testing.T) {
	fields := hookglass.Headers{{Name: "X-A", Value: "1"}, {Name: "expect", Value: "100-continue"}}
	e := &hookglass.Event{Payload: &hookglass.Payload{Headers: fields}}
	r := api.FromTunnelRequest(e)
	if want := map[string]string{"X-A": "1"}; !reflect.DeepEqual(r.Headers, want) {
		t.Errorf("headers are %v, want %v", r.Headers, want)
	}
	if want := [][2]string{{"X-A", "1"}, {"expect", "100-continue"}}; !reflect.DeepEqual(r.HeaderList, want) {
		t.Errorf("header_list is %v, want all that came, %v", r.HeaderList, want)
	}
}

// A query that names one parameter as often as fits into it takes memory in proportion to its length.
func TestAParameterThatIsRepeatedTakesMemoryInProportion(t *testing.T) {
	e := &hookglass.Event{RawQuery: strings.Repeat("a&", 32<<10)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d := api.FromEventDetail(e)
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 50 || len(d.QueryParams["a"]) < 64<<10-2 {
		t.Errorf("64 KiB take %d MiB for %d bytes", n, len(d.QueryParams["a"]))
	}
}
