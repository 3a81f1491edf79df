package provider

import (
	"cmp"
	"embed"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"sync"

	"hookglass"
	"hookglass/internal/jsondoc"
)

//go:embed samples
var sampleFiles embed.FS

// sample is an entry of samples/samples.json; its exact body is a file beside it.
type sample struct {
	Provider, Name, Event, Method, Query string
	Headers                              [][2]string
	Body                                 string
}

var samples = sync.OnceValue(func() []sample {
	text, err := sampleFiles.ReadFile("samples/samples.json")
	var all []sample
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		panic("internal/provider/samples: " + err.Error())
	}
	return all
})

// Samples lists the embedded samples, by provider in the order of the specification.
func Samples() []SampleEvent {
	var all []SampleEvent
	for _, s := range samples() {
		all = append(all, SampleEvent{Provider: s.Provider, Event: s.Name, EventType: s.Event})
	}
	return all
}

// Sample returns a sample event of a provider as an unsigned request to target (see Sign). event is the sample's name
// or the provider's event type, with any separators: "pull_request", "pull_request.opened" and "pull_request-opened"
// are the same; "" is the provider's first sample. Its ids are always the same; see Regenerate. It answers
// validation_failed with the available names.
func Sample(providerID, event, target string) (Outgoing, error) {
	wanted := plain(event)
	var named, typed *sample
	for i := range samples() {
		s := &samples()[i]
		if s.Provider != providerID {
			continue
		}
		if named == nil && plain(s.Name) == wanted {
			named = s
		}
		if typed == nil && (event == "" || plain(s.Event) == wanted) {
			typed = s
		}
	}
	chosen := cmp.Or(named, typed)
	if chosen == nil {
		return Outgoing{}, noSample(providerID)
	}
	body, err := sampleFiles.ReadFile(path.Join("samples", chosen.Body))
	if err != nil {
		return Outgoing{}, err
	}
	o := Outgoing{Method: chosen.Method, URL: target, Body: body}
	if chosen.Query != "" {
		joint := "?"
		if strings.Contains(target, "?") {
			joint = "&"
		}
		o.URL += joint + chosen.Query
	}
	for _, h := range chosen.Headers {
		o.Headers = append(o.Headers, hookglass.Header{Name: h[0], Value: h[1]})
	}
	return o, nil
}

// maxSet bounds the values that are put into a sample; each may copy the object that gets it.
const maxSet = 100

// Set puts values into the JSON body of an unsigned sample. values is a JSON object of them by their JSON Pointers. It
// answers validation_failed.
func (o Outgoing) Set(values []byte) (Outgoing, error) {
	if len(values) == 0 {
		return o, nil
	}
	puts, err := jsondoc.Parse(values, jsondoc.Wide())
	if err != nil || puts.Kind() != jsondoc.Object {
		return o, hookglass.Invalid("set", "must be an object of values by JSON Pointers, of 1 MiB at most")
	}
	if puts.Len() > maxSet {
		return o, hookglass.Invalid("set", "may have %d values at most", maxSet)
	}
	body, err := jsondoc.Parse(o.Body, jsondoc.Wide())
	if err != nil {
		return o, hookglass.Invalid("set", "needs a sample whose body is JSON, which this one's is not")
	}
	for name, value := range puts.All() {
		at, err := jsondoc.ParsePointer(name)
		if err != nil {
			return o, hookglass.Invalid("set", "has %q, which is no JSON Pointer", name)
		}
		if body, err = body.With(at, value); err != nil {
			return o, hookglass.Invalid("set", "does not fit the sample: %v", err)
		}
	}
	o.Body = body.Bytes()
	return o, nil
}

// Values makes what people write, /data/object/customer=cus_1, the values that Set takes. A value is JSON, or text
// where it is none or the sample has text. It answers validation_failed.
func Values(providerID, event string, lines []string) ([]byte, error) {
	if len(lines) == 0 {
		return nil, nil
	}
	o, _ := Sample(providerID, event, "")              // that there is none is said where it is sent
	sample, _ := jsondoc.Parse(o.Body, jsondoc.Wide()) // and that it is no JSON
	puts := make(map[string]json.RawMessage, len(lines))
	for _, line := range lines {
		pointer, value, ok := strings.Cut(line, "=")
		at, err := jsondoc.ParsePointer(pointer)
		if err != nil || !ok {
			return nil, hookglass.Invalid("set", "takes lines of a JSON Pointer and a value, for example /data/object/customer=cus_1")
		}
		there, _ := sample.At(at)
		if puts[pointer] = json.RawMessage(value); there.Kind() == jsondoc.String || jsondoc.Check([]byte(value)) != nil {
			puts[pointer], _ = json.Marshal(value) // text never fails
		}
	}
	return json.Marshal(puts)
}

// noSample returns the error that lists the available samples.
func noSample(providerID string) error {
	var providers, events []string
	for _, s := range samples() {
		if !slices.Contains(providers, s.Provider) {
			providers = append(providers, s.Provider)
		}
		if s.Provider == providerID {
			events = append(events, s.Name)
		}
	}
	if events == nil {
		return hookglass.Invalid("provider", "has no sample events; it must be one of %s", strings.Join(providers, ", "))
	}
	return hookglass.Invalid("event_type", "is no sample event; it must be one of %s", strings.Join(events, ", "))
}

// plain reduces a name to its letters and digits in lower case.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, name)
}
