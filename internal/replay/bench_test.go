package replay_test

import (
	"testing"

	"hookglass/internal/replay"
	"hookglass/internal/store/storetest"
)

// BenchmarkReplay is one replay with its record, to a target that answers at once. target-ns/op is the target's own
// share: resolution, connection and exchange.
func BenchmarkReplay(b *testing.B) {
	x := newBench(b, storetest.SQLite(b))
	e := x.capture("POST", "Content-Type: application/json\r\n", `{"hello":"world"}`)
	var target int64
	for b.Loop() {
		r, err := x.replays.Replay(b.Context(), x.who, string(x.ep.ID), string(e.ID), replay.Request{TargetURL: x.sink.url})
		if err != nil {
			b.Fatal(err)
		}
		target += r.Duration.Nanoseconds()
		<-x.sink.got
	}
	b.ReportMetric(float64(target)/float64(b.N), "target-ns/op")
}
