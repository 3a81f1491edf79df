package provider

import (
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mailgun signs a timestamp and a token with the webhook signing key, and sends all three in the body: as /signature of
// a JSON event, or as form fields, multipart if a mail has attachments. The rest of the body is not signed.

func mailgunClaim(in *input) (stamp, token, signature string) {
	if len(in.doc()) == 0 {
		stamp, _ = formValue(in.formFields(), "timestamp")
		token, _ = formValue(in.formFields(), "token")
		signature, _ = formValue(in.formFields(), "signature")
		return stamp, token, signature
	}
	s := in.at([]string{"signature"})
	return s.child("timestamp").text(), s.child("token").text(), s.child("signature").text()
}

func (s *scheme) verifyMailgun(in *input, secret string) reason {
	stamp, token, signature := mailgunClaim(in)
	digest, ok := decodeDigest(nil, signature, "hex")
	switch {
	case signature == "":
		return missingSignature
	case stamp == "":
		return missingTimestamp
	case !ok:
		return malformedSignature
	case secret == "":
		return unusableSecret
	}
	if !hmac.Equal(digest, hmacSHA256(secret, stamp+token)) {
		return signatureMismatch
	}
	return verified
}

// signMailgun replaces the time and the signature in the body, which must hold them; the token stays.
func signMailgun(o *Outgoing, secret string, at time.Time) error {
	in := &input{Request: &Request{Method: o.Method, Headers: o.Headers, Body: o.Body}}
	_, token, signature := mailgunClaim(in)
	if token == "" || signature == "" || o.Headers.Get("Content-Encoding") != "" {
		return unsignable("the body has no token and signature to exchange")
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	signature = hex.EncodeToString(hmacSHA256(secret, stamp+token))
	values := map[string]string{"timestamp": stamp, "signature": signature}
	if in.isForm() && len(in.doc()) == 0 {
		pairs := strings.Split(string(o.Body), "&")
		for i, p := range pairs {
			name, _, _ := strings.Cut(p, "=")
			if v, ok := values[unescapeForm(name)]; ok {
				pairs[i] = name + "=" + v
			}
		}
		o.Body = []byte(strings.Join(pairs, "&"))
		return nil
	}
	if !json.Valid(o.Body) {
		return unsignable("the signature stands in the body, which is no JSON")
	}
	e := editor{text: o.Body}
	var places []field
	var texts []string
	for name, v := range values {
		e.find(skipSpace(o.Body, 0), []string{"signature", name}, "", func(_ string, place field) {
			if o.Body[place.start] == '"' {
				v = `"` + v + `"`
			}
			places, texts = append(places, place), append(texts, v)
		})
	}
	if len(places) == 2 && places[0].start > places[1].start {
		places[0], places[1], texts[0], texts[1] = places[1], places[0], texts[1], texts[0]
	}
	if len(places) != 2 {
		return unsignable("the body holds its time or its signature more than once")
	}
	o.Body = replaced(o.Body, places, texts)
	return nil
}

// TimesSigned reports whether the body holds a signature over a time in the body.
func TimesSigned(d Detection, o Outgoing) bool {
	s := table().byID[d.Provider]
	in := &input{Request: &Request{Method: o.Method, Headers: o.Headers, Body: o.Body}}
	return s != nil && slices.ContainsFunc(s.Signatures, func(sc *scheme) bool {
		return (sc.Kind == "mailgun" || sc.Kind == "sns") && sc.presentedInBody(in)
	})
}

// presentedInBody reports whether the body holds a signature of the schemes that keep it there.
func (s *scheme) presentedInBody(in *input) bool {
	switch s.Kind {
	case "mailgun":
		_, _, signature := mailgunClaim(in)
		return signature != ""
	case "sns":
		return snsSignature(in) != ""
	}
	found := false
	eachAdyenItem(in, func(_ value, signature string) bool {
		found = signature != ""
		return !found
	})
	return found
}
