package job_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"hookglass/internal/job"
)

func TestWhatStoppingCutsOffIsNoErrorOfTheQueue(t *testing.T) {
	var out bytes.Buffer
	handler, stop := job.Quiet(slog.NewTextHandler(&out, nil))
	log := slog.New(handler).With("part", "job").WithGroup("g")
	say := func(want ...string) {
		t.Helper()
		out.Reset()
		log.Error("one", "error", context.Canceled.Error())
		log.Error("two", "error", context.Canceled)
		log.Error("three", "error", "the disk is full")
		if n := strings.Count(out.String(), "\n"); n != len(want) {
			t.Errorf("%d lines, want %d:\n%s", n, len(want), &out)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), "msg="+w+" part=job") {
				t.Errorf("no %s in\n%s", w, &out)
			}
		}
	}
	say("one", "two", "three")
	stop()
	say("three")
}

func TestTheQueueTellsHowItGoesToWhoDebugsAlone(t *testing.T) {
	for level, want := range map[slog.Level]string{
		slog.LevelInfo:  "level=WARN msg=slow\n",
		slog.LevelDebug: "level=DEBUG msg=counts\nlevel=WARN msg=slow\n",
	} {
		var out bytes.Buffer
		handler, _ := job.Quiet(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		log := slog.New(handler)
		log.Info("counts")
		log.Warn("slow")
		if out.String() != want {
			t.Errorf("at %v: %q", level, out.String())
		}
	}
}
