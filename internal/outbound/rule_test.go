package outbound_test

import (
	"net/netip"
	"slices"
	"testing"

	"hookglass"
	"hookglass/internal/outbound"
)

func rules(t testing.TB, list ...string) []outbound.Rule {
	t.Helper()
	var out []outbound.Rule
	for _, s := range list {
		r, err := outbound.ParseRule(s)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		out = append(out, r)
	}
	return out
}

func TestEverywhereIsBothFamiliesOnThePortsGiven(t *testing.T) {
	if got, want := outbound.Everywhere(25, 465), rules(t, "0.0.0.0/0:25-465", "::/0:25-465"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestParseRule(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.0/8":              "10.0.0.0/8",
		"10.1.2.3/8":              "10.0.0.0/8",
		"10.1.2.3":                "10.1.2.3/32",
		"10.1.2.3/32:9000":        "10.1.2.3/32:9000",
		"10.1.2.3:9000":           "10.1.2.3/32:9000",
		"10.1.2.3:9000-9010":      "10.1.2.3/32:9000-9010",
		"10.1.2.3:9000-9000":      "10.1.2.3/32:9000",
		"10.1.2.3:1-65535":        "10.1.2.3/32:1-65535",
		"fd00::/8":                "fd00::/8",
		"fd00::1":                 "fd00::1/128",
		"::1":                     "::1/128",
		"fd00::/8:443":            "fd00::/8:443",
		"[fd00::1]":               "fd00::1/128",
		"[fd00::1]:443":           "fd00::1/128:443",
		"0.0.0.0/0":               "0.0.0.0/0",
		"127.0.0.0/8:8000-8999":   "127.0.0.0/8:8000-8999",
		"[fd00::1]:1000-2000":     "fd00::1/128:1000-2000",
		"2001:db8::/32:8080-8081": "2001:db8::/32:8080-8081",
	} {
		r, err := outbound.ParseRule(in)
		if err != nil || r.String() != want {
			t.Errorf("ParseRule(%q) = %v, %v; want %s", in, r, err, want)
		}
		if again, err := outbound.ParseRule(r.String()); err != nil || again != r {
			t.Errorf("%s does not read back: %v, %v", r, again, err)
		}
	}
	for _, in := range []string{
		"", "/", ":", "x", "10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "10.0.0.0/8:", "10.0.0.0/8:0", "10.0.0.0/8:65536", "10.0.0.0/8:000080", "10.0.0.0/8:9-8", "10.0.0.0/8:-", "10.0.0.0/8:1-", "10.0.0.0/8:-1", "10.0.0.0/8:http",
		"10.0.0.0/8:1:2", "10.0.0.0/8:1,2", "10.1.2.3:", "[::1", "[::1]x", "[::1]:", "::1%lo", "fe80::1%eth0", "fe80::%eth0/64", "::ffff:10.0.0.0/104", "localhost", "localhost:80", " 10.0.0.0/8", "10.0.0.0/8 ", "127.1/8", "010.0.0.0/8",
	} {
		if r, err := outbound.ParseRule(in); err == nil {
			t.Errorf("ParseRule(%q) = %v, want an error", in, r)
		}
	}
}

func TestRulesOpenWhatTheySayAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		rule      string
		open      []string
		forbidden []string
	}{
		{"127.0.0.1/32:9000",
			[]string{"http://127.0.0.1:9000/", "http://localhost:9000/", "http://a.localhost:9000", "http://[::ffff:127.0.0.1]:9000/"},
			[]string{"http://127.0.0.1:9001/", "http://127.0.0.2:9000/", "http://127.0.0.1/", "http://[::1]:9000/", "http://localhost:9001/", "http://0.0.0.0:9000/", "http://[::127.0.0.1]:9000/", "http://[64:ff9b::7f00:1]:9000/", "http://[2002:7f00:1::]:9000/"}},
		{"127.0.0.0/8:9000-9001",
			[]string{"http://127.0.0.1:9000/", "http://127.9.9.9:9001/"},
			[]string{"http://127.0.0.1:8999/", "http://127.0.0.1:9002/"}},
		{"127.0.0.0/8",
			[]string{"http://127.0.0.1/", "http://127.255.255.254:1024/", "http://localhost:3000", "http://127.0.0.1:1/", "http://127.0.0.1:9/"},
			[]string{"http://127.0.0.1:22/", "http://127.0.0.1:5432/", "http://127.0.0.1:6379/", "http://10.0.0.1/", "http://localhost:6379/"}},
		{"127.0.0.1:6379", []string{"http://127.0.0.1:6379/", "http://localhost:6379/", "http://db.example.com:6379/"}, []string{"http://127.0.0.2:6379/", "http://8.8.8.8:6379/", "http://db.example.com:5432/"}},
		{"::1/128", []string{"http://[::1]/", "http://localhost/", "http://[0:0:0:0:0:0:0:1]:81/"}, []string{"http://127.0.0.1/", "http://[::2]/", "http://[::1%25lo]/"}},
		{"fd00::/8", []string{"http://[fd00::1]/", "http://[fdff::1]:8080/"}, []string{"http://[fc00::1]/", "http://[fd00:ec2::254]/", "http://[fd00:ec2::1]/", "http://[fd20:ce::254]/", "http://[fd00:42::42]/"}},
		// Metadata stays shut, by address, by name and wrapped in another address, when everything is opened.
		{"0.0.0.0/0",
			[]string{"http://10.0.0.1/", "http://127.0.0.1/", "http://169.254.1.1/", "http://192.168.1.1/"},
			[]string{"http://169.254.169.254/", "http://169.254.169.253/", "http://169.254.170.2/", "http://169.254.170.23/", "http://100.100.100.200/", "http://192.0.0.192/", "http://168.63.129.16/", "http://[::ffff:169.254.169.254]/", "http://2852039166/",
				"http://metadata.google.internal/", "http://0.0.0.0/", "http://0/", "http://[::1]/", "http://[::]/"}},
		{"::/0",
			[]string{"http://[::1]/", "http://[fd00::1]/", "http://[64:ff9b::808:808]/", "http://[2002:808:808::]/"},
			[]string{"http://[::]/", "http://[64:ff9b::a9fe:a9fe]/", "http://[64:ff9b:1::a9fe:a9fe]/", "http://[2002:a9fe:a9fe::]/", "http://[::a9fe:a9fe]/", "http://[::ffff:0:a9fe:a9fe]/", "http://[2001:0:1:2:3:4:5601:5601]/",
				"http://[fd00:ec2::254]/", "http://[fd00:ec2::23]/", "http://[fd20:ce::254]/", "http://[fe80::a9fe:a9fe]/", "http://127.0.0.1/", "http://[fe80::1%25lo]/"}},
		{"168.63.129.16/32:80", nil, []string{"http://168.63.129.16/"}},
		{"169.254.169.254", nil, []string{"http://169.254.169.254/", "http://169.254.169.254:8080/"}},
	} {
		client := outbound.New(outbound.Config{Allow: rules(t, c.rule)})
		for _, u := range c.open {
			if err := client.Check("url", u); err != nil {
				t.Errorf("with %s, %s: %v", c.rule, u, err)
			}
		}
		for _, u := range c.forbidden {
			if err := client.Check("url", u); !hookglass.Is(err, hookglass.CodeTargetNotAllowed) {
				t.Errorf("with %s, %s: %v, want target_not_allowed", c.rule, u, err)
			}
		}
	}
}

// A port that a rule names is open, also where another rule opens the address without it, before or behind.
func TestAPortThatOneRuleNamesIsOpen(t *testing.T) {
	for _, list := range [][]string{{"127.0.0.1:22", "127.0.0.0/8"}, {"127.0.0.0/8", "127.0.0.1:22"}} {
		if err := outbound.New(outbound.Config{Allow: rules(t, list...)}).Check("url", "http://127.0.0.1:22/"); err != nil {
			t.Errorf("with %v: %v", list, err)
		}
	}
}

// A rule opens an address, not the other ways to write it.
func TestARuleDoesNotMakeASpellingValid(t *testing.T) {
	c := outbound.New(outbound.Config{Allow: rules(t, "127.0.0.0/8")})
	for _, u := range []string{"http://2130706433/", "http://127.1/", "http://0177.0.0.1/", "http://0x7f000001/", "http://127.0.0.1./", "http://①②⑦.⓪.⓪.①/", "http://127.0.0.%31/"} {
		if err := c.Check("url", u); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("%s: %v, want validation_failed", u, err)
		}
	}
}

// The listeners and the database of the installation stay shut whatever is allowed.
func TestOwnAddressesStayShut(t *testing.T) {
	c := outbound.New(outbound.Config{
		Allow: rules(t, "127.0.0.0/8", "127.0.0.1:5432", "127.0.0.1:9090", "10.0.0.0/8", "::1"),
		Own:   []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9100"), netip.MustParseAddrPort("[::]:9090"), netip.MustParseAddrPort("10.0.0.5:5432")},
	})
	for u, want := range map[string]bool{
		"127.0.0.1:9100": false, "127.0.0.2:9100": true, "[::ffff:127.0.0.1]:9100": false,
		"127.0.0.1:9090": false, "127.0.0.2:9090": false, "[::1]:9090": false, "10.0.0.9:9090": true, // not of this machine
		"10.0.0.5:5432": false, "127.0.0.1:5432": true, "10.0.0.9:0": false,
	} {
		if got := c.Permits(netip.MustParseAddrPort(u)); got != want {
			t.Errorf("%s: permitted %v, want %v", u, got, want)
		}
	}
}
