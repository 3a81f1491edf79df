package ledger_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/ledger"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// Whatever happens to events, in whatever order, each of them is accounted for by every consumer, before and after the
// figures are rolled up.
func TestTheLedgerBalancesWhateverHappens(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for seed := range uint64(3) {
			y := newYard(t, db, seed)
			for step := range 150 {
				did := y.step()
				if step%5 == 0 || strings.HasPrefix(did, "delete") {
					y.check(fmt.Sprintf("step %d of seed %d (%s)", step, seed, did))
				}
			}
			y.erase()
			y.check("erasing what is left")
		}
	})
}

// A delivery that nobody wrote down is named.
func TestWhatWasNotHandedOverIsNamed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 7)
		late := time.Now().UTC().Truncate(time.Microsecond).Add(11 * time.Second)
		y.capture("x", late, store.Work{Forward: true})
		if d := y.read().Differences(); len(d) > 0 {
			t.Fatalf("at first: %+v", d)
		}
		y.capture("x", late, store.Work{}) // by a node that has not heard of the targets for too long
		if d := y.read().Differences(); len(d) != 2 || d[0].Name != fmt.Sprintf("forwarding_target:%d:owed", y.targets[0].ID) || d[0].Actual != 1 {
			t.Errorf("an event that was not handed over: %+v", d)
		}
	})
}

// A target with a condition is owed nothing of what its condition does not mean, and nobody can tell that apart later.
func TestATargetWithAConditionIsOwedNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 7)
		chosen := y.targets[0]
		y.update(func(tx *store.Tx) error {
			_, err := tx.ChangeForwardingTarget(y.ep.Num, chosen.ID, func(t *hookglass.ForwardingTarget) error { t.When = "path:/x"; return nil })
			return err
		})
		late := time.Now().UTC().Truncate(time.Microsecond).Add(11 * time.Second)
		y.capture("x", late, store.Work{Forward: true})
		y.capture("x", late, store.Work{Forward: true, But: []int64{chosen.ID}})
		l := y.read()
		if d := l.Differences(); len(d) > 0 {
			t.Errorf("%+v", d)
		}
		for _, c := range l.Consumers {
			if c.ID == fmt.Sprint(chosen.ID) && (c.Pending != 1 || c.Skipped != 1) {
				t.Errorf("the target with a condition: %+v", c)
			}
		}
	})
}

// A line tells what became of one event: the hash of its body as it is stored, the answer, and every attempt.
func TestALineTellsWhatBecameOfAnEvent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 9)
		var last *fate
		for i := range 5 {
			last = y.capture(fmt.Sprint("body ", i), time.Now().UTC().Truncate(time.Microsecond), store.Work{Forward: true, Tasks: []store.TaskKind{store.TaskActions}})
		}
		y.forward()
		y.report(last)
		y.replay(last)
		from, to := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		var lines []hookglass.LedgerLine
		for after, pages := int64(0), 0; pages == 0 || after > 0; pages++ {
			y.view(func(v *store.View) error {
				page, next, err := v.LedgerLines(string(y.ep.ID), from, to, after, 2)
				lines, after = append(lines, page...), next
				return err
			})
		}
		if len(lines) != 5 {
			t.Fatalf("%d lines", len(lines))
		}
		for i, l := range lines {
			sum := sha256.Sum256([]byte(fmt.Sprint("body ", i)))
			if l.SHA256 != hex.EncodeToString(sum[:]) || l.Source != hookglass.SourceDefault || !l.Waiting || len(l.Forwards) != 2 {
				t.Errorf("line %d: %+v", i, l)
			}
		}
		if l := lines[4]; len(l.Reports) != 1 || len(l.Replays) != 1 || l.Tunnel != last.tunnel {
			t.Errorf("the last: %+v", l)
		}
	})
}

func TestWindows(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 30, 30, 0, time.UTC)
	for _, c := range []struct{ from, to, want string }{
		{"", "", "2026-11-20T11:30:00Z 2026-11-20T12:31:00Z"},
		{"10m", "5m", "2026-11-20T12:20:00Z 2026-11-20T12:26:00Z"},
		{"2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z", "2026-11-20T10:00:00Z 2026-11-20T11:00:00Z"},
		{"24h", "", "2026-11-19T12:30:00Z 2026-11-20T12:31:00Z"},
		{"25h", "", "2026-11-19T11:00:00Z 2026-11-20T13:00:00Z"},
		{"50h", "49h", "2026-11-18T10:00:00Z 2026-11-18T12:00:00Z"},
		{"31d", "", "2026-10-20T12:00:00Z 2026-11-20T13:00:00Z"},
		{"5m", "5m", "from must be before to"},
		{"", "x", "to must be"},
		{"yesterday", "", "from must be"},
		{"32d", "", "from may be 31 days"},
		{"400d", "399d", "from may be 399 days"},
	} {
		w, err := ledger.ParseWindow(c.from, c.to, now)
		got := w.From.Format(time.RFC3339) + " " + w.To.Format(time.RFC3339)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%q to %q: %s, want %s", c.from, c.to, got, c.want)
		}
	}
}
