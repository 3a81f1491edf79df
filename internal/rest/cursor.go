package rest

import (
	"context"

	"hookglass/api"
	"hookglass/internal/httpd"
	"hookglass/internal/store"
)

const defaultLimit = 25 // of a page (spec: decisions, section 3)

// The lists that cursors belong to. A cursor of another list is refused.
const (
	ofEndpoints httpd.List = 'n'
	ofEvents    httpd.List = 'e'
	ofTargets   httpd.List = 't'
	ofForwards  httpd.List = 'f'

	ofReplays    httpd.List = 'r'
	ofReleases   httpd.List = 'y'
	ofCases      httpd.List = 'c'
	ofRuns       httpd.List = 'u'
	ofBatches    httpd.List = 'b'
	ofBatchItems httpd.List = 'i'

	ofActions    httpd.List = 'o'
	ofActionRuns httpd.List = 'v'
	ofSecrets    httpd.List = 's'

	ofUndelivered httpd.List = 'm'
	ofGaps        httpd.List = 'k'

	ofTags      httpd.List = 'g'
	ofChannels  httpd.List = 'h'
	ofAlerts    httpd.List = 'a'
	ofIncidents httpd.List = 'd'
	ofLedger    httpd.List = 'l'
	ofFlows     httpd.List = 'w'

	ofConfigs httpd.List = 'p'
	ofShares  httpd.List = 'x'
)

type (
	// Paging are the parameters of a list that always has pages.
	Paging struct {
		Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"25" doc:"How many at most." example:"25"`
		Cursor string `query:"cursor" doc:"The next_cursor of the answer before."`
	}

	// OptionalPaging are those of a list that is complete unless paging is requested (spec: decisions, section 13,
	// "Paging").
	OptionalPaging struct {
		Limit  int    `query:"limit" minimum:"1" maximum:"100" doc:"How many at most; without limit and cursor, all. With a cursor alone, 25." example:"25"`
		Cursor string `query:"cursor" doc:"The next_cursor of the answer before."`
	}

	inEndpointPaged struct {
		InEndpoint
		Paging
	}

	inEndpointListed struct {
		InEndpoint
		OptionalPaging
	}
)

func (p Paging) page(list httpd.List) (httpd.Page, error) { return list.Page(p.Limit, p.Cursor) }

func (p OptionalPaging) page(list httpd.List) (httpd.Page, error) {
	if p.Limit == 0 && p.Cursor != "" {
		p.Limit = defaultLimit
	}
	return list.Page(p.Limit, p.Cursor)
}

// pager are the parameters of any list.
type pager interface {
	page(list httpd.List) (httpd.Page, error)
}

// paged answers a page of a list: what read returns from behind a place. place tells where an item stands in the list.
func paged[T, U any](list httpd.List, in pager, read func(behind int64, most int) ([]T, error), place func(T) int64, write func(T) U) (out api.List[U], err error) {
	p, err := in.page(list)
	if err != nil {
		return out, err
	}
	found, err := read(p.Behind, p.Most())
	return httpd.Answer(p, found, place, write), err
}

// listed is paged for what read reads from a view.
func listed[T, U any](ctx context.Context, s *service, list httpd.List, in pager, read func(v *store.View, behind int64, most int) ([]T, error),
	place func(T) int64, write func(T) U,
) (api.List[U], error) {
	return paged(list, in, func(behind int64, most int) ([]T, error) {
		return store.Read(ctx, s.DB, asker(ctx), func(v *store.View) ([]T, error) { return read(v, behind, most) })
	}, place, write)
}
