package capture_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/endpoint"
	"hookglass/internal/outbound"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// elsewhere is the way out with the senders' hosts played by a server of this machine.
type elsewhere struct {
	*outbound.Client
	host string

	mu    sync.Mutex
	asked []string // addresses as they were to be called
}

func (c *elsewhere) Do(ctx context.Context, r outbound.Request) (*outbound.Response, error) {
	c.mu.Lock()
	c.asked = append(c.asked, r.Method+" "+r.URL+" "+string(r.Body))
	c.mu.Unlock()
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL, "https://"), "/")
	if path == "unreachable.pem" {
		return nil, errors.New("the connection was refused")
	}
	r.URL = "http://" + c.host + "/" + path
	return c.Client.Do(ctx, r)
}

func (c *elsewhere) calls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.asked...)
}

const snsTopic = "arn:aws:sns:eu-west-1:123456789012:orders"

func snsMessage(t *testing.T, key *rsa.PrivateKey, id, cert string) []byte {
	t.Helper()
	m := map[string]string{"Message": "hello", "MessageId": id, "Timestamp": "2026-02-16T12:00:00.000Z", "TopicArn": snsTopic, "Type": "Notification"}
	var text strings.Builder
	for _, name := range []string{"Message", "MessageId", "Timestamp", "TopicArn", "Type"} {
		text.WriteString(name + "\n" + m[name] + "\n")
	}
	sum := sha1.Sum([]byte(text.String()))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA1, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	m["SignatureVersion"], m["Signature"], m["SigningCertURL"] = "1", base64.StdEncoding.EncodeToString(signature), cert
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// A key that is not there keeps no sender waiting: the event is unchecked, the key is fetched by the task that came
// with it, and the event is judged again. The next one is judged at reception. A key that does not come leaves the
// event as it is.
func TestPublishedKeys(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		published := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		var sick sync.Map // path -> status
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if status, ok := sick.Load(r.URL.Path); ok {
				w.WriteHeader(status.(int))
				return
			}
			w.Write(published)
		}))
		defer server.Close()
		at, err := netip.ParseAddrPort(server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		rule, err := outbound.ParseRule(at.String())
		if err != nil {
			t.Fatal(err)
		}
		out := &elsewhere{Client: outbound.New(outbound.Config{Allow: []outbound.Rule{rule}}), host: at.String()}
		keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
		if err != nil {
			t.Fatal(err)
		}
		endpoints := endpoint.New(db, keys)
		captures := capture.New(db, capture.Config{Retention: time.Hour, Verifiers: endpoints, Keys: out}, slog.New(slog.DiscardHandler))
		ep, _, err := endpoints.CreateTemporary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		config, err := endpoints.CreateSignatureConfig(t.Context(), hookglass.System, string(ep.ID), endpoint.SignatureDraft{Provider: new("aws_sns"), Secret: new(snsTopic)}, false)
		if err != nil {
			t.Fatal(err)
		}
		age := time.Duration(0)
		arrive := func(id, cert string) hookglass.EventID {
			t.Helper()
			target, err := captures.Admit(t.Context(), string(ep.ID))
			if err != nil {
				t.Fatal(err)
			}
			_, err = captures.Capture(t.Context(), target, &capture.Arrival{Method: "POST", Path: "/", Target: "/hooks/" + string(ep.ID), Proto: "HTTP/1.1", Host: "h", Scheme: "https",
				Client: netip.MustParseAddr("203.0.113.7"), Body: snsMessage(t, key, id, cert), At: time.Now().Add(-age), Headers: hookglass.Headers{{Name: "x-amz-sns-message-type", Value: "Notification"}}})
			if err != nil {
				t.Fatal(err)
			}
			var newest hookglass.EventID
			err = db.View(t.Context(), hookglass.System, func(v *store.View) error {
				page, err := v.Events(string(ep.ID), store.EventList{Limit: 1})
				if err == nil {
					newest = page.Events[0].ID
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return newest
		}
		event := func(id hookglass.EventID) (ev *hookglass.Event) {
			t.Helper()
			err := db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
				ev, err = v.Event(string(ep.ID), string(id))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return ev
		}
		// task does what the worker of tasks does with those that are due.
		task := func() (done []error) {
			t.Helper()
			var tasks []store.Task
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
				tasks, err = tx.ClaimTasks(store.TaskSignature, ep.Num, 100, time.Minute)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range tasks {
				err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
					events, err := v.EventsBySeq([]int64{task.EventSeq}, 0) // as for a large one: without its payload
					task.Event = events[task.EventSeq]
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				done = append(done, captures.JudgeSignature(t.Context(), task))
			}
			return done
		}
		const cert = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem"

		first := arrive("m-1", cert)
		if ev := event(first); ev.SignatureStatus != hookglass.SignatureUnchecked || ev.SignatureReason != "key_unavailable" {
			t.Fatalf("at reception: %s %s", ev.SignatureStatus, ev.SignatureReason)
		}
		if calls := out.calls(); len(calls) != 0 {
			t.Fatalf("fetched while the sender waits: %q", calls)
		}
		if done := task(); len(done) != 1 || done[0] != nil {
			t.Fatalf("tasks: %v", done)
		}
		if ev := event(first); ev.SignatureStatus != hookglass.SignatureVerified || ev.SignatureReason != "" {
			t.Errorf("judged again: %s %s", ev.SignatureStatus, ev.SignatureReason)
		}
		if ev := event(arrive("m-2", cert)); ev.SignatureStatus != hookglass.SignatureVerified {
			t.Errorf("with the key at hand: %s %s", ev.SignatureStatus, ev.SignatureReason)
		}
		if done := task(); len(done) != 0 {
			t.Errorf("a task for an event that was judged: %v", done)
		}
		if calls := out.calls(); len(calls) != 1 || calls[0] != "GET "+cert+" " {
			t.Errorf("calls %q", calls)
		}

		// A host that is in trouble or out of reach is asked again later; one that does not have the key is not.
		sick.Store("/b.pem", 429)
		sick.Store("/c.pem", 404)
		with := func(id, file string) hookglass.EventID {
			return arrive(id, strings.Replace(cert, "SimpleNotificationService-1", file, 1))
		}
		b, c, d := with("m-3", "b"), with("m-4", "c"), with("m-6", "unreachable")
		done := task()
		if len(done) != 3 || !hookglass.Is(done[0], hookglass.CodeRateLimited) || done[1] != nil || !hookglass.Is(done[2], hookglass.CodeRateLimited) {
			t.Errorf("tasks: %v", done)
		}
		for _, id := range []hookglass.EventID{b, c, d} {
			if ev := event(id); ev.SignatureStatus != hookglass.SignatureUnchecked || ev.SignatureReason != "key_unavailable" {
				t.Errorf("%s: %s %s", id, ev.SignatureStatus, ev.SignatureReason)
			}
		}
		if sig, err := captures.Signature(t.Context(), hookglass.System, string(ep.ID), string(c)); err != nil || sig.Finding.Code != "key_unavailable" {
			t.Errorf("explained: %+v %v", sig, err)
		}
		before := len(out.calls())
		if r, err := captures.Rejudge(t.Context(), hookglass.System, string(ep.ID), config.ID); err != nil || r.Checked != 5 || r.Verified != 2 || r.Unchecked != 3 {
			t.Errorf("judged again by hand: %+v %v", r, err)
		}
		if n := len(out.calls()) - before; n != 0 {
			t.Errorf("%d calls for keys that just were not there", n)
		}
		if ev := event(arrive("m-5", "https://sns.eu-west-1.amazonaws.com.evil.test/a.pem")); ev.SignatureStatus != hookglass.SignatureFailed || ev.SignatureReason != "foreign_key" {
			t.Errorf("a certificate from elsewhere: %s %s", ev.SignatureStatus, ev.SignatureReason)
		}

		// Nobody waits for ever for a host in trouble.
		age = 11 * time.Minute
		with("m-7", "unreachable")
		if done := task(); len(done) != 1 || done[0] != nil {
			t.Errorf("tasks of an old event: %v", done)
		}

		// Senders choose the addresses, and must not have this service flood others.
		age = 0
		const many = 60
		for i := range many {
			with(fmt.Sprintf("n-%d", i), fmt.Sprintf("n-%d", i))
		}
		before, began := len(out.calls()), time.Now()
		put := 0
		for _, err := range task() {
			if hookglass.Is(err, hookglass.CodeRateLimited) {
				put++
			}
		}
		n, most := len(out.calls())-before, 20+5*(time.Since(began).Seconds()+1) // a burst, and so many a second
		if n < 10 || float64(n) > most || put != many-n {
			t.Errorf("%d of %d keys were fetched at once, %d are to be fetched later", n, many, put)
		}
	})
}
