package email_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // decodes what the oracle reads
	"github.com/emersion/go-message/mail"

	"hookglass/internal/email"
)

// What go-message writes and reads is read here the same: the leaves of messages of random shapes, with their types,
// names and contents.
func TestAgreesWithGoMessage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 500 {
		raw := randomMail(t, r)
		want := leaves(t, raw)
		m := email.Parse(raw)
		if len(m.Faults) > 0 {
			t.Errorf("mail %d: faults %v", n, m.Faults)
		}
		got := []string{}
		if m.Text != "" {
			got = append(got, "text/plain  "+m.Text)
		}
		if m.HTML != "" {
			got = append(got, "text/html  "+m.HTML)
		}
		for i, f := range m.Attachments {
			content, err := m.Content(i)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %s %x", f.ContentType, f.Filename, content))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("mail %d: %q, go-message reads %q\n%s", n, got, want, raw)
		}
		mr, err := mail.CreateReader(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		from, err := mr.Header.AddressList("From")
		if err != nil {
			t.Fatal(err)
		}
		subject, err := mr.Header.Subject()
		if err != nil {
			t.Fatal(err)
		}
		if m.Subject != subject || len(m.Senders) != len(from) || m.Senders[0].Name != from[0].Name || m.Senders[0].Address != from[0].Address {
			t.Errorf("mail %d: %q %v, go-message reads %q %v", n, m.Subject, m.Senders, subject, from[0])
		}
	}
}

var fragments = []string{"hello", "é", "日本語", " ", "=", "--b", "\n", "From ", ".", "\"", ",", "a@b", strings.Repeat("long", 40), "?=", ";", "%41", "\\"}

var names = []string{"", "Ada", "Adé", "日本 語", "Lovelace, Ada", "say \"x\"", "a@b.c", "(Ada)"}

func randomText(r *rand.Rand, lines bool) string {
	var b strings.Builder
	b.WriteString("x")
	for range r.IntN(12) {
		if f := fragments[r.IntN(len(fragments))]; lines || f != "\n" {
			b.WriteString(f)
		}
	}
	return b.String() + "x"
}

func randomMail(t *testing.T, r *rand.Rand) []byte {
	t.Helper()
	var h mail.Header
	h.SetAddressList("From", []*mail.Address{{Name: names[r.IntN(len(names))], Address: "ada@example.com"}})
	h.SetSubject(randomText(r, false))
	var b bytes.Buffer
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := mail.CreateWriter(&b, h)
	check(err)
	inline, err := w.CreateInline()
	check(err)
	for i, media := range []string{"text/plain", "text/html"} {
		if i > 0 && r.IntN(3) == 0 {
			continue
		}
		var ih mail.InlineHeader
		ih.SetContentType(media, map[string]string{"charset": "utf-8"})
		if r.IntN(2) == 0 {
			ih.Set("Content-Transfer-Encoding", "quoted-printable")
		} else {
			ih.Set("Content-Transfer-Encoding", "base64")
		}
		p, err := inline.CreatePart(ih)
		check(err)
		_, err = io.WriteString(p, randomText(r, true))
		check(err)
		check(p.Close())
	}
	check(inline.Close())
	for i := range r.IntN(4) {
		var ah mail.AttachmentHeader
		ah.Set("Content-Type", []string{"application/pdf", "image/png", "text/csv"}[r.IntN(3)])
		ah.SetFilename(fmt.Sprintf("%d é日 x.bin", i))
		p, err := w.CreateAttachment(ah)
		check(err)
		content := make([]byte, r.IntN(300))
		for i := range content {
			content[i] = byte(r.Uint32())
		}
		_, err = p.Write(content)
		check(err)
		check(p.Close())
	}
	check(w.Close())
	return b.Bytes()
}

// leaves is how go-message reads a message.
func leaves(t *testing.T, raw []byte) (list []string) {
	t.Helper()
	e, err := message.Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	err = e.Walk(func(_ []int, part *message.Entity, err error) error {
		if err != nil {
			return err
		}
		media, _, _ := part.Header.ContentType()
		if strings.HasPrefix(media, "multipart/") {
			return nil
		}
		body, err := io.ReadAll(part.Body)
		if err != nil {
			return err
		}
		if _, params, _ := part.Header.ContentDisposition(); params["filename"] != "" {
			list = append(list, fmt.Sprintf("%s %s %x", media, params["filename"], body))
			return nil
		}
		list = append(list, media+"  "+strings.ReplaceAll(string(body), "\r\n", "\n"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func BenchmarkDetect(b *testing.B) {
	m := email.Parse([]byte("X-GitHub-Reason: x\r\nList-ID: <a>\r\n" + strings.Repeat("Received: from a.example.com by b.example.com with ESMTPS id 1234567890\r\n", 12) + head + "\r\nx"))
	b.ReportAllocs()
	for b.Loop() {
		email.Detect(m, email.Envelope{})
	}
}
