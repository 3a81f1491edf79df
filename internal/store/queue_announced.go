package store

import (
	"context"
	"encoding/json"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
)

// announcedDriver starts jobs on the embedded database as soon as they are enqueued. The queue library has no
// notifications for SQLite: it would poll several times a second with a statement that writes, for which captures wait.
// All jobs there are enqueued by this process, which announces them.
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

// insertTopic is the queue library's topic of inserted jobs.
const insertTopic = "river_insert"

// jobListener turns [TopicJobs] into the queue library's notifications, one for each of its queues.
type jobListener struct {
	hub    *hub
	queues []string
	heard  *Subscription
	untold []string // queues still to be notified
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

// Listen implements riverdriver.Listener. Topics other than insertTopic never arrive.
func (*jobListener) Listen(context.Context, string) error { return nil }

// Unlisten implements riverdriver.Listener.
func (*jobListener) Unlisten(context.Context, string) error { return nil }

// Ping implements riverdriver.Listener.
func (*jobListener) Ping(context.Context) error { return nil }

// Schema implements riverdriver.Listener.
func (*jobListener) Schema() string { return "" }

// SetAfterConnectExec implements riverdriver.Listener.
func (*jobListener) SetAfterConnectExec(string) {}
