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
