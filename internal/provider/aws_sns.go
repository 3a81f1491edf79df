package provider

import (
	"crypto"
	"encoding/base64"
	"io"
	"strings"
)

// Amazon SNS puts the signature into the body, made with a key whose certificate is at a URL that the body names. The
// certificate belongs to a region and vouches for every topic of every account, so the config's secret is the ARN of
// the expected topic. If it is a certificate or public key in PEM instead, that is used and nothing is fetched.

// snsFields are the signed fields, as far as they are present, as name and value on a line each. A notification has no
// Token, a confirmation no Subject.
var snsFields = []string{"Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"}

func snsSignature(in *input) string { return in.at([]string{"Signature"}).text() }

// snsHost reports whether a certificate may come from an address: sns.<region>.amazonaws.com, or .com.cn (AWS's own
// validator).
func snsHost(host, path string) bool {
	region, ok := strings.CutPrefix(host, "sns.")
	region, below := strings.CutSuffix(strings.TrimSuffix(region, ".cn"), ".amazonaws.com")
	return ok && below && isWord(region, 3, 63) && !strings.Contains(region, "_") &&
		strings.HasSuffix(path, ".pem") && strings.LastIndexByte(path, '/') == 0
}

func (s *scheme) verifySNS(in *input, secret string) reason {
	field := func(name string) string { return in.at([]string{name}).text() }
	signature, err := base64.StdEncoding.DecodeString(snsSignature(in))
	var id crypto.Hash
	switch field("SignatureVersion") {
	case "1":
		id = crypto.SHA1
	case "2":
		id = crypto.SHA256
	default:
		return noSupportedScheme
	}
	if err != nil || len(signature) == 0 {
		return malformedSignature
	}
	secret = strings.TrimSpace(secret)
	pub := parsePEM([]byte(secret))
	if pub == nil {
		if !strings.HasPrefix(secret, "arn:") {
			return unusableSecret
		}
		if field("TopicArn") != secret {
			return otherTopic
		}
		address, own := ownAddress(field("SigningCertURL"), snsHost)
		if !own {
			return foreignKey
		}
		answer := in.key(KeyRef{URL: address})
		if answer == nil {
			return keyUnavailable
		}
		pub = parsePEM(answer)
	}
	message := id.New()
	for _, name := range snsFields {
		if v := in.at([]string{name}); v.present() {
			io.WriteString(message, name+"\n"+v.text()+"\n")
		}
	}
	switch {
	case !verifyRSA(pub, id, message.Sum(nil), signature):
		return signatureMismatch
	case !in.hasOneReading():
		return bodyHashMismatch
	}
	return verified
}
