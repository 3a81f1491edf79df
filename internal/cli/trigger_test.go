package cli_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestTriggerSignsASampleForALocalHandler(t *testing.T) {
	const secret = "s3cret"
	var asked string
	handler := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = r.RequestURI
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		if got := r.Header.Get("X-Hub-Signature-256"); got != "sha256="+hex.EncodeToString(mac.Sum(nil)) || r.Header.Get("X-GitHub-Event") != "push" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		io.WriteString(w, "seen")
	}))
	defer handler.Close()
	trigger := func(args ...string) (int, string) {
		t.Helper()
		r := run(t, "", append([]string{"trigger"}, args...)...)
		return r.code, r.out + r.err
	}
	if code, out := trigger("github.push", "--secret", secret, "--to", handler.URL); code != 0 || !strings.Contains(out, "[200]") || !strings.Contains(out, "seen") {
		t.Errorf("exit %d: %s", code, out)
	}
	if r := run(t, secret+"\n", "trigger", "github.push", "--secret", "-", "--to", handler.URL); r.code != 0 || !strings.Contains(r.out, "[200]") {
		t.Errorf("the secret from standard input: %+v", r)
	}
	asked = ""
	if code, out := trigger("github.push", "--secret", "-", "--to", handler.URL); code != 2 || asked != "" {
		t.Errorf("no secret on standard input: exit %d, asked for %q: %s", code, asked, out)
	}
	if code, out := trigger("github.push", "--secret", "other", "--to", handler.URL); code != 1 || !strings.Contains(out, "401") {
		t.Errorf("refused by the handler: exit %d: %s", code, out)
	}
	if code, out := trigger("github.push", "--secret", secret, "--to", handler.URL+"/é?q=ü"); code != 0 || asked != "/%C3%A9?q=%C3%BC" {
		t.Errorf("letters beyond ASCII: exit %d, asked for %s: %s", code, asked, out)
	}
	if code, out := trigger("github.nonsense", "--to", handler.URL); code != 1 || !strings.Contains(out, "sample") {
		t.Errorf("no such sample: exit %d: %s", code, out)
	}
	for _, wrong := range [][]string{{}, {"github.push"}, {"github.push", "-e", "x", "--to", handler.URL}, {"github.push", "--to", "nonsense"}} {
		if code, out := trigger(wrong...); code != 2 {
			t.Errorf("%q: exit %d: %s", wrong, code, out)
		}
	}
	if code, out := trigger("--list"); code != 0 || !strings.Contains(out, "stripe.") {
		t.Errorf("list: exit %d: %s", code, out)
	}
}

func TestAProxyIsToldWhereASampleGoes(t *testing.T) {
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked = r.RequestURI }))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := http.DefaultTransport.(*http.Transport)
	defer func(was func(*http.Request) (*url.URL, error)) { transport.Proxy = was }(transport.Proxy)
	transport.Proxy = http.ProxyURL(at)
	const to = "http://handler.example:3000/a%2Fb?q=1"
	if r := run(t, "", "trigger", "github.push", "--to", to); r.code != 0 || asked != to {
		t.Errorf("%+v: the proxy was asked for %q", r, asked)
	}
}

func TestTriggerSendsASampleToAnEndpoint(t *testing.T) {
	a := running(t)
	made := object(t, "", "endpoints", "create", "shop", "--server", a.server, "--token", a.token)
	id := member(t, made, "data", "id").(string)
	sent := object(t, "", "trigger", "stripe", "-e", id, "--server", a.server, "--token", a.token)
	event := member(t, sent, "data", "request_id").(string)
	got := object(t, "", "requests", "get", event, "-e", id, "--server", a.server, "--token", a.token)
	if member(t, got, "data", "detected_provider") != "stripe" {
		t.Errorf("got %v", got)
	}
	// With a secret it is signed here, whatever the endpoint's own config is: with another one it must fail.
	signed := object(t, "", "trigger", "github.push", "-e", id, "--secret", "not-of-the-endpoint", "--server", a.server, "--token", a.token)
	if member(t, signed, "status_code") != 200.0 || !strings.Contains(member(t, signed, "url").(string), "/hooks/"+id) {
		t.Errorf("sent %v", signed)
	}
	var received struct {
		RequestID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(member(t, signed, "body").(string)), &received); err != nil {
		t.Fatal(err)
	}
	got = object(t, "", "requests", "get", received.RequestID, "-e", id, "--server", a.server, "--token", a.token)
	if !strings.Contains(fmt.Sprint(got), "X-Hub-Signature-256:sha256=") {
		t.Errorf("it came as %v", got)
	}
}

func TestTriggerPutsValuesIntoTheSample(t *testing.T) {
	endpoint, hook := listening(t)
	t.Setenv("HOOKGLASS_ENDPOINT", endpoint)
	set := []string{"trigger", "stripe.invoice.paid", "--set", "/data/object/number=7", "--set", "/data/object/amount_paid=500", "--set", "/data/object/metadata={\"a;b\":1}", "--set", "/data/object/customer=a=b"}
	want := func(body string) {
		t.Helper()
		for _, part := range []string{`"number":"7"`, `"amount_paid":500`, `"metadata":{"a;b":1}`, `"customer":"a=b"`} {
			if !strings.Contains(body, part) {
				t.Errorf("no %s in %s", part, body)
			}
		}
	}
	id := member(t, object(t, "", set...), "data", "request_id").(string)
	want(member(t, object(t, "", "requests", "get", id), "data", "body").(string))
	if r := run(t, "", append(set, "--secret", "whsec_abc")...); r.code != 0 {
		t.Errorf("%+v", r)
	}
	want(member(t, object(t, "", "requests", "get", "latest"), "data", "body").(string))
	for _, wrong := range []string{"customer=cus_1", "/data/object/customer", "~2/=1"} {
		fails(t, 2, "JSON Pointer and a value", "trigger", "stripe.invoice.paid", "--set", wrong)
	}
	fails(t, 1, "no object or array that could hold /data/nothing/a", "trigger", "stripe.invoice.paid", "--set", "/data/nothing/a=1")
	fails(t, 1, "no object or array that could hold /data/nothing/a", "trigger", "stripe.invoice.paid", "--set", "/data/nothing/a=1", "--secret", "whsec_abc")
	fails(t, 1, "body is JSON", "trigger", "slack.slash-command", "--to", hook, "--set", "/a=1")
}

// Each is an event of its own to who receives it, wherever it is signed. None follows one that fails.
func TestTriggerSendsSeveralSamples(t *testing.T) {
	endpoint, _ := listening(t)
	t.Setenv("HOOKGLASS_ENDPOINT", endpoint)
	for _, flags := range [][]string{{}, {"--secret", "other"}} {
		if r := run(t, "", append([]string{"trigger", "github.push", "--count", "3"}, flags...)...); r.code != 0 {
			t.Errorf("%+v", r)
		}
	}
	deliveries := map[string]bool{}
	for _, e := range member(t, object(t, "", "requests", "list", "--limit", "100"), "data").([]any) {
		id := member(t, e, "id").(string)
		_, rest, _ := strings.Cut(fmt.Sprint(object(t, "", "requests", "get", id)), "X-GitHub-Delivery:")
		delivery, _, _ := strings.Cut(rest, " ")
		deliveries[delivery] = true
	}
	if len(deliveries) != 6 {
		t.Errorf("came as %v", deliveries)
	}
	var asked int
	handler := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 2 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer handler.Close()
	if r := run(t, "", "trigger", "github.push", "--to", handler.URL, "--count", "3"); r.code != 1 || asked != 2 {
		t.Errorf("%d were sent: %+v", asked, r)
	}
	fails(t, 2, "1 or more", "trigger", "github.push", "--count", "0")
}
