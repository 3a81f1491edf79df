package replay

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"hookglass"
)

// snapshot is the event of a case as it is sealed. Text from senders is []byte: JSON strings would not keep invalid
// UTF-8.
type snapshot struct {
	ID                                                hookglass.EventID
	Type                                              hookglass.EventType
	ReceivedAt                                        time.Time
	Method, Provider, EventType, EventRef, DeliveryID string
	Path, RawQuery, URL, From, To, Subject            []byte
	Headers, Body                                     []byte
	Authentication                                    hookglass.Authentication
}

func snapshotOf(e *hookglass.Event) ([]byte, error) {
	return json.Marshal(snapshot{
		ID: e.ID, Type: e.Type, ReceivedAt: e.ReceivedAt, Method: e.Method, Provider: e.Provider, EventType: e.EventType, EventRef: e.EventRef,
		DeliveryID: e.DeliveryID, Path: []byte(e.Path), RawQuery: []byte(e.RawQuery), URL: []byte(e.URL),
		From: []byte(e.From), To: []byte(e.To), Subject: []byte(e.Subject), Headers: e.Headers.AppendWire(nil), Body: e.Body,
		Authentication: e.Authentication,
	})
}

func (s snapshot) event(endpoint hookglass.Endpoint) *hookglass.Event {
	return &hookglass.Event{
		ID: s.ID, EndpointNum: endpoint.Num, EndpointID: endpoint.ID, Type: s.Type, ReceivedAt: s.ReceivedAt, Method: s.Method,
		Path: string(s.Path), RawQuery: string(s.RawQuery), URL: string(s.URL), Provider: s.Provider, EventType: s.EventType, EventRef: s.EventRef,
		DeliveryID: s.DeliveryID, From: string(s.From), To: string(s.To), Subject: string(s.Subject),
		Authentication: s.Authentication,
		Payload:        &hookglass.Payload{Headers: hookglass.ParseWire(s.Headers), Body: s.Body},
	}
}

// The places of sealed values: the associated data of each names its row (spec: decisions, section 9).
func configOf(caseID string) string   { return "replay_cases:config:" + caseID }
func snapshotIn(caseID string) string { return "replay_cases:snapshot:" + caseID }
func configIn(runID string) string    { return "replay_case_runs:config:" + runID }
func resultIn(runID string) string    { return "replay_case_runs:result:" + runID }

func (s *Service) seal(v any, where string) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return s.Sealer.Seal(plain, where)
}

func (s *Service) open(sealed []byte, where string, into any) error {
	plain, err := s.Sealer.Open(sealed, where)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if err := json.Unmarshal(plain, into); err != nil {
		return fmt.Errorf("%s cannot be read", where) // without the cause, which may quote what was sealed
	}
	return nil
}

// keptResult is a result as it is sealed, since it names the target and the assertions, which are the case's
// configuration. As in a snapshot, headers are bytes, and so is a URL that is not UTF-8.
type keptResult struct {
	hookglass.RunResult
	Sent, Answered []byte
	SentTo         []byte `json:",omitempty"`
}

// sealResult seals the result of a run.
func (s *Service) sealResult(r *hookglass.ReplayCaseRun) (err error) {
	kept := keptResult{RunResult: r.RunResult}
	if r.Request != nil {
		request := *r.Request
		kept.Sent, request.Headers = request.Headers.AppendWire(nil), nil
		if !utf8.ValidString(request.URL) {
			kept.SentTo = []byte(request.URL)
		}
		kept.Request = &request
	}
	if r.Response != nil {
		response := *r.Response
		kept.Answered, response.Headers = response.Headers.AppendWire(nil), nil
		kept.Response = &response
	}
	r.SealedResult, err = s.seal(kept, resultIn(r.ID))
	return err
}

// openResult opens the sealed result of a run, if there is one.
func (s *Service) openResult(r *hookglass.ReplayCaseRun) error {
	if len(r.SealedResult) == 0 {
		return nil
	}
	var kept keptResult
	if err := s.open(r.SealedResult, resultIn(r.ID), &kept); err != nil {
		return err
	}
	r.RunResult = kept.RunResult
	if r.Request != nil {
		r.Request.Headers = hookglass.ParseWire(kept.Sent)
		if len(kept.SentTo) > 0 {
			r.Request.URL = string(kept.SentTo)
		}
	}
	if r.Response != nil {
		r.Response.Headers = hookglass.ParseWire(kept.Answered)
	}
	return nil
}
