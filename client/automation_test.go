package client_test

import (
	"errors"
	"testing"

	"hookglass/api"
	"hookglass/client"
)

func TestTagsOverTheClient(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		made := must[api.Tag](t)(s.CreateTag(ctx, api.NewTag{Name: api.Some("billing"), Color: api.Some("#0a7d33")}))
		if now := must[api.Tag](t)(s.UpdateTag(ctx, made.ID, api.TagChange{Name: api.Some("invoices")})); now.Name != "invoices" || now.Color == nil {
			t.Errorf("renamed %+v", now)
		}
		if all := must[[]api.Tag](t)(s.Tags(ctx)); len(all) != 1 || all[0].ID != made.ID {
			t.Errorf("listed %+v", all)
		}
		if err := s.DeleteTag(ctx, made.ID); err != nil {
			t.Error(err)
		}
	})
}

func TestFiguresOverTheClient(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		e := must[api.Endpoint](t)(s.CreateEndpoint(ctx, api.NewEndpoint{Name: api.Some("a")}))
		s.arrive(e.ID, "/1")
		if m := must[api.Metrics](t)(s.Metrics(ctx, e.ID, "1h", "5m")); m.Total != 1 || m.Step != "5m" || len(m.Series) != 12 {
			t.Errorf("%d events in %d steps of %s", m.Total, len(m.Series), m.Step)
		}
		if m := must[api.Metrics](t)(s.Metrics(ctx, e.ID, "", "")); m.Window != "24h" {
			t.Errorf("the window is %s", m.Window)
		}
		var refused *client.Error
		if _, err := s.Metrics(ctx, e.ID, "91d", ""); !errors.As(err, &refused) || refused.Status != 422 {
			t.Errorf("a window that is too long: %v", err)
		}
	})
}
