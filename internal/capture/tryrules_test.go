package capture_test

import (
	"slices"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// onRecord is the reply to the newest event, as it is stored.
func (b *bench) onRecord() (r *hookglass.Reply) {
	b.t.Helper()
	err := b.db.View(b.t.Context(), hookglass.System, func(v *store.View) error {
		page, err := v.Events(string(b.ep.ID), store.EventList{Limit: 1})
		if err != nil {
			return err
		}
		e, err := v.Event(string(b.ep.ID), string(page.Events[0].ID))
		if err == nil {
			r = e.Reply
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// A rule that answered is on record as it was then, whatever becomes of the rules.
func TestTheRuleThatAnsweredIsOnRecord(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		rules := func(e *hookglass.Endpoint) {
			e.ResponseRules = []hookglass.ResponseRule{answers(418, `"not closed`), answers(204, "method:GET"), answers(202, "körper  x")}
		}
		b.set(rules)
		recorded := func(want *hookglass.ReplyRule) {
			t.Helper()
			if got := b.onRecord().Rule; (got == nil) != (want == nil) || got != nil && *got != *want {
				t.Errorf("on record is %+v, want %+v", got, want)
			}
		}
		b.post("GET", "/", "")
		recorded(&hookglass.ReplyRule{Index: 1, When: "method:GET"})
		b.post("POST", "/", "körper x")
		b.set(func(e *hookglass.Endpoint) { e.ResponseRules = nil })
		recorded(&hookglass.ReplyRule{Index: 2, When: "körper  x"})
		b.post("GET", "/", "")
		recorded(nil)
		// Several that come together are stored in another way.
		b.set(rules)
		done := make(chan bool)
		for range 32 {
			go func() {
				defer func() { done <- true }()
				b.post("GET", "/", "")
			}()
		}
		for range 32 {
			<-done
		}
		recorded(&hookglass.ReplyRule{Index: 1, When: "method:GET"})
		b.set(func(e *hookglass.Endpoint) { e.ResponseScript = "503" })
		b.post("GET", "/", "") // whose status is the script's
		recorded(nil)
		b.set(func(e *hookglass.Endpoint) {
			e.ResponseScript, e.ProviderConfig.ResponseMode = "", hookglass.ResponseTunnel
		})
		answered := b.through(machine{&hookglass.TargetResponse{Status: 200}})
		r := answered.post("GET", "/", "")
		recorded(&hookglass.ReplyRule{Index: 1, When: "method:GET"}) // until the machine has answered
		answered.captures.Answer(t.Context(), r)
		recorded(nil)
	})
}

// What a try says is what the same webhooks are answered.
func TestRulesAreTriedOnPastEvents(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.post("GET", "/health", "")
		b.post("POST", "/", `{"type":"ping"}`)
		b.post("POST", "/", strings.Repeat("x", 1<<20)+"ping")
		b.post("POST", "/", `{"type":"url_verification","challenge":"c","token":"t"}`, "Content-Type", "application/json")
		tried := func(q string, limit int, rules *[]hookglass.ResponseRule, want ...string) {
			t.Helper()
			got, err := b.captures.TryRules(t.Context(), hookglass.System, string(b.ep.ID), q, limit, rules)
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, e := range got.Events {
				one := string(e.By)
				if e.Rule != nil {
					one += " " + e.Rule.When
				}
				if (e.Status == 0) != (e.By == capture.ByScript || e.By == capture.ByTunnel) {
					t.Errorf("%s has the status %d", one, e.Status)
				}
				all = append(all, one)
			}
			if !got.Complete || !slices.Equal(all, want) {
				t.Errorf("%q %v: %q, want %q", q, rules, all, want)
			}
		}
		none := []hookglass.ResponseRule{}
		tried("", 10, nil, "handshake", "default", "default", "default")
		rules := []hookglass.ResponseRule{answers(418, "ping"), answers(204, "method:GET path:/health"), answers(202, "method:POST -path:/x")}
		tried("", 10, &rules, "handshake", "rule method:POST -path:/x", "rule ping", "rule method:GET path:/health")
		tried("method:GET", 10, &rules, "rule method:GET path:/health")
		tried("", 2, &rules, "handshake", "rule method:POST -path:/x")
		b.set(func(e *hookglass.Endpoint) {
			e.ResponseRules, e.Response, e.Enabled = rules, &hookglass.Response{Status: 201}, false
			e.ProviderConfig.Handshake = new(false)
		})
		tried("path:/health", 10, nil, "rule method:GET path:/health")
		tried("path:/health", 10, &none, "response")
		tried("verification", 10, nil, "rule method:POST -path:/x")
		b.set(func(e *hookglass.Endpoint) { e.ResponseScript, e.Enabled = "503*2,200", true })
		tried("path:/health", 10, nil, "script")
		tried("path:/health", 10, nil, "script")
		if r := b.post("GET", "/health", ""); r.Status != 503 {
			t.Errorf("a try counted as an attempt: %d", r.Status)
		}
	})
}

// Events that nobody has stay so, and a mail is answered by no rule.
func TestRulesAreTriedOnWebhooksAlone(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	for limit, bad := range map[int]bool{0: true, 1: false, 100: false, 101: true} {
		_, err := b.captures.TryRules(t.Context(), hookglass.System, string(b.ep.ID), "", limit, nil)
		if hookglass.Is(err, hookglass.CodeValidationFailed) != bad {
			t.Errorf("%d: %v", limit, err)
		}
	}
	if _, err := b.captures.TryRules(t.Context(), hookglass.Principal{Account: 7}, string(b.ep.ID), "", 1, nil); !hookglass.Is(err, hookglass.CodeNotFound) {
		t.Errorf("a stranger: %v", err)
	}
	mailbox := hookglass.Endpoint{ID: hookglass.NewEndpointID(), Name: "Mail", Kind: hookglass.KindEmail, EmailLocalPart: "inbox", Enabled: true}
	if err := b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.CreateEndpoint(&mailbox, nil) }); err != nil {
		t.Fatal(err)
	}
	if _, err := b.captures.TryRules(t.Context(), hookglass.System, string(mailbox.ID), "", 1, nil); !hookglass.Is(err, hookglass.CodeValidationFailed) {
		t.Errorf("mail: %v", err)
	}
	if _, err := b.captures.SendTest(t.Context(), hookglass.System, string(mailbox.ID), "https://hooks.test", capture.TestRequest{Method: "POST"}); !hookglass.Is(err, hookglass.CodeValidationFailed) {
		t.Errorf("a test request to mail: %v", err)
	}
}
