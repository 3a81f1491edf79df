package query_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/query"
)

func TestFilters(t *testing.T) {
	for name, c := range map[string]struct {
		filter        query.Filter
		invoice, mail bool
	}{
		"none":                 {query.Filter{}, true, false}, // the mail is ignored
		"ignored false":        {query.Filter{Ignored: "false"}, true, false},
		"ignored true":         {query.Filter{Ignored: "true"}, false, true},
		"ignored any":          {query.Filter{Ignored: "any"}, true, true},
		"q asks for ignored":   {query.Filter{Q: "is:ignored"}, false, true},
		"q and false disagree": {query.Filter{Q: "is:ignored", Ignored: "false"}, false, false},
		"type":                 {query.Filter{Type: "email", Ignored: "any"}, false, true},
		"method":               {query.Filter{Method: "POST"}, true, false},
		"provider":             {query.Filter{Provider: "github"}, false, false},
		"event_type":           {query.Filter{EventType: "invoice.payment_failed"}, true, false},
		"event_type, wildcard": {query.Filter{EventType: "invoice.*"}, true, false},
		"signature_status":     {query.Filter{SignatureStatus: "verified"}, false, false},
		"status":               {query.Filter{Status: "502"}, true, false},
		"status class":         {query.Filter{Status: "2xx"}, false, false},
		"tag":                  {query.Filter{Tag: "needs care"}, true, false},
		"content_type":         {query.Filter{ContentType: "application/json"}, true, false},
		"the longest value":    {query.Filter{Tag: strings.Repeat("x", query.MaxLength)}, false, false},
		"before":               {query.Filter{Before: "2026-11-20T11:00:00Z", Ignored: "any"}, false, true},
		"after":                {query.Filter{After: "2026-11-20T11:00:00Z", Ignored: "any"}, false, false},
		"all together":         {query.Filter{Method: "post", Tag: "billing", Q: "provider:stripe"}, true, false},
	} {
		q, err := c.filter.Parse(now)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if q.Match(invoice()) != c.invoice || q.Match(mail()) != c.mail {
			t.Errorf("%s: the invoice %t, the mail %t", name, q.Match(invoice()), q.Match(mail()))
		}
	}
}

func TestEveryBadFilterIsNamed(t *testing.T) {
	long := strings.Repeat("x", query.MaxLength+1)
	_, err := query.Filter{
		Type: "fax", Method: "BREW", Provider: long, SignatureStatus: "maybe", Status: "200 OK", Before: "x", After: "tomorrow", Ignored: "no", Q: `a "b`,
	}.Parse(now)
	var e *hookglass.Error
	if !errors.As(err, &e) || e.Code != hookglass.CodeValidationFailed {
		t.Fatal(err)
	}
	var fields []string
	for _, d := range e.Details {
		fields = append(fields, d.Field)
		if d.Field != "q" && !strings.HasPrefix(d.Message, "must be ") && !strings.HasPrefix(d.Message, "may have ") {
			t.Errorf("%s %s", d.Field, d.Message)
		}
	}
	if got := strings.Join(fields, " "); got != "q type method provider signature_status status before after ignored" {
		t.Error(got)
	}
	if e.Extra["position"] != 4 {
		t.Errorf("the fault in q is at %v", e.Extra["position"])
	}
	if _, err := (query.Filter{Q: `"`}).Parse(now); !errors.As(err, &e) || e.Details[0].Field != "q" {
		t.Error(err)
	}
}

func TestBetweenExcludesItsBounds(t *testing.T) {
	at := now.Add(-time.Hour)
	for _, c := range []struct {
		after, before time.Time
		want          bool
	}{
		{time.Time{}, time.Time{}, true},
		{at, time.Time{}, false},
		{time.Time{}, at, false},
		{at.Add(-time.Microsecond), at.Add(time.Microsecond), true},
	} {
		if got := query.Between(c.after, c.before).Match(invoice()); got != c.want {
			t.Errorf("between %v and %v: %t", c.after, c.before, got)
		}
	}
}

// Clients write offsets without a colon (date +%z, PHP, Ruby) and times in the basic format, and a leap second is a
// time of RFC 3339.
func TestATimeIsTakenInEveryCommonFormOfISO8601(t *testing.T) {
	second := time.Date(2016, 12, 31, 23, 59, 59, 0, time.UTC)
	for s, want := range map[string]time.Time{
		"2016-12-31T23:59:59Z":           second,
		"2017-01-01T00:59:59+01:00":      second,
		"2017-01-01T05:29:59+0530":       second,
		"2016-12-31T18:59:59-05":         second,
		"20161231T235959Z":               second,
		"20170101T005959+0100":           second,
		"20161231T235959":                second,
		"2016-12-31T23:59:60Z":           second.Add(time.Second),
		"2017-01-01T08:59:60.25+09:00":   second.Add(1250 * time.Millisecond),
		"2016-12-31T18:59:59.5-0500":     second.Add(500 * time.Millisecond),
		"2016-12-31":                     second.Add(time.Second).AddDate(0, 0, -1),
		"2016-12-31T23:59Z":              second.Truncate(time.Minute),
		"2016-12-31T23:59:61Z":           {},
		"2016-12-31T23:60Z":              {},
		"20161231":                       {},
		"2016-12-31T23:59:59+01:00 then": {},
	} {
		if got, err := query.ParseTime(s, now); !got.Equal(want) || (err != nil) != want.IsZero() {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
}

// The zero time is "no bound" to callers: what is before the first of all years would be everything.
func TestNoTimeIsTakenForNoBound(t *testing.T) {
	first, err := query.ParseTime("0001-01-01", now)
	if err != nil || first.IsZero() || query.Between(time.Time{}, first).Match(invoice()) {
		t.Errorf("%v, %v", first, err)
	}
}

// RFC 9110, section 8.3.1: white space may stand before the semicolon.
func TestAContentTypeEndsAtItsParameters(t *testing.T) {
	q, err := query.Filter{ContentType: "text/plain"}.Parse(now)
	if err != nil {
		t.Fatal(err)
	}
	for contentType, want := range map[string]bool{
		"text/plain": true, "text/plain;charset=utf-8": true, "text/plain ; charset=utf-8": true, "TEXT/PLAIN": true, "text/plainer": false, "": false,
	} {
		e := invoice()
		e.ContentType = contentType
		if q.Match(e) != want {
			t.Errorf("%q: %v", contentType, !want)
		}
	}
}
