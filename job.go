package hookglass

import "time"

// Job is the argument of one piece of background work. It is enqueued in the transaction that writes the data it is
// about; its worker is in internal/job.
type Job interface {
	// Kind names the worker; stable, because it is stored.
	Kind() string
}

// Queued is a job with a queue of its own. Jobs that wait for other machines are queued apart, so that they delay
// only one another.
type Queued interface {
	Job
	// Queue names the queue; stable, because it is stored.
	Queue() string
}

// PurgeJob deletes events past their retention, and temporary endpoints past their life.
type PurgeJob struct{}

// Kind implements Job.
func (PurgeJob) Kind() string { return "purge" }

// EraseJob deletes, in batches, the events of a deleted endpoint or a range of events of a live one.
type EraseJob struct {
	EndpointNum int64
}

// Kind implements Job.
func (EraseJob) Kind() string { return "erase" }

// NoteJob makes a server log a change that `hookglass admin` made. The command runs beside the servers and has no
// log.
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
