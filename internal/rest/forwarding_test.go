package rest_test

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/account"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
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
		for _, c := range []struct {
			change, period string
			limit          int // 0: none
		}{
			{`"name":"Staging"`, "", 0}, {`"rate_limit":5`, "second", 5}, {`"rate_period":"minute"`, "minute", 5}, {`"rate_limit":1000`, "minute", 1000}, {`"rate_period":null`, "minute", 1000},
			{`"rate_limit":1,"rate_period":"second"`, "second", 1}, {`"retry_count":0`, "second", 1}, {`"rate_limit":null`, "", 0}, {`"rate_limit":null,"rate_period":null`, "", 0},
		} {
			s.want(http.StatusOK, "PATCH", one, `{"forwarding_target":{`+c.change+`}}`, &got)
			limit, period := got.Data.RateLimit, got.Data.RatePeriod
			if (limit != nil) != (c.limit > 0) || (period != nil) != (c.limit > 0) || limit != nil && (*limit != c.limit || *period != c.period) {
				t.Errorf("%s: %v %v", c.change, limit, period)
			}
		}
		for _, c := range [][2]string{{`"when":"event:invoice.* -method:GET"`, "event:invoice.* -method:GET"}, {`"name":"Staging"`, "event:invoice.* -method:GET"}, {`"when":" path:/a "`, "path:/a"}, {`"when":null`, ""}, {`"when":""`, ""}} {
			s.want(http.StatusOK, "PATCH", one, `{"forwarding_target":{`+c[0]+`}}`, &got)
			if when := got.Data.When; (when != nil) != (c[1] != "") || when != nil && *when != c[1] {
				t.Errorf("%s: %v", c[0], when)
			}
		}
		for _, c := range []struct {
			change, by string
			seconds    int // 0: none
		}{
			{`"name":"Staging"`, "", 0}, {`"dedupe_by":"id"`, "id", 86400}, {`"dedupe_seconds":60`, "id", 60}, {`"dedupe_by":"header.Idempotency-Key"`, "header.Idempotency-Key", 60},
			{`"retry_count":0`, "header.Idempotency-Key", 60}, {`"dedupe_by":"/data/id","dedupe_seconds":604800`, "/data/id", 604800}, {`"dedupe_by":null`, "", 0}, {`"dedupe_by":null,"dedupe_seconds":null`, "", 0},
		} {
			s.want(http.StatusOK, "PATCH", one, `{"forwarding_target":{`+c.change+`}}`, &got)
			by, seconds := got.Data.DedupeBy, got.Data.DedupeSeconds
			if (by != nil) != (c.by != "") || (seconds != nil) != (c.by != "") || by != nil && (*by != c.by || *seconds != c.seconds) {
				t.Errorf("%s: %v %v", c.change, by, seconds)
			}
		}
		var refused api.Error
		s.want(http.StatusUnprocessableEntity, "PATCH", one, `{"forwarding_target":{"paused":true}}`, &refused)
		if len(refused.Details) != 1 || refused.Details[0].Field != "forwarding_target.paused" {
			t.Errorf("a disabled target is paused: %+v", refused)
		}
		s.want(http.StatusOK, "PATCH", one, `{"forwarding_target":{"enabled":true,"paused":true}}`, &got)
		if d := got.Data; d.PausedAt == nil || d.PauseReason == nil || *d.PauseReason != "manual" || !d.Enabled {
			t.Errorf("paused %+v", d)
		}
		s.want(http.StatusOK, "PATCH", one, `{"forwarding_target":{"paused":false,"enabled":false}}`, &got)
		if d := got.Data; d.PausedAt != nil || d.PauseReason != nil || d.Enabled {
			t.Errorf("resumed and disabled %+v", d)
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

// What waits for a target is told with it: how much, and until when if all goes well.
func TestATargetTellsWhatWaitsForIt(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base := "/endpoints/" + e.ID + "/forwarding_targets"
		var made api.One[api.ForwardingTarget]
		s.want(http.StatusCreated, "POST", base, `{"forwarding_target":{"name":"Staging","url":"https://a.example.com/"}}`, &made)
		one := fmt.Sprintf("%s/%d", base, made.Data.ID)
		other := s.newForwardingTarget(e.ID)
		s.want(http.StatusOK, "PATCH", base+"/"+other, `{"forwarding_target":{"enabled":false}}`, nil)
		want := func(t *testing.T, got api.ForwardingTarget, pending int, latest time.Duration) {
			t.Helper()
			if got.Pending == nil || *got.Pending != pending || (got.PendingUntil != nil) != (latest >= 0) {
				t.Fatalf("%+v, want %d", got, pending)
			}
			if got.PendingUntil != nil {
				if in := got.PendingUntil.Sub(s.db.Now()); in > latest || in < latest-time.Minute {
					t.Errorf("until %v from now, want %v", in, latest)
				}
			}
		}
		const none = -1
		want(t, made.Data, 0, none)
		for range 3 {
			s.arrive(e.ID, nil)
		}
		for _, c := range []struct {
			change string
			latest time.Duration
		}{
			{`"name":"Again"`, 0}, {`"rate_limit":1,"rate_period":"minute"`, 3 * time.Minute}, {`"paused":true`, none}, {`"paused":false`, 3 * time.Minute}, {`"rate_limit":null`, 0}, {`"enabled":false`, none},
		} {
			var got api.One[api.ForwardingTarget]
			var all api.List[api.ForwardingTarget]
			s.want(http.StatusOK, "PATCH", one, `{"forwarding_target":{`+c.change+`}}`, &got)
			want(t, got.Data, 3, c.latest)
			s.want(http.StatusOK, "GET", one, "", &got)
			want(t, got.Data, 3, c.latest)
			s.want(http.StatusOK, "GET", base, "", &all)
			want(t, all.Data[0], 3, c.latest)
			want(t, all.Data[1], 0, none)
			s.want(http.StatusOK, "GET", base+"?limit=1", "", &all)
			want(t, all.Data[0], 3, c.latest)
		}
	})
}

// Values of headers are told to nobody, and stay where a change gives them as they are shown.
func TestHeadersOfAForwardingTarget(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base := "/endpoints/" + e.ID + "/forwarding_targets"
		var made api.One[api.ForwardingTarget]
		s.want(http.StatusCreated, "POST", base, `{"forwarding_target":{"name":"Plain","url":"https://a.example.com/"}}`, &made)
		if made.Data.Headers == nil || len(made.Data.Headers) > 0 {
			t.Errorf("%v", made.Data.Headers)
		}
		s.want(http.StatusCreated, "POST", base, `{"forwarding_target":{"name":"N","url":"https://a.example.com/","headers":{"Authorization":" Bearer hush-1\t","X-Environment":"hush-2"}}}`, &made)
		one := fmt.Sprintf("%s/%d", base, made.Data.ID)
		held := func(want map[string]string) {
			t.Helper()
			var target hookglass.ForwardingTarget
			if err := s.db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
				target, err = v.ForwardingTarget(e.ID, made.Data.ID)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			got, err := s.endpoints.TargetHeaders(target)
			if err != nil || !maps.Equal(got, want) {
				t.Errorf("holds %v, %v, want %v", got, err, want)
			}
			var single api.One[api.ForwardingTarget]
			s.want(http.StatusOK, "GET", one, "", &single)
			shown := make(map[string]string)
			for name := range want {
				shown[name] = "[redacted]"
			}
			if !maps.Equal(single.Data.Headers, shown) {
				t.Errorf("shows %v, want %v", single.Data.Headers, shown)
			}
		}
		held(map[string]string{"Authorization": "Bearer hush-1", "X-Environment": "hush-2"})
		change := func(members string) {
			t.Helper()
			if _, body := s.call(s.token, "PATCH", one, `{"forwarding_target":{`+members+`}}`); strings.Contains(body, "hush") {
				t.Errorf("%s is answered %s", members, body)
			}
		}
		change(`"name":"Other"`)
		change(`"headers":null`)
		held(map[string]string{"Authorization": "Bearer hush-1", "X-Environment": "hush-2"})
		change(`"headers":{"authorization":"[redacted]","X-New":"hush-3"}`)
		held(map[string]string{"authorization": "Bearer hush-1", "X-New": "hush-3"})
		for _, members := range []string{
			`{"X-Other":"[redacted]"}`, `{"X-Hush":""}`, `{"X-Hush":null}`, `{"X-Hush":"hush\r\nX: 1"}`, `{"Host":"hush"}`, `{"X-Service-Hops":"hush"}`, `{"X-A":"hush","x-a":"hush"}`, `{"a b":"hush"}`,
			`{"X-A":"` + strings.Repeat("h", 8<<10-2) + `"}`, `"hush"`, `["hush"]`, `{"X-A":1}`, `{"X-A":["hush"]}`, `{"X-A":"hush","X-A":"hush"}`, many(21),
		} {
			res, body := s.call(s.token, "PATCH", one, `{"forwarding_target":{"headers":`+members+`}}`)
			if res.StatusCode != http.StatusUnprocessableEntity && res.StatusCode != http.StatusBadRequest || strings.Contains(body, "hush") {
				t.Errorf("%.80s: %d %s", members, res.StatusCode, body)
			}
		}
		s.want(http.StatusUnprocessableEntity, "POST", base, `{"forwarding_target":{"name":"N","url":"https://a.example.com/","headers":{"X-A":"[redacted]"}}}`, nil)
		held(map[string]string{"authorization": "Bearer hush-1", "X-New": "hush-3"})
		change(`"headers":{"X-A":"` + strings.Repeat("h", 8<<10-3) + `"}`)
		held(map[string]string{"X-A": strings.Repeat("h", 8<<10-3)})
		s.want(http.StatusOK, "PATCH", one, `{"forwarding_target":{"headers":`+many(20)+`}}`, nil)
		change(`"headers":{}`)
		held(map[string]string{})
	})
}

// many is an object of so many headers.
func many(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"X-%d":"v"`, i)
	}
	return "{" + strings.Join(members, ",") + "}"
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
			{`"dedupe_by":""`, invalid, "dedupe_by"},
			{`"dedupe_by":"x"`, invalid, "dedupe_by"},
			{`"dedupe_by":"header."`, invalid, "dedupe_by"},
			{`"dedupe_by":"header.a b"`, invalid, "dedupe_by"},
			{`"dedupe_by":"/a~2"`, invalid, "dedupe_by"},
			{`"dedupe_by":"/a~"`, invalid, "dedupe_by"},
			{`"dedupe_by":"id","dedupe_seconds":0`, invalid, "dedupe_seconds"},
			{`"dedupe_by":"id","dedupe_seconds":604801`, invalid, "dedupe_seconds"},
			{`"dedupe_seconds":60`, invalid, "dedupe_seconds"},
			{`"rate_limit":0`, invalid, "rate_limit"},
			{`"rate_limit":-1`, invalid, "rate_limit"},
			{`"rate_limit":1001`, invalid, "rate_limit"},
			{`"rate_limit":"5"`, invalid, "rate_limit"},
			{`"rate_limit":5,"rate_period":"hour"`, invalid, "rate_period"},
			{`"rate_limit":null,"rate_period":"second"`, invalid, "rate_period"},
			{`"rate_period":"second"`, invalid, "rate_period"},
			{`"when":7`, invalid, "when"},
			{`"when":"size:big"`, invalid, "when"},
			{`"when":"\"not closed"`, invalid, "when"},
			{`"when":"tag:x"`, invalid, "when"},
			{`"when":"path:/a status:500"`, invalid, "when"},
			{`"when":"after:1h"`, invalid, "when"},
			{`"when":"` + strings.Repeat("a", 1001) + `"`, invalid, "when"},
			{`"enabled":1`, invalid, "enabled"},
			{`"paused":1`, invalid, "paused"},
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

// failed ends so many deliveries to a target that wait, as one in which nobody answered.
func (s *site) failed(target string, n int) {
	s.t.Helper()
	id, _ := strconv.ParseInt(target, 10, 64)
	err := s.db.Update(s.t.Context(), hookglass.System, func(tx *store.Tx) error {
		claimed, err := tx.ClaimForwards(id, tx.Now, n, time.Minute)
		if err != nil || len(claimed) != n {
			return fmt.Errorf("%d are due: %w", len(claimed), err)
		}
		for i := range claimed {
			c := &claimed[i]
			c.State, c.FinishedAt, c.StatusCode = hookglass.ForwardFailed, tx.Now, 503
			c.Attempts = append(c.Attempts, hookglass.ForwardAttempt{At: tx.Now, StatusCode: 503})
		}
		_, err = tx.SettleForwards(claimed)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestFailedDeliveriesAreSentAgain(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		target := s.newForwardingTarget(e.ID)
		base := "/endpoints/" + e.ID + "/forwarding_targets/" + target
		var events, ids []string
		for range 4 {
			events = append(events, s.arrive(e.ID, nil))
			ids = append(ids, "dlv_"+strings.TrimPrefix(events[len(events)-1], "req_")+"_"+target)
		}
		s.failed(target, 3)
		list := func(filter string) (found []api.Delivery, next *string) {
			t.Helper()
			var got api.List[api.Delivery]
			s.want(http.StatusOK, "GET", base+"/deliveries?"+filter, "", &got)
			return got.Data, got.Meta.NextCursor
		}
		if found, next := list("status=failed&limit=2"); len(found) != 2 || next == nil || found[0].ID != ids[2] || found[1].ID != ids[1] {
			t.Errorf("%+v", found)
		} else if found, next = list("status=failed&limit=2&cursor=" + *next); len(found) != 1 || next != nil || found[0].ID != ids[0] {
			t.Errorf("%+v", found)
		}
		s.want(http.StatusUnprocessableEntity, "GET", base+"/deliveries?status=delivered", "", nil)

		var one, again api.One[api.Delivery]
		s.want(http.StatusOK, "POST", base+"/deliveries/"+ids[1]+"/resend", "", &one)
		if d := one.Data; d.ID != ids[1] || d.EventID != events[1] || d.Status != "pending" || len(d.Attempts) != 1 || d.NextAttemptAt == nil || d.FinishedAt != nil || *d.StatusCode != 503 {
			t.Errorf("%+v", d)
		}
		s.want(http.StatusOK, "POST", base+"/deliveries/"+ids[1]+"/resend", "{}", &again)
		if *again.Data.NextAttemptAt != *one.Data.NextAttemptAt || again.Data.Status != "pending" {
			t.Errorf("%+v", again.Data)
		}
		s.want(http.StatusOK, "POST", base+"/deliveries/"+ids[3]+"/resend", "", &again) // which has not been tried yet
		if again.Data.Status != "pending" || len(again.Data.Attempts) != 0 {
			t.Errorf("%+v", again.Data)
		}

		var all api.One[api.ResentDeliveries]
		for _, bounds := range []string{"?before=1h", "?after=2099-01-01"} {
			if s.want(http.StatusOK, "POST", base+"/resend"+bounds, "", &all); all.Data.Resent != 0 {
				t.Errorf("%s: %+v", bounds, all.Data)
			}
		}
		if s.want(http.StatusOK, "POST", base+"/resend?after=1h&before=2099-01-01T00:00:00Z", "", &all); all.Data.Resent != 2 {
			t.Errorf("%+v", all.Data)
		}
		for after, want := range map[string]int{"1h": 4, "2099-01-01": 0} {
			if found, _ := list("after=" + after); len(found) != want {
				t.Errorf("%d since %s", len(found), after)
			}
		}
		if found, _ := list("status=failed"); len(found) != 0 {
			t.Errorf("%d have failed", len(found))
		}
		s.failed(target, 4)
		s.want(http.StatusOK, "POST", base+"/resend?after=1h", "", &all)
		if all.Data.Resent != 4 || fmt.Sprint(all.Data.TargetID) != target || all.Data.PausedAt != nil {
			t.Errorf("%+v", all.Data)
		}
		s.want(http.StatusOK, "POST", base+"/resend", "", &all)
		if all.Data.Resent != 0 {
			t.Errorf("once more: %+v", all.Data)
		}

		refused := func(status int, code, path, body string) {
			t.Helper()
			var e api.Error
			if s.want(status, "POST", path, body, &e); e.Error != code || e.Message == "" {
				t.Errorf("%s: %+v", path, e)
			}
		}
		refused(http.StatusUnprocessableEntity, "validation_failed", base+"/resend?since=1h", "")
		refused(http.StatusUnprocessableEntity, "validation_failed", base+"/resend?after=", "")
		refused(http.StatusUnprocessableEntity, "validation_failed", base+"/resend?after=1h&after=2h", "")
		refused(http.StatusUnprocessableEntity, "validation_failed", base+"/resend?before=soon", "")
		refused(http.StatusUnprocessableEntity, "validation_failed", base+"/resend", `{"after":"1h"}`)
		for _, id := range []string{"dlv_x_" + target, "x", "dlv_" + target, strings.TrimSuffix(ids[0], "_"+target) + "_999"} {
			refused(http.StatusNotFound, "not_found", base+"/deliveries/"+id+"/resend", "")
		}
		reader := s.newToken(s.owner, hookglass.LevelAccount, 0, hookglass.ScopeRead)
		s.wantAs(reader, http.StatusForbidden, "POST", base+"/resend", "", nil)
		s.wantAs(reader, http.StatusForbidden, "POST", base+"/deliveries/"+ids[0]+"/resend", "", nil)
		s.wantAs("", http.StatusUnauthorized, "POST", base+"/resend", "", nil)
		s.failed(target, 4)
		s.want(http.StatusOK, "DELETE", "/endpoints/"+e.ID+"/requests/"+events[0], "", nil)
		refused(http.StatusNotFound, "not_found", base+"/deliveries/"+ids[0]+"/resend", "")
		s.want(http.StatusOK, "PATCH", base, `{"forwarding_target":{"enabled":false}}`, nil)
		refused(http.StatusConflict, "conflict", base+"/deliveries/"+ids[1]+"/resend", "")
		refused(http.StatusConflict, "conflict", base+"/resend", "")
		s.want(http.StatusOK, "DELETE", base, "", nil)
		refused(http.StatusNotFound, "not_found", base+"/resend", "")
		refused(http.StatusNotFound, "not_found", base+"/deliveries/"+ids[1]+"/resend", "")
	})
}
