package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hookglass"
)

const actionColumns = `a.num, a.id, a.endpoint, e.id, a.name, a.enabled, a.failure_policy, a.position, a.conditions, a.steps, a.created_at, a.updated_at`

const actionTables = ` FROM actions a JOIN endpoints e ON e.num = a.endpoint`

func scanAction(scan func(...any) error) (a hookglass.Action, err error) {
	var enabled, created, updated int64
	var conditions, steps string
	if err := scan(&a.Num, &a.ID, &a.EndpointNum, &a.EndpointID, &a.Name, &enabled, &a.FailurePolicy, &a.Position, &conditions, &steps, &created, &updated); err != nil {
		return a, err
	}
	a.Enabled = enabled != 0
	a.CreatedAt, a.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	if err := json.Unmarshal([]byte(conditions), &a.Conditions); err != nil {
		return a, fmt.Errorf("conditions of %s: %w", a.ID, err)
	}
	if err := json.Unmarshal([]byte(steps), &a.Steps); err != nil {
		return a, fmt.Errorf("steps of %s: %w", a.ID, err)
	}
	return a, nil
}

// Actions lists the actions of an endpoint by position, starting at a place that [NextAction] returned; 0 is the
// beginning. Limit 0 is all.
func (v *View) Actions(ref string, from int64, limit int) ([]hookglass.Action, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return nil, err
	}
	return v.actions(e.Num, from, limit)
}

// positionBits is how many bits of a place hold the position.
const positionBits = 20

// NextAction returns a function that gives the place where a list continues after one of the found actions. The place
// names the following action, because positions close up when actions are deleted. If that action is deleted itself,
// the list continues at its former position.
func NextAction(found []hookglass.Action) func(hookglass.Action) int64 {
	return func(last hookglass.Action) int64 {
		next := found[1+slices.IndexFunc(found, func(a hookglass.Action) bool { return a.Num == last.Num })]
		return next.Num<<positionBits | int64(next.Position)
	}
}

func (v *View) actions(endpointNum, from int64, limit int) ([]hookglass.Action, error) {
	a := &args{}
	endpoint := a.add(endpointNum)
	query := "SELECT " + actionColumns + actionTables + " WHERE a.endpoint = " + endpoint + " AND a.position >= coalesce((SELECT o.position FROM actions o WHERE o.endpoint = " + endpoint +
		" AND o.num = " + a.add(from>>positionBits) + "), cast(" + a.add(from&(1<<positionBits-1)) + " AS bigint)) ORDER BY a.position, a.num" + a.limit(limit)
	return queryAll(v, scanAction, query, a.all()...)
}

// EnabledActions lists the actions of an endpoint that are enabled, by position.
func (v *View) EnabledActions(endpointNum int64) ([]hookglass.Action, error) {
	return queryAll(v, scanAction, "SELECT "+actionColumns+actionTables+" WHERE a.endpoint = $1 AND a.enabled = 1 ORDER BY a.position, a.num", endpointNum)
}

// HasActions reports whether events captured at the endpoint have actions to run.
func (v *View) HasActions(endpointNum int64) (bool, error) {
	return v.finds("SELECT num FROM actions WHERE endpoint = $1 AND enabled = 1 LIMIT 1", endpointNum)
}

// Action returns one action of an endpoint. It answers not_found.
func (v *View) Action(ref, id string) (a hookglass.Action, err error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return a, err
	}
	return v.action(e.Num, id)
}

func (v *View) action(endpointNum int64, id string) (hookglass.Action, error) {
	return one(v, "action", scanAction, "SELECT "+actionColumns+actionTables+" WHERE a.endpoint = $1 AND a.id = $2", &args{[]any{endpointNum, id}})
}

// ActionByNum returns an action by its Num. It answers not_found.
func (v *View) ActionByNum(num int64) (hookglass.Action, error) {
	a := &args{}
	query := "SELECT " + actionColumns + actionTables + " WHERE a.num = " + a.add(num) + " AND" + v.endpointScope(a)
	return one(v, "action", scanAction, query, a)
}

// LockActions lists the actions of an endpoint by position and locks them: nobody else can change them until the
// transaction ends. It answers not_found.
func (tx *Tx) LockActions(endpointNum int64) ([]hookglass.Action, error) {
	var num int64
	err := tx.queryRow("endpoint", "SELECT num FROM endpoints WHERE num = $1 AND deleted_at IS NULL"+tx.dialect.forUpdate(), []any{endpointNum}, &num)
	if err != nil {
		return nil, err
	}
	return tx.actions(endpointNum, 0, 0)
}

// ActionRef is something that a step refers to.
type ActionRef struct {
	Kind   string // RefSecret or RefTag
	Target int64  // the Num of a secret, the id of a tag
	Step   string // the step's reference key
}

// The kinds of references.
const (
	RefSecret = "secret"
	RefTag    = "tag"
)

// CreateAction stores a new action and sets its Num and times. The caller has locked the endpoint's actions.
func (tx *Tx) CreateAction(a *hookglass.Action, refs []ActionRef) error {
	conditions, steps, err := actionJSON(a)
	if err != nil {
		return err
	}
	a.CreatedAt, a.UpdatedAt = tx.Now, tx.Now
	tx.AnnounceAtOnce(TopicEndpoints)
	err = tx.queryRow("action", `INSERT INTO actions (id, endpoint, name, enabled, failure_policy, position, conditions, steps, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) RETURNING num`,
		[]any{a.ID, a.EndpointNum, a.Name, boolInt(a.Enabled), string(a.FailurePolicy), a.Position, conditions, steps, tx.Now.UnixMicro()}, &a.Num)
	if err != nil {
		return err
	}
	return tx.setActionRefs(a.Num, refs)
}

// SaveAction stores what can change of an action and its references; if refs is nil, those stay as they are.
func (tx *Tx) SaveAction(a *hookglass.Action, refs []ActionRef) error {
	conditions, steps, err := actionJSON(a)
	if err != nil {
		return err
	}
	a.UpdatedAt = tx.Now
	tx.AnnounceAtOnce(TopicEndpoints)
	err = tx.change("action", "UPDATE actions SET name = $2, enabled = $3, failure_policy = $4, position = $5, conditions = $6, steps = $7, updated_at = $8 WHERE num = $1",
		a.Num, a.Name, boolInt(a.Enabled), string(a.FailurePolicy), a.Position, conditions, steps, tx.Now.UnixMicro())
	if err != nil || refs == nil {
		return err
	}
	return tx.setActionRefs(a.Num, refs)
}

// PlaceAction moves an action to another position.
func (tx *Tx) PlaceAction(num int64, position int) error {
	return tx.change("action", "UPDATE actions SET position = $2 WHERE num = $1", num, position)
}

// DeleteAction deletes an action; its runs stay.
func (tx *Tx) DeleteAction(num int64) error {
	tx.AnnounceAtOnce(TopicEndpoints)
	if err := tx.setActionRefs(num, nil); err != nil {
		return err
	}
	return tx.change("action", "DELETE FROM actions WHERE num = $1", num)
}

func (tx *Tx) setActionRefs(num int64, refs []ActionRef) error {
	if _, err := tx.exec("DELETE FROM action_refs WHERE action = $1", num); err != nil {
		return err
	}
	for _, r := range refs {
		if _, err := tx.exec("INSERT INTO action_refs (kind, target, action, step) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING", r.Kind, r.Target, num, r.Step); err != nil {
			return err
		}
	}
	return nil
}

// ActionReferences lists the steps that refer to a secret or a tag.
func (v *View) ActionReferences(kind string, target int64) ([]hookglass.StepReference, error) {
	return queryAll(v, func(scan func(...any) error) (r hookglass.StepReference, err error) {
		err = scan(&r.EndpointID, &r.ActionID, &r.ActionName, &r.Step)
		return r, err
	}, `SELECT e.id, a.id, a.name, r.step FROM action_refs r JOIN actions a ON a.num = r.action JOIN endpoints e ON e.num = a.endpoint
		WHERE r.kind = $1 AND r.target = $2 AND e.deleted_at IS NULL ORDER BY a.num, r.step`, kind, target)
}

// ChannelReferences lists the steps of a workspace that name a channel by one of the given names; its id counts as a
// name. It reads the steps themselves: a channel may have been deleted under a step and another created by that name.
func (v *View) ChannelReferences(workspaceID int64, names ...string) (by []hookglass.StepReference, err error) {
	actions, err := queryAll(v, scanAction, "SELECT "+actionColumns+actionTables+
		` WHERE e.workspace_id = $1 AND e.deleted_at IS NULL AND a.steps LIKE '%"Type":"notify"%' ORDER BY a.num`, workspaceID)
	if err != nil {
		return nil, err
	}
	for _, a := range actions {
		for _, step := range a.Steps {
			if step.Type != hookglass.StepNotify {
				continue
			}
			var config struct {
				Channel string `json:"channel"`
			}
			if err := json.Unmarshal(step.Config, &config); err != nil {
				return nil, fmt.Errorf("step %s of %s: %w", step.ReferenceKey, a.ID, err)
			}
			if slices.Contains(names, config.Channel) {
				by = append(by, hookglass.StepReference{EndpointID: a.EndpointID, ActionID: a.ID, ActionName: a.Name, Step: step.ReferenceKey})
			}
		}
	}
	return by, nil
}

// RequireTag returns the id of a workspace's tag, creating it if necessary, and keeps it from being deleted until the
// transaction ends. An existing tag is rewritten in the same statement: if it were only read, it could be gone before
// it was locked.
func (tx *Tx) RequireTag(workspaceID int64, name string) (id int64, err error) {
	err = tx.queryRow("tag", "INSERT INTO tags (workspace_id, name, created_at) VALUES ($1, $2, $3)"+
		" ON CONFLICT (workspace_id, name) DO UPDATE SET name = excluded.name RETURNING id", []any{workspaceID, name, tx.Now.UnixMicro()}, &id)
	return id, err
}

func actionJSON(a *hookglass.Action) (conditions, steps string, err error) {
	c, err := json.Marshal(a.Conditions)
	if err != nil {
		return "", "", err
	}
	s, err := json.Marshal(a.Steps)
	return string(c), string(s), err
}
