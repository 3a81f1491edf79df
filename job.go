package hookglass

import "time"

// Job is the argument of one piece of background work. It is enqueued in the transaction of the data that
// it is about, and its worker lives in internal/job.
type Job interface {
	// Kind names the worker; stable, because it is stored.
	Kind() string
}

// Queued is a job that is worked in a queue of its own: it waits for others' machines, and what waits behind it does so
// too.
type Queued interface {
	Job
	// Queue names the queue; stable, because it is stored.
	Queue() string
}

// PurgeJob deletes events past their retention, and temporary endpoints past their life.
type PurgeJob struct{}

// Kind implements Job.
func (PurgeJob) Kind() string { return "purge" }

// EraseJob deletes the events of a deleted endpoint, or a range of one that lives, piece by piece.
type EraseJob struct {
	EndpointNum int64
}

// Kind implements Job.
func (EraseJob) Kind() string { return "erase" }

// NoteJob has a server log what `hookglass admin` changed, which runs beside the servers.
type NoteJob struct {
	At    time.Time
	Text  string
	Facts []Fact
}

// Fact is a name and a value in the log. It is never a secret.
type Fact struct {
	Name  string
	Value string
}

// Kind implements Job.
func (NoteJob) Kind() string { return "note" }
