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

func TestAlertsOverTheClient(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		e := must[api.Endpoint](t)(s.CreateEndpoint(ctx, api.NewEndpoint{Name: api.Some("a")}))
		one := must[api.Alert](t)
		made := one(s.CreateAlert(ctx, e.ID, api.NewAlert{
			Name: api.Some("quiet"), Kind: api.Some("missing_webhook"), Config: api.Some(api.AlertSettings{WindowMinutes: api.Some[int64](5)}),
		}))
		if now := one(s.UpdateAlert(ctx, e.ID, made.ID, api.AlertChange{Enabled: api.Some(false)})); now.Enabled || now.Name != "quiet" {
			t.Errorf("changed to %+v", now)
		}
		if now := one(s.Alert(ctx, e.ID, made.ID)); now.Enabled || now.ID != made.ID {
			t.Errorf("read %+v", now)
		}
	})
}

func TestActionsAreTriedOverTheClient(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		e := must[api.Endpoint](t)(s.CreateEndpoint(ctx, api.NewEndpoint{Name: api.Some("a")}))
		made := must[api.Action](t)(s.CreateAction(ctx, e.ID, api.NewAction{
			Name: api.Some("mark"), Steps: api.Some([]api.NewStep{{StepType: "tag", Config: api.JSONObject(`{"tag":"seen"}`)}}),
		}))
		s.arrive(e.ID, "/1")
		s.arrive(e.ID, "/2")
		got := must[api.ActionBacktest](t)(s.BacktestAction(ctx, e.ID, made.ID, api.BacktestAction{Query: api.Some("path:/2")}))
		if got.Evaluated != 1 || got.Matched != 1 || !got.Complete {
			t.Errorf("%+v", got)
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
