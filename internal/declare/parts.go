package declare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/draft"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
)

// endpoint settles an endpoint and then its parts.
func (r *run) endpoint(at string, d api.DeclaredEndpoint) error {
	ref, name := cmp.Or(d.ID.Value, d.CustomID.Value), cmp.Or(d.CustomID.Value, d.ID.Value)
	var e hookglass.Endpoint
	err := r.view(r.ctx, func(v *store.View) (err error) { e, err = v.Endpoint(ref); return err })
	if err != nil && !hookglass.Is(err, hookglass.CodeNotFound) {
		return err
	}
	found := err == nil
	if !found {
		fault, err := r.absent(at, d)
		if err != nil {
			return err
		}
		if fault != nil {
			r.faults = append(r.faults, *fault)
			return nil
		}
	}
	c := d.EndpointChange
	wanted, err := draft.Endpoint(&api.NewEndpoint{
		Name: c.Name, Kind: d.Kind, Provider: c.Provider, EmailLocalPart: d.EmailLocalPart, CustomID: c.CustomID, ProviderConfig: c.ProviderConfig,
		Response: c.Response, ResponseRules: c.ResponseRules, ResponseScript: c.ResponseScript, SchemaTracking: c.SchemaTracking, Enabled: c.Enabled,
	})
	if err != nil {
		return r.fail(at, "endpoint", err)
	}
	if found {
		r.keepFixed(at, &wanted, e)
	} else {
		wanted.WorkspaceID = &r.workspace
		if wanted.Name == nil {
			wanted.Name = &name
		}
	}
	faults := len(r.faults)
	refused := r.refused
	err = r.settle(part{
		at: at, wrapped: "endpoint", kind: hookglass.DeclaredEndpoint, of: name, found: found,
		change: func(ctx context.Context) (err error) {
			if found {
				e, err = r.endpoints.Update(ctx, r.who, string(e.ID), wanted)
			} else {
				e, err = r.endpoints.Create(ctx, r.who, wanted)
			}
			return err
		},
		show: func(ctx context.Context) (any, hookglass.Endpoint, string, error) {
			shown := api.FromEndpoint(e, api.Addresses{})
			shown.URL = nil
			return shown, e, "", nil
		},
	})
	if err != nil || len(r.faults) > faults && !found || r.refused != refused && !found {
		return err // there is nothing that its parts could belong to
	}
	return r.parts(at, name, e, d)
}

// absent judges an endpoint that the workspace does not have: nil if it can be made. One of another workspace is said
// to be there, to those who may see it: a file exported with a token of the account may hold endpoints of all.
func (r *run) absent(at string, d api.DeclaredEndpoint) (*hookglass.FieldError, error) {
	ref, field := d.CustomID.Value, at+".custom_id"
	if d.ID.Value != "" {
		ref, field = d.ID.Value, at+".id"
	}
	var there hookglass.Workspace
	err := r.db.View(r.ctx, r.asked, func(v *store.View) error {
		e, err := v.Endpoint(ref)
		if err != nil || e.WorkspaceID == 0 || e.WorkspaceID == r.workspace {
			return err
		}
		there, err = v.Workspace(e.WorkspaceID)
		return err
	})
	switch {
	case err != nil && !hookglass.Is(err, hookglass.CodeNotFound):
		return nil, err
	case there.ID != 0:
		message := fmt.Sprintf("is an endpoint of the workspace %q, and a file is for one workspace", there.Name)
		return &hookglass.FieldError{Field: field, Message: message}, nil
	case d.ID.Value != "":
		return &hookglass.FieldError{Field: field, Message: "is no endpoint of the workspace"}, nil
	}
	return nil, nil
}

// keepFixed notes what was declared otherwise than an endpoint has it and cannot change, and leaves it as it is.
func (r *run) keepFixed(at string, wanted *endpoint.Draft, e hookglass.Endpoint) {
	if wanted.Kind != nil && *wanted.Kind != e.Kind {
		r.faults = append(r.faults, hookglass.FieldError{Field: at + ".kind", Message: fmt.Sprintf("cannot change: the endpoint is of kind %s", e.Kind)})
	}
	if local := wanted.EmailLocalPart; local != nil && *local != "" && *local != e.EmailLocalPart { // null is one at random
		r.faults = append(r.faults, hookglass.FieldError{Field: at + ".email_local_part", Message: "cannot change"})
	}
	wanted.Kind, wanted.EmailLocalPart = nil, nil
}

// parts settles what belongs to an endpoint.
func (r *run) parts(at, name string, e hookglass.Endpoint, d api.DeclaredEndpoint) error {
	for i, c := range d.SignatureConfigs {
		if err := r.signature(fmt.Sprintf("%s.signature_configs.%d", at, i), name, e, c); err != nil {
			return err
		}
	}
	for i, c := range d.ForwardingTargets {
		if err := r.target(fmt.Sprintf("%s.forwarding_targets.%d", at, i), name, e, c); err != nil {
			return err
		}
	}
	for i, c := range d.Actions {
		if err := r.action(fmt.Sprintf("%s.actions.%d", at, i), name, e, c); err != nil {
			return err
		}
	}
	for i, c := range d.Alerts {
		if err := r.alert(fmt.Sprintf("%s.alerts.%d", at, i), name, e, c); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) view(ctx context.Context, fn func(*store.View) error) error {
	return r.db.View(ctx, r.who, fn)
}

// pick chooses among things of one name that which was declared before, or the first.
func pick[T any](r *run, kind hookglass.DeclaredKind, e hookglass.Endpoint, all []T, named func(T) bool, ref func(T) string) (one T, found bool) {
	for _, t := range all {
		if !named(t) {
			continue
		}
		if declared := slices.ContainsFunc(r.known, func(d hookglass.Declared) bool {
			return d.Kind == kind && d.EndpointNum == e.Num && d.Ref == ref(t) && d.Set == r.set
		}); declared {
			return t, true
		}
		if !found {
			one, found = t, true
		}
	}
	return one, found
}

func (r *run) signature(at, of string, e hookglass.Endpoint, d api.DeclaredSignatureConfig) error {
	wanted, err := draft.Signature(api.SignatureConfigChange{Provider: d.Provider, Secret: d.Secret, Enabled: d.Enabled, Options: d.Options})
	if err != nil {
		return r.fail(at, "signature_config", err)
	}
	configs, err := r.endpoints.SignatureConfigs(r.ctx, r.who, string(e.ID))
	if err != nil {
		return err
	}
	c, found := pick(r, hookglass.DeclaredSignature, e, configs,
		func(c hookglass.SignatureConfig) bool { return c.Provider == d.Provider.Value },
		func(c hookglass.SignatureConfig) string { return strconv.FormatInt(c.ID, 10) })
	secret := ""
	if found && wanted.Secret != nil {
		same, err := r.endpoints.HoldsSecret(c, *wanted.Secret)
		if err != nil {
			return err
		}
		if secret = "secret"; same {
			secret, wanted.Secret = "", nil
		}
	}
	return r.settle(part{
		at: at, wrapped: "signature_config", kind: hookglass.DeclaredSignature, of: of, name: d.Provider.Value, found: found, secret: secret,
		change: func(ctx context.Context) (err error) {
			if found {
				c, err = r.endpoints.UpdateSignatureConfig(ctx, r.who, string(e.ID), c.ID, wanted)
			} else {
				c, err = r.endpoints.CreateSignatureConfig(ctx, r.who, string(e.ID), wanted, false)
			}
			return err
		},
		show: func(context.Context) (any, hookglass.Endpoint, string, error) {
			return api.FromSignatureConfig(c), e, strconv.FormatInt(c.ID, 10), nil
		},
	})
}

func (r *run) target(at, of string, e hookglass.Endpoint, d api.DeclaredForwardingTarget) error {
	wanted, err := draft.Target(api.NewForwardingTarget(d))
	if err != nil {
		return r.fail(at, "forwarding_target", err)
	}
	var targets []hookglass.ForwardingTarget
	if err := r.view(r.ctx, func(v *store.View) (err error) { targets, err = v.ForwardingTargets(string(e.ID), 0, 0); return err }); err != nil {
		return err
	}
	t, found := pick(r, hookglass.DeclaredTarget, e, targets,
		func(t hookglass.ForwardingTarget) bool { return t.Name == d.Name.Value },
		func(t hookglass.ForwardingTarget) string { return strconv.FormatInt(t.ID, 10) })
	secret := ""
	if found && wanted.Headers != nil {
		same, err := r.endpoints.HoldsHeaders(t, *wanted.Headers)
		if err != nil {
			return err
		}
		if secret = "headers"; same {
			secret, wanted.Headers = "", nil
		}
	}
	return r.settle(part{
		at: at, wrapped: "forwarding_target", kind: hookglass.DeclaredTarget, of: of, name: d.Name.Value, found: found, secret: secret,
		change: func(ctx context.Context) (err error) {
			if found {
				t, err = r.endpoints.UpdateForwardingTarget(ctx, r.who, string(e.ID), t.ID, wanted)
			} else {
				t, err = r.endpoints.CreateForwardingTarget(ctx, r.who, string(e.ID), wanted)
			}
			return err
		},
		show: func(context.Context) (any, hookglass.Endpoint, string, error) {
			return api.FromForwardingTarget(t), e, strconv.FormatInt(t.ID, 10), nil
		},
	})
}

func (r *run) action(at, of string, e hookglass.Endpoint, d api.NewAction) error {
	wanted, err := draft.Action(api.ActionChange(d))
	if err != nil {
		return r.fail(at, "endpoint_action", err)
	}
	var actions []hookglass.Action
	if err := r.view(r.ctx, func(v *store.View) (err error) { actions, err = v.Actions(string(e.ID), 0, 0); return err }); err != nil {
		return err
	}
	a, found := pick(r, hookglass.DeclaredAction, e, actions,
		func(a hookglass.Action) bool { return a.Name == d.Name.Value }, func(a hookglass.Action) string { return a.ID })
	return r.settle(part{
		at: at, wrapped: "endpoint_action", kind: hookglass.DeclaredAction, of: of, name: d.Name.Value, found: found,
		change: func(ctx context.Context) (err error) {
			if found {
				a, err = r.actions.Update(ctx, r.who, string(e.ID), a.ID, wanted)
			} else {
				a, err = r.actions.Create(ctx, r.who, string(e.ID), wanted)
			}
			return err
		},
		show: func(context.Context) (any, hookglass.Endpoint, string, error) { return api.FromAction(a), e, a.ID, nil },
	})
}

func (r *run) alert(at, of string, e hookglass.Endpoint, d api.DeclaredAlert) error {
	ids, err := r.channels(at, d.Channels)
	if err != nil {
		return err
	}
	wanted, err := draft.Alert(api.AlertChange{Name: d.Name, Kind: d.Kind, Enabled: d.Enabled, Config: d.Config, ChannelIDs: ids})
	if err != nil {
		return r.fail(at, "alert", err)
	}
	var alerts []hookglass.Alert
	if err := r.view(r.ctx, func(v *store.View) (err error) { alerts, err = v.Alerts(string(e.ID), 0, 0); return err }); err != nil {
		return err
	}
	a, found := pick(r, hookglass.DeclaredAlert, e, alerts,
		func(a hookglass.Alert) bool { return a.Name == d.Name.Value }, func(a hookglass.Alert) string { return a.ID })
	return r.settle(part{
		at: at, wrapped: "alert", kind: hookglass.DeclaredAlert, of: of, name: d.Name.Value, found: found,
		change: func(ctx context.Context) (err error) {
			if found {
				a, err = r.alerts.Update(ctx, r.who, string(e.ID), a.ID, wanted)
			} else {
				a, err = r.alerts.Create(ctx, r.who, string(e.ID), wanted)
			}
			return err
		},
		show: func(ctx context.Context) (any, hookglass.Endpoint, string, error) {
			err := r.view(ctx, func(v *store.View) (err error) { a, err = v.Alert(string(e.ID), a.ID); return err })
			slices.Sort(a.ChannelIDs)
			return api.FromAlert(a), e, a.ID, err
		},
	})
}

// channels finds notification channels by name or id.
func (r *run) channels(at string, names api.Optional[[]string]) (ids api.Optional[[]string], err error) {
	if !names.Set || names.Null {
		return names, nil
	}
	ids = api.Some([]string{})
	err = r.view(r.ctx, func(v *store.View) error {
		for i, name := range names.Value {
			c, err := v.ChannelIn(r.workspace, name)
			if hookglass.Is(err, hookglass.CodeNotFound) {
				r.faults = append(r.faults, hookglass.FieldError{
					Field: fmt.Sprintf("%s.channels.%d", at, i), Message: "is no notification channel of the workspace",
				})
				continue
			}
			if err != nil {
				return err
			}
			ids.Value = append(ids.Value, c.ID)
		}
		return nil
	})
	slices.Sort(ids.Value)
	return ids, err
}

// prune looks at what the set declared before and the declaration no longer names. It comes first, so that what goes
// makes room for what comes.
func (r *run) prune(d api.Declaration) error {
	declared := namesIn(d)
	gone := make(map[int64]bool)
	var endpoints, parts []hookglass.Declared
	for _, k := range r.known {
		if k.Kind == hookglass.DeclaredEndpoint {
			endpoints = append(endpoints, k)
		} else {
			parts = append(parts, k)
		}
	}
	for _, k := range append(endpoints, parts...) { // with an endpoint goes what it has
		if k.Set != r.set || gone[k.EndpointNum] {
			continue
		}
		var e hookglass.Endpoint
		if err := r.view(r.ctx, func(v *store.View) (err error) { e, err = v.Endpoint(string(k.EndpointID)); return err }); err != nil {
			return err
		}
		if k.Kind == hookglass.DeclaredAction || k.Kind == hookglass.DeclaredAlert {
			k.Name = strings.TrimSpace(k.Name) // an older version kept it as it was declared
		}
		if declared.has(k, e) {
			continue
		}
		dropped, err := r.drop(k, e, cmp.Or(e.CustomID, string(e.ID)), d.Prune.Value)
		if err != nil {
			return err
		}
		if dropped && k.Kind == hookglass.DeclaredEndpoint {
			gone[k.EndpointNum] = true
		}
	}
	return nil
}

// declaredNames are what a declaration names.
type declaredNames map[declaredName]bool

// declaredName is of an endpoint, which is named by its id or its custom id, or of a part of one.
type declaredName struct {
	kind     hookglass.DeclaredKind
	endpoint string
	name     string // of a part
}

func namesIn(d api.Declaration) declaredNames {
	names := declaredNames{}
	for _, e := range d.Endpoints {
		for _, ref := range []string{e.ID.Value, e.CustomID.Value} {
			if ref == "" {
				continue
			}
			names[declaredName{hookglass.DeclaredEndpoint, ref, ""}] = true
			for _, c := range e.SignatureConfigs {
				names[declaredName{hookglass.DeclaredSignature, ref, c.Provider.Value}] = true
			}
			for _, c := range e.ForwardingTargets {
				names[declaredName{hookglass.DeclaredTarget, ref, c.Name.Value}] = true
			}
			for _, c := range e.Actions {
				names[declaredName{hookglass.DeclaredAction, ref, c.Name.Value}] = true
			}
			for _, c := range e.Alerts {
				names[declaredName{hookglass.DeclaredAlert, ref, c.Name.Value}] = true
			}
		}
	}
	return names
}

// has reports whether they name what was declared before, of an endpoint as it is now.
func (names declaredNames) has(k hookglass.Declared, e hookglass.Endpoint) bool {
	name := k.Name
	if k.Kind == hookglass.DeclaredEndpoint {
		name = ""
	}
	return names[declaredName{k.Kind, string(e.ID), name}] || e.CustomID != "" && names[declaredName{k.Kind, e.CustomID, name}]
}

// drop does with one thing that is no longer declared what is to be done.
func (r *run) drop(k hookglass.Declared, e hookglass.Endpoint, of string, prune bool) (dropped bool, err error) {
	change := hookglass.DeclaredChange{Op: hookglass.OpKeep, Kind: k.Kind, Endpoint: of, Name: k.Name, ID: k.Ref}
	if k.Kind == hookglass.DeclaredEndpoint {
		change.Name, change.ID = "", string(e.ID)
	}
	switch {
	case !k.Made:
		change.Op = hookglass.OpRelease
	case prune:
		change.Op = hookglass.OpDelete
		err := r.remove(k, e)
		if hookglass.Is(err, hookglass.CodeNotFound) { // somebody was quicker
			return false, r.forget(k)
		}
		if err != nil {
			return false, err
		}
	default:
		r.changes = append(r.changes, change)
		return false, nil
	}
	r.changes = append(r.changes, change)
	return change.Op == hookglass.OpDelete, r.forget(k)
}

func (r *run) forget(k hookglass.Declared) error {
	r.known = slices.DeleteFunc(r.known, func(d hookglass.Declared) bool { return d.Num == k.Num })
	delete(r.sets, identity(k))
	return r.db.Update(r.ctx, r.who, func(tx *store.Tx) error { return tx.ForgetDeclared(k.Num) })
}

func (r *run) remove(k hookglass.Declared, e hookglass.Endpoint) error {
	ref := string(e.ID)
	number, _ := strconv.ParseInt(k.Ref, 10, 64) // of the kinds that have one
	switch k.Kind {
	case hookglass.DeclaredEndpoint:
		_, err := r.endpoints.Delete(r.ctx, r.who, ref)
		return err
	case hookglass.DeclaredSignature:
		return r.endpoints.DeleteSignatureConfig(r.ctx, r.who, ref, number)
	case hookglass.DeclaredTarget:
		return r.endpoints.DeleteForwardingTarget(r.ctx, r.who, ref, number)
	case hookglass.DeclaredAction:
		return r.actions.Delete(r.ctx, r.who, ref, k.Ref)
	default:
		return r.alerts.Delete(r.ctx, r.who, ref, k.Ref)
	}
}
