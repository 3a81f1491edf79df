package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"hookglass"
)

// Parameters of argon2id as recommended by OWASP: 19 MiB and two passes.
const (
	argonMemory  = 19 * 1024 // KiB
	argonTime    = 2
	argonThreads = 1
	argonKey     = 32
	argonSalt    = 16
)

// Bounds on stored parameters, so that a damaged or foreign row cannot exhaust memory or run for an hour.
const (
	maxArgonMemory = 256 * 1024 // KiB
	maxArgonTime   = 16
	maxArgonLen    = 64
)

// Bounds of a password (ASVS 5.0, 6.2.1 and 6.2.9).
const (
	minPassword = 8   // characters
	maxPassword = 512 // bytes
)

// hasher hashes a few passwords at a time, because each takes 19 MiB.
type hasher struct{ slots chan struct{} }

func newHasher() hasher { return hasher{make(chan struct{}, max(2, runtime.NumCPU()))} }

// hash returns the password's PHC string. It answers validation_failed for a password out of bounds.
func (h hasher) hash(ctx context.Context, password string) (string, error) {
	if utf8.RuneCountInString(password) < minPassword || len(password) > maxPassword {
		return "", hookglass.Invalid("password", "must have %d characters to %d bytes", minPassword, maxPassword)
	}
	p := newPHC()
	rand.Read(p.salt)
	key, err := h.derive(ctx, p, password)
	if err != nil {
		return "", err
	}
	p.key = key
	return p.String(), nil
}

// matches reports whether the stored PHC string is a hash of the password. An empty or invalid one never matches, but
// takes as long.
func (h hasher) matches(ctx context.Context, stored, password string) (bool, error) {
	p, ok := parsePHC(stored)
	if !ok {
		p = newPHC()
	}
	if len(password) > maxPassword {
		return false, nil
	}
	key, err := h.derive(ctx, p, password)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(key, p.key) == 1 && ok, nil
}

func (h hasher) derive(ctx context.Context, p phc, password string) ([]byte, error) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, &hookglass.Error{Code: hookglass.CodeUnavailable, Message: "Too many are signing in. Try again shortly.", Err: context.Cause(ctx)}
	}
	return argon2.IDKey([]byte(password), p.salt, p.time, p.memory, p.threads, uint32(len(p.key))), nil
}

// phc is a password hash in the PHC string format.
type phc struct {
	memory, time uint32
	threads      uint8
	salt, key    []byte
}

func (p phc) String() string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.memory, p.time, p.threads, b64(p.salt), b64(p.key))
}

// newPHC returns one of the cost of new passwords, with a salt and a key to fill.
func newPHC() phc {
	return phc{memory: argonMemory, time: argonTime, threads: argonThreads, salt: make([]byte, argonSalt), key: make([]byte, argonKey)}
}

// parsePHC parses exactly what String writes.
func parsePHC(s string) (p phc, ok bool) {
	parts := strings.Split(s, "$")
	if len(parts) != 6 {
		return phc{}, false
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.time, &p.threads); n != 3 || err != nil {
		return phc{}, false
	}
	var err error
	if p.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil {
		return phc{}, false
	}
	if p.key, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil {
		return phc{}, false
	}
	switch {
	case p.String() != s,
		p.memory < 8*uint32(p.threads), p.memory > maxArgonMemory, p.time < 1, p.time > maxArgonTime, p.threads < 1,
		len(p.salt) < 8, len(p.salt) > maxArgonLen, len(p.key) < 16, len(p.key) > maxArgonLen:
		return phc{}, false
	}
	return p, true
}
