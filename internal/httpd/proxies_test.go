package httpd_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"hookglass/internal/httpd"
)

var proxies = httpd.Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}

func TestTheSenderIsTheNearestHopThatIsNoProxy(t *testing.T) {
	const peer, outside = "10.0.0.1", "192.0.2.9"
	for _, c := range []struct {
		name   string
		peer   string
		header http.Header
		want   httpd.Origin
	}{
		{"nothing said", peer, nil, origin(peer, "own.example", "http")},
		{"one hop", peer, http.Header{"X-Forwarded-For": {"203.0.113.7"}}, origin("203.0.113.7", "own.example", "http")},
		{"the sender adds hops", peer, http.Header{"X-Forwarded-For": {"1.2.3.4, 203.0.113.7"}}, origin("203.0.113.7", "own.example", "http")},
		{"in two fields", peer, http.Header{"X-Forwarded-For": {"1.2.3.4", "203.0.113.7, 10.9.9.9"}}, origin("203.0.113.7", "own.example", "http")},
		{"all are proxies", peer, http.Header{"X-Forwarded-For": {"10.1.1.1, 10.2.2.2"}}, origin("10.1.1.1", "own.example", "http")},
		{"a hop that is no address", peer, http.Header{"X-Forwarded-For": {"1.2.3.4, unknown"}}, origin(peer, "own.example", "http")},
		{"with ports", peer, http.Header{"X-Forwarded-For": {"[2001:db8::1]:443"}}, origin("2001:db8::1", "own.example", "http")},
		{"mapped", "::ffff:10.0.0.1", http.Header{"X-Forwarded-For": {"::ffff:203.0.113.7"}}, origin("203.0.113.7", "own.example", "http")},
		{"host and scheme", peer, http.Header{"X-Forwarded-For": {"203.0.113.7"}, "X-Forwarded-Host": {"a.example"}, "X-Forwarded-Proto": {"HTTPS"}}, origin("203.0.113.7", "a.example", "https")},
		{"host at the same distance", peer, http.Header{"X-Forwarded-For": {"203.0.113.7, 10.2.2.2"}, "X-Forwarded-Host": {"evil.example, a.example, inner"}}, origin("203.0.113.7", "a.example", "http")},
		{"host alone", peer, http.Header{"X-Forwarded-Host": {"a.example:8443"}, "X-Forwarded-Proto": {"https"}}, origin(peer, "a.example:8443", "https")},
		{"a host that is none", peer, http.Header{"X-Forwarded-Host": {"a.example/evil"}, "X-Forwarded-Proto": {"gopher"}}, origin(peer, "own.example", "http")},
		{"Forwarded", peer, http.Header{"Forwarded": {`for="[2001:db8::1]:47011";proto=https;host="a.example", for=10.3.3.3`}}, origin("2001:db8::1", "a.example", "https")},
		{"X-Forwarded-For before Forwarded", peer, http.Header{"X-Forwarded-For": {"203.0.113.7"}, "Forwarded": {"for=1.2.3.4"}}, origin("203.0.113.7", "own.example", "http")},
		{"a quote that never ends", peer, http.Header{"Forwarded": {`for="1.2.3.4`}}, origin(peer, "own.example", "http")},
		{"a quote before what the proxy appends", peer, http.Header{"X-Forwarded-For": {`", 203.0.113.7`}, "X-Forwarded-Host": {`"\, a.example`}, "X-Forwarded-Proto": {`", https`}}, origin("203.0.113.7", "a.example", "https")},
		{"a quote left open before what the proxy appends", peer, http.Header{"Forwarded": {`for="1.2.3.4\, for="[2001:db8::1]:47011";proto=https`}}, origin("2001:db8::1", "own.example", "https")},
		{"a comma and a quote within quotes", peer, http.Header{"Forwarded": {`for=203.0.113.7;by="a\", b", for=10.3.3.3`}}, origin("203.0.113.7", "own.example", "http")},
		{"members that are empty", peer, http.Header{"X-Forwarded-For": {", 203.0.113.7,, "}}, origin("203.0.113.7", "own.example", "http")},
		{"elements that are empty", peer, http.Header{"Forwarded": {", for=203.0.113.7,, "}}, origin("203.0.113.7", "own.example", "http")},
		{"a parameter without its value", peer, http.Header{"Forwarded": {`for=;host=;proto=https`}}, origin(peer, "own.example", "https")},
		{"a host in a quote that never ends", peer, http.Header{"Forwarded": {`host="a.example`}}, origin(peer, "own.example", "http")},
		{"a host in a quote that never begins", peer, http.Header{"Forwarded": {`host=a.example"`}}, origin(peer, "own.example", "http")},
		{"a host that is a quote", peer, http.Header{"Forwarded": {`host="`}}, origin(peer, "own.example", "http")},
		{"a host too long", peer, http.Header{"X-Forwarded-Host": {strings.Repeat("a", 256)}}, origin(peer, "own.example", "http")},
		{"from no proxy", outside, http.Header{"X-Forwarded-For": {"1.2.3.4"}, "X-Forwarded-Host": {"evil.example"}, "Forwarded": {"for=1.2.3.4"}}, origin(outside, "own.example", "http")},
		{"X-Real-Ip is nobody's word", peer, http.Header{"X-Real-Ip": {"1.2.3.4"}}, origin(peer, "own.example", "http")},
	} {
		got := proxies.Origin(netip.MustParseAddr(c.peer), "own.example", "http", func(name string) []string { return c.header[name] })
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A proxy may name a host of the characters of names, addresses and ports. Any other would end up in links and headers.
func TestWhichHostsAProxyMayName(t *testing.T) {
	for c := range 256 {
		if c == ',' {
			continue // which separates hosts
		}
		host, want := "a"+string([]byte{byte(c)})+"b", "own.example"
		if strings.IndexByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]", byte(c)) >= 0 {
			want = host
		}
		got := proxies.Origin(netip.MustParseAddr("10.0.0.1"), "own.example", "https", func(name string) []string {
			return http.Header{"X-Forwarded-Host": {host}, "X-Forwarded-Proto": {"http"}}[name]
		})
		if got.Host != want || got.Scheme != "http" {
			t.Errorf("%q: %+v, want %q over http", host, got, want)
		}
	}
}

func origin(client, host, scheme string) httpd.Origin {
	return httpd.Origin{Client: netip.MustParseAddr(client), Host: host, Scheme: scheme}
}

func FuzzOrigin(f *testing.F) {
	f.Add("203.0.113.7, 10.1.1.1", `for="[2001:db8::1]:47011";proto=https`, "a.example", "https")
	f.Fuzz(func(t *testing.T, xff, forwarded, host, proto string) {
		header := http.Header{"X-Forwarded-For": {xff}, "Forwarded": {forwarded}, "X-Forwarded-Host": {host}, "X-Forwarded-Proto": {proto}}
		got := proxies.Origin(netip.MustParseAddr("10.0.0.1"), "own.example", "http", func(name string) []string { return header[name] })
		if !got.Client.IsValid() || got.Client.Zone() != "" || got.Client.Is4In6() || got.Scheme != "http" && got.Scheme != "https" || got.Host == "" || strings.ContainsAny(got.Host, " /\\@?#\r\n\"<>") {
			t.Errorf("%v gives %+v", header, got)
		}
	})
}
