package account

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// Administer returns the service for whoever changes the database beside its servers. What is changed is logged by one
// of them, when it runs: their log is where an operator looks.
func Administer(db *store.DB) *Service {
	s := New(db, slog.New(slog.DiscardHandler))
	s.beside = true
	return s
}

// change is an update that is noted in the log once it is stored. fn says what it did; nothing of that may be a secret.
// Facts are added to who did it.
func (s *Service) change(ctx context.Context, who hookglass.Principal, fn func(*store.Tx) (text string, facts []hookglass.Fact, err error)) error {
	var note hookglass.NoteJob
	err := s.db.Update(ctx, who, func(tx *store.Tx) error {
		text, facts, err := fn(tx)
		if err != nil {
			return err
		}
		note = hookglass.NoteJob{At: tx.Now, Text: text, Facts: append(s.author(who), facts...)}
		if s.beside {
			tx.Enqueue(note)
		}
		return nil
	})
	if err == nil && !s.beside {
		s.Tell(ctx, note)
	}
	return err
}

// author is who changes something, as the log has it.
func (s *Service) author(who hookglass.Principal) (facts []hookglass.Fact) {
	if s.beside {
		return []hookglass.Fact{{Name: "by", Value: "admin"}}
	}
	if who.User != 0 {
		facts = append(facts, number("by_user", who.User))
	}
	if who.Token != 0 {
		facts = append(facts, number("by_token", who.Token))
	}
	return facts
}

// Note has the servers of the database log what `hookglass admin` changed that is no row of it.
func (s *Service) Note(ctx context.Context, text string) error {
	return s.change(ctx, hookglass.System, func(*store.Tx) (string, []hookglass.Fact, error) { return text, nil, nil })
}

// Tell logs what was changed.
func (s *Service) Tell(ctx context.Context, note hookglass.NoteJob) {
	args := make([]any, 0, len(note.Facts)+1)
	for _, f := range note.Facts {
		args = append(args, slog.String(f.Name, f.Value))
	}
	if s.db.Now().Sub(note.At) > time.Minute { // no server ran meanwhile
		args = append(args, slog.Time("at", note.At))
	}
	s.log.InfoContext(ctx, note.Text, args...)
}

func number(name string, n int64) hookglass.Fact {
	return hookglass.Fact{Name: name, Value: strconv.FormatInt(n, 10)}
}

const (
	// tellEvery and tellMost bound the lines of failed sign-ins: whoever guesses must not fill the disk, nor bury what
	// else is logged.
	tellEvery = time.Minute
	tellMost  = 20
)

// spate is the lines that were written of one kind lately.
type spate struct {
	mu     sync.Mutex
	began  time.Time
	lines  int
	untold int
}

// failed tells the operator of a sign-in that failed: why, and whose it would have been where that is known. What was
// typed is never logged: people type passwords where their address belongs.
func (s *Service) failed(ctx context.Context, why string, user int64) {
	s.endSpate(false)
	s.failures.mu.Lock()
	defer s.failures.mu.Unlock()
	if s.failures.lines == 0 {
		s.failures.began = time.Now()
	}
	if s.failures.lines == tellMost {
		s.failures.untold++
		return
	}
	s.failures.lines++
	args := []any{"reason", why}
	if user != 0 {
		args = append(args, "user", user)
	}
	s.log.WarnContext(ctx, "a sign-in failed", args...)
}

// endSpate starts over when its time is over, or when the service stops, and says how many were not told one by one.
func (s *Service) endSpate(stops bool) {
	s.failures.mu.Lock()
	defer s.failures.mu.Unlock()
	if !stops && time.Since(s.failures.began) < tellEvery {
		return
	}
	if s.failures.untold > 0 {
		s.log.Warn("more sign-ins failed", "failed", s.failures.untold, "since", s.failures.began)
	}
	s.failures.lines, s.failures.untold = 0, 0
}
