package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"slices"
	"strings"
	"sync"
	"time"
)

// everything stands for all topics in an announcement.
const everything = "*"

// notice is an announcement as it travels: topics, or everything where they are too many.
func notice(topics []string) string {
	text := strings.Join(topics, " ")
	if len(text) > 7000 { // it may have 7,999 bytes
		return everything
	}
	return text
}

const (
	// listenerName is the application name of the connections that nodes listen on, by which they are counted.
	listenerName = "hookglass listening"
	// asks and answers begin an announcement that is a question, who has heard what was told before it, and its answer.
	asks, answers = "?", "!"
	// tellLimit is how long an Update waits for the answers, which come within milliseconds but from a node that
	// stands still.
	tellLimit = 250 * time.Millisecond

	// notifyOnDisk is notify in a transaction of more, whose commit waits for the disk.
	notifyOnDisk = "SELECT pg_notify($1, $2)"
)

// questions are those of this node that wait for answers.
type questions struct {
	mu   sync.Mutex
	open map[string]*told
}

// told waits for the answers of all other nodes that listened when a transaction told its topics.
type told struct {
	engine   *postgresEngine
	question string
	others   int
	heard    chan struct{} // a value for each that answered
}

// tell has the server announce the topics as it commits and, where other nodes listen, ask them who has heard.
func (e *postgresEngine) tell(ctx context.Context, tx *sql.Tx, topics []string) (*told, error) {
	t := &told{engine: e, question: rand.Text()}
	if own := e.listener.Load(); own != 0 { // without a listener of its own it would not hear the answers
		err := tx.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE application_name = $1 AND datname = current_database() AND pid <> $2`, listenerName, own).Scan(&t.others)
		if err != nil {
			return nil, err
		}
	}
	topics = slices.Compact(slices.Sorted(slices.Values(topics)))
	if _, err := tx.ExecContext(ctx, notifyOnDisk, channel, notice(topics)); err != nil || t.others == 0 {
		return t, err
	}
	// It is behind them, and by itself: an older node knows a topic by its name, and everything by its mark alone.
	if _, err := tx.ExecContext(ctx, notifyOnDisk, channel, asks+t.question); err != nil {
		return nil, err
	}
	t.heard = make(chan struct{}, t.others)
	e.questions.mu.Lock()
	e.questions.open[t.question] = t
	e.questions.mu.Unlock()
	return t, nil
}

// forget ends the question.
func (t *told) forget() {
	t.engine.questions.mu.Lock()
	delete(t.engine.questions.open, t.question)
	t.engine.questions.mu.Unlock()
}

// wait returns when all have heard, or some take too long.
func (t *told) wait(ctx context.Context) {
	limit := time.NewTimer(t.engine.tellLimit)
	defer limit.Stop()
	for range t.others {
		select {
		case <-t.heard:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// hear tells this process what was announced, has the questions of others answered, and counts the answers to its own.
func (e *postgresEngine) hear(payload string) {
	topics := strings.Fields(payload)
	if slices.Contains(topics, everything) {
		e.db.hub.resync()
	}
	e.db.hub.publish(topics...)
	for _, topic := range topics {
		question, asked := strings.CutPrefix(topic, asks)
		answered, isAnswer := strings.CutPrefix(topic, answers)
		if !asked && !isAnswer {
			continue
		}
		e.questions.mu.Lock()
		mine, answer := e.questions.open[question], e.questions.open[answered]
		e.questions.mu.Unlock()
		switch {
		case asked && mine == nil:
			select {
			case e.asked <- answers + question:
			default: // whoever asked does not wait for long
			}
		case isAnswer && answer != nil:
			select {
			case answer.heard <- struct{}{}:
			default: // one more than was counted
			}
		}
	}
}

// runAnswers answers at once, unlike runAnnounce: somebody waits.
func (e *postgresEngine) runAnswers(ctx context.Context) {
	for {
		var answer []string
		select {
		case first := <-e.asked:
			answer = append(answer, first)
		case <-ctx.Done():
			return
		}
		for more := true; more; {
			select {
			case next := <-e.asked:
				answer = append(answer, next)
			default:
				more = false
			}
		}
		telling, cancel := context.WithTimeout(ctx, time.Second)
		if _, err := e.captures.Exec(telling, notify, channel, notice(answer)); err != nil && ctx.Err() == nil {
			e.db.log.Debug("answer lost", "error", err)
		}
		cancel()
	}
}
