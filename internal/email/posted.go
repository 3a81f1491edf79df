package email

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"hookglass"
)

// maxFormParts bounds the fields and files of a posted form; the caller bounds its bytes.
const maxFormParts = 500

// Posted is a mail that came by HTTP from a mail service.
type Posted struct {
	Raw        []byte   // the mail as the service received it, or composed from the form's fields
	Composed   bool     // Raw is not the mail itself: its signatures cannot be verified
	MailFrom   string   // the envelope according to the service; may be empty
	Recipients []string // likewise
}

// FromPost parses a posted mail: a message/rfc822 body, or the inbound forms of Mailgun (routes, parsed and MIME),
// SendGrid (inbound parse, default and raw) and Postmark (JSON). Another content type is unsupported_media_type; a body
// in none of these forms is validation_failed or invalid_json.
func FromPost(contentType string, body []byte) (*Posted, error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(strings.ToLower(contentType), ";")
		media = strings.TrimSpace(media)
	}
	switch media {
	case "message/rfc822", "message/global":
		return &Posted{Raw: body}, nil
	case "application/json":
		return fromPostmark(body)
	case "application/x-www-form-urlencoded", "multipart/form-data":
		f, err := readForm(media, params["boundary"], body)
		if err != nil {
			return nil, &hookglass.Error{Code: hookglass.CodeValidationFailed, Message: "The form cannot be read.", Err: err}
		}
		switch {
		case f.has("body-mime"), f.has("message-headers"), f.has("body-plain"), f.has("body-html") && f.has("recipient"):
			return fromMailgun(f)
		case f.has("email"), f.has("headers") && f.has("envelope"):
			return fromSendGrid(f)
		}
		return nil, hookglass.Errorf(hookglass.CodeValidationFailed, "The form is none of Mailgun's or SendGrid's inbound forms.")
	}
	return nil, hookglass.Errorf(hookglass.CodeUnsupportedMediaType, "Send message/rfc822, or an inbound form of Mailgun, SendGrid or Postmark.")
}

// form is a posted form. Values are bytes as sent.
type form struct {
	values map[string]string
	files  map[string]piece
	order  []string // of the files
}

func (f *form) has(name string) bool { _, ok := f.values[name]; return ok }

func readForm(media, boundary string, body []byte) (*form, error) {
	f := &form{values: map[string]string{}, files: map[string]piece{}}
	if media == "application/x-www-form-urlencoded" {
		if bytes.Count(body, []byte("&")) >= maxFormParts {
			return nil, errors.New("too many fields")
		}
		for name, value := range hookglass.Pairs(string(body)) {
			if !f.has(name) {
				f.values[name] = value
			}
		}
		return f, nil
	}
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for n := 0; ; n++ {
		part, err := r.NextRawPart()
		switch {
		case errors.Is(err, io.EOF):
			return f, nil
		case err != nil:
			return nil, err
		case n == maxFormParts:
			return nil, errors.New("too many fields")
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		name := part.FormName()
		_, params := parseParameters(part.Header.Get("Content-Disposition"), func(Fault) {})
		filename, isFile := params["filename"]
		switch {
		case name == "":
		case isFile && name == "email", isFile && name == "body-mime": // a raw message sent as a file
			f.values[name] = string(content)
		case isFile:
			if _, repeated := f.files[name]; !repeated {
				f.order = append(f.order, name)
			}
			f.files[name] = piece{name: filename, media: part.Header.Get("Content-Type"), content: content}
		default:
			if !f.has(name) {
				f.values[name] = string(content)
			}
		}
	}
}

// text returns a field as UTF-8, converted from the charset that the form names for it.
func (f *form) text(name, charset string) string {
	s, _ := toUTF8([]byte(f.values[name]), charset)
	return s
}
