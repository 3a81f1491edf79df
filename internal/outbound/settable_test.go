package outbound_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"hookglass/internal/outbound"
)

func TestWhichHeadersPeopleMaySet(t *testing.T) {
	value := func(s string) *string { return &s }
	for name, of := range map[string]*string{
		"Authorization": value("Bearer x"), "x-environment": value("staging"), "Content-Type": value("text/plain"), "Stripe-Signature": value("t=1"), "X-Empty": value(""), "X-Gone": nil,
		"X-Latin": value("caf\xe9"), "X-Tab": value("a\tb"), strings.Repeat("n", 256): value(strings.Repeat("v", 8<<10)), "X-Servic": value("e"),
	} {
		names, faults := outbound.Settable(map[string]*string{name: of}, 1)
		if !slices.Equal(names, []string{name}) || faults != nil {
			t.Errorf("%.20s: %q", name, faults)
		}
	}
	for name, c := range map[string]struct {
		of   *string
		want string
	}{
		"":                       {value("x"), `has the invalid name ""`},
		"a b":                    {value("x"), `has the invalid name "a b"`},
		"a:":                     {value("x"), `has the invalid name "a:"`},
		"X-Line":                 {value("hush\r\nX-Other: 1"), "has an invalid value for X-Line"},
		"X-Zero":                 {value("hush\x00"), "has an invalid value for X-Zero"},
		"X-Delete":               {value("hush\x7f"), "has an invalid value for X-Delete"},
		strings.Repeat("n", 257): {value("x"), "has a name of more than 256 bytes"},
		"X-Long":                 {value(strings.Repeat("v", 8<<10+1)), "has a value for X-Long of more than 8192 bytes"},
		"X-Service-Hops":         {value("hush"), "may not set X-Service-Hops, which is computed"},
		"x-service-anything":     {nil, "may not set x-service-anything, which is computed"},
	} {
		names, faults := outbound.Settable(map[string]*string{name: c.of}, 1)
		if len(names) > 0 || !slices.Equal(faults, []string{c.want}) {
			t.Errorf("%.20q: %q, %q", name, names, faults)
		}
	}
	for _, name := range []string{"Host", "content-length", "Transfer-Encoding", "Connection", "Keep-Alive", "TE", "Trailer", "Upgrade", "HTTP2-Settings", "Expect", "Proxy-Authorization"} {
		if names, faults := outbound.Settable(map[string]*string{name: value("x")}, 1); len(names) > 0 || len(faults) != 1 || !strings.Contains(faults[0], "computed") {
			t.Errorf("%s: %q, %q", name, names, faults)
		}
	}
	names, faults := outbound.Settable(map[string]*string{"X-B": nil, "x-a": nil, "X-A": nil, "Host": nil}, 4)
	if !slices.Equal(names, []string{"X-A", "X-B"}) || len(faults) != 2 || faults[1] != "names x-a twice, which is one header in any spelling" {
		t.Errorf("%q, %q", names, faults)
	}
	many := make(map[string]*string)
	for i := range 21 {
		many["X-"+strconv.Itoa(i)] = nil
	}
	if names, faults := outbound.Settable(many, 20); names != nil || !slices.Equal(faults, []string{"may name 20 headers at most"}) {
		t.Errorf("%q, %q", names, faults)
	}
	if names, faults := outbound.Settable(many, 21); len(names) != 21 || faults != nil {
		t.Errorf("%d, %q", len(names), faults)
	}
}
