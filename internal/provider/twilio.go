package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"

	"hookglass"
)

const (
	twilioHeader   = "X-Twilio-Signature"
	twilioBodyHash = "bodySHA256"
	// twilioSettings names the algorithm, and the shared key that was used in place of the account's token.
	twilioSettings = "X-Twilio-Webhooks-Signature-Settings"
)

// describeTwilio derives an event type, since Twilio sends none: from form fields (in the query of a GET), or the type
// of the first event of a stream (providers.md section 1).
func describeTwilio(in *input, d *Detection) {
	d.DeliveryID = printable(in.Headers.Get("I-Twilio-Idempotency-Token"), fieldBytes)
	if doc := in.doc(); len(doc) > 0 {
		event := doc
		if doc[0] == '[' {
			event = doc.child("0")
		}
		d.EventType = printable(event.child("type").text(), fieldBytes)
		d.EventID = printable(event.child("id").text(), fieldBytes)
		return
	}
	params := in.params()
	if len(params) == 0 {
		params = in.queryParams()
	}
	field := func(name string) string {
		v, _ := formValue(params, name)
		return v
	}
	t := ""
	switch {
	case field("EventType") != "":
		t = field("EventType")
	case field("MessageStatus") != "":
		t = "message." + field("MessageStatus")
	case field("SmsStatus") == "received", field("MessageSid") != "":
		t = "message.received"
	case field("RecordingStatus") != "":
		t = "recording." + field("RecordingStatus")
	case field("CallStatus") != "":
		t = "call." + field("CallStatus")
	}
	d.EventType = printable(t, fieldBytes)
}

// checkTwilio verifies X-Twilio-Signature: an HMAC over the URL as Twilio called it, followed by the sorted form
// parameters. Any other body is covered by its SHA-256 in the URL (providers.md section 3, 5 and 6).
func checkTwilio(in *input, secret string) reason {
	presented := in.Headers.Values(twilioHeader)
	if len(presented) == 0 {
		return missingSignature
	}
	var digests [][]byte
	for _, text := range presented[:min(len(presented), maxPresents)] {
		if d, ok := decodeDigest(nil, strings.TrimSpace(text), "base64"); ok {
			digests = append(digests, d)
		}
	}
	if len(digests) == 0 {
		return malformedSignature
	}
	algorithm := twilioHash(in.Headers)
	if algorithm == "" {
		return noSupportedScheme
	}
	for _, u := range in.twilioURLs() {
		hashed := len(in.Body) > 0 && in.hashedInURL(u)
		// A form that the URL holds the digest of is signed as any other body by some, with its parameters by others.
		for _, params := range [...]bool{true, false} {
			if !params && in.signsForm() && !hashed || params && !in.signsForm() {
				continue
			}
			want := in.twilioDigest(algorithm, secret, u, params)
			for _, d := range digests {
				if !hmac.Equal(d, want) {
					continue
				}
				if len(in.Body) > 0 && !params && !hashed {
					return bodyHashMismatch
				}
				return verified
			}
		}
	}
	return signatureMismatch
}

// twilioHash returns the hash that the headers name, or "" if it is not known. Without a name it is SHA-1, the hash of
// signatures that the account's token made.
func twilioHash(h hookglass.Headers) string {
	for part := range strings.SplitSeq(h.Get(twilioSettings), ",") {
		name, value, _ := strings.Cut(part, "=")
		if strings.TrimSpace(name) != "algorithm" {
			continue
		}
		switch value = strings.TrimSpace(value); {
		case value == "":
		case strings.EqualFold(value, "HMAC_SHA1"):
			return "sha1"
		case strings.EqualFold(value, "HMAC_SHA256"):
			return "sha256"
		default:
			return ""
		}
	}
	return "sha1"
}

// twilioURLs returns the URLs that Twilio may have signed. Those behind the first ones are spelled as by systems of
// Twilio that signed an escaped form of the query; its Node library accepts them, too.
func (in *input) twilioURLs() []string {
	all := in.urls()
	for _, u := range in.urls() {
		base, query, found := strings.Cut(u, "?")
		if !found {
			continue
		}
		for _, spelled := range [...]string{escapeBut(query, queryBytes), legacyQuery(query)} {
			if spelled != query {
				all = append(all, base+"?"+spelled)
			}
		}
	}
	return all
}

// queryBytes are the characters of a query that browsers do not escape, besides letters and digits (WHATWG URL,
// "special-query percent-encode set").
const queryBytes = "!$%&()*+,-./:;=?@[\\]^_`{|}~"

// legacyQuery decodes a query and encodes it again, as Node's module querystring does.
func legacyQuery(query string) string {
	var parts []string
	for _, p := range parseForm(query) {
		parts = append(parts, escapeBut(p.name, componentBytes)+"="+escapeBut(p.value, componentBytes))
	}
	return strings.Join(parts, "&")
}

// signsForm reports whether the parameters of the body are part of what is signed.
func (in *input) signsForm() bool {
	return in.isForm() && in.Method != "GET" && in.Method != "HEAD"
}

// hashedInURL reports whether the query of a URL holds the digest of the body.
func (in *input) hashedInURL(u string) bool {
	_, query, _ := strings.Cut(u, "?")
	text, _ := formValue(parseForm(query), twilioBodyHash)
	claimed, err := hex.DecodeString(text)
	sum := sha256.Sum256(in.Body)
	return err == nil && hmac.Equal(claimed, sum[:])
}

// twilioDigest signs a URL, and the parameters of the form if they are signed.
func (in *input) twilioDigest(algorithm, secret, url string, params bool) []byte {
	h := hmac.New(newHash(algorithm), []byte(secret))
	h.Write([]byte(url))
	if params {
		h.Write(in.signedParams())
	}
	return h.Sum(nil)
}

// sealTwilio signs for the URL that the request is sent to, with the algorithm that its headers name. A body that is
// not a form is bound to it by its digest in the query.
func sealTwilio(o *Outgoing, secret string) error {
	algorithm := twilioHash(o.Headers)
	if algorithm == "" {
		return unsignable(twilioSettings + " names an algorithm that is not known")
	}
	in := &input{Request: &Request{Method: o.Method, Headers: o.Headers, Body: o.Body}}
	o.URL = requestedURL(o.URL)
	if !in.signsForm() && len(o.Body) > 0 {
		sum := sha256.Sum256(o.Body)
		o.URL = withQuery(o.URL, twilioBodyHash, hex.EncodeToString(sum[:]))
	}
	digest := in.twilioDigest(algorithm, secret, o.URL, in.signsForm())
	o.Headers = setHeader(o.Headers, twilioHeader, base64.StdEncoding.EncodeToString(digest))
	return nil
}

// withQuery sets a parameter in the query of a URL and leaves the rest unchanged.
func withQuery(rawURL, name, value string) string {
	base, query, _ := strings.Cut(rawURL, "?")
	param := name + "=" + url.QueryEscape(value)
	var parts []string
	for part := range strings.SplitSeq(query, "&") {
		if part == "" || part == name || strings.HasPrefix(part, name+"=") {
			continue
		}
		parts = append(parts, part)
	}
	return base + "?" + strings.Join(append(parts, param), "&")
}
