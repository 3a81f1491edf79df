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

// Administer returns the service for commands that change the database beside its servers. Their changes are logged by
// a server, once one runs, because that is the log that operators read.
func Administer(db *store.DB) *Service {
	s := New(db, slog.New(slog.DiscardHandler))
	s.beside = true
	return s
}

// change is an update that is logged once it is stored. fn returns a message and facts, which must not be secret; the
// author is added.
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

// author returns who makes a change, for the log.
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

// Note has a server log a change by `hookglass admin` that is not in the database.
func (s *Service) Note(ctx context.Context, text string) error {
	return s.change(ctx, hookglass.System, func(*store.Tx) (string, []hookglass.Fact, error) { return text, nil, nil })
}

// Tell logs a change.
func (s *Service) Tell(ctx context.Context, note hookglass.NoteJob) {
	args := make([]any, 0, len(note.Facts)+1)
	for _, f := range note.Facts {
		args = append(args, slog.String(f.Name, f.Value))
	}
	if s.db.Now().Sub(note.At) > time.Minute { // no server was running
		args = append(args, slog.Time("at", note.At))
	}
	s.log.InfoContext(ctx, note.Text, args...)
}

func number(name string, n int64) hookglass.Fact {
	return hookglass.Fact{Name: name, Value: strconv.FormatInt(n, 10)}
}

const (
	// tellEvery and tellMost limit the logging of failed sign-ins: somebody who guesses passwords must not fill the
	// disk or bury other messages.
	tellEvery = time.Minute
	tellMost  = 20
)

// spate counts the recent log lines of one kind.
type spate struct {
	mu     sync.Mutex
	began  time.Time
	lines  int
	untold int
}

// failed logs a failed sign-in: the reason and, if known, the user. It never logs what was typed: people type passwords
// into the wrong field.
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

// endSpate starts a new count once the period is over, or when the service stops, and logs how many were not logged.
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
