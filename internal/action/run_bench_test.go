package action_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// BenchmarkRuns is whole runs of five local steps, two of them transforms, on a body of 4 KiB: from the task to the
// commit, 64 at a time.
func BenchmarkRuns(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *store.DB{
		"sqlite":   storetest.SQLite,
		"postgres": func(tb testing.TB) *store.DB { return storetest.Open(tb, store.Config{URL: storetest.Postgres(tb)}) },
	} {
		b.Run(name, func(b *testing.B) {
			bench := newBench(b, open(b))
			bench.create(draft("Five",
				step("transform", "A", `{"source":"request","operations":[{"op":"select","path":"/body"},{"op":"set","path":"/kind","from":"/provider/event_type"}]}`),
				step("transform", "B", `{"source":"steps.a","operations":[{"op":"select","path":"/output"},{"op":"remove","path":"/text"},{"op":"wrap","key":"event"}]}`),
				step("tag", "C", `{"tag":"c"}`, on("steps.b", "/output/event/kind", "equals", `"push"`)),
				step("tag", "D", `{"tag":"d"}`),
				step("ignore", "E", `{}`),
			))
			body := `{"text":"` + strings.Repeat("x", 4<<10) + `","id":1}`
			events := make([]*hookglass.Event, b.N)
			for i := range events {
				events[i] = bench.capture(body)
			}
			var next atomic.Int64
			b.SetParallelism(32)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := bench.actions.Work(b.Context(), task(events[next.Add(1)-1], 1)); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
		})
	}
}
