package rest

import (
	"context"
	"net/http"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
)

type activityList struct {
	Limit int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many at most." example:"50"`
	Since string `query:"since" doc:"Only what happened since this time, ISO 8601; default 24 hours ago." example:"2026-11-20T10:00:00Z"`
}

// feedReach is how far the feed goes back by default (spec, "Limits").
const feedReach = 24 * time.Hour

func (s *service) activity(t *table) {
	handle(t, operation{
		id: "list-events", method: http.MethodGet, path: "/events", tag: "Activity", summary: "Read the activity feed",
		text: "What happened in the account, newest first.", access: access{scope: hookglass.ScopeRead},
	}, s.listActivity)
}

func (s *service) listActivity(ctx context.Context, in *activityList) (out api.ActivityList, err error) {
	since, err := moment("since", in.Since, s.DB.Now())
	if err != nil {
		return out, err
	}
	if since.IsZero() {
		since = s.DB.Now().Add(-feedReach)
	}
	err = s.view(ctx, func(v *store.View) error {
		feed, err := v.Activity("", since, in.Limit)
		if err != nil {
			return err
		}
		out.Data = make([]api.Activity, len(feed))
		for i, line := range feed {
			out.Data[i] = api.FromActivity(line)
		}
		out.Meta.Count = len(feed)
		return nil
	})
	return out, err
}
