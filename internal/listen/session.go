package listen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"hookglass/api"
	"hookglass/client"
)

const (
	heartbeat    = time.Minute            // between our signs of life (spec: decisions, section 10)
	greeting     = 15 * time.Second       // for the welcome and the answers to all subscriptions
	backlogCheck = 100 * time.Millisecond // between checks whether there is room for events left for later
	lookAgain    = time.Second            // until gaps are looked for again if it was too early
	ticketTime   = 30 * time.Second       // to get a ticket: an answer may begin and never end
	maxEvidence  = 1 << 20                // bytes of an answer in a report, even if the server accepts more
	lastSecond   = 253402300799           // the end of 9999, the last year that RFC 3339 can express
)

// takeover lists the times after connecting at which to look for new gaps: a dead node's sessions are taken over within
// 60 s (spec: decisions, section 14).
var takeover = []time.Duration{15 * time.Second, 30 * time.Second, 65 * time.Second}

// session is one socket with its subscriptions.
type session struct {
	l           *Listener
	socket      *client.Cable
	opened      time.Time // when it was begun
	ticket      api.TunnelTicket
	identifiers map[string]string // of the subscription, by endpoint
	endpoints   map[string]string // the reverse: endpoints by identifier
	pending     int               // subscriptions not answered yet
	online      bool              // all subscriptions are answered, and an endpoint is left
	catching    chan struct{}     // holds a value while a recovery is under way
}

// disconnected is the error when the server ends a socket.
type disconnected struct{ reason string }

func (d disconnected) Error() string { return "the server ended the connection: " + d.reason }

// session opens a socket and stays with it until it ends. online reports whether all subscriptions were answered and at
// least one was confirmed.
func (l *Listener) session(ctx context.Context) (online bool, err error) {
	s, err := l.open(ctx)
	if err != nil {
		return false, err
	}
	defer s.socket.Close()
	// The socket outlives ctx, so that deliveries under way can end.
	life, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	recovery, done := context.WithCancel(life)
	defer done()
	defer l.reports.detach()
	messages, ended := s.read(life)
	beat, late, look := time.NewTicker(heartbeat), time.NewTimer(greeting), time.NewTicker(backlogCheck)
	defer beat.Stop()
	defer late.Stop()
	defer look.Stop()
	again := time.NewTimer(l.cfg.looks[0])
	defer again.Stop()
	looks := 0
	for stop := ctx.Done(); ; {
		select {
		case m := <-messages:
			unanswered := s.pending
			up, err := s.take(life, m)
			switch {
			case err != nil:
				return s.online, err
			case s.online:
			case up:
				late.Stop()
				s.ready(recovery)
			case s.pending < unanswered: // a thousand subscriptions may take longer in all
				late.Reset(greeting)
			}
		case err := <-ended:
			return s.online, err
		case <-late.C:
			return s.online, errors.New("the server did not answer the subscriptions")
		case <-beat.C:
			if err := s.heartbeat(); err != nil {
				return s.online, err
			}
		case <-look.C:
			if since := l.backlog(); !since.IsZero() && s.online {
				s.catch(func() { l.catchUp(recovery, since) })
			}
		case <-again.C:
			if !s.online || !s.catch(func() { l.recoverLate(recovery) }) {
				again.Reset(lookAgain)
			} else if looks++; looks < len(l.cfg.looks) {
				again.Reset(time.Until(s.opened.Add(l.cfg.looks[looks])))
			}
		case <-stop:
			stop = nil
			done()
			subscribed := slices.Collect(maps.Values(s.identifiers))
			l.work.Go(func() { s.leave(subscribed, cut) })
		}
	}
}

// open opens a socket.
func (l *Listener) open(ctx context.Context) (s *session, err error) {
	s = &session{l: l, opened: time.Now(), identifiers: make(map[string]string), endpoints: make(map[string]string), catching: make(chan struct{}, 1)}
	asking, cancel := context.WithTimeout(ctx, ticketTime)
	defer cancel()
	if s.ticket, err = l.connect(asking); err != nil {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = errors.New("the server did not answer in time")
		}
		return nil, err
	}
	if n := s.ticket.TunnelProtocol.EvidenceBodyLimit; n > 0 {
		l.mu.Lock()
		l.evidence = min(n, maxEvidence)
		l.mu.Unlock()
	}
	s.socket, err = l.cfg.Client.OpenCable(ctx, s.ticket)
	return s, err
}

// read reads messages until life or the socket ends, and then sends the reason.
func (s *session) read(life context.Context) (<-chan api.CableMessage, <-chan error) {
	messages, ended := make(chan api.CableMessage), make(chan error, 1)
	s.l.work.Go(func() {
		for {
			m, err := s.socket.Read(life)
			if err != nil {
				ended <- err
				return
			}
			select {
			case messages <- m:
			case <-life.Done():
				ended <- life.Err()
				return
			}
		}
	})
	return messages, ended
}

// ready does what has to wait until all subscriptions are answered.
func (s *session) ready(recovery context.Context) {
	l := s.l
	s.online = true
	l.reports.attach(s)
	l.mu.Lock()
	again := l.online
	l.online = true
	if again {
		l.summary.Reconnects++
	} else {
		l.opened = s.opened
	}
	l.mu.Unlock()
	l.tell(Connected{again})
	s.catch(func() { l.recover(recovery) })
}

// catch runs fetch in the background, unless another recovery is under way; then it returns false.
func (s *session) catch(fetch func()) bool {
	select {
	case s.catching <- struct{}{}:
		s.l.work.Go(func() {
			fetch()
			<-s.catching
		})
		return true
	default:
		return false
	}
}

func (s *session) heartbeat() error {
	for _, identifier := range s.identifiers {
		if err := s.socket.Perform(identifier, "heartbeat", nil); err != nil {
			return err
		}
	}
	return nil
}

// connect gets a ticket for one of the endpoints; a socket opened with it serves all of them. There are no tickets for
// mailboxes: when only those are left, it is that of any webhook endpoint.
func (l *Listener) connect(ctx context.Context) (ticket api.TunnelTicket, err error) {
	mailboxes := false
	for _, e := range l.wanted() {
		if mailboxes = mailboxes || e.Email; e.Email {
			continue
		}
		if ticket, err = l.requestTicket(ctx, e.ID); !isGone(err) {
			return ticket, err
		}
		l.forsake(e.ID)
	}
	if !mailboxes {
		return ticket, errNoneLeft
	}
	others, err := l.cfg.Client.Endpoints(ctx)
	if err != nil {
		return ticket, err
	}
	for _, e := range others {
		if e.Kind != "webhook" {
			continue
		}
		if ticket, err = l.requestTicket(ctx, e.ID); !isGone(err) {
			return ticket, err
		}
	}
	return ticket, ErrNoDoor
}

// ErrNoDoor says that there is no webhook endpoint whose tunnel could carry the events of a mailbox.
var ErrNoDoor = errors.New("the tunnel of an inbox needs a webhook endpoint beside it; create one with \"hookglass endpoints create\"")

func (l *Listener) requestTicket(ctx context.Context, endpoint string) (api.TunnelTicket, error) {
	return l.cfg.Client.ConnectTunnel(ctx, api.ConnectTunnel{
		EndpointID: endpoint, InstallationID: l.cfg.Machine.Hostname, ClientName: "hookglass", ClientMetadata: &l.cfg.Machine,
		Capabilities: []string{api.CapabilityEvidence, api.CapabilityReplay},
	})
}

// isGone reports whether the server has no such endpoint.
func isGone(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Code != "" && refused.Status == http.StatusNotFound
}

// take handles one message. up reports that all subscriptions are answered.
func (s *session) take(ctx context.Context, m api.CableMessage) (up bool, err error) {
	l := s.l
	l.mu.Lock()
	l.heard = time.Now()
	l.mu.Unlock()
	switch m.Type {
	case "welcome":
		if len(s.identifiers) > 0 { // others may be reading them by now
			break
		}
		for _, e := range l.wanted() {
			sub := api.TunnelSubscription{Channel: api.TunnelChannel, EndpointID: e.ID, ClientID: s.ticket.TunnelClientID, ClientMetadata: &l.cfg.Machine}
			if to := e.announced(); to != nil {
				sub.TargetURL = to.String()
			}
			identifier, err := s.socket.Subscribe(sub)
			if err != nil {
				return false, err
			}
			s.identifiers[e.ID], s.endpoints[identifier] = identifier, e.ID
			s.pending++
		}
	case "ping":
		var seconds int64
		if json.Unmarshal(m.Message, &seconds) == nil && seconds > 0 && seconds <= lastSecond {
			l.mu.Lock()
			l.ping = time.Unix(seconds, 0)
			l.pinged = time.Now()
			l.mu.Unlock()
		}
	case "confirm_subscription":
		if _, ours := s.endpoints[m.Identifier]; !ours {
			break
		}
		s.pending--
		return s.pending == 0, nil
	case "reject_subscription":
		id, ours := s.endpoints[m.Identifier]
		if !ours {
			break
		}
		s.pending--
		l.forsake(id)
		if len(l.wanted()) == 0 {
			return false, errNoneLeft
		}
		return s.pending == 0, nil
	case "disconnect":
		return false, disconnected{m.Reason}
	case "":
		if lane := l.lanes[s.endpoints[m.Identifier]]; lane != nil {
			lane.message(ctx, m.Message)
		}
	}
	return false, nil
}

// message handles a message for a subscription.
func (a *lane) message(ctx context.Context, text json.RawMessage) {
	l := a.l
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(text, &kind) != nil {
		return
	}
	switch kind.Type {
	case api.TunnelWebhookRequest:
		r := new(api.TunnelRequest)
		err := json.Unmarshal(text, r)
		if err == nil && !nameable(r.ID) {
			err = errors.New("it has no id, or one that is too long")
		}
		if err != nil {
			l.tell(Warning{fmt.Sprintf("the server sent an event that cannot be read: %v", err)})
			return
		}
		a.offer(ctx, r, false)
	case api.TunnelReplay:
		a.order(text)
	case api.TunnelReportAck:
		var ack api.DeliveryReportAck
		if json.Unmarshal(text, &ack) == nil {
			l.reports.acked(ack)
		}
	}
}

// report sends a report over the subscription of its endpoint.
func (s *session) report(r api.DeliveryReport) error {
	identifier, ok := s.identifiers[r.EndpointID]
	if !ok {
		return errors.New("there is no subscription")
	}
	return s.socket.Perform(identifier, "delivery_report", r)
}

// sign adds the client's credential to a report.
func (s *session) sign(r *api.DeliveryReport) {
	r.TunnelClientID, r.TunnelClientCredential = s.ticket.TunnelClientID, s.ticket.TunnelClientCredential
}

// leave ends a session in good order: it ends its subscriptions, accepts nothing new, lets deliveries under way end and
// be reported, and closes the socket.
func (s *session) leave(subscribed []string, cut context.CancelFunc) {
	defer cut()
	for _, identifier := range subscribed {
		_ = s.socket.Unsubscribe(identifier) // if the socket is gone, so are its subscriptions
	}
	s.l.reports.detach()
	s.l.finish()
	s.socket.Close()
}

// finish waits until all accepted events are settled and reported, or the time for that is over.
func (l *Listener) finish() {
	l.mu.Lock()
	l.stopping = true
	if l.leaveBy.IsZero() {
		l.leaveBy = time.Now().Add(l.cfg.limits.drain)
	}
	l.mu.Unlock()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		l.mu.Lock()
		left, by := l.admitted-l.settled, l.leaveBy
		l.mu.Unlock()
		if left == 0 && l.reports.waiting() == 0 || !time.Now().Before(by) {
			return
		}
		<-look.C
	}
}

// backlog returns since when events were left for later, if there is room for them now.
func (l *Listener) backlog() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lane := range l.lanes {
		if len(lane.queue) > laneLength/10 {
			return time.Time{}
		}
	}
	return l.behind
}

// now returns the server's time, as far as it is known.
func (l *Listener) now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ping.IsZero() {
		return time.Now()
	}
	return l.ping.Add(time.Since(l.pinged))
}
