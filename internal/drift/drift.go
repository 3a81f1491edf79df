// Package drift keeps the schemas of captured bodies, by provider and event type, and finds where they depart from an
// accepted baseline. It hides how a schema is stored, and that several nodes update it concurrently.
//
// An endpoint's schemas are kept while its schema_tracking is on; otherwise they are inferred from its newest events on
// request. It is safe for concurrent use.
package drift

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/jsondoc"
	"hookglass/internal/schema"
	"hookglass/internal/store"
)

// Service is the capability.
type Service struct {
	db      *store.DB
	locks   [32]sync.Mutex // by schema, so that this node does not conflict with itself
	readFor time.Duration  // the constant; shorter in tests
}

// New returns the service.
func New(db *store.DB) *Service { return &Service{db: db, readFor: readFor} }

const (
	maxBody      = jsondoc.MaxBytes
	maxTries     = 20 // when other nodes update the same schema
	maxSummary   = 3  // drifts that a summary names
	maxPlace     = 200
	readAtOnce   = 64
	sampledBytes = 256 << 10       // of one body, when schemas are inferred on request
	readFor      = 2 * time.Second // for that, as for a page of a search; the first events are read in any case
)

// DefaultSample is how many events schemas are inferred from on request, unless the caller says otherwise.
const DefaultSample = 500

// Types are the schemas of an endpoint and where they come from.
type Types struct {
	Endpoint hookglass.Endpoint
	Sampled  bool // inferred for this answer, from the newest events
	Events   int  // events that were read for it
	More     bool // there are older events, beyond the sample or the time limit
	Types    []Type
}

// Type is the schema of one event type.
type Type struct {
	hookglass.EventSchema
	Current   *schema.Schema // everything known: the baseline merged with Since
	Accepted  *schema.Schema // the baseline, or nil
	Since     *schema.Schema // what was observed since the baseline
	NoJSON    int64          // events of a sample without JSON
	Departing []schema.Drift
}

// Work adds an event's body to the schema of its type, exactly once even if the task is claimed repeatedly.
func (s *Service) Work(ctx context.Context, t store.Task) error {
	e, err := s.withBody(ctx, t.Event)
	if err != nil {
		return err
	}
	body, ok := bodyOf(e)
	if !ok {
		return nil
	}
	lock := s.lock(e.EndpointNum, e.Provider, e.EventType)
	lock.Lock()
	defer lock.Unlock()
	for range maxTries {
		known, err := s.stored(ctx, e.EndpointNum, e.Provider, e.EventType)
		if err != nil {
			return err
		}
		if err := observe(&known, body, e); err != nil {
			return err
		}
		saved, mine := false, false
		err = s.db.UpdateAlong(ctx, hookglass.System, func(tx *store.Tx) (err error) {
			if mine, err = tx.EndTask(t); err != nil || !mine {
				return err
			}
			if saved, err = tx.SaveEventSchema(&known); err == nil && !saved {
				return errStale
			}
			return err
		})
		if err != errStale {
			return err // nil: it is done, here or by whoever took the task over
		}
		if known.Num == 0 {
			now, err := s.stored(ctx, known.EndpointNum, known.Provider, known.EventType)
			if err != nil || now.Num == 0 { // the endpoint has no room for another schema
				return err
			}
		}
	}
	return fmt.Errorf("a schema changed %d times while an event was added to it", maxTries)
}

// withBody returns an event with its payload, unless that is too large to be looked at.
func (s *Service) withBody(ctx context.Context, e *hookglass.Event) (*hookglass.Event, error) {
	if e.Payload != nil || e.Size == 0 || e.Size > maxBody {
		return e, nil
	}
	found, err := store.Read(ctx, s.db, hookglass.System, func(v *store.View) (map[int64]*hookglass.Event, error) {
		return v.EventsBySeq([]int64{e.Seq}, maxBody)
	})
	if err == nil && found[e.Seq] != nil {
		e = found[e.Seq]
	}
	return e, err
}

// errStale rolls a transaction back.
var errStale = hookglass.Errorf(hookglass.CodeConflict, "The schema has changed meanwhile.")

// stored returns the schema of an event type as it is stored, or a zero one if there is none.
func (s *Service) stored(ctx context.Context, endpointNum int64, provider, eventType string) (hookglass.EventSchema, error) {
	return store.Read(ctx, s.db, hookglass.System, func(v *store.View) (hookglass.EventSchema, error) {
		return v.EventSchema(endpointNum, provider, eventType)
	})
}

func (s *Service) lock(endpointNum int64, provider, eventType string) *sync.Mutex {
	h := fnv.New32a()
	fmt.Fprintf(h, "%d\n%s\n%s", endpointNum, provider, eventType)
	return &s.locks[h.Sum32()%uint32(len(s.locks))]
}

// bodyOf returns the JSON of an event; false if it has none.
func bodyOf(e *hookglass.Event) (jsondoc.Value, bool) {
	if e.Payload == nil || len(e.Body) == 0 || e.Type != hookglass.EventWebhook {
		return jsondoc.Value{}, false
	}
	v, err := jsondoc.Parse(coding.Plain(e.Body, e.Headers, maxBody), jsondoc.Wide())
	return v, err == nil
}

// observe adds a body to a stored schema.
func observe(known *hookglass.EventSchema, body jsondoc.Value, e *hookglass.Event) error {
	t, err := read(*known)
	if err != nil {
		return err
	}
	t.Since.Observe(body, string(e.ID))
	if known.FirstAt.IsZero() || e.ReceivedAt.Before(known.FirstAt) { // events may be processed in any order
		known.FirstAt = e.ReceivedAt
	}
	known.Events++
	if e.ReceivedAt.After(known.LastAt) {
		known.LastAt = e.ReceivedAt
	}
	return write(known, t.Accepted, t.Since)
}

// write sets the stored form of a schema and of its drift.
func write(known *hookglass.EventSchema, accepted, since *schema.Schema) (err error) {
	if known.Observed, err = since.Encode(); err != nil {
		return err
	}
	known.Drifts, known.DriftEvent, known.Summary = 0, "", ""
	if accepted == nil {
		return nil
	}
	found := schema.Diff(accepted, since)
	known.Drifts = len(found)
	if len(found) > 0 {
		known.DriftEvent = hookglass.EventID(slices.MinFunc(found, func(a, b schema.Drift) int { return strings.Compare(a.Event, b.Event) }).Event)
		known.Summary = summary(found)
	}
	return nil
}

// summary describes some drifts, by place and type only.
func summary(found []schema.Drift) string {
	var told []string
	for _, d := range found[:min(len(found), maxSummary)] {
		if len(d.Pointer) > maxPlace {
			d.Pointer = hookglass.Beginning(d.Pointer, maxPlace) + "…"
		}
		told = append(told, d.String())
	}
	text := strings.Join(told, "; ")
	if more := len(found) - len(told); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// read decodes what is stored.
func read(known hookglass.EventSchema) (t Type, err error) {
	t.EventSchema, t.Since = known, schema.New()
	if len(known.Observed) > 0 {
		if t.Since, err = schema.Decode(known.Observed); err != nil {
			return t, fmt.Errorf("schema of %q: %w", known.EventType, err)
		}
	}
	t.Current = t.Since
	if known.Baseline != nil {
		if t.Accepted, err = schema.Decode(known.Baseline); err != nil {
			return t, fmt.Errorf("baseline of %q: %w", known.EventType, err)
		}
		t.Current = t.Accepted.Clone()
		t.Current.Merge(t.Since)
		t.Departing = schema.Diff(t.Accepted, t.Since)
	}
	return t, nil
}

// All returns the schemas of an endpoint: those that are kept or, if there are none, those inferred from at most sample
// of its newest events, for at most two seconds. It answers not_found.
func (s *Service) All(ctx context.Context, who hookglass.Principal, ref string, sample int) (all Types, err error) {
	var kept []hookglass.EventSchema
	err = s.db.View(ctx, who, func(v *store.View) error {
		if all.Endpoint, err = v.Endpoint(ref); err != nil {
			return err
		}
		kept, err = v.EventSchemas(ref)
		return err
	})
	if err != nil {
		return all, err
	}
	for _, known := range kept {
		t, err := read(known)
		if err != nil {
			return all, err
		}
		all.Types = append(all.Types, t)
	}
	if len(kept) > 0 {
		return all, nil
	}
	return s.sampled(ctx, who, all, sample)
}

// sampled infers schemas from the newest events, newest first, so that the time limit cuts off the oldest.
func (s *Service) sampled(ctx context.Context, who hookglass.Principal, all Types, sample int) (Types, error) {
	all.Sampled = true
	var events []*hookglass.Event
	err := s.db.View(ctx, who, func(v *store.View) error {
		page, err := v.Events(string(all.Endpoint.ID), store.EventList{Limit: sample})
		events, all.More = page.Events, page.Next != 0
		return err
	})
	if err != nil {
		return all, err
	}
	inferred := inference{}
	for until := time.Now().Add(s.readFor); len(events) > 0; {
		if all.Events > 0 && !time.Now().Before(until) {
			all.More = true
			break
		}
		n := min(len(events), readAtOnce)
		seqs := make([]int64, n)
		for i, e := range events[:n] {
			seqs[i] = e.Seq
		}
		events = events[n:]
		found, err := store.Read(ctx, s.db, who, func(v *store.View) (map[int64]*hookglass.Event, error) { return v.EventsBySeq(seqs, sampledBytes) })
		if err != nil {
			return all, err
		}
		for _, seq := range seqs {
			if e := found[seq]; e != nil && e.Type == hookglass.EventWebhook {
				inferred.add(e)
			}
		}
		all.Events += n
	}
	all.Types = inferred.types()
	return all, nil
}

// inference collects the schemas of a sample.
type inference map[kindOfEvent]*Type

type kindOfEvent struct{ provider, eventType string }

// add adds a webhook that is older than all before it.
func (in inference) add(e *hookglass.Event) {
	of := kindOfEvent{e.Provider, e.EventType}
	t := in[of]
	if t == nil {
		if len(in) == hookglass.MaxEventSchemas {
			return
		}
		t = &Type{EventSchema: hookglass.EventSchema{EndpointNum: e.EndpointNum, Provider: e.Provider, EventType: e.EventType, LastAt: e.ReceivedAt}, Since: schema.New()}
		t.Current = t.Since
		in[of] = t
	}
	t.FirstAt = e.ReceivedAt
	body, ok := bodyOf(e)
	if !ok {
		t.NoJSON++
		return
	}
	t.Events++
	t.Since.Observe(body, string(e.ID))
}

// types returns the schemas of types that had JSON.
func (in inference) types() (all []Type) {
	for _, t := range in {
		if t.Events > 0 {
			all = append(all, *t)
		}
	}
	slices.SortFunc(all, func(a, b Type) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.EventType, b.EventType))
	})
	return all
}

// noType names the type of events that have none.
const noType = "-"

// One returns the schema of an event type; provider may be empty if only one provider has events of it. It answers
// not_found, and validation_failed if the provider must be named.
func (s *Service) One(ctx context.Context, who hookglass.Principal, ref, eventType, provider string, sample int) (Types, Type, error) {
	all, err := s.All(ctx, who, ref, sample)
	if err != nil {
		return all, Type{}, err
	}
	if eventType == noType {
		eventType = ""
	}
	var found []Type
	for _, t := range all.Types {
		if t.EventType == eventType && (provider == "" || t.Provider == provider) {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		if all.Sampled && all.More {
			return all, Type{}, hookglass.Errorf(hookglass.CodeNotFound, "There is no such schema among the newest %d events; older ones were not searched.", all.Events)
		}
		return all, Type{}, hookglass.NotFound("schema")
	case 1:
		return all, found[0], nil
	}
	return all, Type{}, hookglass.Invalid("provider", "must be given: several providers have events of this type")
}

// Accept makes the current schema of an event type its baseline, against which later events are compared. It answers
// not_found, and conflict if the endpoint's schemas are not kept.
func (s *Service) Accept(ctx context.Context, who hookglass.Principal, ref, eventType, provider string) (Type, error) {
	if err := who.MayManage(); err != nil {
		return Type{}, err
	}
	for range maxTries {
		all, t, err := s.One(ctx, who, ref, eventType, provider, DefaultSample)
		if err != nil {
			return t, err
		}
		if !all.Endpoint.SchemaTracking {
			return t, hookglass.Errorf(hookglass.CodeConflict, "The schemas of this endpoint are not kept: turn on its schema_tracking first (hookglass schemas --track).")
		}
		known, accepted := t.EventSchema, t.Current
		if t.Accepted != nil {
			accepted = schema.Accept(t.Accepted, t.Since)
		}
		if known.Baseline, err = accepted.Encode(); err != nil {
			return t, err
		}
		if err := write(&known, accepted, accepted.Skeleton()); err != nil {
			return t, err
		}
		saved := false
		err = s.db.Update(ctx, who, func(tx *store.Tx) (err error) {
			if _, err = tx.Endpoint(ref); err != nil {
				return err
			}
			known.AcceptedAt = tx.Now
			saved, err = tx.SaveEventSchema(&known)
			return err
		})
		if err != nil {
			return t, err
		}
		if saved {
			_, t, err = s.One(ctx, who, ref, eventType, known.Provider, DefaultSample)
			return t, err
		}
	}
	return Type{}, hookglass.Errorf(hookglass.CodeConflict, "The schema changes too fast to be accepted. Try again.")
}

// Forget deletes the schema of an event type with its baseline; later events begin a new one. It answers not_found.
func (s *Service) Forget(ctx context.Context, who hookglass.Principal, ref, eventType, provider string) error {
	if err := who.MayManage(); err != nil {
		return err
	}
	_, t, err := s.One(ctx, who, ref, eventType, provider, 1)
	if err != nil {
		return err
	}
	return s.db.Update(ctx, who, func(tx *store.Tx) error {
		if _, err := tx.Endpoint(ref); err != nil {
			return err
		}
		return tx.DeleteEventSchema(t.Num)
	})
}
