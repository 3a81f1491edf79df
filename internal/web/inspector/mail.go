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

// Mail is a mail as it is shown.
type Mail struct {
	*email.Message
	email.Extracted
	Results *email.Results // nil: not judged yet
	Source  string         // the beginning of the message as received
	Cut     bool
	Plain   string // the text, shortened
}

func newMail(e *hookglass.Event) *Mail {
	m := &Mail{Message: email.Parse(e.Body)}
	m.Extracted = email.Extract(m.Message)
	if len(e.Verdict) > 0 {
		var r email.Results
		if json.Unmarshal(e.Verdict, &r) == nil {
			m.Results = &r
		}
	}
	source, cut := show.Cut(string(e.Body[:min(len(e.Body), maxText+8)]), maxText)
	m.Source, m.Cut = show.Text(source), cut
	text, _ := show.Cut(m.Text, maxText)
	m.Plain = show.Text(text)
	return m
}

var cidPattern = regexp.MustCompile(`(?i)cid:[^"'\s)>]+`)

// maxInline bounds what the images take that are put into a mail's HTML, as they are written there.
const maxInline = 8 << 20

// MailHTML is the HTML of a raw mail with the images that it carries itself put into it, to be shown in a sandbox
// alone. What the sandbox would refuse anyway is taken out: scripts, and unless remote is allowed what is loaded from
// elsewhere.
func MailHTML(raw []byte, remote bool) string {
	m := email.Parse(raw)
	in := images{message: m, room: maxInline, written: map[int]string{}}
	return tamed(m.HTML, remote, func(address string) string { return cidPattern.ReplaceAllStringFunc(address, in.image) })
}

// images puts the images of a mail into its HTML. Each is read once, however often it is referred to.
type images struct {
	message *email.Message
	room    int
	written map[int]string // by the index of the file
}

// image is the address of the image that is referred to, with all of it, or the reference where there is none to show.
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

// away are the attributes by which a page loads something without being asked.
var away = []string{"src", "srcset", "background", "poster", "data", "action", "formaction", "ping"}

// tamed is HTML without scripts and handlers and, unless remote is allowed, without what is loaded from elsewhere; what
// attributes and styles refer to goes through inlined. It makes nothing safe: the sandbox does. It spares a reader what
// the browser would complain about.
func tamed(text string, remote bool, inlined func(string) string) string {
	t := tamer{z: html.NewTokenizer(strings.NewReader(text)), remote: remote, inlined: inlined}
	t.z.SetMaxBuf(maxInline) // an image may be written out in its tag
	for {
		switch kind := t.z.Next(); kind {
		case html.ErrorToken:
			return t.out.String()
		case html.TextToken:
			t.text()
		case html.DoctypeToken: // as written: without one that they can read, browsers show tables in another way
			t.out.Write(t.z.Raw())
		case html.CommentToken: // left out
		default:
			t.tag(kind)
		}
	}
}

// tamer writes HTML again as it is read.
type tamer struct {
	z       *html.Tokenizer
	out     strings.Builder
	remote  bool
	inlined func(string) string

	leftOut bool // what is read is in an element that is
	inStyle bool
}

// text writes what stands between tags, as written: Token would read the entities in place.
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
	// What an element holds is behind <script/> and <style/> too: browsers take no note of the stroke.
	switch ends := kind == html.EndTagToken; token.Data {
	case "script", "iframe": // what is in them is no text to show
		t.leftOut = !ends
		return
	case "style":
		if !t.leftOut {
			t.inStyle = !ends
		}
	case "noscript": // is read as markup, as scripts do not run here
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

// unshown are elements whose tags are left out.
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

// elsewhere reports whether an address is neither within the mail nor in itself.
func elsewhere(address string) bool {
	address = strings.ToLower(strings.TrimSpace(address))
	return !strings.HasPrefix(address, "cid:") && !strings.HasPrefix(address, "data:")
}
