package drift_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"log/slog"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/drift"
	"hookglass/internal/endpoint"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// yard is a database with an endpoint whose schemas are kept.
type yard struct {
	t        *testing.T
	db       *store.DB
	captures *capture.Service
	ep       hookglass.Endpoint
}

func newYard(t *testing.T, db *store.DB) *yard {
	t.Helper()
	keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	endpoints := endpoint.New(db, keys)
	y := &yard{t: t, db: db, captures: capture.New(db, capture.Config{Retention: time.Hour, Verifiers: endpoints}, slog.New(slog.DiscardHandler))}
	if y.ep, _, err = endpoints.CreateTemporary(t.Context()); err != nil {
		t.Fatal(err)
	}
	y.track(true)
	return y
}

func (y *yard) track(on bool) {
	y.t.Helper()
	y.ep.SchemaTracking = on
	if err := y.db.Update(y.t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.SaveEndpoint(&y.ep) }); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) arrive(body string, headers ...hookglass.Header) {
	y.t.Helper()
	target, err := y.captures.Admit(y.t.Context(), string(y.ep.ID))
	if err != nil {
		y.t.Fatal(err)
	}
	_, err = y.captures.Capture(y.t.Context(), target, &capture.Arrival{
		Method: "POST", Path: "/", Target: "/hooks/x", Proto: "HTTP/1.1", Host: "x", Scheme: "http", Client: netip.MustParseAddr("192.0.2.7"), Body: []byte(body), At: time.Now(), Headers: headers,
	})
	if err != nil {
		y.t.Fatal(err)
	}
}

// claim takes all tasks that are due, with their events.
func (y *yard) claim(lease time.Duration) (tasks []store.Task) {
	y.t.Helper()
	err := y.db.Update(y.t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
		if tasks, err = tx.ClaimTasks(store.TaskSchema, y.ep.Num, 100, lease); err != nil {
			return err
		}
		for i := range tasks {
			found, err := tx.EventsBySeq([]int64{tasks[i].EventSeq}, 64<<10)
			if err != nil {
				return err
			}
			tasks[i].Event = found[tasks[i].EventSeq]
		}
		return nil
	})
	if err != nil {
		y.t.Fatal(err)
	}
	return tasks
}

func (y *yard) types(s *drift.Service) (all []string) {
	y.t.Helper()
	found, err := s.All(y.t.Context(), hookglass.System, string(y.ep.ID), 100)
	if err != nil {
		y.t.Fatal(err)
	}
	for _, t := range found.Types {
		all = append(all, fmt.Sprintf("%s %d %d", found.Source(), t.Events, len(t.Current.Fields())))
	}
	return all
}

// Workers come to events in any order: a schema was first seen with the oldest, and last with the newest.
func TestASchemaKnowsWhenItsEventsCameInWhateverOrder(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		y, s := newYard(t, db), drift.New(db)
		for range 3 {
			y.arrive(`{"a":1}`)
		}
		tasks := y.claim(time.Minute)
		for _, i := range []int{1, 2, 0} {
			if err := s.Work(t.Context(), tasks[i]); err != nil {
				t.Fatal(err)
			}
		}
		found, err := s.All(t.Context(), hookglass.System, string(y.ep.ID), 100)
		if err != nil || len(found.Types) != 1 {
			t.Fatalf("%d types, %v", len(found.Types), err)
		}
		if of := found.Types[0]; !of.FirstAt.Equal(tasks[0].Event.ReceivedAt) || !of.LastAt.Equal(tasks[2].Event.ReceivedAt) {
			t.Errorf("seen from %v to %v, want from %v to %v", of.FirstAt, of.LastAt, tasks[0].Event.ReceivedAt, tasks[2].Event.ReceivedAt)
		}
	})
}

func TestNothingIsLeftToDoWhereSchemasAreNotKept(t *testing.T) {
	y := newYard(t, storetest.SQLite(t))
	y.track(false)
	y.arrive(`{"a":1}`)
	if tasks := y.claim(time.Minute); len(tasks) != 0 {
		t.Errorf("%d tasks", len(tasks))
	}
}

func TestAnEventCountsOnceHoweverOftenItsTaskIsDone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		y, s := newYard(t, db), drift.New(db)
		y.arrive(`{"a":1}`)
		first := y.claim(0) // a node whose lease ends at once
		again := y.claim(time.Minute)
		if len(first) != 1 || len(again) != 1 {
			t.Fatalf("claimed %d and %d", len(first), len(again))
		}
		for _, task := range []store.Task{first[0], again[0], again[0]} {
			if err := s.Work(t.Context(), task); err != nil {
				t.Fatal(err)
			}
		}
		if got := y.types(s); !slices.Equal(got, []string{"tracked 1 1"}) {
			t.Errorf("%q", got)
		}
		if left := y.claim(time.Minute); len(left) != 0 {
			t.Errorf("%d tasks are left", len(left))
		}
	})
}

func TestNodesAddToOneSchemaAtTheSameTime(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db)
		const n = 24
		for i := range n {
			y.arrive(fmt.Sprintf(`{"%s":1}`, strings.Repeat("k", i%4+1)))
		}
		tasks := y.claim(time.Minute)
		if len(tasks) != n {
			t.Fatalf("claimed %d", len(tasks))
		}
		nodes := []*drift.Service{drift.New(db), drift.New(db)}
		var all sync.WaitGroup
		for i, node := range nodes {
			all.Go(func() {
				for k := i; k < n; k += 2 {
					if err := node.Work(t.Context(), tasks[k]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if got := y.types(nodes[0]); !slices.Equal(got, []string{fmt.Sprintf("tracked %d 4", n)}) {
			t.Errorf("%q", got)
		}
	})
}

func TestACompressedBodyIsRead(t *testing.T) {
	y := newYard(t, storetest.SQLite(t))
	s := drift.New(y.db)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(`{"a":1}`)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	y.arrive(packed.String(), hookglass.Header{Name: "Content-Encoding", Value: "gzip"})
	for _, task := range y.claim(time.Minute) {
		if err := s.Work(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	if got := y.types(s); !slices.Equal(got, []string{"tracked 1 1"}) {
		t.Errorf("%q", got)
	}
}

func TestBodiesThatAreNoJSONOrTooLargeAreLeftOut(t *testing.T) {
	y := newYard(t, storetest.SQLite(t))
	s := drift.New(y.db)
	large := `{"large":"` + strings.Repeat("x", 100<<10) + `"}`     // beyond what comes with a task
	tooLarge := `{"toolarge":"` + strings.Repeat("x", 1<<20) + `"}` // beyond what is read at all
	deep := strings.Repeat(`[`, 200) + strings.Repeat(`]`, 200)     // deeper than is read
	for _, body := range []string{`plain`, ``, `{"a":1,"a":2}`, `{"a":1} x`, large, tooLarge, deep, "{\"\\u0000\":1}"} {
		y.arrive(body)
	}
	for _, task := range y.claim(time.Minute) {
		if err := s.Work(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	found, err := s.All(t.Context(), hookglass.System, string(y.ep.ID), 100)
	if err != nil || len(found.Types) != 1 || found.Types[0].Events != 2 {
		t.Fatalf("%+v, %v", found.Types, err)
	}
	var pointers []string
	for _, f := range found.Types[0].Current.Fields() {
		pointers = append(pointers, f.Pointer)
	}
	if !slices.Equal(pointers, []string{"/large", "/*"}) {
		t.Errorf("places %q", pointers)
	}
}

// The newest events are looked at first, so that an answer comes in time, and says that there are older ones.
func TestASampleEndsForItsTime(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		y, s := newYard(t, db), drift.New(db)
		y.track(false)
		y.arrive(`{"old":1}`)
		const later = 70
		for range later {
			y.arrive(`{"new":1}`)
		}
		all, err := s.All(t.Context(), hookglass.System, string(y.ep.ID), 100)
		if err != nil || all.More || all.Events != later+1 || len(all.Types) != 1 || all.Types[0].Events != later+1 {
			t.Fatalf("in time: %d events, more %t: %+v, %v", all.Events, all.More, all.Types, err)
		}
		events := y.events(later + 1)
		of, oldest, second := all.Types[0], events[later], events[later-1]
		if fields := of.Current.Fields(); len(fields) != 2 || fields[0].Pointer != "/new" || fields[0].First != string(second.ID) || fields[1].First != string(oldest.ID) {
			t.Errorf("seen first in %+v", fields)
		}
		if !of.FirstAt.Equal(oldest.ReceivedAt) || !of.LastAt.Equal(events[0].ReceivedAt) {
			t.Errorf("from %s to %s", of.FirstAt, of.LastAt)
		}
		if all, err = s.All(t.Context(), hookglass.System, string(y.ep.ID), later); err != nil || !all.More || all.Events != later {
			t.Errorf("a smaller sample: %d events, more %t, %v", all.Events, all.More, err)
		}

		s.ReadFor(0)
		all, err = s.All(t.Context(), hookglass.System, string(y.ep.ID), 100)
		if err != nil || !all.More || all.Events == 0 || all.Events > later || len(all.Types) != 1 || len(all.Types[0].Current.Fields()) != 1 {
			t.Errorf("without time: %d events, more %t: %+v, %v", all.Events, all.More, all.Types, err)
		}
		_, _, err = s.One(t.Context(), hookglass.System, string(y.ep.ID), "never.seen", "", 100)
		if !hookglass.Is(err, hookglass.CodeNotFound) || !strings.Contains(err.Error(), "newest 64 events") {
			t.Errorf("a type that is not among them: %v", err)
		}
	})
}

// events are the newest ones of the endpoint, newest first.
func (y *yard) events(n int) (events []*hookglass.Event) {
	y.t.Helper()
	err := y.db.View(y.t.Context(), hookglass.System, func(v *store.View) error {
		page, err := v.Events(string(y.ep.ID), store.EventList{Limit: n})
		events = page.Events
		return err
	})
	if err != nil {
		y.t.Fatal(err)
	}
	return events
}

// What is accepted again is what was accepted before with what has come since, without what comes no more.
func TestABaselineIsAcceptedAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		y, s := newYard(t, db), drift.New(db)
		arrive := func(body string) {
			t.Helper()
			y.arrive(body)
			for _, task := range y.claim(time.Minute) {
				if err := s.Work(t.Context(), task); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := func(when, fields string, departing int) {
			t.Helper()
			_, of, err := s.One(t.Context(), hookglass.System, string(y.ep.ID), "-", "", 100)
			if err != nil {
				t.Fatal(err)
			}
			var pointers []string
			for _, f := range of.Current.Fields() {
				pointers = append(pointers, f.Pointer)
			}
			if got := strings.Join(pointers, " "); got != fields || len(of.Departing) != departing || of.Drifts != departing || (of.DriftEvent == "") != (departing == 0) || (of.EventSchema.Summary == "") != (departing == 0) {
				t.Errorf("%s: %s, %d departing, %d of them kept: %q", when, got, len(of.Departing), of.Drifts, of.EventSchema.Summary)
			}
		}
		accept := func() {
			t.Helper()
			if _, err := s.Accept(t.Context(), hookglass.System, string(y.ep.ID), "-", ""); err != nil {
				t.Fatal(err)
			}
		}
		arrive(`{"a":1,"old":1}`)
		accept()
		want("accepted", "/a /old", 0)
		arrive(`{"a":1,"new":1}`)
		want("one member is new, another is gone", "/a /new /old", 2)
		accept()
		want("accepted again", "/a /new", 0)
		arrive(`{"a":1,"new":2}`)
		want("as it is accepted", "/a /new", 0)
	})
}

// Many drifts, or long names, are told of in a line.
func TestTheSummaryOfDriftsIsShort(t *testing.T) {
	y := newYard(t, storetest.SQLite(t))
	s := drift.New(y.db)
	name := `"` + strings.Repeat("a", 60) + `"`
	deep := func(value string) string { return strings.Repeat(`{`+name+`:`, 5) + value + strings.Repeat(`}`, 5) }
	for n, body := range []string{deep(`1`), strings.TrimSuffix(deep(`"x"`), `}`) + `,"b":1,"c":1,"d":1,"e":1}`} {
		y.arrive(body)
		for _, task := range y.claim(time.Minute) {
			if err := s.Work(t.Context(), task); err != nil {
				t.Fatal(err)
			}
		}
		if n > 0 {
			break
		}
		if _, err := s.Accept(t.Context(), hookglass.System, string(y.ep.ID), "-", ""); err != nil {
			t.Fatal(err)
		}
	}
	_, of, err := s.One(t.Context(), hookglass.System, string(y.ep.ID), "-", "", 100)
	if err != nil || of.Drifts != 5 || !strings.HasSuffix(of.EventSchema.Summary, "; and 2 more") || len(of.EventSchema.Summary) > 300 {
		t.Errorf("%d drifts: %s, %v", of.Drifts, of.EventSchema.Summary, err)
	}
}
