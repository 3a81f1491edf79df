package provider

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"time"

	"hookglass"
)

// testSecret is the text that all published test secrets are made from. It protects nothing: it is public here, in the
// documentation, and in every signed bundle.
const testSecret = "hookglass-published-test-secret"

// Published returns the config with which a delivery that is given away is signed again, with the published test secret
// in the form that the scheme requires: as the sender signs if that can be done here. For a sender that is not known or
// signs nothing, it is the scheme of by, the provider of the config that verified the delivery (empty: none did), or
// else that of the endpoint's generic_hmac. It is not ok if nothing can be signed.
func Published(d Detection, by string, configs []Config) (c Config, ok bool) {
	s := table().byID[d.Provider]
	if s == nil || len(s.Signatures) == 0 && s.check == nil {
		if other := table().byID[by]; other != nil && by != GenericHMAC {
			c.Provider, s = by, other
		} else if i := slices.IndexFunc(configs, func(c Config) bool { return c.Provider == GenericHMAC }); i >= 0 {
			c.Provider, c.Options, s = GenericHMAC, configs[i].Options, table().byID[GenericHMAC]
		}
	} else {
		c.Provider = d.Provider
	}
	if c.Provider == "" || !s.signable() {
		return Config{}, false
	}
	c.Secrets = []string{c.testSecret()}
	return c, true
}

// testSecret returns the published secret in the form that the config's provider uses.
func (c Config) testSecret() string {
	sum := sha256.Sum256([]byte(testSecret))
	form := c.Options.SecretEncoding
	if s := table().byID[c.Provider]; len(s.Signatures) > 0 {
		form = s.Signatures[0].Key
		if s.Signatures[0].Kind == "adyen" {
			form = keyHex
		}
	}
	switch {
	case c.Provider == "stripe": // it uses the secret whole, including its prefix
		return standardPrefix + hex.EncodeToString(sum[:16])
	case form == keyHex:
		return hex.EncodeToString(sum[:])
	case form == keyBase64:
		return base64.StdEncoding.EncodeToString(sum[:])
	case form == keyStandard, form == keyStandardOrUTF8:
		return standardPrefix + base64.StdEncoding.EncodeToString(sum[:])
	}
	return testSecret
}

// SignAlone signs o like Sign, and removes all other signature headers. After an error, o has none.
func SignAlone(o Outgoing, d Detection, configs []Config, c Config, at time.Time) (Outgoing, error) {
	kept := Strip(d, o.Headers, append(slices.Clone(configs), c)...)
	emptied := func(h hookglass.Header) bool { return h.Value == "" && !kept.Has(h.Name) }
	signed := o
	signed.Headers = slices.Clone(o.Headers)
	for i, h := range signed.Headers {
		if !kept.Has(h.Name) {
			signed.Headers[i].Value = "" // its presence shows Sign which ones were captured
		}
	}
	signed, err := Sign(signed, c, at)
	if err != nil {
		o.Headers = kept
		return o, err
	}
	signed.Headers = slices.DeleteFunc(slices.Clone(signed.Headers), emptied)
	return signed, nil
}
