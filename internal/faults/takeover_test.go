//go:build linux && long

package faults_test

import (
	"fmt"
	"net/http"
	"net/smtp"
	"os"
	"testing"
	"time"
)

// Row 38: whatever kind of work a node had in hand when it was killed, the other has done it a minute later.
func TestWhatAKilledNodeHadInHandEndsElsewhere(t *testing.T) {
	beside(t)
	s := postgresSite(t)
	smtpAddr := freePort(t)
	a := s.serve("--outbound-allow", "127.0.0.0/8", "--smtp-listen", smtpAddr, "--mail-dns", os.DevNull)
	h, p := newHolder(t), newPushes(t)
	asks, forwards, erased := a.endpoint(), a.endpoint(), a.endpoint()
	mailbox, address := a.emailEndpoint()
	a.acting(asks.endpoint, fmt.Sprintf(`[{"step_type":"http_request","name":"Ask","config":{"url":"%s/ask","timeout_seconds":5}},{"step_type":"tag","name":"Mark","config":{"tag":"t"}}]`, h.URL))
	a.acting(forwards.endpoint, fmt.Sprintf(`[{"step_type":"forward","name":"On","config":{"url":"%s/on","timeout_seconds":5}}]`, h.URL))
	a.api(http.MethodPost, "/notification_channels", fmt.Sprintf(`{"notification_channel":{"name":"n","kind":"webhook","config":{"url":%q,"events":["webhook.received","email.received"]}}}`, p.URL), nil)
	load{to: []*node{a}, ledger: erased, conns: 16}.during(5 * time.Second)

	// All of it is begun while there is but one node, so that one has it in hand.
	h.hold()
	const each = 10
	for range each {
		a.event(asks.endpoint)
		a.event(forwards.endpoint)
		if err := smtp.SendMail(smtpAddr, nil, "a@example.org", []string{address}, []byte("Subject: hello\r\n\r\nbody\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	var batch struct{ Data struct{ ID, State string } }
	a.api(http.MethodPost, "/endpoints/"+asks.endpoint+"/replay_batches", fmt.Sprintf(`{"target_url":"%s/batch","rate":100}`, h.URL), &batch)
	eventually(t, patience, "the targets hold requests of every kind", func() bool { return h.at("/ask") == each && h.at("/on") == each && h.at("/batch") > 0 })
	b := s.serve("--outbound-allow", "127.0.0.0/8")
	a.api(http.MethodDelete, "/endpoints/"+erased.endpoint+"/requests/destroy_all", "", nil)
	a.kill()
	killed := time.Now()
	h.let()

	rows := b.rowCounter()
	done := map[string]func() bool{
		"actions": func() bool {
			return rows("SELECT count(*) FROM action_runs WHERE finished_at IS NOT NULL") == 2*each && rows("SELECT count(*) FROM event_tasks WHERE kind = 'actions'") == 0
		},
		"verdicts": func() bool { return rows("SELECT count(*) FROM event_tasks") == 0 },
		"the bulk replay": func() bool {
			b.api(http.MethodGet, "/endpoints/"+asks.endpoint+"/replay_batches/"+batch.Data.ID, "", &batch)
			return batch.Data.State == "completed"
		},
		"erasing": func() bool {
			return rows("SELECT count(*) FROM events e JOIN endpoints p ON p.num = e.endpoint WHERE p.id = '"+erased.endpoint+"'") == 0
		},
		"notifications": func() bool { return p.of("webhook.received") >= 2*each && p.of("email.received") >= each },
	}
	for what, is := range done {
		takenOver(t, takeover+targetTimeout-passed(killed, time.Now()), what, is)
		t.Logf("%s: done %v after the kill", what, time.Since(killed).Round(time.Second))
	}
	if n := h.at("/ask"); n != each {
		t.Errorf("%d requests of %d steps that are never repeated", n, each)
	}
	_, mails := b.list(mailbox)
	if mails != each {
		t.Errorf("%d mails are there", mails)
	}
}
