package store_test

import (
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// One has the link and will have a session, the other has the password and will end what is there: neither is to wait
// for what the other has while that waits for it.
func TestALinkIsFollowedWhileThePasswordIsReplaced(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Postgres(t)})
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	user, link := hookglass.User{Email: "ada@example.com"}, []byte("the hash of a link")
	err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		if err := tx.CreateUser(&user, "old"); err != nil {
			return err
		}
		return tx.CreateSession(store.SessionLink, link, user.ID, tx.Now.Add(time.Hour))
	})
	if err != nil {
		t.Fatal(err)
	}
	taken, looked := make(chan struct{}), make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() {
		took, stop := sync.OnceFunc(func() { close(taken) }), t.Context().Done()
		defer took()
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			if _, err := tx.TakeSession(store.SessionLink, link); err != nil {
				return err
			}
			took()
			select {
			case <-looked:
			case <-stop:
			}
			return tx.CreateSession(store.SessionBrowser, []byte("the hash of a session"), user.ID, tx.Now.Add(time.Hour))
		})
		if err != nil {
			t.Errorf("who follows the link: %v", err)
		}
	})
	<-taken
	look := sync.OnceFunc(func() { close(looked) })
	err = db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		defer look()
		if _, err := tx.PasswordHashToChange(user.ID); err != nil {
			return err
		}
		look()
		if err := tx.SetPasswordHash(user.ID, "new"); err != nil {
			return err
		}
		return tx.EndSessions(user.ID, "", nil)
	})
	if err != nil {
		t.Errorf("who replaces the password: %v", err)
	}
	following.Wait()
}
