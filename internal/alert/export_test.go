package alert

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// SigningKey is the key that a secret means.
func SigningKey(secret string) ([]byte, error) { return signingKey(secret) }

// Matches tells where a keyword is in an event.
func Matches(c hookglass.AlertConfig, e *hookglass.Event) string { return newMatcher(c).in(e) }

// ChatText is a message as a chat shows it.
func ChatText(m hookglass.Message, most int) string { return chatText(m, most) }

// Send sends one mail.
func (m *Mailer) Send(ctx context.Context, to []string, msg hookglass.Message) error {
	return m.send(ctx, to, msg, 0)
}

// MailFailure says what went wrong with a mail.
func MailFailure(err error) *hookglass.Failure { return mailFailure(err) }

// DriftSummary tells that the schemas of event types have changed.
func DriftSummary(found []store.SchemaDrift) string { return judgeDrift(found).summary }

// NoTime has each round go over one alert of either sort alone.
func (s *Service) NoTime() { s.judging.time, s.reading.time = 0, 0 }

// PanicOver has the search of an event panic.
func (s *Service) PanicOver(id hookglass.EventID) {
	s.search = func(m matcher, e *hookglass.Event) string {
		if e.ID == id {
			panic("it does not work")
		}
		return m.in(e)
	}
}

// Round does something for each alert, as a round of evaluation does.
func (s *Service) Round(ctx context.Context, alerts []hookglass.Alert, do func(context.Context, hookglass.Alert) error) error {
	return s.judging.round(ctx, alerts, do)
}

// Compose is the body of a message for a channel.
func Compose(kind hookglass.ChannelKind, config hookglass.ChannelConfig, m hookglass.Message) ([]byte, error) {
	r, err := compose(kind, config, "", m, time.Time{})
	return r.body, err
}

// Serve sends what waits for a channel.
func (s *Service) Serve(ctx context.Context, num int64) error {
	_, err := s.serve(ctx, num)
	return err
}
