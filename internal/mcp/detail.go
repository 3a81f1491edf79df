package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/capture"
	"hookglass/internal/coding"
	"hookglass/internal/jsondoc"
)

// requestDetail is the detail form with bodies shortened to what the agent asks for.
type requestDetail struct {
	api.EventDetail
	Truncated []string   `json:"truncated" doc:"The bodies of which only the beginning is here."`
	Parts     []bodyPart `json:"parts,omitempty" doc:"The parts of the body that were asked for."`
}

// bodyPart is the value of a pointer into a body.
type bodyPart struct {
	Pointer   string          `json:"pointer"`
	Found     bool            `json:"found"`
	Value     json.RawMessage `json:"value,omitempty"`
	Beginning *string         `json:"beginning,omitempty"`
	Size      int             `json:"size"`
}

// maxDeliveries bounds the deliveries shown to an agent, newest first. Their bodies share the bound of the body.
const maxDeliveries = 10

// detailTimes is how much memory an event takes while its detail is built, in multiples of its size: as received, as
// text, and parsed.
const detailTimes = 4

// maxParsed bounds the body that pointers may read: its parsed values take several times its size.
const maxParsed = 8 << 20

func parsePointers(texts []string) ([]jsondoc.Pointer, error) {
	var pointers []jsondoc.Pointer
	for i, text := range texts {
		p, err := jsondoc.ParsePointer(text)
		if err != nil {
			return nil, hookglass.Invalid("pointers."+strconv.Itoa(i), "%s, as /data/0/id", err)
		}
		pointers = append(pointers, p)
	}
	return pointers, nil
}

// detail returns an event with at most most bytes of each body. part, if not nil, selects the one part of a multipart
// body to show as its body.
func detail(e *hookglass.Event, most int, part *int, pointers []jsondoc.Pointer) (out requestDetail, err error) {
	out.EventDetail, out.Truncated = capture.Detail(e), []string{}
	body := e.Body
	if part != nil {
		p, err := capture.Part(e, *part)
		if err != nil {
			return out, err
		}
		body = p.Content
		text, encoding := api.Body(body)
		out.Body, out.BodyEncoding = &text, encoding
	} else if len(pointers) > 0 {
		body = coding.Plain(body, e.Headers, maxParsed)
	}
	if len(pointers) > 0 {
		if out.Parts, err = partsOf(body, hookglass.IsForm(e.ContentType), most, pointers); err != nil {
			return out, err
		}
		out.Body = nil
	}
	for _, b := range []struct {
		name     string
		text     *string
		encoding string
	}{
		{"body", out.Body, out.BodyEncoding}, {"response_body_sent", out.ResponseBodySent, out.ResponseBodySentEncoding},
		{"text_body", out.TextBody, ""}, {"html_body", out.HTMLBody, ""},
	} {
		if b.text != nil && shorten(b.text, most, b.encoding) {
			out.Truncated = append(out.Truncated, b.name)
		}
	}
	out.Deliveries = out.Deliveries[:min(len(out.Deliveries), maxDeliveries)]
	for i := range out.Deliveries {
		d := &out.Deliveries[i]
		d.ResponseHeaders = nil
		if d.Body == nil {
			continue
		}
		if shorten(d.Body, most, d.BodyEncoding) {
			out.Truncated = append(out.Truncated, "deliveries."+strconv.Itoa(i)+".body")
		}
		most -= min(most, len(*d.Body))
	}
	return out, nil
}

// shorten cuts a body to most bytes and reports whether it was longer. Cut base64 stays decodable, and the rest is not
// kept in memory.
func shorten(text *string, most int, encoding string) bool {
	if len(*text) <= most {
		return false
	}
	if encoding == "base64" {
		*text = strings.Clone((*text)[:most/4*4])
	} else {
		*text = strings.Clone(strings.ToValidUTF8((*text)[:most], ""))
	}
	return true
}

// partsOf returns the values of pointers into a body, together at most most bytes; one that does not fit is cut.
func partsOf(body []byte, form bool, most int, pointers []jsondoc.Pointer) ([]bodyPart, error) {
	doc, err := jsondoc.ParseBody(body, form, jsondoc.Bounds{Bytes: maxParsed, Depth: jsondoc.MaxDepth})
	if err != nil {
		return nil, hookglass.Invalid("pointers", "need a JSON body of up to 8 MiB, or a form of up to 1 MiB; leave them out to see the body as it is")
	}
	parts := make([]bodyPart, len(pointers))
	for i, p := range pointers {
		parts[i].Pointer = p.String()
		v, found := doc.At(p)
		if !found {
			continue
		}
		parts[i].Found, parts[i].Size = true, v.Size()
		text := v.Bytes()
		if len(text) <= most {
			parts[i].Value = bytes.Clone(text)
			most -= len(text)
			continue
		}
		parts[i].Beginning = new(strings.ToValidUTF8(string(text[:most]), ""))
		most = 0
	}
	return parts, nil
}
