package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store/storetest"
)

// Every operation is called with values made from its own description, most of them with something wrong, and must
// answer as described. HOOKGLASS_API_ROUNDS calls each more often, HOOKGLASS_API_SEED makes other values.
func TestEveryOperationKeepsToItsDescription(t *testing.T) {
	number := func(name string, otherwise uint64) uint64 {
		if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	seed, rounds := number("HOOKGLASS_API_SEED", 1), number("HOOKGLASS_API_ROUNDS", 2)
	each(t, func(t *testing.T, s *site) {
		f := s.fuzzer()
		for round := range rounds {
			f.walk(seed + round)
		}
	})
}

// FuzzOperations is the same for as long as it may run: each input is the seed of a round.
func FuzzOperations(f *testing.F) {
	f.Add(uint64(0))
	f.Fuzz(func(t *testing.T, seed uint64) {
		open(t, storetest.SQLite(t)).fuzzer().walk(seed)
	})
}

// fuzzer calls the operations of a site and judges what they answer.
type fuzzer struct {
	*site
	doc      document
	ops      []called
	schemas  map[string]any
	resolved map[string]*jsonschema.Resolved // by the schema's text
	reader   string                          // a token that may only read
	bound    context.Context                 // of the whole test
}

type called struct {
	described
	method, path string
}

func (s *site) fuzzer() *fuzzer {
	s.t.Helper()
	f := &fuzzer{site: s, doc: s.describe(), resolved: map[string]*jsonschema.Resolved{}, bound: s.t.Context()}
	f.schemas = f.doc.raw["components"].(map[string]any)["schemas"].(map[string]any)
	f.doc.each(func(method, path string, op described) { f.ops = append(f.ops, called{op, method, path}) })
	// What deletes comes last, and the endpoint itself at the very end: there is something to call the others on.
	rank := func(op called) string {
		switch {
		case op.OperationID == "delete-endpoint":
			return "3"
		case strings.HasPrefix(op.OperationID, "delete-") || op.OperationID == "claim-endpoint":
			return "2"
		}
		return "1"
	}
	slices.SortFunc(f.ops, func(a, b called) int {
		return strings.Compare(rank(a)+a.OperationID, rank(b)+b.OperationID)
	})
	f.reader = s.newToken(s.owner, hookglass.LevelAccount, 0, hookglass.ScopeRead)
	return f
}

// walk calls every operation a few times on things made for it.
func (f *fuzzer) walk(seed uint64) {
	v := &values{Rand: rand.New(rand.NewPCG(seed, 2)), schemas: f.schemas}
	on, flow := f.things()
	logged := len(f.log.String())
	for _, op := range f.ops {
		// As described, with one thing wrong, and with anything wrong anywhere.
		for _, harm := range []int{0, 1, 2} {
			r := f.request(v, op, on, flow, harm)
			if f.call(seed, op, r) {
				return
			}
		}
	}
	f.logIsClean(logged)
}

// things are what operations are called on.
func (f *fuzzer) things() (on target, flow string) {
	e := f.newEndpoint(`,"schema_tracking":true`)
	forward := f.newForwardingTarget(e.ID)
	event := f.arrive(e.ID, nil)
	on = target{e.ID, event, f.newSignatureConfig(e.ID), forward, f.newReplayThings(e.ID, event), f.newTunnelThings(e.ID), f.newAlertThings(e.ID), f.newActionThings(e.ID, event)}
	return on, f.newFlow(e.ID)
}

func (f *fuzzer) logIsClean(from int) {
	f.t.Helper()
	for line := range strings.Lines(f.log.String()[from:]) {
		if strings.Contains(line, "level=ERROR") {
			f.t.Errorf("the log has an error: %s", line)
		}
	}
}

// PostgreSQL takes no NUL in text, and SQLite ends it there for some of its functions: whatever text a body has, one
// with a NUL is refused, or kept where it is data.
func TestNULIsNowhereAFault(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		f := s.fuzzer()
		v := &values{Rand: rand.New(rand.NewPCG(1, 2)), schemas: f.schemas, whole: true}
		on, flow := f.things()
		logged := len(f.log.String())
		for _, op := range f.ops {
			if op.RequestBody == nil {
				continue
			}
			content := op.RequestBody.Content["application/json"]
			for _, body := range []string{v.text(content.Schema.(map[string]any), false), marshal(content.Example)} {
				for _, spoiled := range withNUL(f.filled(on).Replace(body)) {
					r := f.request(v, op, on, flow, 0)
					r.body = spoiled
					f.call(0, op, r)
				}
			}
		}
		f.logIsClean(logged)
	})
}

// withNUL are copies of a JSON text, each of which has a NUL in another of its strings.
func withNUL(text string) (all []string) {
	parts := strings.Split(text, `"`)
	for i := 1; i < len(parts); i += 2 {
		if i+1 < len(parts) && !strings.HasPrefix(parts[i+1], ":") && !strings.HasSuffix(parts[i], `\`) {
			spoiled := slices.Clone(parts)
			spoiled[i] += `\u0000`
			all = append(all, strings.Join(spoiled, `"`))
		}
	}
	return all
}

// attempt is a request before it is sent, so that a failure can show it.
type attempt struct {
	method, path, body, token string
	header                    http.Header
}

func (f *fuzzer) request(v *values, op called, on target, flow string, harm int) attempt {
	fill := f.filled(on)
	r := attempt{method: op.method, token: f.token, header: http.Header{}}
	where := 0 // what one fault is in: the body, a parameter, the path, the caller
	if harm == 1 {
		where = 1 + v.IntN(2)
	} else if harm == 2 {
		where = 3 + v.IntN(3)
	}
	path := strings.ReplaceAll(op.path, "{flow_id}", flow)
	if where == 3 {
		path = spoilPath(v, path)
	}
	r.path = route{path: path}.at(on)
	query := url.Values{}
	for _, p := range op.Parameters {
		switch {
		case p.In == "path":
			continue
		case p.Name == "timeout": // what waits shall not wait for long, and not each time
			query.Set(p.Name, strconv.Itoa(1-min(harm, 1)))
			continue
		case !p.Required && v.IntN(3) > 0:
			continue
		}
		for _, value := range parameter(v, p.Schema, where == 1) {
			value = fill.Replace(value)
			if p.In == "header" {
				r.header.Set(p.Name, strings.Map(printable, value))
			} else {
				query.Add(p.Name, value)
			}
		}
	}
	if len(query) > 0 {
		r.path += "?" + query.Encode()
	}
	if op.RequestBody != nil {
		schema := op.RequestBody.Content["application/json"].Schema.(map[string]any)
		if harm == 0 && v.IntN(2) == 0 {
			r.body = marshal(op.RequestBody.Content["application/json"].Example)
		} else {
			r.body = v.text(schema, where == 2)
		}
		r.body = fill.Replace(r.body)
		r.header.Set("Content-Type", "application/json")
		if where == 4 {
			r.body = v.spoiled(r.body)
		}
	}
	if where == 5 {
		switch v.IntN(4) {
		case 0:
			r.token = ""
		case 1:
			r.token = "hg_" + strings.Map(printable, v.word(1, 50))
		case 2:
			r.token = f.reader
		case 3:
			r.header.Set("Content-Type", "text/plain")
		}
	}
	return r
}

// filled puts the things in the place of the ids of examples.
func (f *fuzzer) filled(on target) *strings.Replacer {
	return strings.NewReplacer(
		"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y", on.endpoint, "req_0dfk3v6m8t7h1s9xq2b4c5n6wz", on.event, "tk_0dfk3v6m8t7h1s9xq2b4c5n6wz", on.key,
		"rcase_0dfk3v6m8t7h1s9xq2b4c5n6wz", on.caseID, "tgap_0dfk3v6m8t7h1s9xq2b4c5n6wz", on.gapID, "chan_0dfk3v6m8t7h1s9xq2b4c5n6wz", on.channel)
}

// parameter writes a value of a query or header parameter; an array is several.
func parameter(v *values, schema map[string]any, wrong bool) []string {
	var read any
	if err := json.Unmarshal([]byte(v.text(schema, wrong)), &read); err != nil {
		return []string{"1e400"} // it is JSON but no number of Go's
	}
	if elements, ok := read.([]any); ok {
		all := make([]string, 0, min(len(elements), 50))
		for _, element := range elements[:cap(all)] {
			all = append(all, plainText(element))
		}
		return all
	}
	return []string{plainText(read)}
}

func plainText(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	return marshal(value)
}

// spoilPath puts something else into the place of one of the path's parameters.
func spoilPath(v *values, path string) string {
	var names []string
	for _, part := range strings.Split(path, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, part)
		}
	}
	if len(names) == 0 {
		return path
	}
	strange := []string{"%00", "%2F", "..%2f..", "%2e%2e", "-1", "0", "9223372036854775808", "1e3", "%ff", "a%20b", "%E2%80%AE", strings.Repeat("a", 10_000), "ep_", "req_x", "null", "*", "%25", "a;b", "a:b", "a%0d%0ab"}
	return strings.ReplaceAll(path, names[v.IntN(len(names))], strange[v.IntN(len(strange))])
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return 'x'
	}
	return r
}

// call sends the request and judges the answer. It returns true where to go on makes no sense.
func (f *fuzzer) call(seed uint64, op called, a attempt) (over bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.bound, patience) // far beyond any operation: what takes so long hangs
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, a.method, f.url+a.path, strings.NewReader(a.body))
	if err != nil {
		f.t.Fatalf("seed %d: %s %s cannot be sent: %v", seed, a.method, a.path, err)
	}
	req.Header = a.header.Clone()
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	fault := func(format string, args ...any) {
		f.t.Helper()
		f.t.Errorf("seed %d: %s: %s %.300s %v %.1500s: "+format, append([]any{seed, op.OperationID, a.method, a.path, a.header, a.body}, args...)...)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		fault("no answer: %v", err)
		return true
	}
	defer res.Body.Close()
	described, ok := op.Responses[strconv.Itoa(res.StatusCode)]
	if !ok || res.StatusCode >= 500 {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000)) // what can be read of it is shown
		fault("answered %d, which is not described or a fault: %s", res.StatusCode, text)
		return false
	}
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	if media == "text/event-stream" {
		return false // it has no end
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		fault("%d, whose body breaks off: %v", res.StatusCode, err)
		return false
	}
	content := f.follow(described)["content"].(map[string]any)
	form, ok := content[media].(map[string]any)
	switch {
	case !ok:
		fault("%d as %s, which is not described: %.200s", res.StatusCode, media, text)
	case media == "application/json" && form["schema"].(map[string]any)["type"] != "string":
		for _, wrong := range f.judge(form["schema"].(map[string]any), text) {
			fault("%d %.2000s: %s", res.StatusCode, text, wrong)
		}
	}
	if res.StatusCode >= 400 {
		f.judgeRefusal(res, text, fault)
	}
	return false
}

// follow resolves a reference to a part of the description.
func (f *fuzzer) follow(part map[string]any) map[string]any {
	ref, ok := part["$ref"].(string)
	if !ok {
		return part
	}
	at := any(f.doc.raw)
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at = at.(map[string]any)[name]
	}
	return at.(map[string]any)
}

// judge compares an answer with its schema, by JSON Schema's own rules, and for members that nobody described.
func (f *fuzzer) judge(schema map[string]any, text []byte) (faults []string) {
	// A number that was given as 1e400 is answered as that: JSON's have no bound, Go's do.
	text = bytes.ReplaceAll(text, []byte("1e400"), []byte("1e300"))
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return []string{err.Error()}
	}
	key := marshal(schema)
	resolved := f.resolved[key]
	if resolved == nil {
		root := new(jsonschema.Schema)
		named := map[string]any{}
		f.named(schema, named)
		whole, err := json.Marshal(map[string]any{"$defs": named, "allOf": []any{schema}})
		if err != nil {
			f.t.Fatal(err)
		}
		if err := json.Unmarshal(bytes.ReplaceAll(whole, []byte("#/components/schemas/"), []byte("#/$defs/")), root); err != nil {
			f.t.Fatal(err)
		}
		if resolved, err = root.Resolve(nil); err != nil {
			f.t.Fatal(err)
		}
		f.resolved[key] = resolved
	}
	if err := resolved.Validate(value); err != nil {
		faults = append(faults, err.Error())
	}
	return append(faults, conform(f.schemas, schema, value, "")...)
}

// named collects the schemas that one refers to, and those that these refer to.
func (f *fuzzer) named(part any, into map[string]any) {
	switch part := part.(type) {
	case map[string]any:
		if ref, ok := part["$ref"].(string); ok {
			if name := ref[strings.LastIndex(ref, "/")+1:]; into[name] == nil {
				into[name] = f.schemas[name]
				f.named(f.schemas[name], into)
			}
		}
		for _, member := range part {
			f.named(member, into)
		}
	case []any:
		for _, element := range part {
			f.named(element, into)
		}
	}
}

// judgeRefusal holds an error to what is said of errors.
func (f *fuzzer) judgeRefusal(res *http.Response, text []byte, fault func(string, ...any)) {
	f.t.Helper()
	var refused api.Error
	if err := json.Unmarshal(text, &refused); err != nil || refused.Error == "" || refused.Message == "" {
		fault("%d without a code and a message: %s", res.StatusCode, text)
	}
	switch {
	case refused.Error == "validation_failed" && len(refused.Details) == 0:
		fault("a 422 does not say what is wrong: %s", text)
	case res.StatusCode == 429 && (refused.RetryAfter == 0 || res.Header.Get("Retry-After") != strconv.FormatInt(int64(refused.RetryAfter), 10)):
		fault("a 429 does not say when to come back: %s, Retry-After %s", text, res.Header.Get("Retry-After"))
	case res.StatusCode == 401 && !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Bearer"):
		fault("a 401 has no challenge")
	}
}
