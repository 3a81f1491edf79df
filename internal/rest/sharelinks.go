package rest

import (
	"context"
	"net/http"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/share"
	"hookglass/internal/store"
)

type (
	// SharePath is the path of one share link.
	SharePath struct {
		InEndpoint
		ShareID int64 `path:"share_id" doc:"The link's id." example:"12"`
	}

	sharesOfEvent struct {
		EventPath
		Paging
	}
)

func (s *service) shareLinks(t *table) {
	const tag, base, ofEvent = "Share links", "/endpoints/{endpoint_id}/share_links", "/endpoints/{endpoint_id}/requests/{id}/share_links"
	read, write := access{scope: hookglass.ScopeRead}, access{scope: hookglass.ScopeWrite}
	handleBody(t, operation{
		id: "create-share-link", method: http.MethodPost, path: ofEvent, tag: tag, summary: "Create a link to a request", access: write, status: http.StatusCreated, bare: true,
		text: "Whoever has its url reads the request in a browser, without an account and without what is secret: credentials, cookies and the endpoint's secrets and address are " +
			"blotted out. The url stands in this answer and nowhere else.",
	}, s.createShareLink)
	handle(t, operation{
		id: "list-request-share-links", method: http.MethodGet, path: ofEvent, tag: tag, summary: "List the links to a request", access: read,
		text: "Newest first; those that have expired or were revoked are not among them.",
	}, s.listRequestShareLinks)
	handle(t, operation{
		id: "list-share-links", method: http.MethodGet, path: base, tag: tag, summary: "List the links to requests of an endpoint", access: read,
		text: "Newest first; those that lead to nothing any more are not among them.",
	}, s.listShareLinks)
	handle(t, operation{
		id: "delete-share-link", method: http.MethodDelete, path: base + "/{share_id}", tag: tag, summary: "Revoke a link", access: write,
		text: "Whoever has it sees nothing there from then on.",
	}, s.deleteShareLink)
}

func (s *service) createShareLink(ctx context.Context, in *EventPath, body *api.CreateShareLink) (out api.One[api.ShareLink], err error) {
	life := share.DefaultLife
	if body.ShareLink != nil {
		var faults []hookglass.FieldError
		seconds := given(&faults, "share_link.expires_in", body.ShareLink.ExpiresIn, false)
		if len(faults) > 0 {
			return out, hookglass.InvalidFields(faults)
		}
		if seconds != nil {
			life = time.Duration(min(max(*seconds, 0), 1<<32)) * time.Second // clamped to what a duration can hold, which is still refused
		}
	}
	secret, made, err := s.Shares.Create(ctx, asker(ctx), in.EndpointID, in.ID, life)
	if err != nil {
		return out, err
	}
	out.Data = api.FromShare(made)
	out.Data.URL = s.Addresses.Shared(secret)
	return out, nil
}

func (s *service) listRequestShareLinks(ctx context.Context, in *sharesOfEvent) (api.List[api.ShareLink], error) {
	return s.shares(ctx, in.EndpointID, in.ID, in.Paging)
}

func (s *service) listShareLinks(ctx context.Context, in *inEndpointPaged) (api.List[api.ShareLink], error) {
	return s.shares(ctx, in.EndpointID, "", in.Paging)
}

// shares returns a page of the links to an event, or to all events of the endpoint if none is named.
func (s *service) shares(ctx context.Context, endpoint, event string, wanted Paging) (api.List[api.ShareLink], error) {
	return paged(ofShares, wanted, func(behind int64, most int) ([]hookglass.Share, error) {
		return s.Shares.List(ctx, asker(ctx), endpoint, store.ShareList{Event: event, Before: behind, Limit: most})
	}, func(s hookglass.Share) int64 { return s.ID }, api.FromShare)
}

func (s *service) deleteShareLink(ctx context.Context, in *SharePath) (out api.One[api.DeletedNumber], err error) {
	err = s.Shares.Revoke(ctx, asker(ctx), in.EndpointID, in.ShareID)
	out.Data = api.DeletedNumber{ID: in.ShareID, Deleted: true}
	return out, err
}
