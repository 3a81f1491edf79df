package store

import (
	"context"
	"encoding/json"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
)

// announcedDriver has workers on the embedded database begin with a job when it is enqueued. The queue library knows no
// way by which SQLite tells it, so it would look several times a second, with a statement that writes and for which
// captures wait. Whatever is enqueued there is enqueued by this process, which announces it.
type announcedDriver struct {
	*riversqlite.Driver
	hub    *hub
	queues []string
}

// SupportsListener implements riverdriver.Driver.
func (announcedDriver) SupportsListener() bool { return true }

// GetListener implements riverdriver.Driver.
func (d announcedDriver) GetListener(*riverdriver.GetListenenerParams) riverdriver.Listener {
	return &jobListener{hub: d.hub, queues: d.queues}
}

// insertTopic is where the queue library hears of jobs that were inserted.
const insertTopic = "river_insert"

// jobListener tells the queue library of [TopicJobs]: that there may be jobs in each of its queues.
type jobListener struct {
	hub    *hub
	queues []string
	heard  *Subscription
	untold []string // queues of which is still to be told
}

// Connect implements riverdriver.Listener.
func (l *jobListener) Connect(context.Context) error {
	l.heard, l.untold = l.hub.subscribe(TopicJobs), nil
	return nil
}

// Close implements riverdriver.Listener.
func (l *jobListener) Close(context.Context) error {
	l.heard.Close()
	return nil
}

// WaitForNotification implements riverdriver.Listener.
func (l *jobListener) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	if len(l.untold) == 0 {
		select {
		case <-l.heard.C:
			l.untold = l.queues
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	payload, err := json.Marshal(map[string]string{"queue": l.untold[0]})
	if err != nil {
		return nil, err
	}
	l.untold = l.untold[1:]
	return &riverdriver.Notification{Topic: insertTopic, Payload: string(payload)}, nil
}

// Listen implements riverdriver.Listener. Who listens to more hears nothing of it.
func (*jobListener) Listen(context.Context, string) error { return nil }

// Unlisten implements riverdriver.Listener.
func (*jobListener) Unlisten(context.Context, string) error { return nil }

// Ping implements riverdriver.Listener.
func (*jobListener) Ping(context.Context) error { return nil }

// Schema implements riverdriver.Listener.
func (*jobListener) Schema() string { return "" }

// SetAfterConnectExec implements riverdriver.Listener.
func (*jobListener) SetAfterConnectExec(string) {}
