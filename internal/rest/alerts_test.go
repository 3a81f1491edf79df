package rest_test

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"hookglass"
	"hookglass/api"
)

// alertThings are a tag, a channel and an alert.
type alertThings struct{ tag, channel, alert string }

func (s *site) newAlertThings(endpoint string) (made alertThings) {
	s.t.Helper()
	var tag api.One[api.Tag]
	s.want(201, "POST", "/tags", `{"tag":{"name":"`+rand.Text()+`"}}`, &tag)
	made.tag = strconv.FormatInt(tag.Data.ID, 10)
	made.channel = s.newChannel(rand.Text(), `"kind":"slack","config":{"webhook_url":"https://hooks.slack.com/canary"}`).ID
	made.alert = s.newAlert(endpoint, `"kind":"missing_webhook","config":{"window_minutes":5},"channel_ids":["`+made.channel+`"]`).ID
	return made
}

func (s *site) newChannel(name, members string) api.NotificationChannel {
	s.t.Helper()
	var made api.One[api.NotificationChannel]
	s.want(201, "POST", "/notification_channels", `{"notification_channel":{"name":"`+name+`",`+members+`}}`, &made)
	return made.Data
}

func (s *site) newAlert(endpoint, members string) api.Alert {
	s.t.Helper()
	var made api.One[api.Alert]
	s.want(201, "POST", "/endpoints/"+endpoint+"/alerts", `{"alert":{"name":"Watch",`+members+`}}`, &made)
	return made.Data
}

func TestTagsAreNamesThatEventsCarry(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		event := "/endpoints/" + e.ID + "/requests/" + s.arrive(e.ID, nil)
		s.want(200, "PUT", event+"/tags/billing", "", nil) // makes the tag
		var list api.List[api.Tag]
		s.want(200, "GET", "/tags", "", &list)
		if len(list.Data) != 1 || list.Data[0].Name != "billing" || list.Data[0].Color != nil {
			t.Fatalf("the tags are %+v", list.Data)
		}
		path := "/tags/" + strconv.FormatInt(list.Data[0].ID, 10)
		s.want(422, "POST", "/tags", `{"tag":{"name":"billing"}}`, nil)
		tags := func() string {
			var got api.One[api.EventDetail]
			s.want(200, "GET", event, "", &got)
			return fmt.Sprint(got.Data.Tags)
		}
		var one api.One[api.Tag]
		s.want(200, "PATCH", path, `{"tag":{"name":"money","color":"#0a7d33"}}`, &one)
		if one.Data.Name != "money" || *one.Data.Color != "#0a7d33" || tags() != "[money]" {
			t.Errorf("renamed it is %+v, and the event has %s", one.Data, tags())
		}
		s.want(200, "PATCH", path, `{"tag":{"color":null}}`, &one)
		if one.Data.Color != nil {
			t.Errorf("the colour is %v", *one.Data.Color)
		}
		s.want(200, "DELETE", path, "", nil)
		s.want(404, "GET", path, "", nil)
		if tags() != "[]" {
			t.Errorf("the event still has %s", tags())
		}
		for _, body := range []string{`{}`, `{"tag":{}}`, `{"tag":{"name":""}}`, `{"tag":{"name":" a"}}`, `{"tag":{"name":"a","color":"#12"}}`, `{"tag":{"name":1}}`,
			`{"tag":{"name":"a","x":1}}`, `{"tag":{"name":"a","workspace_id":999}}`, `{"tag":{"name":"` + strings.Repeat("a", 65) + `"}}`, `{"tag":{"name":null}}`} {
			s.want(422, "POST", "/tags", body, nil)
		}
		s.want(201, "POST", "/tags", `{"tag":{"name":"`+strings.Repeat("a", 64)+`"}}`, nil)
	})
}

func TestThingsOfWorkspacesAreMadeWhereTheBodySays(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		second, err := s.accounts.CreateWorkspace(t.Context(), hookglass.System, s.owner.Account.ID, "Second")
		if err != nil {
			t.Fatal(err)
		}
		var tag api.One[api.Tag]
		s.want(201, "POST", "/tags", fmt.Sprintf(`{"tag":{"name":"there","workspace_id":%d}}`, second.ID), &tag)
		if tag.Data.WorkspaceID != second.ID {
			t.Errorf("it is in %d", tag.Data.WorkspaceID)
		}
		s.want(201, "POST", "/tags", `{"tag":{"name":"there"}}`, &tag)
		if tag.Data.WorkspaceID != s.owner.Workspace.ID {
			t.Errorf("without a workspace it is in %d", tag.Data.WorkspaceID)
		}
		var list api.List[api.Tag]
		for query, n := range map[string]int{"": 2, fmt.Sprintf("?workspace_id=%d", second.ID): 1} {
			if s.want(200, "GET", "/tags"+query, "", &list); len(list.Data) != n {
				t.Errorf("%q lists %d tags, want %d", query, len(list.Data), n)
			}
		}
		s.want(404, "GET", "/tags?workspace_id=9999", "", nil)
		home := s.newToken(s.owner, hookglass.LevelWorkspace, s.owner.Workspace.ID, hookglass.ScopeRead, hookglass.ScopeWrite)
		s.wantAs(home, 422, "POST", "/tags", fmt.Sprintf(`{"tag":{"name":"x","workspace_id":%d}}`, second.ID), nil)
		s.wantAs(home, 404, "GET", fmt.Sprintf("/tags?workspace_id=%d", second.ID), "", nil)
	})
}

func TestCredentialsOfChannelsNeverComeBack(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		for kind, config := range map[string]string{
			"slack": `{"webhook_url":"https://hooks.slack.com/canary"}`, "discord": `{"webhook_url":"https://discord.com/api/webhooks/canary"}`,
			"teams": `{"webhook_url":"https://example.webhook.office.com/canary"}`, "telegram": `{"bot_token":"1:canary","chat_id":-1001}`,
			"email": `{"to":["a@example.com","b@example.com"]}`, "webhook": `{"url":"https://example.com/hook?canary=1","secret":"canary-canary","events":["webhook.received"]}`,
		} {
			_, made := s.call(s.token, "POST", "/notification_channels", `{"notification_channel":{"name":"`+kind+`","kind":"`+kind+`","config":`+config+`}}`)
			id := made[strings.Index(made, "chan_") : strings.Index(made, "chan_")+31]
			_, changed := s.call(s.token, "PATCH", "/notification_channels/"+id, `{"notification_channel":{"name":"`+kind+` 2"}}`)
			_, tested := s.call(s.token, "POST", "/notification_channels/"+id+"/test", "")
			_, list := s.call(s.token, "GET", "/notification_channels", "")
			for _, text := range []string{made, changed, tested, list, s.log.String()} {
				if strings.Contains(text, "canary") {
					t.Errorf("%s: %s", kind, text)
				}
			}
			if !strings.Contains(changed, kind+" 2") || !strings.Contains(tested, `"delivered":`) {
				t.Errorf("%s: %s and %s", kind, changed, tested)
			}
		}
		made := s.newChannel("own secret", `"kind":"webhook","config":{"url":"https://example.com/"}`)
		if !strings.HasPrefix(made.Secret, "whsec_") {
			t.Errorf("no secret was made: %+v", made)
		}
		if _, again := s.call(s.token, "GET", "/notification_channels/"+made.ID, ""); strings.Contains(again, "whsec_") {
			t.Error("it is shown twice")
		}
	})
}

func TestChannelsAreJudged(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		slack := func(config string) string {
			return `{"notification_channel":{"name":"x","kind":"slack","config":` + config + `}}`
		}
		for _, body := range []string{
			`{}`, `{"notification_channel":{}}`, slack(`{}`), slack(`{"webhook_url":""}`), slack(`{"webhook_url":1}`), slack(`{"webhook_url":"x"}`), slack(`{"url":"https://a.example.com"}`),
			slack(`{"webhook_url":"https://a.example.com","x":1}`), slack(`null`), `{"notification_channel":{"name":"x","kind":"fax","config":{"webhook_url":"https://a.example.com"}}}`,
			`{"notification_channel":{"name":"x","kind":"email","config":{"to":[]}}}`, `{"notification_channel":{"name":"x","kind":"email","config":{"to":["nobody"]}}}`,
			`{"notification_channel":{"name":"x","kind":"telegram","config":{"bot_token":"1:a","chat_id":"x y"}}}`,
			`{"notification_channel":{"name":"x","kind":"telegram","config":{"bot_token":"1:a/../b","chat_id":"7"}}}`,
			`{"notification_channel":{"name":"x","kind":"webhook","config":{"url":"https://a.example.com","events":["nothing"]}}}`,
			`{"notification_channel":{"name":"x","kind":"webhook","config":{"url":"https://a.example.com","secret":"whsec_short"}}}`,
			`{"notification_channel":{"name":"x","kind":"webhook","config":{"url":"https://user:canary@a.example.com"}}}`,
		} {
			s.want(422, "POST", "/notification_channels", body, nil)
		}
		c := s.newChannel("x", `"kind":"slack","config":{"webhook_url":"https://a.example.com/"}`)
		s.want(422, "POST", "/notification_channels", slack(`{"webhook_url":"https://a.example.com"}`), nil) // the name is taken
		s.want(422, "PATCH", "/notification_channels/"+c.ID, `{"notification_channel":{"kind":"teams"}}`, nil)
		s.want(200, "PATCH", "/notification_channels/"+c.ID, `{"notification_channel":{"kind":"slack"}}`, nil) // it stays what it is
		s.want(200, "DELETE", "/notification_channels/"+c.ID, "", nil)
		s.want(404, "POST", "/notification_channels/"+c.ID+"/test", "", nil)
	})
}

func TestAlertsAreJudged(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		path := "/endpoints/" + e.ID + "/alerts"
		with := func(kind, config string) string {
			return `{"alert":{"name":"x","kind":"` + kind + `","config":` + config + `}}`
		}
		for _, good := range []string{
			with("missing_webhook", `{"window_minutes":1}`), with("missing_webhook", `{"window_minutes":1440}`), with("error_response", `{"threshold":1,"window_minutes":1440}`),
			with("keyword_match", `{"keyword":"a"}`), with("keyword_match", `{"keyword":"a","field":"/data/x~1y"}`), with("volume_spike", `{"factor":1.01,"window_minutes":5,"min_count":1}`),
			with("error_response", `{"threshold":1000000,"window_minutes":5}`), with("volume_spike", `{"factor":2,"window_minutes":5,"min_count":1000000}`),
		} {
			s.want(201, "POST", path, good, nil)
		}
		for _, bad := range []string{
			`{}`, `{"alert":{}}`, with("nothing", `{}`), with("missing_webhook", `{}`), with("missing_webhook", `{"window_minutes":0}`), with("missing_webhook", `{"window_minutes":1441}`),
			with("missing_webhook", `{"window_minutes":1.5}`), with("missing_webhook", `{"window_minutes":5,"threshold":1}`), with("missing_webhook", `{"window_minutes":5,"x":1}`),
			with("error_response", `{"threshold":0,"window_minutes":5}`), with("error_response", `{"window_minutes":5}`), with("keyword_match", `{"keyword":""}`),
			with("keyword_match", `{"keyword":"a","field":"nose"}`), with("keyword_match", `{"keyword":"a","window_minutes":5}`), with("keyword_match", `{"keyword":"`+strings.Repeat("a", 201)+`"}`),
			with("volume_spike", `{"factor":1,"window_minutes":5}`), with("volume_spike", `{"factor":"2","window_minutes":5}`), with("volume_spike", `{"factor":2,"window_minutes":5,"min_count":0}`),
			with("error_response", `{"threshold":1000001,"window_minutes":5}`), with("volume_spike", `{"factor":2,"window_minutes":5,"min_count":1000001}`),
			`{"alert":{"name":"x","kind":"keyword_match","config":{"keyword":"a"},"channel_ids":["chan_00000000000000000000000000"]}}`,
			`{"alert":{"name":"","kind":"keyword_match","config":{"keyword":"a"}}}`, `{"alert":{"name":"x","kind":"keyword_match","config":{"keyword":"a"},"enabled":"yes"}}`,
		} {
			s.want(422, "POST", path, bad, nil)
		}
		a := s.newAlert(e.ID, `"kind":"error_response","config":{"threshold":5,"window_minutes":10}`)
		var changed api.One[api.Alert]
		s.want(200, "PATCH", path+"/"+a.ID, `{"alert":{"config":{"threshold":6}}}`, &changed)
		if changed.Data.Config.Threshold != 6 || changed.Data.Config.WindowMinutes != 10 || changed.Data.State != "ok" {
			t.Errorf("changed it is %+v", changed.Data)
		}
		s.want(422, "PATCH", path+"/"+a.ID, `{"alert":{"kind":"volume_spike"}}`, nil)
		s.want(200, "PATCH", path+"/"+a.ID, `{"alert":{"kind":"error_response"}}`, nil) // it stays what it is
		k := s.newAlert(e.ID, `"kind":"keyword_match","config":{"keyword":"a","field":"body"}`)
		s.want(200, "PATCH", path+"/"+k.ID, `{"alert":{"config":{"keyword":"b"}}}`, &changed)
		if c := changed.Data.Config; c.Keyword != "b" || c.Field != "body" {
			t.Errorf("with another keyword it is %+v", changed.Data)
		}
		s.want(200, "DELETE", path+"/"+a.ID, "", nil)
		s.want(404, "GET", path+"/"+a.ID+"/incidents", "", nil)
	})
}

// An incident from outside: an event, one line in the feed, the history, and what the metrics say.
func TestAnIncidentIsSeenEverywhere(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		a := s.newAlert(e.ID, `"kind":"keyword_match","config":{"keyword":"AMOUNT","field":"body"}`)
		id := s.arrive(e.ID, nil)
		for range 2 { // the second time changes nothing
			if err := s.alerts.Evaluate(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var incidents api.List[api.Incident]
		s.want(200, "GET", "/endpoints/"+e.ID+"/alerts/"+a.ID+"/incidents", "", &incidents)
		if len(incidents.Data) != 1 || incidents.Data[0].RequestID == nil || *incidents.Data[0].RequestID != id || incidents.Data[0].ResolvedAt != nil {
			t.Errorf("the history is %+v", incidents.Data)
		}
		var feed api.ActivityList
		s.want(200, "GET", "/events", "", &feed)
		if len(feed.Data) != 2 || feed.Data[0].Type != "alert.triggered" || feed.Data[1].Type != "webhook.received" {
			t.Fatalf("the feed is %+v", feed.Data)
		}
		if data := feed.Data[0].Data; data["alert_id"] != a.ID || data["name"] != "Watch" || data["kind"] != "keyword_match" || data["summary"] == "" {
			t.Errorf("the line tells %+v", data)
		}
		var m api.One[api.Metrics]
		s.want(200, "GET", "/endpoints/"+e.ID+"/metrics?window=24h&step=1h", "", &m)
		if m.Data.Total != 1 || len(m.Data.Series) != 24 || m.Data.Series[23].Count != 1 || m.Data.BySignature["unchecked"] != 1 || m.Data.Health.SuccessRate != nil {
			t.Errorf("the metrics are %+v", m.Data)
		}
	})
}

func TestWindowsAndStepsOfMetrics(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		path := "/endpoints/" + s.newEndpoint("").ID + "/metrics"
		for query, steps := range map[string]int{"": 24, "?window=1h": 30, "?window=1h&step=5m": 12, "?window=7d&step=1h": 168, "?window=7d": 28, "?window=90d&step=1d": 90, "?window=24h&step=1m": 1440, "?window=25h": 25} {
			var m api.One[api.Metrics]
			if s.want(200, "GET", path+query, "", &m); len(m.Data.Series) != steps {
				t.Errorf("%q has %d steps of %s, want %d", query, len(m.Data.Series), m.Data.Step, steps)
			}
		}
		for _, query := range []string{"?window=0h", "?window=x", "?window=91d", "?window=24h&step=7m", "?window=24h&step=5h", "?window=1h&step=2h", "?window=25h&step=30m", "?window=+1h", "?window=1", "?step=1s", "?window=90d&step=1h"} {
			s.want(422, "GET", path+query, "", nil)
		}
	})
}
