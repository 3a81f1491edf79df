package rest_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/capture"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// mailbox makes an email endpoint with the owner's token.
func (s *site) mailbox(localPart string) api.Endpoint {
	s.t.Helper()
	return s.newEndpoint(`,"kind":"email","email_local_part":"` + localPart + `"`)
}

// deliver sends a mail to a local part and returns the event's id.
func (s *site) deliver(localPart, raw string) string {
	s.t.Helper()
	target, err := s.captures.AdmitMail(s.t.Context(), localPart)
	if err != nil {
		s.t.Fatal(err)
	}
	d := s.captures.CaptureMail(s.t.Context(), &capture.Mail{
		From: "bounces@example.org", To: []capture.Recipient{{Address: localPart + "@mail.test", Target: target}}, Helo: "mx.example.org", Protocol: "ESMTPS",
		Client: netip.MustParseAddr("192.0.2.7"), Raw: []byte(raw), At: time.Now(),
	})
	if d[0].Err != nil {
		s.t.Fatal(d[0].Err)
	}
	return string(d[0].Event)
}

const welcome = "From: Ann <ann@example.org>\r\nTo: inbox@mail.test\r\nSubject: =?utf-8?q?Willkommen_=C3=BC?=\r\nMessage-ID: <1@example.org>\r\nReceived: one\r\nReceived: two\r\n" +
	"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n" +
	"--a\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nYour code is 482913. See https://example.org/verify?t=1\r\n" +
	"--a\r\nContent-Type: text/html\r\n\r\n<p>Your code is <b>482913</b></p><script>alert(1)</script>\r\n--a--\r\n" +
	"--m\r\nContent-Type: text/html; name=\"../../etc/evil.html\"\r\nContent-Disposition: attachment; filename=\"../../etc/evil.html\"\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
	"PHNjcmlwdD4=\r\n--m--\r\n"

func TestMailInTheListAndTheDetailForm(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		inbox := s.mailbox("inbox")
		id := s.deliver("inbox", welcome)
		base := "/endpoints/" + inbox.ID + "/requests"

		var list struct{ Data []map[string]any }
		s.want(200, "GET", base, "", &list)
		e := list.Data[0]
		for name, want := range map[string]any{
			"id": id, "type": "email", "method": "EMAIL", "path": "inbox@mail.test", "status": nil, "content_type": nil, "ip_address": nil,
			"subject": "Willkommen ü", "to": "inbox@mail.test", "size": float64(len(welcome)), "detected_provider": "unknown", "ignored": false,
		} {
			if got, ok := e[name]; !ok || got != want {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		if from, _ := e["from"].(string); !strings.Contains(from, "ann@example.org") {
			t.Errorf("from: %v", e["from"])
		}
		if a, _ := e["authentication"].(map[string]any); a["spf"] != "pending" || a["dkim"] != "pending" || a["dmarc"] != "pending" {
			t.Errorf("authentication: %v", e["authentication"])
		}

		var detail api.One[api.EventDetail]
		s.want(200, "GET", base+"/"+id, "", &detail)
		d := detail.Data
		if *d.Body != welcome || !strings.Contains(*d.TextBody, "482913") || !strings.Contains(*d.HTMLBody, "<b>482913</b>") {
			t.Errorf("bodies %q %q", *d.TextBody, *d.HTMLBody)
		}
		if d.EmailHeaders["Received"] != "one, two" || d.EmailHeaders["Subject"] != "Willkommen ü" || !slices.Contains(d.HeaderList, [2]string{"Received", "two"}) {
			t.Errorf("headers %v", d.EmailHeaders)
		}
		if len(d.AttachmentMetadata) != 1 || strings.ContainsAny(d.AttachmentMetadata[0].Filename, "/\\") || d.AttachmentMetadata[0].Size != 8 {
			t.Errorf("attachments %+v", d.AttachmentMetadata)
		}
		if d.AuthenticationResults.SPF.Result != "pending" || !slices.Contains(d.Extracted.Codes, "482913") || !slices.Contains(d.Extracted.Links, "https://example.org/verify?t=1") {
			t.Errorf("%+v %+v", d.AuthenticationResults, d.Extracted)
		}
		if v := d.Envelope; v.MailFrom != "bounces@example.org" || v.RcptTo[0] != "inbox@mail.test" || v.Helo != "mx.example.org" || v.Protocol != "ESMTPS" || *v.ClientIP != "192.0.2.7" {
			t.Errorf("envelope %+v", v)
		}
		if d.SourceIP != nil || d.ResponseStatusSent != nil || *d.Kind != "message" || *d.MessageID != "<1@example.org>" {
			t.Errorf("%+v", d)
		}
	})
}

func TestAPlainMailHasEveryFieldOfMail(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	inbox := s.mailbox("inbox")
	id := s.deliver("inbox", "just text")
	var detail struct{ Data map[string]any }
	s.want(200, "GET", "/endpoints/"+inbox.ID+"/requests/"+id, "", &detail)
	for _, name := range []string{"text_body", "html_body", "email_headers", "attachment_metadata", "authentication_results", "extracted", "from", "to", "subject", "parse_faults"} {
		if v, ok := detail.Data[name]; !ok || v == nil {
			t.Errorf("%s is %v", name, v)
		}
	}
	webhook := s.newEndpoint("")
	detail.Data = nil
	s.want(200, "GET", "/endpoints/"+webhook.ID+"/requests/"+s.arrive(webhook.ID, nil), "", &detail)
	for _, name := range []string{"text_body", "attachment_metadata", "email_headers", "envelope", "authentication"} {
		if v, ok := detail.Data[name]; ok {
			t.Errorf("a webhook has %s: %v", name, v)
		}
	}
}

func TestWhatIsDownloadedOfAMail(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		inbox := s.mailbox("inbox")
		id := s.deliver("inbox", welcome+"\xff\x00")
		base := "/endpoints/" + inbox.ID + "/requests/" + id
		for _, path := range []string{"/body", "/raw"} {
			res, body := s.call(s.token, "GET", base+path, "")
			if res.StatusCode != 200 || body != welcome+"\xff\x00" || res.Header.Get("Content-Type") != "message/rfc822" ||
				res.Header.Get("Content-Disposition") != "attachment; filename="+id+".eml" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %d %v", path, res.StatusCode, res.Header)
			}
		}
		res, body := s.call(s.token, "GET", base+"/attachments/0", "")
		disposition := res.Header.Get("Content-Disposition")
		if res.StatusCode != 200 || body != "<script>" || !strings.HasPrefix(disposition, "attachment; filename=") || strings.ContainsAny(disposition, "/\\") ||
			res.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(res.Header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%d %q %v", res.StatusCode, body, res.Header)
		}
		for _, index := range []string{"1", "-1", "99999999999999999999", "x", "0x0"} {
			s.want(404, "GET", base+"/attachments/"+index, "", nil)
		}
		webhook := s.newEndpoint("")
		s.want(404, "GET", "/endpoints/"+webhook.ID+"/requests/"+s.arrive(webhook.ID, nil)+"/attachments/0", "", nil)
	})
}

func TestMailIsFoundLikeAnyEvent(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		inbox := s.mailbox("inbox")
		id := s.deliver("inbox", welcome)
		other := s.deliver("inbox", "From: bob@example.net\r\nSubject: Invoice\r\nContent-Transfer-Encoding: base64\r\n\r\nSGlkZGVuIHdvcmRz\r\n")
		base := "/endpoints/" + inbox.ID + "/requests?q="
		for q, want := range map[string]string{
			"from:ann": id, "from:bob": other, "subject:invoice": other, "to:inbox": id + other, "willkommen": id, `"hidden+words"`: other, "header.message-id:*1@example*": id,
			"482913": id, "method:EMAIL": id + other, "is:email": id + other, "nothing": "",
		} {
			var got string
			page := s.list(base + q)
			slices.Reverse(page.Data)
			for _, e := range page.Data {
				got += e.ID
			}
			if got != want {
				t.Errorf("%s: %q, want %q", q, got, want)
			}
		}
		if n := len(s.list("/endpoints/" + inbox.ID + "/requests?type=email").Data); n != 2 {
			t.Errorf("type=email: %d", n)
		}
		if n := len(s.list("/endpoints/" + inbox.ID + "/requests?type=webhook").Data); n != 0 {
			t.Errorf("type=webhook: %d", n)
		}

		var feed struct{ Data []api.Activity }
		s.want(200, "GET", "/events", "", &feed)
		data := feed.Data[1].Data
		if feed.Data[1].Type != "email.received" || *feed.Data[1].RequestID != id || data["subject"] != "Willkommen ü" || data["to"] != "inbox@mail.test" || data["size"] != float64(len(welcome)) {
			t.Errorf("%+v", feed.Data[1])
		}
		_, mbox := s.call(s.token, "GET", "/endpoints/"+inbox.ID+"/requests/export?format=mbox", "")
		if strings.Count(mbox, "From bounces@example.org ") != 2 || !strings.Contains(mbox, "\nSubject: Invoice\n") {
			t.Errorf("the mailbox %q", mbox)
		}
		_, lines := s.call(s.token, "GET", "/endpoints/"+inbox.ID+"/requests/export?q=from:ann", "")
		var line api.EventDetail
		if err := json.Unmarshal([]byte(lines), &line); err != nil || line.TextBody == nil {
			t.Errorf("a line of the export: %v", err)
		}
		s.want(200, "PUT", "/endpoints/"+inbox.ID+"/requests/"+id+"/tags/seen", "", nil)
		s.want(200, "POST", "/endpoints/"+inbox.ID+"/requests/"+id+"/ignore", `{"reason":"test"}`, nil)
		if page := s.list("/endpoints/" + inbox.ID + "/requests"); len(page.Data) != 1 || page.Data[0].ID != other {
			t.Errorf("%+v", page.Data)
		}
		s.want(200, "DELETE", "/endpoints/"+inbox.ID+"/requests/destroy_all", "", nil)
		s.want(404, "GET", "/endpoints/"+inbox.ID+"/requests/"+other, "", nil)
	})
}

func TestTheVerdictIsShown(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		inbox := s.mailbox("inbox")
		id := s.deliver("inbox", welcome)
		err := s.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			e, err := tx.Event(inbox.ID, id)
			if err != nil {
				return err
			}
			return tx.SetVerdicts([]store.Verdict{{EndpointNum: e.EndpointNum, EventSeq: e.Seq, Results: hookglass.Authentication{SPF: "pass", DKIM: "fail", DMARC: "none"},
				Details: []byte(`{"spf":{"result":"pass","domain":"example.org"},"dkim":{"result":"fail","signatures":[{"result":"fail","domain":"example.org","selector":"s1","algorithm":"rsa-sha256","reason":"body_changed"}]},"dmarc":{"result":"none"}}`)}})
		})
		if err != nil {
			t.Fatal(err)
		}
		var detail api.One[api.EventDetail]
		s.want(200, "GET", "/endpoints/"+inbox.ID+"/requests/"+id, "", &detail)
		r := detail.Data.AuthenticationResults
		if detail.Data.Authentication.DKIM != "fail" || r.SPF.Domain != "example.org" || r.DKIM.Signatures[0].Reason != "body_changed" {
			t.Errorf("%+v %+v", detail.Data.Authentication, r)
		}
	})
}
