// Package paste writes requests and mails as commands and programs that people paste elsewhere: a captured request, to
// be sent again, and the first one of a new endpoint.
//
// A shell or an interpreter takes whatever a sender wrote for text, never for code. No result holds a character that a
// terminal could take for a key press.
package paste

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"hookglass"
)

// Copy is a request in one of the languages that people paste.
type Copy struct{ Name, Text string }

// Copies are a request in each of the languages; the first is curl. A body that cannot be pasted, or is too long for
// it, is read from the file that [BodyFile] names.
func Copies(e *hookglass.Event) []Copy {
	r := newPasted(e)
	return []Copy{{"curl", r.curl()}, {"HTTPie", r.httpie()}, {"fetch", r.fetch()}, {"Go", r.golang()}, {"Python", r.python()}}
}

// BodyFile is the file that the copies of a request read its body from. It is empty when the copies hold the body.
func BodyFile(e *hookglass.Event) string { return newPasted(e).file }

// pasted is a request reduced to what can be pasted.
type pasted struct {
	method, url string
	headers     hookglass.Headers
	unsent      []string // fields that must not be added
	body        string
	file        string // the body is in this file; empty: it is in body
}

func newPasted(e *hookglass.Event) pasted {
	r := pasted{method: e.Method, url: printable(e.URL), unsent: unsent(e)}
	for _, h := range e.Headers {
		if sendable(h) {
			r.headers = append(r.headers, h)
		}
	}
	switch {
	case len(e.Body) == 0:
	case len(e.Body) <= maxCurl && pasteable(string(e.Body)):
		r.body = string(e.Body)
	default:
		r.file = string(e.ID) + ".bin"
	}
	return r
}

// backslashLost finds a backslash that HTTPie takes for an escape. No spelling makes HTTPie send a backslash there.
var backslashLost = regexp.MustCompile(`(^|[^\\])(\\\\)*\\[:;=@]`)

// strayPercent finds a percent sign that begins no escape.
var strayPercent = regexp.MustCompile(`%([0-9A-Fa-f]?([^0-9A-Fa-f]|$))`)

// escaped is a URL for HTTPie and requests: these escape every percent sign of a URL once more if one of them begins no
// escape.
func escaped(url string) string {
	for strayPercent.MatchString(url) {
		url = strayPercent.ReplaceAllString(url, "%25$1")
	}
	return url
}

// The segments that fetch and requests remove from a path by themselves.
var (
	fetchDots    = regexp.MustCompile(`(?i)/(\.|%2e){1,2}(/|$)`)
	requestsDots = regexp.MustCompile(`/\.{1,2}(/|$)`)
)

// rewritten finds an escape that requests, by which HTTPie sends too, takes off, since its character needs none (RFC
// 3986, section 2.3), or writes in capitals.
var rewritten = regexp.MustCompile(`%((?i:2[DE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E)|[0-9A-Fa-f][a-f]|[a-f][0-9A-F])`)

// escapes is a comment where a client rewrites those of the URL, which is another to who signs it.
func (r pasted) escapes(client string) string {
	escape := rewritten.FindString(r.url)
	if escape == "" {
		return ""
	}
	return "# " + client + " writes escapes in the URL in a way of its own, among them " + escape + ".\n"
}

// dotted is a comment to put above a copy whose client removes segments of the path. It is empty when the path has no
// such segment.
func (r pasted) dotted(dots *regexp.Regexp, comment string) string {
	path, _, _ := strings.Cut(r.url, "?")
	if !dots.MatchString(path) {
		return ""
	}
	return comment + " takes the segments . and .. out of the path, so this goes to another address.\n"
}

func (r pasted) httpie() string {
	if strings.HasPrefix(r.method, "-") {
		return "# HTTPie takes a method that begins with a hyphen for an option."
	}
	var b strings.Builder
	b.WriteString(r.escapes("HTTPie"))
	headers := make(hookglass.Headers, 0, len(r.headers))
	for _, h := range r.headers {
		if !pasteable(h.Value) {
			b.WriteString("# HTTPie is not given " + h.Name + ": its value cannot be pasted.\n")
			continue
		}
		headers = append(headers, h)
		if backslashLost.MatchString(h.Value) {
			b.WriteString("# HTTPie leaves out the backslash before one of :;=@ in " + h.Name + ".\n")
		}
	}
	b.WriteString("http")
	if r.file == "" {
		b.WriteString(" --ignore-stdin") // else it reads standard input that is no terminal, or refuses it beside a body
	}
	if strings.Contains(r.url, "/.") {
		b.WriteString(" --path-as-is")
	}
	if r.file == "" && r.body != "" {
		b.WriteString(" \\\n  --raw=" + shell(r.body) + " \\\n ")
	}
	b.WriteString(" " + shell(r.method) + " " + shell(escaped(r.url)))
	if len(headers)+len(r.unsent) > 0 {
		b.WriteString(" --") // what follows is no option, even if the name of a header looks like one
	}
	for _, h := range headers {
		separator := ":"
		switch {
		case h.Value == "":
			separator = ";"
		case h.Value[0] == '@', h.Value[0] == '=':
			separator = `:\` // without the backslash it would send a file of that name, or JSON
		}
		b.WriteString(" \\\n  " + shell(h.Name+separator+h.Value))
	}
	for _, name := range r.unsent {
		b.WriteString(" \\\n  " + shell(name+":"))
	}
	if r.file != "" {
		b.WriteString(" \\\n  < " + shell(r.file))
	}
	return b.String()
}

// literal is a text as a string in double quotes that JavaScript, Go and Python all read in the same way.
func literal(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == 0x2028 || c == 0x2029 || c == 0xfeff: // JavaScript ends a line at the first two; Go refuses the third
			b.WriteString(`\u` + strconv.FormatInt(int64(c), 16))
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// literalBytes is the value of a header as a string of JavaScript and Python, with one character for each of its bytes.
// Both send each character of a header as one byte, and refuse a character that has no single byte.
func literalBytes(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.Write([]byte{'\\', c})
		case c < ' ' || c >= utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (r pasted) fetch() string {
	var b strings.Builder
	if r.file != "" {
		b.WriteString("import { readFile } from \"node:fs/promises\";\n\n")
	}
	b.WriteString(r.dotted(fetchDots, "// fetch"))
	url := strings.ReplaceAll(r.url, `\`, "%5C") // fetch takes a backslash for a slash
	b.WriteString("const response = await fetch(" + literal(url) + ", {\n  method: " + literal(r.method) + ",\n")
	if len(r.headers) > 0 {
		b.WriteString("  headers: [\n")
		for _, h := range r.headers {
			b.WriteString("    [" + literal(h.Name) + ", " + literalBytes(h.Value) + "],\n")
		}
		b.WriteString("  ],\n")
	}
	bodiless := r.method == "GET" || r.method == "HEAD"
	switch {
	case r.file == "" && r.body == "":
	case bodiless:
		b.WriteString("  // The body is left out: fetch sends none with " + r.method + ".\n")
	case r.file != "":
		b.WriteString("  body: await readFile(" + literal(r.file) + "),\n")
	case slices.Contains(r.unsent, "Content-Type"): // fetch names the type of a string by itself
		b.WriteString("  body: new TextEncoder().encode(" + literal(r.body) + "),\n")
	default:
		b.WriteString("  body: " + literal(r.body) + ",\n")
	}
	b.WriteString("});\nconsole.log(response.status, await response.text());")
	return b.String()
}

func (r pasted) golang() string {
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n\t\"fmt\"\n\t\"io\"\n\t\"log\"\n\t\"net/http\"\n")
	body := "nil"
	switch {
	case r.file != "":
		b.WriteString("\t\"os\"\n")
		body = "file"
	case r.body != "":
		b.WriteString("\t\"strings\"\n")
		body = "strings.NewReader(" + literal(r.body) + ")"
	}
	b.WriteString(")\n\nfunc main() {\n")
	if r.file != "" {
		b.WriteString("\tfile, err := os.Open(" + literal(r.file) + ")\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n")
	}
	b.WriteString("\treq, err := http.NewRequest(" + literal(r.method) + ", " + literal(r.url) + ", " + body + ")\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n")
	for _, h := range r.headers {
		value := literal(h.Value)
		if !pasteable(h.Value) {
			value = literalBytes(h.Value) // in Go, each escape is a byte
		}
		b.WriteString("\treq.Header.Add(" + literal(h.Name) + ", " + value + ")\n")
	}
	b.WriteString("\tres, err := http.DefaultClient.Do(req)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tdefer res.Body.Close()\n" +
		"\tanswer, err := io.ReadAll(res.Body)\n\tfmt.Println(res.Status, string(answer), err)\n}")
	return b.String()
}

func (r pasted) python() string {
	var b strings.Builder
	b.WriteString("import requests\n\n" + r.dotted(requestsDots, "# requests") + r.escapes("requests") + "response = requests.request(\n    " + literal(r.method) + ",\n    " + literal(escaped(r.url)) + ",\n")
	if len(r.headers) > 0 {
		b.WriteString("    headers={\n")
		for i, h := range r.headers {
			if slices.ContainsFunc(r.headers[:i], func(o hookglass.Header) bool { return strings.EqualFold(o.Name, h.Name) }) {
				continue // a dictionary holds each name once
			}
			b.WriteString("        " + literal(h.Name) + ": " + literalBytes(strings.Join(r.headers.Values(h.Name), ", ")) + ",\n")
		}
		b.WriteString("    },\n")
	}
	if r.file != "" {
		b.WriteString("    data=open(" + literal(r.file) + ", \"rb\"),\n")
	} else if r.body != "" {
		b.WriteString("    data=" + literal(r.body) + ".encode(),\n")
	}
	b.WriteString(")\nprint(response.status_code, response.text)")
	return b.String()
}

// sample is the body of the first request.
const sample = `{"hello":"world"}`

// Curl returns the command that sends an endpoint its first request.
func Curl(url string) string {
	return "curl -X POST '" + url + "' -H 'Content-Type: application/json' -d '" + sample + "'"
}

// Samples are how programs send an endpoint its first request.
func Samples(url string) []Copy {
	quoted := literal(sample)
	return []Copy{
		{"curl", Curl(url)},
		{"JavaScript", "await fetch(" + literal(url) + ", {\n  method: \"POST\",\n  headers: { \"Content-Type\": \"application/json\" },\n  body: JSON.stringify({ hello: \"world\" }),\n});"},
		{"Python", "import requests\n\nrequests.post(" + literal(url) + ", json={\"hello\": \"world\"})"},
		{"Go", "res, err := http.Post(" + literal(url) + ",\n\t\"application/json\", strings.NewReader(" + quoted + "))"},
		{"PHP", "$curl = curl_init('" + url + "');\ncurl_setopt($curl, CURLOPT_POSTFIELDS, '" + sample + "');\ncurl_setopt($curl, CURLOPT_HTTPHEADER, ['Content-Type: application/json']);\ncurl_exec($curl);"},
		{"Ruby", "require \"net/http\"\n\nNet::HTTP.post(URI(" + literal(url) + "), '" + sample + "',\n  \"Content-Type\" => \"application/json\")"},
		{"Java", "HttpClient.newHttpClient().send(\n    HttpRequest.newBuilder(URI.create(" + literal(url) + "))\n        .header(\"Content-Type\", \"application/json\")\n        .POST(HttpRequest.BodyPublishers.ofString(" + quoted + ")).build(),\n    HttpResponse.BodyHandlers.ofString());"},
		{"C#", "using var client = new HttpClient();\nawait client.PostAsync(" + literal(url) + ",\n    new StringContent(" + quoted + ", Encoding.UTF8, \"application/json\"));"},
	}
}

// EditableHeaders are the headers that the form of a replay shows. Headers that each client writes by itself, and those
// that nobody can type, are left out.
func EditableHeaders(h hookglass.Headers) hookglass.Headers {
	var all hookglass.Headers
	for _, f := range h {
		if slices.Contains(leftOut, strings.ToLower(f.Name)) || !pasteable(f.Name+f.Value) || strings.ContainsAny(f.Value, "\n\t") {
			continue
		}
		all = append(all, f)
	}
	return all
}
