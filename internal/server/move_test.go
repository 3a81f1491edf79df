package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"hookglass"
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

// Of an error with a code people are told its own sentence alone, "try again shortly"; what to do is more than that.
func TestAMoveThatIsBrokenOffSaysHowToGoOn(t *testing.T) {
	away := &hookglass.Error{Code: hookglass.CodeUnavailable, Message: "Try again shortly.", Err: errors.New("the connection was reset")}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for why, ctx := range map[string]context.Context{"the connection was reset": t.Context(), "it was stopped": stopped} {
		err := server.CutShort(ctx, away)
		if text := err.Error(); errors.As(err, new(*hookglass.Error)) || !strings.Contains(text, why) || !strings.Contains(text, "run the same command again") {
			t.Error(err)
		}
	}
}
