package rest

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"hookglass/internal/httpd"
)

//go:embed docs.html
var docsPage string

//go:embed docs.css
var docsStyle string

// docs is the description as a page for people. It needs no script and loads nothing from other hosts.
type docs struct {
	Title, About, Version, Server string
	Style                         template.CSS
	Groups                        []docsGroup
	Failures                      []docsFailure
}

type docsGroup struct {
	Name       string
	Operations []docsOperation
}

type docsOperation struct {
	ID, Method, Path, Summary, Text, Access string
	Deprecated                              bool
	Parameters                              []docsField
	Fields                                  []docsField // of the body
	Request, Answer                         string      // examples
	Status                                  string
	Media                                   []string
	Failures                                []string
}

type docsField struct {
	Name, In, Type, Text string
	Required             bool
}

type docsFailure struct{ Status, Text, Example string }

// page renders the description.
func (t *table) page() ([]byte, error) {
	doc := t.api.OpenAPI()
	d := docs{
		Title: doc.Info.Title, About: doc.Info.Description, Version: doc.Info.Version, Server: doc.Servers[0].URL,
		Style: template.CSS(docsStyle), //nolint:gosec // our own file
	}
	for _, name := range t.tags {
		group := docsGroup{Name: name}
		for _, op := range t.operations {
			if op.Tags[0] == name {
				group.Operations = append(group.Operations, t.documented(op))
			}
		}
		d.Groups = append(d.Groups, group)
	}
	for _, status := range slices.Sorted(maps.Keys(reasons)) {
		r := doc.Components.Responses[reasons[status].name]
		d.Failures = append(d.Failures, docsFailure{fmt.Sprint(status), r.Description, pretty(r.Content["application/json"].Example)})
	}
	page, err := template.New("docs").Parse(docsPage)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = page.Execute(&out, d)
	return out.Bytes(), err
}

func (t *table) documented(op *huma.Operation) docsOperation {
	out := docsOperation{
		ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, Text: op.Description,
		Deprecated: op.Deprecated, Access: "No token is needed.",
	}
	if len(op.Security) > 0 {
		out.Access = "Any valid token."
		if scopes := op.Security[0][scheme]; len(scopes) > 0 {
			out.Access = "Scope " + strings.Join(scopes, ", ") + "."
		}
	}
	for _, p := range op.Parameters {
		out.Parameters = append(out.Parameters, docsField{p.Name, p.In, typeName(p.Schema), p.Description, p.Required})
	}
	if op.RequestBody != nil {
		media := op.RequestBody.Content["application/json"]
		out.Fields = t.fields("", media.Schema)
		out.Request = pretty(media.Example)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		if status >= "300" {
			out.Failures = append(out.Failures, status)
			continue
		}
		out.Status = status
		for _, media := range slices.Sorted(maps.Keys(r.Content)) {
			out.Media = append(out.Media, media)
			if r.Content[media].Example != nil {
				out.Answer = pretty(r.Content[media].Example)
			}
		}
	}
	return out
}

// fields lists the members of an object and, below them, those of the objects in it.
func (t *table) fields(prefix string, s *huma.Schema) []docsField {
	if len(s.AnyOf) > 0 {
		s = s.AnyOf[0]
	}
	if s.Ref != "" {
		s = t.api.OpenAPI().Components.Schemas.SchemaFromRef(s.Ref)
	}
	var all []docsField
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		all = append(all, docsField{prefix + name, "body", typeName(p), p.Description, slices.Contains(s.Required, name)})
		all = append(all, t.fields(prefix+name+".", p)...)
	}
	return all
}

func typeName(s *huma.Schema) string {
	switch {
	case s == nil:
		return ""
	case len(s.AnyOf) > 0 && s.AnyOf[0].Ref == "":
		return typeName(s.AnyOf[0]) + " or " + typeName(s.AnyOf[1])
	case s.Ref != "" || len(s.AnyOf) > 0:
		return "object"
	case len(s.Enum) > 0:
		return strings.Join(spelled(s.Enum), " | ")
	case s.Type == huma.TypeArray:
		return "array of " + typeName(s.Items)
	}
	name := s.Type
	if s.Minimum != nil && s.Maximum != nil {
		name += fmt.Sprintf(", %v to %v", *s.Minimum, *s.Maximum)
	}
	if s.Default != nil {
		name += fmt.Sprintf(", default %v", s.Default)
	}
	return name
}

func pretty(v any) string {
	if v == nil {
		return ""
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // the template escapes it
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSpace(out.String())
}

// serveDocs serves the page with a policy that allows only its own style, by its hash, and the icon that browsers ask a
// site for.
func (t *table) serveDocs(mux *httpd.Mux) {
	sum := sha256.Sum256([]byte(docsStyle))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	serve := document("text/html; charset=utf-8", t.page)
	mux.HandleFunc("GET /docs", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		serve(w, r)
	})
}
