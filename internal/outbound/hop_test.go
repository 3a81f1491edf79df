package outbound_test

import (
	"testing"

	"hookglass"
	"hookglass/internal/outbound"
)

func TestHops(t *testing.T) {
	h := hookglass.Headers{{Name: "A", Value: "1"}}
	for want := 1; want <= outbound.MaxHops; want++ {
		next, err := outbound.NextHop(h)
		if err != nil || outbound.Hops(next) != want || outbound.Hops(h) != want-1 || next.Get("A") != "1" || len(next) != 2 {
			t.Fatalf("hop %d: %v, %v", want, next, err)
		}
		h = next
	}
	if _, err := outbound.NextHop(h); failure(t, err).Code != outbound.CodeLoopDetected {
		t.Errorf("hop %d: %v", outbound.MaxHops+1, err)
	}
	for _, c := range []struct {
		values []string
		want   int
	}{{nil, 0}, {[]string{"x"}, 0}, {[]string{"-1"}, 0}, {[]string{"1.5"}, 0}, {[]string{"99999999999999999999"}, 0}, {[]string{"1", "3", "2"}, 3}, {[]string{"65535"}, 65535}} {
		h := hookglass.Headers{}
		for _, v := range c.values {
			h = append(h, hookglass.Header{Name: "x-service-HOPS", Value: v})
		}
		if got := outbound.Hops(h); got != c.want {
			t.Errorf("%q: %d hops, want %d", c.values, got, c.want)
		}
	}
}
