package rest

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"hookglass"
	"hookglass/internal/store"
)

// address resolves the path of a request that is refused. It wraps the framework's context.
type address struct {
	inner
	path    string // the pattern in the table
	missing bool   // answer not_found, whatever status the framework has chosen
	ctx     context.Context
}

type (
	inner      huma.Context // not embedded as Context, which would hide its method of that name
	addressKey struct{}
)

func (a *address) Context() context.Context { return a.ctx }

func (a *address) Unwrap() huma.Context { return a.inner }

func (a *address) SetStatus(status int) {
	if a.missing {
		status = http.StatusNotFound
	}
	a.inner.SetStatus(status)
}

// addressed stores the path's pattern for whoever refuses the request.
func addressed(hc huma.Context, next func(huma.Context)) {
	a := &address{inner: hc, path: hc.Operation().Path}
	a.ctx = context.WithValue(hc.Context(), addressKey{}, a)
	next(a)
}

// faultsOfRequests are the errors about the content of a request. If something in its path does not exist for the
// caller, that takes precedence: a resource of others is 404, whatever is sent to it (spec: decisions, section 3).
var faultsOfRequests = map[hookglass.Code]bool{
	hookglass.CodeInvalidJSON: true, hookglass.CodeValidationFailed: true, hookglass.CodePayloadTooLarge: true, hookglass.CodeUnsupportedMediaType: true,
	hookglass.CodeTargetNotAllowed: true, hookglass.CodePlanRequired: true, hookglass.CodePaymentMethodRequired: true, hookglass.CodeSubscriptionRequired: true,
	hookglass.CodeReleaseOff: true, hookglass.CodeRecipientNotAllowed: true,
}

// told returns the error to answer: err, or not_found if the path names something that does not exist. It is checked
// only now, so a valid request costs no query.
func (t *table) told(ctx context.Context, err error) error {
	a, ok := ctx.Value(addressKey{}).(*address)
	if !ok || !faultsOfRequests[hookglass.CodeOf(err)] {
		return err
	}
	if missing := t.db.View(ctx, asker(ctx), a.look); hookglass.Is(missing, hookglass.CodeNotFound) {
		a.missing = true
		return missing
	}
	return err
}

// look answers not_found if the path names something that does not exist.
func (a *address) look(v *store.View) (err error) {
	var endpoint hookglass.Endpoint
	var workspace int64
	rest, more := a.path, true
	for err == nil {
		var name string
		if _, rest, more = strings.Cut(rest, "{"); !more {
			return nil
		}
		name, rest, _ = strings.Cut(rest, "}")
		id := a.Param(name)
		number, _ := strconv.ParseInt(id, 10, 64) // anything else was refused before
		switch name {
		case "endpoint_id":
			endpoint, err = v.Endpoint(id)
		case "id":
			if endpoint.ID == "" {
				endpoint, err = v.Endpoint(id)
			} else {
				_, err = v.ListedEvent(string(endpoint.ID), id)
			}
		case "workspace_id":
			workspace = number
			_, err = v.Workspace(number)
		case "action_id":
			_, err = v.Action(string(endpoint.ID), id)
		case "action_run_id":
			_, err = v.ActionRun(string(endpoint.ID), id)
		case "alert_id":
			_, err = v.Alert(string(endpoint.ID), id)
		case "batch_id":
			_, err = v.ReplayBatch(string(endpoint.ID), id)
		case "case_id":
			_, err = v.ReplayCase(string(endpoint.ID), id)
		case "run_id":
			_, err = v.ReplayRun(string(endpoint.ID), id)
		case "target_id":
			_, err = v.ForwardingTarget(string(endpoint.ID), number)
		case "config_id":
			_, err = v.SignatureConfig(string(endpoint.ID), number)
		case "channel_id":
			_, err = v.Channel(id)
		case "tag_id":
			_, err = v.Tag(number)
		case "flow_id":
			_, err = v.Flow(id)
		case "gap_id":
			_, err = v.Gap(id)
		case "secret_id":
			_, err = v.ActionSecret(workspace, id)
		}
	}
	return err
}
