package store_test

import (
	"strings"
	"testing"

	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// BenchmarkCapture stores 1.5 KB webhooks from 64 senders at once, without and with a job each.
func BenchmarkCapture(b *testing.B) {
	body := strings.Repeat("x", 1500)
	for name, open := range map[string]func(testing.TB) *store.DB{
		"sqlite":   storetest.SQLite,
		"postgres": func(tb testing.TB) *store.DB { return storetest.Open(tb, store.Config{URL: storetest.Migrated(tb)}) },
	} {
		for kind, work := range map[string]bool{"plain": false, "with job": true} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				db := open(b)
				e := newEndpoint(b, db)
				b.ReportAllocs()
				b.SetParallelism(32)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						ev := newEvent(e, body)
						var follow store.Work
						if work {
							follow.Tasks = []store.TaskKind{store.TaskActions}
						}
						if err := db.CaptureWith(b.Context(), 0, ev, follow); err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}
