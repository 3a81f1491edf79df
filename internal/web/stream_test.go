package web_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// message is one event of a stream.
type message struct{ event, id, data string }

// listener is an open stream.
type listener struct {
	b      *browser
	next   chan message // closed when the stream ends
	cancel context.CancelFunc
}

func (b *browser) listen(address string, header ...string) *listener {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	b.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := *b.http
	client.Timeout = 0
	res, err := client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		b.t.Fatalf("%s: %d %v", address, res.StatusCode, res.Header)
	}
	l := &listener{b, make(chan message, 2000), cancel}
	go func() {
		defer close(l.next)
		defer res.Body.Close()
		var m message
		for lines := bufio.NewReader(res.Body); ; {
			line, err := lines.ReadString('\n')
			if err == io.EOF || err != nil {
				return
			}
			line = strings.TrimSuffix(line, "\n")
			name, value, _ := strings.Cut(line, ":")
			switch value = strings.TrimPrefix(value, " "); {
			case line == "":
				l.next <- m
				m = message{}
			case name == "event":
				m.event = value
			case name == "id":
				m.id = value
			case name == "data":
				m.data += value
			}
		}
	}()
	return l
}

// want returns the next event of that name, passing over others.
func (l *listener) want(event string) message {
	l.b.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case m, ok := <-l.next:
			if !ok {
				l.b.t.Fatalf("the stream ended; a %s was to come", event)
			}
			if m.event == event {
				return m
			}
		case <-limit:
			l.b.t.Fatalf("no %s came", event)
		}
	}
}

// ends waits for the end of the stream.
func (l *listener) ends() {
	l.b.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case _, ok := <-l.next:
			if !ok {
				return
			}
		case <-limit:
			l.b.t.Fatal("the stream goes on")
		}
	}
}

// streamOf finds, in the page, where its stream is and from which place on.
func streamOf(t *testing.T, s *site, page answer) string {
	t.Helper()
	address := regexp.MustCompile(`data-stream="([^"]*)"`).FindStringSubmatch(page.body)[1]
	newest := regexp.MustCompile(`data-newest="([^"]*)"`).FindStringSubmatch(page.body)[1]
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	return s.url + strings.ReplaceAll(address, "&amp;", "&") + separator + "after=" + newest
}

func TestTheStreamGoesOnWhereThePageEnded(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	s.hook(sent{target: "/before"})
	page := b.want(200, "GET", s.page(""), nil)
	between := s.hook(sent{target: "/between"}) // after the page was rendered, before the stream was opened

	l := b.listen(streamOf(t, s, page))
	if m := l.want("row"); !strings.Contains(m.data, string(between)) || !strings.Contains(m.data, "/between") {
		t.Errorf("first came %+v", m)
	}
	l.want("current") // nothing is missing any more
	after := s.hook(sent{target: "/after"})
	if m := l.want("row"); !strings.Contains(m.data, string(after)) {
		t.Errorf("then came %+v", m)
	}
	if m := l.want("count"); m.data != "3" {
		t.Errorf("the count is %q", m.data)
	}
}

func TestAStreamThatBrokeLosesNothing(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	address := streamOf(t, s, b.want(200, "GET", s.page(""), nil))
	l := b.listen(address)
	s.hook(sent{target: "/1"})
	last := l.want("row")
	l.cancel()
	l.ends()
	missed := []hookglass.EventID{s.hook(sent{target: "/2"}), s.hook(sent{target: "/3"})}
	l = b.listen(address, "Last-Event-ID", last.id)
	for _, id := range missed {
		if m := l.want("row"); !strings.Contains(m.data, string(id)) {
			t.Errorf("got %+v, want %s", m, id)
		}
	}
}

// A page holds 1,000 requests, so it is told of no more, and where it goes on behind them.
func TestAStreamThatMissedMuchSendsTheNewest(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	address := streamOf(t, s, b.want(200, "GET", s.page(""), nil))
	rare := streamOf(t, s, b.want(200, "GET", s.page("?q=path:/rare"), nil))
	passed := s.hook(sent{target: "/passed"})
	oldest := s.hook(sent{target: "/rare"})
	for range 998 {
		s.hook(sent{})
	}
	l := b.listen(address)
	if m := l.want("row"); !strings.Contains(m.data, string(passed)) {
		t.Errorf("of 1,000, first came %+v", m)
	}
	l.cancel()

	newest := s.hook(sent{target: "/rare"})
	l = b.listen(address)
	skip := l.want("skip")
	rows := 0
	for m := l.want("row"); ; m = l.want("row") {
		if rows++; rows == 1 && !strings.Contains(m.data, string(oldest)) {
			t.Errorf("first came %+v", m)
		}
		if strings.Contains(m.data, string(newest)) {
			break
		}
	}
	if count := l.want("count"); rows != 1000 || count.data != "1001" {
		t.Errorf("%d rows came, of %s", rows, count.data)
	}
	b.want(200, "GET", s.page("/rows?cursor="+skip.data), nil).holds(t, string(passed))
	after := s.hook(sent{})
	if m := l.want("row"); !strings.Contains(m.data, string(after)) {
		t.Errorf("then came %+v", m)
	}

	l = b.listen(rare) // a search that finds few of many leaves out none
	l.want("hello")
	for _, want := range []hookglass.EventID{oldest, newest} {
		if m := <-l.next; m.event != "row" || !strings.Contains(m.data, string(want)) {
			t.Errorf("came %+v, want %s", m, want)
		}
	}
}

func TestTheStreamHoldsWhatTheQueryMeans(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	page := b.want(200, "GET", s.page("?q="+url.QueryEscape("body./kind:wanted header.x-mark:yes")), nil)
	l := b.listen(streamOf(t, s, page))
	s.hook(json(`{"kind":"wanted"}`))
	s.hook(sent{body: `{"kind":"other"}`, headers: hookglass.Headers{{Name: "X-Mark", Value: "yes"}}})
	wanted := s.hook(sent{body: `{"kind":"wanted"}`, headers: hookglass.Headers{{Name: "X-Mark", Value: "yes"}}})
	if m := l.want("row"); !strings.Contains(m.data, string(wanted)) {
		t.Errorf("came %+v", m)
	}
	b.want(422, "GET", s.page("/stream?q=sig:maybe"), nil)
	b.want(422, "GET", s.page("/stream?after=rubbish"), nil)
}

func TestTheStreamTellsThatRequestsWereMarkedOrDeleted(t *testing.T) {
	t.Parallel() // it waits for most of its time
	s := newSite(t)
	b := s.signedIn()
	old := s.hook(sent{})
	l := b.listen(streamOf(t, s, b.want(200, "GET", s.page(""), nil)))
	l.want("current")
	fresh := s.hook(sent{})
	l.want("row") // as it came
	if _, err := s.captures.Tag(t.Context(), s.who, string(s.endpoint.ID), string(fresh), "urgent"); err != nil {
		t.Fatal(err)
	}
	if m := l.want("changed"); m.data != "2 new" {
		t.Errorf("a tag: the count is %q", m.data)
	}
	err := s.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		return tx.JudgeSignatures(store.SignatureVerdict{EndpointNum: s.endpoint.Num, EventSeq: s.seq(s.endpoint, fresh), Status: hookglass.SignatureVerified})
	})
	if err != nil {
		t.Fatal(err)
	}
	if m := l.want("changed"); m.data != "2 new" {
		t.Errorf("a late verdict: the count is %q", m.data)
	}
	err = s.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		_, err := tx.RecordReport(string(s.endpoint.ID), string(fresh), &hookglass.DeliveryReport{Version: 1, AttemptID: "a", StatusCode: 502})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if m := l.want("changed"); m.data != "2 new" {
		t.Errorf("a delivery that failed: the count is %q", m.data)
	}
	b.want(200, "GET", s.page("/rows"), nil).holds(t, ">1 failed<")
	b.want(200, "GET", s.page("/requests/"+string(fresh)+"/row"), nil).holds(t, ">1 failed<")
	if err := s.captures.Delete(t.Context(), s.who, string(s.endpoint.ID), string(old)); err != nil {
		t.Fatal(err)
	}
	if m := l.want("changed"); m.data != "1 new" {
		t.Errorf("a deletion: the count is %q", m.data)
	}

	// What is marked while many more come is no longer among those that are looked at.
	for range 120 {
		s.hook(sent{})
	}
	if _, err := s.captures.Tag(t.Context(), s.who, string(s.endpoint.ID), string(fresh), "billing"); err != nil {
		t.Fatal(err)
	}
	if m := l.want("changed"); m.data != "121 all" {
		t.Errorf("a tag further back: the count is %q", m.data)
	}
}

// A browser that is short of connections opens one after another. Each tells what was marked since the one before.
func TestAConnectionTellsWhatWasMarkedSinceTheOneBefore(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	at := func() string { return streamOf(t, s, b.want(200, "GET", s.page(""), nil)) }
	first := s.hook(sent{})
	address, marks := at(), ""
	told := func() (changed []string) {
		t.Helper()
		l := b.listen(address + "&marks=" + marks)
		defer l.cancel()
		for m := range l.next {
			switch m.event {
			case "changed":
				changed = append(changed, m.data)
			case "current":
				marks = m.data
				return changed
			}
		}
		t.Fatal("the stream ended")
		return nil
	}
	if got := told(); got != nil || marks == "" {
		t.Errorf("the first: %q, %q", got, marks)
	}
	if got := told(); got != nil {
		t.Errorf("nothing happened: %q", got)
	}
	second := s.hook(sent{})
	if got := told(); got != nil {
		t.Errorf("another came: %q", got)
	}
	address = at()
	if _, err := s.captures.Tag(t.Context(), s.who, string(s.endpoint.ID), string(first), "urgent"); err != nil {
		t.Fatal(err)
	}
	s.hook(sent{})
	if got := told(); len(got) != 1 || got[0] != "3 new" {
		t.Errorf("one was tagged, and another came: %q", got)
	}
	address = at()
	if err := s.captures.Delete(t.Context(), s.who, string(s.endpoint.ID), string(second)); err != nil {
		t.Fatal(err)
	}
	if got := told(); len(got) != 1 || got[0] != "2 new" {
		t.Errorf("one was deleted: %q", got)
	}
	if got := told(); got != nil {
		t.Errorf("all was told: %q", got)
	}
}

func TestTheStreamEndsWithTheSession(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	l := b.listen(s.page("/stream"))
	l.want("hello")
	b.want(303, "POST", "/sign-out", url.Values{})
	if m := l.want("end"); m.data != "signed out" {
		t.Errorf("the reason is %q", m.data)
	}
	l.ends()

	l = b.listen(s.page("/stream")) // a browser that tries again is told, and not refused for ever
	if m := l.want("end"); m.data != "signed out" {
		t.Errorf("the reason is %q", m.data)
	}
	l.ends()
}

func TestTheStreamEndsWithTheEndpoint(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	l := b.listen(s.page("/stream"))
	l.want("hello")
	b.want(303, "POST", s.page("/delete"), url.Values{})
	if m := l.want("end"); m.data != "" {
		t.Errorf("the reason is %q", m.data)
	}
	l.ends()
}

func TestTheStreamEndsWhenTheServerDrains(t *testing.T) {
	s := newSite(t)
	l := s.signedIn().listen(s.page("/stream"))
	l.want("hello")
	close(s.drain)
	l.ends()
}

func TestAStreamOfOthersSaysNothing(t *testing.T) {
	s := newSite(t)
	b := s.visitor()
	b.want(303, "POST", "/temporary", url.Values{})
	s.hook(sent{target: "/private"})
	l := b.listen(s.page("/stream"))
	if m := l.want("end"); m.data != "signed out" { // as of an endpoint that is nobody's
		t.Errorf("it said %+v", m)
	}
	l.ends()
}

// What waits for the browser may be much, and it may read slowly.
func TestAStreamOnItsWayThroughWhatIsStoredEnds(t *testing.T) {
	for name, end := range map[string]func(*site, string){
		"with the session": func(s *site, secret string) {
			heard := s.db.Listen(store.TopicTokens)
			defer heard.Close()
			if err := s.accounts.SignOut(s.t.Context(), secret); err != nil {
				s.t.Error(err)
			}
			<-heard.C
		},
		"with the server": func(s *site, _ string) { close(s.drain) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			b := s.signedIn()
			for range 50 {
				s.hook(sent{})
			}
			at, err := url.Parse(s.url)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequestWithContext(t.Context(), "GET", s.page("/stream"), nil)
			r.AddCookie(b.http.Jar.Cookies(at)[0])
			w := &slow{ResponseRecorder: httptest.NewRecorder(), atFirst: func() { end(s, b.http.Jar.Cookies(at)[0].Value) }}
			s.server.Config.Handler.ServeHTTP(w, r)
			if w.rows == 0 || w.rows > 10 {
				t.Errorf("%d of 50 rows were sent", w.rows)
			}
		})
	}
}

// slow is a browser to which something happens at the first row.
type slow struct {
	*httptest.ResponseRecorder
	atFirst func()
	rows    int
}

func (w *slow) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("event: row")) {
		if w.rows++; w.rows == 1 {
			w.atFirst()
		}
	}
	return w.ResponseRecorder.Write(p)
}
