package listen

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/api"
)

const (
	// commandAddress is the address that the server is told for a command. The command itself never leaves this
	// machine.
	commandAddress = "exec:command"
	// lastWords is how long a command has to end after it was told to, before it is killed, and how long its output is
	// still read when processes that it started outlive it.
	lastWords  = time.Second
	keepErrors = 2 << 10 // bytes of the end of stderr
)

// RunCommand returns a target that is a command.
func RunCommand(text string) (Target, error) {
	if strings.TrimSpace(text) == "" || strings.Contains(text, "\x00") {
		return Target{}, errors.New("exec names no command, such as ./handle.sh")
	}
	return Target{Command: text}, nil
}

// facts are what a command is told about an event or a replay, in variables named HOOKGLASS_… All of them are set each
// time, if need be to an empty text: the listener itself may run inside a command of another listener.
type facts struct{ request, endpoint, method, path, query, provider, event, ip, replay string }

func (f facts) list(media string) (all []string) {
	for _, v := range [][2]string{
		{"REQUEST_ID", f.request}, {"ENDPOINT_ID", f.endpoint}, {"METHOD", f.method}, {"PATH", fit(f.path)}, {"QUERY", fit(f.query)},
		{"PROVIDER", f.provider}, {"EVENT_TYPE", f.event}, {"CONTENT_TYPE", media}, {"IP_ADDRESS", f.ip}, {"REPLAY_ID", f.replay},
	} {
		all = append(all, "HOOKGLASS_"+v[0]+"="+strings.ReplaceAll(v[1], "\x00", "\uFFFD")) // an environment has no NUL
	}
	return all
}

// errand builds a request for a command. Header fields are passed on as they came, including those that belong to a
// connection; those of set replace others of the same name.
func errand(to Target, f facts, fields, set hookglass.Headers, body []byte) outgoing {
	o := outgoing{method: f.method, to: to, body: body}
	for _, h := range fields {
		if !set.Has(h.Name) {
			o.fields = append(o.fields, h)
		}
	}
	o.fields = append(o.fields, set...)
	o.facts = f.list(strings.Join(o.fields.Values("Content-Type"), ", "))
	return o
}

// invoke runs the command of a request. A lane runs one command at a time, so that they end in the order of their
// events; scripts are rarely made to run concurrently with themselves.
func (a *lane) invoke(ctx context.Context, o outgoing, limit time.Duration, keep int, begun func()) answer {
	defer begun()
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		got := failed(ctx, ctx.Err(), false)
		if got.failure == api.FailureTimeout {
			got.problem = "another command was still running"
		}
		return got
	}
	defer func() { <-a.turn }()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return execute(ctx, o, a.l.cfg.Environment, keep)
}

// execute runs a command with the shell. No text of the event is part of the command line: the body is its stdin,
// everything else is in its environment and in a file. The answer's body is its output, of which at most keep bytes are
// kept.
func execute(ctx context.Context, o outgoing, environment []string, keep int) (a answer) {
	started := time.Now()
	defer func() { a.took = time.Since(started) }()
	header, err := headerFile(o.fields)
	if err != nil {
		return answer{failure: api.FailureUnknown, problem: "the header fields could not be put into a file: " + err.Error(), declared: -1}
	}
	defer os.Remove(header)
	printed, complaints := &beginning{keep: keep}, &ending{keep: keepErrors}
	out, errOut, err := hearBoth(printed, complaints)
	if err != nil {
		return answer{failure: api.FailureUnknown, problem: "the command could not be started: " + err.Error(), declared: -1}
	}
	cmd := shell(ctx, o.to.Command)
	cmd.Env = append(append(slices.Clip(environment), o.facts...), "HOOKGLASS_HEADERS_FILE="+header)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(o.body), out.write, errOut.write
	cmd.WaitDelay = lastWords
	err = cmd.Start()
	out.write.Close()
	errOut.write.Close()
	if err != nil {
		heardOut(0, out, errOut)
		return answer{failure: api.FailureUnknown, problem: "the command could not be started: " + err.Error(), declared: -1}
	}
	err = cmd.Wait()
	stopped := err != nil && ctx.Err() != nil && !errors.Is(err, exec.ErrWaitDelay)
	if stopped {
		kill(cmd) // including what the shell had started
	}
	heardOut(lastWords, out, errOut)
	a = answer{declared: -1, maySent: true, exit: cmd.ProcessState.ExitCode(), complaint: complaints.text()}
	switch {
	case stopped && errors.Is(ctx.Err(), context.DeadlineExceeded):
		a.failure, a.problem = api.FailureTimeout, "the command did not end in time, and was stopped"
		return a
	case stopped:
		a.failure, a.problem = api.FailureUnknown, "the command was stopped"
		return a
	case cmd.ProcessState.Success():
		a.status, a.reason = http.StatusOK, "exit code 0"
	default:
		a.status, a.problem = http.StatusInternalServerError, fmt.Sprintf("exit code %d", a.exit)
		if a.exit < 0 {
			a.problem = cmd.ProcessState.String() // the signal that ended it
		}
		a.reason = a.problem
		if a.complaint != "" {
			a.reason += ": " + a.complaint
		}
	}
	a.body, a.observed, a.header = printed.kept, printed.size, http.Header{}
	if a.whole = a.observed == int64(len(a.body)); !a.whole {
		a.cut = "body_limit"
	}
	if len(a.body) > 0 {
		a.header.Set("Content-Type", mediaOf(a.body, a.whole))
	}
	return a
}

// words is an output of a command, which is read while it is written.
type words struct {
	read, write *os.File
	ended       chan struct{} // closed when no more is read
}

// hear passes on what is written to an output.
func hear(to io.Writer) (*words, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	h := &words{r, w, make(chan struct{})}
	go func() {
		defer close(h.ended)
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Read(buf)
			_, _ = to.Write(buf[:n])
			if errors.Is(err, os.ErrDeadlineExceeded) {
				drain(r, buf, to)
			}
			if err != nil {
				return
			}
		}
	}()
	return h, nil
}

func hearBoth(stdout, stderr io.Writer) (out, errOut *words, err error) {
	if out, err = hear(stdout); err != nil {
		return nil, nil, err
	}
	if errOut, err = hear(stderr); err != nil {
		out.write.Close()
		heardOut(0, out)
	}
	return out, errOut, err
}

// heardOut returns when outputs are read to their ends, or after a time: processes that outlive a command may keep them
// open. What was written by then is read in any case, however late this program comes to it.
func heardOut(wait time.Duration, all ...*words) {
	timed := true
	for _, h := range all {
		timed = h.read.SetReadDeadline(time.Now().Add(wait)) == nil && timed
	}
	late := time.After(wait)
	for _, h := range all {
		if !timed {
			select {
			case <-h.ended:
			case <-late:
				late = time.After(0)
				h.read.Close()
			}
		}
		<-h.ended
		h.read.Close()
	}
}

// headerFile writes header fields to a file, one per line, as they came.
func headerFile(fields hookglass.Headers) (name string, err error) {
	f, err := os.CreateTemp("", "hookglass-headers-*")
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	for _, h := range fields {
		if ValidField(h) { // an invalid one could span several lines
			b.WriteString(h.Name + ": " + h.Value + "\n")
		}
	}
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// mediaOf returns the media type of a command's output, for a sender that waits for it.
func mediaOf(body []byte, whole bool) string {
	text := bytes.TrimSpace(body)
	for i := 0; !whole && i < utf8.UTFMax-1 && !utf8.Valid(text); i++ { // it may end within a character
		text = text[:len(text)-1]
	}
	switch {
	case len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid(text):
		return "application/json"
	case utf8.Valid(text):
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// beginning keeps the first bytes of what is written, and counts all bytes.
type beginning struct {
	keep int
	kept []byte
	size int64
}

func (b *beginning) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), b.keep-len(b.kept))]...)
	b.size += int64(len(p))
	return len(p), nil
}

// ending keeps the last bytes of what is written.
type ending struct {
	keep int
	kept []byte
	cut  bool
}

func (e *ending) Write(p []byte) (int, error) {
	e.kept = append(e.kept, p[max(0, len(p)-e.keep):]...)
	if over := len(e.kept) - e.keep; over > 0 || len(p) > e.keep {
		e.kept, e.cut = slices.Delete(e.kept, 0, max(over, 0)), true
	}
	return len(p), nil
}

// text returns the kept bytes, trimmed, without an incomplete character at the beginning.
func (e *ending) text() string {
	kept := e.kept
	for i := 0; e.cut && i < utf8.UTFMax-1 && len(kept) > 0 && !utf8.RuneStart(kept[0]); i++ {
		kept = kept[1:]
	}
	return strings.TrimSpace(api.Text(string(kept)))
}
