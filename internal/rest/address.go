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

// address is where a request's path leads, which is asked when the request is refused. It stands around the framework's
// context.
type address struct {
	inner
	path    string // as the table has it
	missing bool   // the answer under way says so, whatever status the framework has for it
	ctx     context.Context
}

type (
	inner      huma.Context // the framework's, under a name that leaves Context to its method
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

// addressed notes where the path leads, for whoever refuses the request.
func addressed(hc huma.Context, next func(huma.Context)) {
	a := &address{inner: hc, path: hc.Operation().Path}
	a.ctx = context.WithValue(hc.Context(), addressKey{}, a)
	next(a)
}

// faultsOfRequests are what a request is refused for by what is in it. That something in its path is not there for who
// asks comes before them: a resource of others is 404, whatever is sent to it (decisions, section 3).
var faultsOfRequests = map[hookglass.Code]bool{
	hookglass.CodeInvalidJSON: true, hookglass.CodeValidationFailed: true, hookglass.CodePayloadTooLarge: true, hookglass.CodeUnsupportedMediaType: true,
	hookglass.CodeTargetNotAllowed: true, hookglass.CodePlanRequired: true, hookglass.CodePaymentMethodRequired: true, hookglass.CodeSubscriptionRequired: true,
	hookglass.CodeReleaseOff: true, hookglass.CodeRecipientNotAllowed: true,
}

// told is the error that the caller is told: err, or that what the path names is not there. It is looked for only
// now, so a request that is in order costs no look.
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

// look answers not_found where the path names something that is not there.
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
		number, _ := strconv.ParseInt(id, 10, 64) // what is no number was refused before
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
			_, err = v.SignatureConfig(endpoint.Num, number)
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
