package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/httpd"
)

// tool is one row of the table.
type tool struct {
	name  string
	title string
	text  string // when to use it, what it costs, what it returns
	scope hookglass.Scope
	hints hints
	// captured says that the answer contains content from outside: it is fenced, and marked as untrusted.
	captured bool
	in, out  reflect.Type
	call     func(ctx context.Context, s *service, arguments []byte) (any, error)
}

// hints describe the effects of a call; see the protocol's tool annotations.
type hints struct{ readOnly, destructive, idempotent, openWorld bool }

// The effects of tools.
var (
	reads   = hints{readOnly: true, idempotent: true}
	creates = hints{}
	removes = hints{destructive: true, idempotent: true}
	clears  = hints{destructive: true}                  // not idempotent: called again, it removes what has come since
	sends   = hints{destructive: true, openWorld: true} // to addresses that the caller chooses
)

// define completes a row with its types and function.
func define[In, Out any](t tool, fn func(s *service, ctx context.Context, in *In) (Out, error)) tool {
	t.in, t.out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	t.call = func(ctx context.Context, s *service, arguments []byte) (any, error) {
		in := new(In)
		if err := decode(arguments, in); err != nil {
			return nil, err
		}
		return fn(s, ctx, in)
	}
	return t
}

// described returns the tool as clients see it.
func (t *tool) described() *sdk.Tool {
	output := describer{}.object(t.out)
	if t.captured {
		mark := new(schema)
		mark.set("type", "string")
		output.members[1].value.(*schema).set("untrusted", mark)
	}
	destructive, open := t.hints.destructive, t.hints.openWorld
	return &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.text,
		InputSchema: encoded(describer{input: true}.object(t.in)), OutputSchema: encoded(output),
		Annotations: &sdk.ToolAnnotations{
			Title: t.title, ReadOnlyHint: t.hints.readOnly, IdempotentHint: t.hints.idempotent, DestructiveHint: &destructive, OpenWorldHint: &open,
		},
	}
}

func encoded(s *schema) json.RawMessage {
	text, err := json.Marshal(s)
	if err != nil {
		panic("a tool cannot be described: " + err.Error()) // a mistake in the table, which every test finds
	}
	return text
}

// handler serves permitted calls of a tool.
func (s *service) handler(t *tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (result *sdk.CallToolResult, _ error) {
		ctx, cancel := asked(ctx)
		defer cancel()
		// It runs on a goroutine of the SDK, where a panic would end the process.
		defer func() {
			if p := recover(); p != nil {
				s.Log.Error("panic in a tool", "panic", p, "tool", t.name, "stack", string(debug.Stack()))
				result = failed(ctx, t, httpd.ErrInternal)
			}
		}()
		out, err := t.call(ctx, s, req.Params.Arguments)
		if err != nil {
			return failed(ctx, t, err), nil
		}
		result, err = t.answer(out)
		if err != nil {
			return failed(ctx, t, err), nil
		}
		return result, nil
	}
}

// answer returns a result: the same JSON as structured content and as text.
func (t *tool) answer(out any) (*sdk.CallToolResult, error) {
	plain, err := api.JSON(out)
	if err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", t.name, err)
	}
	text, hidden := visible(plain)
	if !t.captured {
		return &sdk.CallToolResult{StructuredContent: json.RawMessage(text), Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}, nil
	}
	marked := append([]byte(`{"untrusted":"`+notice+`",`), text[1:]...)
	return &sdk.CallToolResult{StructuredContent: json.RawMessage(marked), Content: []sdk.Content{&sdk.TextContent{Text: fence(marked, hidden)}}}, nil
}

// failed tells an agent what went wrong and what to do next.
func failed(ctx context.Context, t *tool, err error) *sdk.CallToolResult {
	body := httpd.Fail(ctx, err).Body
	var b strings.Builder
	if len(body.Details) == 1 {
		b.WriteString(body.Error + ": " + argument(body.Details[0].Field) + " " + body.Details[0].Message + ".")
	} else {
		b.WriteString(body.Error + ": " + body.Message)
		for _, d := range body.Details {
			b.WriteString("\n- " + argument(d.Field) + " " + d.Message)
		}
	}
	if next := t.next(body); next != "" {
		b.WriteString("\nNext: " + next)
	}
	text, _ := json.Marshal(b.String()) // a string can always be written
	text, _ = visible(text)
	var shown string
	_ = json.Unmarshal(text, &shown)
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: shown}}}
}

// envelopes are the wrappers around a body's fields in REST, which tools do not have.
var envelopes = []string{"endpoint_action.", "replay_case.", "alert.", "endpoint."}

// argument returns a tool's name for a field of REST.
func argument(field string) string {
	if field == "Idempotency-Key" { // a header there
		return "idempotency_key"
	}
	for _, e := range envelopes {
		field = strings.TrimPrefix(field, e)
	}
	return field
}

// missing says how to find things of each kind, by the message that says that one was not found.
var missing = map[string]string{
	hookglass.NotFound("endpoint").Message:        "list_endpoints shows the ids that there are.",
	hookglass.NotFound("request").Message:         "list_requests shows the ids that there are; \"latest\" means the newest. It may have been deleted, or be older than the retention.",
	hookglass.NotFound("replay case").Message:     "list_replay_cases shows the ids that there are.",
	hookglass.NotFound("replay case run").Message: "list_replay_cases shows the last run of each case; run_replay_case answers with a new one.",
	hookglass.NotFound("action").Message:          "list_actions shows the ids that there are.",
	hookglass.NotFound("action run").Message:      "get_action_runs without run_id shows the ids that there are.",
}

// next returns what an agent can do about a failure.
func (t *tool) next(body api.Error) string {
	switch hookglass.Code(body.Error) {
	case hookglass.CodeNotFound:
		return missing[body.Message]
	case hookglass.CodeValidationFailed:
		return "correct the arguments named here and call " + t.name + " again."
	case hookglass.CodeConflict:
		return "tell the person you work for; no tool here changes that."
	case hookglass.CodePayloadTooLarge:
		return "send a smaller body."
	case hookglass.CodePlanRequired, hookglass.CodeSubscriptionRequired, hookglass.CodePaymentMethodRequired:
		return "tell the person you work for; only the owner of the account can change what it may do."
	case hookglass.CodeUnauthorized, hookglass.CodeForbidden:
		return "tell the person you work for; this connection needs another token."
	case hookglass.CodeTargetNotAllowed:
		if t.name == "create_action" { // a step cannot send to a tunnel
			return "choose a public address."
		}
		return "choose a public address, or the target \"tunnel\" with a machine connected by hookglass listen."
	case hookglass.CodeIdempotencyConflict:
		return "use a new idempotency_key: this one was used for another version of the case."
	case hookglass.CodeRateLimited:
		return fmt.Sprintf("wait %d seconds and call %s again.", body.RetryAfter, t.name)
	case hookglass.CodeUnavailable, hookglass.CodeInternal:
		return "wait a few seconds and try once more; if it stays so, tell the person you work for."
	}
	return ""
}
