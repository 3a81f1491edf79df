package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestWhatIsDoneTogetherIsKeptOrUndoneTogether(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		refused := errors.New("refused")
		create := func(ctx context.Context, name string, fail error) error {
			return db.Update(ctx, hookglass.System, func(tx *store.Tx) error {
				e := hookglass.Endpoint{ID: hookglass.NewEndpointID(), Name: name, Kind: hookglass.KindWebhook, Enabled: true}
				return errors.Join(tx.CreateEndpoint(&e, nil), fail)
			})
		}
		names := func(ctx context.Context) (names []string) {
			t.Helper()
			err := db.View(ctx, hookglass.System, func(v *store.View) error {
				all, err := v.Endpoints(0, 0)
				for _, e := range all {
					names = append(names, e.Name)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return names
		}
		err := db.Together(t.Context(), func(ctx context.Context) error {
			if err := create(ctx, "undone", nil); err != nil {
				return err
			}
			if got := names(ctx); !slices.Equal(got, []string{"undone"}) {
				t.Errorf("within: %v", got)
			}
			return refused
		})
		if got := names(t.Context()); !errors.Is(err, refused) || len(got) > 0 {
			t.Errorf("%v; left: %v", err, got)
		}
		err = db.Together(t.Context(), func(ctx context.Context) error {
			if err := create(ctx, "kept", nil); err != nil {
				return err
			}
			// A part that fails leaves nothing behind, and the whole goes on.
			if err := create(ctx, "failed", refused); !errors.Is(err, refused) {
				t.Error(err)
			}
			if err := db.Together(ctx, func(ctx context.Context) error { return errors.Join(create(ctx, "inner", nil), refused) }); !errors.Is(err, refused) {
				t.Error(err)
			}
			return db.Together(ctx, func(ctx context.Context) error { return create(ctx, "last", nil) })
		})
		if got := names(t.Context()); err != nil || !slices.Equal(got, []string{"kept", "last"}) {
			t.Errorf("%v; kept: %v", err, got)
		}
	})
}
