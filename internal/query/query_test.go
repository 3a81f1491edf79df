package query_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/cputime"
	"hookglass/internal/query"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// invoice is the webhook that most queries below look for.
func invoice() *hookglass.Event {
	return &hookglass.Event{
		ID: "req_01jd4w6q2g000000000000000a", Type: hookglass.EventWebhook, ReceivedAt: now.Add(-time.Hour),
		Method: "POST", Path: "/billing/Hook%20a", RawQuery: "page=2&tag=a+b&flag&bad=%zz", ContentType: "application/json; charset=utf-8",
		IP: "203.0.113.7", Size: 2048, Status: 502, Provider: "stripe", EventType: "invoice.payment_failed",
		SignatureStatus: hookglass.SignatureFailed, Tags: []string{"billing", "needs care"}, Note: "Ask Bob:\nwhy 100%?",
		Deliveries: []hookglass.ForwardState{hookglass.ForwardDelivered, hookglass.ForwardSending}, Tunnel: hookglass.ForwardFailed,
		Payload: &hookglass.Payload{
			Headers: hookglass.Headers{{Name: "User-Agent", Value: "Stripe/1.0 (+https://stripe.com)"}, {Name: "X-A", Value: "a"}, {Name: "x-a", Value: " b\t"}, {Name: "X-Empty", Value: ""}},
			Body: []byte(`{"id":"evt_1","data":{"id":"in_1","list":[1,{"a/b":true}],"amount":12345678901234567890,"none":null,
				"text":"50% off_now \\ \"Grüße\" for you"},"big":{"x":[1,2]}}`),
		},
	}
}

func mail() *hookglass.Event {
	return &hookglass.Event{
		ID: "eml_01jd4w6q2g000000000000000a", Type: hookglass.EventEmail, ReceivedAt: now.Add(-48 * time.Hour), Method: "EMAIL",
		Path: "shop@mail.example", Size: 10, Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked,
		From: "Alice <alice@example.org>", To: "shop@mail.example, b@example.net", Subject: "Your ORDER is on its way", Ignored: "noise",
		Payload: &hookglass.Payload{Body: []byte("Subject: =?x?\r\n\r\nhello\x00world\xff!")},
	}
}

func TestTerms(t *testing.T) {
	for _, c := range []struct {
		q             string
		invoice, mail bool
	}{
		{``, true, true},
		{`  `, true, true},
		{`"id":"evt_1"`, true, false},
		{`"ID":"evt_1"`, true, false},
		{`"id":"evt_2"`, false, false},
		{`-"id":"evt_1"`, false, true},
		{`"id":"evt_1","data":{"id":"in_1","list":[1,{"a/b":true}]`, true, false},
		{`"text":"50% off_now`, true, false},
		{`"text":"50% "for you"`, true, false},
		{`"\"Grüße":"`, false, false},
		{`delivery:delivered`, true, false},
		{`delivery:"Pending"`, true, false},
		{`delivery:failed`, false, false},
		{`-delivery:skipped`, true, true},
		{`delivery:none`, false, true},
		{`-delivery:none`, true, false},
		{`tunnel:failed`, true, false},
		{`tunnel:FAILED`, true, false},
		{`tunnel:delivered`, false, false},
		{`-tunnel:delivered`, true, true},
		{`tunnel:none`, false, true},
		{`provider:stripe`, true, false},
		{`Provider:STRIPE`, true, false},
		{`provider:"stripe"`, true, false},
		{`provider:str`, false, false},
		{`provider:str*`, true, false},
		{`provider:s*t*ripe*`, true, false}, // a star also stands for nothing
		{`-provider:stripe`, false, true},
		{`event:invoice.*`, true, false},
		{`event:*.payment_failed`, true, false},
		{`event:*`, true, false},
		{`-event:*`, false, true},
		{`event:invoice`, false, false},
		{`event_type:i*.*_f*d`, true, false},
		{`event:*i*i*i*i`, false, false},
		{`event:*v*v*`, false, false}, // it has one v
		{`sig:failed`, true, false},
		{`signature:failed`, true, false},
		{`signature:verified`, false, false},
		{`-signature_status:failed`, false, true},
		{`method:post`, true, false},
		{`method:EMAIL`, false, true},
		{`status:502`, true, false},
		{`status:5xx`, true, false},
		{`status:5XX`, true, false},
		{`status:4xx`, false, false},
		{`-status:4xx`, true, true},
		{`-status:1xx`, true, true},
		{`path:/bill`, true, false},
		{`path:/Hook`, false, false},
		{`path:hook`, true, false},
		{`path:*hook`, false, false},
		{`path:/*/hook%20?`, false, false},
		{`path:/*/hook%20*`, true, false},
		{`path:mail.example`, false, true},
		{`header.x-a:b`, true, false},
		{`header.X-A:A`, true, false},
		{`header.x-a:c`, false, false},
		{`header.x-b:b`, false, false},
		{`-header.x-a:c`, true, true},
		{`header.x-a:*`, true, false},
		{`header.x-empty:*`, true, false},
		{`header.x-missing:*`, false, false},
		{`header.user-agent:stripe/*`, true, false},
		{`header.user-agent:"Stripe/1.0 (+*"`, true, false},
		{`body./data/id:in_1`, true, false},
		{`body./data/id:IN_1`, true, false},
		{`body./data/id:in_2`, false, false},
		{`body./data/list/0:1`, true, false},
		{`body./data/list/00:1`, false, false},
		{`body./data/list/-:*`, false, false},
		{`body./data/list/2:*`, false, false},
		{`body./data/list/3:*`, false, false},
		{`body./data/list/-1:*`, false, false},
		{`body./data/list/1/a~1b:true`, true, false},
		{`body./data/amount:12345678901234567890`, true, false},
		{`body./data/none:null`, true, false},
		{`body./data/none:*`, true, false},
		{`body./data/missing:*`, false, false},
		{`body./big:*`, true, false},
		{`body./big/x:[1,2]`, true, false},
		{`query.page:2`, true, false},
		{`query.page:3`, false, false},
		{`query.tag:"a b"`, true, false},
		{`query.flag:*`, true, false},
		{`query.bad:%zz`, true, false},
		{`query.bad:%Zz`, true, false},
		{`query.Page:2`, false, false},
		{`content_type:application/json`, true, false},
		{`content_type:application/js`, false, false},
		{`content_type:*`, true, false},
		{`content_type:application/*`, true, false},
		{`content_type:webhook`, false, false},
		{`content_type:*/json`, true, false},
		{`content_type:"application/json; charset=utf-8"`, true, false},
		{`type:JSON`, true, false},
		{`type:j*n`, false, false},
		{`type:*json`, true, false},
		{`type:*js`, false, false},
		{`type:app*son`, true, false},
		{`type:*js*`, true, false},
		{`type:*utf-8`, true, false},
		{`content_type:*utf`, false, false},
		{`-type:xml`, true, true},
		{`type:webhook`, true, false},
		{`type:email`, false, true},
		{`ip:203.0.113.7`, true, false},
		{`ip:203.0.113.*`, true, false},
		{`-ip:203.*`, false, true},
		{`tag:billing`, true, false},
		{`tag:"needs care"`, true, false},
		{`tag:need`, false, false},
		{`tag:need*`, true, false},
		{`-tag:billing`, false, true},
		{`note:BOB`, true, false},
		{"note:\"bob:\nwhy\"", true, false},
		{`note:"100%?"`, true, false},
		{`note:bob*`, false, false},
		{`note:ask*`, true, false},
		{`note:*`, true, false},
		{`-note:*`, false, true},
		{`bob`, false, false},
		{`from:alice@example.org`, false, true},
		{`from:"Alice <*>"`, false, true},
		{`to:B@EXAMPLE.NET`, false, true},
		{`subject:order`, false, true},
		{`subject:"order is"`, false, true},
		{`after:2h`, true, false},
		{`after:1h`, false, false}, // the bound itself is not included
		{`after:61m`, true, false},
		{`before:1h`, false, true},
		{`before:59m`, true, true},
		{`before:1d`, false, true},
		{`after:2026-11-20`, true, false},
		{`after:2026-11-20T12:00:00+01:00`, false, false},
		{`after:2026-11-20T11:59:59+01:00`, true, false},
		{`after:2026-11-20T10:59:59.9999999z`, true, false},
		{`before:2026-11-20T11:00:00.0000001Z`, true, true},
		{`before:2026-11-20T11:00`, false, true},
		{`size:2048`, true, false},
		{`size:2k`, true, false},
		{`size:>2k`, false, false},
		{`size:>=2k`, true, false},
		{`size:<1M`, true, true},
		{`size:<=10`, false, true},
		{`size:<10`, false, false},
		{`is:ignored`, false, true},
		{`-is:ignored`, true, false},
		{`is:email`, false, true},
		{`is:Webhook`, true, false},
		{`id:req_01jd4w6q2g000000000000000a`, true, false},
		{`id:wr_01jd4w6q2g000000000000000a`, true, false},
		{`id:*000a`, true, true},
		{`id:unheard`, false, false},
		{`evt_1`, true, false},
		{`EVT_1`, true, false},
		{`-evt_1`, false, true},
		{`stripe/1.0`, true, false},
		{`"User-Agent: Stripe"`, true, false},
		{`page=2`, true, false},
		{`hook%20a`, true, false},
		{`50%`, true, false},
		{`5%0`, false, false},
		{`off_now`, true, false},
		{`offxnow`, false, false},
		{`%`, true, false},
		{`*`, false, false},
		{`"off_now \\\\ \\\"grüße"`, true, false},
		{`GRÜSSE`, false, false},
		{`order alice`, false, true},
		{`order stripe`, false, false},
		{`"order is on"`, false, true},
		{`"is order"`, false, false},
		{`"order is" alice`, false, true},
		{"\"hello\x00world\"", false, true},
		{"world\x00hello", false, false}, // one word
		{"hello\r\n-evt_1", false, true},
		{`https://stripe.com`, true, false},
		{`12:30`, false, false},
		{`{"id":"evt_1"`, true, false},
		{`provider:stripe event:invoice.* sig:failed method:POST status:5xx path:/b header.x-a:b body./data/id:in_1 after:2h -tag:noise "for you"`, true, false},
	} {
		q, err := query.Parse(c.q, now)
		if err != nil {
			t.Errorf("%s: %v", c.q, err)
			continue
		}
		if got := q.Match(invoice()); got != c.invoice {
			t.Errorf("%s means the invoice: %t", c.q, got)
		}
		if got := q.Match(mail()); got != c.mail {
			t.Errorf("%s means the mail: %t", c.q, got)
		}
	}
}

// In the list form nothing is known of headers and body.
func TestAnEventInTheListFormMeetsNoTermOnItsPayload(t *testing.T) {
	listed := invoice()
	listed.Payload = nil
	for _, q := range []string{`body./data/id:in_1`, `header.x-a:b`, `"for you"`} {
		parsed, err := query.Parse(q, now)
		if err != nil {
			t.Fatal(err)
		}
		if !parsed.Match(invoice()) || parsed.Match(listed) {
			t.Errorf("%s: %t of the whole event and %t of the list form", q, parsed.Match(invoice()), parsed.Match(listed))
		}
	}
}

// What a sender wrote in Latin-1 is shown as the text that it is, and found as what is shown.
func TestWhatIsNotUTF8IsFoundAsItIsShown(t *testing.T) {
	latin := &hookglass.Event{
		Type: hookglass.EventWebhook, Method: "POST", Path: "/caf\xe9", RawQuery: "size=gro\xdf&\xfc=%FC", EventType: "caf\xe9.paid", ContentType: "text/\xe9 ;a",
		Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "X-Utf", Value: "é"}, {Name: "X-Latin", Value: "na\xefve"}, {Name: "X-Mixed", Value: "\xe9é"}}},
	}
	for _, c := range []struct {
		q    string
		want bool
	}{
		{`café`, true},
		{`naïve`, true},
		{`"X-Latin: naïve"`, true},
		{`"X-Utf: é"`, true},
		{`"X-Mixed: éÃ©"`, true},
		{`"X-Mixed: éé"`, false},
		{`groß`, true},
		{`path:/café`, true},
		{`path:*É`, false},
		{`-path:café`, false},
		{`header.x-latin:naïve`, true},
		{`header.x-utf:é`, true},
		{`header.x-utf:Ã©`, false},
		{`query.size:groß`, true},
		{`query.ü:ü`, true},
		{`event:café.*`, true},
		{`content_type:text/é`, true},
	} {
		q, err := query.Parse(c.q, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.Match(latin); got != c.want {
			t.Errorf("%s finds it: %t", c.q, got)
		}
	}
}

// What has a colon and begins with no field is text, as is all that people paste (spec: "text in path, headers, body,
// subject, from, to").
func TestAWordWithAColonIsTextWhereItNamesNoField(t *testing.T) {
	mail := &hookglass.Event{Type: hookglass.EventEmail, Method: "EMAIL", Subject: "Re: order 7", Payload: &hookglass.Payload{Body: []byte("it runs at localhost:8080 or www.example.com:443, user:42 of body.mail in café:1")}}
	for q, want := range map[string]bool{
		"localhost:8080": true, "localhost:8081": false, "www.example.com:443": true, "user:42": true, "user:43": false, "Re: order": true, "Fwd: order": false,
		"re:": true, "order:": false, `user:42 localhost:8080 subject:order`: true, "body.mail localhost:8080": true, `body."mail:8080`: false, "-café:1": false,
		// Neither short words nor those that differ more are taken for a slip of the pen.
		"tip:42": false, "methodology:1": false, "pxyh:1": false, "tpxe:1": false, "usbjxct:1": false,
	} {
		parsed, err := query.Parse(q, now)
		if err != nil {
			t.Errorf("%s: %v", q, err)
		} else if got := parsed.Match(mail); got != want {
			t.Errorf("%s finds it: %t", q, got)
		}
	}
}

// A request to //x is as good as any other, so what stands before the colon decides, not what looks like a URL.
func TestAFieldIsOneAlsoBeforeTwoSlashes(t *testing.T) {
	of := func(path string) *hookglass.Event {
		return &hookglass.Event{
			Type: hookglass.EventWebhook, Method: "POST", Path: path,
			Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "X-Asset", Value: "//cdn.example.com/a"}}, Body: []byte("see my+app://open")},
		}
	}
	for _, c := range []struct {
		q              string
		doubled, plain bool
	}{
		{`path://x`, true, false},
		{`PATH://*`, true, false},
		{`path:"//x"`, true, false},
		{`-path://x`, false, true},
		{`header.x-asset://cdn.*`, true, true},
		{`app://open`, true, true},
		{`-app://open`, false, false},
		{`https://open`, false, false},
	} {
		q, err := query.Parse(c.q, now)
		if err != nil {
			t.Errorf("%s: %v", c.q, err)
			continue
		}
		if doubled, plain := q.Match(of("//x/y")), q.Match(of("/x/y")); doubled != c.doubled || plain != c.plain {
			t.Errorf("%s means //x/y: %t, /x/y: %t", c.q, doubled, plain)
		}
	}
}

// Each term of a query is a query of its own, so that it can be told which was not met.
func TestAQueryIsSplitWhereItsTermsEnd(t *testing.T) {
	for q, want := range map[string]string{
		`provider:stripe event:a.* -tag:noise`: `provider:stripe|event:a.*|-tag:noise`,
		`subject:"a \" b" "free text"  x`:      `subject:"a \" b"|"free text"|x`,
		`-"not this" body./a:"b c"`:            `-"not this"|body./a:"b c"`,
		`http://x.example.com/a:b "q"`:         `http://x.example.com/a:b|"q"`,
		`@x:"a`:                                `@x:"a`,
		``:                                     ``,
		`ab"c d`:                               `ab"c|d`,
		` method:POST	path:/x `:                `method:POST|path:/x`,
		`"id":"evt_1" x`:                       `"id":"evt_1"|x`,
		`1x:"a b" "id":"x"`:                    `1x:"a|b"|"id":"x"`,
	} {
		got, err := query.Split(q, now)
		if err != nil {
			t.Errorf("%s: %v", q, err)
		} else if got := strings.Join(got, "|"); got != want {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
	if _, err := query.Split(`a "open`, now); !hookglass.Is(err, hookglass.CodeValidationFailed) {
		t.Errorf("a query without its closing quote is answered %v", err)
	}
}

func FuzzSplit(f *testing.F) {
	for _, q := range []string{`a b`, `-"x" y:"z \" " `, `@x:"a b" c`, `"`, `a:"b`, `"id":"x" -tag:y after:2h`} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, q string) {
		whole, err := query.Parse(q, now)
		written, splitErr := query.Split(q, now)
		if (err == nil) != (splitErr == nil) {
			t.Fatalf("%q is answered %v as a whole and %v in terms", q, err, splitErr)
		}
		var terms []query.Term
		for _, w := range written {
			part, err := query.Parse(w, now)
			if err != nil {
				t.Fatalf("%q of %q is no query: %v", w, q, err)
			}
			terms = append(terms, part.Terms()...)
		}
		if !reflect.DeepEqual(terms, whole.Terms()) {
			t.Errorf("%q became %q", q, written)
		}
	})
}

func TestCapitalsThatAreNoOperatorsAreExplained(t *testing.T) {
	for q, want := range map[string]bool{
		"a AND b": true, "provider:stripe OR provider:github": true, "NOT tag:noise": true, `AND`: true,
		"": false, "a and b": false, "ANDY": false, `"AND"`: false, `"a AND b"`: false, "tag:AND": false, `a AND "`: false,
	} {
		if got := query.Advice(q); (got != "") != want {
			t.Errorf("%q: %q", q, got)
		}
	}
}

func TestABadQuerySaysWhere(t *testing.T) {
	for _, c := range []struct {
		q        string
		position int
		expected string
	}{
		{`"open`, 5, "closing quote for the one at character 0"},
		{`é "open`, 7, "closing quote for the one at character 2"},
		{`path:"a"b`, 8, `within quotes is written \"`},
		{`"a":"b" "open`, 13, "closing quote for the one at character 8"},
		{`"a\n"`, 3, "behind the backslash"},
		{`"a\`, 3, "behind the backslash"},
		{`""`, 0, "text between the quotes"},
		{`-`, 1, "behind the minus"},
		{`a - b`, 3, "behind the minus"},
		{`provider:`, 9, "value"},
		{`sig:failed provider: stripe`, 20, "value"},
		{`provder:stripe`, 0, `no field "provder"`},
		{`form:alice`, 0, "quote text that has a colon"},
		{`headers.x-a:1`, 0, `no field "headers"`},
		{`content-type:json`, 0, `no field "content-type"`},
		{`b0dy:1`, 0, `no field "b0dy"`},
		{`bod9:1`, 0, `no field "bod9"`},
		{`a -nosuch:1`, 3, `no field "nosuch"`},
		{`a nosuch:"b c"`, 2, `no field "nosuch"`},
		{`provider.x:1`, 8, "colon"},
		{`header:1`, 7, "header.x-request-id:7"},
		{`header.:1`, 7, "header.x-request-id:7"},
		{`query.:1`, 6, "query.page:2"},
		{`query.Ġ:`, 8, "value"},
		{`body.data:1`, 5, "JSON Pointer"},
		{`body./a~2:1`, 5, "JSON Pointer"},
		{`body:1`, 5, "JSON Pointer"},
		{`sig:fine`, 4, "verified, failed or unchecked"},
		{`method:PROPFIND`, 7, "GET, POST"},
		{`status:6xx`, 7, "404"},
		{`status:0xx`, 7, "404"},
		{`status:099`, 7, "404"},
		{`status:0404`, 7, "404"},
		{`status:600`, 7, "404"},
		{`status:abc`, 7, "4xx"},
		{`status:5`, 7, "4xx"},
		{`status:50xx`, 7, "4xx"},
		{`status:xx`, 7, "4xx"},
		{`delivery:lost`, 9, "failed, delivered, pending, skipped or none"},
		{`tunnel:pending`, 7, "failed, delivered or none"},
		{`has:note`, 4, "attachment"},
		{`attachement:a`, 0, "no field"},
		{`is:nice`, 3, "ignored, webhook or email"},
		{`after:soon`, 6, "duration"},
		{`after:""`, 6, "duration"},
		{`after:2026-13-01`, 6, "duration"},
		{`after:294277-01-01`, 6, "duration"},
		{`after:-2h`, 6, "duration"},
		{`before:99999999999999999999d`, 7, "duration"},
		{`before:36501d`, 7, "duration"},
		{`size:big`, 5, "bytes"},
		{`size:=>1`, 5, "bytes"},
		{`size:>`, 5, "bytes"},
		{`size:-1`, 5, "bytes"},
		{`size:99999999999`, 5, "bytes"},
		{"a\xffb", 1, "UTF-8"},
		{"\uFFFDa\xffb", 2, "UTF-8"},
		{strings.Repeat("é", query.MaxLength+1), query.MaxLength, "at most 1000 characters"},
		{strings.Repeat("a ", query.MaxTerms) + "b", 2 * query.MaxTerms, "at most 32 terms"},
	} {
		_, err := query.Parse(c.q, now)
		var e *hookglass.Error
		if !errors.As(err, &e) || e.Code != hookglass.CodeValidationFailed || len(e.Details) != 1 {
			t.Errorf("%s: %v", c.q, err)
			continue
		}
		where := fmt.Sprintf("at character %d: expected ", c.position)
		if d := e.Details[0]; d.Field != "q" || !strings.HasPrefix(d.Message, where) || !strings.Contains(d.Message, c.expected) {
			t.Errorf("%s: got %s %s, want %s…%s", c.q, d.Field, d.Message, where, c.expected)
		}
		if e.Extra["position"] != c.position {
			t.Errorf("%s: the position is %v", c.q, e.Extra["position"])
		}
	}
}

func TestBoundsAreReached(t *testing.T) {
	for _, q := range []string{
		strings.Repeat("é", query.MaxLength),
		strings.Repeat("a ", query.MaxTerms),
		"before:36500d", "size:4294967295g", "status:100", "status:599",
	} {
		if _, err := query.Parse(q, now); err != nil {
			t.Errorf("%.20s…: %v", q, err)
		}
	}
}

// A text is found wherever it stands in a body that is searched piece by piece.
func TestTextIsFoundAnywhereInALargeBody(t *testing.T) {
	for _, needle := range []string{"x", "Needle", strings.Repeat("ü", 900), strings.Repeat("a", 997) + "b"} {
		q, err := query.Parse(`"`+needle+`"`, now)
		if err != nil {
			t.Fatal(err)
		}
		body := []byte(strings.Repeat("a", 40_000))
		for at := 0; at+len(needle) <= len(body); at += 613 {
			placed := append(append(append([]byte{}, body[:at]...), strings.ToUpper(needle[:1])+needle[1:]...), body[at:]...)
			if needle[0] >= 0x80 {
				copy(placed[at:], needle)
			}
			if !q.Match(&hookglass.Event{Payload: &hookglass.Payload{Body: placed}}) {
				t.Fatalf("%.10s… was not found at %d", needle, at)
			}
		}
		if needle != "x" && q.Match(&hookglass.Event{Payload: &hookglass.Payload{Body: body}}) {
			t.Errorf("%.10s… was found where it is not", needle)
		}
	}
}

// What a sender and a user choose together must not make one event expensive.
func TestHostileTextIsSearchedInLinearTime(t *testing.T) {
	var hostile = func(q string, e *hookglass.Event) {
		parsed, err := query.Parse(q, now)
		if err != nil {
			t.Fatal(err)
		}
		cputime.AtMost(t, 2*time.Second, fmt.Sprintf("%.20s…", q), func() {
			if parsed.Match(e) {
				t.Errorf("%.20s… matches", q)
			}
		})
	}
	as := strings.Repeat("a", 8<<20)
	hostile(strings.Repeat("a", 900)+"b", &hookglass.Event{Payload: &hookglass.Payload{Body: []byte(as)}})
	hostile("path:"+strings.Repeat("a*", 400)+"b", &hookglass.Event{Path: as[:1<<20]})
	hostile("body./x:y", &hookglass.Event{Payload: &hookglass.Payload{Body: []byte(strings.Repeat("[", 8<<20))}})
	hostile("body"+strings.Repeat("/0", 400)+":y", &hookglass.Event{Payload: &hookglass.Payload{Body: []byte(strings.Repeat("[", 8<<20))}})
}

func TestWhatIsKnownWhenAnEventComes(t *testing.T) {
	for text, want := range map[string]bool{
		"method:GET path:/a header.x:1 query.p:2 body./a:b type:json ip:192.0.2.1 size:>1 provider:stripe event:a signature:failed free": true,
		"status:200": false, "path:/a tag:x": false, "note:x": false, "-is:ignored": false, "delivery:none": false, "-tunnel:delivered": false, "before:1h": false, "": true,
	} {
		q, err := query.Parse(text, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if q.AtArrival() != want {
			t.Errorf("%q: %v", text, !want)
		}
		if _, err := query.ParseCondition(text); (err == nil) != want || err != nil && !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("%q as a condition: %v", text, err)
		}
	}
}

// The sender waits while a condition is checked, so that only the beginning of a large body decides it.
func TestAConditionLooksAtTheFirstMiB(t *testing.T) {
	e := invoice()
	e.Body = []byte(`{"first":1,"pad":"` + strings.Repeat("a", query.MaxLooked) + `","last":1}`)
	for text, want := range map[string]bool{"body./first:1": true, "body./last:1": false, `-"last"`: true} {
		c, err := query.ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		if c.Means(e) != want {
			t.Errorf("%s is met: %t", text, !want)
		}
	}
	if !strings.HasSuffix(string(e.Body), `"last":1}`) {
		t.Error("the event lost the rest of its body")
	}
}

// A number that the first MiB cuts is not taken for the smaller one that is left of it.
func TestAConditionTakesNoPartOfANumberForAll(t *testing.T) {
	e := invoice()
	c, err := query.ParseCondition("body./n:12")
	if err != nil {
		t.Fatal(err)
	}
	for seen, want := range map[string]bool{`"n":12`: false, `"n":12,`: true} { // the end of the first MiB
		pad := query.MaxLooked - len(`{"pad":"",`+seen)
		for _, rest := range []string{`34}`, `"x":1}`} {
			e.Body = []byte(`{"pad":"` + strings.Repeat("a", pad) + `",` + seen + rest)
			if c.Means(e) != want {
				t.Errorf("%s|%s meets it: %t", seen, rest, !want)
			}
		}
	}
}

func TestReadsNamesTheParts(t *testing.T) {
	for q, want := range map[string][2]bool{
		`provider:x query.a:b`: {false, false},
		`header.a:b`:           {true, false},
		`body./a:b`:            {false, true},
		`has:attachment`:       {false, true},
		`-x`:                   {true, true},
	} {
		parsed, err := query.Parse(q, now)
		if err != nil {
			t.Fatal(err)
		}
		if h, b := parsed.Reads(); h != want[0] || b != want[1] {
			t.Errorf("%s reads headers %t, body %t", q, h, b)
		}
	}
}

// A body is read as far as it is JSON, and has no value that it only begins.
func TestValuesOfABodyThatIsNotQuiteJSON(t *testing.T) {
	for _, c := range []struct {
		body, q string
		want    bool
	}{
		{"\xef\xbb\xbf{\"id\":7}", "body./id:7", true},
		{`{"id":7, oops`, "body./id:7", true},
		{`{"id":tru`, "body./id:*", false},
		{`{"id":[1,`, "body./id:*", false},
		{`{"id":[1,`, "body./id/0:1", true},
		{`{"id":"a`, "body./id:*", false},
		{`{"x":tru, "id":7}`, "body./id:7", false},
	} {
		e := &hookglass.Event{Payload: &hookglass.Payload{Body: []byte(c.body)}}
		q, err := query.Parse(c.q, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.Match(e); got != c.want {
			t.Errorf("%s finds %q: %t", c.q, c.body, got)
		}
	}
}

// Slack and Mandrill send JSON in a field of a form.
func TestAPointerGoesOnInAFieldOfAForm(t *testing.T) {
	const form = "payload=%7B%22user%22%3A%7B%22id%22%3A%22U1%22%2C%22n%22%3A7%7D%7D&a=x+y&a=z&events=[{%22t%22:%22send%22}]&b=1"
	of := func(kind, body string, size int) *hookglass.Event {
		return &hookglass.Event{ContentType: kind, Size: int64(size), Payload: &hookglass.Payload{Body: []byte(body)}}
	}
	kind := "Application/X-WWW-Form-Urlencoded ; charset=utf-8"
	for q, want := range map[string]bool{
		`body./payload/user/id:u1`:  true,
		`body./payload/user/n:7`:    true,
		`body./payload/user/id/0:*`: false,
		`body./payload:*user*`:      true,
		`body./payload:*`:           true,
		`body./user/id:*`:           false,
		`body./a:"x y"`:             true,
		`body./a:z`:                 true,
		`body./a/0:*`:               false,
		`body./events/0/t:send`:     true,
		`body./b:1 -body./c:*`:      true,
		`body./b/0:1`:               false,
	} {
		parsed, err := query.Parse(q, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.Match(of(kind, form, len(form))); got != want {
			t.Errorf("%s: %t", q, got)
		}
	}
	for _, c := range []struct {
		e    *hookglass.Event
		q    string
		want bool
	}{
		{of("text/plain", form, len(form)), "body./b:1", false},
		{of(kind, "\ufeff {\"x\":\"&b=1&\"}", 0), "body./b:1", false}, // JSON that curl calls a form
		{of(kind, `{"b":1}`, 0), "body./b:1", true},
		{of(kind, form, len(form)+1), "body./b:1", false}, // it may go on
		{of(kind, form, len(form)+1), "body./a:z", true},
		{of(kind, "a~1b=%7B%22~%22:1}", 0), "body./a~01b/~0:1", true},
		{of(kind, "\xe9=\xff", 0), "body./é:ÿ", true},
		{of(kind, strings.Repeat("a&", 999)+"a=z", 0), "body./a:z", true},
		{of(kind, strings.Repeat("a&", 1000)+"a=z", 0), "body./a:z", false}, // strangers may send a million
	} {
		parsed, err := query.Parse(c.q, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.Match(c.e); got != c.want {
			t.Errorf("%s finds %.100q: %t", c.q, c.e.Body, got)
		}
	}
	for pointer, want := range map[string]string{"/payload/user/id": `"U1"`, "/b": `"1"`, "/payload/user/n": "7", "/a": "", "/none": ""} {
		if got, ok := query.Scalar(of(kind, form, len(form)), pointer); string(got) != want || ok != (want != "") {
			t.Errorf("%s is %s, %t", pointer, got, ok)
		}
	}
}

func TestMatchingLeavesTheBodyAlone(t *testing.T) {
	e := invoice()
	before := string(e.Body)
	for _, text := range []string{`body./data/text:x`, `EVT_1`, `body./big:x`} {
		q, err := query.Parse(text, now)
		if err != nil {
			t.Fatal(err)
		}
		q.Match(e)
	}
	if string(e.Body) != before {
		t.Error("the body changed")
	}
}

func FuzzParse(f *testing.F) {
	for _, q := range []string{`provider:stripe -tag:noise "free \" text" body./a~1b/0:x*y after:2h`, `header.`, `:`, `-`, `"`, `a.b:c`, "\xff", `size:>=1k`} {
		f.Add(q, []byte(`{"a":[1,"x"]}`))
	}
	f.Fuzz(func(t *testing.T, text string, body []byte) {
		q, err := query.Parse(text, now)
		if err != nil {
			var e *hookglass.Error
			if !errors.As(err, &e) || e.Code != hookglass.CodeValidationFailed {
				t.Fatalf("error %v", err)
			}
			if at, ok := e.Extra["position"].(int); !ok || at < 0 || at > len([]rune(text)) {
				t.Fatalf("position %v in %q", e.Extra["position"], text)
			}
			return
		}
		if len(q.Terms()) > query.MaxTerms {
			t.Fatalf("%d terms", len(q.Terms()))
		}
		e := invoice()
		e.Body = body
		kept := string(body)
		got := q.Match(e)
		if string(body) != kept {
			t.Fatal("the body changed")
		}
		// Each term negated turns that term's answer around: all hold, or one negated does.
		if len(q.Terms()) == 1 && !strings.HasPrefix(strings.TrimSpace(text), "-") {
			negated, err := query.Parse("-"+strings.TrimLeft(text, " \t\n\v\f\r"), now)
			if err == nil && negated.Match(e) == got {
				t.Fatalf("%q and its negation agree", text)
			}
		}
	})
}

// A mail is found by what people read in it, however it is encoded.
func TestTextOfAMailIsSearchedAsItIsRead(t *testing.T) {
	e := mail()
	e.Body = []byte("Subject: x\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
		"R3LDvMOfZSBhdXMgS8O2bG4=\r\n--b\r\nContent-Type: text/html; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>sch=F6n=\r\ner Tag</p><p>We&#39;re <b>Tom</b>&nbsp;&amp;=20\r\n  Jerry</p>\r\n--b--\r\n")
	for q, want := range map[string]bool{`"grüße aus köln"`: true, "schöner": true, `"we're tom & jerry"`: true, "We&#39;re": true, "R3LDvMOf": true, "nothing": false} {
		parsed, err := query.Filter{Q: q, Ignored: "any"}.Parse(now)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.Match(e); got != want {
			t.Errorf("%s: %v, want %v", q, got, want)
		}
	}
}

// A mail is found by everybody whom it was sent to, also where its header does not name them, as with blind copies.
func TestAMailIsFoundByItsEnvelope(t *testing.T) {
	e := mail()
	e.Envelope = &hookglass.Envelope{From: "bounces@shop.example", To: []string{"shop@mail.example", "Carol@hidden.example"}}
	for q, want := range map[string]bool{"carol@hidden.example": true, "bounces@": true, "-carol@": false, "dave@hidden.example": false} {
		parsed, err := query.Filter{Q: q, Ignored: "any"}.Parse(now)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.Match(e); got != want {
			t.Errorf("%s: %v, want %v", q, got, want)
		}
	}
}

func TestAMailIsFoundByItsAttachments(t *testing.T) {
	part := func(head string) string { return "--b\r\n" + head + "\r\n\r\nx\r\n" }
	of := func(parts ...string) *hookglass.Event {
		e := mail()
		e.Body = []byte("Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Join(parts, "") + "--b--\r\n")
		return e
	}
	text := part("Content-Type: text/plain")
	none, logo := of(text), of(text, part("Content-Type: image/png; name=Logo.png\r\nContent-ID: <a>"))
	bill := of(text, part("Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"Bill 7.pdf\""))
	bare := of(text)
	bare.Payload = nil
	hook := invoice()
	hook.Body = bill.Body
	for q, want := range map[string][]*hookglass.Event{
		"has:attachment":          {bill},
		"HAS:Attachment":          {bill},
		"-has:attachment":         {none, logo, bare, hook},
		"attachment:bill":         {bill},
		`attachment:"BILL 7.pdf"`: {bill},
		"attachment:*.pdf":        {bill},
		"attachment:*.p":          nil,
		"attachment:.p":           {bill, logo},
		"attachment:*":            {bill, logo},
		"-attachment:*":           {none, bare, hook},
	} {
		parsed, err := query.Filter{Q: q, Ignored: "any"}.Parse(now)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []*hookglass.Event{none, logo, bill, bare, hook} {
			if got := parsed.Match(e); got != slices.Contains(want, e) {
				t.Errorf("%s finds the mail of %d bytes: %v", q, e.Size, got)
			}
		}
	}
}

// A body is found by what it says, also where it was compressed on its way, and still by its bytes.
func TestACompressedBodyIsSearchedAsItIsRead(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Name = "as-received.json" // stands in the packed bytes as it is
	_, _ = w.Write([]byte(`{"data":{"id":"in_gz"},"pad":"` + strings.Repeat("a", 1<<20) + `","last":"beyond"}`))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	e := invoice()
	e.Body = packed.Bytes()
	for _, c := range []struct {
		coding, q string
		want      bool
	}{
		{"gzip", "IN_GZ", true}, {"gzip", "body./data/id:in_gz", true}, {"gzip", "-body./data/id:in_gz", false}, {"gzip", "-in_gz -nothing", false},
		{"GZIP", "in_gz", true}, {"", "in_gz", false}, {"br", "in_gz", false}, {"deflate", "in_gz", false},
		{"gzip", "beyond", false}, {"gzip", "body./last:beyond", false}, {"gzip", "as-received.json", true},
	} {
		e.Headers = hookglass.Headers{{Name: "content-encoding", Value: c.coding}}
		parsed, err := query.Parse(c.q, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.Match(e); got != c.want {
			t.Errorf("%q, %q: %v, want %v", c.coding, c.q, got, c.want)
		}
	}
	e.Headers, e.Body = hookglass.Headers{{Name: "Content-Encoding", Value: "gzip"}}, []byte(`{"data":{"id":"plain"}}`)
	if parsed, err := query.Parse("plain body./data/id:plain", now); err != nil || !parsed.Match(e) {
		t.Errorf("what is not compressed, whatever its header says, is not found: %v", err)
	}
}

// However many words are looked for, what people see of a mail is read once.
func TestAMailIsReadOnceForAllWords(t *testing.T) {
	raw := "Subject: x\r\nContent-Type: text/html\r\n\r\n" + strings.Repeat("<p>caf&eacute;</p>", 2000)
	mail := &hookglass.Event{Type: hookglass.EventEmail, Payload: &hookglass.Payload{Body: []byte(raw)}}
	allocations := func(q string) float64 {
		parsed, err := query.Parse(q, now)
		if err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(5, func() {
			if !parsed.Match(mail) {
				t.Errorf("%s is not found", q)
			}
		})
	}
	one, many := allocations("-tea"), allocations(strings.TrimSpace(strings.Repeat("-tea café ", 16)))
	if many > one+200 {
		t.Errorf("one word takes %.0f allocations, 32 take %.0f", one, many)
	}
}
