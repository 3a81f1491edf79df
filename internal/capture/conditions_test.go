package capture_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// target gives the bench's endpoint a forwarding target that gets what a search means.
func (b *bench) target(when string, enabled bool) hookglass.ForwardingTarget {
	b.t.Helper()
	t := hookglass.ForwardingTarget{EndpointNum: b.ep.Num, Name: when, URL: "https://a.example.com/", When: when, Enabled: enabled, Timeout: time.Second}
	if err := b.db.Update(b.t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&t) }); err != nil {
		b.t.Fatal(err)
	}
	return t
}

// got are those of the targets that an event goes to, by their conditions.
func (b *bench) got(event hookglass.EventID, targets ...hookglass.ForwardingTarget) (names []string) {
	b.t.Helper()
	err := b.db.View(b.t.Context(), hookglass.System, func(v *store.View) error {
		for _, t := range targets {
			_, _, err := v.Forward(string(b.ep.ID), t.ID, event)
			if err == nil {
				names = append(names, t.When)
			} else if !hookglass.Is(err, hookglass.CodeNotFound) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return names
}

func TestATargetGetsWhatItsConditionMeans(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		const all, gets, push, notPush, seven, disabled = "", "method:GET", "event:push", "-event:push", "header.x-plan:gold body./n:7", "method:POST"
		targets := []hookglass.ForwardingTarget{
			b.target(all, true), b.target(gets, true), b.target(push, true), b.target(notPush, true), b.target(seven, true), b.target(disabled, false),
		}
		github := func(event string) []string { return []string{"X-GitHub-Event", event, "X-GitHub-Delivery", "1"} }
		for _, c := range []struct {
			method, body string
			headers      []string
			want         []string
		}{
			{"GET", "", nil, []string{all, gets, notPush}},
			{"POST", "{}", github("push"), []string{all, push}},
			{"POST", "{}", github("issues"), []string{all, notPush}},
			{"POST", `{"n":7}`, append(github("push"), "X-Plan", "gold"), []string{all, push, seven}},
			{"POST", `{"n":8}`, []string{"X-Plan", "gold"}, []string{all, notPush}},
		} {
			ev := b.event(b.post(c.method, "/", c.body, c.headers...))
			if got := b.got(ev.ID, targets...); !slices.Equal(got, c.want) {
				t.Errorf("%s %s %v goes to %q, want %q", c.method, c.body, c.headers, got, c.want)
			}
		}
		// A change is for what comes from then on.
		before := b.event(b.post("PUT", "/", ""))
		err := b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			_, err := tx.ChangeForwardingTarget(b.ep.Num, targets[1].ID, func(t *hookglass.ForwardingTarget) error { t.When = "method:PUT"; return nil })
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		after := b.event(b.post("PUT", "/", ""))
		if first, then := b.got(before.ID, targets[1]), b.got(after.ID, targets[1]); len(first) != 0 || len(then) != 1 {
			t.Errorf("before the change it goes to %q, after it to %q", first, then)
		}
	})
}

func TestATargetGetsMailsThatItsConditionMeans(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		o := newOffice(t, db, "")
		b := &bench{t: t, db: db, ep: o.mailbox("inbox")}
		targets := []hookglass.ForwardingTarget{b.target("subject:invoice", true), b.target("from:*@a.example", true), b.target(`"amount due"`, true), b.target("is:webhook", true)}
		for _, c := range []struct {
			raw  string
			want []string
		}{
			{"From: x@a.example\r\nSubject: Your invoice\r\n\r\nHello.\r\n", []string{"subject:invoice", "from:*@a.example"}},
			{"From: x@b.example\r\nSubject: Hi\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nThe amount=20due is 7.\r\n", []string{`"amount due"`}},
		} {
			d := o.send(c.raw, "inbox@mail.test")
			if d[0].Err != nil {
				t.Fatal(d[0].Err)
			}
			if got := b.got(d[0].Event, targets...); !slices.Equal(got, c.want) {
				t.Errorf("%q goes to %q, want %q", c.raw, got, c.want)
			}
		}
	})
}

// A sender waits while conditions look into its body.
func TestAConditionLooksIntoTheFirstMebibyteOfABody(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	with, without, size := b.target("needle", true), b.target("-needle", true), b.target("size:>1000000", true)
	for at, want := range map[int][]string{1<<20 - 6: {"needle", "size:>1000000"}, 1<<20 - 5: {"-needle", "size:>1000000"}} {
		ev := b.event(b.post("POST", "/", strings.Repeat("x", at)+"needle"+strings.Repeat("x", 100)))
		if got := b.got(ev.ID, with, without, size); !slices.Equal(got, want) {
			t.Errorf("a word at %d: goes to %q, want %q", at, got, want)
		}
		if len(ev.Body) != at+106 {
			t.Errorf("%d bytes were kept of %d", len(ev.Body), at+106)
		}
	}
}

// What a later version of the program stored, and this one cannot read, keeps nothing from its target.
func TestATargetWhoseConditionCanNotBeReadGetsAll(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	unread := b.target(`"not closed`, true)
	if got := b.got(b.event(b.post("POST", "/", "")).ID, unread); len(got) != 1 {
		t.Errorf("goes to %q", got)
	}
}
