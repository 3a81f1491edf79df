package action

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/store"
)

const maxName = 200 // characters, of an action and of a step

// Draft is what a caller sets on an action. A nil field is not named.
type Draft struct {
	Name          *string
	Enabled       *bool
	FailurePolicy *string
	Position      *int64
	Conditions    *[]ConditionDraft
	Steps         *[]StepDraft // replaces all
}

// ConditionDraft is a trigger condition as it was sent.
type ConditionDraft struct {
	Field    string
	Operator string
	Value    *string
}

// StepDraft is a step as it was sent.
type StepDraft struct {
	ReferenceKey  *string
	Type          string
	Name          *string
	ConfigVersion *int64
	FailurePolicy *string
	Config        []byte // JSON; nil: none was sent
	Conditions    []StepConditionDraft
}

// StepConditionDraft is a condition of a step as it was sent.
type StepConditionDraft struct {
	Source   string
	Path     *string // nil: none was sent
	Operator string
	Value    []byte // JSON; nil: none was sent
}

// definition is the result of reading a draft: its faults, and what its steps refer to.
type definition struct {
	faults    []hookglass.FieldError
	forbidden int // how many of the faults are of targets that may not be reached
	secrets   []mention
	tags      []mention
	channels  []mention
}

// fails answers target_not_allowed if that is all that is wrong, and otherwise validation_failed.
func (d *definition) fails() error {
	switch {
	case len(d.faults) == 0:
		return nil
	case d.forbidden == len(d.faults):
		return &hookglass.Error{Code: hookglass.CodeTargetNotAllowed, Message: "Outbound protection does not allow this target.", Details: d.faults}
	}
	return hookglass.InvalidFields(d.faults)
}

// mention is a name that a step refers to.
type mention struct{ name, step, field string }

func (d *definition) fault(field, format string, args ...any) {
	d.faults = append(d.faults, hookglass.FieldError{Field: "endpoint_action." + field, Message: fmt.Sprintf(format, args...)})
}

// noSecret and noChannel fault what a step refers to and the workspace does not have.
func (d *definition) noSecret(m mention) {
	d.fault(m.field, "names the secret %s, which the workspace does not have", m.name)
}

func (d *definition) noChannel(m mention) {
	d.fault(m.field, "is no notification channel of the workspace")
}

func (d *definition) secretNames() []string {
	names := make([]string, len(d.secrets))
	for i, m := range d.secrets {
		names[i] = m.name
	}
	return names
}

// define applies the fields that the draft sets to the action, and collects their faults.
func (s *Service) define(d Draft, a *hookglass.Action) (def definition) {
	if d.Name != nil {
		a.Name = strings.TrimSpace(*d.Name)
		if fault := nameFault(a.Name); fault != "" {
			def.fault("name", "%s", fault)
		}
	}
	if d.Enabled != nil {
		a.Enabled = *d.Enabled
	}
	if d.FailurePolicy != nil {
		a.FailurePolicy = hookglass.FailurePolicy(*d.FailurePolicy)
		if !validPolicy(a.FailurePolicy) {
			def.fault("failure_policy", "must be continue or stop")
		}
	}
	if d.Position != nil && *d.Position < 1 {
		def.fault("position", "must be 1 or more")
	}
	if d.Conditions != nil {
		a.Conditions = def.conditions(*d.Conditions)
	}
	if d.Steps != nil {
		a.Steps = s.steps(&def, *d.Steps)
		found := s.inspect(a.Steps)
		def.faults = append(def.faults, found.faults...)
		def.secrets, def.tags, def.channels = found.secrets, found.tags, found.channels
	}
	return def
}

// change copies the fields that the draft sets from defined, on which define applied them.
func (d Draft) change(a *hookglass.Action, defined hookglass.Action) {
	if d.Name != nil {
		a.Name = defined.Name
	}
	if d.Enabled != nil {
		a.Enabled = defined.Enabled
	}
	if d.FailurePolicy != nil {
		a.FailurePolicy = defined.FailurePolicy
	}
	if d.Conditions != nil {
		a.Conditions = defined.Conditions
	}
	if d.Steps != nil {
		a.Steps = defined.Steps
	}
}

func nameFault(name string) string {
	if n := utf8.RuneCountInString(name); n == 0 || n > maxName {
		return fmt.Sprintf("must have 1 to %d characters", maxName)
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return "may not hold control characters"
	}
	return ""
}

func validPolicy(p hookglass.FailurePolicy) bool {
	return p == hookglass.FailureContinue || p == hookglass.FailureStop
}

// readable cuts conditions to one more than the limit: enough to see that there are too many.
func readable[T any](sent []T) []T { return sent[:min(len(sent), hookglass.MaxConditions+1)] }

func (d *definition) conditions(sent []ConditionDraft) []hookglass.Condition {
	sent = readable(sent)
	made := make([]hookglass.Condition, 0, len(sent))
	for _, c := range sent {
		condition := hookglass.Condition{Field: c.Field, Operator: c.Operator}
		if c.Value != nil {
			condition.Value = *c.Value
		}
		made = append(made, condition)
	}
	_, faults := NewTrigger(made)
	for i, c := range sent {
		if c.Value == nil || *c.Value != "" {
			continue
		}
		for j := range faults { // a trigger cannot tell an empty value from a missing one
			if faults[j].Field == fmt.Sprintf("conditions.%d.value", i) {
				faults[j].Message = "must not be empty"
			}
		}
	}
	d.add("", faults)
	return made
}

// add adds faults whose fields are relative to at.
func (d *definition) add(at string, faults []hookglass.FieldError) {
	for _, f := range faults {
		d.fault(at+f.Field, "%s", f.Message)
	}
}

// mostSteps is how many steps the largest plan allows in an action.
var mostSteps = hookglass.Account{Plan: hookglass.PlanBusiness}.Entitlements().StepsPerAction()

// steps reads the steps as sent, up to one more than any plan allows: enough for [mayHave] to refuse them for their
// number.
func (s *Service) steps(def *definition, sent []StepDraft) []hookglass.Step {
	sent = sent[:min(len(sent), mostSteps+1)]
	taken := make(map[string]bool)
	for i, d := range sent {
		if d.ReferenceKey == nil {
			continue
		}
		key := *d.ReferenceKey
		switch {
		case !referenceKey.MatchString(key):
			def.fault(fmt.Sprintf("steps.%d.reference_key", i), "must be 1 to 64 of a-z, A-Z, 0-9, underscore and hyphen, beginning with a letter or an underscore")
		case taken[key]:
			def.fault(fmt.Sprintf("steps.%d.reference_key", i), "is that of another step of the action")
		}
		taken[key] = true
	}
	made := make([]hookglass.Step, 0, len(sent))
	for i, d := range sent {
		made = append(made, s.step(def, fmt.Sprintf("steps.%d.", i), d, taken))
	}
	return made
}

// step reads one step. at is the prefix of its fields. taken are the reference keys of the action, to which it adds a
// derived one.
func (s *Service) step(def *definition, at string, d StepDraft, taken map[string]bool) hookglass.Step {
	st := hookglass.Step{Type: hookglass.StepType(d.Type), ConfigVersion: hookglass.ConfigVersion}
	if d.Name != nil {
		st.Name = strings.TrimSpace(*d.Name)
		if fault := nameFault(st.Name); fault != "" {
			def.fault(at+"name", "%s", fault)
		}
	} else {
		st.Name = d.Type
	}
	if d.ReferenceKey != nil {
		st.ReferenceKey = *d.ReferenceKey
	} else {
		st.ReferenceKey = deriveKey(st.Name, d.Type, taken)
		taken[st.ReferenceKey] = true
	}
	if d.ConfigVersion != nil && *d.ConfigVersion != hookglass.ConfigVersion {
		def.fault(at+"config_version", "must be %d, the current version", hookglass.ConfigVersion)
	}
	if d.FailurePolicy != nil {
		if st.FailurePolicy = hookglass.FailurePolicy(*d.FailurePolicy); !validPolicy(st.FailurePolicy) {
			def.fault(at+"failure_policy", "must be continue, stop or null")
		}
	}
	if slices.Contains(hookglass.StepTypes, st.Type) {
		st.Config = s.config(def, at+"config", st.Type, d.Config)
	} else {
		def.fault(at+"step_type", "must be one of forward, notify, tag, ignore, transform and http_request")
	}
	st.Conditions = def.stepConditions(at, d.Conditions)
	return st
}

// config reads the configuration of a step, whose field is at. A missing one counts as {}.
func (s *Service) config(def *definition, at string, kind hookglass.StepType, sent []byte) []byte {
	if sent == nil {
		sent = []byte("{}")
	}
	stored, faults, forbidden := s.checkConfig(kind, sent)
	if forbidden {
		def.forbidden++
	}
	for _, f := range faults {
		field := at
		if f.Field != "" {
			field += "." + f.Field
		}
		def.fault(field, "%s", f.Message)
	}
	return stored
}

// referenceKey is the form of reference keys. They have no dots, which divide names in templates.
var referenceKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// deriveKey derives a reference key that is not taken yet from a step's name.
func deriveKey(name, kind string, taken map[string]bool) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	key := cmp.Or(strings.Trim(b.String(), "_"), kind)
	if key == "" || key[0] >= '0' && key[0] <= '9' {
		key = "step_" + key
	}
	key = strings.Trim(key[:min(len(key), 56)], "_") // room for a number
	unique := key
	for n := 2; taken[unique]; n++ {
		unique = fmt.Sprintf("%s_%d", key, n)
	}
	return unique
}

func (d *definition) stepConditions(at string, sent []StepConditionDraft) []hookglass.StepCondition {
	var made []hookglass.StepCondition
	for i, c := range readable(sent) {
		condition := hookglass.StepCondition{Source: c.Source, Operator: c.Operator, Value: bytes.TrimSpace(c.Value)}
		if c.Path == nil { // "" is a pointer, to the whole source
			d.fault(fmt.Sprintf("%sconditions.%d.path", at, i), "is required")
		} else {
			condition.Path = *c.Path
		}
		if takesNoValue(c.Operator) && string(condition.Value) == "null" || len(condition.Value) == 0 {
			condition.Value = nil
		}
		made = append(made, condition)
	}
	if _, faults := NewGuard(made); len(faults) > 0 {
		d.add(at, faults)
	}
	return made
}

// inspect collects what steps refer to, and faults references to steps that do not run earlier. It skips invalid
// configurations, which are faulted already.
func (s *Service) inspect(steps []hookglass.Step) (def definition) {
	before := make(map[string]bool)
	for i, of := range steps {
		in := inspection{def: &def, before: before, step: of.ReferenceKey, at: fmt.Sprintf("steps.%d.", i)}
		for j, c := range of.Conditions {
			in.source(c.Source, fmt.Sprintf("conditions.%d.source", j))
		}
		if st, err := readStep(of, ""); err == nil {
			in.config(&st)
		}
		before[of.ReferenceKey] = true
	}
	return def
}

// inspection looks through one step.
type inspection struct {
	def    *definition
	before map[string]bool // the steps that run before it
	step   string          // its reference key
	at     string          // its field, with the dot behind it
}

func (in inspection) config(st *step) {
	switch st.Type {
	case hookglass.StepNotify:
		in.def.channels = append(in.def.channels, mention{st.notify.Channel, in.step, in.at + "config.channel"})
	case hookglass.StepTag:
		in.def.tags = append(in.def.tags, mention{st.tag.Tag, in.step, in.at + "config.tag"})
	case hookglass.StepTransform:
		t := st.transform.operations
		in.source(t.Source, "config.source")
		for field, text := range t.Templates() {
			in.template(text, "config."+field)
		}
		for field, p := range t.Reads() {
			if tokens := p.Tokens(); len(tokens) > 1 && tokens[0] == "steps" {
				in.earlier(tokens[1], "config."+field)
			}
		}
	case hookglass.StepRequest:
		in.template(st.request.URL, "config.url")
		in.template(st.request.Body, "config.body")
		for _, h := range st.request.Headers {
			in.template(h.Value, "config.headers."+h.Name)
		}
	}
}

// source checks the source of a condition or a transform, which may be a step.
func (in inspection) source(source, field string) {
	if key, ok := strings.CutPrefix(source, "steps."); ok {
		in.earlier(key, field)
	}
}

func (in inspection) template(text, field string) {
	t, err := ParseTemplate(text, InText)
	if err != nil {
		return // faulted with the configuration
	}
	for _, name := range t.Secrets() {
		in.def.secrets = append(in.def.secrets, mention{name, in.step, in.at + field})
	}
	for _, key := range t.Steps() {
		in.earlier(key, field)
	}
}

func (in inspection) earlier(key, field string) {
	if !in.before[key] {
		in.def.fault(in.at+field, "refers to steps.%s, which is no earlier step of the action", key)
	}
}

// resolve finds what the steps refer to and locks it against deletion and renaming until the transaction ends. A tag
// that the workspace does not have is created, as when a request is tagged (spec: decisions, section 13); a secret or a
// channel that it does not have is validation_failed.
func (s *Service) resolve(tx *store.Tx, e hookglass.Endpoint, def definition) (refs []store.ActionRef, err error) {
	refs = []store.ActionRef{}
	var missing definition
	found, err := tx.RequireActionSecrets(e.WorkspaceID, def.secretNames())
	if err != nil {
		return nil, err
	}
	for _, m := range def.secrets {
		if num, ok := found[m.name]; ok {
			refs = append(refs, store.ActionRef{Kind: store.RefSecret, Target: num, Step: m.step})
		} else {
			missing.noSecret(m)
		}
	}
	byName := func(a, b mention) int { return strings.Compare(a.name, b.name) } // all transactions lock them in one order
	slices.SortFunc(def.channels, byName)
	for _, m := range def.channels {
		_, err := tx.RequireChannel(e.WorkspaceID, m.name)
		if err == nil {
			continue
		}
		if !hookglass.Is(err, hookglass.CodeNotFound) {
			return nil, err
		}
		missing.noChannel(m)
	}
	if err := missing.fails(); err != nil {
		return nil, err
	}
	slices.SortFunc(def.tags, byName)
	for _, m := range def.tags {
		id, err := tx.RequireTag(e.WorkspaceID, m.name)
		if err != nil {
			return nil, err
		}
		refs = append(refs, store.ActionRef{Kind: store.RefTag, Target: id, Step: m.step})
	}
	return refs, nil
}
