package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"hookglass"
	"hookglass/internal/seal"
	"hookglass/internal/store"
)

// startSample is how many of the newest secrets of each kind a keyset is tried on at the start. A single damaged secret
// must not keep the service from starting, while a wrong keyset opens none.
const startSample = 20

// openKeys reads the keyset, or creates one if nothing has been sealed yet. It is an error if the keyset is missing
// although there are sealed secrets, which a new one could not open, and if it opens none of them.
func (s Storage) openKeys(ctx context.Context, db *store.DB) (*seal.Keys, error) {
	keys, err := seal.Load(s.keyFile())
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, remedied(err)
	}
	sealed, err := newestSealed(ctx, db, startSample)
	if err != nil {
		return nil, err
	}
	switch {
	case missing && len(sealed) > 0:
		return nil, fmt.Errorf("the keyset %s is missing, and the database holds secrets that were sealed with it: bring it back from a backup", s.keyFile())
	case missing:
		if err := s.makeDirectory(); err != nil {
			return nil, err
		}
		return seal.LoadOrCreate(s.keyFile())
	case opensNone(keys, sealed):
		return nil, fmt.Errorf("the keyset %s opens none of the newest secrets in the database: bring the right one, which is the same for all nodes; hookglass doctor says more", s.keyFile())
	}
	return keys, nil
}

// newestSealed returns the newest secrets, up to so many of each kind, to try a keyset on.
func newestSealed(ctx context.Context, db *store.DB, most int) ([]store.SealedSecret, error) {
	return store.Read(ctx, db, hookglass.System, func(v *store.View) ([]store.SealedSecret, error) { return v.SealedSecrets(most) })
}

// opensNone reports whether a keyset opens none of the existing secrets, and so is a wrong one.
func opensNone(keys *seal.Keys, sealed []store.SealedSecret) bool {
	return len(sealed) > 0 && foreign(keys, sealed) == len(sealed)
}

// foreign counts the secrets that a keyset does not open.
func foreign(keys *seal.Keys, sealed []store.SealedSecret) (n int) {
	for _, s := range sealed {
		if _, err := keys.Open(s.Sealed, s.Where); err != nil {
			n++
		}
	}
	return n
}
