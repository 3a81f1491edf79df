package endpointsfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"hookglass/api"
)

// Existing is an endpoint with what belongs to it, as the API answers it and under the API's names.
type Existing struct {
	Endpoint         api.Endpoint           `json:"endpoint"`
	SignatureConfigs []api.SignatureConfig  `json:"signature_configs"`
	Targets          []api.ForwardingTarget `json:"forwarding_targets"`
	Actions          []api.Action           `json:"actions"`
	Alerts           []api.Alert            `json:"alerts"`
}

// Distinct gives things of an endpoint that have one name names that differ, since a file tells them apart by their
// names, and says for a person which they are.
func Distinct(existing []Existing) (notes []string) {
	for i := range existing {
		e := &existing[i]
		e.Targets, e.Actions, e.Alerts = slices.Clone(e.Targets), slices.Clone(e.Actions), slices.Clone(e.Alerts)
		for _, list := range []struct {
			what  string
			names []*string
		}{
			{"forwarding target", names(e.Targets, func(t *api.ForwardingTarget) *string { return &t.Name })},
			{"action", names(e.Actions, func(a *api.Action) *string { return &a.Name })},
			{"alert", names(e.Alerts, func(a *api.Alert) *string { return &a.Name })},
		} {
			taken := make(map[string]bool)
			for _, name := range list.names {
				taken[*name] = true
			}
			first := make(map[string]bool)
			for _, name := range list.names {
				was := *name
				for n := 2; first[*name] || *name != was && taken[*name]; n++ {
					*name = numbered(was, n)
				}
				if first[*name] = true; *name != was {
					notes = append(notes, fmt.Sprintf("%s has more than one %s called %q; one is %q in the file, and would be made beside them where the file is applied to the same endpoint: "+
						"give it that name there first", cmp.Or(deref(e.Endpoint.CustomID), e.Endpoint.ID), list.what, was, *name))
				}
			}
		}
	}
	return notes
}

func names[T any](all []T, of func(*T) *string) []*string {
	names := make([]*string, len(all))
	for i := range all {
		names[i] = of(&all[i])
	}
	return names
}

// numbered is a name with a number behind it, within what a name may have.
func numbered(name string, n int) string {
	if r := []rune(name); len(r) > mostOfName {
		name = string(r[:mostOfName])
	}
	return strings.TrimRight(name, " ") + " " + strconv.Itoa(n)
}

// mostOfName leaves room for a number.
const mostOfName = 190

// Write writes a file that declares what exists, whose names are [Distinct]. channels are the names of notification
// channels by their ids. No secret is in it: a comment says where the name of one belongs.
func Write(w io.Writer, existing []Existing, channels map[string]string) error {
	endpoints := &yaml.Node{Kind: yaml.SequenceNode}
	for _, e := range existing {
		n, err := writeEndpoint(e, channels)
		if err != nil {
			return err
		}
		endpoints.Content = append(endpoints.Content, n)
	}
	root := &mapping{}
	root.set("version", 1)
	root.node("endpoints", endpoints)
	if root.err != nil {
		return root.err
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(root.made()); err != nil {
		return err
	}
	return encoder.Close()
}

func writeEndpoint(e Existing, channels map[string]string) (*yaml.Node, error) {
	m := &mapping{}
	if e.Endpoint.CustomID == nil {
		m.set("id", e.Endpoint.ID)
	}
	m.some("custom_id", e.Endpoint.CustomID)
	m.set("name", e.Endpoint.Name)
	if e.Endpoint.Kind == "email" {
		m.set("kind", "email")
		if e.Endpoint.EmailAddress != nil {
			local, _, _ := strings.Cut(*e.Endpoint.EmailAddress, "@")
			m.set("email_local_part", local)
		}
	}
	m.some("provider", e.Endpoint.Provider)
	// Mail is answered by its protocol: settings of answers are refused, though older versions took them.
	answers := e.Endpoint.Kind != "email"
	if c := e.Endpoint.ProviderConfig; answers && (c.Handshake != nil || c.ResponseMode != "") {
		m.set("provider_config", c)
	}
	m.enabled(e.Endpoint.Enabled)
	if answers && e.Endpoint.Response != nil {
		m.set("response", e.Endpoint.Response)
	}
	if len(e.Endpoint.ResponseRules) > 0 {
		m.set("response_rules", e.Endpoint.ResponseRules)
	}
	m.some("response_script", e.Endpoint.ResponseScript)
	if e.Endpoint.SchemaTracking {
		m.set("schema_tracking", true)
	}
	list(m, "signature_configs", e.SignatureConfigs, func(p *mapping, c api.SignatureConfig) {
		writeSignature(p, c, deref(e.Endpoint.CustomID))
	})
	list(m, "forwarding_targets", e.Targets, func(p *mapping, t api.ForwardingTarget) { writeTarget(p, t, deref(e.Endpoint.CustomID)) })
	list(m, "actions", e.Actions, writeAction)
	list(m, "alerts", e.Alerts, func(p *mapping, a api.Alert) { writeAlert(p, a, channels) })
	return m.made(), m.err
}

func writeSignature(p *mapping, c api.SignatureConfig, customID string) {
	p.set("provider", c.Provider)
	p.enabled(c.Enabled)
	if c.Options != nil && *c.Options != (api.GenericOptions{}) {
		p.set("options", c.Options)
	}
	p.content[1].LineComment = "secret: " + fromEnv(customID, c.Provider, "SECRET") + "; without it the secret that is there stays"
}

// fromEnv returns a reference to an environment variable for a secret.
func fromEnv(words ...string) string {
	return "{env: " + strings.Trim(variable.ReplaceAllString(strings.ToUpper(strings.Join(words, "_")), "_"), "_") + "}"
}

func writeTarget(p *mapping, t api.ForwardingTarget, customID string) {
	p.set("name", t.Name)
	p.set("url", t.URL)
	if names := slices.Sorted(maps.Keys(t.Headers)); len(names) > 0 {
		for i, name := range names {
			names[i] = name + ": " + fromEnv(customID, t.Name, name)
		}
		p.content[len(p.content)-1].LineComment = "headers: {" + strings.Join(names, ", ") + "}; without headers those that are there stay"
	}
	p.some("when", t.When)
	p.enabled(t.Enabled)
	p.set("timeout_seconds", t.TimeoutSeconds)
	p.set("retry_count", t.RetryCount)
	if t.RateLimit != nil {
		p.set("rate_limit", *t.RateLimit)
		p.set("rate_period", *t.RatePeriod)
	}
	if t.DedupeBy != nil {
		p.set("dedupe_by", *t.DedupeBy)
		p.set("dedupe_seconds", *t.DedupeSeconds)
	}
}

func writeAction(p *mapping, a api.Action) {
	p.set("name", a.Name)
	p.enabled(a.Enabled)
	p.set("failure_policy", a.FailurePolicy)
	if len(a.Conditions) > 0 {
		p.set("conditions", a.Conditions)
	}
	list(p, "steps", a.Steps, writeStep)
}

func writeStep(p *mapping, st api.ActionStep) {
	p.set("reference_key", st.ReferenceKey)
	p.set("step_type", st.StepType)
	p.set("name", st.Name)
	p.some("failure_policy", st.FailurePolicy)
	p.set("config", st.Config)
	if len(st.Conditions) > 0 {
		p.set("conditions", st.Conditions)
	}
}

func writeAlert(p *mapping, a api.Alert, channels map[string]string) {
	p.set("name", a.Name)
	p.set("kind", a.Kind)
	p.enabled(a.Enabled)
	p.set("config", a.Config)
	if len(a.ChannelIDs) == 0 {
		return
	}
	names := make([]string, len(a.ChannelIDs))
	for i, id := range a.ChannelIDs {
		names[i] = cmp.Or(channels[id], id)
	}
	p.set("channels", names)
}

var variable = regexp.MustCompile(`[^A-Z0-9]+`)

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// mapping is a mapping that is being put together.
type mapping struct {
	content []*yaml.Node
	err     error
}

func (m *mapping) made() *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: m.content}
}

func (m *mapping) node(name string, value *yaml.Node) {
	m.content = append(m.content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
}

func (m *mapping) set(name string, value any) {
	text, err := json.Marshal(value)
	var n *yaml.Node
	if err == nil {
		n, err = readJSON(jsontext.NewDecoder(bytes.NewReader(text)))
	}
	if err != nil {
		m.err = err
		return
	}
	m.node(name, n)
}

// some sets what is not null.
func (m *mapping) some(name string, value *string) {
	if value != nil {
		m.set(name, *value)
	}
}

// enabled sets whether something is enabled; by itself it is.
func (m *mapping) enabled(is bool) {
	if !is {
		m.set("enabled", false)
	}
}

// list sets the list of what belongs to something, unless there is none.
func list[T any](m *mapping, name string, all []T, write func(*mapping, T)) {
	if len(all) == 0 {
		return
	}
	sequence := &yaml.Node{Kind: yaml.SequenceNode}
	for _, one := range all {
		p := &mapping{}
		write(p, one)
		if p.err != nil {
			m.err = p.err
		}
		sequence.Content = append(sequence.Content, p.made())
	}
	m.node(name, sequence)
}

// readJSON turns JSON into YAML, in its order.
func readJSON(d *jsontext.Decoder) (*yaml.Node, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '{', '[':
		n := &yaml.Node{Kind: yaml.MappingNode}
		end := jsontext.Kind('}')
		if token.Kind() == '[' {
			n.Kind, end = yaml.SequenceNode, ']'
		}
		for d.PeekKind() != end {
			member, err := readJSON(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, member)
		}
		if _, err = d.ReadToken(); len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n, err
	case '"':
		return textNode(token.String()), nil
	case '0':
		tag := "!!int"
		if strings.ContainsAny(token.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: token.String()}, nil
	case 'n':
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: token.String()}, nil
	}
}

// textNode is a string in the form that is read back as it is, whatever it holds. To readers of YAML 1.1 more words are
// no texts: no is false, 1:30 is 90, .5_ is 0.5, and = is a value of a kind that some do not know.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	marshalled, _ := yaml.Marshal(s)
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.TrimSpace(s) != s ||
		s == "<<" || s == "=" || strings.HasPrefix(s, ".") || bytes.HasPrefix(marshalled, []byte{'"'}) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
