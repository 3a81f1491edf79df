package inspector

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"hookglass"
	"hookglass/internal/email"
	"hookglass/internal/web/show"
)

// Mail is a mail prepared for display.
type Mail struct {
	*email.Message
	email.Extracted
	Results *email.Results // nil: not judged yet
	Source  string         // the beginning of the message as received
	Cut     bool
	Plain   string // the text, shortened
}

func newMail(e *hookglass.Event) *Mail {
	m := &Mail{Message: email.Parse(e.Body), Results: resultsOf(e)}
	m.Extracted = email.Extract(m.Message)
	source, cut := beginningOf(e.Body, maxText)
	m.Source, m.Cut = show.Text(source), cut
	text, _ := show.Cut(m.Text, maxText)
	m.Plain = show.Text(text)
	return m
}

// resultsOf returns what the checks of a mail found, or nil if it was not judged yet or comes without its payload.
func resultsOf(e *hookglass.Event) *email.Results {
	var r email.Results
	if e.Payload == nil || json.Unmarshal(e.Verdict, &r) != nil {
		return nil
	}
	return &r
}

var cidPattern = regexp.MustCompile(`(?i)cid:[^"'\s)>]+`)

// maxInline bounds the total size of images inlined into the HTML of a mail, as encoded.
const maxInline = 8 << 20

// MailHTML returns the HTML of a raw mail with its own images inlined. It must be shown in a sandbox. It has no scripts
// and, unless remote is allowed, no remote content: the sandbox would block both.
func MailHTML(raw []byte, remote bool) string {
	m := email.Parse(raw)
	in := images{message: m, room: maxInline, written: map[int]string{}}
	return tamed(m.HTML, remote, func(address string) string { return cidPattern.ReplaceAllStringFunc(address, in.image) })
}

// images inlines the images of a mail into its HTML. Each is decoded once, however often it is referenced.
type images struct {
	message *email.Message
	room    int
	written map[int]string // by the index of the file
}

// image returns the referenced image as a data URL, or the reference if there is no image to show.
func (in *images) image(ref string) string {
	file, ok := in.message.InlineByCID(ref)
	if !ok || !strings.HasPrefix(file.ContentType, "image/") || file.Size == 0 || file.Size > int64(in.room) {
		return ref
	}
	address, known := in.written[file.Index]
	if !known {
		content, err := in.message.Content(file.Index)
		if err != nil {
			return ref
		}
		address = "data:" + file.ContentType + ";base64," + base64.StdEncoding.EncodeToString(content)
		in.written[file.Index] = address
	}
	if len(address) > in.room {
		return ref
	}
	in.room -= len(address)
	return address
}

// away lists the attributes that make a page load or send something.
var away = []string{"src", "srcset", "background", "poster", "data", "action", "formaction", "ping"}

// tamed returns HTML without scripts and handlers and, unless remote is allowed, without remote content. References in
// attributes and styles go through inlined. Safety comes from the sandbox, not from here: this only avoids complaints
// of the browser.
func tamed(text string, remote bool, inlined func(string) string) string {
	t := tamer{z: html.NewTokenizer(strings.NewReader(text)), remote: remote, inlined: inlined}
	t.z.SetMaxBuf(maxInline) // a tag may contain an image as a data URL
	for {
		switch kind := t.z.Next(); kind {
		case html.ErrorToken:
			return t.out.String()
		case html.TextToken:
			t.text()
		case html.DoctypeToken: // unchanged: without a valid one, browsers lay out tables differently
			t.out.Write(t.z.Raw())
		case html.CommentToken: // dropped
		default:
			t.tag(kind)
		}
	}
}

// tamer rewrites HTML token by token.
type tamer struct {
	z       *html.Tokenizer
	out     strings.Builder
	remote  bool
	inlined func(string) string

	leftOut bool // inside an element that is dropped
	inStyle bool
}

// text writes text between tags unchanged. Token would decode the entities in place.
func (t *tamer) text() {
	switch {
	case t.leftOut:
	case t.inStyle && !t.remote:
		t.out.WriteString(t.inlined(urlPattern.ReplaceAllString(importPattern.ReplaceAllString(string(t.z.Raw()), ""), "none")))
	case t.inStyle:
		t.out.WriteString(t.inlined(string(t.z.Raw())))
	default:
		t.out.Write(t.z.Raw())
	}
}

// tag writes a tag.
func (t *tamer) tag(kind html.TokenType) {
	token := t.z.Token()
	// <script/> and <style/> have contents too: browsers ignore the slash.
	switch ends := kind == html.EndTagToken; token.Data {
	case "script", "iframe": // their contents are not shown
		t.leftOut = !ends
		return
	case "style":
		if !t.leftOut {
			t.inStyle = !ends
		}
	case "noscript": // parsed as markup, because scripts do not run here
		if !t.leftOut {
			t.z.NextIsNotRawText()
		}
	}
	switch {
	case t.leftOut:
	case kind == html.EndTagToken:
		t.out.WriteString(token.String())
	case kind == html.StartTagToken, kind == html.SelfClosingTagToken:
		if slices.Contains(unshown, token.Data) || !t.remote && token.Data == "link" {
			return
		}
		token.Attr = t.attributes(token.Attr)
		t.out.WriteString(token.String())
	}
}

// unshown lists the elements whose tags are dropped.
var unshown = []string{"base", "meta", "object", "embed", "frame"}

func (t *tamer) attributes(all []html.Attribute) []html.Attribute {
	kept := all[:0]
	for _, a := range all {
		name := strings.ToLower(a.Key)
		switch {
		case strings.HasPrefix(name, "on"):
			continue
		case !t.remote && slices.Contains(away, name) && elsewhere(a.Val):
			a.Key = "data-" + name
		case !t.remote && name == "style":
			a.Val = urlPattern.ReplaceAllString(a.Val, "none")
		}
		a.Val = t.inlined(a.Val)
		kept = append(kept, a)
	}
	return kept
}

var (
	urlPattern    = regexp.MustCompile(`(?i)url\(\s*["']?\s*(?:https?:)?//[^)]*\)`)
	importPattern = regexp.MustCompile(`(?i)@import[^;]*;`)
)

// elsewhere reports whether an address is remote: neither a part of the mail nor a data URL.
func elsewhere(address string) bool {
	address = strings.ToLower(strings.TrimSpace(address))
	return !strings.HasPrefix(address, "cid:") && !strings.HasPrefix(address, "data:")
}
