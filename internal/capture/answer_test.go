package capture_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// machine is a connected local machine; nil answers nothing.
type machine struct{ answer *hookglass.TargetResponse }

func (m machine) Answer(context.Context, *hookglass.Event) *hookglass.TargetResponse { return m.answer }

// What the sender gets of a local machine is on record, and what may not be passed on is not (spec: decisions, sections
// 4 and 14).
func TestTheAnswerOfALocalMachineIsGivenAndRecorded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.set(func(e *hookglass.Endpoint) { e.ProviderConfig.ResponseMode = hookglass.ResponseTunnel })
		answered := b.through(machine{&hookglass.TargetResponse{
			Status: 418, Body: []byte("<b>tea</b>"), Headers: hookglass.Headers{
				{Name: "Content-Type", Value: "text/html"}, {Name: "X-Pot", Value: "1"}, {Name: "Set-Cookie", Value: "a=b"}, {Name: "Content-Length", Value: "99"},
				{Name: "NEL", Value: `{"report_to":"x"}`}, {Name: "content-encoding", Value: "gzip"}, {Name: "Date", Value: "never"}, {Name: "X-Bad", Value: "a\nb"},
			},
		}})
		r := answered.post("POST", "/", "{}")
		if r.Awaits == nil || r.Awaits.Seq == 0 || r.Status != 200 {
			t.Fatalf("%+v", r)
		}
		got := answered.captures.Answer(t.Context(), r)
		if got.Status != 418 || string(got.Body) != "<b>tea</b>" || got.Source != hookglass.SourceTunnel || got.Awaits != nil || got.Headers.Get("X-Pot") != "1" ||
			got.Headers.Get("Content-Security-Policy") != "sandbox" || got.Headers.Has("Set-Cookie") || got.Headers.Has("Nel") || got.Headers.Has("Content-Length") || got.Headers.Has("Content-Encoding") ||
			got.Headers.Has("X-Bad") || len(got.Headers.Values("Date")) != 1 || got.Headers.Get("Date") == "never" {
			t.Errorf("%+v", got)
		}
		err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
			e, err := v.Event(string(b.ep.ID), string(r.Awaits.ID))
			if err == nil && (e.Status != 418 || e.Reply.Source != hookglass.SourceTunnel || string(e.Reply.Body) != "<b>tea</b>" || len(e.Reply.Headers) != len(got.Headers)) {
				t.Errorf("on record is %+v", e.Reply)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		head := answered.captures.Answer(t.Context(), answered.post("HEAD", "/", ""))
		if head.Status != 418 || head.Body != nil {
			t.Errorf("%+v", head)
		}
		part := b.through(machine{&hookglass.TargetResponse{Status: 200, Body: []byte("begin"), Truncated: true}})
		if got := part.captures.Answer(t.Context(), part.post("POST", "/", "{}")); string(got.Body) != "begin" || got.Headers.Get("X-Service-Truncated") != "true" {
			t.Errorf("nothing says that there was more: %+v", got)
		}
		lost := b.through(machine{&hookglass.TargetResponse{Status: 200, Truncated: true}}) // it broke off before the first byte
		if got := lost.captures.Answer(t.Context(), lost.post("POST", "/", "{}")); got.Headers.Get("X-Service-Truncated") != "true" {
			t.Errorf("nothing says that there was a body: %+v", got)
		}
		if got := part.captures.Answer(t.Context(), part.post("HEAD", "/", "")); got.Headers.Has("X-Service-Truncated") || answered.captures.Answer(t.Context(), r).Headers.Has("X-Service-Truncated") {
			t.Errorf("there was no more: %+v", got)
		}
		silent := b.through(machine{})
		if own := silent.captures.Answer(t.Context(), silent.post("POST", "/", "{}")); own.Status != 200 || own.Source != hookglass.SourceDefault || own.Awaits != nil {
			t.Errorf("%+v", own)
		}
		if r := answered.post("POST", "/", `{"type":"url_verification","challenge":"c","token":"t"}`, "Content-Type", "application/json"); r.Source == hookglass.SourceHandshake && r.Awaits != nil {
			t.Error("a handshake waits for the local machine")
		}
	})
}

// Of two media types a browser takes the last, and something before it may leave it the first.
func TestAnAnswerOfALocalMachineWithTwoMediaTypesIsSandboxed(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	b.set(func(e *hookglass.Endpoint) { e.ProviderConfig.ResponseMode = hookglass.ResponseTunnel })
	for _, kinds := range [][2]string{{"application/json", "text/html"}, {"text/html", "application/json"}} {
		through := b.through(machine{&hookglass.TargetResponse{
			Status: 200, Body: []byte("<script>1</script>"),
			Headers: hookglass.Headers{{Name: "Content-Type", Value: kinds[0]}, {Name: "content-type", Value: kinds[1]}},
		}})
		if got := through.captures.Answer(t.Context(), through.post("GET", "/", "")); got.Headers.Get("Content-Security-Policy") != "sandbox" {
			t.Errorf("%+v", got.Headers)
		}
	}
}

// What a local machine compressed, the sender can read; what its client decompressed is not said to be compressed.
func TestACompressedAnswerOfALocalMachineSaysSo(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(strings.Repeat("tea ", 2000)))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.set(func(e *hookglass.Endpoint) { e.ProviderConfig.ResponseMode = hookglass.ResponseTunnel })
		for _, c := range []struct {
			of, body string
			want     bool
		}{
			{"gzip", packed.String(), true}, {"GZIP", packed.String()[:40], true}, {"gzip", "ok", false}, {"gzip", strings.Repeat("tea ", 2000), false},
			{"gzip", "\x89PNG\x0d\x0a\x1a\x0a", false}, {"br", "\x0b\x02\x80tea\x03", true}, {"br", "tea", false}, {"identity", "\xff", false}, {"gzip", "", false},
		} {
			answered := b.through(machine{&hookglass.TargetResponse{
				Status: 200, Body: []byte(c.body), Headers: hookglass.Headers{{Name: "Content-Type", Value: "text/plain"}, {Name: "Content-Encoding", Value: c.of}},
			}})
			got := answered.captures.Answer(t.Context(), answered.post("POST", "/", "{}"))
			if got.Headers.Has("Content-Encoding") != c.want || string(got.Body) != c.body {
				t.Errorf("%s of %.20q: %+v", c.of, c.body, got.Headers)
			}
		}
	})
}

// through is a bench whose service has a way to local machines.
func (b *bench) through(m machine) *bench {
	other := *b
	other.captures = newService(b.db, b.endpoints, m)
	return &other
}

var _ capture.Tunnel = machine{}
