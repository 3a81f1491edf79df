package capture_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func answers(status int, when string) hookglass.ResponseRule {
	return hookglass.ResponseRule{When: when, Response: hookglass.Response{Status: status, Body: "{{request.method}}"}}
}

func TestTheFirstRuleThatMeansAWebhookAnswersIt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.set(func(e *hookglass.Endpoint) {
			e.ResponseRules = []hookglass.ResponseRule{
				answers(204, "method:GET path:/health"), answers(418, "body./type:ping"), answers(202, "header.x-plan:gold"), answers(299, "query.page:7"),
				answers(451, "provider:github -event:push"), answers(409, "path:/health"),
			}
		})
		for _, c := range []struct {
			method, target, body string
			headers              []string
			want                 int
		}{
			{"GET", "/health", "", nil, 204},
			{"POST", "/health", "", nil, 409},
			{"POST", "/health", `{"type":"ping"}`, nil, 418}, // and not 409, which comes later
			{"PUT", "/", `{"type":"pong"}`, []string{"X-Plan", "gold"}, 202},
			{"PUT", "/x?page=7", "", nil, 299},
			{"POST", "/", "{}", []string{"X-GitHub-Event", "issues", "X-GitHub-Delivery", "1"}, 451},
			{"POST", "/", "{}", []string{"X-GitHub-Event", "push", "X-GitHub-Delivery", "1"}, 200},
			{"POST", "/", "{}", nil, 200},
		} {
			r := b.post(c.method, c.target, c.body, c.headers...)
			source := hookglass.SourceCustom
			if c.want == 200 {
				source = hookglass.SourceDefault
			}
			if r.Status != c.want || r.Source != source || c.want > 204 && string(r.Body) != c.method {
				t.Errorf("%s %s %s %v: %d %s %q, want %d", c.method, c.target, c.body, c.headers, r.Status, r.Source, r.Body, c.want)
			}
		}
		b.set(func(e *hookglass.Endpoint) { e.Response = &hookglass.Response{Status: 201} })
		if r := b.post("POST", "/", "{}"); r.Status != 201 {
			t.Errorf("what no rule means is answered %d", r.Status)
		}
		b.set(func(e *hookglass.Endpoint) { e.ResponseScript = "503,200" })
		if r := b.post("GET", "/health", ""); r.Status != 503 {
			t.Errorf("a script goes before a rule: %d", r.Status)
		}
		b.set(func(e *hookglass.Endpoint) { e.ResponseScript, e.ResponseRules = "", nil })
		if r := b.post("GET", "/health", ""); r.Status != 201 {
			t.Errorf("without rules: %d", r.Status)
		}
	})
}

// The example of the documentation.
func TestARuleRefusesWhatIsNotGenuine(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	b.set(func(e *hookglass.Endpoint) {
		e.ResponseRules = []hookglass.ResponseRule{answers(401, "signature:failed")}
	})
	name, secret := "github", "swordfish"
	if _, err := b.endpoints.CreateSignatureConfig(t.Context(), hookglass.System, string(b.ep.ID), endpoint.SignatureDraft{Provider: &name, Secret: &secret}, false); err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("{}"))
	for signature, want := range map[string]int{"sha256=" + hex.EncodeToString(mac.Sum(nil)): 200, "sha256=" + strings.Repeat("00", 32): 401} {
		if r := b.post("POST", "/", "{}", "X-GitHub-Event", "push", "X-GitHub-Delivery", "1", "X-Hub-Signature-256", signature); r.Status != want {
			t.Errorf("%s: answered %d, want %d", signature, r.Status, want)
		}
	}
}

// A large body would keep its sender waiting. A rule that does not look into it holds.
func TestARuleDoesNotLookIntoALargeBody(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	b.set(func(e *hookglass.Endpoint) {
		e.ResponseRules = []hookglass.ResponseRule{answers(418, "needle"), answers(202, "method:POST size:>1000000")}
	})
	for size, want := range map[int]int{1<<20 - 6: 418, 1<<20 - 5: 202} {
		if r := b.post("POST", "/", strings.Repeat("x", size)+"needle"); r.Status != want {
			t.Errorf("%d bytes: answered %d, want %d", size+6, r.Status, want)
		}
	}
}

// What a later version of the program stored and this one cannot read is passed over.
func TestARuleOfALaterVersionIsPassedOver(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	b.set(func(e *hookglass.Endpoint) {
		e.ResponseRules = []hookglass.ResponseRule{answers(418, `"not closed`), answers(202, "method:POST")}
	})
	if r := b.post("POST", "/", ""); r.Status != 202 {
		t.Errorf("answered %d", r.Status)
	}
}
