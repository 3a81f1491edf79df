package store_test

import (
	"crypto/sha256"
	"fmt"
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
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
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

func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// signedIn is a user with a session of each kind.
func signedIn(t *testing.T, db *store.DB, email string, expires time.Duration) (user hookglass.User, hash func(store.SessionKind) []byte) {
	t.Helper()
	user = hookglass.User{Email: email}
	hash = func(kind store.SessionKind) []byte { return hashOf(string(kind) + " of " + email) }
	writing(t, db, func(tx *store.Tx) error {
		if err := tx.CreateUser(&user, ""); err != nil {
			return err
		}
		for _, kind := range []store.SessionKind{store.SessionBrowser, store.SessionLink, store.SessionCode} {
			if err := tx.CreateSession(kind, hash(kind), user.ID, tx.Now.Add(expires)); err != nil {
				return err
			}
		}
		return nil
	})
	return user, hash
}

// sessions counts what is stored, expired or not.
func sessions(t *testing.T, db *store.DB, user hookglass.User) (n int64) {
	t.Helper()
	view(t, db, hookglass.System, func(v *store.View) {
		all, err := v.Ints("SELECT count(*) FROM sessions WHERE user_id = $1", user.ID)
		if err != nil {
			t.Fatal(err)
		}
		n = all[0]
	})
	return n
}

func TestASessionIsGoodUntilItExpires(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ada, of := signedIn(t, db, "ada@example.com", time.Hour)
		view(t, db, hookglass.System, func(v *store.View) {
			browser := of(store.SessionBrowser)
			listed, err := v.BrowserSessions(ada.ID, v.Now)
			if err != nil || len(listed) != 1 || listed[0].ID != store.SessionID(browser) {
				t.Fatalf("signed in with %+v, %v; want the browser alone", listed, err)
			}
			end := listed[0].ExpiresAt
			user, err := v.SessionUser(store.SessionBrowser, browser, end.Add(-time.Microsecond))
			same(t, "who it is, at the last moment", user, err, ada)
			user, err = v.SessionUser(store.SessionBrowser, browser, end)
			missing(t, "who it was, at its end", user, err)
			listed, err = v.BrowserSessions(ada.ID, end)
			same(t, "browsers at its end", listed, err, []hookglass.BrowserSession{})
		})
		_, old := signedIn(t, db, "eve@example.com", 0)
		for _, kind := range []store.SessionKind{store.SessionLink, store.SessionCode} {
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				_, err := tx.TakeSession(kind, old(kind))
				return err
			})
			missing(t, "one to be used once that has expired: "+string(kind), "nothing", err)
		}
	})
}

// What may sign in once is no session, and a session signs nobody in.
func TestASessionIsOfItsKindAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		_, of := signedIn(t, db, "ada@example.com", time.Hour)
		kinds := []store.SessionKind{store.SessionBrowser, store.SessionLink, store.SessionCode}
		for _, kind := range kinds {
			for _, other := range kinds {
				if other == kind {
					continue
				}
				view(t, db, hookglass.System, func(v *store.View) {
					user, err := v.SessionUser(kind, of(other), v.Now)
					missing(t, "the "+string(other)+" as a "+string(kind), user, err)
				})
				err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
					_, err := tx.TakeSession(kind, of(other))
					return err
				})
				missing(t, "take the "+string(other)+" as a "+string(kind), "nothing", err)
			}
		}
	})
}

func TestWhatMaySignInOnceIsTakenOnceAndAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ada, of := signedIn(t, db, "ada@example.com", time.Hour)
		eve, _ := signedIn(t, db, "eve@example.com", time.Hour)
		writing(t, db, func(tx *store.Tx) error {
			user, err := tx.TakeSession(store.SessionLink, of(store.SessionLink))
			same(t, "whose link it is", user, err, ada.ID)
			return err
		})
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			_, err := tx.TakeSession(store.SessionLink, of(store.SessionLink))
			return err
		})
		missing(t, "the link again", "nothing", err)
		if mine, others := sessions(t, db, ada), sessions(t, db, eve); mine != 2 || others != 3 {
			t.Errorf("%d are left of who followed a link, and %d of another; want 2 and 3", mine, others)
		}
	})
}

func TestSessionsThatEndLeaveThoseOfOthers(t *testing.T) {
	browserOf := func(of func(store.SessionKind) []byte) []byte { return of(store.SessionBrowser) }
	for name, c := range map[string]struct {
		end  func(tx *store.Tx, ada hookglass.User, browser []byte) error
		left int64
	}{
		"one": {func(tx *store.Tx, _ hookglass.User, b []byte) error { return tx.DeleteSession(b) }, 2},
		"all": {func(tx *store.Tx, u hookglass.User, _ []byte) error { return tx.DeleteSessionsOf(u.ID) }, 0},
		"one by its id": {func(tx *store.Tx, u hookglass.User, b []byte) error {
			return tx.EndSessions(u.ID, store.SessionID(b), nil)
		}, 2},
		"all but one": {func(tx *store.Tx, u hookglass.User, b []byte) error { return tx.EndSessions(u.ID, "", b) }, 1},
		"one of another's name": {func(tx *store.Tx, u hookglass.User, _ []byte) error {
			return tx.EndSessions(u.ID, store.SessionID(hashOf("browser of eve@example.com")), nil)
		}, 3},
		"a link by its id": {func(tx *store.Tx, u hookglass.User, _ []byte) error {
			return tx.EndSessions(u.ID, store.SessionID(hashOf("link of ada@example.com")), nil)
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				ada, of := signedIn(t, db, "ada@example.com", time.Hour)
				eve, _ := signedIn(t, db, "eve@example.com", time.Hour)
				tokens := db.Listen(store.TopicTokens)
				defer tokens.Close()
				drain(tokens)
				writing(t, db, func(tx *store.Tx) error { return c.end(tx, ada, browserOf(of)) })
				if mine, others := sessions(t, db, ada), sessions(t, db, eve); mine != c.left || others != 3 {
					t.Errorf("%d are left, and %d of another; want %d and 3", mine, others, c.left)
				}
				heard(t, "who holds a socket by a session", tokens)
			})
		})
	}
}

func TestSessionsThatHaveExpiredAreForgottenAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ada, _ := signedIn(t, db, "ada@example.com", time.Hour)
		eve, _ := signedIn(t, db, "eve@example.com", 0)
		purge := func() (more bool) {
			writing(t, db, func(tx *store.Tx) (err error) {
				more, err = tx.PurgeSessions()
				return err
			})
			return more
		}
		if more := purge(); more || sessions(t, db, ada) != 3 || sessions(t, db, eve) != 0 {
			t.Errorf("%d are left that are good, and %d that have expired; more %v", sessions(t, db, ada), sessions(t, db, eve), more)
		}
		writing(t, db, func(tx *store.Tx) error {
			for i := range 700 {
				if err := tx.CreateSession(store.SessionBrowser, hashOf(fmt.Sprint("old ", i)), eve.ID, tx.Now); err != nil {
					return err
				}
			}
			return nil
		})
		if more := purge(); !more || sessions(t, db, eve) != 200 { // captures wait behind a transaction
			t.Errorf("%d are left of 700 after one piece; more %v", sessions(t, db, eve), more)
		}
		if more := purge(); more || sessions(t, db, ada) != 3 || sessions(t, db, eve) != 0 {
			t.Errorf("%d are left that are good, and %d that have expired; more %v", sessions(t, db, ada), sessions(t, db, eve), more)
		}
	})
}

func TestABrowserIsDescribedAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ada, of := signedIn(t, db, "ada@example.com", time.Hour)
		writing(t, db, func(tx *store.Tx) error {
			return tx.CreateSession(store.SessionBrowser, []byte("an older browser"), ada.ID, tx.Now.Add(time.Hour))
		})
		writing(t, db, func(tx *store.Tx) error {
			if err := tx.Exec("UPDATE sessions SET created_at = created_at - 1000000 WHERE hash = $1", []byte("an older browser")); err != nil {
				return err
			}
			return tx.DescribeSession(of(store.SessionBrowser), "Firefox")
		})
		view(t, db, hookglass.System, func(v *store.View) {
			listed, err := v.BrowserSessions(ada.ID, v.Now)
			if err != nil || len(listed) != 2 || listed[0].Client != "Firefox" || listed[1].Client != "" {
				t.Errorf("signed in with %+v, %v; want Firefox, and behind it the older that said nothing", listed, err)
			}
		})
	})
}

// PostgreSQL stores no NUL in a text.
func TestAStatementThatFailsIsNoneThatFindsNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		_, of := signedIn(t, db, "ada@example.com", time.Hour)
		describe := func(hash []byte, client string) error {
			return db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DescribeSession(hash, client) })
		}
		missing(t, "a session that there is not", "nothing", describe(hashOf("none"), "Firefox"))
		if err := describe(of(store.SessionBrowser), "Fire\x00fox"); (err != nil) != db.Postgres() || hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("a text with a NUL: %v", err)
		}
	})
}
