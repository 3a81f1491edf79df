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

// openKeys reads the keyset, making one for an installation that has sealed nothing yet. A keyset that is
// missing where secrets are sealed is an error: a new one would open none of them.
func (s Storage) openKeys(ctx context.Context, db *store.DB) (*seal.Keys, error) {
	keys, err := seal.Load(s.KeyFile())
	if !errors.Is(err, fs.ErrNotExist) {
		return keys, err
	}
	var sealed []store.SealedSecret
	if err := db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		sealed, err = v.SealedSecrets(1)
		return err
	}); err != nil {
		return nil, err
	}
	if len(sealed) > 0 {
		return nil, fmt.Errorf("the keyset %s is missing, and the database holds secrets that were sealed with it: bring it back from a backup", s.KeyFile())
	}
	return seal.LoadOrCreate(s.KeyFile())
}
