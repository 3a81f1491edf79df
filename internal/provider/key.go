package provider

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"strings"
)

// How a secret, as the user pasted it, becomes a key.
const (
	keyUTF8           = "utf8"             // its bytes
	keyHex            = "hex"              // hex digits
	keyBase64         = "base64"           // base64
	keyStandard       = "standard"         // Standard Webhooks: whsec_, then base64; without it, base64 or its bytes
	keyStandardOrUTF8 = "standard_or_utf8" // likewise with whsec_, else its bytes
	keyPublic         = "public"           // a public key: PEM, base64 or hex
)

// standardPrefix marks a secret of Standard Webhooks. Stripe's secrets start with it too but are used whole.
const standardPrefix = "whsec_"

// asymmetricPrefix marks a public key of Standard Webhooks, whose signatures are of version v1a.
const asymmetricPrefix = "whpk_"

// deriveKeys returns the keys that a secret may stand for, most likely first. It returns none for an unreadable or
// empty one: with an empty key anybody could sign.
func deriveKeys(kind, secret string) [][]byte {
	var keys [][]byte
	add := func(key []byte, err error) {
		if err == nil && len(key) > 0 {
			keys = append(keys, key)
		}
	}
	switch kind {
	case keyHex:
		add(hex.DecodeString(strings.TrimSpace(secret)))
	case keyBase64:
		add(decodeBase64(strings.TrimPrefix(strings.TrimSpace(secret), standardPrefix)))
	case keyStandard, keyStandardOrUTF8:
		// Some senders show the secret with the version of the signature before it (v1,whsec_…).
		secret = strings.TrimPrefix(strings.TrimSpace(secret), "v1,")
		if strings.HasPrefix(secret, asymmetricPrefix) {
			break
		}
		if text, marked := strings.CutPrefix(secret, standardPrefix); marked {
			add(decodeBase64(text))
			break
		}
		if kind == keyStandard {
			add(base64.StdEncoding.DecodeString(secret))
		}
		add([]byte(secret), nil) // also where it happens to be base64: some senders sign with its bytes (Polar)
		if kind == keyStandard && len(keys) == 1 {
			add(decodeBase64(secret))
		}
	case keyPublic:
		if block := readPEM([]byte(secret)); block != nil {
			add(block.Bytes, nil)
			break
		}
		secret = strings.TrimPrefix(strings.Join(strings.Fields(secret), ""), asymmetricPrefix)
		add(hex.DecodeString(secret))
		if len(keys) == 0 {
			add(decodeBase64(secret))
		}
	default:
		add([]byte(secret), nil)
	}
	return keys
}

// readPEM returns the first block of a text, or nil. Its line ends may be lost or spelled out: a form of one line takes
// them away, and JSON and files of settings have them as \n.
func readPEM(text []byte) *pem.Block {
	lines := strings.NewReplacer(`\r`, "", `\n`, "\n").Replace(string(text))
	if block, _ := pem.Decode([]byte(lines)); block != nil {
		return block
	}
	_, rest, _ := strings.Cut(lines, "-----BEGIN ")
	kind, rest, _ := strings.Cut(rest, "-----")
	body, _, found := strings.Cut(rest, "-----END "+kind+"-----")
	der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(body), ""))
	if !found || err != nil {
		return nil
	}
	return &pem.Block{Type: kind, Bytes: der}
}

// decodeBase64 reads the standard or the URL alphabet, with or without padding.
func decodeBase64(text string) ([]byte, error) {
	text = strings.TrimRight(strings.TrimSpace(text), "=")
	text = strings.NewReplacer("-", "+", "_", "/").Replace(text)
	return base64.RawStdEncoding.DecodeString(text)
}
