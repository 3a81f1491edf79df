package rest

import (
	"context"
	"net/http"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
)

type releasesOfEvent struct {
	EventPath
	Paging
}

func (s *service) releases(t *table) {
	const tag, path = "Releases", "/endpoints/{endpoint_id}/requests/{id}/releases"
	handleBody(t, operation{
		id: "release-mail", method: http.MethodPost, path: path, tag: tag, summary: "Send a caught mail on", access: access{scope: hookglass.ScopeWrite}, status: http.StatusCreated,
		text: "Hands the mail to the operator's mail relay as it was caught, behind Resent-* fields, and waits up to 45 seconds. The relay takes it for all recipients or for none; one " +
			"that does not take it is a release with the status failed. It is sent once at most, whatever happens to the service. 422 is release_off where the operator allows no release, " +
			"recipient_not_allowed, not_a_mail for a webhook and no_raw_message; 429 is told after 60 in a minute and where too many are under way.",
		errors: []int{http.StatusTooManyRequests},
	}, s.releaseMail)
	handle(t, operation{
		id: "list-releases", method: http.MethodGet, path: path, tag: tag, summary: "List the releases of a mail", access: access{scope: hookglass.ScopeRead}, text: "Newest first.",
	}, s.listReleases)
}

func (s *service) releaseMail(ctx context.Context, in *EventPath, body *api.ReleaseMail) (out api.One[api.Release], err error) {
	r, err := s.Releases.Release(ctx, asker(ctx), in.EndpointID, in.ID, body.To)
	if err != nil {
		return out, err
	}
	out.Data = api.FromRelease(*r)
	return out, nil
}

func (s *service) listReleases(ctx context.Context, in *releasesOfEvent) (api.List[api.Release], error) {
	return listed(ctx, s, ofReleases, in, func(v *store.View, behind int64, most int) ([]hookglass.Release, error) {
		return v.Releases(in.EndpointID, in.ID, behind, most)
	}, func(r hookglass.Release) int64 { return r.Num }, api.FromRelease)
}
