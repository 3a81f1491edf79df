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

const (
	maxMessage = 2 << 20 // bytes of a message; the largest argument is the body of a test request
	// modern is the first version of the protocol that has no handshake.
	modern = "2026-07-28"
)

// Codes of JSON-RPC 2.0, section 5.1, and one of ours.
const (
	codeParse     = -32700
	codeInvalid   = -32600
	codeNoMethod  = -32601
	codeParams    = -32602
	codeInternal  = -32603
	codeForbidden = -32003
)

// methods are what is served. Others that the SDK knows belong to features that are not declared.
var methods = map[string]bool{"initialize": true, "ping": true, "tools/list": true, "tools/call": true, "server/discover": true}

// fault is an error of the protocol, rather than of a tool.
type fault struct {
	status  int
	code    int
	message string
	data    any
}

// modernize gives an error the status that the modern protocol has for it; before, all of a valid message were 200.
func (f *fault) modernize() {
	switch f.code {
	case codeNoMethod:
		f.status = http.StatusNotFound
	case codeParams:
		f.status = http.StatusBadRequest
	}
}

// message is one JSON-RPC message as far as it decides who may send it.
type message struct {
	id     jsontext.Value // nil: a notification
	method string         // "": a response
	tool   string         // of tools/call
}

// request is the key of the HTTP request of a call: by its context it is known when the caller leaves, which does not
// end a call of the older protocol otherwise.
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

// ServeHTTP lets through who may send what.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != Path {
		httpd.WriteError(w, r, hookglass.Errorf(hookglass.CodeNotFound, "There is nothing at this address."))
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
		text, err = httpd.ReadBody(w, r, "message", maxMessage)
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
		w.WriteHeader(http.StatusAccepted) // nothing here waits for a notification or a response
	default:
		// A call ends with its request, and is answered then too: whose server stops is still there.
		r = r.WithContext(context.WithValue(context.WithoutCancel(r.Context()), request{}, r))
		r.Header.Set("Accept", "application/json, text/event-stream") // it is always JSON that is answered
		r.Body = io.NopCloser(bytes.NewReader(text))
		answered := &answer{ResponseWriter: w}
		s.protocol.ServeHTTP(answered, r)
		answered.end(m)
	}
}

// answer passes on what the SDK answers, except for what it refuses in plain text: that becomes an error of the
// protocol.
type answer struct {
	http.ResponseWriter
	refused int // the status that it refused with
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

// end writes what was kept back.
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

// admitted refuses what a browser sends for another site (Origin), and what reached this machine by a name that is not
// its own (Host; DNS rebinding).
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
	if strings.EqualFold(public.Hostname(), hostname(known.Host)) || known.Host != r.Host { // the latter: a trusted proxy says so
		return nil
	}
	return hookglass.Errorf(hookglass.CodeForbidden, "This service is not known by the name in Host. Behind a proxy, start it with --public-url, or name the proxy in --trusted-proxies and have it send X-Forwarded-Host.")
}

// hostname is an authority without its port.
func hostname(authority string) string {
	if host, _, err := net.SplitHostPort(authority); err == nil {
		return host
	}
	return strings.Trim(authority, "[]")
}

// loopback reports whether an authority is this machine.
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

// read takes a message apart strictly: two readers of one message must not see two. A batch is none, as the protocol
// has it since 2025-06-18.
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

// idFault says what is wrong with the id of a message. The SDK reads numbers as floats, so a longer one would come back
// as another: RFC 8259, section 6.
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

// take looks at the params of a request, and says what is wrong with their shape: the SDK has no code of JSON-RPC for
// some of that, and tells its own types.
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

// permitted says what is wrong with a message of this sender.
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

// refuse answers a message with an error of the protocol.
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
	_, _ = w.Write(text) // nobody is left to tell
}
