package client_test

import (
	"errors"
	"testing"

	"hookglass/api"
	"hookglass/client"
)

func TestShareLinksOverTheClient(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		e := must[api.Endpoint](t)(s.CreateEndpoint(ctx, api.NewEndpoint{Name: api.Some("a")}))
		s.arrive(e.ID, "/1")
		event := must[api.EventList](t)(s.Requests(ctx, e.ID, client.Filter{}, client.Page{})).Data[0].ID
		made := must[api.ShareLink](t)(s.CreateShareLink(ctx, e.ID, event, api.NewShareLink{ExpiresIn: api.Some(int64(60))}))
		if made.URL == "" || made.RequestID != event {
			t.Errorf("%+v", made)
		}
		for _, id := range []string{"", event} {
			if page := must[api.List[api.ShareLink]](t)(s.ShareLinks(ctx, e.ID, id, client.Page{Limit: 1})); len(page.Data) != 1 || page.Data[0].ID != made.ID || page.Data[0].URL != "" {
				t.Errorf("%q: %+v", id, page)
			}
		}
		if err := s.RevokeShareLink(ctx, e.ID, made.ID); err != nil {
			t.Error(err)
		}
		var refused *client.Error
		if err := s.RevokeShareLink(ctx, e.ID, made.ID); !errors.As(err, &refused) || refused.Status != 404 {
			t.Errorf("revoked twice: %v", err)
		}
	})
}
