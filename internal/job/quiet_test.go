package job_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hookglass/internal/job"
)

func TestWhatStoppingCutsOffIsNoErrorOfTheQueue(t *testing.T) {
	var out bytes.Buffer
	handler, stop := job.Quiet(slog.NewTextHandler(&out, nil))
	log := slog.New(handler).With("part", "job").WithGroup("g")
	full := "the disk is full"
	say := func(want ...string) {
		t.Helper()
		out.Reset()
		full += "!" // the same fault would be said once a minute
		log.Error("one", "error", context.Canceled.Error())
		log.Error("two", "error", context.Canceled)
		log.Error("three", "error", full)
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
		slog.LevelError: "level=ERROR msg=\"jobexecutor.JobExecutor: Job errored\"\n",
		slog.LevelInfo:  "level=WARN msg=slow\nlevel=WARN msg=\"the database is away\"\nlevel=ERROR msg=\"jobexecutor.JobExecutor: Job errored\"\n",
		slog.LevelDebug: "level=DEBUG msg=counts\nlevel=WARN msg=slow\nlevel=WARN msg=\"the database is away\"\nlevel=ERROR msg=\"jobexecutor.JobExecutor: Job errored\"\n",
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
		log.Error("the database is away") // and tried again by the loop that says it
		log.Error("jobexecutor.JobExecutor: Job errored")
		if out.String() != want {
			t.Errorf("at %v: %q", level, out.String())
		}
	}
}

func TestTheQueuesLoopsSayTheSameOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		handler, _ := job.Quiet(slog.NewTextHandler(&out, nil))
		log := slog.New(handler)
		lines := func() int {
			n := strings.Count(out.String(), "\n")
			out.Reset()
			return n
		}
		away := func() {
			for range 3 {
				log.With("part", "job").Error("producer: Error fetching jobs", "err", "connection refused")
			}
			log.Error("producer: Error fetching jobs", "err", "relation does not exist")
			log.Error("jobexecutor.JobExecutor: Job errored", "error", "one")
			log.Error("jobexecutor.JobExecutor: Job errored", "error", "one")
		}
		away()
		if n := lines(); n != 4 {
			t.Errorf("%d lines at first, want each fault once and each job", n)
		}
		time.Sleep(59 * time.Second)
		away()
		if n := lines(); n != 2 {
			t.Errorf("%d lines within the minute, want those of the jobs", n)
		}
		time.Sleep(time.Second)
		away()
		if n := lines(); n != 4 {
			t.Errorf("%d lines a minute later", n)
		}
		for i := range 1000 {
			log.Error("other", "err", i)
		}
		if n := lines(); n != 1000 {
			t.Errorf("%d of 1000 faults that differ", n)
		}
	})
}
