package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// The goals.
const (
	tunnelP50Goal    = 5 * time.Millisecond
	tunnelP99Goal    = 30 * time.Millisecond
	tunnelRate       = 200  // captures a second whose way is timed
	tunnelEventsGoal = 2000 // a second through one session
	tunnelIdleGoal   = 250 << 20
)

// connectsPerToken keeps below the rate limit of one token, also when all sockets come twice in a minute.
const connectsPerToken = 14

// opensAtOnce is how many sockets are being opened at a time.
const opensAtOnce = 25

// tunnelRow is what the tunnel part found on one database.
type tunnelRow struct {
	database  string
	p50, p99  time.Duration // from the sender's request to the client's message, at tunnelRate
	perSecond float64       // through one session, from a backlog that builds up while it is sent
	captured  float64       // meanwhile
	idle      int
	memory    int64 // with the idle sessions, and without
	before    int64
	core      float64       // of a processor, that the idle sessions take
	back      time.Duration // after which all were there again when the service had been restarted
	missed    int           // events that a client missed
	caughtUp  time.Duration // after which it had them
}

// tunnelClient is one socket that is subscribed to the benchmark's endpoint.
type tunnelClient struct {
	ws *websocket.Conn
}

// ticket asks for one by a token.
func (s *service) ticket(ctx context.Context, token string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/api/v1/tunnel/connect", strings.NewReader(`{"endpoint_id":"`+s.endpoint+`"}`))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var got struct{ Ticket string }
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("a ticket was answered %s", res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		return "", err
	}
	return got.Ticket, nilIf(got.Ticket != "", "no ticket")
}

func nilIf(ok bool, what string) error {
	if ok {
		return nil
	}
	return errors.New(what)
}

// connect opens a socket and subscribes.
func (s *service) connect(ctx context.Context, token string) (*tunnelClient, error) {
	ticket, err := s.ticket(ctx, token)
	if err != nil {
		return nil, err
	}
	ws, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(s.base, "http")+"/cable?ticket="+ticket, nil)
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(64 << 20)
	c := &tunnelClient{ws}
	identifier, err := json.Marshal(`{"channel":"TunnelChannel","endpoint_id":"` + s.endpoint + `"}`)
	if err == nil {
		err = ws.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"command":"subscribe","identifier":%s}`, identifier))
	}
	for err == nil {
		var text []byte
		if _, text, err = ws.Read(ctx); bytes.Contains(text, []byte(`"confirm_subscription"`)) {
			return c, nil
		}
	}
	return nil, errors.Join(err, ws.CloseNow())
}

// idle reads signs of life, and answers pings by that, until the socket ends.
func (c *tunnelClient) idle() {
	for err := error(nil); err == nil; {
		_, _, err = c.ws.Read(context.Background())
	}
}

// measureTunnel measures the way of an event to a connected client, how many go through one session, how soon a client
// has what it missed, and what idle ones take.
func (p *plan) measureTunnel(ctx context.Context, dir, database string, r *report) (err error) {
	s, err := p.service(ctx, dir, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	row := tunnelRow{database: database, idle: p.tunnels}
	if err := p.timeTunnel(ctx, s, &row); err != nil {
		return err
	}
	if err := p.floodTunnel(ctx, s, &row); err != nil {
		return err
	}
	if err := p.catchUp(ctx, s, &row); err != nil {
		return fmt.Errorf("catching up: %w", err)
	}
	if err := p.idleTunnels(ctx, s, &row); err != nil {
		return err
	}
	r.tunnels = append(r.tunnels, row)
	return nil
}

// timeTunnel sends at a fixed rate and times each event until the client has it.
func (p *plan) timeTunnel(ctx context.Context, s *service, row *tunnelRow) error {
	c, err := s.connect(ctx, s.token)
	if err != nil {
		return err
	}
	defer c.ws.CloseNow()
	client := senders64()
	defer client.CloseIdleConnections()
	total := max(20, int(p.time.Seconds()*tunnelRate))
	sent := make([]time.Time, total)
	var mu sync.Mutex
	var ways []time.Duration
	received := make(chan error, 1)
	go func() {
		received <- c.each(ctx, total, func(n int, at time.Time) { mu.Lock(); ways = append(ways, at.Sub(sent[n])); mu.Unlock() })
	}()
	var senders sync.WaitGroup
	failures := make(chan error, total)
	tick := time.NewTicker(time.Second / tunnelRate)
	defer tick.Stop()
	for n := range total {
		<-tick.C
		mu.Lock()
		sent[n] = time.Now()
		mu.Unlock()
		senders.Go(func() { failures <- s.post(ctx, client, n) })
	}
	senders.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			return err
		}
	}
	if err := <-received; err != nil {
		return err
	}
	slices.Sort(ways)
	row.p50, row.p99 = ways[len(ways)/2], ways[len(ways)*99/100]
	return nil
}

// senders64 is a client that keeps a connection for each of 64 senders.
func senders64() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
}

// post sends the event of a number, which its path carries.
func (s *service) post(ctx context.Context, client *http.Client, n int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.hook+"/"+strconv.Itoa(n), strings.NewReader(pushBody))
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	return nilIf(res.StatusCode == http.StatusOK, "a sender was answered "+res.Status)
}

// each reads a number of events and tells of each which it was and when it came.
func (c *tunnelClient) each(ctx context.Context, total int, got func(n int, at time.Time)) error {
	ctx, cancel := context.WithTimeout(ctx, forwardLimit)
	defer cancel()
	for seen := 0; seen < total; {
		_, text, err := c.ws.Read(ctx)
		if err != nil {
			return fmt.Errorf("after %d of %d events: %w", seen, total, err)
		}
		at := time.Now()
		_, path, found := bytes.Cut(text, []byte(`"path":"/`))
		if !found {
			continue
		}
		end := bytes.IndexByte(path, '"')
		if n, err := strconv.Atoi(string(path[:max(end, 0)])); err == nil {
			got(n, at)
			seen++
		}
	}
	return nil
}

// floodTunnel sends as fast as it can and measures how fast one session gets them.
func (p *plan) floodTunnel(ctx context.Context, s *service, row *tunnelRow) error {
	c, err := s.connect(ctx, s.token)
	if err != nil {
		return err
	}
	defer c.ws.CloseNow()
	client := senders64()
	defer client.CloseIdleConnections()
	total := max(200, int(p.time.Seconds()*2*tunnelEventsGoal))
	began := time.Now()
	var last time.Time
	received := make(chan error, 1)
	go func() { received <- c.each(ctx, total, func(_ int, at time.Time) { last = at }) }()
	numbers := make(chan int)
	failures := make(chan error, 64)
	var senders sync.WaitGroup
	for range 64 {
		senders.Go(func() {
			for n := range numbers {
				if err := s.post(ctx, client, n); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	for n := range total {
		select {
		case numbers <- n:
		case err := <-failures:
			close(numbers)
			return err
		}
	}
	close(numbers)
	senders.Wait()
	row.captured = float64(total) / time.Since(began).Seconds()
	if err := <-received; err != nil {
		return err
	}
	row.perSecond = float64(total) / last.Sub(began).Seconds()
	return nil
}

// idleTunnels holds many sockets on a service that was restarted.
func (p *plan) idleTunnels(ctx context.Context, s *service, row *tunnelRow) error {
	if err := s.stop(); err != nil {
		return err
	}
	if _, err := s.start(ctx); err != nil {
		return err
	}
	wait(ctx, p.settle)
	var err error
	if row.before, _, err = s.memory(); err != nil {
		return err
	}
	tokens := make([]string, (p.tunnels+connectsPerToken-1)/connectsPerToken)
	for i := range tokens {
		var made struct{ Token string }
		if err := s.admin(ctx, &made, "token", "create", "--email", "bench@example.com"); err != nil {
			return err
		}
		tokens[i] = made.Token
	}
	if err := s.connectAll(ctx, tokens, p.tunnels); err != nil {
		return err
	}
	wait(ctx, p.quiet) // what opening them took is given back
	if row.memory, _, err = s.memory(); err != nil {
		return err
	}
	before, err := s.spent()
	if err != nil {
		return err
	}
	wait(ctx, p.settle)
	after, err := s.spent()
	if err != nil {
		return err
	}
	row.core = (after.service - before.service).Seconds() / p.settle.Seconds()
	if err := s.stop(); err != nil {
		return err
	}
	if _, err := s.start(ctx); err != nil {
		return err
	}
	began := time.Now()
	err = s.connectAll(ctx, tokens, p.tunnels)
	row.back = time.Since(began)
	return err
}

// connectAll opens so many sockets, a share of them by each token. They live until the service stops.
func (s *service) connectAll(ctx context.Context, tokens []string, sockets int) error {
	var opening sync.WaitGroup
	failures := make(chan error, sockets)
	places := make(chan struct{}, opensAtOnce)
	for n := range sockets {
		opening.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			c, err := s.connect(ctx, tokens[n/connectsPerToken])
			if err != nil {
				failures <- err
				return
			}
			go c.idle()
		})
	}
	opening.Wait()
	if len(failures) > 0 {
		return fmt.Errorf("%d of %d sockets: %w", len(failures), sockets, <-failures)
	}
	return nil
}

// wait passes a time.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (r *report) writeTunnels(b *strings.Builder) {
	if len(r.tunnels) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Tunnel\n\nThe way of an event from the sender's request to a connected client, at %d a second; then as many as go through one session while 64 senders send;\n"+
		"then `hookglass listen` is killed, misses events and is started again, until a local target has them and the gap is recovered; then what idle sessions take, and how soon all are back when the service is started anew.\n"+
		"The goals are %v and %v, %s events a second, %v for 1,000 missed events, and %d MB with 5,000 sessions.\n\n",
		tunnelRate, tunnelP50Goal, tunnelP99Goal, thousands(tunnelEventsGoal), catchUpGoal, tunnelIdleGoal>>20)
	t := table{{"database", "p50", "p99", "events/s through one session", "captures/s meanwhile", "missed events", "caught up after", "idle sessions", "memory", "before them", "of a processor", "back after"}}
	for _, u := range r.tunnels {
		t = append(t, []string{u.database, duration(u.p50), duration(u.p99), thousands(int64(u.perSecond)), thousands(int64(u.captured)),
			thousands(int64(u.missed)), duration(u.caughtUp), thousands(int64(u.idle)),
			strconv.FormatInt(u.memory>>20, 10) + " MB", strconv.FormatInt(u.before>>20, 10) + " MB",
			fmt.Sprintf("%.0f %%", 100*u.core), duration(u.back)})
	}
	t.write(b)
}
