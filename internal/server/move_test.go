package server_test

import (
	"strings"
	"testing"

	"hookglass/internal/move"
	"hookglass/internal/server"
)

// A destination that is served differs from its source with the first webhook: who compares them again must not be told
// to empty it.
func TestAServedDestinationIsNotToBeEmptied(t *testing.T) {
	if err := server.Unequal(&move.Report{Equal: true, Complete: true}); err != nil {
		t.Error(err)
	}
	if err := server.Unequal(&move.Report{}); err == nil || !strings.Contains(err.Error(), "is not served; --restart") {
		t.Error(err)
	}
	if err := server.Unequal(&move.Report{Complete: true}); err == nil || !strings.Contains(err.Error(), "there is nothing to do") {
		t.Error(err)
	}
}
