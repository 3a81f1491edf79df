package coding_test

import (
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"hookglass/internal/coding"
)

const formType = "multipart/form-data; boundary=x"

func partsOf(body, contentType string) (all []coding.Part) {
	for i, p := range coding.Parts([]byte(body), contentType) {
		if i != len(all) {
			panic("the parts are not counted from 0")
		}
		all = append(all, p)
	}
	return all
}

func TestPartsAreReadAsTheyWereSent(t *testing.T) {
	const form = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=41\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"../n.bin\"\r\nContent-Type: image/png\r\n\r\n\xff\x00\r\n--x--\r\n"
	got := partsOf(form, formType)
	if len(got) != 2 || got[0].Name != "a" || string(got[0].Content) != "=41" ||
		got[1].Filename != "n.bin" || got[1].ContentType != "image/png" || string(got[1].Content) != "\xff\x00" {
		t.Errorf("%+v", got)
	}
	if got := partsOf(form[:len(form)-12], formType); len(got) != 1 {
		t.Errorf("of a body that breaks off in its second part: %+v", got)
	}
	for _, contentType := range []string{"", "text/plain; boundary=x", "multipart/form-data", "multipart/form-data; boundary", "multipart/mixed; boundary=y"} {
		if got := partsOf(form, contentType); len(got) != 0 {
			t.Errorf("as %q it has %+v", contentType, got)
		}
	}
}

func TestAFilenameIsTheLastElementOfAPath(t *testing.T) {
	for sent, want := range map[string]string{
		`a.txt`: "a.txt", `x/a.txt`: "a.txt", `C:\dir\a.txt`: "a.txt", `C:\\dir\\a.txt`: "a.txt", `..\..\a`: "a", `..`: "", `a/..`: "", `.`: "", `\`: "", ``: "", `.env`: ".env",
	} {
		got := partsOf("--x\r\nContent-Disposition: form-data; name=a; filename=\""+sent+"\"\r\n\r\nv\r\n--x--\r\n", formType)
		if len(got) != 1 || got[0].Filename != want {
			t.Errorf("of %q: %+v", sent, got)
		}
	}
}

// RFC 822 has control characters in fields, as some clients write them into names of files: no part is passed over for
// it, nor what follows, and contents stay as they are.
func TestAControlCharacterInAHeadEndsNoParts(t *testing.T) {
	for _, control := range []string{"\x00", "\x01", "\x0b", "\x1b", "\x7f", "\r"} {
		head := "Content-Disposition: form-data; name=\"a\"; filename=\"a" + control + "b.txt\"\r\nX-" + control + "Note: " + control + "\r\nContent-Type: text/plain\r\n"
		content := "one" + control + "!\n--x\r\nX: " + control + "\r\n\r\n" // behind a bare newline is no delimiter
		form := "preamble" + control + "\r\n--x \t\r\n" + head + "\r\n" + content + "\r\n--x\r\nContent-Disposition: form-data; name=b\r\n\r\n" + control + "\r\n--x--\r\n" + control
		got := partsOf(form, formType)
		if len(got) != 2 || got[0].Name != "a" || got[0].Filename != "a b.txt" || got[0].ContentType != "text/plain" || string(got[0].Content) != content ||
			got[1].Name != "b" || string(got[1].Content) != control {
			t.Errorf("%q: %q", control, got)
		}
		unix := strings.ReplaceAll("--x\r\n"+head, "\r\n", "\n") + "\nv\n--x--\n"
		if got := partsOf(unix, formType); len(got) != 1 || got[0].Filename != "a b.txt" || string(got[0].Content) != "v" {
			t.Errorf("%q with newlines: %q", control, got)
		}
	}
	if got := partsOf("--x\r\nContent-Disposition: form-data; name=a\r\n\r\nv\r\n--x\r\nno field\r\n\r\nv\r\n--x--\r\n", formType); len(got) != 1 {
		t.Errorf("of a head that is none: %q", got)
	}
}

func TestPartsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 2 * coding.MaxParts {
		fmt.Fprintf(&b, "--x\r\nContent-Disposition: form-data; name=\"n%d\"\r\n\r\nv\r\n", i)
	}
	if n := len(partsOf(b.String(), formType)); n != coding.MaxParts {
		t.Errorf("%d parts", n)
	}
}

func FuzzParts(f *testing.F) {
	f.Add("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nv\r\n--x--\r\n", formType)
	f.Add("--x\r\nbroken", formType)
	f.Add("--x\nA:\x01\n\n\n--x \r\nA: b\r\n\r\n\x02\n--x\n\x03\n\n--x\n\n", formType)
	f.Fuzz(func(t *testing.T, body, contentType string) {
		size := 0
		for _, p := range partsOf(body, contentType) {
			size += len(p.Content)
		}
		if size > len(body) {
			t.Errorf("the parts have %d bytes of %d", size, len(body))
		}
		_, params, err := mime.ParseMediaType(contentType)
		if err != nil {
			return
		}
		plain := multipart.NewReader(strings.NewReader(body), params["boundary"])
		for i, p := range partsOf(body, contentType) { // as those who read no control characters have them, and more
			part, err := plain.NextRawPart()
			if err != nil {
				return
			}
			if content, err := io.ReadAll(part); err != nil || string(content) != string(p.Content) {
				t.Fatalf("part %d is %q, and was sent as %q, %v", i, p.Content, content, err)
			}
		}
	})
}
