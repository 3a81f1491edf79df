package delivery_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/delivery"
	"hookglass/internal/outbound"
	"hookglass/internal/provider"
)

// What is told of a request that has no answer is what left, or would have, with the fields that are computed.
func TestTheHeadersOfARequestWithoutAnAnswerAreThoseThatWereSent(t *testing.T) {
	rule, err := outbound.ParseRule("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	client := outbound.New(outbound.Config{Allow: []outbound.Rule{rule}})
	broken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer broken.Close()
	for address, may := range map[string]bool{broken.Listener.Addr().String(): true, "127.0.0.1:1": false} {
		out := delivery.Send(t.Context(), client, "", 10*time.Second, delivery.Request{SentRequest: hookglass.SentRequest{
			Method: "POST", URL: "http://" + address + "/", Headers: hookglass.Headers{{Name: "X-A", Value: "1"}}, Body: []byte("abc"),
		}})
		want := "Host: " + address + "\r\nX-A: 1\r\nContent-Length: 3\r\nConnection: close\r\n"
		if got := string(out.Headers.AppendWire(nil)); out.Failure == nil || out.MaySent != may || got != want {
			t.Errorf("%v, may be sent %v: %q, want %q", out.Failure, out.MaySent, got, want)
		}
	}
}

// failing is a client whose requests fail.
type failing struct {
	delivery.Client
	err error
}

func (f failing) Do(context.Context, outbound.Request) (*outbound.Response, error) { return nil, f.err }

// Only what certainly did not leave may be sent again, so what is not known counts as sent.
func TestWhatMayHaveBeenSentIsNotWithheld(t *testing.T) {
	for _, c := range []struct {
		err           error
		may, withheld bool
	}{
		{&outbound.Failure{Code: outbound.CodeCanceled}, false, true},
		{&outbound.Failure{Code: outbound.CodeBusy}, false, true},
		{&outbound.Failure{Code: outbound.CodeCanceled, Sent: outbound.MaybeSent}, true, false},
		{&outbound.Failure{Code: outbound.CodeConnectionRefused}, false, false},
		{errors.New("an error of another kind"), true, false},
	} {
		out := delivery.Send(t.Context(), failing{err: c.err}, "", time.Second, delivery.Request{})
		if out.Failure == nil || out.MaySent != c.may || out.Withheld() != c.withheld {
			t.Errorf("%v: may be sent %v, withheld %v", c.err, out.MaySent, out.Withheld())
		}
	}
}

func TestTheBeginningOfATextIsAText(t *testing.T) {
	for _, c := range []struct {
		body string
		n    int
		want string
	}{
		{"", 0, ""}, {"abc", 2, "ab"}, {"abc", 3, "abc"}, {"é", 2, "é"}, {"é", 1, ""}, {"a€", 4, "a€"}, {"a€", 3, "a"}, {"a€", 2, "a"}, {"a€", 1, "a"},
		{"a\U0001f600", 4, "a"}, {"a\U0001f600", 5, "a\U0001f600"},
		{"\xffa\xe2\x82", 4, "\xffa\xe2\x82"}, {"a\x82\x82\x82\x82", 5, "a\x82\x82\x82\x82"}, {"a\xff", 2, "a\xff"}, // no text
	} {
		if got := delivery.Beginning([]byte(c.body), c.n); string(got) != c.want {
			t.Errorf("%d of %q: %q, want %q", c.n, c.body, got, c.want)
		}
	}
}

func TestASecretIsFoundInEveryFormOfJSON(t *testing.T) {
	secrets := delivery.Secrets([]provider.Config{{Secrets: []string{`p"<&>é😀\\`}}}, nil)
	for _, text := range []string{`p"<&>é😀\\`, `{"s":"p\"<&>é😀\\\\"}`, `{"s":"p\"\u003c\u0026\u003eé😀\\\\"}`, `{"s":"p\"<&>\u00e9\ud83d\ude00\\\\"}`} {
		if got := secrets.Secrets(text); strings.Contains(got, "p") || !strings.Contains(got, "[redacted]") {
			t.Errorf("%s: %s", text, got)
		}
	}
}
