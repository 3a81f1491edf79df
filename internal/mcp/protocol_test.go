package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/mcp"
	"hookglass/internal/store/storetest"
)

func TestWhoMayCallWhat(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ep := s.endpoint("Payments")
		id := s.receive(ep, "/", "application/json", `{}`)
		tokens := map[string]string{
			"read": s.newToken(s.owner, hookglass.ScopeRead), "write": s.newToken(s.owner, hookglass.ScopeWrite), "tunnel": s.newToken(s.owner, hookglass.ScopeTunnel),
		}
		other := s.newToken(s.register("eve@example.com"), hookglass.ScopeRead, hookglass.ScopeWrite)
		everything := args{"endpoint_id": ep, "request_id": id}
		for tool, want := range specified {
			for scope, token := range tokens {
				res, raw := s.try(token, tool, everything)
				a := parse(t, raw)
				if scope == "read" && want.scope == "read" {
					if res.StatusCode != 200 || a.Error != nil {
						t.Errorf("%s with read: %d %s", tool, res.StatusCode, raw)
					}
					continue
				}
				if res.StatusCode != 403 || res.Header.Get("WWW-Authenticate") != `Bearer error="insufficient_scope"` || a.Error == nil || a.Error.Code >= 0 || string(a.ID) != "7" {
					t.Errorf("%s with %s: %d %q %s, want 403", tool, scope, res.StatusCode, res.Header.Get("WWW-Authenticate"), raw)
				}
			}
			for name, token := range map[string]string{"none": "", "wrong": "hg_wrong"} {
				if res, raw := s.try(token, tool, everything); res.StatusCode != 401 || res.Header.Get("WWW-Authenticate") != "Bearer" {
					t.Errorf("%s with a token that is %s: %d %s", tool, name, res.StatusCode, raw)
				}
			}
		}
		// What belongs to another account does not exist.
		in := func(more args) args {
			more["endpoint_id"] = ep
			return more
		}
		for tool, arguments := range map[string]args{
			"get_endpoint": in(args{}), "delete_endpoint": in(args{}), "list_requests": in(args{}), "get_request": {"request_id": id}, "delete_request": {"request_id": id},
			"delete_all_requests": in(args{"confirm": true}), "wait_for_request": in(args{"timeout_seconds": 1}), "send_test_request": in(args{}),
			"replay_request": in(args{"request_id": id, "target_url": "tunnel"}), "list_replay_cases": in(args{}),
			"save_replay_case": in(args{"source_id": id, "name": "n", "target_url": "tunnel", "assertions": args{"status": args{"code": 200}}}),
			"get_replay_case":  in(args{"case_id": "rcase_x"}), "run_replay_case": in(args{"case_id": "rcase_x", "idempotency_key": "k"}), "get_replay_case_run": in(args{"run_id": "rrun_x"}),
			"list_actions": in(args{}), "create_action": in(args{"name": "n", "steps": []args{{"step_type": "ignore", "config": args{}}}}), "delete_action": in(args{"action_id": "act_x"}), "get_action_runs": in(args{}),
			"diagnose_request": {"request_id": id}, "compare_requests": {"request_id": id, "other_request_id": id}, "get_endpoint_metrics": in(args{}), "list_alerts": in(args{}),
			"create_alert": in(args{"name": "n", "kind": "missing_webhook", "config": args{"window_minutes": 5}}),
		} {
			if got := s.fails(other, tool, arguments); !strings.HasPrefix(got, "not_found") {
				t.Errorf("%s on what is another's: %s", tool, got)
			}
		}
		if _, got := s.call("get_request", args{"request_id": id}); at(got, "data", "id") != id {
			t.Errorf("the request is gone: %v", got)
		}
	})
}

func TestARevokedTokenIsRefused(t *testing.T) {
	storetest1(t, func(s *site) {
		token := s.newToken(s.owner, hookglass.ScopeRead)
		who, err := s.accounts.Authenticate(t.Context(), token)
		if err == nil {
			err = s.accounts.RevokeToken(t.Context(), hookglass.System, who.Token)
		}
		if err != nil {
			t.Fatal(err)
		}
		if res, raw := s.try(token, "list_endpoints", args{}); res.StatusCode != 401 {
			t.Errorf("%d %s", res.StatusCode, raw)
		}
	})
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	storetest1(t, func(s *site) {
		for _, c := range []struct {
			message      string
			status, code int
		}{
			{``, 400, -32700},
			{`{`, 400, -32700},
			{`{"jsonrpc":"2.0","id":1,"method":"ping"} x`, 400, -32700},
			{`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, 400, -32700},
			{"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", 400, -32700},
			{`null`, 400, -32600},
			{`"ping"`, 400, -32600},
			{`[]`, 400, -32600},
			{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, 400, -32600},
			{`{}`, 400, -32600},
			{`{"id":1,"method":"ping"}`, 400, -32600},
			{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, 400, -32600},
			{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, 400, -32600},
			{`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, 400, -32600},
			{`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, 400, -32600},
			{`{"jsonrpc":"2.0","id":-99999999999999999999,"method":"ping"}`, 400, -32600},
			{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, 400, -32600},
			{`{"jsonrpc":"2.0","id":1}`, 400, -32600},
			{`{"jsonrpc":"2.0","id":1,"method":5}`, 400, -32600},
			{`{"jsonrpc":"2.0","id":1,"Method":"ping"}`, 400, -32600},
			{`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, 400, -32600},
			{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_endpoints","name":"delete_endpoint"}}`, 400, -32700},
			{`{"jsonrpc":"2.0","id":1,"method":"nothing"}`, 200, -32601},
			{`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`, 200, -32601},
			{`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, 200, -32601},
			{`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`, 200, -32601},
			{`{"jsonrpc":"2.0","id":1,"method":"completion/complete"}`, 200, -32601},
			{`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}`, 200, -32601},
			{`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 200, -32602},
			{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing"}}`, 200, -32602},
			{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_endpoints","arguments":[]}}`, 200, -32602},
			{`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, 400, -32600},
			{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, 200, -32602},
			{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":5}}`, 200, -32602},
			{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":5}}}`, 200, -32602},
			{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":5}}`, 200, -32602},
			{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":5}}`, 200, -32602},
		} {
			res, raw := s.post(t.Context(), s.token, c.message, nil)
			if a := parse(t, raw); res.StatusCode != c.status || a.Error == nil || a.Error.Code != c.code || res.Header.Get("Content-Type") != "application/json" || strings.Contains(a.Error.Message, "Go struct") {
				t.Errorf("%s: %d %s, want %d and %d", c.message, res.StatusCode, raw, c.status, c.code)
			}
		}
		for name, c := range map[string]struct {
			status int
			change func(*http.Request)
		}{
			"text":             {415, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }},
			"gzip":             {415, func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }},
			"no coding":        {200, func(r *http.Request) { r.Header.Set("Content-Encoding", "identity") }},
			"a foreign origin": {403, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }},
			"no origin":        {403, func(r *http.Request) { r.Header.Set("Origin", "null") }},
			"two origins": {403, func(r *http.Request) {
				r.Header["Origin"] = []string{"https://hooks.example.com", "https://evil.example"}
			}},
			"a host of another":     {403, func(r *http.Request) { r.Host = "evil.example:80" }},
			"an unknown version":    {400, func(r *http.Request) { r.Header.Set("Mcp-Protocol-Version", "1999-01-01") }},
			"the public host":       {200, func(r *http.Request) { r.Host = "hooks.example.com" }},
			"the public origin":     {200, func(r *http.Request) { r.Header.Set("Origin", "https://hooks.example.com") }},
			"its own origin":        {200, func(r *http.Request) { r.Header.Set("Origin", "http://"+r.URL.Host) }},
			"localhost":             {200, func(r *http.Request) { r.Host = "localhost:1234" }},
			"any kind accepted":     {200, func(r *http.Request) { r.Header.Set("Accept", "*/*") }},
			"JSON alone":            {200, func(r *http.Request) { r.Header.Set("Accept", "application/json") }},
			"a charset":             {200, func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }},
			"a session of old":      {200, func(r *http.Request) { r.Header.Set("Mcp-Session-Id", "nobody's") }},
			"a version of 2025":     {200, func(r *http.Request) { r.Header.Set("Mcp-Protocol-Version", "2025-11-25") }},
			"modern without _meta":  {400, func(r *http.Request) { r.Header.Set("Mcp-Protocol-Version", "2026-07-28") }},
			"no path of its own":    {404, func(r *http.Request) { r.URL.Path = "/mcp/" }},
			"read, not sent":        {405, func(r *http.Request) { r.Method = "GET" }},
			"a session to be ended": {405, func(r *http.Request) { r.Method = "DELETE" }},
		} {
			res, raw := s.post(t.Context(), s.token, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, c.change)
			if res.StatusCode != c.status {
				t.Errorf("%s: %d %s, want %d", name, res.StatusCode, raw, c.status)
			}
			if res.StatusCode == 400 && (parse(t, raw).Error == nil || string(parse(t, raw).ID) != "1") {
				t.Errorf("%s: %s is no error of the protocol", name, raw)
			}
		}
		for _, m := range []string{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"delete_endpoint"}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`} {
			if res, raw := s.post(t.Context(), s.token, m, nil); res.StatusCode != 202 || len(raw) > 0 {
				t.Errorf("%s: %d %s, want 202", m, res.StatusCode, raw)
			}
		}
		if res, _ := s.post(t.Context(), s.token, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`+strings.Repeat("x", 2<<20)+`"}}`, nil); res.StatusCode != 413 {
			t.Errorf("a message that is too long: %d", res.StatusCode)
		}
	})
}

func TestBothErasOfTheProtocol(t *testing.T) {
	storetest1(t, func(s *site) {
		for asked, want := range map[string]string{"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26", "1999-01-01": "2025-11-25"} {
			res, raw := s.post(t.Context(), s.token, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+asked+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, nil)
			if res.StatusCode != 200 || !strings.Contains(string(raw), `"protocolVersion":"`+want+`"`) || !strings.Contains(string(raw), `"name":"hookglass"`) || res.Header.Get("Mcp-Session-Id") != "" {
				t.Errorf("initialize %s: %d %s", asked, res.StatusCode, raw)
			}
		}
		if res, raw := s.post(t.Context(), s.token, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, nil); res.StatusCode != 200 || !strings.Contains(string(raw), `"result":{}`) {
			t.Errorf("ping: %d %s", res.StatusCode, raw)
		}
		modern := func(method, params, name string) (*http.Response, []byte) {
			const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
			return s.post(t.Context(), s.token, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+meta+`}}`, func(r *http.Request) {
				r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
				r.Header.Set("Mcp-Method", method)
				if name != "" {
					r.Header.Set("Mcp-Name", name)
				}
			})
		}
		if res, raw := modern("server/discover", "", ""); res.StatusCode != 200 || !strings.Contains(string(raw), `"2026-07-28"`) || strings.Contains(string(raw), `"logging"`) {
			t.Errorf("server/discover: %d %s", res.StatusCode, raw)
		}
		if res, raw := modern("tools/list", "", ""); res.StatusCode != 200 || len(parse(t, raw).Result.Tools) != 25 || !strings.Contains(string(raw), `"cacheScope":"private"`) {
			t.Errorf("tools/list: %d %s", res.StatusCode, raw)
		}
		if res, raw := modern("tools/call", `"name":"list_endpoints","arguments":{},`, "list_endpoints"); res.StatusCode != 200 || parse(t, raw).Result.Structured == nil {
			t.Errorf("tools/call: %d %s", res.StatusCode, raw)
		}
		for _, c := range []struct {
			method, params, name string
			status, code         int
		}{
			{"ping", "", "", 404, -32601}, {"initialize", "", "", 404, -32601}, {"prompts/list", "", "", 404, -32601},
			{"tools/call", `"name":"nothing",`, "nothing", 400, -32602}, {"tools/call", `"name":"list_endpoints",`, "get_endpoint", 400, -32020},
		} {
			if res, raw := modern(c.method, c.params, c.name); res.StatusCode != c.status || parse(t, raw).Error == nil || parse(t, raw).Error.Code != c.code {
				t.Errorf("%s %s: %d %s, want %d and %d", c.method, c.params, res.StatusCode, raw, c.status, c.code)
			}
		}
	})
}

func TestWaiting(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ep := s.endpoint("Payments")
		before := s.receive(ep, "/", "application/json", `{"n":0}`)

		// What was there before counts only where after says so.
		_, got := s.call("wait_for_request", args{"endpoint_id": ep, "timeout_seconds": 1})
		if at(got, "timed_out") != true || at(got, "data") != nil || at(got, "after") == nil {
			t.Fatalf("nothing came: %v", got)
		}
		for _, after := range []string{"1h", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)} {
			if _, got := s.call("wait_for_request", args{"endpoint_id": ep, "after": after}); at(got, "data", "id") != before {
				t.Errorf("after %s: %v", after, got)
			}
		}
		// None is missed between two calls, and none comes twice.
		after := at(got, "after")
		var sent []string
		for i := range 3 {
			sent = append(sent, s.receive(ep, "/", "application/json", fmt.Sprintf(`{"n":%d}`, i+1)))
		}
		for _, id := range sent {
			_, got := s.call("wait_for_request", args{"endpoint_id": ep, "after": after})
			if at(got, "timed_out") != false || at(got, "data", "id") != id {
				t.Fatalf("after %v: %v, want %s", after, got, id)
			}
			after = at(got, "after")
		}
		if _, got := s.call("wait_for_request", args{"endpoint_id": ep, "after": sent[1]}); at(got, "data", "id") != sent[2] {
			t.Errorf("after a request's id: %v", got)
		}

		// Those who wait are woken, whom it concerns.
		var waiting sync.WaitGroup
		for range 20 {
			waiting.Go(func() {
				if _, got := s.call("wait_for_request", args{"endpoint_id": ep, "after": after, "provider": "github", "timeout_seconds": 30}); at(got, "data", "detected_provider") != "github" {
					t.Errorf("waiting for github: %v", got)
				}
			})
		}
		waiting.Go(func() {
			if _, got := s.call("wait_for_request", args{"endpoint_id": ep, "after": after, "event_type": "invoice.*", "timeout_seconds": 1}); at(got, "timed_out") != true {
				t.Errorf("waiting for an invoice: %v", got)
			}
		})
		s.call("send_test_request", args{"endpoint_id": ep, "provider": "stripe"})
		s.call("send_test_request", args{"endpoint_id": ep, "provider": "github"})
		waiting.Wait()
	})
}

func TestWaitingEndsWhenTheCallerLeavesAndWhenTheTokenIsRevoked(t *testing.T) {
	storetest1(t, func(s *site) {
		ep := s.endpoint("Payments")
		token := s.newToken(s.owner, hookglass.ScopeRead)
		who, err := s.accounts.Authenticate(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan string, 1)
		go func() { ended <- s.fails(token, "wait_for_request", args{"endpoint_id": ep, "timeout_seconds": 30}) }()
		s.until(func() bool { return mcp.Waiting(s.handler) > 0 })
		if err := s.accounts.RevokeToken(t.Context(), hookglass.System, who.Token); err != nil {
			t.Fatal(err)
		}
		if got := <-ended; !strings.Contains(got, "unauthorized") {
			t.Errorf("the token was revoked: %s", got)
		}

		ctx, leave := context.WithCancel(t.Context())
		go func() {
			req, _ := http.NewRequestWithContext(ctx, "POST", s.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait_for_request","arguments":{"endpoint_id":"`+ep+`","timeout_seconds":30}}}`))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+s.token)
			if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
				res.Body.Close()
			}
		}()
		s.until(func() bool { return mcp.Waiting(s.handler) > 0 })
		leave()
		s.until(func() bool { return mcp.Waiting(s.handler) == 0 })
	})
}

func TestWaitingEndsSoonAfterTheTokenHas(t *testing.T) {
	storetest1(t, func(s *site) {
		ep := s.endpoint("Payments")
		for life := 3 * time.Second; ; life *= 2 {
			token, _, err := s.accounts.CreateToken(t.Context(), hookglass.System, account.TokenRequest{
				User: s.owner.User.ID, Account: s.owner.Account.ID, Level: hookglass.LevelAccount, Scopes: []hookglass.Scope{hookglass.ScopeRead}, ExpiresIn: life,
			})
			if err != nil {
				t.Fatal(err)
			}
			elapsed := storetest.Watch(t)
			res, raw := s.try(token, "wait_for_request", args{"endpoint_id": ep, "timeout_seconds": 30})
			if res.StatusCode == http.StatusUnauthorized && life < 12*time.Second {
				continue // it had expired before there was anybody to wait
			}
			if a := parse(t, raw); res.StatusCode != http.StatusOK || !a.Result.IsError || !strings.Contains(a.Result.Content[0].Text, "unauthorized") {
				t.Errorf("the token expired: %d %s", res.StatusCode, raw)
			}
			if took := elapsed(); took > life+9*time.Second {
				t.Errorf("waiting ended after %v, want 5 s behind the token of %v at most", took, life)
			}
			return
		}
	})
}

// until looks until something holds, for two minutes at most.
func (s *site) until(holds func() bool) {
	s.t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	deadline := time.After(2 * time.Minute)
	for !holds() {
		select {
		case <-look.C:
		case <-deadline:
			s.t.Fatal("it did not come to hold")
		}
	}
}
