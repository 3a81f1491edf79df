package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// newChannel makes a webhook channel of a workspace.
func newChannel(t *testing.T, db *store.DB, w hookglass.Workspace, name string, follows ...hookglass.ActivityType) hookglass.Channel {
	t.Helper()
	c := hookglass.Channel{
		ID: hookglass.NewSortableID(hookglass.PrefixChannel, time.Now()), WorkspaceID: w.ID, Name: name, Kind: hookglass.ChannelWebhook, Enabled: true,
		Sealed: []byte("sealed"), Events: follows,
	}
	writing(t, db, func(tx *store.Tx) error { return tx.CreateChannel(&c) })
	return c
}

// A node looks at so many channels at a time: of those of one account, however many, the others' are not behind, nor
// are its own behind one that always has something to send.
func TestChannelsThatAreDueHaveTheirTurns(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		many, one := newTenant(t, db, "many@example.com"), newTenant(t, db, "one@example.com")
		names := map[int64]string{}
		add := func(w hookglass.Workspace, name string) int64 {
			c := newChannel(t, db, w, name)
			names[c.Num] = name
			writing(t, db, func(tx *store.Tx) error {
				return tx.Notify(c.Num, "", hookglass.Message{ID: "msg_" + name, Type: hookglass.MessageTest, At: tx.Now})
			})
			return c.Num
		}
		first := add(many.first, "m1")
		add(many.first, "m2")
		add(many.second, "m3")
		add(one.first, "o1")
		due := func(limit int) (order []string) {
			reading(t, db, func(v *store.View) error {
				found, err := v.ChannelsDue(v.Now, 0, limit)
				for _, d := range found {
					order = append(order, names[d.Num])
				}
				return err
			})
			return order
		}
		if got := due(2); !slices.Equal(got, []string{"m1", "o1"}) {
			t.Errorf("of all accounts: %v", got)
		}
		writing(t, db, func(tx *store.Tx) error {
			held, err := tx.HoldChannel(first, tx.Now, time.Minute)
			if err != nil {
				return err
			}
			_, err = tx.ReleaseChannel(held, store.ChannelProgress{Cursor: held.Cursor, DeliveredAt: tx.Now})
			return err
		})
		if got := due(9); !slices.Equal(got, []string{"m2", "o1", "m3", "m1"}) {
			t.Errorf("after one was sent to: %v", got)
		}
	})
}

// A channel that follows captures may have its turn and find nothing. It is not before one that always has something to
// send.
func TestAChannelThatFindsNothingHadItsTurn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		idle, busy := newTenant(t, db, "idle@example.com"), newTenant(t, db, "busy@example.com")
		quiet := newChannel(t, db, idle.first, "quiet", hookglass.ActivityWebhookReceived)
		sends := newChannel(t, db, busy.first, "sends")
		elsewhere := newEndpoint(t, db)
		writing(t, db, func(tx *store.Tx) error {
			return tx.Notify(sends.Num, "", hookglass.Message{ID: "msg_1", Type: hookglass.MessageTest, At: tx.Now})
		})
		serve := func(num int64, delivered bool) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) error {
				held, err := tx.HoldChannel(num, tx.Now, time.Minute)
				if err != nil {
					return err
				}
				p := store.ChannelProgress{Cursor: held.Cursor}
				if delivered {
					p.DeliveredAt = tx.Now
				}
				_, err = tx.ReleaseChannel(held, p)
				return err
			})
		}
		serve(sends.Num, true)
		serve(quiet.Num, false)
		newest := several(t, db, elsewhere, 1)[0].Seq
		reading(t, db, func(v *store.View) error {
			due, err := v.ChannelsDue(v.Now, newest, 9)
			if err == nil && (len(due) != 2 || due[0].Num != sends.Num || due[1].Num != quiet.Num) {
				t.Errorf("due are %v, want %d, then %d", due, sends.Num, quiet.Num)
			}
			return err
		})
	})
}

// What is captured where a channel does not follow it needs no turn of it, unless it has not kept up.
func TestChannelsArePassedByWhatTheyDoNotFollow(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := newTenant(t, db, "ada@example.com")
		webhooks, mails := hookglass.ActivityWebhookReceived, hookglass.ActivityEmailReceived
		add := func(w hookglass.Workspace, name string, follows ...hookglass.ActivityType) int64 {
			return newChannel(t, db, w, name, follows...).Num
		}
		both := add(n.first, "both", webhooks, mails)
		mail := add(n.first, "mail", mails, hookglass.ActivityAlertTriggered)
		other := add(n.second, "other", webhooks)
		add(n.first, "no captures", hookglass.ActivityAlertTriggered)
		failing := add(n.second, "failing", webhooks)
		writing(t, db, func(tx *store.Tx) error {
			return tx.Exec("UPDATE notification_channels SET failures = 1 WHERE num = $1", failing)
		})
		passed := func(when string, want ...int64) (upTo int64) {
			t.Helper()
			reading(t, db, func(v *store.View) error {
				nums, newest, err := v.ChannelsPassed()
				slices.Sort(nums)
				if !slices.Equal(nums, want) {
					t.Errorf("%s: %v are passed, want %v", when, nums, want)
				}
				upTo = newest
				return err
			})
			return upTo
		}
		passed("nothing is captured")
		several(t, db, newEndpoint(t, db), 2)
		upTo := passed("elsewhere", both, mail, other)
		several(t, db, endpointIn(t, db, n.first), 1)
		writing(t, db, func(tx *store.Tx) error { return tx.MoveChannels([]int64{both, mail, other}, upTo) })
		upTo = passed("a webhook", mail, other)
		writing(t, db, func(tx *store.Tx) error {
			if err := tx.MoveChannels([]int64{mail, other}, upTo); err != nil {
				return err
			}
			return tx.MoveChannels([]int64{other}, upTo-1) // of a node that looked before
		})
		reading(t, db, func(v *store.View) error {
			due, err := v.ChannelsDue(v.Now, upTo, 9)
			if err == nil && (len(due) != 2 || due[0].Num != both || due[1].Num != failing) {
				t.Errorf("due are %v, want %d and %d", due, both, failing)
			}
			return err
		})
		writing(t, db, func(tx *store.Tx) error {
			return tx.Exec("UPDATE notification_channels SET cursor = $1 WHERE num = $2", upTo-5_001, mail)
		})
		passed("far behind")
	})
}

// Captures stand behind each transaction: of a channel that failed for long many messages wait, and they are forgotten
// in pieces. Those of one that is at work are not, but where it is to be deleted.
func TestWhatWaitsForAChannelIsForgottenInPieces(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		home := newTenant(t, db, "forget@example.com")
		c, other := newChannel(t, db, home.first, "one"), newChannel(t, db, home.first, "other")
		fill := func(num int64, n int) {
			writing(t, db, func(tx *store.Tx) error {
				for range n {
					if err := tx.Notify(num, "", hookglass.Message{ID: hookglass.NewSortableID(hookglass.PrefixMessage, tx.Now), Type: hookglass.MessageTest, At: tx.Now}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		fill(c.Num, 2_100)
		fill(other.Num, 1)
		forget := func(deleting bool, wantMore bool, want int64) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) error {
				more, err := tx.ForgetMessages(c.ID, deleting)
				if more != wantMore {
					t.Errorf("more %t", more)
				}
				return err
			})
			reading(t, db, func(v *store.View) error {
				left, err := v.Ints("SELECT count(*) FROM notifications")
				if err == nil && left[0] != want {
					t.Errorf("%d are left, want %d", left[0], want)
				}
				return err
			})
		}
		forget(false, false, 2_101)
		forget(true, true, 1_101)
		writing(t, db, func(tx *store.Tx) error {
			held, err := tx.HoldChannel(c.Num, tx.Now, time.Minute)
			if err != nil {
				return err
			}
			_, err = tx.ReleaseChannel(held, store.ChannelProgress{Cursor: held.Cursor, Disable: "failing"})
			return err
		})
		forget(false, true, 101)
		forget(false, false, 1)
	})
}

// However many webhooks arrive in a workspace, a channel that follows its mail has nothing of them to look through.
func TestAChannelReadsNothingButWhatItFollows(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := newTenant(t, db, "ada@example.com")
		c := newChannel(t, db, n.first, "mail", hookglass.ActivityEmailReceived)
		endpoint := func(w hookglass.Workspace, kind hookglass.EndpointKind) hookglass.Endpoint {
			e := hookglass.Endpoint{ID: hookglass.NewEndpointID(), Name: "test", Kind: kind, Enabled: true, AccountID: n.account.ID, WorkspaceID: w.ID}
			writing(t, db, func(tx *store.Tx) error { return tx.CreateEndpoint(&e, nil) })
			return e
		}
		hooks, mails := endpoint(n.first, hookglass.KindWebhook), endpoint(n.first, hookglass.KindEmail)
		others, deleted := endpoint(n.second, hookglass.KindEmail), endpoint(n.first, hookglass.KindEmail)
		mail := func(at hookglass.Endpoint, subject string) *hookglass.Event {
			e := newEvent(at, subject)
			e.ID, e.Type, e.Method, e.Subject = hookglass.NewEventID(hookglass.EventEmail, e.ReceivedAt), hookglass.EventEmail, "EMAIL", subject
			return capture(t, db, e)[0]
		}
		several(t, db, hooks, 10)
		mail(others, "of another workspace")
		mail(deleted, "of an endpoint that is no more")
		writing(t, db, func(tx *store.Tx) error { return tx.DeleteEndpoint(&deleted) })
		want := mail(mails, "found")
		last := several(t, db, hooks, 10)[9]
		var held store.HeldChannel
		writing(t, db, func(tx *store.Tx) (err error) {
			held, err = tx.HoldChannel(c.Num, tx.Now, time.Minute)
			return err
		})
		reading(t, db, func(v *store.View) error {
			for _, cursor := range []int64{held.Cursor, -10_000} { // near, and far behind
				held.Cursor = cursor
				waiting, upTo, err := v.Waiting(held, 5)
				if err != nil {
					return err
				}
				if len(waiting) != 1 || waiting[0].EventID != want.ID || upTo != last.Seq {
					t.Errorf("%s, up to %d, want %s up to %d", fmt.Sprint(waiting), upTo, want.ID, last.Seq)
				}
			}
			return nil
		})
	})
}

// A channel has its turn, fails or is held by a clock that is put right afterwards, which was hours ahead.
func TestChannelsGoOnWhenTheClockWentBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		tenant := newTenant(t, db, "ada@example.com")
		const ahead = 3 * time.Hour
		for name, c := range map[string]struct {
			off  time.Duration // of the clock while the channel was held
			make func(*store.ChannelProgress, time.Time)
			lost bool // nobody released it
			want bool
		}{
			"it was sent to": {off: ahead, want: true, make: func(p *store.ChannelProgress, now time.Time) { p.DeliveredAt = now }},
			"nothing to do":  {off: ahead, want: true},
			"it failed":      {off: ahead, want: true, make: func(p *store.ChannelProgress, now time.Time) { p.Failures, p.DueAt = 1, now.Add(time.Hour) }},
			"it was lost":    {off: ahead, want: true, lost: true},
			"it fails":       {make: func(p *store.ChannelProgress, now time.Time) { p.Failures, p.DueAt = 1, now.Add(time.Hour) }},
			"it is held":     {lost: true},
		} {
			channel := newChannel(t, db, tenant.first, name)
			writing(t, db, func(tx *store.Tx) error {
				tx.Now = tx.Now.Add(c.off)
				if err := tx.Notify(channel.Num, "", hookglass.Message{ID: "msg_" + name, Type: hookglass.MessageTest, At: tx.Now}); err != nil {
					return err
				}
				held, err := tx.HoldChannel(channel.Num, tx.Now, time.Minute)
				if err != nil || c.lost {
					return err
				}
				p := store.ChannelProgress{Cursor: held.Cursor}
				if c.make != nil {
					c.make(&p, tx.Now)
				}
				_, err = tx.ReleaseChannel(held, p)
				return err
			})
			var due []store.ChannelDue
			reading(t, db, func(v *store.View) (err error) {
				due, err = v.ChannelsDue(v.Now, 0, 100)
				return err
			})
			found := slices.ContainsFunc(due, func(d store.ChannelDue) bool { return d.Num == channel.Num })
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				_, err := tx.HoldChannel(channel.Num, tx.Now, time.Minute)
				return err
			})
			if held := err == nil; found != c.want || held != c.want {
				t.Errorf("%s: due %v, held %v (%v), want %v", name, found, held, err, c.want)
			}
		}
	})
}

// A channel that begins to follow captures while a message is on its way gets none of what was captured before.
func TestAChannelFollowsFromNowOnAlsoWhenItIsHeld(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := newTenant(t, db, "ada@example.com")
		c := newChannel(t, db, n.first, "app", hookglass.ActivityAlertTriggered)
		e := hookglass.Endpoint{ID: hookglass.NewEndpointID(), Name: "test", Kind: hookglass.KindWebhook, Enabled: true, AccountID: n.account.ID, WorkspaceID: n.first.ID}
		writing(t, db, func(tx *store.Tx) error { return tx.CreateEndpoint(&e, nil) })
		several(t, db, e, 3)
		var held store.HeldChannel
		hold := func() {
			t.Helper()
			writing(t, db, func(tx *store.Tx) (err error) {
				held, err = tx.HoldChannel(c.Num, tx.Now, time.Minute)
				return err
			})
		}
		hold()
		writing(t, db, func(tx *store.Tx) error {
			_, err := tx.ChangeChannel(c.ID, func(c *hookglass.Channel) (bool, error) {
				c.Events = append(c.Events, hookglass.ActivityWebhookReceived)
				return false, nil
			})
			return err
		})
		later := several(t, db, e, 1)[0]
		writing(t, db, func(tx *store.Tx) error {
			_, err := tx.ReleaseChannel(held, store.ChannelProgress{Cursor: held.Cursor, DeliveredAt: tx.Now})
			return err
		})
		hold()
		reading(t, db, func(v *store.View) error {
			waiting, _, err := v.Waiting(held, 10)
			if err == nil && (len(waiting) != 1 || waiting[0].EventID != later.ID) {
				t.Errorf("%d messages wait, want one, about %s", len(waiting), later.ID)
			}
			return err
		})
	})
}

// Workspaces may have channels of one name, which follow the same. What happens in one is told to its own alone.
func TestAChannelIsOfItsWorkspaceAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := newTenant(t, db, "ada@example.com")
		mine, others := newChannel(t, db, n.first, "ops", hookglass.ActivityForwardingFailed), newChannel(t, db, n.second, "ops", hookglass.ActivityForwardingFailed)
		newChannel(t, db, n.first, "follows another", hookglass.ActivityAlertTriggered)
		for name, is := range map[string]string{"disabled": "enabled = 0", "given up": "disabled_at = 1", "for mail": "kind = 'email'"} {
			c := newChannel(t, db, n.first, name, hookglass.ActivityForwardingFailed)
			writing(t, db, func(tx *store.Tx) error {
				return tx.Exec("UPDATE notification_channels SET "+is+" WHERE num = $1", c.Num)
			})
		}
		e := hookglass.Endpoint{ID: hookglass.NewEndpointID(), Name: "test", Kind: hookglass.KindWebhook, Enabled: true, AccountID: n.account.ID, WorkspaceID: n.first.ID}
		alert := hookglass.Alert{ID: "alrt_x", Name: "x", Kind: hookglass.AlertMissingWebhook, Enabled: true}
		writing(t, db, func(tx *store.Tx) error {
			if err := tx.CreateEndpoint(&e, nil); err != nil {
				return err
			}
			alert.EndpointNum = e.Num
			if err := tx.CreateAlert(&alert, []int64{mine.Num, others.Num}); err != nil {
				return err
			}
			return tx.AddActivity(hookglass.Activity{Type: hookglass.ActivityForwardingFailed, OccurredAt: tx.Now, EndpointID: e.ID})
		})
		is := func(what, query string, want ...int64) {
			t.Helper()
			reading(t, db, func(v *store.View) error {
				found, err := v.Ints(query)
				same(t, what, found, err, want)
				return nil
			})
		}
		is("who is told", "SELECT channel FROM notifications", mine.Num)
		reading(t, db, func(v *store.View) error {
			listed, err := v.Channels(n.second.ID, 0, 0)
			if err != nil || len(listed) != 1 || listed[0].ID != others.ID {
				t.Errorf("channels of the second workspace: %+v, %v", listed, err)
			}
			behind, err := v.Channels(0, mine.Num, 1)
			if err != nil || len(behind) != 1 || behind[0].ID != others.ID {
				t.Errorf("the first channel behind %s: %+v, %v", mine.ID, behind, err)
			}
			for _, c := range []hookglass.Channel{mine, others} {
				for _, ref := range []string{c.ID, c.Name} {
					found, err := v.ChannelIn(c.WorkspaceID, ref)
					same(t, "by "+ref, found.ID, err, c.ID)
				}
			}
			found, err := v.ChannelIn(n.second.ID, mine.ID)
			missing(t, "another's by its id", found, err)
			return nil
		})
		writing(t, db, func(tx *store.Tx) error {
			count, err := tx.LockChannels(n.second.ID)
			same(t, "their number", count, err, 1)
			return tx.Notify(others.Num, "", hookglass.Message{ID: "msg_x", At: tx.Now})
		})
		writing(t, db, func(tx *store.Tx) error { _, err := tx.DeleteChannel(mine.ID); return err })
		is("who is told once one is deleted", "SELECT channel FROM notifications", others.Num)
		is("whom the alert tells", "SELECT channel FROM alert_channels", others.Num)
		is("who is left in the first workspace", fmt.Sprint("SELECT count(*) FROM notification_channels WHERE workspace_id = ", n.first.ID), 4)
	})
}
