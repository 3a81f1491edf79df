package rest_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/account"
	"hookglass/internal/capture"
	"hookglass/internal/store"
)

// tunnelThings are an outage of an endpoint, and the key of a temporary endpoint with an event of it.
type tunnelThings struct{ gapID, key, keyEndpoint, keyEvent string }

func (s *site) newTunnelThings(endpoint string) (made tunnelThings) {
	s.t.Helper()
	made.gapID = s.newGap(endpoint)
	e, key, err := s.endpoints.CreateTemporary(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	made.key, made.keyEndpoint = key, string(e.ID)
	made.keyEvent = s.arrive(string(e.ID), nil)
	return made
}

// newGap opens an outage of an endpoint: a session subscribes to it and is lost.
func (s *site) newGap(endpoint string) (id string) {
	s.t.Helper()
	err := s.db.Update(s.t.Context(), hookglass.System, func(tx *store.Tx) error {
		session := hookglass.TunnelSession{ID: hookglass.NewRandomID(hookglass.PrefixTunnelSession), Node: "node_test"}
		if err := tx.CreateTunnelSession(&session); err != nil {
			return err
		}
		sub := hookglass.TunnelSubscription{SessionNum: session.Num, TargetURL: "http://localhost:3000", Hostname: "ada-laptop"}
		if _, err := tx.SubscribeTunnel(endpoint, &sub); err != nil {
			return err
		}
		if err := tx.EndTunnels([]store.TunnelEnd{{Session: session.Num, Lost: true, Since: tx.Now}}); err != nil {
			return err
		}
		gaps, err := tx.Gaps([]int64{sub.EndpointNum}, 0, 1)
		if err == nil {
			id = gaps[0].ID
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func TestConnectGivesATicketWithoutAnEnvelope(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint(`,"custom_id":"payments"`)
		mail := s.newEndpoint(`,"kind":"email"`)
		for _, ref := range []string{e.ID, "payments"} {
			var got api.TunnelTicket
			s.want(200, "POST", "/tunnel/connect", `{"endpoint_id":"`+ref+`","unheard_of":1,"client_name":"x","client_metadata":{"hostname":"h","os":"linux","arch":"amd64","kernel":6}}`, &got)
			if got.Ticket == "" || got.ExpiresIn != 30 || got.URL != "wss://hooks.example.com/cable?ticket="+got.Ticket || got.TunnelClientID == "" || got.TunnelClientCredential == "" ||
				got.EndpointID != "" || got.TunnelProtocol.DeliveryReportVersion != 2 || got.TunnelProtocol.EvidenceBodyLimit != 65536 || len(got.TunnelProtocol.Capabilities) != 2 {
				t.Errorf("%+v", got)
			}
		}
		s.want(403, "POST", "/tunnel/connect", `{"endpoint_id":"`+mail.ID+`"}`, nil)
		s.want(404, "POST", "/tunnel/connect", `{"endpoint_id":"`+string(hookglass.NewEndpointID())+`"}`, nil)
		s.want(422, "POST", "/tunnel/connect", `{}`, nil)
		s.want(422, "POST", "/tunnel/connect", `{"endpoint_id":7}`, nil)
		s.want(422, "POST", "/tunnel/connect", `{"endpoint_id":"`+e.ID+`","client_name":"`+strings.Repeat("x", 256)+`"}`, nil)
		foreign := s.newToken(s.register("eve@example.com"), hookglass.LevelAccount, 0, hookglass.ScopeTunnel)
		s.wantAs(foreign, 404, "POST", "/tunnel/connect", `{"endpoint_id":"`+e.ID+`"}`, nil)
		readOnly := s.newToken(s.owner, hookglass.LevelAccount, 0, hookglass.ScopeRead)
		s.wantAs(readOnly, 403, "POST", "/tunnel/connect", `{"endpoint_id":"`+e.ID+`"}`, nil)
	})
}

func TestGapsAreListedWholeOrByPages(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var ids []string
		for range 5 {
			ids = append(ids, s.newGap(s.newEndpoint("").ID))
		}
		list := func(query string) (page api.List[api.Gap]) {
			s.want(200, "GET", "/tunnel/gaps"+query, "", &page)
			return page
		}
		if all := list(""); len(all.Data) != 5 || all.Data[0].ID != ids[0] || all.Meta.NextCursor != nil {
			t.Errorf("without limit: %+v", all)
		}
		var got []string
		for query := "?limit=2"; ; {
			page := list(query)
			for _, g := range page.Data {
				got = append(got, g.ID)
			}
			if page.Meta.NextCursor == nil {
				break
			}
			query = "?limit=2&cursor=" + *page.Meta.NextCursor
		}
		if !slices.Equal(got, ids) {
			t.Errorf("pages hold %v, want %v", got, ids)
		}
		for _, query := range []string{"limit=0", "limit=101", "limit=x", "cursor=x"} {
			s.want(422, "GET", "/tunnel/gaps?"+query, "", nil)
		}
	})
}

func TestAnAnonymousConnectNeedsTheKey(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e, key, err := s.endpoints.CreateTemporary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got api.TunnelTicket
		s.wantAs("", 200, "POST", "/tunnel/connect_anonymous", `{"tunnel_key":"`+key+`","more":{}}`, &got)
		if got.EndpointID != string(e.ID) || got.Ticket == "" {
			t.Errorf("%+v", got)
		}
		for _, wrong := range []string{"tk_00000000000000000000000000", "x", s.token} {
			var refused api.Error
			s.wantAs("", 401, "POST", "/tunnel/connect_anonymous", `{"tunnel_key":"`+wrong+`"}`, &refused)
			if refused.Message != "The tunnel_key is not that of a temporary endpoint." {
				t.Errorf("%s: %+v", wrong, refused)
			}
		}
		s.wantAs("", 422, "POST", "/tunnel/connect_anonymous", `{}`, nil)
	})
}

// The limits count every call, whatever became of it (spec: decisions, section 14).
func TestConnectsAreLimited(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		for i := range 30 {
			status, body := 200, `{"endpoint_id":"`+e.ID+`"}`
			if i%2 == 0 {
				status, body = 422, `{}`
			}
			s.want(status, "POST", "/tunnel/connect", body, nil)
		}
		var refused api.Error
		res := s.want(429, "POST", "/tunnel/connect", `{"endpoint_id":"`+e.ID+`"}`, &refused)
		if refused.RetryAfter < 1 || res.Header.Get("Retry-After") == "" {
			t.Errorf("%+v, Retry-After %q", refused, res.Header.Get("Retry-After"))
		}
		other, _ := s.tokenFor(0)
		s.wantAs(other, 200, "POST", "/tunnel/connect", `{"endpoint_id":"`+e.ID+`"}`, nil)
		for range 10 {
			s.wantAs("", 401, "POST", "/tunnel/connect_anonymous", `{"tunnel_key":"tk_00000000000000000000000000"}`, nil)
		}
		s.wantAs("", 429, "POST", "/tunnel/connect_anonymous", `{"tunnel_key":"tk_00000000000000000000000000"}`, nil)
	})
}

func TestReportsAreCheckedAndCountOnce(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		id := s.arrive(e.ID, nil)
		const path = "/tunnel/delivery_reports"
		body := func(members string) string {
			return `{"endpoint_id":"` + e.ID + `","webhook_request_id":"` + id + `","target_url":"http://localhost:3000/x"` + members + `}`
		}
		evidence := func(members string) string { return body(`,"status_code":200,"report_version":2,` + members) }
		fields := make([]string, hookglass.EvidenceFields+1)
		for i := range fields {
			fields[i] = fmt.Sprintf(`"X-%d":""`, i)
		}
		word := strings.Repeat("x", 256)
		for name, c := range map[string]struct {
			status int
			body   string
		}{
			"attempt too long":  {422, body(`,"status_code":200,"delivery_attempt_id":"` + word + `"`)},
			"attempt of lines":  {422, body(`,"status_code":200,"delivery_attempt_id":"a\nb"`)},
			"client too long":   {422, body(`,"status_code":200,"tunnel_client_id":"` + word + `"`)},
			"reason too long":   {422, evidence(`"truncation_reason":"` + word + `"`)},
			"unknown encoding":  {422, evidence(`"body":"x","body_encoding":"latin1"`)},
			"negative length":   {422, evidence(`"declared_content_length":-1`)},
			"too many fields":   {422, evidence(`"response_headers":{` + strings.Join(fields, ",") + `}`)},
			"fields too long":   {422, evidence(`"response_headers":{"X":"` + strings.Repeat("x", hookglass.EvidenceFieldsLimit) + `"}`)},
			"no status":         {422, body("")},
			"status as text":    {422, body(`,"status_code":"200"`)},
			"impossible status": {422, body(`,"status_code":42`)},
			"status beyond":     {422, body(`,"status_code":600`)},
			"no target":         {422, `{"endpoint_id":"` + e.ID + `","webhook_request_id":"` + id + `","status_code":200}`},
			"target no URI":     {422, `{"endpoint_id":"` + e.ID + `","webhook_request_id":"` + id + `","status_code":200,"target_url":"localhost"}`},
			"no request":        {422, `{"endpoint_id":"` + e.ID + `","target_url":"http://x.test/","status_code":200}`},
			"no endpoint":       {422, `{"webhook_request_id":"` + id + `","target_url":"http://x.test/","status_code":200}`},
			"unknown request":   {404, `{"endpoint_id":"` + e.ID + `","webhook_request_id":"req_00000000000000000000000000","target_url":"http://x.test/","status_code":200}`},
			"unknown category":  {422, body(`,"status_code":0,"failure_category":"bad_luck"`)},
			"version 3":         {422, body(`,"status_code":200,"report_version":3`)},
			"negative time":     {422, body(`,"status_code":200,"response_time_ms":-1`)},
			"no base64":         {422, body(`,"status_code":200,"report_version":2,"body":"%","body_encoding":"base64"`)},
			"wrong credential":  {403, body(`,"status_code":200,"tunnel_client_id":"tcl_x","tunnel_client_credential":"tcc_x"`)},
			"client with a NUL": {403, body(`,"status_code":200,"tunnel_client_id":"tcl_\u0000","tunnel_client_credential":"tcc_x"`)},
			"no JSON":           {400, `{`},
			"what is allowed":   {200, body(`,"status_code":0,"failure_category":"connection_refused","future":[1]`)},
		} {
			if res, text := s.call(s.token, "POST", path, c.body); res.StatusCode != c.status {
				t.Errorf("%s: %d %s, want %d", name, res.StatusCode, text, c.status)
			}
		}
		if res, text := s.call(s.token, "POST", path, `{}`); res.StatusCode != 422 || strings.Count(text, `"is required"`) != 4 {
			t.Errorf("of an empty report it says %s", text) // all that is wrong, at once
		}
		s.want(200, "POST", path, `{"endpoint_id":"`+e.ID+`","webhook_request_id":"`+s.arrive(e.ID, nil)+
			`","target_url":"http://x.test/","status_code":200,"report_version":2,"body":"é","body_encoding":"UTF-8"}`, nil) // what others call it
		var ticket api.TunnelTicket
		s.want(200, "POST", "/tunnel/connect", `{"endpoint_id":"`+e.ID+`"}`, &ticket)
		mine := `,"tunnel_client_id":"` + ticket.TunnelClientID + `","tunnel_client_credential":"` + ticket.TunnelClientCredential + `"`
		full := `,"status_code":201,"report_version":2,"delivery_attempt_id":"a1","response_time_ms":12,"response_message":"Created","content_type":"text/plain",` +
			`"response_headers":{"X-A":"1"},"body":"aGk=","body_encoding":"base64","declared_content_length":7,"decoded_bytes_observed":2,"retained_bytes":2,"capture_complete":true` + mine
		var first, again api.ReportedDelivery
		s.want(200, "POST", path, body(full), &first)
		if first.Status != "ok" || !first.Data.Delivered || first.Data.EndpointID != e.ID || first.Data.WebhookRequestID != id {
			t.Errorf("%+v", first)
		}
		s.want(200, "POST", path, body(`,"status_code":500,"delivery_attempt_id":"a1"`), &again)
		if again.Data.StatusCode != 201 || !again.Data.Delivered {
			t.Errorf("the same attempt again answers %+v", again)
		}
		s.want(200, "POST", path, body(`,"status_code":500,"delivery_attempt_id":"a2"`), nil)
		s.want(403, "POST", path, body(`,"status_code":200,"tunnel_client_id":"`+ticket.TunnelClientID+`","tunnel_client_credential":"tcc_wrong"`), nil)
		other := s.arrive(e.ID, nil)
		s.want(409, "POST", path, `{"endpoint_id":"`+e.ID+`","webhook_request_id":"`+other+`","target_url":"http://x.test/","status_code":200,"delivery_attempt_id":"a1"}`, nil)

		var shown api.One[api.EventDetail]
		s.want(200, "GET", "/endpoints/"+e.ID+"/requests/"+id, "", &shown)
		d := shown.Data.Deliveries
		if len(d) != 3 || d[0].Status != "failed" || d[1].Status != "delivered" || d[1].StatusCode != 201 || d[1].Body == nil || *d[1].Body != "hi" || d[1].ResponseHeaders["X-A"] != "1" ||
			d[0].DeclaredLength != nil || d[1].DeclaredLength == nil || *d[1].DeclaredLength != 7 || d[2].FailureCategory == nil || *d[2].FailureCategory != "connection_refused" {
			t.Errorf("the event shows %+v", d)
		}
		var left api.Undelivered
		s.want(200, "GET", "/tunnel/undelivered?endpoint_ids[]="+e.ID, "", &left)
		if len(left.Data) != 1 || left.Data[0].ID != other || left.Meta != nil {
			t.Errorf("a success was taken back, or something is lost: %+v", left)
		}
	})
}

// A key that is left out is a field that is missing, as it is of connect_anonymous and claim; a wrong one is no right.
func TestAKeyThatIsLeftOutIsRequired(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		for path, rest := range map[string]string{
			"/tunnel/connect_anonymous":          ``,
			"/tunnel/delivery_reports_anonymous": `,"webhook_request_id":"req_x","target_url":"http://localhost:3000","status_code":200`,
			"/tunnel/signature_config_anonymous": `,"signature_config":{"provider":"stripe","secret":"whsec_x"}`,
		} {
			for _, none := range []string{`"other":1`, `"tunnel_key":null`, `"tunnel_key":""`} {
				res, text := s.call("", "POST", path, "{"+none+rest+"}")
				if res.StatusCode != 422 || !strings.Contains(text, `"details":[{"field":"tunnel_key","message":"is required"}]`) {
					t.Errorf("%s %s: %d %s", path, none, res.StatusCode, text)
				}
			}
		}
	})
}

// Temporary endpoints from end to end, without an account.
func TestAKeyDoesWhatATunnelNeeds(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e, key, err := s.endpoints.CreateTemporary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		id, second := s.arrive(string(e.ID), nil), s.arrive(string(e.ID), nil)
		s.wantAs("", 200, "POST", "/tunnel/delivery_reports_anonymous", `{"tunnel_key":"`+key+`","webhook_request_id":"`+id+`","target_url":"http://localhost:3000","status_code":200}`, nil)
		s.wantAs("", 401, "POST", "/tunnel/delivery_reports_anonymous", `{"tunnel_key":"tk_00000000000000000000000000","webhook_request_id":"`+id+`","target_url":"http://localhost:3000","status_code":200}`, nil)
		mine := s.newEndpoint("")
		s.wantAs("", 404, "POST", "/tunnel/delivery_reports_anonymous", `{"tunnel_key":"`+key+`","endpoint_id":"`+mine.ID+`","webhook_request_id":"`+s.arrive(mine.ID, nil)+`","target_url":"http://localhost:3000","status_code":200}`, nil)

		var missed, left api.Undelivered
		s.wantAs("", 200, "GET", "/tunnel/missed_anonymous?since=1h&tunnel_key="+key, "", &missed)
		s.wantAs(key, 200, "GET", "/tunnel/undelivered?endpoint_ids[]="+string(e.ID), "", &left)
		for _, got := range []api.Undelivered{missed, left} {
			if len(got.Data) != 1 || got.Data[0].ID != second {
				t.Errorf("%+v", got)
			}
		}
		s.wantAs(key, 404, "GET", "/tunnel/undelivered?endpoint_ids[]="+mine.ID, "", nil)
		gap := s.newGap(string(e.ID))
		var gaps api.List[api.Gap]
		s.wantAs(key, 200, "GET", "/tunnel/gaps", "", &gaps)
		if len(gaps.Data) != 1 || gaps.Data[0].ID != gap || gaps.Data[0].State != "open" || gaps.Data[0].ClientHostname == nil || *gaps.Data[0].ClientHostname != "ada-laptop" {
			t.Errorf("%+v", gaps)
		}
		var recovered api.One[api.Gap]
		s.wantAs(key, 200, "POST", "/tunnel/gaps/"+gap+"/recovery", `{"outcome":"completed","attempted_count":1,"succeeded_count":1,"failed_count":0}`, &recovered)
		if recovered.Data.State != "open" || recovered.Data.RecoveryOutcome == nil || *recovered.Data.RecoveryOutcome != "completed" {
			t.Errorf("%+v", recovered)
		}

		config := `{"tunnel_key":"` + key + `","signature_config":{"provider":"stripe","secret":"whsec_x"}}`
		s.wantAs("", 201, "POST", "/tunnel/signature_config_anonymous", config, nil)
		res, text := s.call("", "POST", "/tunnel/signature_config_anonymous", config)
		if res.StatusCode != 409 || !strings.Contains(text, `"existing_provider":"stripe"`) {
			t.Errorf("%d %s", res.StatusCode, text)
		}
		s.wantAs(key, 403, "POST", "/tunnel/connect", `{"endpoint_id":"`+string(e.ID)+`"}`, nil)

		var claimed api.One[api.Endpoint]
		s.want(200, "POST", "/endpoints/claim", `{"tunnel_key":"`+key+`","name":"Kept"}`, &claimed)
		if claimed.Data.ID != string(e.ID) || claimed.Data.ExpiresAt != nil || claimed.Data.WorkspaceID == nil || claimed.Data.Name != "Kept" || claimed.Data.TunnelKey != "" {
			t.Errorf("%+v", claimed)
		}
		s.want(200, "GET", "/endpoints/"+string(e.ID)+"/requests/"+id, "", nil)
		s.wantAs(key, 401, "GET", "/endpoints/"+string(e.ID), "", nil)
		s.want(404, "POST", "/endpoints/claim", `{"tunnel_key":"`+key+`"}`, nil)
		s.wantError(422, "validation_failed", "POST", "/endpoints/claim", `{}`)
	})
}

// An answer without pages has all of them, however large: who asked has no cursor to ask for the rest with.
func TestAnAnswerWithoutPagesIsWhole(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e, key, err := s.endpoints.CreateTemporary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mine := s.newEndpoint("")
		large := func(a *capture.Arrival) { a.Body = bytes.Repeat([]byte("x"), 9<<20) }
		var want, hers []string
		for range 3 {
			want, hers = append(want, s.arrive(mine.ID, large)), append(hers, s.arrive(string(e.ID), large))
		}
		for _, c := range []struct {
			token, path string
			want        []string
		}{
			{s.token, "/tunnel/undelivered?endpoint_ids[]=" + mine.ID, want},
			{s.token, "/tunnel/missed?since=1h&endpoint_ids[]=" + mine.ID, want},
			{key, "/tunnel/undelivered", hers},
			{"", "/tunnel/missed_anonymous?since=1h&tunnel_key=" + key, hers},
		} {
			var got api.Undelivered
			s.wantAs(c.token, 200, "GET", c.path, "", &got)
			var ids []string
			for _, r := range got.Data {
				ids = append(ids, r.ID)
				if r.BodySize != 9<<20 || len(r.Body) != (9<<20)/3*4 {
					t.Errorf("%s: a body of %d bytes, written in %d", c.path, r.BodySize, len(r.Body))
				}
			}
			if !slices.Equal(ids, c.want) || got.Meta != nil {
				t.Errorf("%s: got %v, want %v", c.path, ids, c.want)
			}
		}
		var page api.Undelivered
		s.want(200, "GET", "/tunnel/undelivered?since=1h&limit=100&endpoint_ids[]="+mine.ID, "", &page)
		if len(page.Data) != 1 || page.Meta.NextCursor == nil || page.Meta.PendingCount != 3 {
			t.Errorf("a page has %d events, and %+v", len(page.Data), page.Meta)
		}
	})
}

func TestUndeliveredIsPagedAndBounded(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		a, b := s.newEndpoint(""), s.newEndpoint("")
		var want []string
		for range 3 {
			want = append(want, s.arrive(a.ID, nil), s.arrive(b.ID, nil))
		}
		both := "endpoint_ids[]=" + a.ID + "&endpoint_ids[]=" + b.ID
		var got []string
		for cursor := ""; ; {
			var page api.Undelivered
			s.want(200, "GET", "/tunnel/undelivered?since=1h&limit=4&"+both+"&cursor="+cursor, "", &page)
			if page.Meta == nil || page.Meta.TotalCount != 6 || page.Meta.PendingCount != 6 || page.Meta.GapID != nil || page.Meta.ReturnedCount != int64(len(page.Data)) {
				t.Fatalf("%+v", page.Meta)
			}
			for _, r := range page.Data {
				got = append(got, r.ID)
			}
			if page.Meta.NextCursor == nil {
				break
			}
			cursor = *page.Meta.NextCursor
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("got %v, want %v, oldest first", got, want)
		}
		for path, status := range map[string]int{
			"/tunnel/undelivered?minutes=0":                                    422,
			"/tunnel/undelivered?minutes=1441":                                 422,
			"/tunnel/undelivered?minutes=1440&" + both:                         200,
			"/tunnel/undelivered?since=1h&limit=0":                             422,
			"/tunnel/undelivered?since=1h&limit=101":                           422,
			"/tunnel/undelivered?since=yesterday":                              422,
			"/tunnel/undelivered?since=2001-01-01T00:00:00Z":                   422,
			"/tunnel/missed?since=2001-01-01T00:00:00Z&" + both:                422,
			"/tunnel/missed?" + both:                                           422,
			"/tunnel/missed?since=1h&" + both:                                  200,
			"/tunnel/undelivered?gap_id=tgap_00000000000000000000000000":       404,
			"/tunnel/undelivered?gap_id=%ff":                                   404,
			"/tunnel/undelivered?gap_id=%00":                                   404,
			"/tunnel/undelivered?cursor=zz&since=1h":                           422,
			"/tunnel/gaps?endpoint_ids[]=" + string(hookglass.NewEndpointID()): 404,
		} {
			if res, text := s.call(s.token, "GET", path, ""); res.StatusCode != status {
				t.Errorf("%s: %d %s, want %d", path, res.StatusCode, text, status)
			}
		}
		s.want(404, "GET", "/tunnel/undelivered?endpoint_ids[]="+b.ID+"&gap_id="+s.newGap(a.ID), "", nil)
	})
}

// A client that subscribes to as many endpoints as a socket may names them all when it asks for what it missed.
func TestAListNamesAsManyEndpointsAsASocketSubscribesTo(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		id := s.arrive(e.ID, nil)
		for _, path := range []string{"/tunnel/gaps", "/tunnel/undelivered", "/tunnel/missed"} {
			most := path + "?since=1h" + strings.Repeat("&endpoint_ids%5B%5D="+e.ID, 1000)
			most = strings.Replace(most, "gaps?since=1h&", "gaps?", 1)
			s.want(422, "GET", most+"&endpoint_ids%5B%5D="+e.ID, "", nil)
			var got api.Undelivered
			s.want(200, "GET", most, "", &got)
			if path != "/tunnel/gaps" && (len(got.Data) != 1 || got.Data[0].ID != id) {
				t.Errorf("%s: %+v, want %s once", path, got.Data, id)
			}
		}
	})
}

// By another name the list would be nothing that is known, and then everything would be meant.
func TestAListInAQueryMayBeNamedAsOtherProgramsDo(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		a, b, c := s.newEndpoint(""), s.newEndpoint(""), s.newEndpoint("")
		want := []string{s.arrive(a.ID, nil), s.arrive(b.ID, nil)}
		s.arrive(c.ID, nil)
		for _, query := range []string{
			"endpoint_ids=" + a.ID + "&endpoint_ids=" + b.ID, "endpoint_ids[]=" + a.ID + "&endpoint_ids=" + b.ID, "endpoint%5Fids=" + a.ID + "&endpoint_ids%5B%5D=" + b.ID,
			"endpoint_ids[0]=" + a.ID + "&endpoint_ids[1]=" + b.ID, "endpoint_ids%5B10%5D=" + a.ID + "&endpoint_ids=" + b.ID,
		} {
			var got api.Undelivered
			s.want(200, "GET", "/tunnel/undelivered?"+query, "", &got)
			var ids []string
			for _, r := range got.Data {
				ids = append(ids, r.ID)
			}
			if !slices.Equal(ids, want) {
				t.Errorf("%s: %v, want %v", query, ids, want)
			}
		}
		s.want(404, "GET", "/tunnel/gaps?endpoint_ids="+string(hookglass.NewEndpointID()), "", nil)
		s.want(404, "GET", "/tunnel/gaps?endpoint_ids[0]="+string(hookglass.NewEndpointID()), "", nil)
		for _, name := range []string{"endpoint_ids[first]", "endpoint_ids[", "endpoint_ids[0][1]", "endpoint_ids[-1]", "endpoint_ids[]x"} {
			var refused api.Error
			s.want(422, "GET", "/tunnel/gaps?"+name+"="+a.ID, "", &refused)
			if len(refused.Details) != 1 || refused.Details[0].Field != name {
				t.Errorf("%s: %+v", name, refused)
			}
		}
	})
}

// What is retained becomes less while a list is read: only its beginning is asked to be in it.
func TestAListThatWasBegunGoesOnBehindRetention(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		s.arrive(e.ID, nil)
		want := s.arrive(e.ID, nil)
		var page, rest api.Undelivered
		path := "/tunnel/undelivered?since=1h&limit=1&endpoint_ids[]=" + e.ID
		s.want(200, "GET", path, "", &page)
		if _, err := s.accounts.SetAccount(t.Context(), s.owner.Account.ID, account.Change{Retention: new(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		s.want(422, "GET", path, "", nil)
		s.want(200, "GET", path+"&cursor="+*page.Meta.NextCursor, "", &rest)
		if len(rest.Data) != 1 || rest.Data[0].ID != want || rest.Meta.NextCursor != nil {
			t.Errorf("got %+v", rest)
		}
	})
}
