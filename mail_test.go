package hookglass_test

import (
	"testing"
	"time"

	"hookglass"
)

func TestWhatIsSaidOfAMailWaitsForItsVerdict(t *testing.T) {
	received := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	pending := hookglass.Authentication{SPF: hookglass.AuthPending, DKIM: hookglass.AuthPending, DMARC: hookglass.AuthPending}
	mail := hookglass.Event{Type: hookglass.EventEmail, ReceivedAt: received, Authentication: pending}
	for age, want := range map[time.Duration]time.Duration{
		0: 100 * time.Millisecond, 100 * time.Millisecond: 100 * time.Millisecond, 300 * time.Millisecond: 300 * time.Millisecond, 5 * time.Second: time.Second,
		29900 * time.Millisecond: 100 * time.Millisecond, 30 * time.Second: 0, time.Hour: 0,
		-time.Second: 100 * time.Millisecond, -30 * time.Second: 0, // by a clock that was put back
	} {
		if got := mail.VerdictWait(received.Add(age)); got != want {
			t.Errorf("%v after reception it waits %v, want %v", age, got, want)
		}
	}
	done := mail
	done.Authentication = hookglass.Authentication{SPF: "temperror", DKIM: "none", DMARC: "none"}
	webhook := mail
	webhook.Type, webhook.Authentication = hookglass.EventWebhook, hookglass.Authentication{}
	for _, e := range []hookglass.Event{done, webhook} {
		if got := e.VerdictWait(received); got != 0 {
			t.Errorf("%+v waits %v", e, got)
		}
	}
}
