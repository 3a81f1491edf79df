package replay_test

import (
	"fmt"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/replay"
	"hookglass/internal/store"
)

// A run names its target and what was asserted: the configuration of its case, which is encrypted wherever it is
// stored.
func TestARunIsSealed(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		const canary = "canary-7f3d"
		b.sink.play(func(int) string {
			return "HTTP/1.1 200 OK\r\nX-Place: caf\xe9\r\nContent-Length: 17\r\n\r\n{\"place\":\"other\"}"
		})
		c := b.newCase(b.capture("POST", "X-A: caf\xe9\r\n", "{}"), func(d *replay.CaseDraft) {
			d.TargetURL = new(*d.TargetURL + "?key=" + canary)
			d.Assertions = &hookglass.Assertions{StatusClass: "2xx", JSONSubset: []byte(`{"place":"` + canary + `"}`)}
		})
		r := b.run(c, "k")
		if r.State != hookglass.RunAssertionFailed || !strings.HasSuffix(r.Request.URL, "?key="+canary) || r.Request.Headers.Get("X-A") != "caf\xe9" ||
			r.Response.Headers.Get("X-Place") != "caf\xe9" || string(r.Response.Body) != `{"place":"other"}` || len(r.Assertions) != 2 || string(r.Assertions[1].Expected) != `"`+canary+`"` {
			t.Errorf("%+v\n%+v\n%+v", r.Request, r.Response, r.Assertions)
		}
		again, err := b.replays.RunCase(t.Context(), b.who, string(b.ep.ID), c.ID, "k")
		must(t, err)
		if again.ID != r.ID || again.Response == nil || again.Response.Status != 200 {
			t.Errorf("the same key gives %+v", again)
		}
		list, err := b.replays.CaseRuns(t.Context(), b.who, string(b.ep.ID), c.ID, 0, 10)
		must(t, err)
		if len(list) != 1 || list[0].Request == nil || list[0].Request.URL != r.Request.URL {
			t.Errorf("%+v", list)
		}
		var stored hookglass.ReplayCaseRun
		must(t, b.db.View(t.Context(), b.who, func(v *store.View) (err error) {
			stored, err = v.ReplayRun(string(b.ep.ID), r.ID)
			return err
		}))
		if all := fmt.Sprintf("%s%s%+v", stored.Sealed, stored.SealedResult, stored.RunResult); strings.Contains(all, canary) || len(stored.SealedResult) == 0 {
			t.Error("it stands in the clear")
		}
		if _, err := b.keys.Open(stored.SealedResult, "replay_case_runs:result:rrun_other"); err == nil {
			t.Error("it opens in another row")
		}
	})
}
