package provider_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/provider"
)

// The known answers of testdata: made with the official libraries of the providers.
type vectorFile struct {
	Vectors, Samples []vector
	Replay           []transform
}

type vector struct {
	ID, Provider, Description, Secret string
	Request                           struct {
		Method, URL string
		Headers     [][2]string
		BodyFile    string `json:"body_file"`
	}
	Now       int64
	Tolerance *int `json:"tolerance_seconds"`
	Config    options
	Expected  struct {
		Status    hookglass.SignatureStatus `json:"signature_status"`
		Reason    string
		Detection struct {
			Provider   string
			EventType  string `json:"event_type"`
			Action     string
			EventID    string `json:"event_id"`
			DeliveryID string `json:"delivery_id"`
			OuterType  string `json:"outer_type"`
			Respond    *struct {
				Status      int
				ContentType string `json:"content_type"`
				Body        string
			}
		}
	}
}

type options struct {
	Header, Algorithm, Encoding, Prefix string
	PayloadTemplate                     string `json:"payload_template"`
	TimestampHeader                     string `json:"timestamp_header"`
	TimestampUnit                       string `json:"timestamp_unit"`
	IDHeader                            string `json:"id_header"`
	Tolerance                           int    `json:"tolerance_seconds"`
	SecretEncoding                      string `json:"secret_encoding"`
}

type transform struct {
	ID, Provider string
	Input        struct {
		Method   string
		Headers  [][2]string
		BodyFile string `json:"body_file"`
	}
	Options struct {
		Identity  string `json:"identity_mode"`
		Signature string `json:"signature_mode"`
		Target    string `json:"target_url"`
	}
	Fixed struct {
		Suffix, UUID, Digits, Secret string
		Now                          int64
	}
	Expected struct {
		URL      string
		Changed  []string
		Headers  [][2]string
		BodyFile string `json:"body_file"`
		Error    *struct{ Status int }
	}
}

func readVectors(t testing.TB) vectorFile {
	t.Helper()
	text, err := os.ReadFile("testdata/index.json")
	if err != nil {
		t.Fatal(err)
	}
	var f vectorFile
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Vectors) == 0 || len(f.Samples) == 0 || len(f.Replay) == 0 {
		t.Fatal("testdata/index.json lacks vectors, samples or transforms")
	}
	return f
}

func readBody(t testing.TB, name string) []byte {
	t.Helper()
	if !strings.HasPrefix(name, "samples/") {
		name = filepath.Join("testdata", name)
	}
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func headers(list [][2]string) hookglass.Headers {
	var h hookglass.Headers
	for _, f := range list {
		h = append(h, hookglass.Header{Name: f[0], Value: f[1]})
	}
	return h
}

func (v vector) request(t testing.TB) *provider.Request {
	t.Helper()
	_, query, _ := strings.Cut(v.Request.URL, "?")
	return &provider.Request{
		Method: v.Request.Method, URL: v.Request.URL, RawQuery: query, Headers: headers(v.Request.Headers),
		Body: readBody(t, v.Request.BodyFile), ReceivedAt: time.Unix(v.Now, 0),
	}
}

func (v vector) config() provider.Config {
	c := provider.Config{ID: 7, Provider: v.Provider, Secrets: []string{v.Secret}}
	if v.Provider == provider.GenericHMAC {
		c.Options = v.Config.options()
	} else if v.Tolerance != nil {
		c.Options.ToleranceSeconds = *v.Tolerance
		if *v.Tolerance == 0 {
			c.Options.ToleranceSeconds = -1
		}
	}
	return c
}

func (o options) options() hookglass.GenericOptions {
	return hookglass.GenericOptions{
		Header: o.Header, Algorithm: o.Algorithm, Encoding: o.Encoding, Prefix: o.Prefix, PayloadTemplate: o.PayloadTemplate,
		TimestampHeader: o.TimestampHeader, TimestampUnit: o.TimestampUnit, IDHeader: o.IDHeader, ToleranceSeconds: o.Tolerance,
		SecretEncoding: o.SecretEncoding,
	}
}

func TestVerifyVectors(t *testing.T) {
	f := readVectors(t)
	for _, v := range append(f.Vectors, f.Samples...) {
		t.Run(v.ID, func(t *testing.T) {
			r := v.request(t)
			r.Hint = v.Provider
			d := provider.Detect(r)
			if v.Provider != provider.GenericHMAC && d.Provider != v.Provider {
				t.Errorf("Detect: %q, want %q", d.Provider, v.Provider)
			}
			got := provider.Verify(r, d, []provider.Config{v.config()})
			if got.Status != v.Expected.Status || got.Reason != v.Expected.Reason {
				t.Errorf("Verify: %s %q (%s), want %s %q\n%s", got.Status, got.Reason, got.Message, v.Expected.Status, v.Expected.Reason, v.Description)
			}
			if got.Status == hookglass.SignatureFailed && got.Message == "" {
				t.Error("a failed signature has no message")
			}
			if without := provider.Verify(r, d, nil); without.Status != hookglass.SignatureUnchecked {
				t.Errorf("without a config: %s", without.Status)
			}
		})
	}
}

func TestDetectSamples(t *testing.T) {
	for _, v := range readVectors(t).Samples {
		t.Run(v.ID, func(t *testing.T) {
			r := v.request(t)
			got, want := provider.Detect(r), v.Expected.Detection
			if got.Provider != want.Provider || got.EventType != want.EventType || got.EventID != want.EventID ||
				got.DeliveryID != want.DeliveryID || got.Flavour != want.OuterType {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if action := provider.Action(r, got.Provider); action != want.Action {
				t.Errorf("action %q, want %q", action, want.Action)
			}
			answer, ok := provider.Handshake(r, got, nil)
			if ok != (want.Respond != nil) {
				t.Fatalf("Handshake: %v", ok)
			}
			if ok && (answer.Status != want.Respond.Status || string(answer.Body) != want.Respond.Body ||
				answer.Headers.Get("Content-Type") != want.Respond.ContentType) {
				t.Errorf("Handshake: %+v", answer)
			}
		})
	}
}

func TestReplayVectors(t *testing.T) {
	for _, v := range readVectors(t).Replay {
		t.Run(v.ID, func(t *testing.T) {
			o := provider.Outgoing{
				Method: v.Input.Method, URL: v.Options.Target, Headers: headers(v.Input.Headers), Body: readBody(t, v.Input.BodyFile),
			}
			captured := o.Headers
			d := provider.Detect(&provider.Request{Method: o.Method, Headers: o.Headers, Body: o.Body})
			if d.Provider != v.Provider {
				t.Fatalf("Detect: %q", d.Provider)
			}
			var changed []provider.Change
			var err error
			if v.Options.Identity == "regenerate" {
				id := provider.Identity{UUID: v.Fixed.UUID, Suffix: v.Fixed.Suffix, Digits: v.Fixed.Digits}
				if o, changed, err = provider.Regenerate(o, d, nil, id); err != nil {
					if v.Expected.Error == nil || !hookglass.Is(err, hookglass.CodeValidationFailed) {
						t.Fatal(err)
					}
					return
				}
			}
			if v.Expected.Error != nil {
				t.Fatal("no error")
			}
			config := provider.Config{Provider: v.Provider, Secrets: []string{v.Fixed.Secret}}
			switch v.Options.Signature {
			case "strip":
				o.Headers = provider.Strip(d, o.Headers)
			case "resign":
				if o, err = provider.Sign(o, config, time.Unix(v.Fixed.Now, 0)); err != nil {
					t.Fatal(err)
				}
			}
			if o.URL != v.Expected.URL {
				t.Errorf("URL %s, want %s", o.URL, v.Expected.URL)
			}
			if places := places(changed); !slices.Equal(places, v.Expected.Changed) {
				t.Errorf("changed %q, want %q", places, v.Expected.Changed)
			}
			if want := headers(v.Expected.Headers); !slices.Equal(o.Headers, want) {
				t.Errorf("headers\n%s\nwant\n%s", o.Headers.AppendWire(nil), want.AppendWire(nil))
			}
			if want := readBody(t, v.Expected.BodyFile); string(o.Body) != string(want) {
				t.Errorf("body\n%s\nwant\n%s", o.Body, want)
			}
			if want := headers(v.Input.Headers); !slices.Equal(captured, want) {
				t.Error("the captured headers were changed")
			}
		})
	}
}

func TestVectorBodiesAreIntact(t *testing.T) {
	files, err := filepath.Glob("testdata/bodies/*.bin")
	if err != nil || len(files) == 0 {
		t.Fatal("no bodies", err)
	}
	for _, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(body)
		if want := strings.TrimSuffix(filepath.Base(name), ".bin"); !strings.HasPrefix(hex.EncodeToString(sum[:]), want) {
			t.Errorf("%s was changed on its way into the repository", name)
		}
	}
}
