package rest

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/draft"
	"hookglass/internal/httpd"
	"hookglass/internal/store"
)

type (
	deliveryList struct {
		TargetPath
		Status string `query:"status" enum:"failed" doc:"failed: only those." example:"failed"`
		After  string `query:"after" doc:"Only deliveries that were made after this time: ISO 8601, or a duration as 2h that counts back from now." example:"2h"`
		Paging
	}

	resendRange struct {
		TargetPath
		Before string `query:"before" doc:"Only deliveries that were made before this time: ISO 8601, or a duration as 2h that counts back from now." example:"2026-11-20T12:00:00Z"`
		After  string `query:"after" doc:"Only deliveries that were made after this time." example:"2026-11-20T10:00:00Z"`
	}

	deliveryPath struct {
		TargetPath
		DeliveryID string `path:"delivery_id" doc:"The delivery's id." example:"dlv_0dfk3v6m8t7h1s9xq2b4c5n6wz_3"`
	}

	// TargetPath is the path of one forwarding target.
	TargetPath struct {
		InEndpoint
		TargetID int64 `path:"target_id" doc:"The forwarding target's id." example:"3"`
	}
)

func (s *service) forwarding(t *table) {
	const tag, base = "Forwarding targets", "/endpoints/{endpoint_id}/forwarding_targets"
	read, write := access{scope: hookglass.ScopeRead}, access{scope: hookglass.ScopeWrite}
	handle(t, operation{
		id: "list-forwarding-targets", method: http.MethodGet, path: base, tag: tag, summary: "List forwarding targets", text: "Oldest first.", access: read,
	}, s.listForwardingTargets)
	handleBody(t, operation{
		id: "create-forwarding-target", method: http.MethodPost, path: base, tag: tag, summary: "Create a forwarding target", access: write,
		text: "Events that are captured from now on go to it, at least once each, with their method, headers and body; mail goes as JSON. " +
			"It needs an active paid subscription.", status: http.StatusCreated,
	}, s.createForwardingTarget)
	handle(t, operation{
		id: "get-forwarding-target", method: http.MethodGet, path: base + "/{target_id}", tag: tag, summary: "Read a forwarding target", access: read,
		text: "With how many deliveries wait for it, how many failed in a row, and whether it is paused. The values of its headers are never shown.",
	}, s.getForwardingTarget)
	handleBody(t, operation{
		id: "update-forwarding-target", method: http.MethodPatch, path: base + "/{target_id}", tag: tag, summary: "Change a forwarding target", access: write,
		text: "What the body does not name stays as it is. Enabling a target that is paused resumes it.",
	}, s.updateForwardingTarget)
	handle(t, operation{
		id: "delete-forwarding-target", method: http.MethodDelete, path: base + "/{target_id}", tag: tag, summary: "Delete a forwarding target", access: write,
		text: "With its deliveries; what waits is not sent.",
	}, s.deleteForwardingTarget)
	handle(t, operation{
		id: "list-forwarding-deliveries", method: http.MethodGet, path: base + "/{target_id}/deliveries", tag: tag, summary: "List deliveries to a target",
		text: "Newest first. A delivery is kept as long as its event.", access: read,
	}, s.listForwardingDeliveries)
	handle(t, operation{
		id: "get-forwarding-delivery", method: http.MethodGet, path: base + "/{target_id}/deliveries/{delivery_id}", tag: tag, summary: "Read a delivery to a target",
		text: "With the request and the answer of each attempt: credentials are redacted, bodies kept up to 8 KiB.", access: read,
	}, s.getForwardingDelivery)
	handle(t, operation{
		id: "resend-forwarding-delivery", method: http.MethodPost, path: base + "/{target_id}/deliveries/{delivery_id}/resend", tag: tag, summary: "Send a failed delivery again",
		text: "It is pending again and goes as it first went, with all its retries; what was attempted stays with it. One that is pending or being sent stays as it is. " +
			"For a paused target it waits. It is 409 while the target is disabled, and for a delivery that arrived, was skipped or has 100 attempts: replay its event instead.",
		access: write, errors: []int{http.StatusConflict},
	}, s.resendForwardingDelivery)
	handle(t, operation{
		id: "resend-failed-deliveries", method: http.MethodPost, path: base + "/{target_id}/resend", tag: tag, summary: "Send failed deliveries again",
		text: "All of the target that have failed, or those made before and after the times given, the oldest first: as each by itself. Those that cannot be sent again are passed over, and " +
			"calling it once more while they wait changes nothing. It is 409 while the target is disabled. Unknown parameters are refused, and so is a body, whose bounds would be passed over.",
		access: write, strict: true, empty: true, errors: []int{http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge},
	}, s.resendFailedDeliveries)
}

// Resolve refuses a bound without a time or given twice, as for a deletion.
func (in *resendRange) Resolve(hc huma.Context) []error { return bounded(hc) }

// event calls do with each event that the delivery's id may mean until one exists. It answers not_found.
func (in *deliveryPath) event(do func(hookglass.EventID) error) error {
	events, targetID := api.DeliveredEvents(in.DeliveryID)
	if targetID == in.TargetID { // otherwise it is another target's, or not the id of a delivery
		for _, id := range events {
			if err := do(id); !hookglass.Is(err, hookglass.CodeNotFound) {
				return err
			}
		}
	}
	return hookglass.NotFound("delivery")
}

func (s *service) resendForwardingDelivery(ctx context.Context, in *deliveryPath) (out api.One[api.Delivery], err error) {
	err = in.event(func(id hookglass.EventID) error {
		f, err := s.Endpoints.ResendDelivery(ctx, asker(ctx), in.EndpointID, in.TargetID, id)
		out.Data = api.FromForward(f)
		return err
	})
	return out, err
}

func (s *service) resendFailedDeliveries(ctx context.Context, in *resendRange) (out api.One[api.ResentDeliveries], err error) {
	before, after, err := s.bounds(in.Before, in.After)
	if err != nil {
		return out, err
	}
	t, n, err := s.Endpoints.ResendFailed(ctx, asker(ctx), in.EndpointID, in.TargetID, after, before)
	out.Data = api.FromResent(t, n)
	return out, err
}

func (s *service) listForwardingTargets(ctx context.Context, in *inEndpointListed) (out api.List[api.ForwardingTarget], err error) {
	p, err := in.page(ofTargets)
	if err != nil {
		return out, err
	}
	err = s.view(ctx, func(v *store.View) error {
		found, err := v.ForwardingTargets(in.EndpointID, p.Behind, p.Most())
		if err != nil {
			return err
		}
		out = httpd.Answer(p, found, func(t hookglass.ForwardingTarget) int64 { return t.ID }, api.FromForwardingTarget)
		backlogs, err := v.ForwardBacklogs(in.EndpointID, found[:len(out.Data)]...)
		for i, b := range backlogs {
			out.Data[i] = out.Data[i].WithBacklog(b)
		}
		return err
	})
	return out, err
}

func (s *service) createForwardingTarget(ctx context.Context, in *InEndpoint, body *api.CreateForwardingTarget) (out api.One[api.ForwardingTarget], err error) {
	if body.ForwardingTarget == nil {
		return out, hookglass.Invalid("forwarding_target", "is required")
	}
	d, err := draft.Target(*body.ForwardingTarget)
	if err != nil {
		return out, err
	}
	t, err := s.Endpoints.CreateForwardingTarget(ctx, asker(ctx), in.EndpointID, d)
	out.Data = api.FromForwardingTarget(t).WithBacklog(hookglass.ForwardBacklog{})
	return out, err
}

func (s *service) getForwardingTarget(ctx context.Context, in *TargetPath) (out api.One[api.ForwardingTarget], err error) {
	err = s.view(ctx, func(v *store.View) error {
		t, err := v.ForwardingTarget(in.EndpointID, in.TargetID)
		if err != nil {
			return err
		}
		out.Data, err = withBacklog(v, in.EndpointID, t)
		return err
	})
	return out, err
}

func withBacklog(v *store.View, ref string, t hookglass.ForwardingTarget) (out api.ForwardingTarget, err error) {
	all, err := v.ForwardBacklogs(ref, t)
	if err != nil {
		return out, err
	}
	return api.FromForwardingTarget(t).WithBacklog(all[0]), nil
}

func (s *service) updateForwardingTarget(ctx context.Context, in *TargetPath, body *api.UpdateForwardingTarget) (out api.One[api.ForwardingTarget], err error) {
	if body.ForwardingTarget == nil {
		return out, hookglass.Invalid("forwarding_target", "is required")
	}
	d, err := draft.TargetChange(*body.ForwardingTarget)
	if err != nil {
		return out, err
	}
	t, err := s.Endpoints.UpdateForwardingTarget(ctx, asker(ctx), in.EndpointID, in.TargetID, d)
	if err != nil {
		return out, err
	}
	err = s.view(ctx, func(v *store.View) (err error) { out.Data, err = withBacklog(v, in.EndpointID, t); return err })
	return out, err
}

func (s *service) deleteForwardingTarget(ctx context.Context, in *TargetPath) (out api.One[api.DeletedNumber], err error) {
	err = s.Endpoints.DeleteForwardingTarget(ctx, asker(ctx), in.EndpointID, in.TargetID)
	out.Data = api.DeletedNumber{ID: in.TargetID, Deleted: true}
	return out, err
}

func (s *service) listForwardingDeliveries(ctx context.Context, in *deliveryList) (api.List[api.Delivery], error) {
	list := (*store.View).Forwards
	if in.Status != "" {
		list = (*store.View).FailedForwardsOf
	}
	_, after, err := s.bounds("", in.After)
	if err != nil {
		return api.List[api.Delivery]{}, err
	}
	return listed(ctx, s, ofForwards, in, func(v *store.View, behind int64, most int) ([]hookglass.Forward, error) {
		found, err := list(v, in.EndpointID, in.TargetID, behind, most)
		if i := slices.IndexFunc(found, func(f hookglass.Forward) bool { return f.CreatedAt.Before(after) }); i >= 0 {
			found = found[:i] // what follows is older
		}
		return found, err
	}, func(f hookglass.Forward) int64 { return f.Num }, api.FromForward)
}

func (s *service) getForwardingDelivery(ctx context.Context, in *deliveryPath) (out api.One[api.Delivery], err error) {
	err = s.view(ctx, func(v *store.View) error {
		if _, err := v.ForwardingTarget(in.EndpointID, in.TargetID); err != nil {
			return err
		}
		return in.event(func(id hookglass.EventID) error {
			f, evidence, err := v.Forward(in.EndpointID, in.TargetID, id)
			out.Data = api.FromForwardEvidence(f, evidence)
			return err
		})
	})
	return out, err
}
