package ingest_test

import (
	"net/netip"
	"net/url"
	"testing"

	"hookglass/internal/ingest"
)

func TestForwardedIsBelievedFromTrustedProxiesAlone(t *testing.T) {
	loopback := netip.MustParsePrefix("127.0.0.0/8")
	inner := netip.MustParsePrefix("10.0.0.0/8")
	inner6 := netip.MustParsePrefix("fd00::/8")
	public, _ := url.Parse("https://hooks.example")
	for _, row := range []struct {
		name    string
		trusted []netip.Prefix
		headers string
		want    string // scheme://host client
	}{
		{"nothing", nil, "Host: h\r\n", "http://h 127.0.0.1"},
		{"not trusted", []netip.Prefix{inner}, "Host: h\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: e\r\nForwarded: for=192.0.2.1\r\nX-Real-IP: 192.0.2.1\r\n", "http://h 127.0.0.1"},
		{"one hop", []netip.Prefix{loopback}, "Host: h\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: e:8443\r\n", "https://e:8443 192.0.2.1"},
		{"X-Real-IP is not believed", []netip.Prefix{loopback}, "Host: h\r\nX-Real-IP: 192.0.2.1\r\n", "http://h 127.0.0.1"},
		{"a spoofed hop before it", []netip.Prefix{loopback}, "Host: h\r\nX-Forwarded-For: 198.51.100.9, 192.0.2.1\r\n", "http://h 192.0.2.1"},
		{"proxies on the way", []netip.Prefix{loopback, inner}, "Host: h\r\nX-Forwarded-For: 198.51.100.9, 192.0.2.1,10.1.1.1\r\nx-forwarded-for: 10.1.1.2\r\n", "http://h 192.0.2.1"},
		{"all trusted", []netip.Prefix{loopback, inner}, "Host: h\r\nX-Forwarded-For: 10.1.1.3, 10.1.1.1\r\n", "http://h 10.1.1.3"},
		{"lists align", []netip.Prefix{loopback, inner}, "Host: h\r\nX-Forwarded-For: 198.51.100.9, 192.0.2.1, 10.1.1.1\r\nX-Forwarded-Proto: gopher, https, http\r\nX-Forwarded-Host: evil, e, i\r\n", "https://e 192.0.2.1"},
		{"ports", []netip.Prefix{loopback}, "Host: h\r\nX-Forwarded-For: 192.0.2.1:4711\r\n", "http://h 192.0.2.1"},
		{"IPv6", []netip.Prefix{loopback, inner6}, "Host: h\r\nX-Forwarded-For: 2001:db8::1, [fd00::1]:80\r\n", "http://h 2001:db8::1"},
		{"IPv4 in IPv6", []netip.Prefix{loopback}, "Host: h\r\nX-Forwarded-For: ::ffff:192.0.2.1\r\n", "http://h 192.0.2.1"},
		{"no address", []netip.Prefix{loopback}, "Host: h\r\nX-Forwarded-For: 192.0.2.1, unknown\r\n", "http://h 127.0.0.1"},
		{"no address behind a proxy", []netip.Prefix{loopback, inner}, "Host: h\r\nX-Forwarded-For: 192.0.2.1, <script>, 10.1.1.1\r\n", "http://h 10.1.1.1"},
		{"bad host and scheme", []netip.Prefix{loopback}, "Host: h\r\nX-Forwarded-Host: a/b\r\nX-Forwarded-Proto: javascript\r\n", "http://h 127.0.0.1"},
		{"scheme alone", []netip.Prefix{loopback}, "Host: h\r\nX-Forwarded-Proto: HTTPS\r\n", "https://h 127.0.0.1"},
		{"Forwarded", []netip.Prefix{loopback, inner6}, "Host: h\r\nForwarded: for=198.51.100.9;host=evil, For=192.0.2.1;Proto=https; Host=\"e:1\"\r\nForwarded: for=\"[fd00::1]:80\";proto=http;host=i\r\n", "https://e:1 192.0.2.1"},
		{"Forwarded, hidden", []netip.Prefix{loopback}, "Host: h\r\nForwarded: for=192.0.2.1, for=_hidden;proto=https\r\n", "https://h 127.0.0.1"},
		{"Forwarded, a quoted comma", []netip.Prefix{loopback}, "Host: h\r\nForwarded: for=192.0.2.1;by=\"a,b;c\\\"\"\r\n", "http://h 192.0.2.1"},
		{"both", []netip.Prefix{loopback}, "Host: h\r\nForwarded: for=198.51.100.9\r\nX-Forwarded-For: 192.0.2.1\r\n", "http://h 192.0.2.1"},
		{"the public host", nil, "Host: Hooks.Example\r\n", "https://Hooks.Example 127.0.0.1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := new(stub)
			c := start(t, ingest.Config{TrustedProxies: row.trusted, PublicURL: public}, s, nil).dial()
			c.send("GET " + hook("") + " HTTP/1.1\r\n" + row.headers + "\r\n")
			c.want(200)
			if a := s.one(t); a.Scheme+"://"+a.Host+" "+a.Client.String() != row.want {
				t.Errorf("got %s://%s %s, want %s", a.Scheme, a.Host, a.Client, row.want)
			}
		})
	}
	s := new(stub)
	c := start(t, ingest.Config{PublicURL: public}, s, nil).dial()
	c.send("GET " + hook("") + " HTTP/1.0\r\n\r\n")
	c.want(200)
	if a := s.one(t); a.Scheme+"://"+a.Host != "https://hooks.example" {
		t.Errorf("a sender that names no host: %s://%s", a.Scheme, a.Host)
	}
}
