package job_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/endpoint"
	"hookglass/internal/job"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// idle is what other jobs call.
type idle struct{}

func (idle) Purge(context.Context) error                     { return nil }
func (idle) Erase(context.Context, int64) (bool, error)      { return true, nil }
func (idle) Tell(context.Context, hookglass.NoteJob)         {}
func (idle) Retag(context.Context, hookglass.RetagJob) error { return nil }
func (idle) Evaluate(context.Context) error                  { return nil }
func (idle) ExecuteRun(context.Context, string) error        { return nil }
func (idle) WorkBatch(context.Context, string) (bool, error) { return true, nil }

// idly has all jobs do nothing but those of what is put in their place.
func idly(but func(*job.Capabilities)) job.Capabilities {
	do := job.Capabilities{Captures: idle{}, Accounts: idle{}, Alerts: idle{}, Tags: idle{}, Replays: idle{}, Shares: idle{}, Actions: idle{}}
	but(&do)
	return do
}

// TestATagThatIsRenamedTwiceHasOneName is about tags of so many events that each renaming goes on in the background:
// the second begins while the first is not done.
func TestATagThatIsRenamedTwiceHasOneName(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		log := slog.New(slog.DiscardHandler)
		tags := endpoint.New(db, nil)
		owner, err := account.New(db, log).Register(t.Context(), account.Registration{Email: "ada@example.com"})
		if err != nil {
			t.Fatal(err)
		}
		who := hookglass.Principal{Account: owner.Account.ID, User: owner.User.ID}
		name := "Tagged"
		e, err := tags.Create(t.Context(), who, endpoint.Draft{Name: &name})
		if err != nil {
			t.Fatal(err)
		}
		const events = 700
		var ids []string
		for range events {
			at := time.Now()
			ev := &hookglass.Event{
				ID: hookglass.NewEventID(hookglass.EventWebhook, at), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventWebhook, ReceivedAt: at,
				Method: "POST", Path: "/", Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked,
				Payload: &hookglass.Payload{Reply: &hookglass.Reply{Status: 200}},
			}
			if err := db.Capture(t.Context(), 0, ev); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, string(ev.ID))
		}
		for some := range slices.Chunk(ids, 100) { // a transaction has its time
			err = db.Update(t.Context(), who, func(tx *store.Tx) error {
				for _, id := range some {
					if _, err := tx.TagEvent(string(e.ID), id, "a"); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		var tag hookglass.Tag
		counts := func() map[string]int {
			found := map[string]int{}
			err := db.View(t.Context(), who, func(v *store.View) error {
				all, err := v.Tags(0, 0, 0)
				if err != nil {
					return err
				}
				if len(all) > 0 {
					tag = all[0]
				}
				page, err := v.Events(string(e.ID), store.EventList{Limit: events})
				for _, ev := range page.Events {
					for _, name := range ev.Tags {
						found[name]++
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		counts()
		rename := func(to string) {
			t.Helper()
			if _, err := tags.UpdateTag(t.Context(), who, tag.ID, endpoint.TagDraft{Name: &to}); err != nil {
				t.Fatal(err)
			}
		}
		// settle has the jobs that wait worked, and waits for what the events have then.
		settle := func(step string, want map[string]int) {
			t.Helper()
			w, err := job.New(db, idly(func(do *job.Capabilities) { do.Tags = tags }), log)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- w.Run(ctx) }()
			found := counts()
			for deadline := time.Now().Add(time.Minute); !maps.Equal(found, want) && time.Now().Before(deadline); found = counts() {
				time.Sleep(20 * time.Millisecond)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if found = counts(); !maps.Equal(found, want) {
				t.Fatalf("%s: the events have %s, want %s", step, fmt.Sprint(found), fmt.Sprint(want))
			}
		}

		rename("b")
		rename("c")
		settle("renamed twice", map[string]int{"c": events})
		rename("d")
		rename("c")
		settle("renamed and back", map[string]int{"c": events})
		rename("e")
		if err := tags.DeleteTag(t.Context(), who, tag.ID); err != nil {
			t.Fatal(err)
		}
		settle("renamed and deleted", map[string]int{})
	})
}

// TestAJobBeginsWhenItIsEnqueued is about announcements: nobody looks for jobs in the time of this test.
func TestAJobBeginsWhenItIsEnqueued(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		told := notes(make(chan hookglass.NoteJob))
		w, err := job.NewFetching(db, idly(func(do *job.Capabilities) { do.Accounts = told }), slog.New(slog.DiscardHandler), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		for range 3 { // the first may be found when the workers begin
			if err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				tx.Enqueue(hookglass.NoteJob{})
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			select {
			case <-told:
			case <-time.After(time.Minute):
				t.Fatal("the job does not begin")
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestARunIsTriedAgainSoonHoweverLongStorageWasAway would take the queue's own patience a minute and a half.
func TestARunIsTriedAgainSoonHoweverLongStorageWasAway(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		replays := away{left: new(atomic.Int32), done: make(chan string, 1)}
		replays.left.Store(3)
		w, err := job.New(db, idly(func(do *job.Capabilities) { do.Replays = replays }), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		if err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			tx.Enqueue(hookglass.ReplayRunJob{RunID: "rrun_x"})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-replays.done:
		case <-time.After(time.Minute):
			t.Error("the run waits for a storage that has long been back")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestAJobThatKeepsFailingIsTriedEveryHour would take the queue's own patience ten days after 30 failures.
func TestAJobThatKeepsFailingIsTriedEveryHour(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for failures, least := range map[int]time.Duration{0: 0, 30: 59 * time.Minute} {
			at := job.Retries(db).NextRetry(&rivertype.JobRow{Errors: make([]rivertype.AttemptError, failures)})
			if wait := at.Sub(db.Stamp(time.Now())); wait < least || wait > time.Hour {
				t.Errorf("after %d failures and one it waits %v", failures, wait)
			}
		}
	})
}

// away finds the storage away so many times.
type away struct {
	idle
	left *atomic.Int32
	done chan string
}

func (a away) ExecuteRun(_ context.Context, id string) error {
	if a.left.Add(-1) >= 0 {
		return &hookglass.Error{Code: hookglass.CodeUnavailable, Message: "away", RetryAfter: 100 * time.Millisecond}
	}
	a.done <- id
	return nil
}

// notes are told of notes.
type notes chan hookglass.NoteJob

func (notes) Purge(context.Context) error                      { return nil }
func (n notes) Tell(_ context.Context, note hookglass.NoteJob) { n <- note }

// purged hears of purges.
type purged chan struct{}

func (p purged) Purge(ctx context.Context) error {
	select {
	case p <- struct{}{}:
	case <-ctx.Done():
	}
	return nil
}

// A purge of links that were shared comes by itself, also where another fails.
func TestSharedLinksArePurgedByTheClock(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		told := make(purged)
		w, err := job.New(db, idly(func(do *job.Capabilities) { do.Shares, do.Captures = told, unable{} }), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		select {
		case <-told:
		case <-time.After(time.Minute):
			t.Error("no links are purged")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// unable fails to purge.
type unable struct{ idle }

func (unable) Purge(context.Context) error { return errors.New("away") }

// calls is what periodic jobs call.
type calls struct {
	idle
	of chan string
}

func (c calls) Purge(context.Context) error    { c.of <- "purge"; return nil }
func (c calls) Evaluate(context.Context) error { c.of <- "alerts"; return nil }

// Periodic jobs that have ended prevent no others in their period, which comes again when a clock is set back.
func TestPeriodicJobsAreDoneAgainInTheirPeriod(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for range 2 { // a server, and the next one within the period
			of := make(chan string, 100)
			w, err := job.New(db, idly(func(do *job.Capabilities) { do.Captures, do.Alerts = calls{of: of}, calls{of: of} }), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- w.Run(ctx) }()
			if first, second := <-of, <-of; first == second {
				t.Errorf("%s came twice before the other", first)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}
