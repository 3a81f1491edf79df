//go:build unix

package listen_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/listen"
)

// runs starts a listener that runs a command in a directory of its own for each event.
func runs(t *testing.T, s *server, command string, change func(*listen.Config)) (l *local, dir string) {
	t.Helper()
	dir = t.TempDir()
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	to, err := listen.RunCommand("cd " + dir + "; " + command)
	if err != nil {
		t.Fatal(err)
	}
	l = start(t, s, "", func(c *listen.Config) {
		c.Environment = []string{"PATH=" + os.Getenv("PATH"), "OWN=kept", "HOOKGLASS_REPLAY_ID=of another", "HOOKGLASS_EVENT_TYPE=of another"}
		c.Endpoints[0].Target = &to
		if change != nil {
			change(c)
		}
	})
	t.Cleanup(func() {
		l.stop()
		<-l.ended
		if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
			t.Errorf("files are left: %v, %v", left, err)
		}
	})
	return l, dir
}

// reported is the first report about an event, once it is there.
func reported(t *testing.T, s *server, id string) api.DeliveryReport {
	t.Helper()
	eventually(t, "a report of "+id, func() bool { return get(s, func() bool { return len(s.reports[id]) > 0 }) })
	return get(s, func() api.DeliveryReport { return s.reports[id][0] })
}

func contents(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Nothing of an event is part of the command line: what a sender writes is never read by the shell.
func TestACommandIsGivenTheEvent(t *testing.T) {
	s := newServer(t)
	l, dir := runs(t, s, `cat > body; cp "$HOOKGLASS_HEADERS_FILE" fields; env -0 > facts; echo '{"taken": true}'`, func(c *listen.Config) {
		c.Endpoints[0].Headers = hookglass.Headers{{Name: "x-dup", Value: "set"}}
	})
	body, evil := "\x00\xff\r\n$(touch pwned)`touch pwned`\n{\"a\":1}", "$(touch pwned);`touch pwned`\"'&|\\"
	id := s.arrive(api.TunnelRequest{
		Path: "/a%2Fb//" + evil + "\x00", QueryString: "a=" + evil + "&b=%3D", Method: "PATCH", Body: base64of(body), IPAddress: some("203.0.113.7"), DetectedProvider: "stripe",
		ProviderEventData: &api.ProviderEventData{EventType: some("in\x00voice\n" + evil)},
		HeaderList:        [][2]string{{"Host", "hooks.example.com"}, {"x-lower", evil}, {"X-Dup", "b"}, {"Connection", "x-gone"}, {"X-Gone", "1"}, {"Content-Type", "text/x; v=" + evil}},
	})
	r := reported(t, s, id)
	if r.StatusCode.Value != 200 || r.ResponseMessage != "exit code 0" || r.TargetURL != "exec:command" || r.ResolvedURL != "exec:command" || r.FailureCategory != "" {
		t.Errorf("the report is %+v", r)
	}
	if r.Body != "{\"taken\": true}\n" || r.ContentType != "application/json" || r.CaptureComplete == nil || !*r.CaptureComplete || *r.DecodedBytesObserved != 16 {
		t.Errorf("the evidence is %+v", r.TunnelEvidence)
	}
	if got := contents(t, filepath.Join(dir, "body")); got != body {
		t.Errorf("stdin was %q, want %q", got, body)
	}
	if got, want := contents(t, filepath.Join(dir, "fields")), "Host: hooks.example.com\nx-lower: "+evil+"\nConnection: x-gone\nX-Gone: 1\nContent-Type: text/x; v="+evil+"\nx-dup: set\n"; got != want {
		t.Errorf("the header fields were\n%q, want\n%q", got, want)
	}
	facts := slices.DeleteFunc(strings.Split(contents(t, filepath.Join(dir, "facts")), "\x00"), func(f string) bool {
		return !strings.HasPrefix(f, "HOOKGLASS_") && !strings.HasPrefix(f, "OWN=") || strings.HasPrefix(f, "HOOKGLASS_HEADERS_FILE=")
	})
	slices.Sort(facts)
	want := []string{
		"HOOKGLASS_CONTENT_TYPE=text/x; v=" + evil, "HOOKGLASS_ENDPOINT_ID=ep_a", "HOOKGLASS_EVENT_TYPE=in\uFFFDvoice\n" + evil, "HOOKGLASS_IP_ADDRESS=203.0.113.7", "HOOKGLASS_METHOD=PATCH",
		"HOOKGLASS_PATH=/a%2Fb//" + strings.ReplaceAll(evil, " ", "%20") + "%00", "HOOKGLASS_PROVIDER=stripe", "HOOKGLASS_QUERY=a=" + strings.ReplaceAll(evil, " ", "%20") + "&b=%3D",
		"HOOKGLASS_REPLAY_ID=", "HOOKGLASS_REQUEST_ID=" + id, "OWN=kept",
	}
	if !slices.Equal(facts, want) {
		t.Errorf("the facts are\n%q, want\n%q", facts, want)
	}
	if to := get(s, func() []string { return s.targets }); !slices.Equal(to, []string{"exec:command"}) {
		t.Errorf("the server is told of the targets %q", to)
	}
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("the shell has read what a sender wrote")
	}
	sum, err := l.end(true)
	if err != nil || sum.Delivered != 1 || len(told[listen.Warning](l)) > 0 {
		t.Errorf("%+v, %v, %v", sum, err, told[listen.Warning](l))
	}
}

func TestHowACommandEndsIsItsAnswer(t *testing.T) {
	s := newServer(t)
	l, _ := runs(t, s, `eval "$(cat)"`, nil) // of this test alone: whoever sends events could do anything
	long := strings.Repeat("ü", 3000)
	for _, c := range []struct {
		command  string
		status   int64
		message  string
		problem  string
		exit     int
		media    string
		observed int64
	}{
		{"true", 200, "exit code 0", "", 0, "", 0},
		{"echo done; echo careful >&2", 200, "exit code 0", "", 0, "text/plain; charset=utf-8", 5},
		{"printf '\\377'", 200, "exit code 0", "", 0, "application/octet-stream", 1},
		{"exit 3", 500, "exit code 3", "exit code 3", 3, "", 0},
		{"echo half; echo first >&2; echo last >&2; exit 4", 500, "exit code 4: first\nlast", "exit code 4", 4, "text/plain; charset=utf-8", 5},
		{"no-such-program", 500, "not found", "exit code 127", 127, "", 0},
		{"kill -9 $$", 500, "signal: killed", "signal: killed", -1, "", 0},
		{"printf '%s' " + long + " >&2; exit 1", 500, "exit code 1: " + long[:2<<10], "exit code 1", 1, "", 0},
		{"printf '%s' " + long + "x >&2; exit 1", 500, "exit code 1: " + long[:2<<10-2] + "x", "exit code 1", 1, "", 0},
		{"printf 'ü%.0s' $(seq 50000)", 200, "exit code 0", "", 0, "text/plain; charset=utf-8", 100_000},
		{"printf x; printf 'ü%.0s' $(seq 50000)", 200, "exit code 0", "", 0, "text/plain; charset=utf-8", 100_001},
		{"printf '[1]'", 200, "exit code 0", "", 0, "application/json", 3},
		{"printf '{1}'", 200, "exit code 0", "", 0, "text/plain; charset=utf-8", 3},
		{"printf 1", 200, "exit code 0", "", 0, "text/plain; charset=utf-8", 1},
		{"echo", 200, "exit code 0", "", 0, "text/plain; charset=utf-8", 1},
		{"sleep 5 >&2 & echo started", 200, "exit code 0", "", 0, "text/plain; charset=utf-8", 8},
	} {
		id := s.arrive(api.TunnelRequest{Body: base64of(c.command)})
		r := reported(t, s, id)
		if r.StatusCode.Value != c.status || r.ResponseMessage != c.message && !strings.HasSuffix(r.ResponseMessage, c.message) || r.FailureCategory != "" || r.ContentType != c.media || *r.DecodedBytesObserved != c.observed {
			t.Errorf("%.60s: the report is %+v", c.command, r)
		}
		if whole := c.observed <= evidenceLimit; *r.CaptureComplete != whole || *r.RetainedBytes != min(c.observed, evidenceLimit) || (r.TruncationReason == "body_limit") == whole {
			t.Errorf("%.60s: the evidence is %d bytes, whole: %v, %q", c.command, *r.RetainedBytes, *r.CaptureComplete, r.TruncationReason)
		}
		eventually(t, "a note", func() bool {
			return len(told[listen.Delivered](l)) > 0 && told[listen.Delivered](l)[len(told[listen.Delivered](l))-1].Event.ID == id
		})
		all := told[listen.Delivered](l)
		if d := all[len(all)-1]; !d.Command || d.ExitCode != c.exit || d.Problem != c.problem || d.OK() != (c.status == 200) || strings.Contains(c.command, "careful") != (d.Stderr == "careful") {
			t.Errorf("%.60s: told %+v", c.command, d)
		}
	}
	if sum, err := l.end(true); err != nil || sum.Failed != 6 || sum.Delivered != 10 {
		t.Errorf("%+v, %v", sum, err)
	}
}

// What a command starts in the background and leaves is left alone, and holds nothing up.
func TestWhatACommandLeavesBehindIsLeft(t *testing.T) {
	s := newServer(t)
	_, dir := runs(t, s, `sleep 1000 & echo $! > pid`, nil)
	if r := reported(t, s, s.arrive(api.TunnelRequest{})); r.StatusCode.Value != 200 {
		t.Errorf("%+v", r)
	}
	pid := pidIn(t, filepath.Join(dir, "pid"))
	if !alive(pid) {
		t.Error("it was ended")
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

func pidIn(t *testing.T, path string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(contents(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// alive reports whether a process runs. One that has ended may be kept for a while by whoever is its parent now.
func alive(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		return !strings.Contains(string(stat), ") Z ")
	}
	return syscall.Kill(pid, 0) == nil
}

func TestCommandsRunOneAtATimeAndInOrder(t *testing.T) {
	s := newServer(t)
	l, dir := runs(t, s, `echo "$HOOKGLASS_REQUEST_ID$HOOKGLASS_REPLAY_ID" >> log; sleep "$(cat)"; echo end >> log`, nil)
	var want string
	for i := range 12 {
		id := s.arrive(api.TunnelRequest{Body: base64of([]string{"0.5", "0", "0.05"}[min(i, 1+i%2)])})
		want += id + "\nend\n"
	}
	eventually(t, "all", func() bool { return get(s, func() bool { return len(s.reports) == 12 }) })
	if got := contents(t, filepath.Join(dir, "log")); got != want {
		t.Errorf("they ran as\n%s", got)
	}
	l.mu.Lock()
	first := slices.IndexFunc(l.notes, func(n listen.Note) bool { _, ok := n.(listen.Delivered); return ok })
	begun := 0
	for _, n := range l.notes[:max(first, 0)] {
		if _, ok := n.(listen.Arrived); ok {
			begun++
		}
	}
	l.mu.Unlock()
	if begun < 1 || begun > 2 { // the second is begun when the first has ended, which may be before that is told
		t.Errorf("%d were begun before the first had ended", begun)
	}
	// A replay waits for its turn, too.
	id := s.arrive(api.TunnelRequest{Body: base64of("0.5")})
	eventually(t, "the start", func() bool { return strings.HasSuffix(contents(t, filepath.Join(dir, "log")), id+"\n") })
	command := api.FromTunnelCommand(hookglass.TunnelCommand{ID: "tcmd_1", Request: hookglass.SentRequest{Method: "POST", Body: []byte("0")}, Timeout: patience, ExpiresAt: time.Now().Add(time.Minute)}, "/", "token")
	s.set(func() { s.push("ep_a", command) })
	eventually(t, "a result", func() bool { return get(s, func() bool { return len(s.results) == 1 }) })
	if got := contents(t, filepath.Join(dir, "log")); got != want+id+"\nend\ntcmd_1\nend\n" {
		t.Errorf("the replay ran as\n%s", got)
	}
	if sum, err := l.end(true); err != nil || sum.Delivered != 13 {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestAReplayRunsTheCommand(t *testing.T) {
	s := newServer(t)
	l, _ := runs(t, s, `echo "$HOOKGLASS_METHOD $HOOKGLASS_PATH $HOOKGLASS_QUERY $HOOKGLASS_REPLAY_ID $HOOKGLASS_REQUEST_ID-$HOOKGLASS_ENDPOINT_ID $(cat "$HOOKGLASS_HEADERS_FILE") $(cat)"; exec 2>&-; test "$HOOKGLASS_PATH" != /bad`, nil)
	replay := func(url string) api.TunnelReplayResult {
		n := get(s, func() int { return len(s.results) })
		c := api.FromTunnelCommand(hookglass.TunnelCommand{
			ID: fmt.Sprintf("tcmd_%d", n), Timeout: patience, ExpiresAt: time.Now().Add(time.Minute),
			Request: hookglass.SentRequest{Method: "PUT", Headers: hookglass.Headers{{Name: "X-a", Value: "1"}}, Body: []byte("body")},
		}, url, "token")
		s.set(func() { s.push("ep_a", c) })
		eventually(t, "a result", func() bool { return get(s, func() bool { return len(s.results) == n+1 }) })
		return get(s, func() api.TunnelReplayResult { return s.results[n] })
	}
	for url, want := range map[string]string{
		"exec:command":                "PUT /  ",
		"exec:command?a=1":            "PUT / a=1 ",
		"exec:command/orders?a=1&b=2": "PUT /orders a=1&b=2 ",
		"/orders":                     "PUT /orders  ",
	} {
		r := replay(url)
		if want += r.CommandID + " -ep_a X-a: 1 body\n"; r.StatusCode.Value != 200 || r.Body != want || r.Error != "" || !*r.RequestMayHaveBeenSent {
			t.Errorf("%s: %+v, want %q", url, r, want)
		}
	}
	if r := replay("/bad"); r.StatusCode.Value != 500 || r.ResponseMessage != "exit code 1" {
		t.Errorf("%+v", r)
	}
	if n := len(told[listen.Replayed](l)); n != 5 {
		t.Errorf("told of %d", n)
	}
}

// A command that does not end in time is ended with all that it started, also what does not heed a request to.
func TestACommandHasSoMuchTime(t *testing.T) {
	s := newServer(t)
	_, dir := runs(t, s, `trap '' TERM; sleep 1000 & echo $! > pid.new; mv pid.new pid; echo working >&2; wait; sleep 1000`, nil)
	pidFile := filepath.Join(dir, "pid")
	for n, timeout := 1, 2*time.Second; ; n, timeout = n+1, 2*timeout {
		c := api.FromTunnelCommand(hookglass.TunnelCommand{ID: fmt.Sprint(n), Request: hookglass.SentRequest{Method: "POST"}, Timeout: timeout, ExpiresAt: time.Now().Add(time.Hour)}, "/", "token")
		s.set(func() { s.push("ep_a", c) })
		eventually(t, "a result", func() bool { return get(s, func() bool { return len(s.results) == n }) })
		r := get(s, func() api.TunnelReplayResult { return s.results[n-1] })
		if r.StatusCode.Value != 0 || r.FailureCategory != "timeout" || !strings.Contains(r.Error, "did not end in time") || !*r.RequestMayHaveBeenSent {
			t.Errorf("%+v", r)
		}
		if _, err := os.Stat(pidFile); err == nil || timeout > patience {
			break
		} // the time was over before it had started something
	}
	pid := pidIn(t, pidFile)
	eventually(t, "the end of what it started", func() bool { return !alive(pid) })
}

// A command that is under way at the end has the time of any delivery, and is not reported where that does not do: so
// its event stays undelivered.
func TestACommandIsEndedWithTheListener(t *testing.T) {
	s := newServer(t)
	l, dir := runs(t, s, `if test "$(cat)" = short; then while ! test -e end; do sleep 0.05; done; exit; fi; sleep 1000 & echo $! > pid.new; mv pid.new pid; wait`, nil)
	short := s.arrive(api.TunnelRequest{Body: base64of("short")})
	long := s.arrive(api.TunnelRequest{Body: base64of("long")})
	eventually(t, "the start of the first", func() bool { return len(told[listen.Arrived](l)) == 1 && l.Admitted() == 2 })
	l.stop()
	eventually(t, "the goodbye", func() bool { return get(s, func() bool { return s.left == 1 }) })
	if err := os.WriteFile(filepath.Join(dir, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the start of the second", func() bool { _, err := os.Stat(filepath.Join(dir, "pid")); return err == nil })
	eventually(t, "the report of the first", func() bool { return get(s, func() bool { return len(s.reports[short]) == 1 }) })
	l.Leave()
	sum, err := l.end(false)
	if err != nil || sum.Delivered != 1 || sum.Waiting != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	if got := get(s, func() [2]int { return [2]int{len(s.reports[short]), len(s.reports[long])} }); got != [2]int{1, 0} {
		t.Errorf("reports %v", got)
	}
	pid := pidIn(t, filepath.Join(dir, "pid"))
	eventually(t, "the end of what it started", func() bool { return !alive(pid) })
}

func TestWhatWasMissedIsGivenToTheCommand(t *testing.T) {
	s := newServer(t)
	l, dir := runs(t, s, `cat >> log; test "$HOOKGLASS_PATH" != /bad`, nil)
	s.set(func() { s.refuse = 503 })
	s.cut()
	eventually(t, "a gap", func() bool { return get(s, func() bool { return len(s.gaps) == 1 }) })
	var ids []string
	for i := range 5 {
		ids = append(ids, s.arrive(api.TunnelRequest{Body: base64of(fmt.Sprint(i)), Path: []string{"/", "/bad"}[i/4]}))
	}
	s.set(func() { s.refuse = 0 })
	eventually(t, "what was missed", func() bool { return len(told[listen.Offline](l)) > 0 })
	if o := told[listen.Offline](l)[0]; o.Missed != 5 || o.Delivered != 4 || o.Failed != 1 {
		t.Errorf("%+v", o)
	}
	if got := contents(t, filepath.Join(dir, "log")); got != "01234" {
		t.Errorf("it got %q", got)
	}
	if r := reported(t, s, ids[4]); r.StatusCode.Value != 500 {
		t.Errorf("%+v", r)
	}
}

// slowly takes what is written when it is told to.
type slowly struct {
	asked, free chan struct{}
	text        string
}

func (s *slowly) Write(p []byte) (int, error) {
	if s.text += string(p); len(p) > 0 && s.text == "first " {
		close(s.asked)
		<-s.free
	}
	return len(p), nil
}

// A machine that is busy or was asleep comes to the output when the time for it is over: it is read all the same.
func TestWhatACommandWroteIsReadHoweverLate(t *testing.T) {
	to := &slowly{asked: make(chan struct{}), free: make(chan struct{})}
	out, err := listen.Hear(to)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Say("first "); err != nil {
		t.Fatal(err)
	}
	<-to.asked
	last := strings.Repeat("last", 12<<10)
	if err := errors.Join(out.Say(last), out.Late()); err != nil {
		t.Fatal(err)
	}
	close(to.free)
	out.HeardOut()
	if to.text != "first "+last {
		t.Errorf("%d bytes were read of %d", len(to.text), len(last)+6)
	}
}

func TestABodyThatIsNotReadHoldsNothingUp(t *testing.T) {
	s := newServer(t)
	_, dir := runs(t, s, `echo x >> log`, nil)
	if r := reported(t, s, s.arrive(api.TunnelRequest{Body: base64of(strings.Repeat("x", 1<<20))})); r.StatusCode.Value != 200 {
		t.Errorf("%+v", r)
	}
	if got := contents(t, filepath.Join(dir, "log")); got != "x\n" {
		t.Errorf("it ran as %q", got)
	}
}

func TestWhatCanNotBeStartedIsSaid(t *testing.T) {
	s := newServer(t)
	l, _ := runs(t, s, `true`, nil)
	id := s.arrive(api.TunnelRequest{ProviderEventData: &api.ProviderEventData{EventType: some(strings.Repeat("x", 2<<20))}})
	r := reported(t, s, id)
	if r.StatusCode.Value != 0 || r.FailureCategory != "unknown_error" || !strings.Contains(r.ResponseMessage, "could not be started") {
		t.Errorf("%+v", r)
	}
	if sum, _ := l.end(true); sum.Failed != 1 {
		t.Errorf("%+v", sum)
	}
	for _, command := range []string{"", " \n", "a\x00b"} {
		if _, err := listen.RunCommand(command); err == nil {
			t.Errorf("%q is a command", command)
		}
	}
}
