package capture_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hookglass"
	"hookglass/internal/capture"
)

func hook(body string) *hookglass.Event {
	return &hookglass.Event{
		ID: "req_1", Type: hookglass.EventWebhook, ReceivedAt: time.Date(2026, 11, 20, 12, 0, 0, 5000, time.UTC), Method: "POST",
		Path: "/a", RawQuery: "a=b+c&bad=%zz&flag&", URL: "https://h/hooks/ep/a?a=b+c&bad=%zz&flag&", Proto: "HTTP/1.1", ContentType: "application/json", IP: "203.0.113.7",
		Size: int64(len(body)), Status: 202, Provider: "stripe", EventType: "invoice.paid", SignatureStatus: hookglass.SignatureVerified, Tags: []string{"a", "b"},
		Payload: &hookglass.Payload{
			Headers: hookglass.Headers{{Name: "X-A", Value: "caf\xe9"}, {Name: "x-a", Value: "<2>"}}, Body: []byte(body),
			Reply: &hookglass.Reply{Status: 202, Source: hookglass.SourceCustom, Delay: 1500 * time.Millisecond,
				Headers: hookglass.Headers{{Name: "Content-Type", Value: "text/plain"}, {Name: "Location", Value: "/b"}}, Body: []byte("ok")},
		},
	}
}

func letter() *hookglass.Event {
	return &hookglass.Event{
		ID: "eml_1", Type: hookglass.EventEmail, ReceivedAt: time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC), Method: "EMAIL", Path: "box@localhost", Size: 2,
		Provider: "unknown", SignatureStatus: hookglass.SignatureUnchecked, From: "=cmd()", To: "box@localhost", Subject: "@SUM(1)", Ignored: "noise", Note: "=why()",
		IP: "192.0.2.9", Payload: &hookglass.Payload{Body: []byte("\xff\xfe")},
	}
}

// exported writes the events and checks on the way that each is written when it is added.
func exported(t *testing.T, format string, events ...*hookglass.Event) string {
	t.Helper()
	var file bytes.Buffer
	x, err := capture.NewExport(format, &file, func(e *hookglass.Event) any { return map[string]any{"id": e.ID, "body": string(e.Body)} })
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		before := file.Len()
		if err := x.Add(e); err != nil {
			t.Fatal(err)
		}
		if file.Len() <= before {
			t.Errorf("%s: %s is held back", format, e.ID)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

func TestNDJSONHasAnObjectALine(t *testing.T) {
	want := `{"body":"<a>\n\"","id":"req_1"}` + "\n" + `{"body":"\ufffd\ufffd","id":"eml_1"}` + "\n"
	if got := exported(t, "ndjson", hook("<a>\n\""), letter()); got != want {
		t.Errorf("got %s", got)
	}
	if got := exported(t, "ndjson"); got != "" {
		t.Errorf("without events: %q", got)
	}
}

func TestCSVHoldsNoFormula(t *testing.T) {
	hostile := []string{"=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "plain", " =1", `"=1"`, "a,b\n\"c\""}
	var events []*hookglass.Event
	for _, s := range hostile {
		e := hook(s)
		e.Path, e.RawQuery, e.URL, e.ContentType, e.EventType, e.EventRef, e.DeliveryID, e.Tags, e.Method = s, s, s, s, s, s, s, []string{s, "z"}, s
		events = append(events, e)
	}
	events = append(events, letter())
	rows, err := csv.NewReader(strings.NewReader(exported(t, "csv", events...))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1+len(events) {
		t.Fatalf("%d rows", len(rows))
	}
	column := make(map[string]int)
	for i, name := range rows[0] {
		column[name] = i
	}
	for n, row := range rows[1:] {
		for i, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
				t.Errorf("row %d, %s: %q is a formula", n, rows[0][i], cell)
			}
		}
	}
	for i, want := range []string{"'=1+1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "'\nx", "plain", " =1", `"=1"`, "a,b\n\"c\""} {
		if got := rows[1+i][column["body"]]; got != want {
			t.Errorf("body %q is exported as %q", hostile[i], got)
		}
	}
	last := rows[len(rows)-1]
	for name, want := range map[string]string{
		"id": "eml_1", "type": "email", "requested_at": "2026-11-20T13:00:00.000000Z", "method": "EMAIL", "path": "box@localhost", "status": "", "ip_address": "", "size": "2",
		"from": "'=cmd()", "subject": "'@SUM(1)", "ignored": "noise", "body_encoding": "base64", "body": "//4=", "tags": "", "note": "'=why()",
	} {
		if got := last[column[name]]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := rows[8][column["status"]] + rows[8][column["body_encoding"]]; got != "202utf8" {
		t.Error(got)
	}
	if rows, err := csv.NewReader(strings.NewReader(exported(t, "csv"))).ReadAll(); err != nil || len(rows) != 1 {
		t.Errorf("without events: %d rows, %v", len(rows), err)
	}
}

func TestHARIsAnArchiveOfTheExchange(t *testing.T) {
	type pair struct{ Name, Value string }
	type archive struct {
		Log struct {
			Version string
			Creator struct{ Name, Version string }
			Entries []struct {
				StartedDateTime string
				Time            float64
				Request         struct {
					Method, URL, HTTPVersion      string
					Headers, QueryString, Cookies []pair
					PostData                      *struct{ MimeType, Text, Encoding string }
					BodySize                      int
				}
				Response struct {
					Status  int
					Headers []pair
					Content struct {
						Size                     int
						MimeType, Text, Encoding string
					}
					RedirectURL string
				}
				Cache   map[string]any
				Timings struct{ Send, Wait, Receive float64 }
				Latin1  []string `json:"_latin1"`
			}
		}
	}
	read := func(file string) (a archive) {
		t.Helper()
		if err := json.Unmarshal([]byte(file), &a); err != nil {
			t.Fatalf("%v in %s", err, file)
		}
		return a
	}
	sent := hook(`{"a":"<&>"}`)
	sent.URL += "caf\xe9"
	sent.Headers = append(sent.Headers,
		hookglass.Header{Name: "cookie", Value: `a=1; b="x=y"`}, hookglass.Header{Name: "Cookie", Value: "c=\xe9;d=; e ;"})
	sent.Reply.Headers = append(sent.Reply.Headers, hookglass.Header{Name: "X-B", Value: "\xe9"})
	a := read(exported(t, "har", sent, letter()))
	if a.Log.Version != "1.2" || a.Log.Creator.Name != "hookglass" || a.Log.Creator.Version != hookglass.Version || len(a.Log.Entries) != 2 {
		t.Fatalf("%+v", a)
	}
	first, second := a.Log.Entries[0], a.Log.Entries[1]
	for what, c := range map[string][2]any{
		"start":       {first.StartedDateTime, "2026-11-20T12:00:00.000005Z"},
		"time":        {first.Time, 1500.0},
		"wait":        {first.Timings.Wait, 1500.0},
		"method":      {first.Request.Method, "POST"},
		"URL":         {first.Request.URL, "https://h/hooks/ep/a?a=b+c&bad=%zz&flag&café"},
		"headers":     {first.Request.Headers, []pair{{"X-A", "café"}, {"x-a", "<2>"}, {"cookie", `a=1; b="x=y"`}, {"Cookie", "c=é;d=; e ;"}}},
		"cookies":     {first.Request.Cookies, []pair{{"a", "1"}, {"b", `"x=y"`}, {"c", "é"}, {"d", ""}}},
		"query":       {first.Request.QueryString, []pair{{"a", "b c"}, {"bad", "%zz"}, {"flag", ""}}},
		"body":        {first.Request.PostData.Text, `{"a":"<&>"}`},
		"body type":   {first.Request.PostData.MimeType, "application/json"},
		"status":      {first.Response.Status, 202},
		"answer":      {first.Response.Content.Text, "ok"},
		"answer type": {first.Response.Content.MimeType, "text/plain"},
		"redirect":    {first.Response.RedirectURL, "/b"},
		"mail":        {second.Request.Method + " " + second.Request.URL, "EMAIL mailto:box@localhost"},
		"mail body":   {second.Request.PostData.Text, "//4="},
		"no answer":   {second.Response.Status, 0},
		"not UTF-8":   {first.Latin1, []string{"/request/url", "/request/cookies/2/value", "/request/headers/0/value", "/request/headers/3/value", "/response/headers/2/value"}},
	} {
		if diff := cmp.Diff(c[1], c[0]); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	for i, e := range a.Log.Entries {
		if e.Cache == nil || e.Request.Cookies == nil || e.Request.Headers == nil || e.Response.Headers == nil || e.Request.QueryString == nil {
			t.Errorf("entry %d lacks what HAR requires: %+v", i, e)
		}
	}
	if a := read(exported(t, "har")); a.Log.Entries == nil || len(a.Log.Entries) != 0 {
		t.Errorf("without events: %+v", a)
	}
}

func TestAnUnknownFormatIsRefused(t *testing.T) {
	for _, format := range []string{"", "xml", "CSV"} {
		if _, err := capture.NewExport(format, nil, nil); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("%q: %v", format, err)
		}
	}
}

// A reader that went away ends the export.
func TestAFailedWriteEndsTheExport(t *testing.T) {
	for _, format := range []string{"ndjson", "har", "csv"} {
		gone := errors.New("gone")
		x, err := capture.NewExport(format, failing{gone}, func(*hookglass.Event) any { return 1 })
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Add(hook("x")); !errors.Is(err, gone) {
			t.Errorf("%s: %v", format, err)
		}
		if x.MediaType() == "" {
			t.Errorf("%s has no media type", format)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, fmt.Errorf("write: %w", f.err) }
