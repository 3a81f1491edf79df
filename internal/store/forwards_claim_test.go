package store_test

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// queue is a target with deliveries, each of an event of its own.
type queue struct {
	t      *testing.T
	db     *store.DB
	e      hookglass.Endpoint
	target hookglass.ForwardingTarget
	now    time.Time
}

func newQueue(t *testing.T, db *store.DB, e hookglass.Endpoint) *queue {
	t.Helper()
	q := &queue{t, db, e, hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "n", URL: "https://a.example.com", Enabled: true, Timeout: time.Second}, time.Now().Truncate(time.Microsecond)}
	writing(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&q.target) })
	return q
}

// add adds a delivery in a state, due so long from now; the state of one that is final has no time.
func (q *queue) add(state hookglass.ForwardState, due time.Duration) (num int64) {
	q.t.Helper()
	ev := capture(q.t, q.db, newEvent(q.e, "body"))[0]
	at := any(q.now.Add(due).UnixMicro())
	if state != hookglass.ForwardPending && state != hookglass.ForwardSending {
		at = nil
	}
	writing(q.t, q.db, func(tx *store.Tx) error {
		err := tx.Exec(`INSERT INTO forwards (target, endpoint, event, state, due_at, claim, lost, created_at) VALUES ($1, $2, $3, $4, $5, 0, 0, $6)`,
			q.target.ID, q.e.Num, ev.Seq, string(state), at, q.now.UnixMicro())
		if err != nil {
			return err
		}
		nums, err := tx.Ints("SELECT num FROM forwards WHERE target = $1 AND event = $2", q.target.ID, ev.Seq)
		num = nums[0]
		return err
	})
	return num
}

func (q *queue) claim(limit int) (claimed []store.ClaimedForward) {
	q.t.Helper()
	writing(q.t, q.db, func(tx *store.Tx) (err error) {
		claimed, err = tx.ClaimForwards(q.target.ID, q.now, limit, time.Minute)
		return err
	})
	slices.SortFunc(claimed, func(a, b store.ClaimedForward) int { return cmp.Compare(a.Num, b.Num) })
	return claimed
}

func (q *queue) stored() (t hookglass.ForwardingTarget) {
	q.t.Helper()
	reading(q.t, q.db, func(v *store.View) (err error) {
		t, err = v.ForwardingTarget(string(q.e.ID), q.target.ID)
		return err
	})
	return t
}

func numsOf(claimed []store.ClaimedForward) (nums []int64) {
	for _, c := range claimed {
		nums = append(nums, c.Num)
	}
	return nums
}

func TestDeliveriesAreClaimedTheFirstDueFirst(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		q, other := newQueue(t, db, e), newQueue(t, db, e)
		other.add(hookglass.ForwardPending, -time.Hour)
		third := q.add(hookglass.ForwardPending, -time.Second)
		q.add(hookglass.ForwardPending, time.Microsecond)
		q.add(hookglass.ForwardSending, time.Microsecond)
		q.add(hookglass.ForwardDelivered, 0)
		fourth := q.add(hookglass.ForwardPending, 0)
		second := q.add(hookglass.ForwardPending, -time.Minute)
		first := q.add(hookglass.ForwardSending, -time.Hour) // whose lease has ended
		for i, want := range [][]int64{{second, first}, {third}, {fourth}, nil} {
			limit := 1
			if i == 0 {
				limit = 2
			}
			claimed := q.claim(limit)
			if got := numsOf(claimed); !slices.Equal(got, want) {
				t.Fatalf("claim %d is of %v, want %v", i, got, want)
			}
			for _, c := range claimed {
				if lost := c.Num == first; (c.Lost == 1) != lost {
					t.Errorf("%d was lost %d times", c.Num, c.Lost)
				}
			}
		}
	})
}

// A target that is gone, disabled or paused for too long has nothing sent, but what is on its way is not skipped.
func TestWhatIsSkippedIsWhatNobodyIsSending(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		q, other := newQueue(t, db, e), newQueue(t, db, e)
		untouched := other.add(hookglass.ForwardPending, 0)
		sent := q.add(hookglass.ForwardSending, time.Microsecond)
		done := q.add(hookglass.ForwardDelivered, 0)
		for _, num := range []int64{q.add(hookglass.ForwardPending, time.Hour), q.add(hookglass.ForwardPending, -time.Hour), q.add(hookglass.ForwardSending, 0)} {
			defer reading(t, db, func(v *store.View) error {
				states, err := v.Texts("SELECT state FROM forwards WHERE num = $1 AND due_at IS NULL AND finished_at = $2", num, q.now.UnixMicro())
				if len(states) != 1 || states[0] != string(hookglass.ForwardSkipped) {
					t.Errorf("delivery %d is %v, want it skipped and at an end", num, states)
				}
				return err
			})
		}
		writing(t, db, func(tx *store.Tx) error {
			for _, want := range []int64{2, 1, 0} {
				if n, err := tx.SkipForwards(q.target.ID, q.now, 2); err != nil || n != want {
					t.Errorf("%d were skipped, %v; want %d", n, err, want)
				}
			}
			return nil
		})
		for num, want := range map[int64]hookglass.ForwardState{untouched: hookglass.ForwardPending, sent: hookglass.ForwardSending, done: hookglass.ForwardDelivered} {
			reading(t, db, func(v *store.View) error {
				states, err := v.Texts("SELECT state FROM forwards WHERE num = $1", num)
				if len(states) != 1 || states[0] != string(want) {
					t.Errorf("delivery %d is %v, want %s", num, states, want)
				}
				return err
			})
		}
	})
}

func TestFailuresInARowAreCountedByTarget(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		q, other := newQueue(t, db, e), newQueue(t, db, e)
		fail := func(q *queue, n int, at time.Time) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) error {
				target, err := tx.CountForwardFailures(e.Num, q.target.ID, n, at)
				if target.ID != q.target.ID {
					t.Errorf("counted at target %d, want %d", target.ID, q.target.ID)
				}
				return err
			})
		}
		want := func(q *queue, n int, from time.Time) {
			t.Helper()
			if got := q.stored(); got.Failures != n || !got.FailingFrom.Equal(from) {
				t.Errorf("target %d has %d failures since %v; want %d since %v", got.ID, got.Failures, got.FailingFrom, n, from)
			}
		}
		fail(q, 2, q.now)
		fail(q, 3, q.now.Add(time.Hour))
		fail(other, 1, q.now.Add(time.Minute))
		want(q, 5, q.now)
		want(other, 1, q.now.Add(time.Minute))
		writing(t, db, func(tx *store.Tx) error { return tx.ClearForwardFailures(q.target.ID) })
		want(q, 0, time.Time{})
		want(other, 1, q.now.Add(time.Minute))
		fail(q, 1, q.now.Add(2*time.Hour))
		want(q, 1, q.now.Add(2*time.Hour))
	})
}

func TestATargetIsPausedAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		q, other := newQueue(t, db, e), newQueue(t, db, e)
		endpoints := db.Listen(store.TopicEndpoints)
		defer endpoints.Close()
		drain(endpoints)
		writing(t, db, func(tx *store.Tx) error { return tx.PauseForwardingTarget(q.target.ID, q.now, "it fails") })
		heard(t, "who shows targets", endpoints)
		if got := q.stored(); !got.PausedAt.Equal(q.now) || got.PauseReason != "it fails" {
			t.Errorf("paused: %+v", got)
		}
		if got := other.stored(); !got.PausedAt.IsZero() || got.PauseReason != "" {
			t.Errorf("another is paused: %+v", got)
		}
	})
}

// Where nothing is to be sent to any more, what waits is found all the same, to be skipped.
func TestAQueueSaysWhetherItsTargetIsGone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := newTenant(t, db, "ada@example.com")
		e, deleted := endpointIn(t, db, n.first), endpointIn(t, db, n.first)
		first := newQueue(t, db, e)
		kept, without, of := newQueue(t, db, e), newQueue(t, db, e), newQueue(t, db, deleted)
		for _, done := range []*queue{first, newQueue(t, db, e)} { // nothing waits for these
			done.add(hookglass.ForwardFailed, 0)
		}
		for _, q := range []*queue{of, without, kept} {
			q.add(hookglass.ForwardPending, time.Hour)
			q.add(hookglass.ForwardSending, time.Minute)
			q.add(hookglass.ForwardDelivered, 0)
		}
		writing(t, db, func(tx *store.Tx) error {
			if err := tx.DeleteForwardingTarget(e.Num, without.target.ID); err != nil {
				return err
			}
			return tx.DeleteEndpoint(&deleted)
		})
		reading(t, db, func(v *store.View) error {
			queues, err := v.ForwardQueues()
			if err != nil || len(queues) != 3 {
				t.Fatalf("%d queues, %v; want 3", len(queues), err)
			}
			for i, q := range []*queue{kept, without, of} {
				if got := queues[i]; got.TargetID != q.target.ID || got.Gone != (q != kept) || !got.FirstAt.Equal(q.now.Add(time.Minute)) {
					t.Errorf("queue %d: target %d, gone %t, due at %v; want target %d, gone %t, due at %v", i, got.TargetID, got.Gone, got.FirstAt, q.target.ID, q != kept, q.now.Add(time.Minute))
				}
			}
			if queues[0].AccountID != n.account.ID || queues[0].Entitlements != n.account.Entitlements() {
				t.Errorf("of account %d with %+v", queues[0].AccountID, queues[0].Entitlements)
			}
			return nil
		})
	})
}

func TestThoseInLineAreCountedUpToABound(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		q, other, third := newQueue(t, db, e), newQueue(t, db, e), newQueue(t, db, e)
		for range 3 {
			q.add(hookglass.ForwardPending, 0)
			third.add(hookglass.ForwardPending, -time.Hour)
		}
		other.add(hookglass.ForwardPending, -time.Hour)
		q.add(hookglass.ForwardPending, time.Microsecond)
		q.add(hookglass.ForwardSending, -time.Hour)
		q.add(hookglass.ForwardDelivered, 0)
		reading(t, db, func(v *store.View) error {
			for most, want := range map[int]int{100: 4, 2: 2} {
				if n, err := v.CountForwardsInLine([]int64{q.target.ID, other.target.ID}, q.now, most); err != nil || n != want {
					t.Errorf("%d of at most %d, %v; want %d", n, most, err, want)
				}
			}
			return nil
		})
	})
}

// What waits is what is pending. The last of it goes when it is due, and when the others have had their turns.
func TestABacklogIsCountedAndEnds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, others := newEndpoint(t, db), newEndpoint(t, db)
		q, other := newQueue(t, db, e), newQueue(t, db, e)
		newQueue(t, db, others).add(hookglass.ForwardPending, 0)
		backlogs := func() (all []hookglass.ForwardBacklog) {
			reading(t, db, func(v *store.View) (err error) {
				v.Now = q.now
				targets, err := v.ForwardingTargets(string(e.ID), 0, 0)
				if err == nil {
					all, err = v.ForwardBacklogs(string(e.ID), targets...)
				}
				return err
			})
			return all
		}
		want := func(what string, pending int, until time.Duration) {
			t.Helper()
			expected := hookglass.ForwardBacklog{Pending: pending}
			if until >= 0 {
				expected.Until = q.now.Add(until)
			}
			if all := backlogs(); len(all) != 2 || all[0].Pending != pending || !all[0].Until.Equal(expected.Until) || all[1] != (hookglass.ForwardBacklog{}) {
				t.Errorf("%s: %+v, want %+v and none", what, all, expected)
			}
		}
		set := func(columns string) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) error {
				return tx.Exec("UPDATE forwarding_targets SET "+columns+" WHERE id = $1", q.target.ID)
			})
		}
		const none = -1
		for _, state := range []hookglass.ForwardState{hookglass.ForwardSending, hookglass.ForwardDelivered, hookglass.ForwardFailed, hookglass.ForwardSkipped} {
			q.add(state, -time.Minute)
			other.add(state, -time.Minute)
		}
		want("nothing waits", 0, none)
		for range 5 {
			q.add(hookglass.ForwardPending, -time.Minute)
		}
		want("all may go", 5, 0)
		set("rate_limit = 30, rate_period = 60") // a turn every 2 seconds
		want("a target that had no turn yet", 5, 8*time.Second)
		set("rate_next = " + strconv.FormatInt(q.now.Add(time.Second).UnixMicro(), 10))
		want("the next turn comes in a second", 5, 9*time.Second)
		q.add(hookglass.ForwardPending, 5*time.Second)
		want("one more is due before the last has its turn", 6, 11*time.Second)
		q.add(hookglass.ForwardPending, time.Minute)
		want("one is due when all others have gone", 7, time.Minute)
		q.add(hookglass.ForwardPending, time.Minute)
		want("two are", 8, time.Minute) // at the earliest: their turns are not looked at
		set("rate_next = " + strconv.FormatInt(q.now.Add(time.Hour).UnixMicro(), 10))
		want("a clock went back", 8, time.Minute)
		set("paused_at = 1, pause_reason = 'manual'")
		want("paused", 8, none)
		set("paused_at = NULL, enabled = 0")
		want("disabled", 8, none)
		set("enabled = 1, rate_limit = NULL, rate_period = NULL, rate_next = NULL")
		want("without a limit", 8, time.Minute)
		deleted := capture(t, db, newEvent(e, "the last of those that are deleted"))[0]
		writing(t, db, func(tx *store.Tx) error {
			return tx.Exec("UPDATE endpoint_stats SET floor_seq = $2 WHERE endpoint = $1", e.Num, deleted.Seq)
		})
		want("the events are deleted", 0, none)
	})
}

// The count stops, however much waits, and reads no more than it counts.
func TestABacklogIsReadByItsIndex(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		q := newQueue(t, db, e)
		ev := capture(t, db, newEvent(e, "body"))[0]
		writing(t, db, func(tx *store.Tx) error {
			return tx.Exec(`INSERT INTO forwards (target, endpoint, event, state, due_at, claim, lost, created_at)
				WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
				SELECT $1, $2, cast($3 AS bigint) + i, CASE WHEN i % 3 = 0 THEN 'delivered' ELSE 'pending' END, CASE WHEN i % 3 = 0 THEN NULL ELSE cast($4 AS bigint) + i END, 0, 0, $4 FROM n`,
				q.target.ID, e.Num, ev.Seq, q.now.UnixMicro())
		})
		for _, analyzed := range []bool{false, true} {
			if analyzed {
				if err := db.Analyze(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			var seen []statement
			reading(t, db, func(v *store.View) error {
				v.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
				all, err := v.ForwardBacklogs(string(e.ID), q.target)
				if err == nil && (len(all) != 1 || all[0].Pending != hookglass.MostPending || all[0].Until.IsZero()) {
					t.Errorf("%+v", all)
				}
				return err
			})
			plan, err := db.Plan(t.Context(), seen[len(seen)-1].text, seen[len(seen)-1].args...)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(plan, "\n")
			if strings.Count(text, "forwards_due") != 2 || strings.Contains(text, "Seq Scan on forwards ") || strings.Contains(text, "SCAN forwards") || strings.Contains(text, "Sort") || strings.Contains(text, "TEMP B-TREE") {
				t.Errorf("analyzed %v:\n%s", analyzed, text)
			}
		}
	})
}

func TestTheDeliveriesOfATargetAreListedNewestFirst(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		q, other := newQueue(t, db, e), newQueue(t, db, e)
		var nums []int64
		for range 4 {
			nums = append([]int64{q.add(hookglass.ForwardPending, 0)}, nums...)
			other.add(hookglass.ForwardPending, 0)
		}
		list := func(before int64, limit int) (got []int64) {
			reading(t, db, func(v *store.View) error {
				found, err := v.Forwards(string(e.ID), q.target.ID, before, limit)
				for _, f := range found {
					got = append(got, f.Num)
				}
				return err
			})
			return got
		}
		for _, c := range []struct {
			before int64
			limit  int
			want   []int64
		}{{0, 9, nums}, {0, 2, nums[:2]}, {nums[1], 9, nums[2:]}} {
			if got := list(c.before, c.limit); !slices.Equal(got, c.want) {
				t.Errorf("before %d, at most %d: %v, want %v", c.before, c.limit, got, c.want)
			}
		}
	})
}

func TestTheTurnsOfATargetAreItsOwn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		q, other := newQueue(t, db, e), newQueue(t, db, e)
		rate := hookglass.Rate{Limit: 1, Period: time.Minute}
		next := func(q *queue) time.Time {
			t.Helper()
			var at []int64
			reading(t, db, func(v *store.View) (err error) {
				at, err = v.Ints("SELECT coalesce(rate_next, 0) FROM forwarding_targets WHERE id = $1", q.target.ID)
				return err
			})
			return time.UnixMicro(at[0])
		}
		want := func(what string, mine, others time.Time) {
			t.Helper()
			if a, b := next(q), next(other); !a.Equal(mine) || !b.Equal(others) {
				t.Errorf("%s: the next turns are %v and %v, want %v and %v", what, a, b, mine, others)
			}
		}
		writing(t, db, func(tx *store.Tx) error {
			for _, q := range []*queue{q, other} {
				_, err := tx.ChangeForwardingTarget(e.Num, q.target.ID, func(target *hookglass.ForwardingTarget) error { target.Rate = rate; return nil })
				if err != nil {
					return err
				}
			}
			return nil
		})
		none := time.UnixMicro(0)
		for range 3 {
			q.add(hookglass.ForwardPending, -time.Hour)
			other.add(hookglass.ForwardPending, -time.Hour)
		}
		take := func(q *queue, at time.Time) int {
			t.Helper()
			n := 0
			writing(t, db, func(tx *store.Tx) error {
				claimed, _, _, err := tx.ClaimForwardsInTurn(q.target.ID, at, 9, time.Minute)
				n = len(claimed)
				return err
			})
			return n
		}
		// A bound that is set may leave the next turn unset, or say it; both let one go at once.
		writing(t, db, func(tx *store.Tx) error { return tx.Exec("UPDATE forwarding_targets SET rate_next = NULL") })
		want("before any", none, none)
		writing(t, db, func(tx *store.Tx) error {
			if err := tx.ReturnForwardTurns(q.target.ID, time.Minute); err != nil {
				return err
			}
			return tx.DelayForwardTurns(q.target.ID, q.now.Add(time.Hour))
		})
		want("nothing to return or to put off", none, none)
		if n := take(q, q.now); n != 1 {
			t.Fatalf("%d go at once, want 1", n)
		}
		want("one went", q.now.Add(time.Minute), none)
		if n := take(q, q.now.Add(time.Minute-time.Microsecond)); n != 0 {
			t.Errorf("%d go before their turn", n)
		}
		if n := take(other, q.now.Add(time.Second)); n != 1 {
			t.Errorf("%d go at another target, want 1", n)
		}
		others := q.now.Add(time.Minute + time.Second)
		want("one went at each", q.now.Add(time.Minute), others)
		writing(t, db, func(tx *store.Tx) error { return tx.ReturnForwardTurns(q.target.ID, time.Minute) })
		want("the turn was given back", q.now, others)
		writing(t, db, func(tx *store.Tx) error { return tx.DelayForwardTurns(q.target.ID, others.Add(time.Second)) })
		want("put off", others.Add(time.Second), others)
		writing(t, db, func(tx *store.Tx) error { return tx.DelayForwardTurns(q.target.ID, q.now) })
		want("put off to a time that is past", others.Add(time.Second), others)
		for _, set := range []string{"enabled = 0", "enabled = 1, paused_at = 1", "paused_at = NULL, rate_limit = NULL"} {
			writing(t, db, func(tx *store.Tx) error {
				return tx.Exec("UPDATE forwarding_targets SET "+set+" WHERE id = $1", q.target.ID)
			})
			if n := take(q, others.Add(time.Second)); n != 0 {
				t.Errorf("%d go in their turn at a target with %s", n, set)
			}
		}
		if n := take(other, others); n != 1 {
			t.Errorf("%d go at the other target, want 1", n)
		}
	})
}
