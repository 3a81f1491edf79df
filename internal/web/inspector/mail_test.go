package inspector_test

import (
	"strings"
	"testing"
	"time"

	"hookglass/internal/cputime"
	"hookglass/internal/web/inspector"
)

// What is shown of a mail's HTML is what its sender wrote, but for scripts and what is loaded from elsewhere.
func TestTheHTMLOfAMailIsShownAsWritten(t *testing.T) {
	image := `<img src="data:image/png;base64,` + strings.Repeat("iVBORw0KGgo", 200_000) + `"/>`
	for _, tt := range []struct {
		html string
		want string // without remote content; empty: html; none of it: nothing
	}{
		{`<p>Tom &amp; Jerry, 5&nbsp;&euro; &lt;b&gt; &#8364;</p>`, ""},
		{`<p>a && b &copy; &unknown; <b>1 &lt; 2</b></p>`, ""},
		{`<!DOCTYPE html><p>x</p>`, ""},
		{`<p>Write @import x; or url(https://example.com/a) into it.</p>`, ""},
		{`<textarea>&lt;i&gt;</textarea>`, ""},
		{image + `<p>behind it</p>`, ""},
		{`<style>@import url(https://example.com/a); p { background: url("https://example.com/b") } a > b { color: red }</style>`, `<style> p { background: none } a > b { color: red }</style>`},
		{`<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd"><p>x</p>`, ""},
		{`<!doctype HTML PUBLIC '-//W3C//DTD HTML 4.01//EN'><p>x</p>`, ""},
		{`<style/>@import url(https://e.x/); p { color: red }</style><p>x</p>`, `<style/> p { color: red }</style><p>x</p>`},
		{`<noframes>&lt;b></noframes><noembed>a && b</noembed>`, ""},
		{`<script>if (a &amp;&amp; b) { load() }</script><p>&amp;</p>`, `<p>&amp;</p>`},
		{`<script/>alert(1)</script><p>x</p>`, `<p>x</p>`},
		{`<script/>alert(1)`, `none of it`},
		{`<iframe src="https://e.x/"><script>alert(1)</script></iframe><p>x</p>`, `<p>x</p>`},
		{`<noscript><img src="https://e.x/"/><script>alert(1)</script></noscript>`, `<noscript><img data-src="https://e.x/"/></noscript>`},
	} {
		want := tt.want
		switch want {
		case "":
			want = tt.html
		case "none of it":
			want = ""
		}
		raw := []byte("Content-Type: text/html\r\n\r\n" + tt.html)
		if got := inspector.MailHTML(raw, false); got != want {
			t.Errorf("%.200s\nis shown as\n%.200s, want\n%.200s", tt.html, got, want)
		}
		if got := inspector.MailHTML(raw, true); !strings.Contains(tt.html, "<script") && got != tt.html || strings.Contains(got, "alert") {
			t.Errorf("with remote content, %.200s\nis shown as\n%.200s", tt.html, got)
		}
	}
}

// A comment may consist of the name of an element, which is no tag for that.
func TestACommentInAMailHidesNothing(t *testing.T) {
	for _, comment := range []string{"script", "iframe", "style", "noscript", "[if mso]"} {
		raw := []byte("Content-Type: text/html\r\n\r\n<p>a</p><!--" + comment + "--><p>url(//e.x/) &amp; b</p><noscript>&lt;c</noscript>")
		for _, remote := range []bool{false, true} {
			if got, want := inspector.MailHTML(raw, remote), "<p>a</p><p>url(//e.x/) &amp; b</p><noscript>&lt;c</noscript>"; got != want {
				t.Errorf("behind the comment %s: %s", comment, got)
			}
		}
	}
}

// An image that the mail carries is put in where something refers to it, and not where a text names it.
func TestImagesOfAMailAreShown(t *testing.T) {
	const data = "data:image/png;base64,aGk="
	for html, want := range map[string]string{
		`<img src="cid:logo@x">`:                                   `<img src="` + data + `">`,
		`<img src="&#99;id:logo@x">`:                               `<img src="` + data + `">`,
		`<td background="CID:logo%40x">`:                           `<td background="` + data + `">`,
		`<p style="background:url('cid:logo@x')">`:                 `<p style="background:url(&#39;` + data + `&#39;)">`,
		`<style>p { background: url(cid:logo@x) }</style>`:         `<style>p { background: url(` + data + `) }</style>`,
		`<img src="cid:other@x">`:                                  `<img src="cid:other@x">`,
		`<p>[cid:logo@x] was replaced by cid:logo@x in it</p>`:     `<p>[cid:logo@x] was replaced by cid:logo@x in it</p>`,
		`<textarea>cid:logo@x</textarea><title>cid:logo@x</title>`: `<textarea>cid:logo@x</textarea><title>cid:logo@x</title>`,
	} {
		raw := []byte("Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n" + html +
			"\r\n--b\r\nContent-Type: image/png\r\nContent-ID: <logo@x>\r\n\r\nhi\r\n--b--\r\n")
		for _, remote := range []bool{false, true} {
			if got := inspector.MailHTML(raw, remote); got != want {
				t.Errorf("%s\nis shown as\n%s, want\n%s", html, got, want)
			}
		}
	}
}

// A reference costs what is written for it, however long the image is in the message, and all that is written is
// bounded: senders choose how often they refer to what.
func TestImagesOfAMailAreReadOnce(t *testing.T) {
	const refs = 20_000
	for name, image := range map[string]string{"nothing": "", "one pixel": "aGk="} {
		raw := []byte("Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<p style=\"" + strings.Repeat("cid:x ", refs) + "\">hi</p>" +
			"\r\n--b\r\nContent-Type: image/" + strings.Repeat("p", 120) + "\r\nContent-ID: <x>\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
			image + strings.Repeat("\r\n", 500_000) + "\r\n--b--\r\n")
		var got string
		cputime.AtMost(t, 5*time.Second, name, func() { got = inspector.MailHTML(raw, false) })
		if most := 8<<20 + len(raw); len(got) > most {
			t.Errorf("%s became %d bytes", name, len(got))
		}
		if name == "nothing" && strings.Contains(got, "data:") {
			t.Errorf("an image without bytes is shown: %.100s", got)
		}
	}
}
