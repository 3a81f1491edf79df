package intake_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"hookglass"
	"hookglass/internal/intake"
)

func collect(b *intake.Budget, r io.Reader, size, limit int64) (string, error) {
	l := b.Lease()
	defer l.Release()
	body, err := intake.Collect(r, size, limit, &l, time.Millisecond, &intake.Pace{})
	return string(body), err
}

func TestABodyMayBeAsLargeAsTheLimit(t *testing.T) {
	const limit = 100_000
	b := intake.NewBudget(1<<20, limit)
	for _, n := range []int{0, 1, 4 << 10, 4<<10 + 1, limit - 1, limit, limit + 1, 3 * limit} {
		body := strings.Repeat("x", n)
		want := error(nil)
		if n > limit {
			want, body = intake.ErrTooLarge, ""
		}
		for _, r := range []io.Reader{strings.NewReader(strings.Repeat("x", n)), iotest.OneByteReader(strings.NewReader(strings.Repeat("x", n)))} {
			if got, err := collect(b, r, -1, limit); got != body || err != want {
				t.Errorf("%d bytes: got %d, %v", n, len(got), err)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := collect(b, io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken)), -1, limit); !errors.Is(err, broken) {
		t.Errorf("a reader that breaks: %v", err)
	}
}

// One body may go over the budget; the next that wants to waits, and is refused when that takes too long.
func TestOneBodyGoesOverTheBudget(t *testing.T) {
	const size = 1 << 20
	b := intake.NewBudget(size, size)
	first, second := b.Lease(), b.Lease()
	if err := first.Grow(size, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := second.Grow(size, time.Millisecond); !hookglass.Is(err, hookglass.CodeUnavailable) {
		t.Errorf("two at once: %v", err)
	}
	waited := make(chan error)
	go func() { waited <- second.Grow(size, time.Minute) }()
	first.Release()
	if err := <-waited; err != nil {
		t.Errorf("after the first gave all back: %v", err)
	}
	third := b.Lease()
	refused := make(chan error)
	go func() { refused <- third.Grow(size, time.Minute) }()
	for done := false; !done; {
		b.RefuseWaiting()
		select {
		case err := <-refused:
			if !hookglass.Is(err, hookglass.CodeUnavailable) {
				t.Errorf("refused with %v", err)
			}
			done = true
		default:
		}
	}
	small := b.Lease()
	if err := small.Grow(intake.FreeBytes, 0); err != nil {
		t.Errorf("an ordinary one waits: %v", err)
	}
}

func TestAPaceForgivesAStallAndNoMore(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	p := intake.NewPace(now, 10*time.Second, 1000)
	came := func(n int) time.Duration {
		p.Came(n, now)
		return p.Due().Sub(now)
	}
	if left := came(1_000_000); left != 10*time.Second {
		t.Errorf("an early burst pays for %v", left)
	}
	now = now.Add(9 * time.Second)
	if left := came(2000); left != 3*time.Second {
		t.Errorf("2,000 bytes bought %v", left)
	}
	p.Stood(time.Minute)
	if left := came(2000); left != 10*time.Second {
		t.Errorf("after standing still %v", left)
	}
	now = now.Add(9 * time.Second)
	if left := came(16_000); left != 2*time.Second {
		t.Errorf("16,000 bytes of one for which others waited bought %v", left)
	}
}
