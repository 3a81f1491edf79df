package capture

import (
	"time"

	"hookglass"
	"hookglass/internal/provider"
	"hookglass/internal/store"
)

// SetPurgeTime sets for how long one purge goes on.
func (s *Service) SetPurgeTime(d time.Duration) { s.purgeTime = d }

// SetExpire sets how an expired endpoint is deleted.
func (s *Service) SetExpire(f func(tx *store.Tx, endpointNum int64) error) { s.expire = f }

// SetReadTime sets how long a reader waits for room.
func (s *Service) SetReadTime(d time.Duration) { s.readTime = d }

// Unwritten is how many counts of refusals are not being written down.
func (s *Service) Unwritten() int {
	s.refused.mu.Lock()
	defer s.refused.mu.Unlock()
	return len(s.refused.counts)
}

// FillForTest is the body of a JSON answer made by the template.
func FillForTest(template, body string) []byte {
	return customReply(&hookglass.Response{Status: 200, Headers: map[string]string{"Content-Type": "application/json"}, Body: template},
		&hookglass.Event{Method: "POST", Payload: &hookglass.Payload{Body: []byte(body)}}).Body
}

// FillQueryForTest is the body of an answer made by the template, to a request with the query.
func FillQueryForTest(template, query string) []byte {
	return customReply(&hookglass.Response{Status: 200, Body: template}, &hookglass.Event{RawQuery: query, Payload: &hookglass.Payload{}}).Body
}

// HeaderForTest are the headers of an answer whose header is made by the template.
func HeaderForTest(template, body string) hookglass.Headers {
	t := Target{known: &target{}}
	t.Endpoint.Response = &hookglass.Response{Status: 200, Headers: map[string]string{"X-A": template}}
	ev := &hookglass.Event{Method: "POST", Payload: &hookglass.Payload{Body: []byte(body)}}
	return reply(t, ev, provider.Received(ev), provider.Detection{Provider: hookglass.UnknownProvider}).Headers
}
