package provider

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
)

// publicKeyKind reports whether schemes of a kind verify with a public key, so that only the sender can sign.
func publicKeyKind(kind string) bool { return kind == "ed25519" || kind == "ecdsa" || kind == "rsa" }

// verifyPublic checks a signature made with the private key of the sender. key is a public key in the form of its kind:
// 32 bytes for Ed25519, PKIX for the others.
func verifyPublic(kind, hashName string, key, message, signature []byte) bool {
	pub := publicKey(kind, key)
	if key, ok := pub.(ed25519.PublicKey); ok {
		return ed25519.Verify(key, message, signature)
	}
	h := newHash(hashName)()
	h.Write(message)
	sum := h.Sum(nil)
	switch pub := pub.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(pub, sum, signature)
	case *rsa.PublicKey:
		id := crypto.SHA256
		if hashName == "sha1" {
			id = crypto.SHA1
		}
		return rsa.VerifyPKCS1v15(pub, id, sum, signature) == nil
	}
	return false
}

// publicKey returns the key of a kind, or nil.
func publicKey(kind string, key []byte) crypto.PublicKey {
	if kind == "ed25519" && len(key) == ed25519.PublicKeySize {
		return ed25519.PublicKey(key)
	}
	pub, of := parsePKIX(key), ""
	switch pub.(type) {
	case ed25519.PublicKey:
		of = "ed25519"
	case *ecdsa.PublicKey:
		of = "ecdsa"
	case *rsa.PublicKey:
		of = "rsa"
	}
	if of != kind {
		return nil
	}
	return pub
}

func parsePKIX(der []byte) crypto.PublicKey {
	if block, _ := pem.Decode(der); block != nil {
		der = block.Bytes
	}
	if pub, err := x509.ParsePKIXPublicKey(der); err == nil {
		return pub
	}
	if pub, err := x509.ParsePKCS1PublicKey(der); err == nil { // BEGIN RSA PUBLIC KEY
		return pub
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil
	}
	return cert.PublicKey
}
