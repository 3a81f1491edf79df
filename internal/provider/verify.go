package provider

import (
	"slices"
	"strings"

	"hookglass"
)

// GenericHMAC is the id of the provider that must be configured and is never detected.
const GenericHMAC = "generic_hmac"

// Verify checks the signature of a request against the enabled configs of its endpoint (providers.md section 2):
// verified if any secret of any config of the detected provider matches, failed if all fail, unchecked if there is
// none. generic_hmac configs are used if no other config is of the detected provider. If no rule identifies the sender,
// a config whose signature matches does. If it needs a key that the sender publishes and that is not known, the result
// is unchecked with the reason key_unavailable.
func Verify(r *Request, d Detection, configs []Config) Verdict {
	in := &input{Request: r}
	best, judged := reason(-1), (*judge)(nil)
	try := func(j *judge) (Verdict, bool) {
		why, index := j.verify(in)
		if why == verified {
			return Verdict{Status: hookglass.SignatureVerified, ConfigID: j.config.ID, SecretIndex: index}, true
		}
		if judged == nil || why > best {
			best, judged = why, j
		}
		return Verdict{}, false
	}
	for _, j := range judgesFor(in, d, configs) {
		if v, ok := try(j); ok {
			return v
		}
	}
	if judged == nil {
		for i := range configs {
			if j := newJudge(&configs[i]); j != nil && kin(configs[i].Provider, d.Provider) && j.presented(in) {
				if v, ok := try(j); ok {
					return v
				}
			}
		}
		return Verdict{Status: hookglass.SignatureUnchecked}
	}
	if best == keyUnavailable {
		return Verdict{Status: hookglass.SignatureUnchecked, Reason: best.code(), Message: best.message(judged.Name, judged.where()), Needs: in.needs}
	}
	return Verdict{Status: hookglass.SignatureFailed, Reason: best.code(), Message: best.message(judged.Name, judged.where())}
}

// Verifying returns the config by which Verify finds a request verified.
func Verifying(r *Request, d Detection, configs []Config) (c Config, ok bool) {
	if v := Verify(r, d, configs); v.Status == hookglass.SignatureVerified {
		for _, c := range configs {
			if c.ID == v.ConfigID {
				return c, true
			}
		}
	}
	return c, false
}

// judgesFor returns the configs to check a request with: those of the detected provider or of its relay, or else those
// of generic_hmac. A sender that no rule identifies is recognised by its signature header alone, if there is a config
// for it.
func judgesFor(in *input, d Detection, configs []Config) []*judge {
	var judges []*judge
	for _, generic := range [...]bool{false, true} {
		for i := range configs {
			c := &configs[i]
			if generic != (c.Provider == GenericHMAC) {
				continue
			}
			j := newJudge(c)
			switch {
			case j == nil:
			case generic, c.Provider == d.Provider, c.Provider == d.Relay,
				d.Provider == hookglass.UnknownProvider && len(j.Match) == 0 && j.presented(in):
				judges = append(judges, j)
			}
		}
		if len(judges) > 0 {
			break
		}
	}
	return judges
}

// kin reports whether a config of one provider may verify a request detected as another: if no sender is detected, and
// among senders that share the scheme of Standard Webhooks. Only the body tells these apart, and Svix sends the headers
// of both names.
func kin(configured, detected string) bool {
	if detected == hookglass.UnknownProvider {
		return true
	}
	a, b := table().byID[configured], table().byID[detected]
	return a != nil && b != nil && len(a.Signatures) > 0 && len(b.Signatures) > 0 &&
		a.Signatures[0].standard() && b.Signatures[0].standard()
}

// standard reports whether a scheme is that of Standard Webhooks, whatever its headers are named.
func (s *scheme) standard() bool { return s.Payload[0] == "{id}.{time}.{body}" }

// judge checks requests against one config.
type judge struct {
	*sender
	config  *Config
	schemes []*scheme
}

// newJudge returns nil for a provider whose signatures cannot be verified.
func newJudge(c *Config) *judge {
	s := table().byID[c.Provider]
	if s == nil {
		return nil
	}
	j := &judge{sender: s, config: c, schemes: s.Signatures}
	if c.Provider == GenericHMAC {
		generic, err := genericScheme(c.Options)
		if err != nil {
			return nil
		}
		j.schemes = []*scheme{generic}
	}
	if len(j.schemes) == 0 && s.check == nil {
		return nil
	}
	return j
}

// presented reports whether a request carries a signature of the config's provider.
func (j *judge) presented(in *input) bool {
	if j.check != nil {
		return len(Strip(Detection{Provider: j.ID}, in.Headers)) < len(in.Headers)
	}
	return slices.ContainsFunc(j.schemes, func(s *scheme) bool { return s.presented(in) })
}

// where names the headers that hold the signature.
func (j *judge) where() string {
	var names []string
	for _, s := range j.schemes {
		names = append(names, s.Headers...)
	}
	if len(names) == 0 {
		return "in the body"
	}
	return strings.Join(names, ", ")
}

// verify tries all secrets of the config and returns the most specific outcome.
func (j *judge) verify(in *input) (reason, int) {
	best, tried := missingSignature, false
	for i, secret := range j.config.Secrets {
		if secret == "" {
			continue
		}
		tried = true
		why := j.verifyWith(in, secret)
		if why == verified {
			return verified, i
		}
		best = max(best, why)
	}
	if !tried {
		best = unusableSecret
	}
	return best, 0
}

func (j *judge) verifyWith(in *input, secret string) reason {
	at := in.ReceivedAt.UnixMilli()
	if j.check != nil {
		return j.check(in, secret)
	}
	best := missingSignature
	for _, s := range j.schemes {
		if !s.presented(in) {
			continue
		}
		why := s.verify(in, secret, j.tolerance(s), at)
		if why == verified || !j.Any {
			return why
		}
		best = max(best, why)
	}
	return best
}

// tolerance returns the scheme's own tolerance unless the config sets one; a negative one disables the check of the
// time.
func (j *judge) tolerance(s *scheme) int64 {
	if t := j.config.Options.ToleranceSeconds; t != 0 {
		return int64(t)
	}
	return s.Tolerance
}
