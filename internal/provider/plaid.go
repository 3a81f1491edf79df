package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// Plaid sends a compact JWS (RFC 7515) with ES256, whose claims are the digest of the body and the time. Its keys are
// not public: each customer requests them from the API with the account's credentials. The config's secret is either
// such a key, as the JWK in the API's answer, or the credentials: {"client_id": "…", "secret": "…", "environment":
// "production" or "sandbox"}.

// plaidHosts are the hosts of the API, by environment.
var plaidHosts = map[string]string{"": "production.plaid.com", "production": "production.plaid.com", "sandbox": "sandbox.plaid.com"}

func (s *scheme) verifyPlaid(in *input, token, secret string, tolerance, at int64) reason {
	t, ok := readJWS(token)
	if !ok {
		return malformedSignature
	}
	if t.header.child("alg").text() != "ES256" {
		return noSupportedScheme
	}
	kid := t.header.child("kid").text()
	issued, err := strconv.ParseInt(t.claims.child("iat").text(), 10, 64)
	if err != nil || !isWord(kid, 1, 128) {
		return malformedSignature
	}
	key, usable := readJWK([]byte(secret))
	if !usable {
		ref, credentials := plaidKey(secret, kid)
		if !credentials {
			return unusableSecret
		}
		answer := in.key(ref)
		if answer == nil {
			return keyUnavailable
		}
		key, usable = readJWK(answer)
	}
	pub, _ := key.public()
	sum := sha256.Sum256([]byte(t.signed))
	if !usable || key.Kid != "" && key.Kid != kid || key.ExpiredAt != nil && *key.ExpiredAt <= issued || !verifyES256(pub, sum[:], t.signature) {
		return signatureMismatch
	}
	sum = sha256.Sum256(in.Body)
	claimed, _ := hex.DecodeString(t.claims.child("request_body_sha256").text())
	if !hmac.Equal(claimed, sum[:]) {
		return bodyHashMismatch
	}
	if tolerance > 0 && outside(issued*1000, at, tolerance, false, false) {
		return timestampOutOfTolerance
	}
	return verified
}

// plaidKey returns where to request the key of an id, if the secret holds credentials.
func plaidKey(secret, kid string) (KeyRef, bool) {
	var account struct {
		ClientID    string `json:"client_id"`
		Secret      string `json:"secret"`
		Environment string `json:"environment"`
	}
	if json.Unmarshal([]byte(secret), &account) != nil || account.ClientID == "" || account.Secret == "" {
		return KeyRef{}, false
	}
	host, known := plaidHosts[account.Environment]
	if !known {
		return KeyRef{}, false
	}
	ask, err := json.Marshal(map[string]string{"client_id": account.ClientID, "secret": account.Secret, "key_id": kid})
	return KeyRef{URL: "https://" + host + "/webhook_verification_key/get", Post: string(ask)}, err == nil
}
