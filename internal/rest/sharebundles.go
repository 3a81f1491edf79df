package rest

import (
	"context"
	"net/http"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/share"
)

type bundlePreview struct {
	InEndpoint
	RequestIDs []string `query:"request_ids[],explode" most:"100" doc:"Which requests; or a query." example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Query      string   `query:"query" longest:"1000" doc:"The search language, in place of ids." example:"provider:stripe"`
	Pointers   []string `query:"pointers[],explode" most:"100" doc:"What is replaced besides what is recognised." example:"/data/object/description"`
	Keep       []string `query:"keep[],explode" most:"100" doc:"What is left as it is: places, or kinds." example:"ip"`
}

// bundleFile is the file name of a bundle.
const bundleFile = "hookglass-bundle.json"

func (s *service) shareBundles(t *table) {
	const tag, base = "Share bundles", "/endpoints/{endpoint_id}/share_bundles"
	limit := rate{60, time.Minute} // each byte of a bundle is examined many times
	handleBodyRaw(t, operation{
		id: "create-share-bundle", method: http.MethodPost, path: base, tag: tag, summary: "Make a file of requests that can be given away",
		text: "Personal data and secrets are replaced by substitutes of the same form, the same value by the same one throughout the file, and each request is " +
			"signed anew with a published test secret, so that verification still passes. Nothing is stored, and nobody can go back from a substitute. 409 where something " +
			"that was recognised cannot be taken out.",
		access: access{scope: hookglass.ScopeRead}, limit: limit, errors: []int{http.StatusConflict}, file: true,
	}, []string{"application/json"}, s.createShareBundle)
	handle(t, operation{
		id: "preview-share-bundle", method: http.MethodGet, path: base + "/preview", tag: tag, summary: "See what a share bundle would replace",
		text:   "Where and as what, never the values.",
		access: access{scope: hookglass.ScopeRead}, limit: limit, strict: true, errors: []int{http.StatusConflict, http.StatusRequestEntityTooLarge},
	}, s.previewShareBundle)
}

func (s *service) createShareBundle(in *InEndpoint, body *api.CreateShareBundle, w http.ResponseWriter, r *http.Request) error {
	b, err := s.Shares.Bundle(r.Context(), asker(r.Context()), in.EndpointID, share.Wanted{Events: body.RequestIDs, Query: body.Query, Pointers: body.Pointers, Keep: body.Keep})
	if err != nil {
		return err
	}
	download(w, "application/json", bundleFile)
	if err := b.File(b.At).Write(w); err != nil {
		panic(http.ErrAbortHandler) // an incomplete file must not look complete
	}
	return nil
}

func (s *service) previewShareBundle(ctx context.Context, in *bundlePreview) (out api.One[api.BundlePreview], err error) {
	b, err := s.Shares.Bundle(ctx, asker(ctx), in.EndpointID, share.Wanted{Events: in.RequestIDs, Query: in.Query, Pointers: in.Pointers, Keep: in.Keep})
	if err != nil {
		return out, err
	}
	out.Data.Requests = make([]api.BundledRequest, len(b.Events))
	for i, e := range b.Events {
		out.Data.Requests[i] = api.BundledRequest{
			RequestID: string(b.Sources[i]), Provider: e.Provider, EventType: orNull(e.EventType), Signed: e.Signature != nil, Unsigned: orNull(e.Unsigned), Size: len(e.Body),
		}
	}
	out.Data.Replaced = make([]api.BundleReplacement, len(b.Replaced))
	for i, r := range b.Replaced {
		out.Data.Replaced[i] = api.BundleReplacement{RequestID: string(b.Sources[r.Event-1]), Pointer: r.Where, Kind: string(r.Kind), Count: r.Count}
	}
	return out, nil
}
