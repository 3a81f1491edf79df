// Package declare makes a workspace what a declaration says: what is missing is made, what differs changed, what people
// made by hand left alone, and what was declared before and is no longer is deleted where that is asked for. It hides
// how things are recognised, what is remembered of earlier declarations, and how all of it is one transaction.
//
// The changes are those of the capabilities themselves, with their rules and entitlements; a dry run makes them and
// takes them back.
package declare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/action"
	"hookglass/internal/alert"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
)

// Bounds of a declaration: all of it is one transaction, behind which other writers stand.
const (
	MaxEndpoints = 500
	maxParts     = 2000 // of all endpoints
)

// tries is how often a declaration is tried while others delete what it is about.
const tries = 4

// defaultSet is the name of a set that gives none.
const defaultSet = "default"

var setPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Service is the capability. It is safe for concurrent use; declarations follow one another in the whole installation.
type Service struct {
	db        *store.DB
	endpoints *endpoint.Service
	actions   *action.Service
	alerts    *alert.Service
}

// New returns the service.
func New(db *store.DB, endpoints *endpoint.Service, actions *action.Service, alerts *alert.Service) *Service {
	return &Service{db, endpoints, actions, alerts}
}

// These end a transaction that is not to be kept.
var (
	errDryRun    = errors.New("declare: a dry run")
	errUnchanged = errors.New("declare: nothing differs")
)

// Apply makes the workspace what the declaration says, all of it or nothing, and returns what it did to each thing, in
// the order of the declaration; last comes what is no longer declared. A dry run changes nothing and returns what would
// be done.
//
// It answers validation_failed with all that is wrong, each with its path in the declaration such as
// endpoints.0.actions.1.name, and what the capabilities answer where a plan does not allow something.
func (s *Service) Apply(ctx context.Context, who hookglass.Principal, d api.Declaration, dryRun bool) (changes []hookglass.DeclaredChange, err error) {
	if err := who.MayManage(); err != nil {
		return nil, err
	}
	d = spelled(d)
	set, err := check(d)
	if err != nil {
		return nil, err
	}
	for range tries {
		changes, err = s.apply(ctx, who, set, d, dryRun)
		if !hookglass.Is(err, hookglass.CodeNotFound) {
			break
		}
	}
	return changes, err
}

// apply tries once. It answers not_found if somebody deleted meanwhile what it had looked at, as may happen on
// PostgreSQL: the next time it is missing from the beginning.
func (s *Service) apply(ctx context.Context, who hookglass.Principal, set string, d api.Declaration, dryRun bool) (changes []hookglass.DeclaredChange, err error) {
	err = s.db.Together(ctx, func(ctx context.Context) error {
		r := &run{Service: s, ctx: ctx, set: set, sets: make(map[string]string), seen: make(map[string]bool)}
		if err := r.open(who, d.Workspace.Value); err != nil {
			return err
		}
		if err := r.prune(d); err != nil {
			return err
		}
		last := r.changes
		r.changes = nil
		for i, e := range d.Endpoints {
			if err := r.endpoint(fmt.Sprintf("endpoints.%d", i), e); err != nil {
				return err
			}
		}
		if err := r.failed(); err != nil {
			return err
		}
		changes = append(r.changes, last...)
		if dryRun {
			return errDryRun
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return nil, err
	}
	return changes, nil
}

// spelled has the names of actions and alerts as their capabilities keep them, without blanks around them: by any
// other spelling they would not be found the next time.
func spelled(d api.Declaration) api.Declaration {
	d.Endpoints = slices.Clone(d.Endpoints)
	for i := range d.Endpoints {
		e := &d.Endpoints[i]
		e.Actions, e.Alerts = slices.Clone(e.Actions), slices.Clone(e.Alerts)
		for k := range e.Actions {
			e.Actions[k].Name.Value = strings.TrimSpace(e.Actions[k].Name.Value)
		}
		for k := range e.Alerts {
			e.Alerts[k].Name.Value = strings.TrimSpace(e.Alerts[k].Name.Value)
		}
	}
	return d
}

// check judges what can be judged without the database.
func check(d api.Declaration) (set string, err error) {
	var faults []hookglass.FieldError
	fault := func(field, format string, args ...any) {
		faults = append(faults, hookglass.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if d.Version.Set && d.Version.Value != 1 {
		fault("version", "must be 1")
	}
	set = defaultSet
	if d.Set.Set {
		if set = d.Set.Value; !setPattern.MatchString(set) {
			fault("set", "must be 1 to 63 of a-z, 0-9 and hyphen, beginning with a letter or digit")
		}
	}
	if most := tooMuch(d); most != "" { // and so is what is wrong with each
		fault("endpoints", "%s", most)
		return "", hookglass.InvalidFields(faults)
	}
	named := make(map[string]bool)
	once := func(list string, i int, field, name string) {
		at, key := fmt.Sprintf("%s.%d.%s", list, i, field), list+" "+field+" "+name
		switch {
		case name == "":
			fault(at, "is required")
		case named[key]:
			fault(at, "is declared twice")
		}
		named[key] = true
	}
	for i, e := range d.Endpoints {
		at := fmt.Sprintf("endpoints.%d", i)
		switch {
		case e.ID.Value != "":
			once("endpoints", i, "id", e.ID.Value)
		case e.CustomID.Value == "":
			fault(at+".custom_id", "is required: it says which endpoint this is")
		}
		if e.CustomID.Value != "" {
			once("endpoints", i, "custom_id", e.CustomID.Value)
		}
		for k, c := range e.SignatureConfigs {
			once(at+".signature_configs", k, "provider", c.Provider.Value)
		}
		for k, c := range e.ForwardingTargets {
			once(at+".forwarding_targets", k, "name", c.Name.Value)
		}
		for k, c := range e.Actions {
			once(at+".actions", k, "name", c.Name.Value)
		}
		for k, c := range e.Alerts {
			once(at+".alerts", k, "name", c.Name.Value)
		}
	}
	return set, hookglass.Refusal(faults, nil)
}

// tooMuch says how much a declaration may hold at most, where it holds more.
func tooMuch(d api.Declaration) string {
	if len(d.Endpoints) > MaxEndpoints {
		return fmt.Sprintf("may be %d at most", MaxEndpoints)
	}
	parts := 0
	for _, e := range d.Endpoints {
		parts += len(e.SignatureConfigs) + len(e.ForwardingTargets) + len(e.Actions) + len(e.Alerts)
	}
	if parts > maxParts {
		return fmt.Sprintf("may have %d signature configs, targets, actions and alerts at most", maxParts)
	}
	return ""
}

// run is one declaration being applied.
type run struct {
	*Service
	ctx       context.Context
	set       string
	asked     hookglass.Principal // who declares, maybe within more workspaces
	who       hookglass.Principal // within the workspace alone
	workspace int64
	known     []hookglass.Declared
	sets      map[string]string // which set declares what is known, by identity
	seen      map[string]bool   // what the declaration names, by identity
	changes   []hookglass.DeclaredChange
	faults    []hookglass.FieldError
	refused   error // the first that is no validation failure
}

// open finds the workspace and what was declared in it.
func (r *run) open(who hookglass.Principal, name string) error {
	return r.db.View(r.ctx, who, func(v *store.View) (err error) {
		none := hookglass.Invalid("workspace", "is no workspace of yours")
		var w hookglass.Workspace
		if id, err := strconv.ParseInt(name, 10, 64); err == nil && id > 0 || name == "" {
			w, err = v.HomeWorkspace(id)
			if name != "" && hookglass.Is(err, hookglass.CodeNotFound) {
				return none
			}
			if err != nil {
				return err
			}
		} else {
			all, err := v.Workspaces(who.Account)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(w hookglass.Workspace) bool { return w.Name == name })
			if i < 0 {
				return none
			}
			w = all[i]
		}
		r.workspace = w.ID
		r.asked, r.who = who, who
		r.who.System, r.who.Account, r.who.Workspace = false, w.AccountID, w.ID
		r.known, err = v.Declared(w.ID)
		for _, k := range r.known {
			r.sets[identity(k)] = k.Set
		}
		return err
	})
}

// fail keeps what is wrong at a path, and returns errors that are about nothing in the declaration.
func (r *run) fail(at, wrapped string, err error) error {
	var coded *hookglass.Error
	if !errors.As(err, &coded) {
		return err
	}
	switch coded.Code {
	case hookglass.CodeUnavailable, hookglass.CodeInternal, hookglass.CodeNotFound:
		return err
	}
	var faults []hookglass.FieldError
	for _, f := range coded.Details {
		path := at
		if field := strings.TrimPrefix(f.Field, wrapped+"."); field != "" && field != wrapped {
			path += "." + field
		}
		faults = append(faults, hookglass.FieldError{Field: path, Message: f.Message})
	}
	if len(faults) == 0 {
		faults = []hookglass.FieldError{{Field: at, Message: coded.Message}}
	}
	switch coded.Code {
	case hookglass.CodeValidationFailed, hookglass.CodeConflict:
		r.faults = append(r.faults, faults...)
	default:
		if r.refused == nil {
			r.refused = &hookglass.Error{Code: coded.Code, Message: coded.Message, Details: faults}
		}
	}
	return nil
}

// failed answers what was kept by fail.
func (r *run) failed() error {
	return hookglass.Refusal(r.faults, r.refused)
}

// part is one thing, whatever its kind.
type part struct {
	at      string // its path
	wrapped string // the name under which the contract puts such a thing
	kind    hookglass.DeclaredKind
	of      string // its endpoint, as the file calls it
	name    string
	found   bool
	secret  string // the field of a secret that changes; empty: none does
	change  func(context.Context) error
	// show returns the thing as the contract has it, and its ids once it is there.
	show func(context.Context) (shown any, endpoint hookglass.Endpoint, ref string, err error)
}

// settle makes or changes one thing. Where nothing differs it is as if nothing had been tried.
func (r *run) settle(p part) error {
	change := hookglass.DeclaredChange{Op: hookglass.OpCreate, Kind: p.kind, Endpoint: p.of, Name: p.name}
	var before any
	var err error
	var e hookglass.Endpoint
	ref := ""
	if p.found {
		if before, e, ref, err = p.show(r.ctx); err != nil {
			return err
		}
	}
	err = r.db.Together(r.ctx, func(ctx context.Context) error {
		if err := p.change(ctx); err != nil {
			return err
		}
		var after any
		if after, e, ref, err = p.show(ctx); err != nil {
			return err
		}
		if !p.found {
			return nil
		}
		change.Op = hookglass.OpUpdate
		if change.Fields, err = differences(before, after); err != nil {
			return err
		}
		shown := slices.ContainsFunc(change.Fields, func(f hookglass.FieldChange) bool { return f.Field == p.secret })
		if p.secret != "" && !shown { // names of headers that differ show that their values do
			change.Fields = append(change.Fields, hookglass.FieldChange{Field: p.secret})
		}
		if len(change.Fields) == 0 {
			return errUnchanged
		}
		return nil
	})
	if errors.Is(err, errUnchanged) {
		change.Op, err = hookglass.OpUnchanged, nil
	}
	if err != nil {
		return r.fail(p.at, p.wrapped, err)
	}
	if change.ID = ref; p.kind == hookglass.DeclaredEndpoint {
		change.ID, ref = string(e.ID), ""
	}
	r.changes = append(r.changes, change)
	return r.remember(p, hookglass.Declared{
		Set: r.set, Kind: p.kind, EndpointNum: e.Num, EndpointID: e.ID, Ref: ref, Name: p.of, Made: !p.found,
	})
}

// remember keeps that the declaration names a thing. One that another set declares is refused: the two would undo each
// other's work.
func (r *run) remember(p part, d hookglass.Declared) error {
	if p.name != "" {
		d.Name = p.name
	}
	id := identity(d)
	if r.seen[id] { // an endpoint, once by its id and once by its custom id
		r.faults = append(r.faults, hookglass.FieldError{Field: p.at, Message: "is declared twice"})
		return nil
	}
	r.seen[id] = true
	if set, known := r.sets[id]; known && set != r.set {
		r.faults = append(r.faults, hookglass.FieldError{Field: p.at, Message: fmt.Sprintf("is declared by the set %q", set)})
		return nil
	}
	return r.db.Update(r.ctx, r.who, func(tx *store.Tx) error { return tx.SaveDeclared(r.workspace, d) })
}

func identity(d hookglass.Declared) string {
	return fmt.Sprintf("%s %d %s", d.Kind, d.EndpointNum, d.Ref)
}

// volatile are the fields that are no matter of a declaration.
var volatile = []string{
	"id", "endpoint_id", "created_at", "updated_at", "event_count", "refused_count", "last_event_at", "tunnel_active", "expires_at", "workspace_id",
	"webhook_url", "email_address", "paused_at", "pause_reason", "consecutive_failures", "state", "state_changed_at",
}

// differences compares two things as the contract has them.
func differences(before, after any) ([]hookglass.FieldChange, error) {
	a, err := members(before)
	if err != nil {
		return nil, err
	}
	b, err := members(after)
	if err != nil {
		return nil, err
	}
	var fields []hookglass.FieldChange
	both := maps.Clone(a)
	maps.Copy(both, b)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		if !slices.Contains(volatile, name) && !bytes.Equal(a[name], b[name]) {
			fields = append(fields, hookglass.FieldChange{Field: name, Before: string(a[name]), After: string(b[name])})
		}
	}
	return fields, nil
}

// members are those of a thing, as JSON in one spelling: what people configured is kept as they wrote it, and texts can
// be written in many ways.
func members(v any) (m map[string]json.RawMessage, err error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	value := jsontext.Value(text)
	if err := value.Format(); err != nil {
		return nil, err
	}
	err = json.Unmarshal(value, &m)
	return m, err
}
