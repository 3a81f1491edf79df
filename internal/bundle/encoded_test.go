package bundle_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime/quotedprintable"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"hookglass/internal/bundle"
)

// wrapped breaks a text into lines, as base64 is in mail (RFC 2045, section 6.8) and in PEM.
func wrapped(s string, width int, end string) string {
	var b strings.Builder
	for ; len(s) > width; s = s[width:] {
		b.WriteString(s[:width] + end)
	}
	return b.String() + s
}

func unwrapped(t *testing.T, s string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\r", "", "\n", "").Replace(s))
	if err != nil {
		t.Fatalf("%v: %q", err, s)
	}
	return string(b)
}

// A value may begin at any place of a text, be in a word with an escape, and go on in the next line.
func TestValuesAreFoundInEncodingsWhereverTheyStand(t *testing.T) {
	const mail = "Content-Transfer-Encoding: quoted-printable\r\n\r\n"
	ways := []struct {
		name  string
		write func(string) string
		read  func(*testing.T, string) string
		width int // of lines, which stay
	}{
		{"base64 in lines of mail", func(s string) string { return wrapped(base64.StdEncoding.EncodeToString([]byte(s)), 76, "\r\n") }, unwrapped, 76},
		{"base64 in lines of PEM", func(s string) string { return wrapped(base64.StdEncoding.EncodeToString([]byte(s)), 64, "\n") }, unwrapped, 64},
		{"quoted-printable", func(s string) string {
			var b bytes.Buffer
			w := quotedprintable.NewWriter(&b)
			if _, err := io.WriteString(w, s); err != nil || w.Close() != nil {
				t.Fatal("not written")
			}
			return mail + b.String()
		}, func(t *testing.T, s string) string {
			b, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(strings.TrimPrefix(s, mail))))
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}, 0},
		{"percent-encoding", url.PathEscape, reads(url.PathUnescape), 0},
		{"a form", url.QueryEscape, reads(url.QueryUnescape), 0},
		{"percent-encoding twice", func(s string) string { return url.PathEscape(url.PathEscape(s)) }, reads(url.PathUnescape, url.PathUnescape), 0},
		{"a form twice", func(s string) string { return url.QueryEscape(url.QueryEscape(s)) }, reads(url.QueryUnescape, url.QueryUnescape), 0},
		{"a form three times", func(s string) string { return url.QueryEscape(url.QueryEscape(url.QueryEscape(s))) }, reads(url.QueryUnescape, url.QueryUnescape, url.QueryUnescape), 0},
	}
	values := []string{"ada@lovelace.example.org", "+14158675309", "4242424242424242", "GB82WEST12345698765432", "81.2.69.142", "sk_live_51HcanaryCANARYcanary", "Adelheid"}
	for _, way := range ways {
		for pad := 0; pad < 90; pad += 7 {
			raw := map[string]string{"first_name": "Adelheid"}
			for i, value := range values {
				raw["raw"+strconv.Itoa(i)] = way.write(strings.Repeat("lorem ipsum, ", 7)[:pad] + "to " + value + " dolor sit")
			}
			body, err := json.Marshal(raw)
			if err != nil {
				t.Fatal(err)
			}
			made := makeBundle(t, bundle.Options{}, webhook("unknown", "/in", jsonHead, string(body)))
			var got map[string]string
			if err := json.Unmarshal(made.Events[0].Body, &got); err != nil {
				t.Fatal(err)
			}
			for name, text := range got {
				if !strings.HasPrefix(name, "raw") {
					continue
				}
				plain := way.read(t, text)
				if !strings.HasSuffix(plain, " dolor sit") {
					t.Errorf("%s, behind %d bytes: what stands around is not left in %q", way.name, pad, text)
				}
				for _, value := range values {
					if strings.Contains(plain, value) || strings.Contains(text, value) {
						t.Errorf("%s, behind %d bytes: %s is left in %q", way.name, pad, value, text)
					}
				}
				if first, _, _ := strings.Cut(text, "\n"); way.width > 0 && len(strings.TrimSuffix(first, "\r")) != min(way.width, len(text)) {
					t.Errorf("%s, behind %d bytes: %q has other lines", way.name, pad, text)
				}
			}
		}
	}
}

// reads undoes what was done several times.
func reads(steps ...func(string) (string, error)) func(*testing.T, string) string {
	return func(t *testing.T, s string) string {
		t.Helper()
		for _, step := range steps {
			var err error
			if s, err = step(s); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
}

// What only looks as if it were in lines, or in mail, stays as it is.
func TestLinesThatAreNoneStay(t *testing.T) {
	for _, text := range []string{
		"internationalisation\ninterpretation\n", "id=4242&sum=\nnext=1", "aGVsbG8gd29ybGQ=\nregards", "100%25 of 5%2B3 and 20%20more",
		wrapped(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("nothing to see here. "), 20)), 76, "\r\n") + "\r\n--boundary--\r\n",
	} {
		made := makeBundle(t, bundle.Options{}, webhook("unknown", "/in", "Host: h\nContent-Type: text/plain\n", text))
		if got := string(made.Events[0].Body); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// The boundary behind lines of base64 is none of them, also where the last of them is as long as the others.
func TestABoundaryBehindBase64Stays(t *testing.T) {
	text := "to ada@lovelace.example.org " + strings.Repeat("-", 2*57-28)
	body := wrapped(base64.StdEncoding.EncodeToString([]byte(text)), 76, "\r\n") + "\r\n--boundary--\r\n"
	got := string(makeBundle(t, bundle.Options{}, webhook("unknown", "/in", "Host: h\nContent-Type: text/plain\n", body)).Events[0].Body)
	lines, found := strings.CutSuffix(got, "\r\n--boundary--\r\n")
	if !found || strings.Contains(unwrapped(t, lines), "ada@") {
		t.Errorf("%q", got)
	}
}
