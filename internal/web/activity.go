package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/web/activity"
	"hookglass/internal/web/fresh"
	"hookglass/internal/web/layout"
)

func (a *app) registerActivity() {
	a.page("GET /activity", a.showActivity)
	a.part("GET /activity/feed", a.activityFeed)
}

// maxFeed bounds the lines of the feed (spec, "Activity events").
const maxFeed = 200

func (a *app) showActivity(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	m := activity.Model{Filter: activityFilter(r)}
	if m.Frame, err = a.globalFrame(r.Context(), v, layout.Activity, "Activity", fresh.Script); err != nil {
		return err
	}
	status := http.StatusOK
	m.Feed, err = a.feedOf(r, v, m.Filter, m.Frame.Endpoints)
	if faults := faultsOf(err); faults != nil {
		status, m.Fault = http.StatusUnprocessableEntity, faults[0].Field+" "+faults[0].Message+"."
	} else if err != nil {
		return err
	}
	return render(w, r, status, activity.Page(m))
}

// activityFeed is the feed alone.
func (a *app) activityFeed(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	all, err := a.endpointsOf(r.Context(), v)
	if err != nil {
		return err
	}
	f, err := a.feedOf(r, v, activityFilter(r), all)
	if err != nil {
		return err
	}
	return render(w, r, http.StatusOK, activity.Lines(f))
}

func activityFilter(r *http.Request) activity.Filter {
	q := r.URL.Query()
	return activity.Filter{Since: cmp.Or(q.Get("since"), activity.Since[0].Value), Limit: cmp.Or(q.Get("limit"), activity.Limits[0].Value), Type: q.Get("type")}
}

// feedOf reads the feed. The filter's Since is a duration back from now, or a time as in the API.
func (a *app) feedOf(r *http.Request, v visitor, filter activity.Filter, endpoints []hookglass.Endpoint) (f activity.Feed, err error) {
	f.Now, f.Names = time.Now(), make(map[hookglass.EndpointID]string)
	since, err := time.Parse(time.RFC3339, filter.Since)
	if err != nil {
		now := a.DB.Now()
		span, err := hookglass.ParseWindow(filter.Since, "", now)
		if err != nil {
			return f, hookglass.Invalid("since", "must be a number and m, h or d, such as 24h, or a time such as 2026-11-20T10:00:00Z")
		}
		since = now.Add(span.From.Sub(span.To))
	}
	if f.Limit, err = strconv.Atoi(filter.Limit); err != nil || f.Limit < 1 || f.Limit > maxFeed {
		return f, hookglass.Invalid("limit", "must be 1 to %d", maxFeed)
	}
	kind := hookglass.ActivityType(filter.Type)
	if kind != "" && !slices.Contains(hookglass.Subscribable, kind) {
		return f, hookglass.Invalid("type", "must be one of the listed types")
	}
	f.Self = "/activity/feed?" + url.Values{"since": {filter.Since}, "limit": {filter.Limit}, "type": {filter.Type}}.Encode()
	for _, e := range endpoints {
		f.Names[e.ID] = e.Name
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		if f.Lines, err = view.Activity(kind, since, f.Limit); err != nil {
			return err
		}
		return view.NameFailures(f.Lines)
	})
	f.NextOlder = len(f.Lines) == f.Limit
	return f, err
}
