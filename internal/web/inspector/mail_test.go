package inspector_test

import (
	"strings"
	"testing"

	"hookglass/internal/web/inspector"
)

// What is shown of a mail's HTML is what its sender wrote, but for scripts and what is loaded from elsewhere.
func TestTheHTMLOfAMailIsShownAsWritten(t *testing.T) {
	image := `<img src="data:image/png;base64,` + strings.Repeat("iVBORw0KGgo", 200_000) + `"/>`
	for _, tt := range []struct {
		html string
		want string // without remote content; empty: html
	}{
		{`<p>Tom &amp; Jerry, 5&nbsp;&euro; &lt;b&gt; &#8364;</p>`, ""},
		{`<p>a && b &copy; &unknown; <b>1 &lt; 2</b></p>`, ""},
		{`<!DOCTYPE html><p>x</p>`, ""},
		{`<p>Write @import x; or url(https://example.com/a) into it.</p>`, ""},
		{`<textarea>&lt;i&gt;</textarea>`, ""},
		{image + `<p>behind it</p>`, ""},
		{`<style>@import url(https://example.com/a); p { background: url("https://example.com/b") } a > b { color: red }</style>`, `<style> p { background: none } a > b { color: red }</style>`},
		{`<script>if (a &amp;&amp; b) { load() }</script><p>&amp;</p>`, `<p>&amp;</p>`},
	} {
		want := tt.want
		if want == "" {
			want = tt.html
		}
		raw := []byte("Content-Type: text/html\r\n\r\n" + tt.html)
		if got := inspector.MailHTML(raw, false); got != want {
			t.Errorf("%.200s\nis shown as\n%.200s, want\n%.200s", tt.html, got, want)
		}
		if got := inspector.MailHTML(raw, true); !strings.Contains(tt.html, "<script") && got != tt.html {
			t.Errorf("with remote content, %.200s\nis shown as\n%.200s", tt.html, got)
		}
	}
}
