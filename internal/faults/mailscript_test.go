//go:build linux

package faults_test

import (
	"errors"
	"fmt"
	"net/http"
	netsmtp "net/smtp"
	"net/textproto"
	"os"
	"strings"
	"testing"
)

// told is the code with which a mail was refused, 250 where it was not, and 0 where no answer came.
func told(err error) int {
	var refused *textproto.Error
	switch {
	case err == nil:
		return 250
	case errors.As(err, &refused):
		return refused.Code
	}
	return 0
}

// A mail that a script refuses is there after kill -9 with its answer, and the next attempt is answered by the next
// entry: where the attempts stand is not lost with the process.
func TestAScriptOfMailGoesOnAfterKill9(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		smtp := freePort(t)
		n := s.serve("--smtp-listen", smtp, "--mail-dns", os.DevNull, "--smtp-auth", "inbox")
		type made struct {
			Data struct {
				ID           string `json:"id"`
				EmailAddress string `json:"email_address"`
			} `json:"data"`
		}
		var data, rcpt made
		n.api(http.MethodPost, "/endpoints", `{"endpoint":{"name":"data","kind":"email","response_script":"451,reset,452 4.2.2 Full,250"}}`, &data)
		n.api(http.MethodPost, "/endpoints", `{"endpoint":{"name":"rcpt","kind":"email","response_script":"rcpt:450,421,250"}}`, &rcpt)
		const message = "From: a@example.org\r\nSubject: x\r\nMessage-ID: <1@example.org>\r\n\r\nx\r\n"
		var stored []string
		for i, want := range [][2]int{{451, 450}, {0, 421}, {452, 250}, {250, 450}} {
			err := netsmtp.SendMail(smtp, nil, "a@example.org", []string{data.Data.EmailAddress}, []byte(message))
			if got := told(err); got != want[0] {
				t.Errorf("attempt %d was answered %d, %v; want %d", i+1, got, err, want[0])
			}
			err = netsmtp.SendMail(smtp, nil, "a@example.org", []string{rcpt.Data.EmailAddress}, []byte(message))
			if got := told(err); got != want[1] {
				t.Errorf("recipient %d was answered %d, %v; want %d", i+1, got, err, want[1])
			}
			n.kill()
			n.start()
			n.ready(patience)
			var page struct {
				Data []struct{ ID string }
			}
			n.api(http.MethodGet, "/endpoints/"+data.Data.ID+"/requests", "", &page)
			if len(page.Data) != i+1 {
				t.Fatalf("%d mails are there after attempt %d", len(page.Data), i+1)
			}
			stored = append(stored, page.Data[0].ID)
		}
		if count := n.eventCount(rcpt.Data.ID); count != 1 {
			t.Errorf("%d mails are there of the one recipient that was taken", count)
		}
		for i, want := range []string{"451 4.3.0 ", "<nil>", "452 4.2.2 Full", "250 2.0.0 Stored"} {
			var e struct {
				Data struct {
					Status *int   `json:"response_status_sent"`
					Text   string `json:"response_body_sent"`
				}
			}
			n.api(http.MethodGet, "/endpoints/"+data.Data.ID+"/requests/"+stored[i], "", &e)
			got := "<nil>"
			if e.Data.Status != nil {
				got = fmt.Sprintf("%d %s", *e.Data.Status, e.Data.Text)
			}
			if !strings.HasPrefix(got, want) {
				t.Errorf("attempt %d is on record as %q, want %q", i+1, got, want)
			}
		}
		// A program that signs in to an inbox is answered as the inbox is, whomever it writes to.
		auth := netsmtp.PlainAuth("", rcpt.Data.EmailAddress, "any", "127.0.0.1")
		for i, want := range []int{450, 421, 250, 450} {
			err := netsmtp.SendMail(smtp, auth, "a@example.org", []string{"bob@example.com"}, []byte(message))
			if got := told(err); got != want {
				t.Errorf("attempt %d to somebody else was answered %d, %v; want %d", i+1, got, err, want)
			}
		}
	})
}
