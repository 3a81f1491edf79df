package provider

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
)

const (
	twilioHeader   = "X-Twilio-Signature"
	twilioBodyHash = "bodySHA256"
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

// checkTwilio verifies X-Twilio-Signature: HMAC-SHA1 over the URL as Twilio called it, followed by the sorted form
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
	params := ""
	if in.signsForm() {
		params = sortedParams(in.params())
	}
	for _, u := range in.urls() {
		want := twilioDigest(secret, u, params)
		for _, d := range digests {
			if !hmac.Equal(d, want) {
				continue
			}
			if len(in.Body) > 0 && !in.signsForm() && !in.hashedInURL(u) {
				return bodyHashMismatch
			}
			return verified
		}
	}
	return signatureMismatch
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

func twilioDigest(secret, url, params string) []byte {
	h := hmac.New(sha1.New, []byte(secret))
	h.Write([]byte(url))
	h.Write([]byte(params))
	return h.Sum(nil)
}

// sealTwilio signs for the URL that the request is sent to. A body that is not a form is bound to it by its digest in
// the query.
func sealTwilio(o *Outgoing, secret string) {
	in := &input{Request: &Request{Method: o.Method, Headers: o.Headers, Body: o.Body}}
	o.URL = requestedURL(o.URL)
	params := ""
	if in.signsForm() {
		params = sortedParams(in.params())
	} else if len(o.Body) > 0 {
		sum := sha256.Sum256(o.Body)
		o.URL = withQuery(o.URL, twilioBodyHash, hex.EncodeToString(sum[:]))
	}
	digest := twilioDigest(secret, o.URL, params)
	o.Headers = setHeader(o.Headers, twilioHeader, base64.StdEncoding.EncodeToString(digest))
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
