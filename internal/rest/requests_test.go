package rest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/capture"
)

// arrive captures a webhook at an endpoint, whoever owns it, and returns the event's id.
func (s *site) arrive(ref string, change func(*capture.Arrival)) string {
	s.t.Helper()
	a := &capture.Arrival{
		Method: "POST", Path: "/orders", RawQuery: "page=2", Target: "/hooks/" + ref + "/orders?page=2",
		Proto: "HTTP/1.1", Host: "hooks.example.com", Scheme: "https", Client: netip.MustParseAddr("203.0.113.7"),
		Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}, {Name: "X-Tag", Value: "a"}, {Name: "x-tag", Value: "b"}},
		Body:    []byte(`{"amount":100}`), At: time.Now(),
	}
	if change != nil {
		change(a)
	}
	target, err := s.captures.Admit(s.t.Context(), ref)
	if err != nil {
		s.t.Fatal(err)
	}
	before := s.stored(ref)
	if _, err := s.captures.Capture(s.t.Context(), target, a); err != nil {
		s.t.Fatal(err)
	}
	after := s.stored(ref)
	if len(after) != len(before)+1 {
		s.t.Fatalf("a capture made %d events of %d", len(after), len(before))
	}
	return after[len(before)]
}

func (s *site) list(query string) (out api.EventList) {
	s.t.Helper()
	s.want(200, "GET", query, "", &out)
	return out
}

func ids(list api.EventList) []string {
	all := []string{}
	for _, e := range list.Data {
		all = append(all, e.ID)
	}
	return all
}

// A range of which an end cannot be read selects nothing, and both ends are told.
func TestBothEndsOfARangeAreRefusedAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		s.arrive(e.ID, nil)
		for query, want := range map[string]int{"before=soon&after=late": 2, "before=soon": 1, "after=late": 1, "before=soon&after=2h": 1} {
			var refused api.Error
			s.want(422, "DELETE", "/endpoints/"+e.ID+"/requests/destroy_all?"+query, "", &refused)
			if len(refused.Details) != want || len(s.stored(e.ID)) != 1 {
				t.Errorf("%s: %+v, and %d are left", query, refused.Details, len(s.stored(e.ID)))
			}
		}
	})
}

func TestTheListFormIsAsDescribed(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		id := s.arrive(e.ID, func(a *capture.Arrival) {
			a.Headers = append(a.Headers, hookglass.Header{Name: "X-GitHub-Event", Value: "push"}, hookglass.Header{Name: "X-GitHub-Delivery", Value: "72d3162e-cc78-11e3-81ab-4c9367dc0958"},
				hookglass.Header{Name: "User-Agent", Value: "GitHub-Hookshot/1"})
		})
		var answer struct {
			Data []map[string]json.RawMessage
			Meta map[string]json.RawMessage
		}
		s.want(200, "GET", "/endpoints/"+e.ID+"/requests", "", &answer)
		for name, want := range map[string]string{"total": "1", "total_exact": "true", "limit": "25", "offset": "0", "next_cursor": "null"} {
			if got := string(answer.Meta[name]); got != want {
				t.Errorf("meta.%s is %s, want %s", name, got, want)
			}
		}
		if len(answer.Data) != 1 {
			t.Fatalf("%d events are listed, want 1", len(answer.Data))
		}
		for q, want := range map[string]bool{"push%20AND%20pull": true, "pull": false, "push": false} {
			var found api.EventList
			s.want(200, "GET", "/endpoints/"+e.ID+"/requests?q="+q, "", &found)
			if advised := strings.HasPrefix(found.Meta.Advice, "AND, OR and NOT"); advised != want || !want && found.Meta.Advice != "" {
				t.Errorf("%s: %+v", q, found.Meta)
			}
		}
		for name, want := range map[string]string{
			"id": `"` + id + `"`, "type": `"webhook"`, "method": `"POST"`, "path": `"/orders"`, "status": "200", "content_type": `"application/json"`,
			"ip_address": `"203.0.113.7"`, "size": "14", "detected_provider": `"github"`, "signature_status": `"unchecked"`, "tags": "[]", "ignored": "false",
			"provider_event_data": `{"event_type":"push","event_id":null,"delivery_id":"72d3162e-cc78-11e3-81ab-4c9367dc0958"}`,
		} {
			if got := string(answer.Data[0][name]); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
		if _, listed := answer.Data[0]["body"]; listed {
			t.Error("the list form has a body")
		}
	})
}

// dated is a Date header, which is of the moment.
var dated = regexp.MustCompile(`"Date":"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"`)

func TestTheDetailFormHoldsWhatWasReceivedAndAnswered(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		id := s.arrive(e.ID, func(a *capture.Arrival) {
			a.RawQuery = "a=1&a=2&b=%C3%A9&c&%zz=x"
			a.Headers = append(a.Headers, hookglass.Header{Name: "X-Latin", Value: "caf\xe9"})
		})
		for _, ref := range []string{id, "wr_" + strings.TrimPrefix(id, "req_")} {
			var answer struct{ Data map[string]json.RawMessage }
			s.want(200, "GET", "/endpoints/"+e.ID+"/requests/"+ref, "", &answer)
			for name, want := range map[string]string{
				"id": `"` + id + `"`, "endpoint_id": `"` + e.ID + `"`, "url": `"https://hooks.example.com/hooks/` + e.ID + `/orders?page=2"`,
				"headers":      `{"Content-Type":"application/json","X-Latin":"café","X-Tag":"a, b"}`,
				"header_list":  `[["Content-Type","application/json"],["X-Tag","a"],["x-tag","b"],["X-Latin","café"]]`,
				"query_string": `"a=1&a=2&b=%C3%A9&c&%zz=x"`, "query_parameters": `{"%zz":"x","a":["1","2"],"b":"é","c":""}`,
				"query_params": `{"%zz":"x","a":"1, 2","b":"é","c":""}`, "body": `"{\"amount\":100}"`, "body_encoding": `"utf8"`, "source_ip": `"203.0.113.7"`,
				"response_status_sent": "200", "response_headers_sent": `{"Content-Length":"55","Content-Type":"application/json","Date":"DATE"}`,
				"response_body_sent": `"{\"received\":true,\"id\":\"` + id + `\"}"`, "response_source": `"default"`,
			} {
				if got := dated.ReplaceAllString(string(answer.Data[name]), `"Date":"DATE"`); got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
			if string(answer.Data["received_at"]) != string(answer.Data["requested_at"]) {
				t.Errorf("received_at is %s and requested_at %s", answer.Data["received_at"], answer.Data["requested_at"])
			}
		}
	})
}

func TestABodyOfAnyBytesComesBackExactly(t *testing.T) {
	var every []byte
	for b := range 256 {
		every = append(every, byte(b))
	}
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		for _, c := range []struct {
			body     []byte
			shown    string
			encoding string
		}{
			{[]byte{}, "", "utf8"}, {[]byte("\x00 ünï"), "\x00 ünï", "utf8"}, {[]byte("\xff\xfe"), "//4=", "base64"}, {every, "", "base64"},
		} {
			id := s.arrive(e.ID, func(a *capture.Arrival) { a.Body = c.body })
			var got api.One[api.EventDetail]
			s.want(200, "GET", "/endpoints/"+e.ID+"/requests/"+id, "", &got)
			if got.Data.BodyEncoding != c.encoding || got.Data.Body == nil || c.shown != "" && *got.Data.Body != c.shown {
				t.Errorf("the body %q is shown as %v, %s", c.body, got.Data.Body, got.Data.BodyEncoding)
			}
			res, text := s.call(s.token, "GET", "/endpoints/"+e.ID+"/requests/"+id+"/body", "")
			if text != string(c.body) {
				t.Errorf("the body %q is downloaded as %q", c.body, text)
			}
			h := res.Header
			if !strings.HasPrefix(h.Get("Content-Disposition"), "attachment;") || h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("a download has the header %v", h)
			}
		}
	})
}

func TestEventsAreFilteredAndPaged(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint(`,"custom_id":"payments"`)
		var all []string
		for i := range 30 {
			all = append(all, s.arrive(e.ID, func(a *capture.Arrival) {
				a.Path = fmt.Sprintf("/n/%d", i)
				if i%3 == 0 {
					a.Method = "PUT"
				}
			}))
		}
		slices.Reverse(all)
		base := "/endpoints/payments/requests"

		first := s.list(base)
		if !slices.Equal(ids(first), all[:25]) || first.Meta.Total != 30 || first.Meta.NextCursor == nil {
			t.Fatalf("the first page is %v, %+v", ids(first), first.Meta)
		}
		if next := s.list(base + "?cursor=" + *first.Meta.NextCursor); !slices.Equal(ids(next), all[25:]) || next.Meta.NextCursor != nil || next.Meta.Total != 30 {
			t.Errorf("the second page is %v, %+v", ids(next), next.Meta)
		}
		if deep := s.list(base + "?limit=3&offset=28"); !slices.Equal(ids(deep), all[28:]) || deep.Meta.Limit != 3 || deep.Meta.Offset != 28 {
			t.Errorf("by offset: %v, %+v", ids(deep), deep.Meta)
		}
		if put := s.list(base + "?method=PUT&limit=100"); len(put.Data) != 10 || put.Meta.Total != 10 {
			t.Errorf("filtered: %d of %d", len(put.Data), put.Meta.Total)
		}
		if one := s.list(base + "?q=path:/n/17&type=webhook&status=2xx&content_type=application/json"); !slices.Equal(ids(one), all[12:13]) {
			t.Errorf("searched: %v", ids(one))
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write([]byte(`{"id":"in_packed"}`))
		_ = w.Close() // into memory
		zipped := s.arrive(e.ID, func(a *capture.Arrival) {
			a.Headers, a.Body = append(a.Headers, hookglass.Header{Name: "Content-Encoding", Value: "gzip"}), packed.Bytes()
		})
		for _, q := range []string{"in_packed", "body./id:in_packed"} {
			if one := s.list(base + "?q=" + q); !slices.Equal(ids(one), []string{zipped}) {
				t.Errorf("%s in a compressed body: %v", q, ids(one))
			}
		}
		s.want(200, "DELETE", base+"/"+zipped, "", nil)
		if none := s.list(base + "?before=2001-01-01T00:00:00%2B02:00"); len(none.Data) != 0 || none.Meta.Total != 0 {
			t.Errorf("before any: %v", ids(none))
		}
		for _, offset := range []string{"+02:00", "+0200"} {
			if since := s.list(base + "?limit=100&after=2001-01-01T00:00:00" + offset); len(since.Data) != 30 {
				t.Errorf("with an offset of time that is not escaped: %d events", len(since.Data))
			}
		}
	})
}

func TestBoundsOfAListAreChecked(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		base := "/endpoints/" + s.newEndpoint("").ID + "/requests"
		for query, field := range map[string]string{
			"limit=0": "limit", "limit=101": "limit", "limit=-1": "limit", "limit=abc": "limit", "limit=1.5": "limit", "limit=99999999999999999999": "limit",
			"offset=-1": "offset", "offset=9223372036854775808": "offset", "cursor=zzz": "cursor", "cursor=bgE": "cursor", "before=yesterday": "before",
			"after=294277-01-01": "after", "after=2026-13-01T00:00:00Z": "after", "type=x": "type", "status=abc": "status", "signature_status=good": "signature_status",
			"ignored=maybe": "ignored", "q=provder:x": "q", "q=%22open": "q",
		} {
			var refused api.Error
			s.want(422, "GET", base+"?"+query, "", &refused)
			if refused.Error != "validation_failed" || len(refused.Details) != 1 || refused.Details[0].Field != field {
				t.Errorf("%s: %+v", query, refused)
			}
		}
		for _, query := range []string{"limit=1", "limit=100", "offset=9223372036854775807", "offset=9223372036854775807&method=GET", "after=0001-01-01T00:00:00Z", "before=9999-12-31T23:59:59Z", "q=", "limit="} {
			s.want(200, "GET", base+"?"+query, "", nil)
		}
	})
}

func TestEventsAreDeletedTaggedAndIgnored(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base := "/endpoints/" + e.ID + "/requests"
		one, two, three := s.arrive(e.ID, nil), s.arrive(e.ID, nil), s.arrive(e.ID, nil)

		var tags api.One[api.EventTags]
		s.want(200, "PUT", base+"/"+one+"/tags/needs%20care", "", &tags)
		s.want(200, "PUT", base+"/"+one+"/tags/billing", "", &tags)
		if !slices.Equal(tags.Data.Tags, []string{"billing", "needs care"}) {
			t.Errorf("tags are %v", tags.Data.Tags)
		}
		if found := s.list(base + "?tag=needs+care"); !slices.Equal(ids(found), []string{one}) {
			t.Errorf("by tag: %v", ids(found))
		}
		s.want(200, "DELETE", base+"/"+one+"/tags/billing", "", &tags)
		s.want(200, "DELETE", base+"/"+one+"/tags/needs%20care", "", &tags)
		if tags.Data.Tags == nil || len(tags.Data.Tags) != 0 {
			t.Errorf("tags are %v, want []", tags.Data.Tags)
		}
		s.want(422, "PUT", base+"/"+one+"/tags/%20", "", nil)

		var noted api.One[api.Event]
		s.want(200, "PUT", base+"/"+one+"/note", `{"note":" Ask Bob:\r\nwhy 100%? "}`, &noted)
		if noted.Data.Note == nil || *noted.Data.Note != "Ask Bob:\nwhy 100%?" {
			t.Errorf("noting answered %+v", noted.Data)
		}
		var whole api.One[api.EventDetail]
		s.want(200, "GET", base+"/"+one, "", &whole)
		if listed := s.list(base + "?q=note:%22bob:%0Awhy%20100%25%22"); !slices.Equal(ids(listed), []string{one}) || *listed.Data[0].Note != *noted.Data.Note || *whole.Data.Note != *noted.Data.Note {
			t.Errorf("by note: %+v", listed.Data)
		}
		if without := s.list(base + "?q=-note:*"); !slices.Equal(ids(without), []string{three, two}) {
			t.Errorf("without a note: %v", ids(without))
		}
		s.want(200, "PUT", base+"/"+one+"/note", `{"note":"`+strings.Repeat("é", 2000)+`"}`, &noted)
		for _, body := range []string{`{}`, `{"note":7}`, `{"note":"` + strings.Repeat("é", 2001) + `"}`, `{"note":"a\u0000b"}`, `{"note":"a","by":"me"}`} {
			s.want(422, "PUT", base+"/"+one+"/note", body, nil)
		}
		s.want(404, "PUT", base+"/req_none/note", `{"note":"a"}`, nil)
		s.want(200, "PUT", base+"/"+one+"/note", `{"note":null}`, &noted)
		if found := s.list(base + "?q=note:*"); noted.Data.Note != nil || len(found.Data) != 0 {
			t.Errorf("the note is still %+v, %v", noted.Data, ids(found))
		}

		var ignored api.One[api.Event]
		s.want(200, "POST", base+"/"+two+"/ignore", `{"reason":"test"}`, &ignored)
		if !ignored.Data.Ignored || *ignored.Data.IgnoredReason != "test" {
			t.Errorf("ignoring answered %+v", ignored.Data)
		}
		s.want(200, "POST", base+"/"+two+"/ignore", `{}`, &ignored)
		if *ignored.Data.IgnoredReason != "noise" {
			t.Errorf("the default reason is %s", *ignored.Data.IgnoredReason)
		}
		s.want(200, "POST", base+"/"+two+"/ignore", "", nil)
		chunked, err := http.NewRequestWithContext(t.Context(), "POST", s.url+base+"/"+two+"/ignore", io.NopCloser(strings.NewReader("")))
		if err != nil {
			t.Fatal(err)
		}
		chunked.ContentLength = -1 // its end alone tells that there is nothing
		chunked.TransferEncoding = []string{"chunked"}
		chunked.Header.Set("Authorization", "Bearer "+s.token)
		if res, text := s.do(chunked); res.StatusCode != 200 {
			t.Errorf("an empty body in chunks: %d %s", res.StatusCode, text)
		}
		s.want(422, "POST", base+"/"+two+"/ignore", `{"reason":"boring"}`, nil)
		if left := s.list(base); !slices.Equal(ids(left), []string{three, one}) || left.Meta.Total != 2 {
			t.Errorf("without the ignored: %v of %d", ids(left), left.Meta.Total)
		}
		if only := s.list(base + "?ignored=true"); !slices.Equal(ids(only), []string{two}) {
			t.Errorf("the ignored: %v", ids(only))
		}
		if any := s.list(base + "?ignored=any"); len(any.Data) != 3 {
			t.Errorf("all: %v", ids(any))
		}
		s.want(200, "DELETE", base+"/"+two+"/ignore", "", nil)

		var deleted api.One[api.Deleted]
		s.want(200, "DELETE", base+"/wr_"+strings.TrimPrefix(one, "req_"), "", &deleted)
		if deleted.Data != (api.Deleted{ID: one, Deleted: true}) {
			t.Errorf("deleting answered %+v", deleted.Data)
		}
		s.want(404, "GET", base+"/"+one, "", nil)
		s.want(404, "DELETE", base+"/"+one, "", nil)
		s.want(404, "GET", base+"/nonsense", "", nil)
	})
}

func TestDestroyAllKeepsWhatIsOutsideItsBounds(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base := "/endpoints/" + e.ID + "/requests"
		at := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
		var all []string
		for i := range 5 {
			all = append(all, s.arrive(e.ID, func(a *capture.Arrival) { a.At = at.Add(time.Duration(i) * time.Minute) }))
		}
		var gone api.One[api.DeletedEvents]
		s.want(422, "DELETE", base+"/destroy_all?befor=2026-01-01T00:00:00Z", "", nil)
		s.want(422, "DELETE", base+"/destroy_all?before=soon", "", nil)
		// A bound whose value is missing is not the wish to delete everything.
		for _, empty := range []string{"before=", "after=", "after", "before=2026-01-01T00:00:00Z&before="} {
			s.wantError(422, "validation_failed", "DELETE", base+"/destroy_all?"+empty, "")
		}
		// Nor is one that cannot be decoded, or whose name hides behind a semicolon.
		for query, field := range map[string]string{
			"before=%": "before", "after=2026-01-01T00:00:00%2": "after", "bef%zzore=2026-01-01": "query", "%": "query",
			"befor=2026-01-01;x": "befor", "before=2020-01-01;after=2019-01-01": "before", "%ff=%": "query",
		} {
			var refused api.Error
			if s.want(422, "DELETE", base+"/destroy_all?"+query, "", &refused); refused.Details[0].Field != field {
				t.Errorf("%s: %+v", query, refused)
			}
		}
		// What is wrong comes in the order of the names.
		for range 20 {
			var refused api.Error
			s.want(422, "DELETE", base+"/destroy_all?before=&after=", "", &refused)
			if len(refused.Details) != 2 || refused.Details[0].Field != "after" {
				t.Fatalf("%+v", refused)
			}
		}
		// Nor is one in a body, where none is looked for.
		for _, body := range []string{`{"before":"2020-01-01T00:00:00Z"}`, `before=2020-01-01`, `[]`} {
			s.wantError(422, "validation_failed", "DELETE", base+"/destroy_all", body)
		}
		s.wantError(404, "not_found", "DELETE", "/endpoints/ep_none/requests/destroy_all", `{"before":"2020-01-01T00:00:00Z"}`)
		s.want(200, "DELETE", base+"/destroy_all?before=0001-01-01T00:00:00Z", "", &gone) // a time that was never set
		if gone.Data.Deleted != 0 {
			t.Errorf("before the first of all times came %d", gone.Data.Deleted)
		}
		s.want(200, "DELETE", base+"/destroy_all?before=2020-01-01T00:00:00Z", "{}", &gone)
		if gone.Data.Deleted != 0 {
			t.Errorf("%d were deleted", gone.Data.Deleted)
		}
		s.want(200, "DELETE", base+"/destroy_all?after="+at.Format(time.RFC3339)+"&before="+at.Add(3*time.Minute).Format(time.RFC3339), "", &gone)
		if left := s.list(base); gone.Data.Deleted != 2 || !slices.Equal(ids(left), []string{all[4], all[3], all[0]}) {
			t.Errorf("%d were deleted and %v are left", gone.Data.Deleted, ids(left))
		}
		s.want(200, "DELETE", base+"/destroy_all", "", &gone)
		if left := s.list(base); gone.Data.Deleted != 3 || len(left.Data) != 0 || left.Meta.Total != 0 {
			t.Errorf("%d were deleted and %v are left", gone.Data.Deleted, ids(left))
		}
		s.want(200, "DELETE", base+"/destroy_all", "", &gone)
		if gone.Data.Deleted != 0 {
			t.Errorf("of nothing, %d were deleted", gone.Data.Deleted)
		}
	})
}

func TestTheFeedTellsOfCaptures(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var empty struct{ Data, Meta json.RawMessage }
		s.want(200, "GET", "/events", "", &empty)
		if string(empty.Data) != "[]" || string(empty.Meta) != `{"count":0}` {
			t.Errorf("an empty feed is %s %s", empty.Data, empty.Meta)
		}
		e := s.newEndpoint("")
		s.arrive(e.ID, nil)
		id := s.arrive(e.ID, func(a *capture.Arrival) { a.Path = "/caf\xe9" })
		var feed struct {
			Data []map[string]any
			Meta api.ActivityCount
		}
		s.want(200, "GET", "/events", "", &feed)
		if len(feed.Data) != 2 || feed.Meta.Count != 2 {
			t.Fatalf("the feed is %+v", feed)
		}
		line := feed.Data[0]
		data := line["data"].(map[string]any)
		if line["type"] != "webhook.received" || line["endpoint_id"] != e.ID || line["request_id"] != id || line["occurred_at"] == nil ||
			data["method"] != "POST" || data["path"] != "/café" || data["content_type"] != "application/json" || data["size"] != 14.0 {
			t.Errorf("the newest line is %v", line)
		}
		s.want(200, "GET", "/events?limit=1", "", &feed)
		if len(feed.Data) != 1 || feed.Meta.Count != 1 {
			t.Errorf("with limit 1: %+v", feed)
		}
		s.want(200, "GET", "/events?limit=200&since="+time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "", &feed)
		if len(feed.Data) != 0 {
			t.Errorf("since the future: %+v", feed)
		}
		s.want(200, "GET", "/events?since=0001-01-01T00:00:00Z", "", nil)
		for _, query := range []string{"limit=0", "limit=201", "since=294277-01-01"} {
			s.want(422, "GET", "/events?"+query, "", nil)
		}
	})
}

// An event alone holds what one sender wrote. In a list, who sends a text learns by the length of what is compressed
// whether another sent the same.
func TestAnEventIsCompressedForWhoReadsThatAndAListIsNot(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		body := strings.Repeat("again ", 10_000)
		at := "/endpoints/" + e.ID + "/requests"
		event := at + "/" + s.arrive(e.ID, func(a *capture.Arrival) { a.Body, a.RawQuery = []byte(body), "a="+strings.Repeat("again", 600) })
		for path, coding := range map[string]string{event: "gzip", event + "/body": "", event + "/raw": "", at: "", at + "/export?format=ndjson": ""} {
			req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+s.token)
			req.Header.Set("Accept-Encoding", "gzip") // set by hand, it is not undone
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Encoding") != coding {
				t.Errorf("%s: %d, coded %q: %v", path, res.StatusCode, res.Header.Get("Content-Encoding"), err)
			}
			if coding == "gzip" && (len(text) > 5_000 || res.Header.Get("Content-Type") != "application/json" || res.Header.Get("Vary") != "Accept-Encoding") {
				t.Errorf("%s: %d bytes, %v", path, len(text), res.Header)
			}
		}
		var got api.One[api.EventDetail]
		s.want(200, "GET", event, "", &got) // this client undoes it by itself
		if got.Data.Body == nil || *got.Data.Body != body {
			t.Errorf("the body has %d bytes: %v", len(body), got.Data.Body == nil)
		}
	})
}
