package server_test

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hookglass/internal/server"
)

// A warning is left out only where the very same was logged just now, and what is left out is counted.
func TestTheSameWarningIsLoggedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		log, closeLog := server.NewLogger(&out, "text", "info")
		defer closeLog()
		for range 3 {
			log.With("part", "flow").Warn("away", "error", "x")
			log.With("part", "job").Warn("away", "error", "x")
			log.With("part", "job").Error("away", "error", "x")
			log.With("part", "job").Warn("away", "error", "y")
			log.WithGroup("job").Warn("away", "error", "x")
			log.Info("ready")
		}
		time.Sleep(10 * time.Second)
		log.With("part", "flow").Warn("away", "error", "x")
		got := regexp.MustCompile(`time=\S+ level=(\S+) msg=|\n`).ReplaceAllString(out.String(), " $1 ")
		want := "WARN away part=flow error=x WARN away part=job error=x ERROR away part=job error=x WARN away part=job error=y " +
			"WARN away job.error=x INFO ready INFO ready INFO ready WARN away part=flow error=x not_logged=2"
		if got = strings.Join(strings.Fields(got), " "); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
		out.Reset()
		for i := range 1000 { // more than are remembered, each of which is another
			log.Warn("different", "number", i)
		}
		if n := strings.Count(out.String(), "\n"); n != 1000 {
			t.Errorf("%d lines of 1000 that differ", n)
		}
	})
}
