package mcp

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"hookglass"
	"hookglass/internal/httpd"
)

// modern is the first version of the protocol that has no handshake.
const modern = "2026-07-28"

// Codes of JSON-RPC 2.0, section 5.1, and one of ours.
const (
	codeParse     = -32700
	codeInvalid   = -32600
	codeNoMethod  = -32601
	codeParams    = -32602
	codeInternal  = -32603
	codeForbidden = -32003
)

// methods are the supported methods. Others that the SDK knows belong to features that are not declared.
var methods = map[string]bool{"initialize": true, "ping": true, "tools/list": true, "tools/call": true, "server/discover": true}

// fault is a protocol error, as opposed to a tool's error.
type fault struct {
	status  int
	code    int
	message string
	data    any
}

// modernize sets the HTTP status that the modern protocol has for an error; before, every valid message got 200.
func (f *fault) modernize() {
	switch f.code {
	case codeNoMethod:
		f.status = http.StatusNotFound
	case codeParams:
		f.status = http.StatusBadRequest
	}
}

// message is one JSON-RPC message, as far as it determines who may send it.
type message struct {
	id     jsontext.Value // nil: a notification
	method string         // "": a response
	tool   string         // of tools/call
}

// request is the context key of a call's HTTP request. In the older protocol, only that request's context shows that
// the caller has left.
type request struct{}

// asked returns the context of a call, which ends when its caller leaves.
func asked(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if r, ok := ctx.Value(request{}).(*http.Request); ok {
		stop := context.AfterFunc(r.Context(), cancel)
		return ctx, func() { stop(); cancel() }
	}
	return ctx, cancel
}

// ServeHTTP passes on the messages that their senders may send.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != Path {
		httpd.WriteError(w, r, httpd.ErrNowhere)
		return
	}
	if err := s.admitted(r); err != nil {
		httpd.WriteError(w, r, err)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		httpd.WriteError(w, r, hookglass.Errorf(hookglass.CodeMethodNotAllowed, "Messages are sent by POST; there is no stream to GET and no session to DELETE."))
		return
	}
	who, err := httpd.Authenticate(r, s.Accounts.Authenticate)
	if err == nil && who.Endpoint != "" {
		err = hookglass.Errorf(hookglass.CodeForbidden, "The key of a temporary endpoint reads and deletes its events by REST, nothing else.")
	}
	if err == nil {
		err = wantsJSON(r)
	}
	var text []byte
	if err == nil {
		text, err = httpd.ReadBody(w, r, "message")
	}
	if err != nil {
		httpd.WriteError(w, r, err)
		return
	}
	m, wrong := read(text)
	if wrong == nil {
		wrong = s.permitted(who, m)
	}
	switch {
	case wrong != nil:
		if r.Header.Get("Mcp-Protocol-Version") >= modern {
			wrong.modernize()
		}
		m.refuse(w, wrong)
	case m.id == nil || m.method == "":
		w.WriteHeader(http.StatusAccepted) // notifications and responses need no answer
	default:
		// Without the cancellation, because a call is also answered when the server stops. [asked] watches for a client
		// that leaves.
		r = r.WithContext(context.WithValue(context.WithoutCancel(r.Context()), request{}, r))
		r.Header.Set("Accept", "application/json, text/event-stream") // the answer is always JSON
		r.Body = io.NopCloser(bytes.NewReader(text))
		answered := &answer{ResponseWriter: w}
		s.protocol.ServeHTTP(answered, r)
		answered.end(m)
	}
}

// answer passes on the SDK's answers, except for refusals in plain text, which become protocol errors.
type answer struct {
	http.ResponseWriter
	refused int // the status of such a refusal
	text    strings.Builder
}

// Unwrap lets http.ResponseController see the writer itself.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	if status >= 400 && !strings.HasPrefix(a.Header().Get("Content-Type"), "application/json") {
		a.refused = status
		return
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(text []byte) (int, error) {
	if a.refused != 0 {
		return a.text.Write(text)
	}
	return a.ResponseWriter.Write(text)
}

// end writes what was held back.
func (a *answer) end(m message) {
	if a.refused == 0 {
		return
	}
	f := &fault{status: a.refused, code: codeInvalid, message: strings.TrimSpace(a.text.String())}
	if a.refused >= 500 {
		f.code = codeInternal
	}
	m.refuse(a.ResponseWriter, f)
}

// admitted refuses requests that a browser sends for another site (Origin), and requests to this machine under a
// foreign name (Host; DNS rebinding).
func (s *service) admitted(r *http.Request) error {
	known := httpd.From(r.Context())
	public, err := url.Parse(s.Addresses.PublicURL)
	if err != nil {
		return err
	}
	if origins := r.Header["Origin"]; len(origins) > 0 {
		own := known.Scheme + "://" + known.Host
		if len(origins) > 1 || !strings.EqualFold(origins[0], own) && !strings.EqualFold(origins[0], public.Scheme+"://"+public.Host) {
			return hookglass.Errorf(hookglass.CodeForbidden, "Requests from pages of other sites are refused.")
		}
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !loopback(local.String()) || loopback(known.Host) {
		return nil
	}
	if strings.EqualFold(public.Hostname(), hostname(known.Host)) || known.Host != r.Host { // the second: a trusted proxy vouches for the host
		return nil
	}
	return hookglass.Errorf(hookglass.CodeForbidden, "This service is not known by the name in Host. Behind a proxy, start it with --public-url, or name the proxy in --trusted-proxies and have it send X-Forwarded-Host.")
}

// hostname returns an authority without its port.
func hostname(authority string) string {
	if host, _, err := net.SplitHostPort(authority); err == nil {
		return host
	}
	return strings.Trim(authority, "[]")
}

// loopback reports whether an authority means this machine.
func loopback(authority string) bool {
	host := hostname(authority)
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func wantsJSON(r *http.Request) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return hookglass.Errorf(hookglass.CodeUnsupportedMediaType, "The message must be application/json.")
	}
	return nil
}

// read parses a message strictly, so that no other reader can see a different message in it. A batch is not a message,
// as in the protocol since 2025-06-18.
func read(text []byte) (m message, _ *fault) {
	invalid := func(wrong string) (message, *fault) {
		return m, &fault{status: http.StatusBadRequest, code: codeInvalid, message: "Invalid request: " + wrong}
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(text, &members); err != nil {
		if !jsontext.Value(text).IsValid() {
			return m, &fault{status: http.StatusBadRequest, code: codeParse, message: "Parse error: the message is not JSON, or names a member twice."}
		}
		if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
			return invalid("batches are not taken; send one message at a time.")
		}
		return invalid("the message must be an object.")
	}
	id, hasID := members["id"]
	if hasID {
		if wrong := idFault(id); wrong != "" {
			return invalid(wrong)
		}
		m.id = id
	}
	if string(members["jsonrpc"]) != `"2.0"` {
		return invalid(`jsonrpc must be "2.0".`)
	}
	method, hasMethod := members["method"]
	if !hasMethod {
		if _, result := members["result"]; hasID && (result || members["error"] != nil) {
			return m, nil
		}
		return invalid("method is missing.")
	}
	if method.Kind() != '"' || json.Unmarshal(method, &m.method) != nil || m.method == "" {
		return invalid("method must be a string.")
	}
	params, hasParams := members["params"]
	if hasParams && params.Kind() != '{' {
		return invalid("params must be an object.")
	}
	if m.id == nil {
		return m, nil
	}
	var given map[string]jsontext.Value
	if hasParams {
		if err := json.Unmarshal(params, &given); err != nil {
			return invalid("params must be an object.")
		}
	}
	if wrong := m.take(params, given); wrong != "" {
		return m, &fault{status: http.StatusOK, code: codeParams, message: "Invalid params: " + wrong}
	}
	return m, nil
}

// idFault returns what is wrong with the id of a message. The SDK parses numbers as floats, so a long one would come
// back changed (RFC 8259, section 6).
func idFault(id jsontext.Value) string {
	switch id.Kind() {
	case '"':
		return ""
	case '0':
		if n, err := strconv.ParseInt(string(id), 10, 64); err != nil || n > 1<<53 || n < -1<<53 {
			return "id must be a string or a whole number of at most 53 bits."
		}
		return ""
	}
	return "id must be a string or a whole number."
}

// take checks the params of a request, and returns what is wrong with their shape. The SDK has no JSON-RPC code for
// some of these errors, and its texts expose Go types.
func (m *message) take(params jsontext.Value, given map[string]jsontext.Value) (wrong string) {
	kind := func(name string, want jsontext.Kind) bool {
		v, ok := given[name]
		return !ok || v.Kind() == want || v.Kind() == 'n'
	}
	switch {
	case !kind("_meta", '{'):
		return "_meta must be an object."
	case m.method == "initialize":
		if len(params) > 0 && stdjson.Unmarshal(params, new(sdk.InitializeParams)) != nil {
			return "protocolVersion must be a string, and capabilities and clientInfo objects as the protocol has them."
		}
	case m.method == "tools/list" && !kind("cursor", '"'):
		return "cursor must be a string."
	case m.method == "tools/call":
		if json.Unmarshal(given["name"], &m.tool) != nil || m.tool == "" {
			return "name must be that of a tool."
		}
		if !kind("arguments", '{') {
			return "arguments must be an object."
		}
	}
	return ""
}

// permitted returns the fault if this sender may not send a message.
func (s *service) permitted(who hookglass.Principal, m message) *fault {
	if m.id == nil || m.method == "" {
		return nil
	}
	if !methods[m.method] {
		return &fault{status: http.StatusOK, code: codeNoMethod, message: "Method not found: this server has tools, and neither prompts, resources, completions nor logging."}
	}
	if m.method != "tools/call" {
		return nil
	}
	t := s.tools[m.tool]
	if t == nil {
		return &fault{status: http.StatusOK, code: codeParams, message: "Unknown tool: tools/list shows those that there are."}
	}
	for _, scope := range []hookglass.Scope{hookglass.ScopeRead, t.scope} {
		if who.May(scope) != nil {
			return &fault{
				status: http.StatusForbidden, code: codeForbidden,
				message: "Insufficient scope: " + t.name + " needs a token with the scope " + string(scope) + ".",
				data:    map[string]string{"error": string(hookglass.CodeInsufficientScope), "required_scope": string(scope)},
			}
		}
	}
	return nil
}

// refuse answers a message with a protocol error.
func (m message) refuse(w http.ResponseWriter, f *fault) {
	id := m.id
	if id == nil {
		id = jsontext.Value("null")
	}
	type rpcError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}
	text, err := json.Marshal(struct {
		JSONRPC string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Error   rpcError       `json:"error"`
	}{"2.0", id, rpcError{f.code, f.message, f.data}})
	if err != nil {
		text, f.status = []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Internal error"}}`), http.StatusInternalServerError
	}
	h := w.Header()
	if f.status == http.StatusForbidden {
		h.Set("WWW-Authenticate", `Bearer error="insufficient_scope"`)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(f.status)
	_, _ = w.Write(text) // an error means that the client is gone
}
