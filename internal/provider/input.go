package provider

import (
	"mime"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/jsondoc"
)

const (
	hintBytes  = 1 << 20 // of a body that are searched for hints and event types; signatures cover all of it
	fieldBytes = 512     // of an event type or id that are kept
)

// input is a request with the parsed forms of its body, each made when first needed. It serves one call.
type input struct {
	*Request
	needs                      *KeyRef // the first key that was needed and is not known
	didJSON, didForm, didQuery bool
	didParts, didSigned        bool
	json                       value
	top                        *fields // nil until the body is read
	form, query, parts         []pair
	signed                     []byte // see signedParams
}

// fields are the first members of a JSON object at the top of a body, scanned once. Rules on the shape of a body see
// only these; pointers reach later members with a second scan.
type fields struct {
	known   int
	members [32]span
	more    bool // there are more members than fit
}

func (in *input) isForm() bool {
	return hookglass.IsForm(in.Headers.Get("Content-Type"))
}

// boundary returns the boundary of a multipart form, or "".
func (in *input) boundary() string {
	media, params, err := mime.ParseMediaType(in.Headers.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" {
		return ""
	}
	return params["boundary"]
}

// hint returns the beginning of the body, decompressed.
func (in *input) hint() []byte {
	body := decode(in.Body, coding.Of(in.Headers))
	return body[:min(len(body), hintBytes)]
}

// hasOneReading reports whether everybody reads in the body what is read here. A signature within the body covers some
// members alone: another of the same name could stand beside one of them, or behind what is read.
func (in *input) hasOneReading() bool {
	body := in.hint()
	return len(body) < hintBytes && jsondoc.HasOneReading(body)
}

// decode decompresses at most hintBytes of a body; what it cannot decode it returns unchanged.
func decode(body []byte, of string) []byte {
	plain, err := coding.Decoded(body, of, hintBytes)
	if err != nil && len(plain) == 0 {
		return body
	}
	return plain
}

// doc returns the JSON value of the body, nil when there is none.
func (in *input) doc() value {
	if !in.didJSON {
		in.didJSON = true
		in.json = parseJSON(in.hint())
		f := &fields{}
		in.top = f
		members(in.json, 0, func(m span) bool {
			if f.known == len(f.members) {
				f.more = true
				return false
			}
			f.members[f.known] = m
			f.known++
			return true
		})
	}
	return in.json
}

// at returns the value of the body at a pointer's tokens.
func (in *input) at(tokens []string) value {
	doc := in.doc()
	if len(tokens) == 0 || len(doc) == 0 || doc[0] != '{' {
		return doc.at(tokens)
	}
	for _, m := range in.top.members[:in.top.known] {
		if nameIs(doc[m.name:m.nameEnd], tokens[0]) {
			return doc[m.start:m.end].at(tokens[1:])
		}
	}
	if in.top.more {
		return doc.at(tokens)
	}
	return nil
}

// formFields returns the fields of a form of either kind, but not the files of a multipart one.
func (in *input) formFields() []pair {
	if in.isForm() {
		return in.params()
	}
	if !in.didParts {
		in.didParts = true
		if boundary := in.boundary(); boundary != "" {
			in.parts = parseParts(in.hint(), boundary)
		}
	}
	return in.parts
}

// params returns the body's form if its parameters may be signed, or nothing.
func (in *input) params() []pair {
	if !in.didForm {
		in.didForm = true
		if in.isForm() {
			in.form = parseForm(string(in.hint()))
		}
	}
	return in.form
}

// queryParams returns the pairs of the query string.
func (in *input) queryParams() []pair {
	if !in.didQuery {
		in.didQuery = true
		in.query = parseForm(in.RawQuery)
	}
	return in.query
}
