package schema_test

import (
	"encoding/json"
	"fmt"
	"go/format"
	"slices"
	"strings"
	"testing"

	"hookglass/internal/jsondoc"
	"hookglass/internal/schema"
)

func observe(t testing.TB, s *schema.Schema, bodies ...string) *schema.Schema {
	t.Helper()
	for i, text := range bodies {
		v, err := jsondoc.Parse([]byte(text), jsondoc.Wide())
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		s.Observe(v, fmt.Sprintf("e%d", i+1))
	}
	return s
}

func written(s *schema.Schema) string { return string(s.JSONSchema("")) }

func TestWhatIsInferred(t *testing.T) {
	const head = `{"$schema":"https://json-schema.org/draft/2020-12/schema",`
	for _, c := range []struct {
		name   string
		bodies []string
		want   string
	}{
		{"types, and what is required", []string{`{"a":1,"b":"x y","c":true,"d":null,"e":1.5}`, `{"a":2,"b":null,"c":false,"e":3}`},
			`"type":"object","properties":{"a":{"type":"integer"},"b":{"type":["string","null"]},"c":{"type":"boolean"},"d":{"type":"null"},"e":{"type":"number"}},"required":["a","b","c","e"]}`},
		{"an integer beside a number is one", []string{`[1,2]`, `[1.5,1e3]`}, `"type":"array","items":{"type":"number"}}`},
		{"items of objects", []string{`{"items":[{"id":1},{"id":2,"x":null}]}`, `{"items":[]}`},
			`"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"},"x":{"type":"null"}},"required":["id"]}}},"required":["items"]}`},
		{"formats, where all agree", []string{
			`{"t":"2026-11-20T10:15:30Z","u":"3f2b8a1e-0000-4000-8000-000000000001","m":"a@example.com","w":"https://example.com/x","d":"2026-11-20","n":"2026-11-20T10:15:30Z"}`,
			`{"t":"2026-11-20T10:15:30.123+01:00","u":"3f2b8a1e-0000-4000-8000-000000000002","m":"b@example.com","w":"http://example.com","d":"2026-01-01","n":"soon"}`,
		}, `"type":"object","properties":{"d":{"type":"string","format":"date"},"m":{"type":"string","format":"email"},"n":{"type":"string"},"t":{"type":"string","format":"date-time"},` +
			`"u":{"type":"string","format":"uuid"},"w":{"type":"string","format":"uri"}},"required":["d","m","n","t","u","w"]}`},
		{"names that are data", []string{`{"by_user":{"18446744073709551615":{"n":1},"2":{"n":2}},"at":{"2026-11-20":1,"9f86d081884c":2},"of":{"cus_NffrFeUfNV2Hib":"x"}}`},
			`"type":"object","properties":{"at":{"type":"object","additionalProperties":{"type":"integer"}},"by_user":{"type":"object","additionalProperties":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}},` +
				`"of":{"type":"object","additionalProperties":{"type":"string"}}},"required":["at","by_user","of"]}`},
		{"short names with digits are none", []string{`{"a_1b2c3d4e5f":1}`}, `"type":"object","properties":{"a_1b2c3d4e5f":{"type":"integer"}},"required":["a_1b2c3d4e5f"]}`},
		{"no object at all", []string{`"hello"`, `5`, `null`}, `"type":["string","integer","null"]}`},
		{"nothing", nil, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := head + c.want
			if c.want == "" {
				want = strings.TrimSuffix(head, ",") + "}"
			}
			if got := written(observe(t, schema.New(), c.bodies...)); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestASmallSetOfWordsIsASetWhenItIsSeenOftenEnough(t *testing.T) {
	s := schema.New()
	for i := range 19 {
		observe(t, s, fmt.Sprintf(`{"state":%q,"name":"n%d"}`, []string{"open", "closed"}[i%2], i))
	}
	if got := written(s); strings.Contains(got, "enum") {
		t.Errorf("after 19: %s", got)
	}
	observe(t, s, `{"state":"open","name":"x"}`)
	if got := written(s); !strings.Contains(got, `"state":{"type":"string","enum":["closed","open"]}`) || strings.Count(got, "enum") != 1 {
		t.Errorf("after 20: %s", got)
	}
	for i := range schema.MaxValues {
		observe(t, s, fmt.Sprintf(`{"state":"%s","name":"x"}`, strings.Repeat("a", i+1)))
	}
	if got := written(s); strings.Contains(got, "enum") {
		t.Errorf("with more than %d words: %s", schema.MaxValues, got)
	}
}

func TestValuesThatAreNoWordsAreNotKept(t *testing.T) {
	s := schema.New()
	longest := strings.Repeat("v", schema.MaxWord)
	for range 30 {
		observe(t, s, `{"a":"jane@example.com","b":"Jane Roe","c":"+49301234","d":"tok3n","e":"`+strings.Repeat("w", schema.MaxWord+1)+`","f":"`+longest+`"}`)
	}
	kept, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(kept), longest) {
		t.Errorf("a word of %d characters is not kept: %s", schema.MaxWord, kept)
	}
	for _, secret := range []string{"jane", "Jane", "+49", "tok3n", "www"} {
		if strings.Contains(string(kept), secret) {
			t.Errorf("%q is kept: %s", secret, kept)
		}
	}
}

func TestBoundsAtTheirEdge(t *testing.T) {
	object := func(n int) string {
		members := make([]string, n)
		for i := range members {
			members[i] = fmt.Sprintf(`"%s":1`, strings.Repeat("x", i+1))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	if got := written(observe(t, schema.New(), object(schema.MaxNames))); strings.Contains(got, "additionalProperties") {
		t.Error("an object of MaxNames members has lost their names")
	}
	s := observe(t, schema.New(), object(schema.MaxNames+1))
	if got := written(s); !strings.HasSuffix(got, `"type":"object","additionalProperties":{"type":"integer"}}`) {
		t.Errorf("an object of more: %s", got)
	}
	if s.Nodes != 2 {
		t.Errorf("%d places, want 2", s.Nodes)
	}
	s = schema.New()
	for i := range 2000 {
		name := string([]byte{byte('a' + i%26), byte('a' + i/26%26), byte('a' + i/676)})
		observe(t, s, fmt.Sprintf(`{"g%c":{"%s":1}}`, 'a'+i%50, name))
	}
	if s.Nodes > schema.MaxNodes {
		t.Errorf("%d places", s.Nodes)
	}
	deep := observe(t, schema.New(), strings.Repeat(`{"a":`, schema.MaxDepth+1)+"1"+strings.Repeat("}", schema.MaxDepth+1))
	if !deep.Truncated {
		t.Error("a deep body is whole")
	}
	flat := observe(t, schema.New(), strings.Repeat(`{"a":`, schema.MaxDepth)+"1"+strings.Repeat("}", schema.MaxDepth))
	if flat.Truncated {
		t.Error("a body of the depth is not whole")
	}
	items := "[" + strings.Repeat("1,", schema.MaxItems) + "1]"
	if s := observe(t, schema.New(), items); !s.Truncated {
		t.Error("all of a long array was looked at")
	}
	row := "[" + strings.Repeat("1,", schema.MaxItems-1) + "1]"
	many := "[" + strings.Repeat(row+",", schema.MaxItems-1) + row + "]"
	if s := observe(t, schema.New(), many); !s.Truncated || s.Events != 1 || s.Root.N != 0 {
		t.Errorf("a body of %d values was looked at", schema.MaxItems*schema.MaxItems)
	}
}

func drifts(baseline, since *schema.Schema) (all []string) {
	for _, d := range schema.Diff(baseline, since) {
		all = append(all, fmt.Sprintf("%s %s %s>%s %s %s*%d", d.Kind, d.Pointer, strings.Join(d.Was, "|"), strings.Join(d.Is, "|"), d.Value, d.Event, d.Count))
	}
	return all
}

func TestDrift(t *testing.T) {
	state := func(n int, states ...string) (bodies []string) {
		for i := range n {
			bodies = append(bodies, fmt.Sprintf(`{"s":%q}`, states[i%len(states)]))
		}
		return bodies
	}
	for _, c := range []struct {
		name          string
		before, since []string
		want          []string
	}{
		{"none", []string{`{"a":1,"b":[{"c":"x"}]}`}, []string{`{"b":[{"c":"y"}],"a":5}`, `{"a":1,"b":[]}`}, nil},
		{"a member is new", []string{`{"a":1}`}, []string{`{"a":1}`, `{"a":1,"b":{"c":1}}`, `{"a":1,"b":null}`}, []string{"added /b >object|null  e2*2"}},
		{"a member is gone", []string{`{"a":1,"b":2}`, `{"a":1,"b":2}`}, []string{`{"a":1}`, `{"a":1}`}, []string{"removed /b integer>  e1*2"}},
		{"a member is optional now", []string{`{"a":1,"b":2}`}, []string{`{"a":1,"b":2}`, `{"a":1}`, `{"a":1}`}, []string{"now_optional /b integer>  e2*2"}},
		{"an optional member is missing", []string{`{"a":1}`, `{"a":1,"b":1}`}, []string{`{"a":1}`}, nil},
		{"another type", []string{`{"a":1}`}, []string{`{"a":1}`, `{"a":"x"}`}, []string{"type_changed /a integer>string  e2*1"}},
		{"null is a type", []string{`{"a":"x"}`}, []string{`{"a":null}`}, []string{"type_changed /a string>null  e1*1"}},
		{"an integer is a number", []string{`{"a":1.5}`}, []string{`{"a":1}`}, nil},
		{"an integer where there was text", []string{`{"a":"x"}`}, []string{`{"a":1}`}, []string{"type_changed /a string>integer  e1*1"}},
		{"a number is no integer", []string{`{"a":1}`}, []string{`{"a":1.5}`}, []string{"type_changed /a integer>number  e1*1"}},
		{"inside items", []string{`{"a":[{"b":1}]}`}, []string{`{"a":[{"b":1},{"b":"x","c":1}]}`}, []string{"type_changed /a/*/b integer>string  e1*1", "added /a/*/c >integer  e1*1"}},
		{"under names that are data", []string{`{"a":{"10000000000001":{"b":1}}}`}, []string{`{"a":{"10000000000002":{"b":"x"}}}`}, []string{"type_changed /a/*/b integer>string  e1*1"}},
		{"the body itself", []string{`{"a":1}`}, []string{`[1]`}, []string{"type_changed  object>array  e1*1"}},
		{"a word outside the set", state(20, "open", "closed"), state(3, "open", "merged"), []string{"new_value /s > merged e2*1"}},
		{"a word where there was no set yet", state(19, "open", "closed"), state(3, "open", "merged"), nil},
		{"five words, each seen often enough", state(20, "open", "closed", "merged", "draft", "spam"), []string{`{"s":"locked"}`}, []string{"new_value /s > locked e1*1"}},
		{"six words, each seen too seldom", state(23, "open", "closed", "merged", "draft", "spam", "locked"), []string{`{"s":"other"}`}, nil},
		{"one word is no set", state(20, "ada"), []string{`{"s":"eve"}`}, nil},
		{"no words any more", state(20, "open", "closed"), []string{`{"s":"2 open"}`}, []string{"new_value /s >  e1*1"}},
		{"nothing arrived since", []string{`{"a":1}`}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			baseline := observe(t, schema.New(), c.before...)
			since := observe(t, baseline.Skeleton(), c.since...)
			if got := drifts(baseline, since); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			// What was accepted is no drift, also when it is seen again.
			next := schema.Accept(baseline, since)
			if got := drifts(next, observe(t, next.Skeleton(), c.since...)); len(got) != 0 {
				t.Errorf("after it was accepted: %q", got)
			}
		})
	}
}

func TestAnObjectThatGrewWideIsComparedAsItIsNow(t *testing.T) {
	baseline := observe(t, schema.New(), `{"a":1,"b":2}`)
	since := baseline.Skeleton()
	for i := range schema.MaxNames + 1 {
		observe(t, since, fmt.Sprintf(`{"%s":1}`, strings.Repeat("n", i+1)))
	}
	if got := drifts(baseline, since); len(got) != 0 {
		t.Errorf("integers under other names: %q", got)
	}
	observe(t, since, `{"z":"x"}`)
	if got := drifts(baseline, since); !slices.Equal(got, []string{"type_changed /* integer>string  e1*1"}) {
		t.Errorf("a string among them: %q", got)
	}
}

func TestADriftIsToldWithoutValues(t *testing.T) {
	for _, d := range []schema.Drift{
		{Kind: schema.Added, Pointer: "/a", Is: []string{"string"}, Value: "secret"}, {Kind: schema.Removed, Pointer: "/a", Value: "secret"},
		{Kind: schema.NowOptional, Pointer: "/a", Value: "secret"}, {Kind: schema.TypeChanged, Pointer: "", Was: []string{"object"}, Is: []string{"array"}, Value: "secret"},
		{Kind: schema.NewValue, Pointer: "/a", Value: "secret"},
	} {
		if s := d.String(); strings.Contains(s, "secret") || s == "" {
			t.Errorf("%q", s)
		}
	}
}

func TestMergingIsTheSameAsObservingBoth(t *testing.T) {
	a, b := []string{`{"a":1,"l":[{"x":1}]}`, `{"a":"s"}`}, []string{`{"a":null,"b":{"c":true}}`, `[1]`}
	for range 5 { // neither has seen the words often enough, both together have
		a, b = append(a, `{"s":"open"}`, `{"s":"closed"}`), append(b, `{"s":"open"}`, `{"s":"closed"}`)
	}
	one := observe(t, observe(t, schema.New(), a...), b...)
	two := observe(t, schema.New(), a...)
	two.Merge(observe(t, schema.New(), b...))
	if !strings.Contains(written(two), `"enum":["closed","open"]`) {
		t.Errorf("the words are no set: %s", written(two))
	}
	if written(one) != written(two) || one.Nodes != two.Nodes || one.Events != two.Events {
		t.Errorf("observed %s\nmerged   %s", written(one), written(two))
	}
	text, err := two.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := schema.Decode(text)
	if err != nil || written(read) != written(two) || read.Events != two.Events || read.Nodes != two.Nodes {
		t.Errorf("read again: %s, %v", written(read), err)
	}
}

// A format is named only where a checker that goes by the letter of its RFC finds it. The texts that have none are as
// senders write them: GitHub's templates of addresses, addresses in another script, hosts without a dot.
func TestFormatsAreThoseOfTheirRFC(t *testing.T) {
	for _, c := range []struct {
		format string
		texts  []string
	}{
		{"uri", []string{"https://a.test", "http://user:pass@a.test:8080/p/%C3%A9;v=1?q=a&x", "https://[::1]:80/a?b=c/?#d/?", "postgres://a_b/c", "https://a.test/(x)!*'$,+~"}},
		{"", []string{"https://api.github.com/users/o/events{/privacy}", "https://a.test/é", "https://a.test/a b", "https://a.test/?a[]=1", "https://a.test/%zz", "https://a.test/?%", "https://a.test/#a#b",
			`https://a.test/\x`, "https://a.test/<id>", "https://a.test/a|b", "https:///x", "://a.test/x", "https://münchen.test/"}},
		{"date-time", []string{"2026-11-20T10:15:30Z", "2026-11-20T10:15:30.123456789+01:00", "2024-02-29T23:59:59-23:59"}},
		{"", []string{"2026-11-20T9:15:30Z", "2026-11-20T10:15:30,5Z", "2026-11-20T10:15:30+24:00", "2026-11-20 10:15:30Z", "2026-11-20T10:15:30", "2025-02-29T10:15:30Z", "2026-11-20T10:15:30+0100"}},
		{"date", []string{"2026-11-20"}},
		{"", []string{"2026-02-30", "2026-11-2"}},
		{"email", []string{"a.b+c@example.com", "!#$%&'*/=?^_{|}~-`@a-b.c1.test"}},
		{"", []string{"root@localhost", "jürgen@example.com", "a@münchen.test", `"a b"@example.com`, "a@[192.0.2.1]", "a@b..test", "a@-b.test", "@example.com", "a@b_c.test"}},
	} {
		for _, text := range c.texts {
			body, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			want := `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"string"`
			if c.format != "" {
				want += `,"format":"` + c.format + `"`
			}
			if got := written(observe(t, schema.New(), string(body))); got != want+"}" {
				t.Errorf("%s: %s, want the format %q", body, got, c.format)
			}
		}
	}
}

func TestTypesOfALanguage(t *testing.T) {
	s := observe(t, schema.New(),
		`{"id":"evt_x","created_at":"2026-11-20T10:15:30Z","data":{"items":[{"price":1.5,"qty":2}],"meta":{"10000000000001":"x"},"more":{"x":1},"sent":"2026-11-20T10:15:30Z"},"user-name":null,"ünï":1,"1st":true}`,
		`{"id":"evt_y","created_at":"2026-11-20T10:15:31Z","data":{"items":[],"meta":{}},"user-name":"x","note":"n","ünï":"1","1st":true}`)
	golang := s.Code("go", "invoice.paid")
	const want = `// time.Time needs: import "time"

type InvoicePaid struct {
	X1st      bool            ` + "`json:\"1st\"`" + `
	CreatedAt time.Time       ` + "`json:\"created_at\"`" + `
	Data      InvoicePaidData ` + "`json:\"data\"`" + `
	ID        string          ` + "`json:\"id\"`" + `
	Note      string          ` + "`json:\"note,omitempty\"`" + `
	UserName  *string         ` + "`json:\"user-name\"`" + `
	N         any             ` + "`json:\"ünï\"`" + `
}

type InvoicePaidData struct {
	Items []InvoicePaidDataItemsItem ` + "`json:\"items\"`" + `
	Meta  map[string]string          ` + "`json:\"meta\"`" + `
	More  InvoicePaidDataMore        ` + "`json:\"more,omitzero\"`" + `
	Sent  time.Time                  ` + "`json:\"sent,omitzero\"`" + `
}

type InvoicePaidDataMore struct {
	X int64 ` + "`json:\"x\"`" + `
}

type InvoicePaidDataItemsItem struct {
	Price float64 ` + "`json:\"price\"`" + `
	Qty   int64   ` + "`json:\"qty\"`" + `
}
`
	if golang != want {
		t.Errorf("got\n%s\nwant\n%s", golang, want)
	}
	ts := s.Code("ts", "invoice.paid")
	for _, line := range []string{"export interface InvoicePaid {", "  note?: string;", `  "user-name": string | null;`, `  "1st": boolean;`, "  items: InvoicePaidDataItemsItem[];", "  meta: Record<string, string>;", `  "ünï": string | number;`} {
		if !strings.Contains(ts, line+"\n") {
			t.Errorf("no %q in\n%s", line, ts)
		}
	}
	if got := observe(t, schema.New(), `[{"a":1}]`).Code("ts", "x"); got != "export type X = XItem[];\n\nexport interface XItem {\n  a: number;\n}\n" {
		t.Errorf("%s", got)
	}
}

// A body that is an object at one time and something else at another has two types, of two names.
func TestTypesOfABodyThatIsNotAlwaysAnObject(t *testing.T) {
	for _, row := range []struct{ other, golang, ts string }{
		{"1", "type X any\n\ntype XObject struct {\n\tA int64 `json:\"a\"`\n}\n", "export type X = XObject | number;\n\nexport interface XObject {\n  a: number;\n}\n"},
		{"null", "type X *XObject\n\ntype XObject struct {\n\tA int64 `json:\"a\"`\n}\n", "export type X = XObject | null;\n\nexport interface XObject {\n  a: number;\n}\n"},
	} {
		s := observe(t, schema.New(), `{"a":1}`, row.other)
		if got := s.Code("go", "x"); got != row.golang {
			t.Errorf("with %s: got\n%swant\n%s", row.other, got, row.golang)
		}
		if got := s.Code("ts", "x"); got != row.ts {
			t.Errorf("with %s: got\n%swant\n%s", row.other, got, row.ts)
		}
	}
}

func TestTypesOfNothing(t *testing.T) {
	if got := schema.New().Code("go", "x"); got != "type X any\n" {
		t.Errorf("got\n%s", got)
	}
}

// What encoding/json would read as another name, or as none, is written so that it does not or left out.
func TestNamesOfGoTags(t *testing.T) {
	const leftOut = "// left out: a member whose name cannot be written in a tag"
	for name, want := range map[string]string{
		"-": "X int64 `json:\"-,\"`", "a.b c": "ABC int64 `json:\"a.b c\"`", "naïve": "NaVe int64 `json:\"naïve\"`", "it's": leftOut, "a,b": leftOut, "👍": leftOut,
	} {
		if got, want := observe(t, schema.New(), `{"`+name+`":1}`).Code("go", "x"), "type X struct {\n\t"+want+"\n}\n"; got != want {
			t.Errorf("%s: got\n%swant\n%s", name, got, want)
		}
	}
	if got := observe(t, schema.New(), `{"-":1}`, `{}`).Code("go", "x"); !strings.Contains(got, "`json:\"-,omitempty\"`") {
		t.Errorf("got\n%s", got)
	}
}

func FuzzObserve(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,"x",null,{"b":true}]}`, `[[[[]]]]`, `{"2026-01-01":{"x@y":1}}`, `"http://%zz"`, "{\"\\u0000\":1}", `{"*":1,"~":2,"/":3,"` + "`" + `":4}`} {
		f.Add([]byte(s), []byte(`{"a":1}`))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		a, err := jsondoc.Parse(first, jsondoc.Wide())
		if err != nil {
			return
		}
		b, err := jsondoc.Parse(second, jsondoc.Wide())
		if err != nil {
			return
		}
		baseline := schema.New()
		baseline.Observe(a, "e1")
		if again := schema.Diff(baseline, observeValue(baseline.Skeleton(), a)); len(again) != 0 {
			t.Fatalf("the same body departs from itself: %v", again)
		}
		since := observeValue(baseline.Skeleton(), b)
		for _, d := range schema.Diff(baseline, since) {
			if d.Kind == "" || d.String() == "" || d.Count < 1 {
				t.Fatalf("drift %+v", d)
			}
		}
		next := schema.Accept(baseline, since)
		if left := schema.Diff(next, observeValue(next.Skeleton(), b)); len(left) != 0 {
			t.Fatalf("what was accepted departs: %v", left)
		}
		if next.Nodes > 2*schema.MaxNodes || !json.Valid(next.JSONSchema("x")) {
			t.Fatalf("%d places: %s", next.Nodes, next.JSONSchema("x"))
		}
		next.Fields()
		golang := "package p\n\n" + next.Code("go", "x")
		if formatted, err := format.Source([]byte(golang)); err != nil || string(formatted) != golang {
			t.Fatalf("%v\n%s\nis as gofmt has it\n%s", err, golang, formatted)
		}
		next.Code("ts", "x")
	})
}

func observeValue(s *schema.Schema, v jsondoc.Value) *schema.Schema {
	s.Observe(v, "e")
	return s
}
