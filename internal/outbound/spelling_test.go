package outbound_test

import (
	"net/netip"
	"strings"
	"testing"

	"code.dny.dev/ssrf"

	"hookglass"
	"hookglass/internal/outbound"
)

// forbiddenAddresses are one or more of every network of the union list, in their plain spelling.
var forbiddenAddresses = strings.Fields(`
	0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.9.9.9 169.254.0.1 169.254.169.254
	169.254.170.2 169.254.42.42 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.31.196.1 192.52.193.1
	192.88.99.1 192.168.0.1 192.168.255.255 192.175.48.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1
	239.255.255.255 240.0.0.1 255.255.255.255 100.100.100.200 168.63.129.16
	:: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1
	64:ff9b::7f00:1 64:ff9b::8.8.8.8 64:ff9b:1::1 100::1 2001::1 2001:0:7f00:1:: 2001:2::1 2001:10::1 2001:20::1
	2001:db8::1 2002:7f00:1:: 2002:808:808:: 2620:4f:8000::1 3ffe::1 3fff::1 3fff:fff::1 5f00::1 fc00::1 fd00::1
	fd00:ec2::254 fd20:ce::254 fe80::1 fe80::a9fe:a9fe fec0::1 ff02::1 ff0e::1 4000::1 8000::1`)

// forbiddenHosts are hosts of a URL that are forbidden however they are dressed: Check says target_not_allowed.
var forbiddenHosts = append(inURLs(forbiddenAddresses), strings.Fields(`
	localhost LOCALHOST LocalHost localhost. foo.localhost foo.bar.LOCALHOST. localhost..
	2130706433 0x7f000001 0X7F000001 0x7f.1 0177.0.0.1 017700000001 00000177.0.0.1 127.1 127.0.1 0 0.0 00 0x0 0x 127.0.0.01 127.0.0.1. 127.0.0.1..
	3232235777 0xa9fea9fe 2852039166 0251.0376.0251.0376 169.254.43518 0xA9.0xFE.0xA9.0xFE 10.1 192.168.257 172.1048577
	①②⑦.⓪.⓪.① 127。0。0。1 127．0．0．1 127｡0｡0｡1 １２７.0.0.1 １２７．０．０．１ ⑩.0.0.1 0ｘ7f000001 ｌｏｃａｌｈｏｓｔ ⓛⓞⓒⓐⓛⓗⓞⓢⓣ 𝟏𝟐𝟕.𝟎.𝟎.𝟏 foo.ⓛⓞⓒⓐⓛⓗⓞⓢⓣ
	127.0.0.%31 %31%32%37.0.0.1 %6c%6f%63%61%6c%68%6f%73%74 127%2e0%2e0%2e1 %e2%93%9bocalhost
	[::1%25lo] [::1%lo] [fe80::1%25eth0] [2606:4700::1111%25eth0] [2606:4700::1111%251] [0:0:0:0:0:0:0:1] [0000::0001] [::FFFF:127.0.0.1] [::ffff:7F00:0001] [127.0.0.1]
	[0:0:0:0:0:ffff:a00:1] [FE80::1] [Fd00:EC2::254]
	metadata.google.internal METADATA.google.internal. metadata.goog instance-data instance-data.ec2.internal metadata.tencentyun.com
`+"local\u00adhost")...)

// forbiddenURLs are forbidden for more than their host.
var forbiddenURLs = strings.Fields(`
	http://user@127.0.0.1/ http://user:pass@localhost/ http://example.com@127.0.0.1/ http://example.com:80@[::1]/ http://a@b@10.0.0.1/
	HTTP://127.0.0.1 https://127.0.0.1 http://127.0.0.1?x http://127.0.0.1#x http://127.0.0.1#@example.com/ http://127.0.0.1\@example.com/
	http://127.0.0.1:8080 http://localhost:443/a/b?c=d http://[::1]:9000/
	http://8.8.8.8:22/ http://8.8.8.8:25 https://example.com:5432/ https://example.com:6379/ http://[2606:4700::1111]:11211/ http://example.com:6667/
`)

func inURLs(addresses []string) []string {
	hosts := make([]string, len(addresses))
	for i, a := range addresses {
		if hosts[i] = a; strings.Contains(a, ":") {
			hosts[i] = "[" + a + "]"
		}
	}
	return hosts
}

func allForbiddenURLs() []string {
	urls := forbiddenURLs
	for _, h := range forbiddenHosts {
		urls = append(urls, "http://"+h+"/")
	}
	return urls
}

func TestForbiddenSpellings(t *testing.T) {
	urls := allForbiddenURLs()
	if len(urls) < 150 {
		t.Fatalf("only %d spellings", len(urls))
	}
	c := outbound.New(outbound.Config{Resolver: noResolver{t}})
	c.OnConnect(noConnect(t))
	for _, u := range urls {
		if err := c.Check("case.target_url", u); !hookglass.Is(err, hookglass.CodeTargetNotAllowed) {
			t.Errorf("Check(%q) = %v, want target_not_allowed", u, err)
		}
		_, err := c.Do(t.Context(), outbound.Request{Method: "GET", URL: u})
		if f := failure(t, err); f.Code != outbound.CodeTargetNotAllowed || f.Sent != outbound.NotSent || !hookglass.Is(err, hookglass.CodeTargetNotAllowed) {
			t.Errorf("Do(%q): %v, %v; want target_not_allowed, not sent", u, err, f.Sent)
		}
	}
}

// No forbidden target can be told from another by what its caller reads.
func TestForbiddenTargetsReadAlike(t *testing.T) {
	c := outbound.New(outbound.Config{Resolver: answers{netip.MustParseAddr("10.9.8.7")}})
	want := ""
	for _, u := range append(allForbiddenURLs(), "http://inside.example.com/", "http://inside.example.com:81/") {
		_, err := c.Do(t.Context(), outbound.Request{Method: "GET", URL: u})
		if want == "" {
			want = err.Error()
		}
		if err.Error() != want {
			t.Errorf("%s: %q, others %q", u, err, want)
		}
	}
}

func TestInvalidURLs(t *testing.T) {
	c := outbound.New(outbound.Config{Resolver: noResolver{t}})
	c.OnConnect(noConnect(t))
	for _, u := range []string{
		"", "example.com", "/path", "//example.com/", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "http:/example.com", "http:example.com",
		"javascript:alert(1)", "http://", "http:///x", "http://:80/", "http://?x", "http://#x", "http://.", "http://..", "http://example..com/", "http://.example.com/",
		"http://example.com:0/", "http://example.com:65536/", "http://example.com:-1/", "http://example.com:/", "http://example.com:http/", "http://example.com:8 0/", "http://example.com:+80/",
		"http://user@example.com/", "http://user:pass@example.com/", "http://@example.com/",
		"http://exa mple.com/", "http://example.com/a b", "http://example.com/\r\nX: y", "http://example.com/\x00", "http://example.com\t/", " http://example.com/", "http://example.com/\n",
		`http://example.com\path`, "http://exa%6dple.com/", "http://exam%zzple.com/", "http://[example.com]/", "http://[::808", "http://::808/", "http://[]/", "http://[v1.fe80::a]/",
		"http://2606:4700::1111/", "http://[2606:4700::1111]x/", "http://256.1.1.1/", "http://1.2.3.4.5/", "http://1.2.3.4.0/", "http://1.2.3.4.5.6/", "http://0x7f.0.0.0.1/", "http://08.8.8.8/", "http://4294967296/", "http://1.2.3.0x/x/",
		"http://134744072/", "http://8.8.2056/", "http://010.010.010.010/", "http://8.8.8.8./", "http://８.8.8.8/", "http://example.com.1/",
		"http://exa<mple.com/", "http://exa^mple.com/", "http://℀.example.com/", "http://\xff.example.com/", "http://" + strings.Repeat("a", 64) + ".com/", "http://" + strings.Repeat("a.", 127) + "com/",
		"http://example.com/" + strings.Repeat("a", 64<<10),
	} {
		err := c.Check("url", u)
		if !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("Check(%q) = %v, want validation_failed", u, err)
		}
		_, err = c.Do(t.Context(), outbound.Request{Method: "GET", URL: u})
		if f := failure(t, err); f.Code != outbound.CodeInvalidRequest || f.Sent != outbound.NotSent || !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("Do(%q): %v, want invalid_request", u, err)
		}
	}
}

func TestAllowedSpellings(t *testing.T) {
	c := outbound.New(outbound.Config{})
	for _, u := range []string{
		"http://example.com", "https://example.com/", "HTTPS://EXAMPLE.com/", "http://example.com?x", "http://example.com#x", "http://example.com./", "http://example.com:8080/x",
		"http://8.8.4.4/", "https://1.1.1.1/", "http://[2606:4700::1111]/", "http://[2606:4700::1111]:8443/", "http://[::ffff:8.8.8.8]/", "http://[2606:4700:0:0:0:0:0:1111]/",
		"http://bücher.example/", "http://BÜCHER.example/", "http://xn--bcher-kva.example/", "http://my_service.example/", "http://app/", "http://1.example.com/", "http://0x7f.example.com/", "http://localhost.example.com/", "http://notlocalhost/",
		"http://example.com/%zz?a;b&&c=%", `http://example.com/{x}|"<>\^`, "http://example.com//a/../b", "http://example.com/é",
	} {
		if err := c.Check("url", u); err != nil {
			t.Errorf("Check(%q) = %v", u, err)
		}
	}
}

func TestAsSent(t *testing.T) {
	for url, want := range map[string]string{
		"HTTPS://EXAMPLE.com:443":         "https://example.com/",
		"http://example.com:80?x#f":       "http://example.com/?x",
		"http://example.com:443/":         "http://example.com:443/",
		"https://example.com:80/":         "https://example.com:80/",
		"http://BÜCHER.example:81/é?q=ü'": "http://xn--bcher-kva.example:81/%C3%A9?q=%C3%BC'",
		"http://127.0.0.1:80/a%2fb/../c?": "http://127.0.0.1/a%2fb/../c?",
		"https://[2606:4700:0::1111]/":    "https://[2606:4700::1111]/",
		"http://user@example.com":         "http://user@example.com",
		"tunnel":                          "tunnel",
	} {
		if got := outbound.AsSent(url); got != want {
			t.Errorf("AsSent(%q) = %q, want %q", url, got, want)
		}
	}
}

// The edges of every refused network: the first and last address are refused, and their neighbours only if another
// network refuses them.
func TestNetworksAtTheirEdges(t *testing.T) {
	c := outbound.New(outbound.Config{})
	for _, p := range strings.Fields(`0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16
		198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 3fff::/20 ::/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8`) {
		prefix := netip.MustParsePrefix(p)
		for _, a := range []netip.Addr{prefix.Addr(), last(prefix)} {
			if c.Permits(netip.AddrPortFrom(a, 80)) {
				t.Errorf("%s of %s is let through", a, p)
			}
		}
	}
	for _, a := range strings.Fields(`1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255
		192.0.1.0 192.0.3.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255
		2000:: 2001:200:: 2001:db7:ffff:: 2001:db9:: 2001:ffff:: 2003:: 3ffd:ffff:: 3fff:1000:: 2600:: 2a00:: 2a00::a9fe:a9fe 2a00:a9fe:a9fe::`) {
		if !c.Permits(netip.AddrPortFrom(netip.MustParseAddr(a), 80)) {
			t.Errorf("%s is refused", a)
		}
	}
}

func last(p netip.Prefix) netip.Addr {
	b := p.Addr().As16()
	for bit := 128 - p.Addr().BitLen() + p.Bits(); bit < 128; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	a := netip.AddrFrom16(b)
	if p.Addr().Is4() {
		a = a.Unmap()
	}
	return a
}

// What another guard refuses, ours refuses too.
func TestAtLeastAsStrictAsAnother(t *testing.T) {
	c, other := outbound.New(outbound.Config{}), ssrf.New(ssrf.WithAnyPort())
	for _, p := range append(append(ssrf.IPv4DeniedPrefixes, ssrf.IPv6DeniedPrefixes...), ssrf.IPv6NAT64Prefix) {
		for _, a := range []netip.Addr{p.Addr(), last(p)} {
			if other.SafeAddr(a) != nil && c.Permits(netip.AddrPortFrom(a, 80)) {
				t.Errorf("%s of %s is let through", a, p)
			}
		}
	}
	for i := range 1 << 16 { // every /16 of both families
		v4 := netip.AddrFrom4([4]byte{byte(i >> 8), byte(i), 1, 1})
		v6 := netip.AddrFrom16([16]byte{byte(i >> 8), byte(i), 0x12, 0x34, 15: 1})
		for _, a := range []netip.Addr{v4, v6} {
			if other.SafeAddr(a) != nil && c.Permits(netip.AddrPortFrom(a, 80)) {
				t.Errorf("%s is let through", a)
			}
		}
	}
}
