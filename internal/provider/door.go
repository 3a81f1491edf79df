package provider

import (
	"time"

	"hookglass"
)

// Detect says who sent a request.
func Detect(r *Request) Detection { return Detection{Provider: hookglass.UnknownProvider} }

// Verify checks the signature of a request.
func Verify(r *Request, d Detection, configs []Config) Verdict {
	return Verdict{Status: hookglass.SignatureUnchecked}
}

// Diagnose finds out why a signature does not verify.
func Diagnose(r *Request, d Detection, configs []Config) Finding { return Finding{} }

// Handshake answers a provider's handshake.
func Handshake(r *Request, d Detection, configs []Config) (Answer, bool) { return Answer{}, false }

// Strip removes the provider's signature headers.
func Strip(d Detection, h hookglass.Headers) hookglass.Headers { return h }

// Sign signs o with the first secret of c, at the given time. It answers validation_failed for a provider that can not be signed for.
func Sign(o Outgoing, c Config, at time.Time) (Outgoing, error) { return o, nil }

// NewIdentity returns random identity material.
func NewIdentity() Identity { return Identity{} }

// Regenerate gives o a new delivery identity and lists what changed ("header:X-GitHub-Delivery", "body:/id"). It answers
// validation_failed when the body is not JSON.
func Regenerate(o Outgoing, d Detection, configs []Config, id Identity) (Outgoing, []string, error) {
	return o, nil, nil
}

// Sample returns the unsigned sample event as a request to target. It answers not_found.
func Sample(providerID, event, target string) (Outgoing, error) { return Outgoing{}, nil }

// Samples lists the embedded samples.
func Samples() []SampleEvent { return nil }

// Known describes the provider with the given id.
func Known(id string) (Info, bool) { return Info{}, false }

// Providers describes all providers, by id.
func Providers() []Info { return nil }
