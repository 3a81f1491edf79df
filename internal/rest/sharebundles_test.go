package rest_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/bundle"
	"hookglass/internal/capture"
)

const someone = `{"id":"evt_1","customer":{"email":"ada@lovelace.example.org","name":"Ada Lovelace"},"note":"ada@lovelace.example.org","order":"order-of-ada"}`

func (s *site) arriveFrom(endpoint, body string) string {
	return s.arrive(endpoint, func(a *capture.Arrival) {
		a.Body = []byte(body)
		a.Headers = hookglass.Headers{{Name: "Content-Type", Value: "application/json"}, {Name: "X-GitHub-Event", Value: "push"}, {Name: "X-GitHub-Delivery", Value: "72d3162e-cc78-11e3-81ab-4c9367dc0958"}, {Name: "X-Hub-Signature-256", Value: "sha256=00"},
			{Name: "Authorization", Value: "Bearer canary-canary-canary-1"}, {Name: "X-Seen-At", Value: "https://hooks.example.com/hooks/" + endpoint}}
	})
}

func TestAShareBundleCanBeGivenAway(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		event, other := s.arriveFrom(e.ID, someone), s.arriveFrom(e.ID, `{"from":"ada@lovelace.example.org"}`)
		base := "/endpoints/" + e.ID + "/share_bundles"
		s.want(201, "POST", "/endpoints/"+e.ID+"/signature_configs", `{"signature_config":{"provider":"github","secret":"the-own-secret-1"}}`, nil)
		res, text := s.call(s.token, "POST", base, `{"request_ids":["`+event+`","`+other+`","`+event+`"],"pointers":["/order"]}`)
		if res.StatusCode != 200 || res.Header.Get("Content-Disposition") != "attachment; filename=hookglass-bundle.json" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Fatalf("%d %v", res.StatusCode, res.Header)
		}
		file, err := bundle.Read(strings.NewReader(text))
		if err != nil || len(file.Events) != 2 || time.Since(file.CreatedAt) > time.Hour {
			t.Fatalf("%d events of %s: %v", len(file.Events), file.CreatedAt, err)
		}
		for _, b := range file.Events {
			verdict, err := b.Verify()
			if err != nil || verdict.Status != hookglass.SignatureVerified || b.DeliveryID != "72d3162e-cc78-11e3-81ab-4c9367dc0958" || b.EventType != "push" {
				t.Errorf("%s %s %v: %s", verdict.Status, verdict.Reason, err, b.Head)
			}
			for _, secret := range []string{"ada@", "Lovelace", "order-of-ada", "canary-canary", e.ID, "the-own-secret"} {
				if strings.Contains(b.Head+string(b.Body), secret) {
					t.Errorf("%s is left in %s%s", secret, b.Head, b.Body)
				}
			}
		}
		var seen api.One[api.BundlePreview]
		s.want(200, "GET", base+"/preview?request_ids[]="+event+"&pointers[]="+url.QueryEscape("/order"), "", &seen)
		lines := map[string]int{}
		for _, r := range seen.Data.Replaced {
			lines[r.Pointer+" "+r.Kind] += r.Count
			if r.RequestID != event {
				t.Errorf("%+v", r)
			}
		}
		if lines["/customer/email email"] != 1 || lines["/customer/name name"] != 1 || lines["/order pointer"] != 1 || lines["header:Authorization removed"] != 1 || lines["header:X-Seen-At secret"] != 1 {
			t.Errorf("%v", lines)
		}
		if r := seen.Data.Requests; len(r) != 1 || !r[0].Signed || r[0].Provider != "github" {
			t.Errorf("%+v", r)
		}
		s.want(200, "GET", base+"/preview?query="+url.QueryEscape("provider:github after:1h")+"&keep[]=email", "", &seen)
		if len(seen.Data.Requests) != 2 || seen.Data.Requests[0].RequestID != event {
			t.Errorf("%+v", seen.Data.Requests)
		}
	})
}

// A secret is one also while its config checks nothing.
func TestABundleHoldsNoSecretOfADisabledConfig(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		s.want(201, "POST", "/endpoints/"+e.ID+"/signature_configs", `{"signature_config":{"provider":"generic_hmac","secret":"kestrel over the moor","enabled":false}}`, nil)
		event := s.arrive(e.ID, func(a *capture.Arrival) {
			a.Path, a.RawQuery, a.Target, a.Body = "/orders", "n=1", "/hooks/"+e.ID+"/orders?n=1", []byte(`{"note":"kestrel over the moor"}`)
		})
		res, text := s.call(s.token, "POST", "/endpoints/"+e.ID+"/share_bundles", `{"request_ids":["`+event+`"]}`)
		file, err := bundle.Read(strings.NewReader(text))
		if res.StatusCode != 200 || err != nil || strings.Contains(string(file.Events[0].Body), "kestrel") || !strings.HasPrefix(file.Events[0].Head, "POST /orders?n=1 HTTP/1.1\r\n") {
			t.Errorf("%d %v %s", res.StatusCode, err, text)
		}
	})
}

// Who knows the address of a mailbox can send there: it goes whatever kinds are kept, and so do the endpoint's secrets.
func TestABundleKeepsNothingOfTheEndpointsOwn(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		inbox := s.mailbox("inbox-of-us")
		mail := s.deliver("inbox-of-us", "From: Ann <ann@example.org>\r\nTo: inbox-of-us@mail.test\r\nSubject: for inbox-of-us@mail.test\r\n\r\nYou wrote to inbox-of-us@mail.test.\r\n")
		e := s.newEndpoint(`,"custom_id":"moors-of-ours"`)
		s.want(201, "POST", "/endpoints/"+e.ID+"/signature_configs", `{"signature_config":{"provider":"generic_hmac","secret":"kestrel-moor-9"}}`, nil)
		event := s.arriveFrom(e.ID, `{"secret":"kestrel-moor-9","again":"kestrel-moor-9","at":"https://hooks.example.com/hooks/moors-of-ours/a"}`)
		for _, c := range []struct{ endpoint, event, keep, own, kept string }{
			{inbox.ID, mail, `["email"]`, "inbox-of-us", "ann@example.org"}, {e.ID, event, `["/secret"]`, "kestrel-moor", "secret"},
			{e.ID, event, `["/at"]`, "/hooks/moors-of-ours", "https://hooks.example.com"},
		} {
			res, text := s.call(s.token, "POST", "/endpoints/"+c.endpoint+"/share_bundles", `{"request_ids":["`+c.event+`"],"keep":`+c.keep+`}`)
			file, err := bundle.Read(strings.NewReader(text))
			if res.StatusCode != 200 || err != nil {
				t.Fatalf("%d %v %s", res.StatusCode, err, text)
			}
			if got := file.Events[0].Head + string(file.Events[0].Body); strings.Contains(got, c.own) || !strings.Contains(got, c.kept) {
				t.Errorf("%s: %s", c.own, got)
			}
			if c.event == mail && !strings.HasPrefix(file.Events[0].Head, "POST / HTTP/1.1\r\nHost: bundle.example\r\nContent-Type: application/json\r\n") {
				t.Errorf("of a mail there is not what a replay sends: %s", file.Events[0].Head)
			}
		}
	})
}

// MailerLite's deliveries are known by the config alone that verifies them; the bundle is signed as they are.
func TestABundleIsSignedAsTheConfigDoesThatVerified(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		s.want(201, "POST", "/endpoints/"+e.ID+"/signature_configs", `{"signature_config":{"provider":"generic_hmac","secret":"kestrel-moor-9"}}`, nil)
		s.want(201, "POST", "/endpoints/"+e.ID+"/signature_configs", `{"signature_config":{"provider":"mailerlite","secret":"kestrel-moor-8"}}`, nil)
		body := `{"email":"ada@lovelace.example.org"}`
		mac := hmac.New(sha256.New, []byte("kestrel-moor-8"))
		mac.Write([]byte(body))
		event := s.arrive(e.ID, func(a *capture.Arrival) {
			a.Body = []byte(body)
			a.Headers = hookglass.Headers{{Name: "Content-Type", Value: "application/json"}, {Name: "Signature", Value: hex.EncodeToString(mac.Sum(nil))}}
		})
		res, text := s.call(s.token, "POST", "/endpoints/"+e.ID+"/share_bundles", `{"request_ids":["`+event+`"]}`)
		file, err := bundle.Read(strings.NewReader(text))
		if res.StatusCode != 200 || err != nil {
			t.Fatalf("%d %v %s", res.StatusCode, err, text)
		}
		b := file.Events[0]
		verdict, err := b.Verify()
		if err != nil || verdict.Status != hookglass.SignatureVerified || b.Signature.Provider != "mailerlite" || strings.Contains(b.Head+string(b.Body), "lovelace") {
			t.Errorf("%+v %v %+v: %s", verdict, err, b.Signature, b.Head)
		}
		var sent api.One[api.Replay]
		s.want(200, "POST", "/endpoints/"+e.ID+"/requests/"+event+"/replay", `{"target_url":"https://example.com/","signature_mode":"resign","dry_run":true}`, &sent)
		if got := sent.Data.RequestHeadersSent; got["Signature"] != hex.EncodeToString(mac.Sum(nil)) || got["X-Signature"] != "" {
			t.Errorf("%v", got)
		}
	})
}

func TestABundlesQueryIsRefusedAtItsPlace(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		base := "/endpoints/" + s.newEndpoint("").ID + "/share_bundles"
		_, made := s.call(s.token, "POST", base, `{"query":"method:POST methd:bar"}`)
		_, seen := s.call(s.token, "GET", base+"/preview?query=method:POST+methd:bar", "")
		for _, text := range []string{made, seen} {
			if !strings.Contains(text, `"field":"query"`) || !strings.Contains(text, `"position":12`) {
				t.Error(text)
			}
		}
	})
}

func TestWhatABundleIsRefusedFor(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e, foreign := s.newEndpoint(""), s.newEndpoint("")
		event := s.arriveFrom(e.ID, someone)
		for body, status := range map[string]int{
			`{}`: 422, `{"request_ids":[]}`: 422, `{"request_ids":["` + event + `"],"query":"x"}`: 422, `{"query":"nothing-like-it"}`: 422, `{"query":"provider:"}`: 422,
			`{"request_ids":["` + event + `"],"pointers":["order"]}`: 422, `{"request_ids":["` + event + `"],"keep":["secret"]}`: 422, `{"request_ids":["` + event + `"],"other":1}`: 422, `{"request_ids":"x"}`: 422, `{`: 400,
			`{"request_ids":["req_00000000000000000000000000"]}`:                                404,
			`{"request_ids":["` + strings.Repeat(event+`","`, bundle.MaxEvents) + event + `"]}`: 422,
		} {
			var refused api.Error
			if s.want(status, "POST", "/endpoints/"+e.ID+"/share_bundles", body, &refused); refused.Error == "" {
				t.Errorf("%s: %+v", body, refused)
			}
		}
		s.want(404, "POST", "/endpoints/"+foreign.ID+"/share_bundles", `{"request_ids":["`+event+`"]}`, nil)
		s.want(422, "GET", "/endpoints/"+e.ID+"/share_bundles/preview?request_id="+event, "", nil)
	})
}
