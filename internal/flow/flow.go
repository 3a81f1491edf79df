// Package flow checks expectations on webhooks and mail: steps that events of a workspace's endpoints must fulfil in
// time, and whether they did.
//
// A flow is judged by the node that holds its lease, from events in the order of their capture. Announcements wake the
// node, it reads events after the flow's cursor, and it stores the progress together with the cursor. So when the node
// dies, another continues where it was, and every event counts once. However many flows wait, an idle node queries the
// database only once every few seconds.
package flow

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

// Service is the capability. Without [Service.Run] this node starts flows but does not judge them. Safe for concurrent
// use.
type Service struct {
	db  *store.DB
	log *slog.Logger
	now func() time.Time

	lateFor, lease, renewEvery time.Duration // the constants; shorter in tests

	mu   sync.Mutex
	held map[int64]*held // flows that this node leases

	// Used by Run only.
	seen  int64 // look has checked events up to this Seq; below 0: none yet
	turns fair.Turns
}

// New returns the service.
func New(db *store.DB, log *slog.Logger) *Service {
	return &Service{db: db, log: log, now: db.Now, lateFor: lateFor, lease: lease, renewEvery: renewEvery, held: map[int64]*held{}, seen: -1}
}

// maxKey bounds an Idempotency-Key, in characters, as for runs of replay cases.
const maxKey = 255

// Create starts a flow. The same key with the same draft returns the flow that was started before, even when the draft
// would be refused by now: one of its endpoints may be gone, or its start may lie too far back. It answers
// validation_failed, and idempotency_conflict when the key was used with another draft.
func (s *Service) Create(ctx context.Context, who hookglass.Principal, d Draft, key string) (f hookglass.Flow, err error) {
	if utf8.RuneCountInString(key) > maxKey || !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl) {
		return f, hookglass.Invalid("Idempotency-Key", "may have 255 characters at most")
	}
	sum, err := d.fingerprint()
	if err != nil {
		return f, err
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		plan, e, err := d.plan(&tx.View, tx.Now)
		if err != nil {
			f, err = madeBefore(tx, key, sum, err)
			return err
		}
		live, err := tx.LockLiveFlows(e.AccountID)
		if err != nil {
			return err
		}
		if before, found, err := begun(tx, e.WorkspaceID, key, sum); found || err != nil {
			f = before
			return err
		}
		if live >= hookglass.MaxLiveFlows {
			return hookglass.Invalid("flow", "would be one too many: an account has %d at most that go on", hookglass.MaxLiveFlows)
		}
		if f, err = begin(tx, e, plan, d.Since); err != nil {
			return err
		}
		return tx.CreateFlow(&f, key, sum)
	})
	return f, err
}

// madeBefore finds the flow that an earlier call created from a draft that is refused by now, under the same key.
// Without one it returns the refusal. When the draft's endpoints are gone its workspace is not known, so the flow may
// be in any.
func madeBefore(tx *store.Tx, key string, sum []byte, refusal error) (hookglass.Flow, error) {
	if key == "" || !hookglass.Is(refusal, hookglass.CodeValidationFailed) {
		return hookglass.Flow{}, refusal
	}
	f, err := tx.FlowMadeBefore(key, sum)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return hookglass.Flow{}, refusal
	}
	return f, err
}

// fingerprint distinguishes drafts under the same key.
func (d Draft) fingerprint() ([]byte, error) {
	d.Since = time.Time{} // usually derived from a duration, so it differs with each call
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return sum[:], nil
}

// begun finds the flow of a workspace that was started under a key. It answers idempotency_conflict when that had
// another draft.
func begun(tx *store.Tx, workspace int64, key string, sum []byte) (f hookglass.Flow, found bool, err error) {
	if key == "" {
		return f, false, nil
	}
	f, before, err := tx.FlowByKey(workspace, key)
	switch {
	case hookglass.Is(err, hookglass.CodeNotFound):
		return f, false, nil
	case err != nil:
		return f, false, err
	case !bytes.Equal(before, sum):
		return f, false, hookglass.Errorf(hookglass.CodeIdempotencyConflict, "This Idempotency-Key was used for another flow.")
	}
	return f, true, nil
}

// begin builds a new flow in its initial state. It counts events from now on, or from since if that is set.
func begin(tx *store.Tx, e hookglass.Endpoint, plan hookglass.FlowPlan, since time.Time) (f hookglass.Flow, err error) {
	f = hookglass.Flow{
		ID: hookglass.NewSortableID(hookglass.PrefixFlow, tx.Now), AccountID: e.AccountID, WorkspaceID: e.WorkspaceID, Plan: plan, State: hookglass.FlowPending,
		Version: 1, StartedAt: tx.Now, DeadlineAt: tx.Now.Add(plan.Timeout),
	}
	if f.Cursor, err = tx.NewestOfAll(); err != nil {
		return f, err
	}
	if !since.IsZero() {
		f.StartedAt = since.UTC().Truncate(time.Microsecond)
		if err := reachBack(tx, &f); err != nil {
			return f, err
		}
	}
	m, err := newMachine(&f)
	if err != nil {
		return f, err
	}
	m.begin()
	return f, nil
}

// reachBack moves the cursor before the first event that counts.
func reachBack(tx *store.Tx, f *hookglass.Flow) error {
	for _, num := range endpointsOf(f) {
		seq, err := tx.SeqSince(num, f.StartedAt)
		if err != nil {
			return err
		}
		f.Cursor = min(f.Cursor, seq)
	}
	return nil
}

// endpointsOf lists the endpoints that a flow watches, each once.
func endpointsOf(f *hookglass.Flow) (nums []int64) {
	for _, s := range f.Plan.Steps {
		if !slices.Contains(nums, s.EndpointNum) {
			nums = append(nums, s.EndpointNum)
		}
	}
	return nums
}

// Delete deletes a flow, which ends without a result if it was running. It answers not_found.
func (s *Service) Delete(ctx context.Context, who hookglass.Principal, id string) error {
	return s.db.Update(ctx, who, func(tx *store.Tx) error { return tx.DeleteFlow(id) })
}

// Wait returns a flow once it has ended or, if after is not below 0, once its Version is greater than after. It returns
// the flow as it is when ctx ends or stop is closed. It answers not_found.
func (s *Service) Wait(ctx context.Context, who hookglass.Principal, id string, after int64, stop <-chan struct{}) (f hookglass.Flow, err error) {
	whole := context.WithoutCancel(ctx)
	read := func() error {
		return s.db.View(whole, who, func(v *store.View) (err error) {
			f, err = v.Flow(id)
			return err
		})
	}
	if err := read(); err != nil {
		return f, err
	}
	heard := s.db.Listen(store.TopicFlow(f.Num))
	defer heard.Close()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		// Read again after subscribing and at the end, to find what announcements have missed.
		if err := read(); err != nil || f.State.Final() || after >= 0 && f.Version > after {
			return f, err
		}
		select {
		case <-heard.C:
		case <-look.C:
		case <-stop:
			return f, nil
		case <-ctx.Done():
			err = read()
			return f, err
		}
	}
}
