package rest_test

import (
	"bytes"
	"context"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"testing"

	"hookglass"
	"hookglass/api"
)

// relay remembers what it was handed; it refuses whoever is called nobody.
type relay struct {
	mu    sync.Mutex
	mails []string
}

func (*relay) From() mail.Address { return mail.Address{Address: "hooks@example.com"} }

func (r *relay) Pass(_ context.Context, to []string, parts ...[]byte) (hookglass.Relayed, error) {
	if slices.Contains(to, "nobody@team.example") {
		return hookglass.Relayed{Status: hookglass.ReleaseFailed, Code: 550, Message: "5.1.1 who?", Failure: &hookglass.Failure{Code: "recipient_refused", Message: "The mail relay refused nobody@team.example."}}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mails = append(r.mails, string(bytes.Join(parts, nil)))
	return hookglass.Relayed{Status: hookglass.ReleaseSent, Code: 250, Message: "2.0.0 Ok"}, nil
}

func TestAMailIsReleasedOverTheAPI(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		inbox := s.mailbox("inbox")
		path := "/endpoints/" + inbox.ID + "/requests/" + s.deliver("inbox", welcome) + "/releases"
		var made, refused api.One[api.Release]
		s.want(201, "POST", path, `{"to":["Dev@example.com","lea@team.example"]}`, &made)
		r := made.Data
		if r.Status != "sent" || *r.RelayCode != 250 || *r.RelayMessage != "2.0.0 Ok" || r.Error != nil || r.FinishedAt == nil || !slices.Equal(r.To, []string{"Dev@example.com", "lea@team.example"}) {
			t.Errorf("%+v", r)
		}
		if len(s.relay.mails) != 1 || !strings.HasSuffix(s.relay.mails[0], welcome) || !strings.HasPrefix(s.relay.mails[0], "Resent-Date: ") {
			t.Errorf("%q was sent", s.relay.mails)
		}
		s.want(201, "POST", path, `{"to":["nobody@team.example"]}`, &refused)
		if r := refused.Data; r.Status != "failed" || *r.RelayCode != 550 || r.Error.Code != "recipient_refused" {
			t.Errorf("%+v", r)
		}
		var first, second api.List[api.Release]
		s.want(200, "GET", path+"?limit=1", "", &first)
		s.want(200, "GET", path+"?limit=1&cursor="+*first.Meta.NextCursor, "", &second)
		if first.Data[0].ID != refused.Data.ID || second.Data[0].ID != made.Data.ID || second.Meta.NextCursor != nil {
			t.Errorf("%+v %+v", first, second)
		}

		hook := s.newEndpoint("")
		webhook := "/endpoints/" + hook.ID + "/requests/" + s.arrive(hook.ID, nil) + "/releases"
		var none api.List[api.Release]
		if s.want(200, "GET", webhook, "", &none); len(none.Data) != 0 {
			t.Errorf("%+v", none)
		}
		for name, c := range map[string]struct {
			path, body string
			status     int
			code, says string
		}{
			"a stranger":    {path, `{"to":["dev@example.com","eve@evil.example"]}`, 422, "recipient_not_allowed", "eve@evil.example"},
			"a loop":        {path, `{"to":["inbox@mail.example.com"]}`, 422, "recipient_not_allowed", "of this installation"},
			"no address":    {path, `{"to":["dev@example.com\r\nDATA"]}`, 422, "validation_failed", "to.0"},
			"nobody":        {path, `{"to":[]}`, 422, "validation_failed", "to"},
			"nothing":       {path, `{}`, 422, "validation_failed", "to"},
			"a webhook":     {webhook, `{"to":["dev@example.com"]}`, 422, "not_a_mail", "webhook"},
			"a gone mail":   {"/endpoints/" + inbox.ID + "/requests/eml_00000000000000000000000000/releases", `{"to":["eve@evil.example"]}`, 404, "not_found", ""},
			"another field": {path, `{"to":["dev@example.com"],"cc":["x@example.com"]}`, 422, "validation_failed", "cc"},
		} {
			status, body := s.call(s.token, "POST", c.path, c.body)
			if status.StatusCode != c.status || !strings.Contains(body, `"`+c.code+`"`) || !strings.Contains(body, c.says) {
				t.Errorf("%s: %d %s", name, status.StatusCode, body)
			}
		}
		if len(s.relay.mails) != 1 {
			t.Errorf("%q was sent", s.relay.mails[1:])
		}
		if log := s.log.String(); strings.Contains(log, "482913") {
			t.Error("the log holds the mail")
		}
	})
}
