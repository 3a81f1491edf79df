package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"slices"
	"strings"
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
	// asks and answers begin topics that are a question, who has heard this, and its answer.
	asks, answers = "?", "!"
	// tellLimit is how long an Update waits for the answers, which come within milliseconds but from a node that stands still.
	tellLimit = 250 * time.Millisecond
)

// told waits for the answers of all who listened when a transaction told its topics.
type told struct {
	heard     *Subscription
	listeners uint64
}

// tell has the server announce the topics as it commits, with a question that each listener answers when it has told its own process.
func (e *postgresEngine) tell(ctx context.Context, tx *sql.Tx, topics []string) (*told, error) {
	question := rand.Text()
	t := new(told)
	err := tx.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()`, listenerName).Scan(&t.listeners)
	if err != nil {
		return nil, err
	}
	text := notice(topics)
	if t.listeners > 1 {
		text += " " + asks + question
	}
	if _, err := tx.ExecContext(ctx, "SELECT pg_notify($1, $2)", channel, text); err != nil {
		return nil, err
	}
	t.heard = e.db.hub.subscribe(answers + question)
	return t, nil
}

// wait returns when all have heard, or some take too long.
func (t *told) wait(ctx context.Context) {
	limit := time.NewTimer(tellLimit)
	defer limit.Stop()
	for t.listeners > 1 && t.heard.Heard() < t.listeners {
		select {
		case <-t.heard.C:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// hear tells this process what was announced, and has the questions in it answered.
func (e *postgresEngine) hear(payload string) {
	topics := strings.Fields(payload)
	if slices.Contains(topics, everything) {
		e.db.hub.resync()
	}
	e.db.hub.publish(topics...)
	for _, t := range topics {
		if question, ok := strings.CutPrefix(t, asks); ok {
			select {
			case e.asked <- answers + question:
			default: // whoever asked does not wait for long
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
