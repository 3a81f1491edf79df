package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/store/storetest"
)

// Spec: decisions, section 3: a resource of another account or workspace is 404. So it is whatever is sent to it:
// neither the body nor a parameter tells it from what is not there.
func TestWhatIsNotThereIsSaidBeforeWhatIsWrongWithTheRequest(t *testing.T) {
	s := open(t, storetest.SQLite(t))
	workspace, err := s.accounts.CreateWorkspace(t.Context(), hookglass.System, s.owner.Account.ID, "Second")
	if err != nil {
		t.Fatal(err)
	}
	every := []hookglass.Scope{hookglass.ScopeRead, hookglass.ScopeWrite, hookglass.ScopeTunnel}
	foreign := s.newToken(s.register("eve@example.com"), hookglass.LevelAccount, 0, every...)
	sibling := s.newToken(s.owner, hookglass.LevelWorkspace, workspace.ID, every...)
	e := s.newEndpoint("")
	forward := s.newForwardingTarget(e.ID)
	event := s.arrive(e.ID, nil)
	mine := target{e.ID, event, s.newSignatureConfig(e.ID), forward, s.newReplayThings(e.ID, event), s.newTunnelThings(e.ID), s.newAlertThings(e.ID), s.newActionThings(e.ID, event)}
	flow := s.newFlow(e.ID)
	const wrong = "?limit=0&cursor=!&q=after:never&before=never&since=never&format=fax&force=7&window=0&from=never&sample=x&timeout=-1&lang=klingon&unknown=1"
	for _, r := range s.routes() {
		if r.public || !strings.Contains(r.path, "{") {
			continue
		}
		path := strings.ReplaceAll(r.at(mine), "{flow_id}", flow)
		asking := map[string][2]string{"another account": {foreign, path}, "a sibling workspace": {sibling, path}}
		// The last thing that the path names is not there, in an endpoint that is one's own.
		if i := strings.LastIndex(r.path, "_id}"); i > 0 && r.path[strings.LastIndex(r.path[:i], "{"):] != "{endpoint_id}" && !strings.HasPrefix(r.path[strings.LastIndex(r.path[:i], "{"):], "{endpoint_id}/") {
			from := strings.LastIndex(r.path[:i], "{")
			nobodys := r
			nobodys.path = r.path[:from] + "987654321" + r.path[i+len("_id}"):]
			asking["what is not there"] = [2]string{s.token, nobodys.at(mine)}
		}
		for who, ask := range asking {
			for _, body := range []string{"", "{", "[]", `{"unknown":1}`} {
				req, err := http.NewRequestWithContext(t.Context(), r.method, s.url+ask[1]+wrong, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+ask[0])
				if res, text := s.do(req); res.StatusCode != 404 || !strings.Contains(text, `"error":"not_found"`) {
					t.Errorf("%s %s (%s), %s, with the body %q: %d %s, want not_found", r.method, r.path, r.id, who, body, res.StatusCode, text)
				}
			}
		}
	}
	// One's own is told what is wrong.
	s.wantError(422, "validation_failed", "GET", "/endpoints/"+e.ID+"/requests?limit=0", "")
	s.wantError(400, "invalid_json", "PATCH", "/endpoints/"+e.ID, "{")
}
