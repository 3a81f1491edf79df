package timeshift_test

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/cputime"
	"hookglass/internal/jsondoc"
	"hookglass/internal/provider"
	"hookglass/internal/timeshift"
)

func none(string) bool { return false }

func shift(t *testing.T, head, body string, delta time.Duration) (provider.Outgoing, []hookglass.TimeChange) {
	t.Helper()
	o := provider.Outgoing{Method: "POST", Headers: hookglass.ParseWire([]byte(strings.ReplaceAll(head, "\n", "\r\n"))), Body: []byte(body)}
	out, changes, err := timeshift.Apply(o, delta, none)
	if err != nil {
		t.Fatal(err)
	}
	return out, changes
}

func TestParse(t *testing.T) {
	received := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"now": 48 * time.Hour, "+3h": 3 * time.Hour, "-90m": -90 * time.Minute, "+2d": 48 * time.Hour, "+1d12h": 36 * time.Hour, "+1d0h": 24 * time.Hour, "-1d": -24 * time.Hour, "0": 0, "1500": 1500 * time.Millisecond,
		"-1500": -1500 * time.Millisecond, "3153600000000": timeshift.MaxShift, "+36500d": timeshift.MaxShift, "-3153600000000": -timeshift.MaxShift, "+0h": 0,
	} {
		s, fault := timeshift.Parse(text)
		if got := s.Delta(received, received.Add(48*time.Hour)); fault != "" || got != want {
			t.Errorf("%q: %v %q, want %v", text, got, fault, want)
		}
	}
	for _, text := range []string{"", "then", "3h", "+", "++3h", "+-3h", "+3", "+h", "+3x", "+d", "+1d-1h", "+1d+1h", "33h", "3153600000001", "-3153600000001", "+65535d2000000h", "+36501d", "+99999d", "1.5", "-36500d1h", "+1d1d", " now"} {
		if s, fault := timeshift.Parse(text); fault == "" {
			t.Errorf("%q is taken: %+v", text, s)
		}
	}
}

func TestEachFormOfATimeIsMovedAndStaysInIt(t *testing.T) {
	for _, c := range []struct{ name, from, to string }{
		{"created", `1700000000`, `1700010800`}, {"created_at", `1700000000123`, `1700010800123`}, {"eventTime", `"1700000000"`, `"1700010800"`}, {"ts", `1700000000.25`, `1700010800.25`},
		{"exp", `1700000000`, `1700010800`}, {"iat", `1700000000`, `1700010800`}, {"current_period_end", `1700000000`, `1700010800`}, {"created_ms", `1700000000123`, `1700010800123`}, {"CREATED_AT", `1700000000`, `1700010800`}, {"webhookTimestamp", `1700000000123`, `1700010800123`},
		{"x", `"2023-11-14T22:13:20Z"`, `"2023-11-15T01:13:20Z"`}, {"x", `"2023-11-14T22:13:20.123456Z"`, `"2023-11-15T01:13:20.123456Z"`}, {"x", `"2023-11-14T22:13:20.100+02:00"`, `"2023-11-15T01:13:20.100+02:00"`},
		{"x", `"2023-11-14T22:13:20-0730"`, `"2023-11-15T01:13:20-0730"`}, {"x", `"2023-11-14 22:13:20"`, `"2023-11-15 01:13:20"`}, {"x", `"2023-11-14t22:13:20z"`, `"2023-11-15t01:13:20z"`}, {"x", `"2023-11-14 22:13:20 UTC"`, `"2023-11-15 01:13:20 UTC"`},
		{"x", `"Tue, 14 Nov 2023 22:13:20 GMT"`, `"Wed, 15 Nov 2023 01:13:20 GMT"`}, {"x", `"Tue, 14 Nov 2023 22:13:20 +0100"`, `"Wed, 15 Nov 2023 01:13:20 +0100"`}, {"x", `"Tue, 7 Nov 2023 22:13:20 +0000"`, `"Wed, 8 Nov 2023 01:13:20 +0000"`},
		{"createdAt", `1700000000`, `1700010800`}, {"created_millis", `1700000000123`, `1700010800123`}, {"created_seconds", `1700000000`, `1700010800`}, {"duedate", `1700000000`, `1700010800`},
		{"eventtime", `1700000000`, `1700010800`}, {"webhooktimestamp", `1700000000`, `1700010800`}, {"ts", `1700000000.123456789`, `1700010800.123456789`}, {"at", `1000000000`, `1000010800`}, {"at", `4000000000`, `4000010800`},
		{"x", `"Tue Nov 14 22:13:20 +0000 2023"`, `"Wed Nov 15 01:13:20 +0000 2023"`},
	} {
		out, changes := shift(t, "Content-Type: application/json\n", `{"`+c.name+`": `+c.from+` }`, 3*time.Hour)
		if want := `{"` + c.name + `": ` + c.to + ` }`; string(out.Body) != want || len(changes) != 1 || changes[0].Pointer != "/"+c.name {
			t.Errorf("%s %s became %s, %v", c.name, c.from, out.Body, changes)
		}
	}
}

func TestWhatOnlyLooksLikeATimeStays(t *testing.T) {
	body := `{"id":1700000000,"order_number":1700000000123,"amount":1700000000,"amount_due":1700000000,"user_id":"1700000000","created":17,"created_at":99999999999,"timestamp_id":1700000000,
		"phone":"1700000000","name":"2023-11-14","version":"2023-11-14","date":"2023-11-14","note":"on 2023-11-14T22:13:20Z it was","ts":"1700000000.000100","duration_ms":1700000000,"price_at":1700000000,
		"token":"eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3MDAwMDAwMDB9.c2ln","exp":"never","update":1.7e9,"at":-1700000000,"negative_time":"01700000000","nothing":null,"yes":true,"far":"9999-12-31T23:59:59Z","none":"0001-01-01T00:00:00Z","wrong":"2023-13-14T22:13:20Z",
		"2023-11-14T22:13:20Z":1,"ms":1700000000,"update":1700000000,"candidate":1700000000,"since":1700000000.5e1,"until":1700000000.1234567891,"start":4000000001,"end":999999999,
		"no such day":"Mon, 14 Nov 2023 22:13:20 GMT","never":"Mon, 01 Jan 0001 00:00:00 GMT"}`
	out, changes := shift(t, "Content-Type: application/json\nX-Request-Id: 1700000000\nX-Account: 1700000000\nUser-Agent: x\n", body, 3*time.Hour)
	if string(out.Body) != body || len(changes) != 0 {
		t.Errorf("%v", changes)
	}
}

func TestHeadersFormsAndWhatIsNestedAreMoved(t *testing.T) {
	out, changes := shift(t, "Content-Type: application/json\nDate: Tue, 14 Nov 2023 22:13:20 GMT\nX-Request-Timestamp: 1700000000\nX-Triggered-At: 2023-11-14T22:13:20Z\n",
		`{"inner":"{\"exp\": 1700000000}","unsigned":"eyJhbGciOiJub25lIn0.eyJleHAiOjE3MDAwMDAwMDB9.","list":[{"at":1700000000}],"texts":"[{\"at\":1700000000}]"}`, 3*time.Hour)
	want := `{"inner":"{\"exp\": 1700010800}","unsigned":"eyJhbGciOiJub25lIn0.eyJleHAiOjE3MDAwMTA4MDB9.","list":[{"at":1700010800}],"texts":"[{\"at\":1700010800}]"}`
	if string(out.Body) != want || out.Headers.Get("Date") != "Wed, 15 Nov 2023 01:13:20 GMT" || out.Headers.Get("X-Request-Timestamp") != "1700010800" || out.Headers.Get("X-Triggered-At") != "2023-11-15T01:13:20Z" {
		t.Errorf("%s\n%s", out.Headers.AppendWire(nil), out.Body)
	}
	var places []string
	for _, c := range changes {
		places = append(places, c.Header+c.Pointer)
	}
	if got := strings.Join(places, " "); got != "Date X-Request-Timestamp X-Triggered-At /inner!/exp /unsigned!/exp /list/0/at /texts!/0/at" {
		t.Error(got)
	}
	out, changes = shift(t, "Content-Type: application/x-www-form-urlencoded\n", "a=1&id%5Bcreated%5D=1700000000&payload=%7B%22created%22%3A1700000000%7D&id=1700000000&when=2023-11-14T22%3A13%3A20%2B00%3A00", -time.Hour)
	if want := "a=1&id%5Bcreated%5D=1699996400&payload=%7B%22created%22%3A1699996400%7D&id=1700000000&when=2023-11-14T21%3A13%3A20%2B00%3A00"; string(out.Body) != want || len(changes) != 3 {
		t.Errorf("%s %v", out.Body, changes)
	}
	// What curl -d sends says that it is a form.
	out, changes = shift(t, "Content-Type: application/x-www-form-urlencoded\n", `{"created": 1700000000}`, time.Hour)
	if string(out.Body) != `{"created": 1700003600}` || len(changes) != 1 {
		t.Errorf("%s %v", out.Body, changes)
	}
	for head, body := range map[string]string{"Content-Type: application/json\n": `{"created": 1700000000,`, "Content-Type: text/plain\n": "created=1700000000"} {
		if out, changes = shift(t, head, body, time.Hour); string(out.Body) != body || len(changes) != 0 {
			t.Errorf("%s%s became %s, %v", head, body, out.Body, changes)
		}
	}
	if _, changes = shift(t, "", `{"created": 1700000000}`, 0); len(changes) != 0 {
		t.Errorf("moved by nothing: %v", changes)
	}
	o := provider.Outgoing{Headers: hookglass.Headers{{Name: "X-Slack-Request-Timestamp", Value: "1700000000"}}}
	if out, _, _ := timeshift.Apply(o, time.Hour, none); out.Headers[0].Value != "1700003600" || o.Headers[0].Value != "1700000000" {
		t.Errorf("%v became %v", o.Headers, out.Headers)
	}
	if out, changes, _ := timeshift.Apply(o, time.Hour, func(string) bool { return true }); out.Headers[0].Value != "1700000000" || len(changes) != 0 {
		t.Error("a header that is signed anew was moved")
	}
}

func TestTooManyTimesAreRefused(t *testing.T) {
	for n, refused := range map[int]bool{timeshift.MaxChanges: false, timeshift.MaxChanges + 1: true} {
		body := `{"at":[` + strings.TrimSuffix(strings.Repeat("1700000000,", n), ",") + `]}`
		_, changes, err := timeshift.Apply(provider.Outgoing{Body: []byte(body)}, time.Hour, none)
		if refused != hookglass.Is(err, hookglass.CodeValidationFailed) || !refused && len(changes) != n {
			t.Errorf("%d times: %d, %v", n, len(changes), err)
		}
	}
}

// A form of more times than may be is refused when that is known, not when all of it is read.
func TestAFormOfTooManyTimesIsLeft(t *testing.T) {
	form := func(n int) provider.Outgoing {
		return provider.Outgoing{Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/x-www-form-urlencoded"}}, Body: []byte(strings.Repeat("ts=1700000000&", n))}
	}
	shift := func(n int) float64 {
		o := form(n)
		return testing.AllocsPerRun(1, func() {
			if _, _, err := timeshift.Apply(o, time.Hour, none); !hookglass.Is(err, hookglass.CodeValidationFailed) {
				t.Errorf("%d times: %v", n, err)
			}
		})
	}
	if few, many := shift(timeshift.MaxChanges+1), shift(10*timeshift.MaxChanges); many > few+100 {
		t.Errorf("10,001 times take %.0f allocations, 100,000 take %.0f", few, many)
	}
}

func TestTimesBefore1970AreRight(t *testing.T) {
	const back = -1_700_000_001 * time.Second
	for from, want := range map[string]string{"1700000000.25": "-0.75", "1700000001.25": "0.25", "1700000000.0": "-1.0", "1700000000": "-1", "1700000000123": "-877"} {
		if out, _ := shift(t, "", `{"at":`+from+`}`, back); string(out.Body) != `{"at":`+want+`}` {
			t.Errorf("%s became %s, want %s", from, out.Body, want)
		}
	}
}

// What is JSON stays it; there and back again is where one came from.
func FuzzApply(f *testing.F) {
	f.Add([]byte(`{"created":1700000000,"a":["2023-11-14T22:13:20.5+02:00","Tue, 14 Nov 2023 22:13:20 GMT"]}`), int64(3600_000))
	f.Add([]byte(`{"inner":"{\"exp\":1700000000}"}`), int64(-1))
	f.Fuzz(func(t *testing.T, body []byte, ms int64) {
		delta := time.Duration(ms%(1<<35)) * time.Millisecond
		out, changes, err := timeshift.Apply(provider.Outgoing{Body: body}, delta, none)
		if err != nil {
			return
		}
		if len(changes) == 0 && !bytes.Equal(out.Body, body) {
			t.Fatalf("%q became %q without a change", body, out.Body)
		}
		if jsondoc.Check(body) == nil && !json.Valid(out.Body) {
			t.Fatalf("%q became %q", body, out.Body)
		}
	})
}

// A body takes time in proportion to its length, however long its names are.
func TestLongNamesCostNoMoreThanTheirLength(t *testing.T) {
	const n = 100_000
	body := `{"` + strings.Repeat("n", 2*n) + `":[1700000000` + strings.Repeat(`,1700000000,"a"`, n/2) + `,"2023-11-14T22:13:20Z"]}`
	var changes []hookglass.TimeChange
	cputime.AtMost(t, 5*time.Second, "a long name", func() {
		_, changes = shift(t, "Content-Type: application/json\n", body, time.Hour)
	})
	if len(changes) != 1 || len(changes[0].Pointer) > 1_100 {
		t.Errorf("%d changes", len(changes))
	}
	form := strings.Repeat("n", n) + `=["2023-11-14T22:13:20Z","2023-11-14T22:13:20Z"]`
	if _, changes = shift(t, "Content-Type: application/x-www-form-urlencoded\n", form, time.Hour); len(changes) != 2 || len(changes[1].Pointer) > 1_100 {
		t.Errorf("a form: %d changes", len(changes))
	}
}

// Where a text stands is written down when it is moved, and not for each element of a list under the list's name.
func TestWhatIsNotMovedNamesNoPlace(t *testing.T) {
	const n = 100_000
	body := `{"` + strings.Repeat("n", 900) + `":["a"` + strings.Repeat(`,"[1]"`, n) + `]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, changes := shift(t, "Content-Type: application/json\n", body, time.Hour)
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / n; len(changes) != 0 || each > 900 {
		t.Errorf("%d changes, %d bytes are allocated for each text", len(changes), each)
	}
}
