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

// notice encodes an announcement: the topics, or everything if they are too many.
func notice(topics []string) string {
	text := strings.Join(topics, " ")
	if len(text) > 7000 { // PostgreSQL allows 7,999 bytes
		return everything
	}
	return text
}

const (
	// listenerName is the application name of the nodes' listening connections, by which they are counted.
	listenerName = "hookglass listening"
	// pooledName matches what a pooler may add to a name, the client's address: PgBouncer's application_name_add_host.
	pooledName = "( - %)?"
	// asks and answers are prefixes of announcements: the question whether all earlier ones were received, and the
	// answer.
	asks, answers = "?", "!"
	// tellLimit is how long an Update waits for the answers, which take milliseconds unless a node is frozen.
	tellLimit = 250 * time.Millisecond

	// notifyOnDisk is notify within a larger transaction, whose commit must be durable.
	notifyOnDisk = "SELECT pg_notify($1, $2)"
)

// questions holds this node's questions that wait for answers.
type questions struct {
	mu   sync.Mutex
	open map[string]*told
}

// told waits until all other nodes that were listening have received a transaction's topics.
type told struct {
	engine   *postgresEngine
	question string
	others   int
	heard    chan struct{} // receives a value per answer
}

// tell announces the topics on commit and, if other nodes listen, asks them to confirm.
func (e *postgresEngine) tell(ctx context.Context, tx *sql.Tx, topics []string) (*told, error) {
	t := &told{engine: e, question: rand.Text()}
	if own := e.listener.Load(); own != 0 { // without a listener of our own we would not receive the answers
		err := tx.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE application_name SIMILAR TO $1 AND datname = current_database() AND pid <> $2`, listenerName+pooledName, own).Scan(&t.others)
		if err != nil {
			return nil, err
		}
	}
	topics = slices.Compact(slices.Sorted(slices.Values(topics)))
	if _, err := tx.ExecContext(ctx, notifyOnDisk, channel, notice(topics)); err != nil || t.others == 0 {
		return t, err
	}
	// The question follows the topics, in an announcement of its own: an older node takes it for an unknown topic.
	if _, err := tx.ExecContext(ctx, notifyOnDisk, channel, asks+t.question); err != nil {
		return nil, err
	}
	t.heard = make(chan struct{}, t.others)
	e.questions.mu.Lock()
	e.questions.open[t.question] = t
	e.questions.mu.Unlock()
	return t, nil
}

// forget removes the question.
func (t *told) forget() {
	t.engine.questions.mu.Lock()
	delete(t.engine.questions.open, t.question)
	t.engine.questions.mu.Unlock()
}

// wait returns when all have confirmed, or after the time limit.
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

// hear publishes an announcement in this process, answers the questions of others, and counts the answers to its own.
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
			default: // the asking node gives up soon anyway
			}
		case isAnswer && answer != nil:
			select {
			case answer.heard <- struct{}{}:
			default: // more answers than were counted
			}
		}
	}
}

// runAnswers answers immediately, unlike runAnnounce, because somebody waits.
func (e *postgresEngine) runAnswers(ctx context.Context) {
	for {
		var answer []string
		select {
		case first := <-e.asked:
			answer = append(answer, first)
		case <-ctx.Done():
			return
		}
		for len(e.asked) > 0 {
			answer = append(answer, <-e.asked)
		}
		telling, cancel := context.WithTimeout(ctx, time.Second)
		if _, err := e.captures.Exec(telling, notify, channel, notice(answer)); err != nil && ctx.Err() == nil {
			e.db.log.Debug("answer lost", "error", err)
		}
		cancel()
	}
}
