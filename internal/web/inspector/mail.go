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
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(text))
	z.SetMaxBuf(maxInline) // an image may be written out in its tag
	leftOut, inStyle := false, false
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return b.String()
		}
		if kind == html.TextToken { // as written: Token would read the entities in place
			switch {
			case leftOut:
			case inStyle && !remote:
				b.WriteString(inlined(urlPattern.ReplaceAllString(importPattern.ReplaceAllString(string(z.Raw()), ""), "none")))
			case inStyle:
				b.WriteString(inlined(string(z.Raw())))
			default:
				b.Write(z.Raw())
			}
			continue
		}
		if kind == html.DoctypeToken { // as written: without one that they can read, browsers show tables in another way
			b.Write(z.Raw())
			continue
		}
		token := z.Token()
		if token.Data == "script" || token.Data == "iframe" { // what is in them is no text to show
			// So it is behind <script/>, and styles behind <style/>: browsers take no note of the stroke.
			leftOut = kind != html.EndTagToken
			continue
		}
		if leftOut {
			continue
		}
		if token.Data == "style" {
			inStyle = kind != html.EndTagToken
		}
		if token.Data == "noscript" { // is read as markup, as scripts do not run here
			z.NextIsNotRawText()
		}
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			if token.Data == "base" || token.Data == "meta" || !remote && token.Data == "link" || slices.Contains([]string{"object", "embed", "frame"}, token.Data) {
				continue
			}
			kept := token.Attr[:0]
			for _, a := range token.Attr {
				name := strings.ToLower(a.Key)
				switch {
				case strings.HasPrefix(name, "on"):
					continue
				case !remote && slices.Contains(away, name) && elsewhere(a.Val):
					a.Key = "data-" + name
				case !remote && name == "style":
					a.Val = urlPattern.ReplaceAllString(a.Val, "none")
				}
				a.Val = inlined(a.Val)
				kept = append(kept, a)
			}
			token.Attr = kept
			b.WriteString(token.String())
		case html.EndTagToken:
			b.WriteString(token.String())
		}
	}
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
