package endpointsfile_test

import (
	"strings"
	"testing"

	"hookglass/internal/endpointsfile"
)

// What aliases repeat beyond what a file may hold is one fault, and not also a file that cannot be read.
func TestTooMuchByAliasesIsOneFault(t *testing.T) {
	text := "endpoints:\n- &e {custom_id: " + strings.Repeat("x", 1000) + "}\n" + strings.Repeat("- *e\n", 6000)
	_, err := endpointsfile.Parse("f.yaml", []byte(text), nil)
	if err == nil || !strings.HasSuffix(err.Error(), "is more than a file may hold") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}
