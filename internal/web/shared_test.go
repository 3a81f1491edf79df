package web_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/endpoint"
)

// A body is looked through for credentials as it is read: without its compression.
func TestASharedRequestWhoseBodyIsCompressedIsReadWithoutItsSecrets(t *testing.T) {
	s := newSite(t)
	s.secret("github", "swordfish-swordfish")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(`{"password":"hunter2","total":5,"echo":"swordfish-swordfish"}`)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	event := s.hook(sent{body: packed.String(), headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}, {Name: "Content-Encoding", Value: "gzip"}}})
	if err := s.captures.SetNote(t.Context(), s.who, string(s.endpoint.ID), string(event), "among ourselves"); err != nil {
		t.Fatal(err)
	}
	page := s.signedIn().want(201, "POST", s.page("/requests/"+string(event)+"/share"), url.Values{"expires": {"1h"}})
	a := s.visitor().want(200, "GET", regexp.MustCompile(`id="share-link">([^<]+)<`).FindStringSubmatch(page.body)[1], nil)
	a.holds(t, "total", "[redacted]")
	a.lacks(t, "hunter2", "swordfish", "among ourselves")
}

func TestASharedRequestInAnotherCharsetIsReadWithoutItsSecrets(t *testing.T) {
	s := newSite(t)
	body := []byte{0xff, 0xfe}
	for _, r := range `{"password":"hunter2","total":"fünf"}` {
		body = append(body, byte(r), 0)
	}
	event := s.hook(sent{body: string(body), headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}}})
	page := s.signedIn().want(201, "POST", s.page("/requests/"+string(event)+"/share"), url.Values{"expires": {"1h"}})
	a := s.visitor().want(200, "GET", regexp.MustCompile(`id="share-link">([^<]+)<`).FindStringSubmatch(page.body)[1], nil)
	a.holds(t, "fünf", "[redacted]")
	a.lacks(t, "hunter2", "h.u.n.t.e.r.2", "68 00 75 00") // as a dump of the bytes tells it
}

func TestASharedRequestIsReadByAnybodyWithoutItsSecrets(t *testing.T) {
	s := newSite(t)
	s.secret("github", "swordfish-swordfish")
	event := s.hook(sent{target: "/pay?token=t0psecret&Key=k3ysecret&key=s3cond&monkey=seen", body: `{"password":"hunter2","total":5,"echo":"swordfish-swordfish"}`, headers: hookglass.Headers{
		{Name: "Content-Type", Value: "application/json"}, {Name: "Authorization", Value: "Bearer abcdefgh"}, {Name: "X-Kept", Value: "kept"},
	}})
	b := s.signedIn()
	page := b.want(201, "POST", s.page("/requests/"+string(event)+"/share"), url.Values{"expires": {"1h"}})
	link := regexp.MustCompile(`id="share-link">([^<]+)<`).FindStringSubmatch(page.body)[1]
	stranger := s.visitor()
	a := stranger.want(200, "GET", link, nil)
	a.holds(t, "kept", "total", "[redacted]", "seen")
	level := byte('0')
	for _, heading := range regexp.MustCompile(`<h(\d)`).FindAllStringSubmatch(regexp.MustCompile(`(?s)<dialog.*?</dialog>`).ReplaceAllString(a.body, ""), -1) {
		if heading[1][0] > level+1 {
			t.Errorf("a heading of level %s follows one of level %c", heading[1], level)
		}
		level = heading[1][0]
	}
	for _, secret := range []string{"abcdefgh", "hunter2", "swordfish", "t0psecret", "k3ysecret", "s3cond", string(s.endpoint.ID)} {
		if strings.Contains(a.body, secret) {
			t.Errorf("a stranger reads %q", secret)
		}
	}
	if found := regexp.MustCompile(`<form[^>]*>`).FindString(a.body); found != "" {
		t.Errorf("a stranger is offered %s", found)
	}
	configs, err := s.endpoints.SignatureConfigs(t.Context(), s.who, string(s.endpoint.ID))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.endpoints.UpdateSignatureConfig(t.Context(), s.who, string(s.endpoint.ID), configs[0].ID, endpoint.SignatureDraft{Enabled: new(bool)}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stranger.want(200, "GET", link, nil).body, "swordfish") {
		t.Error("a stranger reads the secret of a config that is disabled")
	}
	revoke := regexp.MustCompile(`action="([^"]+/revoke)"`).FindStringSubmatch(page.body)[1]
	stranger.want(303, "GET", s.page("/requests/"+string(event)+"/share"), nil)
	page.holds(t, "Revoke this link?")
	b.want(303, "POST", revoke, url.Values{})
	b.want(200, "GET", s.page("/requests/"+string(event)+"/share?done=unshared"), nil).holds(t, "The link was revoked.")
	stranger.want(404, "GET", link, nil).holds(t, "it expired, was revoked, or the request was deleted")
	b.want(422, "POST", s.page("/requests/"+string(event)+"/share"), url.Values{"expires": {"8760h"}})
}

// Whoever knows the address of a mailbox can send to it, so a stranger does not read it, wherever in a mail it stands
// and however that is encoded.
func TestASharedMailDoesNotTellItsAddress(t *testing.T) {
	s := newSite(t)
	inbox := s.create("inbox", hookglass.KindEmail)
	target, err := s.captures.AdmitMailbox(t.Context(), string(inbox.ID))
	if err != nil {
		t.Fatal(err)
	}
	local, b := inbox.EmailLocalPart, s.signedIn()
	address, quoted := local+"+tag@mail.test", `"`+local+`+a b"@mail.test`
	encoded := base64.StdEncoding.EncodeToString
	text := encoded([]byte("<p>We&#39;re glad, " + strings.ToUpper(address) + "</p>"))
	const typed = "\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\n"
	for _, tt := range []struct {
		name, sender, to, raw string
		holds                 []string
	}{
		{"plain and in base64", "shop@example.com", address, "From: Shop <shop@example.com>\r\nTo: Me <" + address + ">, other@mail.test\r\nReceived: from x for <" + address +
			">\r\nDate: Mon, 02 Mar 2026 10:00:00 +0000\r\nMessage-ID: <1." + local + "=mail.test@example.com>\r\nSubject: Dear " + address + typed + text + "\r\n",
			[]string{"shop@example.com", "other@mail.test", "We&#39;re glad, [redacted]", "Dear [redacted]", "from x for &lt;[redacted]&gt;", "Mon, 02 Mar 2026 10:00:00 +0000",
				"Message-ID", "&lt;1.[redacted]@example.com&gt;", "text/html"}},
		{"in links", "shop@example.com", address, "From: shop@example.com\r\nList-Unsubscribe: <https://example.com/h?e=" + local + "%2btag%40mail.test>\r\n\r\n" +
			"one https://example.com/u?email=" + local + "%40mail.test\r\ntwo https://example.com/u?email=" + local + "%252Btag%2540mail.test\r\nthree " + local + "=40mail.test\r\n" +
			"four https://example.com/" + encoded([]byte("u=1&e="+local+"@mail.test&x=2")) + "\r\nfive " + encoded([]byte(address)) + "\r\nsix " + hex.EncodeToString([]byte(address)) + "\r\nseven other@mail.test\r\n",
			[]string{"one https://example.com/u?email=[redacted]\n", "two https://example.com/u?email=[redacted]\n", "three [redacted]\n", "h?e=[redacted]&gt;", "six [redacted]", "seven other@mail.test"}},
		{"in the sender of bounces", "bounces+12-" + local + "=mail.test@em.example.com", address, "Subject: x\r\n\r\nhello\r\n", []string{"bounces+12-[redacted]@em.example.com"}},
		{"in quotes", "shop@example.com", quoted, "To: " + quoted + "\r\nSubject: for " + quoted + "\r\n\r\nDear " + quoted + "!\r\n", []string{"shop@example.com", "[redacted]!"}},
		{"beside a blank text", "shop@example.com", address, "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n \r\n\r\n--b" + typed + text +
			"\r\n--b--\r\n", []string{"We&#39;re glad, [redacted]", "multipart/alternative"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stored := s.captures.CaptureMail(t.Context(), &capture.Mail{From: tt.sender, To: []capture.Recipient{{Address: tt.to, Target: target}}, Protocol: "ESMTP", Raw: []byte(tt.raw), At: time.Now()})
			if stored[0].Err != nil {
				t.Fatal(stored[0].Err)
			}
			page := b.want(201, "POST", s.url+"/endpoints/"+string(inbox.ID)+"/requests/"+string(stored[0].Event)+"/share", url.Values{"expires": {"1h"}})
			a := s.visitor().want(200, "GET", regexp.MustCompile(`id="share-link">([^<]+)<`).FindStringSubmatch(page.body)[1], nil)
			a.holds(t, tt.holds...)
			for _, told := range []string{local, hex.EncodeToString([]byte(local)), encoded([]byte(local[:len(local)/3*3]))} {
				if strings.Contains(strings.ToLower(a.body), strings.ToLower(told)) {
					t.Errorf("a stranger reads the address %s as %s:\n%s", tt.to, told, a.body)
				}
			}
		})
	}
}
