package rest

import (
	"context"
	"net/http"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/ledger"
	"hookglass/internal/store"
)

type ledgerQuery struct {
	InEndpoint
	From   string `query:"from" doc:"When the window begins: ISO 8601, or a duration as 2h that counts back from now. Default: an hour before to. At most 31 days before to." example:"2h"`
	To     string `query:"to" doc:"When the window ends, likewise. Default: now." example:"5m"`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"25" doc:"How many events at most." example:"25"`
	Cursor string `query:"cursor" doc:"The next_cursor of the answer before, with the same from and to."`
}

func (s *service) ledger(t *table) {
	handle(t, operation{
		id: "get-endpoint-ledger", method: http.MethodGet, path: "/endpoints/{endpoint_id}/ledger", tag: "Metrics", summary: "Read the delivery ledger of an endpoint",
		text: "What became of all that arrived in a window: the sums must balance, and balanced and differences say whether they do. received = refused + stored, stored = kept + deleted, and for each " +
			"consumer stored = delivered + failed + skipped + pending + expired + deleted. The sums come from different books (figures, events, what consumers wrote down). The window is made " +
			"wider to whole minutes, or whole hours where it is longer than 24 hours or begins more than 48 hours ago. Refusals are written down within a second or two; those of a node that " +
			"is killed in between are lost, stored events never are. Events are listed oldest first; a page can be short where bodies are large.",
		access: access{scope: hookglass.ScopeRead}, strict: true,
	}, s.endpointLedger)
}

func (s *service) endpointLedger(ctx context.Context, in *ledgerQuery) (out api.LedgerPage, err error) {
	now := s.DB.Now()
	w, err := ledger.ParseWindow(plus(in.From), plus(in.To), now)
	if err != nil {
		return out, err
	}
	after, err := ofLedger.Place(in.Cursor)
	if err != nil {
		return out, err
	}
	err = s.view(ctx, func(v *store.View) error {
		e, err := v.Endpoint(in.EndpointID)
		if err != nil {
			return err
		}
		l, err := ledger.Read(v, string(e.ID), w, now)
		if err != nil {
			return err
		}
		lines, next, err := v.LedgerLines(string(e.ID), l.From, l.To, after, in.Limit)
		if next > 0 {
			out.Meta.NextCursor = ofLedger.Cursor(next)
		}
		out.Data = api.FromLedger(e, l, lines)
		return err
	})
	return out, err
}
