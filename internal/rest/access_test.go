package rest_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/rest"
)

// access is who may call an operation, as the specification has it ("Authentication"; spec: decisions, sections 5 and
// 13).
type access struct {
	public bool
	scope  hookglass.Scope // "": any valid token
	key    bool            // open to a temporary endpoint's key, at its endpoint
	none   bool            // a webhook has nothing of the kind: who may call is told that it is not found
	told   hookglass.Code  // likewise, and this is the code that is told
	body   string          // one that is valid, where the operation takes one
	query  string          // parameters that it needs
	alone  string          // public: the code that it answers, because the body must hold a secret that serves once
}

// accessFor names every operation of the description. One that it does not name fails the test: say here who may call
// it.
var accessFor = map[string]access{
	"verify-token":               {},
	"exchange-code":              {public: true, body: `{"code":"{code}"}`},
	"list-endpoints":             {scope: hookglass.ScopeRead},
	"create-endpoint":            {scope: hookglass.ScopeWrite, body: `{"endpoint":{"name":"New"}}`},
	"get-endpoint":               {scope: hookglass.ScopeRead, key: true},
	"update-endpoint":            {scope: hookglass.ScopeWrite, body: `{"endpoint":{"name":"New"}}`},
	"delete-endpoint":            {scope: hookglass.ScopeWrite},
	"try-response-rules":         {scope: hookglass.ScopeRead, body: `{}`},
	"create-temporary-endpoint":  {public: true},
	"declare":                    {scope: hookglass.ScopeWrite, body: `{"declaration":{"endpoints":[]}}`},
	"list-requests":              {scope: hookglass.ScopeRead, key: true},
	"get-request":                {scope: hookglass.ScopeRead, key: true},
	"get-request-body":           {scope: hookglass.ScopeRead, key: true},
	"get-request-raw":            {scope: hookglass.ScopeRead, key: true},
	"get-request-attachment":     {scope: hookglass.ScopeRead, key: true, none: true},
	"get-request-part":           {scope: hookglass.ScopeRead, key: true, none: true},
	"create-share-link":          {scope: hookglass.ScopeWrite, body: `{"share_link":{"expires_in":60}}`},
	"list-request-share-links":   {scope: hookglass.ScopeRead},
	"list-share-links":           {scope: hookglass.ScopeRead},
	"delete-share-link":          {scope: hookglass.ScopeWrite},
	"create-share-bundle":        {scope: hookglass.ScopeRead, body: `{"request_ids":["{event}"]}`},
	"preview-share-bundle":       {scope: hookglass.ScopeRead, query: "?request_ids[]={event}"},
	"export-requests":            {scope: hookglass.ScopeRead, key: true},
	"stream-requests":            {scope: hookglass.ScopeRead, key: true},
	"delete-request":             {scope: hookglass.ScopeWrite, key: true},
	"delete-requests":            {scope: hookglass.ScopeWrite, key: true},
	"tag-request":                {scope: hookglass.ScopeWrite},
	"untag-request":              {scope: hookglass.ScopeWrite},
	"note-request":               {scope: hookglass.ScopeWrite, body: `{"note":"seen"}`},
	"ignore-request":             {scope: hookglass.ScopeWrite, body: `{"reason":"test"}`},
	"unignore-request":           {scope: hookglass.ScopeWrite},
	"list-events":                {scope: hookglass.ScopeRead},
	"list-signature-configs":     {scope: hookglass.ScopeRead},
	"create-signature-config":    {scope: hookglass.ScopeWrite, body: `{"signature_config":{"provider":"stripe","secret":"whsec_x"}}`},
	"get-signature-config":       {scope: hookglass.ScopeRead},
	"update-signature-config":    {scope: hookglass.ScopeWrite, body: `{"signature_config":{"enabled":false}}`},
	"delete-signature-config":    {scope: hookglass.ScopeWrite},
	"verify-signature-config":    {scope: hookglass.ScopeWrite},
	"get-request-signature":      {scope: hookglass.ScopeRead, key: true},
	"diagnose-request":           {scope: hookglass.ScopeRead},
	"compare-requests":           {scope: hookglass.ScopeRead, query: "?other_request_id={event}"},
	"list-forwarding-targets":    {scope: hookglass.ScopeRead},
	"create-forwarding-target":   {scope: hookglass.ScopeWrite, body: `{"forwarding_target":{"name":"New","url":"https://new.example.com"}}`},
	"get-forwarding-target":      {scope: hookglass.ScopeRead},
	"update-forwarding-target":   {scope: hookglass.ScopeWrite, body: `{"forwarding_target":{"name":"New"}}`},
	"delete-forwarding-target":   {scope: hookglass.ScopeWrite},
	"list-forwarding-deliveries": {scope: hookglass.ScopeRead},
	"get-forwarding-delivery":    {scope: hookglass.ScopeRead},

	"resend-forwarding-delivery": {scope: hookglass.ScopeWrite},
	"resend-failed-deliveries":   {scope: hookglass.ScopeWrite},
	"send-test-request":          {scope: hookglass.ScopeWrite, body: `{}`},
	"replay-request":             {scope: hookglass.ScopeWrite, body: `{"target_url":"https://app.example.com/"}`},
	"release-mail":               {scope: hookglass.ScopeWrite, body: `{"to":["dev@example.com"]}`, told: hookglass.CodeNotAMail},
	"list-releases":              {scope: hookglass.ScopeRead},
	"list-replays":               {scope: hookglass.ScopeRead},
	"create-replay-batch":        {scope: hookglass.ScopeWrite, body: `{"target_url":"https://app.example.com/"}`},
	"list-replay-batches":        {scope: hookglass.ScopeRead},
	"get-replay-batch":           {scope: hookglass.ScopeRead},
	"list-replay-batch-results":  {scope: hookglass.ScopeRead},
	"pause-replay-batch":         {scope: hookglass.ScopeWrite},
	"resume-replay-batch":        {scope: hookglass.ScopeWrite},
	"cancel-replay-batch":        {scope: hookglass.ScopeWrite},
	"list-replay-cases":          {scope: hookglass.ScopeRead},
	"create-replay-case":         {scope: hookglass.ScopeWrite, body: `{"replay_case":{"source_id":"{event}","name":"New","target_url":"https://app.example.com/","assertions":{"status":{"class":"2xx"}}}}`},
	"get-replay-case":            {scope: hookglass.ScopeRead},
	"update-replay-case":         {scope: hookglass.ScopeWrite, body: `{"replay_case":{"name":"Newer","lock_version":1}}`},
	"delete-replay-case":         {scope: hookglass.ScopeWrite},
	"run-replay-case":            {scope: hookglass.ScopeWrite},
	"list-replay-case-runs":      {scope: hookglass.ScopeRead},
	"get-replay-case-run":        {scope: hookglass.ScopeRead},

	"list-tags":                   {scope: hookglass.ScopeRead},
	"create-tag":                  {scope: hookglass.ScopeWrite, body: `{"tag":{"name":"{random}"}}`},
	"get-tag":                     {scope: hookglass.ScopeRead},
	"update-tag":                  {scope: hookglass.ScopeWrite, body: `{"tag":{"color":"#ffffff"}}`},
	"delete-tag":                  {scope: hookglass.ScopeWrite},
	"list-notification-channels":  {scope: hookglass.ScopeRead},
	"create-notification-channel": {scope: hookglass.ScopeWrite, body: `{"notification_channel":{"name":"{random}","kind":"slack","config":{"webhook_url":"https://hooks.slack.com/x"}}}`},
	"get-notification-channel":    {scope: hookglass.ScopeRead},
	"update-notification-channel": {scope: hookglass.ScopeWrite, body: `{"notification_channel":{"enabled":false}}`},
	"delete-notification-channel": {scope: hookglass.ScopeWrite},
	"test-notification-channel":   {scope: hookglass.ScopeWrite},
	"list-alerts":                 {scope: hookglass.ScopeRead},
	"create-alert":                {scope: hookglass.ScopeWrite, body: `{"alert":{"name":"New","kind":"missing_webhook","config":{"window_minutes":5}}}`},
	"get-alert":                   {scope: hookglass.ScopeRead},
	"update-alert":                {scope: hookglass.ScopeWrite, body: `{"alert":{"name":"Newer"}}`},
	"delete-alert":                {scope: hookglass.ScopeWrite},
	"list-alert-incidents":        {scope: hookglass.ScopeRead},
	"get-endpoint-metrics":        {scope: hookglass.ScopeRead},
	"get-retry-profile":           {scope: hookglass.ScopeRead},
	"list-schemas":                {scope: hookglass.ScopeRead},
	"get-schema":                  {scope: hookglass.ScopeRead},
	"get-schema-types":            {scope: hookglass.ScopeRead},
	"get-schema-drift":            {scope: hookglass.ScopeRead},
	"accept-schema":               {scope: hookglass.ScopeWrite},
	"delete-schema":               {scope: hookglass.ScopeWrite, none: true},
	"get-endpoint-ledger":         {scope: hookglass.ScopeRead},
	"list-flows":                  {scope: hookglass.ScopeRead},
	"create-flow":                 {scope: hookglass.ScopeWrite, body: `{"flow":{"timeout_seconds":1,"steps":[{"endpoint_id":"{endpoint}"}]}}`},
	"get-flow":                    {scope: hookglass.ScopeRead},
	"wait-for-flow":               {scope: hookglass.ScopeRead, query: "?timeout=1"},
	"delete-flow":                 {scope: hookglass.ScopeWrite},

	"list-actions":              {scope: hookglass.ScopeRead},
	"create-action":             {scope: hookglass.ScopeWrite, body: `{"endpoint_action":{"name":"New"}}`},
	"get-action":                {scope: hookglass.ScopeRead},
	"update-action":             {scope: hookglass.ScopeWrite, body: `{"endpoint_action":{"name":"Newer"}}`},
	"delete-action":             {scope: hookglass.ScopeWrite},
	"preview-action":            {scope: hookglass.ScopeRead, body: `{"preview":{"ingress_event_id":"{event}"}}`},
	"backtest-action":           {scope: hookglass.ScopeRead, body: `{}`},
	"list-action-runs":          {scope: hookglass.ScopeRead},
	"rerun-action":              {scope: hookglass.ScopeWrite, body: `{"run":{"event_id":"{event}"}}`},
	"list-endpoint-action-runs": {scope: hookglass.ScopeRead},
	"get-action-run":            {scope: hookglass.ScopeRead},
	"list-action-secrets":       {scope: hookglass.ScopeRead},
	"create-action-secret":      {scope: hookglass.ScopeWrite, body: `{"action_secret":{"name":"S{random}","secret_value":"v"}}`},
	"get-action-secret":         {scope: hookglass.ScopeRead},
	"update-action-secret":      {scope: hookglass.ScopeWrite, body: `{"action_secret":{"description":"d"}}`},
	"delete-action-secret":      {scope: hookglass.ScopeWrite},

	"tunnel-connect":                    {scope: hookglass.ScopeTunnel, body: `{"endpoint_id":"{endpoint}"}`},
	"tunnel-connect-anonymous":          {public: true, body: `{"tunnel_key":"{key}"}`},
	"report-delivery":                   {scope: hookglass.ScopeTunnel, body: `{"endpoint_id":"{endpoint}","webhook_request_id":"{event}","target_url":"http://localhost:3000","status_code":200}`},
	"report-delivery-anonymous":         {public: true, body: `{"tunnel_key":"{key}","webhook_request_id":"{key_event}","target_url":"http://localhost:3000","status_code":200}`},
	"list-tunnel-gaps":                  {scope: hookglass.ScopeTunnel, key: true},
	"list-undelivered":                  {scope: hookglass.ScopeTunnel, key: true},
	"list-missed":                       {scope: hookglass.ScopeTunnel, query: "?since=1h"},
	"list-missed-anonymous":             {public: true, query: "?since=1h&tunnel_key={key}"},
	"recover-gap":                       {scope: hookglass.ScopeTunnel, key: true, body: `{"outcome":"completed"}`},
	"report-tunnel-replay":              {public: true, alone: "unauthorized", body: `{"command_id":"tcmd_x","result_token":"trt_x","status_code":200}`},
	"create-signature-config-anonymous": {public: true, body: `{"tunnel_key":"{key}","signature_config":{"provider":"stripe","secret":"whsec_x"}}`},
	"claim-endpoint":                    {scope: hookglass.ScopeWrite, body: `{"tunnel_key":"{key}"}`},
}

// route is one operation of the description.
type route struct {
	id, method, path string
	access
}

// routes reads the operations from the description itself.
func (s *site) routes() (all []route) {
	s.t.Helper()
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	s.wantAs("", 200, "GET", "/openapi.json", "", &doc)
	for path, item := range doc.Paths {
		for method, raw := range item {
			var op struct{ OperationID string }
			if err := json.Unmarshal(raw, &op); err != nil {
				s.t.Fatalf("%s %s: %v", method, path, err)
			}
			// An alias is called as its operation, with a number behind it.
			base := strings.TrimRight(op.OperationID, "-23456789")
			known, ok := accessFor[base]
			if !ok {
				s.t.Errorf("%s %s (%s) is an operation that this test does not know: say in accessFor who may call it", method, path, op.OperationID)
				continue
			}
			all = append(all, route{op.OperationID, strings.ToUpper(method), path, known})
		}
	}
	if len(all) == 0 {
		s.t.Fatal("the description has no operation")
	}
	return all
}

// target is what a route is called on: fresh things, so that a call that works cannot spoil the next.
type target struct {
	endpoint, event, config, forward string
	replayThings
	tunnelThings
	alertThings
	actionThings
}

func (r route) at(g target) string {
	return strings.NewReplacer(
		"/requests/{id}", "/requests/"+g.event, "{endpoint_id}", g.endpoint, "{id}", g.endpoint, "{config_id}", g.config, "{target_id}", g.forward,
		"{delivery_id}", "dlv_"+strings.TrimPrefix(g.event, "req_")+"_"+g.forward, "{tag}", "mark", "{event_type}", "-",
		"{case_id}", g.caseID, "{run_id}", g.runID, "{batch_id}", g.batchID, "{share_id}", g.shareID, "{gap_id}", g.gapID,
		"{tag_id}", g.tag, "{channel_id}", g.channel, "{alert_id}", g.alert,
		"{action_id}", g.action, "{action_run_id}", g.run, "{secret_id}", g.secret, "{workspace_id}", g.workspace,
	).Replace(r.path)
}

// try calls the route and returns the status and the code of an error. A stream is left as soon as it answers.
func (s *site) try(token string, r route, g target) (int, string) {
	s.t.Helper()
	fill := strings.NewReplacer("{event}", g.event, "{endpoint}", g.endpoint, "{key}", g.key, "{key_event}", g.keyEvent, "{random}", rand.Text())
	body := fill.Replace(r.body)
	if strings.Contains(body, "{code}") {
		body = strings.ReplaceAll(body, "{code}", s.code())
	}
	path := r.at(g)
	if start, rest, wanted := strings.Cut(path, "{flow_id}"); wanted {
		path = start + s.newFlow(g.endpoint) + rest
	}
	req, err := http.NewRequestWithContext(s.t.Context(), r.method, s.url+path+fill.Replace(r.query), strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.id == "run-replay-case" {
		req.Header.Set("Idempotency-Key", rand.Text())
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	var refused api.Error
	if res.StatusCode >= 300 {
		if err := json.NewDecoder(res.Body).Decode(&refused); err != nil {
			s.t.Errorf("%s %s answers %d with no JSON: %v", r.method, r.at(g), res.StatusCode, err)
		}
		if res.StatusCode == 401 && !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Bearer") {
			s.t.Errorf("%s answers 401 without WWW-Authenticate", r.id)
		}
	}
	return res.StatusCode, refused.Error
}

// Every route × who asks.
func TestEveryRouteLetsInWhoMayCallAndNobodyElse(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		workspace, err := s.accounts.CreateWorkspace(t.Context(), hookglass.System, s.owner.Account.ID, "Second")
		if err != nil {
			t.Fatal(err)
		}
		stranger := s.register("eve@example.com")
		every := []hookglass.Scope{hookglass.ScopeRead, hookglass.ScopeWrite, hookglass.ScopeTunnel}
		scoped := map[hookglass.Scope]string{}
		for _, scope := range every {
			scoped[scope] = s.newToken(s.owner, hookglass.LevelAccount, 0, scope)
		}
		home := s.newToken(s.owner, hookglass.LevelWorkspace, s.owner.Workspace.ID, every...)
		sibling := s.newToken(s.owner, hookglass.LevelWorkspace, workspace.ID, every...)
		foreign := s.newToken(stranger, hookglass.LevelAccount, 0, every...)
		revoked := s.revokedToken()
		expired := s.expiredToken()

		mine := func(names func(...string) bool) target { // with what is named
			e := s.newEndpoint(`,"schema_tracking":true`)
			forward := s.newForwardingTarget(e.ID) // before the event, which goes there
			event := s.arrive(e.ID, nil)
			made := target{endpoint: e.ID, event: event, config: s.newSignatureConfig(e.ID), forward: forward}
			if names("{case_id}", "{run_id}", "{batch_id}", "{share_id}") {
				made.replayThings = s.newReplayThings(e.ID, event)
			}
			if names("{gap_id}", "{key}", "{key_event}") {
				made.tunnelThings = s.newTunnelThings(e.ID)
			}
			if names("{tag_id}", "{channel_id}", "{alert_id}") {
				made.alertThings = s.newAlertThings(e.ID)
			}
			if names("{action_id}", "{action_run_id}", "{secret_id}", "{workspace_id}") {
				made.actionThings = s.newActionThings(e.ID, event)
			}
			return made
		}
		all := func(...string) bool { return true }
		temporary := func() (target, string) {
			// Made past the edge: its rate limit would end the test.
			e, key, err := s.endpoints.CreateTemporary(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			event := s.arrive(string(e.ID), nil)
			return target{string(e.ID), event, s.newSignatureConfig(string(e.ID)), s.newForwardingTarget(string(e.ID)), s.newReplayThings(string(e.ID), event), s.newTunnelThings(string(e.ID)), alertThings{"1", "chan_x", "alrt_x"}, actionThings{"act_x", "arun_x", "asec_x", strconv.FormatInt(s.owner.Workspace.ID, 10)}}, key
		}
		refusing, otherKey := temporary()
		fixed := mine(all)    // for calls that must fail
		readable := mine(all) // for calls that change nothing

		for _, r := range s.routes() {
			nested := strings.Contains(r.path, "{")
			expect := func(who, token string, g target, status int, code string) {
				t.Helper()
				if got, gotCode := s.try(token, r, g); got != status || gotCode != code {
					t.Errorf("%s %s (%s), %s: %d %s, want %d %s", r.method, r.path, r.id, who, got, gotCode, status, code)
				}
			}
			allowed := func(who, token string, g target) {
				t.Helper()
				got, code := s.try(token, r, g)
				if r.none && got == 404 && code == "not_found" || r.told != "" && got == 422 && code == string(r.told) {
					return
				}
				if got < 200 || got > 299 {
					t.Errorf("%s %s (%s), %s: %d %s, want it to be let in", r.method, r.path, r.id, who, got, code)
				}
			}
			fresh := func() target {
				return mine(func(some ...string) bool {
					return slices.ContainsFunc(some, func(name string) bool { return strings.Contains(r.path+r.query+r.body, name) })
				})
			}
			if r.method == http.MethodGet {
				fresh = func() target { return readable }
			}
			if r.public {
				for _, token := range []string{"", "junk"} {
					if r.alone != "" {
						expect("token "+token, token, fixed, 401, r.alone)
					} else {
						allowed("token "+token, token, fresh())
					}
				}
				continue
			}
			expect("no token", "", fixed, 401, "unauthorized")
			expect("junk", "hg_junk", fixed, 401, "unauthorized")
			expect("a key that is none", "tk_00000000000000000000000000", fixed, 401, "unauthorized")
			expect("the beginning of a token", s.token[:len(s.token)-1], fixed, 401, "unauthorized")
			expect("revoked", revoked, fixed, 401, "unauthorized")
			expect("expired", expired, fixed, 401, "unauthorized")
			for _, scope := range every {
				if r.scope == "" || scope == r.scope {
					allowed("scope "+string(scope), scoped[scope], fresh())
				} else {
					expect("scope "+string(scope), scoped[scope], fixed, 403, "insufficient_scope")
				}
			}
			allowed("its workspace's token", home, fresh())
			if nested {
				expect("another account", foreign, fixed, 404, "not_found")
				expect("a sibling workspace", sibling, fixed, 404, "not_found")
				if strings.Contains(r.path, "/requests/{id}") {
					// Their own endpoint with an event of ours.
					theirs := s.endpointOf(sibling)
					expect("their endpoint, my event", sibling, target{theirs, fixed.event, fixed.config, fixed.forward, fixed.replayThings, fixed.tunnelThings, fixed.alertThings, fixed.actionThings}, 404, "not_found")
				}
				if r.key {
					temp, key := temporary()
					expect("another endpoint's key", otherKey, temp, 404, "not_found")
					expect("a key, at an account's endpoint", key, fixed, 404, "not_found")
					expect("an account, at a temporary endpoint", s.token, temp, 404, "not_found")
					allowed("its own key", key, temp)
				} else {
					expect("its own key", otherKey, refusing, 403, "forbidden")
				}
			} else if r.key {
				allowed("a temporary endpoint's key", otherKey, fixed)
			} else {
				expect("a temporary endpoint's key", otherKey, fixed, 403, "forbidden")
			}
		}
		s.want(200, "GET", "/endpoints/"+fixed.endpoint+"/requests/"+fixed.event, "", nil) // what was refused changed nothing
	})
}

func (s *site) revokedToken() string {
	s.t.Helper()
	token, record := s.tokenFor(0)
	if err := s.accounts.RevokeToken(s.t.Context(), hookglass.System, record.ID); err != nil {
		s.t.Fatal(err)
	}
	return token
}

func (s *site) expiredToken() string {
	token, record := s.tokenFor(1)
	for record.Usable(time.Now()) { // it was given a nanosecond
	}
	return token
}

// endpointOf creates an endpoint with a token and returns its id.
func (s *site) endpointOf(token string) string {
	s.t.Helper()
	var made api.One[api.Endpoint]
	s.wantAs(token, 201, "POST", "/endpoints", `{"endpoint":{"name":"Theirs"}}`, &made)
	return made.Data.ID
}

func TestListsHoldNothingOfOthers(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		s.arrive(e.ID, nil)
		workspace, err := s.accounts.CreateWorkspace(t.Context(), hookglass.System, s.owner.Account.ID, "Second")
		if err != nil {
			t.Fatal(err)
		}
		for who, token := range map[string]string{
			"another account":     s.newToken(s.register("eve@example.com"), hookglass.LevelAccount, 0, hookglass.ScopeRead),
			"a sibling workspace": s.newToken(s.owner, hookglass.LevelWorkspace, workspace.ID, hookglass.ScopeRead),
		} {
			var endpoints api.List[api.Endpoint]
			s.wantAs(token, 200, "GET", "/endpoints", "", &endpoints)
			var feed api.ActivityList
			s.wantAs(token, 200, "GET", "/events", "", &feed)
			if len(endpoints.Data) != 0 || len(feed.Data) != 0 {
				t.Errorf("%s sees %+v and %+v", who, endpoints.Data, feed.Data)
			}
		}
	})
}

func TestNotMineReadsAsNotThere(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		event := s.arrive(e.ID, nil)
		foreign := s.newToken(s.register("eve@example.com"), hookglass.LevelAccount, 0, hookglass.ScopeRead)
		nobodys := string(hookglass.NewEndpointID())
		for _, path := range []string{"/endpoints/%s", "/endpoints/%s/requests", "/endpoints/%s/requests/" + event} {
			_, theirs := s.call(foreign, "GET", strings.ReplaceAll(path, "%s", e.ID), "")
			_, none := s.call(foreign, "GET", strings.ReplaceAll(path, "%s", nobodys), "")
			if theirs != none {
				t.Errorf("%s: %s differs from %s", path, theirs, none)
			}
		}
	})
}

func TestATokenIsTakenFromOneWellFormedHeaderAlone(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		for name, values := range map[string][]string{
			"two":          {"Bearer " + s.token, "Bearer " + s.token},
			"joined":       {"Bearer " + s.token + ", Bearer " + s.token},
			"two spaces":   {"Bearer  " + s.token},
			"tab":          {"Bearer\t" + s.token},
			"no scheme":    {s.token},
			"basic":        {"Basic " + s.token},
			"nothing":      {"Bearer"},
			"empty":        {"Bearer "},
			"more after":   {"Bearer " + s.token + " x"},
			"quoted":       {`Bearer "` + s.token + `"`},
			"without auth": nil,
		} {
			req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/auth/verify?access_token="+s.token+"&token="+s.token, nil)
			if err != nil {
				t.Fatal(err)
			}
			if values != nil {
				req.Header["Authorization"] = values
			}
			if res, text := s.do(req); res.StatusCode != 401 {
				t.Errorf("%s: %d %s, want 401", name, res.StatusCode, text)
			}
		}
		for _, scheme := range []string{"Bearer", "bearer", "BEARER"} { // RFC 9110, section 11.1
			req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/auth/verify", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", scheme+" "+s.token)
			if res, text := s.do(req); res.StatusCode != 200 {
				t.Errorf("%s: %d %s", scheme, res.StatusCode, text)
			}
		}
	})
}

func TestVerifyTellsWhoseATokenIs(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var got api.Verification
		s.want(200, "GET", "/auth/verify", "", &got)
		want := api.Identity{
			User:    api.User{ID: s.owner.User.ID, Email: "ada@example.com", Name: s.owner.User.Name},
			Account: api.Account{ID: s.owner.Account.ID, Name: s.owner.Account.Name, Plan: "business"},
		}
		if got.Identity != want || got.Data != want {
			t.Errorf("got %+v, want %+v at the top and in data", got, want)
		}
	})
}

// The base address is a path of the contract.
func TestTheBaseIsVersioned(t *testing.T) {
	if rest.Base != "/api/v1" {
		t.Errorf("Base is %s", rest.Base)
	}
}
