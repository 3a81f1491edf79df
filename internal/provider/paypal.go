package provider

import (
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"hash/crc32"
	"strconv"
	"strings"
)

// PayPal signs the transmission's id and time, the webhook's id from its dashboard, and the CRC-32 of the body. The
// certificate is at a URL that a header names. The config's secret is the webhook's id; if a certificate or public key
// in PEM follows it, that is used and nothing is fetched.

// paypalHosts are the hosts of the certificates, which are below paypalCerts.
var paypalHosts = map[string]bool{"api.paypal.com": true, "api-m.paypal.com": true, "api.sandbox.paypal.com": true, "api-m.sandbox.paypal.com": true}

const paypalCerts = "/v1/notifications/certs/"

func paypalHost(host, path string) bool {
	name, ok := strings.CutPrefix(path, paypalCerts)
	return ok && paypalHosts[host] && isWord(name, 1, 128)
}

func (s *scheme) verifyPayPal(in *input, header, secret string) reason {
	webhook, pinned, hasKey := strings.Cut(secret, "-----BEGIN")
	webhook = strings.TrimSpace(webhook)
	if webhook == "" {
		return unusableSecret
	}
	transmission, stamp := in.Headers.Get("PAYPAL-TRANSMISSION-ID"), in.Headers.Get("PAYPAL-TRANSMISSION-TIME")
	signature, err := base64.StdEncoding.DecodeString(header)
	switch {
	case transmission == "":
		return missingID
	case stamp == "":
		return missingTimestamp
	case !strings.EqualFold(in.Headers.Get("PAYPAL-AUTH-ALGO"), "SHA256withRSA"):
		return noSupportedScheme
	case err != nil || len(signature) == 0:
		return malformedSignature
	}
	var pub crypto.PublicKey
	if hasKey {
		if pub = parsePEM([]byte("-----BEGIN" + pinned)); pub == nil {
			return unusableSecret
		}
	} else {
		address, own := ownAddress(in.Headers.Get("PAYPAL-CERT-URL"), paypalHost)
		if !own {
			return foreignKey
		}
		answer := in.key(KeyRef{URL: address})
		if answer == nil {
			return keyUnavailable
		}
		pub = parsePEM(answer)
	}
	crc := strconv.FormatUint(uint64(crc32.ChecksumIEEE(in.Body)), 10)
	sum := sha256.Sum256([]byte(transmission + "|" + stamp + "|" + webhook + "|" + crc))
	if !verifyRSA(pub, crypto.SHA256, sum[:], signature) {
		return signatureMismatch
	}
	return verified
}
