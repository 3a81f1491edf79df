package rest_test

import (
	"net/http"
	"testing"
	"time"

	"hookglass/api"
)

// The ledger over REST: sums of the window, pages of its events, and what is refused.
func TestTheLedgerOfAnEndpoint(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		for range 3 {
			s.arrive(e.ID, nil)
		}
		var first api.LedgerPage
		s.want(200, "GET", "/endpoints/"+e.ID+"/ledger?limit=2", "", &first)
		l := first.Data
		if !l.Balanced || len(l.Differences) != 0 || l.Totals.Received != 3 || l.Totals.Stored != 3 || l.Totals.Kept != 3 || l.Totals.Answers["200"] != 3 || l.EndpointID != e.ID {
			t.Errorf("%+v", l)
		}
		if len(l.Events) != 2 || len(l.Events[0].SHA256) != 64 || *l.Events[0].Answer.Status != http.StatusOK || first.Meta.NextCursor == nil {
			t.Fatalf("the first page: %+v %+v", l.Events, first.Meta)
		}
		var second api.LedgerPage
		s.want(200, "GET", "/endpoints/"+e.ID+"/ledger?limit=2&cursor="+*first.Meta.NextCursor, "", &second)
		if len(second.Data.Events) != 1 || second.Meta.NextCursor != nil || second.Data.Totals.Stored != 3 {
			t.Errorf("the second page: %+v", second)
		}
		s.want(200, "DELETE", "/endpoints/"+e.ID+"/requests/"+l.Events[0].ID, "", nil)
		var after api.LedgerPage
		s.want(200, "GET", "/endpoints/"+e.ID+"/ledger", "", &after)
		if n := after.Data.Totals; !after.Data.Balanced || n.Stored != 3 || n.Kept != 2 || n.Deleted != 1 {
			t.Errorf("after a deletion: %+v", after.Data)
		}
		var before api.LedgerPage
		s.want(200, "GET", "/endpoints/"+e.ID+"/ledger?from=3h&to=2h", "", &before)
		if before.Data.Totals.Received != 0 || len(before.Data.Events) != 0 || !before.Data.Balanced {
			t.Errorf("of a time before: %+v", before.Data)
		}
		for _, query := range []string{"from=x", "to=x", "from=1h&to=2h", "from=32d", "limit=0", "limit=101", "cursor=x", "form=1h", "from=" + time.Now().Add(time.Hour).Format(time.RFC3339)[:19]} {
			s.wantError(422, "validation_failed", "GET", "/endpoints/"+e.ID+"/ledger?"+query, "")
		}
		s.wantError(404, "not_found", "GET", "/endpoints/ep_00000000000000000000000000/ledger", "")
	})
}
