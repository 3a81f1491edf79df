package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"

	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// EndpointsUpdateCmd is `hookglass endpoints update`.
type EndpointsUpdateCmd struct {
	Endpoint string `arg:"" placeholder:"EP" help:"Its id or custom id."`

	Name     *string `placeholder:"NAME" help:"A label for people."`
	Provider *string `placeholder:"NAME" help:"The intended source; none clears it."`
	CustomID *string `name:"custom-id" placeholder:"NAME" help:"A name of yours that works as the id, also in its URL; none clears it."`
	Enable   bool    `xor:"on" help:"Take what comes."`
	Disable  bool    `xor:"on" help:"Answer 410 to what comes."`

	Status        *int           `placeholder:"STATUS" help:"Answer senders with this status, 200 to 599."`
	Header        []string       `sep:"none" placeholder:"'N: V'" help:"Answer with this field, in the place of one of the same name; may be repeated."`
	Body          *string        `placeholder:"FILE" help:"Answer with what this file holds, in which {{event.id}} and the like stand for parts of the request; - is standard input."`
	Delay         *time.Duration `placeholder:"TIME" help:"Wait before the answer, 30s at most."`
	Script        *string        `placeholder:"SCRIPT" help:"Answer the attempts of each delivery one after another, for example 500*3,timeout,200, or of mail 451*2,250 or rcpt:550; none ends it."`
	Rules         string         `placeholder:"FILE" help:"Answer some webhooks otherwise, by the rules in this file: JSON as the API takes it, [{\"when\": \"method:GET path:/health\", \"status\": 204}, …]; - is standard input, none leaves no rules."`
	DefaultAnswer bool           `help:"Take back what --status, --header, --body and --delay set. Rules and a script stay."`
	ResponseMode  string         `enum:"static,tunnel," default:"" help:"Who answers: static, or tunnel for the connected local machine."`
}

// Help implements kong.HelpProvider.
func (c *EndpointsUpdateCmd) Help() string {
	return `Examples:

  hookglass endpoints update payments --status 503 --header 'Retry-After: 60'
  echo '{"ok":true}' | hookglass endpoints update payments --body - --header 'Content-Type: application/json'
  echo '[{"when": "signature:failed", "status": 401}]' | hookglass endpoints update payments --rules -
  hookglass endpoints update payments --default-answer
  hookglass endpoints update inbox --script '451*2 4.7.1 Greylisted,250'

What is not named stays as it is. "hookglass retries" shows how senders try again.`
}

// answers reports whether a flag sets a part of the answer.
func (c *EndpointsUpdateCmd) answers() bool {
	return c.Status != nil || len(c.Header) > 0 || c.Body != nil || c.Delay != nil
}

// Validate checks combinations of flags.
func (c *EndpointsUpdateCmd) Validate() error {
	switch {
	case c.Rules == "-" && c.Body != nil && *c.Body == "-":
		return errors.New("only one of --rules and --body can be standard input")
	case c.DefaultAnswer && c.answers():
		return errors.New("--default-answer leaves no answer to set")
	case c.Name == nil && c.Provider == nil && c.CustomID == nil && !c.Enable && !c.Disable && !c.answers() && !c.DefaultAnswer && c.ResponseMode == "" && c.Rules == "" && c.Script == nil:
		return errors.New("say what to change")
	}
	return nil
}

func (c *EndpointsUpdateCmd) Run(ctx context.Context, t *server.Terminal, e *EndpointsCmd) error {
	at, _, err := e.connect()
	if err != nil {
		return err
	}
	change, err := c.change(ctx, t, at)
	if err != nil {
		return err
	}
	now, err := at.UpdateEndpoint(ctx, c.Endpoint, change)
	if err != nil {
		return err
	}
	return e.say(t, api.One[api.Endpoint]{Data: now}, "Changed %s (%s), whose answer is: %s\n", now.ID, visible(address(now)), answerOf(now))
}

// change returns the change that the flags ask for. If flags set only some fields of a setting, the others keep the
// endpoint's values.
func (c *EndpointsUpdateCmd) change(ctx context.Context, t *server.Terminal, at *client.Client) (api.EndpointChange, error) {
	change := api.EndpointChange{Name: api.Maybe(c.Name), Provider: clearable(c.Provider), CustomID: clearable(c.CustomID), ResponseScript: clearable(c.Script)}
	if c.Enable || c.Disable {
		change.Enabled = api.Some(c.Enable)
	}
	if c.DefaultAnswer {
		change.Response = api.Null[api.Response]()
	}
	if c.Rules != "" {
		rules, err := readRules(t, c.Rules)
		if err != nil {
			return change, err
		}
		change.ResponseRules = api.Some(rules)
	}
	if !c.answers() && c.ResponseMode == "" {
		return change, nil
	}
	there, err := at.Endpoint(ctx, c.Endpoint)
	if err != nil {
		return change, err
	}
	if c.ResponseMode != "" {
		config := there.ProviderConfig
		config.ResponseMode = c.ResponseMode
		change.ProviderConfig = api.Some(config)
	}
	if !c.answers() {
		return change, nil
	}
	answer, err := c.answer(t, there)
	if err != nil {
		return change, err
	}
	change.Response = api.Some(answer)
	return change, nil
}

// answer returns the endpoint's custom answer with what the flags set in it.
func (c *EndpointsUpdateCmd) answer(t *server.Terminal, there api.Endpoint) (answer api.Response, err error) {
	if there.Response != nil {
		answer = *there.Response
		answer.Headers = maps.Clone(answer.Headers)
	}
	if answer.Headers == nil {
		answer.Headers = map[string]string{}
	}
	if c.Status != nil {
		answer.Status = c.Status
	}
	fields, err := headerFlags(c.Header)
	if err != nil {
		return answer, err
	}
	for _, f := range fields {
		maps.DeleteFunc(answer.Headers, func(name, _ string) bool { return strings.EqualFold(name, f.Name) })
		answer.Headers[f.Name] = f.Value
	}
	if c.Delay != nil {
		answer.DelayMS = c.Delay.Milliseconds()
	}
	if c.Body != nil {
		text, err := readInput(t, *c.Body, maxOverride)
		if err != nil {
			return answer, err
		}
		if !utf8.Valid(text) {
			return answer, fmt.Errorf("%s is no text in UTF-8, which an answer must be", *c.Body)
		}
		answer.Body = string(text)
	}
	return answer, nil
}

// maxRules bounds a file of rules: the server accepts no longer body.
const maxRules = 2 << 20

// readRules reads response rules from a file; "none" means no rules.
func readRules(t *server.Terminal, file string) (rules []api.ResponseRule, err error) {
	if file == "none" {
		return rules, nil
	}
	text, err := readInput(t, file, maxRules)
	if err != nil {
		return nil, err
	}
	if err := jsonv2.Unmarshal(text, &rules, jsonv2.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s holds no rules: %w", file, err)
	}
	return rules, nil
}

// clearable returns the value of a flag for a field that may be empty.
func clearable(flag *string) api.Optional[string] {
	if flag != nil && (*flag == "none" || *flag == "") {
		return api.Null[string]()
	}
	return api.Maybe(flag)
}

// answerOf describes in a few words how senders are answered.
func answerOf(e api.Endpoint) string {
	switch rules := len(e.ResponseRules); {
	case rules == 0 || !e.Enabled || e.ResponseScript != nil || e.ProviderConfig.ResponseMode == "tunnel": // these take precedence
		return mostlyAnswered(e)
	case rules == 1:
		return "by 1 rule, else " + mostlyAnswered(e)
	default:
		return fmt.Sprintf("by %d rules, else %s", rules, mostlyAnswered(e))
	}
}

func mostlyAnswered(e api.Endpoint) string {
	switch {
	case !takesWebhooks(e) && !e.Enabled:
		return "550 (disabled)"
	case !takesWebhooks(e) && e.ResponseScript == nil:
		return "250 (mail)"
	case !e.Enabled:
		return "410 (disabled)"
	case e.ResponseScript != nil:
		return "by the script " + visible(*e.ResponseScript)
	case e.ProviderConfig.ResponseMode == "tunnel":
		return "that of the connected local machine"
	case e.Response != nil && e.Response.Status != nil:
		return fmt.Sprintf("%d (custom)", *e.Response.Status)
	}
	return "200 (default)"
}
