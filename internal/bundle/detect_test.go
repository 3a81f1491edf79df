package bundle_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"hookglass/internal/bundle"
)

// Other numbers and the punctuation of a sentence may stand beside a value.
func TestValuesAreFoundBesideOtherNumbersAndPunctuation(t *testing.T) {
	for text, c := range map[string]struct{ value, want string }{
		"qty 12 4111 1111 1111 1111 paid":           {"4111 1111 1111 1111", `^qty 12 4\d{3} \d{4} \d{4} \d{4} paid$`},
		"2026-11-20 4111111111111111":               {"4111111111111111", `^2026-11-20 4\d{15}$`},
		"4111111111111111 01 27":                    {"4111111111111111", `^4\d{15} 01 27$`},
		"BE68 5390 0754 7034 BIC KREDBEBB":          {"BE68 5390 0754 7034", `^BE\d\d \d{4} \d{4} \d{4} BIC KREDBEBB$`},
		"ES9121000418450200051332 EUR 10":           {"ES9121000418450200051332", `^ES\d{22} EUR 10$`},
		"REF1 NO12 3456 7890 BE68 5390 0754 7034":   {"BE68 5390 0754 7034", `^REF1 NO12 3456 7890 BE\d\d \d{4} \d{4} \d{4}$`},
		"BE68539007547034 NL91 ABNA 0417 1643 00":   {"NL91 ABNA 0417 1643 00", `^BE\d{14} NL\d\d [A-Z]{4} \d{4} \d{4} \d\d$`},
		"+491701234567 20240102":                    {"+491701234567", `^\+49\d{10} 20240102$`},
		"+4915112345678 2025-11-29T10:00":           {"+4915112345678", `^\+49\d{11} 2025-11-29T10:00$`},
		"+49 (0) 151 - 123 456 78, or 415-867-5309": {"123 456 78", `^\+49 \(\d\) \d{3} - \d{3} \d{3} \d\d, or \d{3}-\d{3}-\d{4}$`},
		"from 2a02:6b8::feed: refused":              {"2a02:6b8::feed", `^from 2001:db8:[0-9a-f:]+: refused$`},
		"mail ada@lovelace.example.org. Thanks":     {"ada@lovelace", `^mail [a-z]{3}@[a-z]+\.example\. Thanks$`},
		"mail ada@lovelace.example.org-":            {"ada@lovelace", `^mail [a-z]{3}@[a-z]+\.example-$`},
		"at http://81.2.69.142/x":                   {"81.2.69.142", `^at http://198\.1[89]\.\d+\.\d+/x$`},
		"from 81.2.69.142. Then":                    {"81.2.69.142", `^from 198\.1[89]\.\d+\.\d+\. Then$`},
		"AKIAIOSFODNN7EXAMPLE":                      {"AKIAIOSFODNN7EXAMPLE", `^\w+$`},
		"AIzaSyA1234567890abcdefghijklmnopqrstuv":   {"1234567890abc", `^\w+$`},
		"from 2a02:6b8::feed.":                      {"2a02:6b8::feed", `^from 2001:db8:[0-9a-f:]+\.$`},
		"to AZ21NABZ00000000137010001944 now":       {"NABZ", `^to AZ\d\d[A-Z]{4}\d{20} now$`},
		"to AE07 0331 2345 6789 0123 456 now":       {"0331 2345", `^to AE\d\d \d{4} \d{4} \d{4} \d{4} \d{3} now$`},
		"to zb.beeble@localhost now":                {"beeble", `^to [a-z]{2}\.[a-z]{6}@[a-z]{8}\.example now$`},
		"to pg://app:Sw0rdfish-9@db:5432/x":         {"Sw0rdfish", `^to pg://app:[A-Z]\w{8}-\d@db:5432/x$`},
		`"https:\/\/app:Sw0rdfish-9@db\/x"`:         {"Sw0rdfish", `^"https:\\/\\/app:[A-Z]\w{8}-\d@db\\/x"$`},
		"client:2a02:6b8::feed port 1":              {"2a02:6b8::feed", `^client:2001:db8:[0-9a-f:]+ port 1$`},
	} {
		body := string(makeBundle(t, bundle.Options{}, webhook("unknown", "/", "Content-Type: text/plain\n", text)).Events[0].Body)
		if strings.Contains(body, c.value) || !regexp.MustCompile(c.want).MatchString(body) {
			t.Errorf("%q became %q", text, body)
		}
	}
	for _, text := range []string{"4111 1111 1111 1112 is no card", "BE69 5390 0754 7034 is no account", "2021 2022 2023 2024", "Foo::Bar: x", "12:30:45: started", "Chrome/120.0.0.0 Safari/537.36",
		"lib@10.20.30, team@home, x@y..com"} {
		if body := string(makeBundle(t, bundle.Options{}, webhook("unknown", "/", "Content-Type: text/plain\n", text)).Events[0].Body); body != text {
			t.Errorf("%q became %q", text, body)
		}
	}
}

// The numbers of cards begin with what is their network's, and have its length.
func TestCardsOfEachNetworkAreFound(t *testing.T) {
	kinds := func(number string) []bundle.Replacement {
		return makeBundle(t, bundle.Options{}, webhook("unknown", "/", "Content-Type: text/plain\n", "paid by "+number)).Replaced
	}
	for number := range strings.FieldsSeq(`36718293045162 38718293045160 30718293045168 347182930451628 377182930451621 4718293045162738 5171829304516275 5571829304516271 2221718293045163
		2720718293045169 6011718293045168 6571829304516279 3571829304516276 6271829304516272 8171829304516279 4718293045162738490 6271829304516273840`) {
		if got := kinds(number); len(got) != 1 || got[0].Kind != bundle.Card {
			t.Errorf("%s: %v", number, got)
		}
	}
	for number := range strings.FieldsSeq(`5071829304516276 5671829304516270 2220718293045164 2721718293045168 39718293045169 367182930451623`) {
		if got := kinds(number); len(got) != 0 {
			t.Errorf("%s is of no network: %v", number, got)
		}
	}
}

// A value becomes the same substitute everywhere, whatever told what it is.
func TestAValueHasOneSubstituteWhateverToldWhatItIs(t *testing.T) {
	for range 20 { // with another key each time: a number that begins with 0 is none in JSON
		var v struct {
			Order, Who, First_name, City string
			Number                       json.Number
			Authorization, Token, Secret string
			Text                         string
		}
		body := makeBundle(t, bundle.Options{Pointers: []string{"/order", "/number", "/who"}, Secrets: []string{"kestrel-moor-9"}}, webhook("unknown", "/", jsonHead,
			`{"order":"ORD-99","number":123456,"who":"Ada Lovelace","first_name":"Ada","city":"Lovelace","authorization":"Bearer tok123456789abc","token":"tok123456789abc",
				"secret":"kestrel-moor-9","text":"ORD-99|123456|Lovelace|tok123456789abc|kestrel-moor-9"}`)).Events[0].Body
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		if want := v.Order + "|" + v.Number.String() + "|" + v.City + "|" + v.Token + "|" + v.Secret; v.Text != want || v.Who != v.First_name+" "+v.City || v.Authorization != "Bearer "+v.Token {
			t.Fatalf("a value has two substitutes: %s", body)
		}
	}
}
