package provider

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strings"
)

func newHash(name string) func() hash.Hash {
	switch name {
	case "sha1":
		return sha1.New
	case "sha512":
		return sha512.New
	}
	return sha256.New
}

// decodeDigest appends the bytes of an encoded digest: hex in either case, or base64 of the standard alphabet with
// padding.
func decodeDigest(dst []byte, text, encoding string) ([]byte, bool) {
	if text == "" {
		return dst, false
	}
	switch encoding {
	case "hex":
		d, err := hex.AppendDecode(dst, []byte(text))
		return d, err == nil
	case "any":
		if d, ok := decodeDigest(dst, text, "hex"); ok {
			return d, true
		}
	}
	if strings.ContainsAny(text, "\r\n") {
		return dst, false // the decoder would skip them
	}
	d, err := base64.StdEncoding.AppendDecode(dst, []byte(text))
	return d, err == nil
}

func encodeDigest(digest []byte, encoding string) string {
	if encoding == "base64" {
		return base64.StdEncoding.EncodeToString(digest)
	}
	return hex.EncodeToString(digest)
}
