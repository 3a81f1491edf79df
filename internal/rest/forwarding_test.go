package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/account"
	"hookglass/internal/endpoint"
)

// newForwardingTarget gives the endpoint a target and returns its id.
func (s *site) newForwardingTarget(ref string) string {
	s.t.Helper()
	name, url := "Staging", "https://staging.example.com/hook"
	t, err := s.endpoints.CreateForwardingTarget(s.t.Context(), hookglass.System, ref, endpoint.TargetDraft{Name: &name, URL: &url})
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprint(t.ID)
}

func TestAForwardingTargetIsMadeChangedAndDeleted(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base := "/endpoints/" + e.ID + "/forwarding_targets"
		var made, got api.One[api.ForwardingTarget]
		s.want(http.StatusCreated, "POST", base, `{"forwarding_target":{"name":"Staging","url":"https://a.example.com/x?y=1"}}`, &made)
		d := made.Data
		if d.ID == 0 || d.Name != "Staging" || d.URL != "https://a.example.com/x?y=1" || !d.Enabled || d.TimeoutSeconds != 30 || d.RetryCount != 3 ||
			d.PausedAt != nil || d.EndpointID != e.ID {
			t.Errorf("made %+v", d)
		}
		one := fmt.Sprintf("%s/%d", base, d.ID)
		s.want(http.StatusOK, "PATCH", one, `{"forwarding_target":{"retry_count":0,"timeout_seconds":300,"enabled":false}}`, &got)
		if d := got.Data; d.RetryCount != 0 || d.TimeoutSeconds != 300 || d.Enabled || d.Name != "Staging" || d.URL != made.Data.URL {
			t.Errorf("changed %+v", d)
		}
		s.want(http.StatusOK, "GET", one, "", &got)
		if got.Data.TimeoutSeconds != 300 {
			t.Errorf("read %+v", got.Data)
		}
		second := s.newForwardingTarget(e.ID)
		var all, page api.List[api.ForwardingTarget]
		s.want(http.StatusOK, "GET", base, "", &all)
		s.want(http.StatusOK, "GET", base+"?limit=1", "", &page)
		if len(all.Data) != 2 || all.Meta.NextCursor != nil || len(page.Data) != 1 || page.Meta.NextCursor == nil {
			t.Fatalf("lists %+v %+v", all, page)
		}
		s.want(http.StatusOK, "GET", base+"?limit=1&cursor="+*page.Meta.NextCursor, "", &page)
		if len(page.Data) != 1 || fmt.Sprint(page.Data[0].ID) != second || page.Meta.NextCursor != nil {
			t.Errorf("second page %+v", page)
		}
		var gone api.One[api.DeletedNumber]
		s.want(http.StatusOK, "DELETE", one, "", &gone)
		if gone.Data != (api.DeletedNumber{ID: made.Data.ID, Deleted: true}) {
			t.Errorf("deleted %+v", gone.Data)
		}
		for _, method := range []string{"GET", "DELETE"} {
			s.want(http.StatusNotFound, method, one, "", nil)
		}
		s.want(http.StatusNotFound, "PATCH", one, `{"forwarding_target":{}}`, nil)
		other := s.newEndpoint("")
		s.want(http.StatusNotFound, "GET", "/endpoints/"+other.ID+"/forwarding_targets/"+second, "", nil)
		s.newEndpoint(`,"kind":"email"`)
	})
}

func TestWhatAForwardingTargetMayNotBe(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base := "/endpoints/" + e.ID + "/forwarding_targets"
		one := base + "/" + s.newForwardingTarget(e.ID)
		refuse := func(method, path, members, code, field string) {
			t.Helper()
			var refused api.Error
			s.want(http.StatusUnprocessableEntity, method, path, `{"forwarding_target":{`+members+`}}`, &refused)
			if refused.Error != code || len(refused.Details) == 0 || refused.Details[0].Field != "forwarding_target."+field {
				t.Errorf("%s: %+v", members, refused)
			}
		}
		const invalid = "validation_failed"
		refuse("POST", base, `"url":"https://a.example.com"`, invalid, "name")
		refuse("POST", base, `"name":"N"`, invalid, "url")
		for _, c := range [][3]string{
			{`"name":""`, invalid, "name"},
			{`"name":null`, invalid, "name"},
			{`"name":"` + strings.Repeat("n", 201) + `"`, invalid, "name"},
			{`"timeout_seconds":0`, invalid, "timeout_seconds"},
			{`"timeout_seconds":301`, invalid, "timeout_seconds"},
			{`"timeout_seconds":"30"`, invalid, "timeout_seconds"},
			{`"retry_count":-1`, invalid, "retry_count"},
			{`"retry_count":6`, invalid, "retry_count"},
			{`"retry_count":1.5`, invalid, "retry_count"},
			{`"enabled":1`, invalid, "enabled"},
			{`"id":7`, invalid, "id"},
			{`"paused_at":null`, invalid, "paused_at"},
			{`"url":"ftp://a.example.com"`, invalid, "url"},
			{`"url":"nonsense"`, invalid, "url"},
			{`"url":"https://a.example.com/` + strings.Repeat("x", 2048) + `"`, invalid, "url"},
			{`"url":"http://127.0.0.1/"`, "target_not_allowed", "url"},
			{`"url":"http://[::ffff:10.0.0.1]/"`, "target_not_allowed", "url"},
			{`"url":"http://0x7f.1/"`, "target_not_allowed", "url"},
			{`"url":"http://localhost:8080/"`, "target_not_allowed", "url"},
			{`"url":"http://169.254.169.254/latest"`, "target_not_allowed", "url"},
		} {
			refuse("PATCH", one, c[0], c[1], c[2])
		}
		for _, members := range []string{`"timeout_seconds":1`, `"retry_count":5`, `"name":"` + strings.Repeat("ä", 200) + `"`} {
			s.want(http.StatusOK, "PATCH", one, `{"forwarding_target":{`+members+`}}`, nil)
		}
		s.want(http.StatusUnprocessableEntity, "POST", base, `{}`, nil)
		s.want(http.StatusUnprocessableEntity, "POST", base, `{"target":{}}`, nil)
		for range 19 {
			s.newForwardingTarget(e.ID)
		}
		s.want(http.StatusUnprocessableEntity, "POST", base, `{"forwarding_target":{"name":"N","url":"https://a.example.com"}}`, nil)
	})
}

func TestForwardingNeedsAnActiveSubscription(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base := "/endpoints/" + e.ID + "/forwarding_targets"
		one := base + "/" + s.newForwardingTarget(e.ID)
		for _, state := range []hookglass.Subscription{hookglass.SubscriptionTrialing, hookglass.SubscriptionPastDue, hookglass.SubscriptionNone} {
			if _, err := s.accounts.SetAccount(t.Context(), s.owner.Account.ID, account.Change{Subscription: &state}); err != nil {
				t.Fatal(err)
			}
			var refused api.Error
			s.want(http.StatusForbidden, "POST", base, `{"forwarding_target":{"name":"N","url":"https://a.example.com"}}`, &refused)
			if refused.Error != "subscription_required" {
				t.Errorf("%s: %+v", state, refused)
			}
			s.want(http.StatusForbidden, "PATCH", one, `{"forwarding_target":{"url":"https://a.example.com"}}`, nil)
			s.want(http.StatusForbidden, "PATCH", one, `{"forwarding_target":{"enabled":true}}`, nil)
			s.want(http.StatusOK, "PATCH", one, `{"forwarding_target":{"enabled":false}}`, nil)
			s.want(http.StatusOK, "GET", one, "", nil)
		}
		s.want(http.StatusOK, "DELETE", one, "", nil)
	})
}

func TestDeliveriesAreListedNewestFirst(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		s.arrive(e.ID, nil) // before there is a target
		base := "/endpoints/" + e.ID + "/forwarding_targets/"
		one, two := s.newForwardingTarget(e.ID), s.newForwardingTarget(e.ID)
		events := []string{s.arrive(e.ID, nil), s.arrive(e.ID, nil)}
		s.want(http.StatusOK, "PATCH", base+two, `{"forwarding_target":{"enabled":false}}`, nil)
		events = append(events, s.arrive(e.ID, nil))

		var got api.List[api.Delivery]
		s.want(http.StatusOK, "GET", base+two+"/deliveries", "", &got)
		if len(got.Data) != 2 {
			t.Errorf("%d deliveries to a target that was disabled before the third event", len(got.Data))
		}
		s.want(http.StatusOK, "GET", base+one+"/deliveries?limit=2", "", &got)
		if len(got.Data) != 2 || got.Meta.NextCursor == nil || got.Data[0].EventID != events[2] || got.Data[1].EventID != events[1] {
			t.Fatalf("%+v", got)
		}
		d := got.Data[0]
		if d.Status != "pending" || d.StatusCode != nil || d.Attempts == nil || len(d.Attempts) != 0 || d.NextAttemptAt == nil || d.FinishedAt != nil ||
			d.ID != "dlv_"+strings.TrimPrefix(d.EventID, "req_")+"_"+one {
			t.Errorf("%+v", d)
		}
		s.want(http.StatusOK, "GET", base+one+"/deliveries?limit=2&cursor="+*got.Meta.NextCursor, "", &got)
		if len(got.Data) != 1 || got.Data[0].EventID != events[0] || got.Meta.NextCursor != nil {
			t.Errorf("%+v", got)
		}
		var single api.One[api.Delivery]
		s.want(http.StatusOK, "GET", base+one+"/deliveries/"+d.ID, "", &single)
		if single.Data.ID != d.ID || single.Data.EventID != d.EventID || single.Data.Status != "pending" || len(single.Data.Attempts) != 0 {
			t.Errorf("%+v", single)
		}
		for _, id := range []string{"dlv_x_" + one, "x", "dlv_" + one, strings.TrimSuffix(d.ID, "_"+one) + "_" + two} {
			s.want(http.StatusNotFound, "GET", base+one+"/deliveries/"+id, "", nil)
		}
		s.want(http.StatusUnprocessableEntity, "GET", base+one+"/deliveries?cursor=zz", "", nil)
		s.want(http.StatusUnprocessableEntity, "GET", base+one+"/deliveries?limit=101", "", nil)
		s.want(http.StatusOK, "DELETE", base+one, "", nil)
		s.want(http.StatusNotFound, "GET", base+one+"/deliveries", "", nil)
	})
}
