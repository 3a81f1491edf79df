package outbound_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hookglass"
	"hookglass/internal/outbound"
)

func addrs(list ...string) answers {
	var out answers
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// dialled is a client whose resolver gives these answers, and the addresses that it then connects to, all of which
// refuse.
func dialled(r outbound.Resolver, allow ...outbound.Rule) (*outbound.Client, *[]string) {
	c := outbound.New(outbound.Config{Resolver: r, Allow: allow})
	var list []string
	c.OnConnect(func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
		list = append(list, to.String())
		return nil, syscall.ECONNREFUSED
	})
	return c, &list
}

func get(c *outbound.Client, ctx context.Context, url string) error {
	_, err := c.Do(ctx, outbound.Request{Method: "GET", URL: url})
	return err
}

// A name that stands for a forbidden address is refused like the address, in the plain and in the mapped form.
func TestNamesOfForbiddenAddresses(t *testing.T) {
	for _, a := range forbiddenAddresses {
		addr := netip.MustParseAddr(a)
		forms := answers{addr}
		if addr.Is4() {
			forms = append(forms, netip.AddrFrom16(addr.As16()))
		}
		for _, form := range forms {
			c, list := dialled(answers{form})
			if err := c.Check("url", "http://name.example/"); err != nil {
				t.Errorf("Check asked the network: %v", err)
			}
			if err := get(c, t.Context(), "http://name.example/"); !hookglass.Is(err, hookglass.CodeTargetNotAllowed) || len(*list) > 0 {
				t.Errorf("a name of %s: %v, dialled %v", form, err, *list)
			}
		}
	}
	c, list := dialled(answers{netip.MustParseAddr("2606:4700::1111").WithZone("eth0"), netip.Addr{}})
	if err := get(c, t.Context(), "http://name.example/"); !hookglass.Is(err, hookglass.CodeTargetNotAllowed) || len(*list) > 0 {
		t.Errorf("an answer with a zone: %v, dialled %v", err, *list)
	}
}

// Of good and bad answers the bad are never dialled, in any order, and what the good do is all that shows.
func TestMixedAnswers(t *testing.T) {
	many := answers{}
	for i := range 1000 {
		many = append(many, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), netip.AddrFrom4([4]byte{8, 8, byte(i >> 8), byte(i)}))
	}
	for _, c := range []struct {
		answers answers
		want    []string
	}{
		{addrs("8.8.8.8", "10.0.0.1"), []string{"8.8.8.8:80"}},
		{addrs("10.0.0.1", "8.8.8.8"), []string{"8.8.8.8:80"}},
		{addrs("::1", "2606:4700::1", "127.0.0.1", "8.8.8.8", "fe80::1"), []string{"[2606:4700::1]:80", "8.8.8.8:80"}},
		{addrs("::ffff:8.8.8.8", "::ffff:127.0.0.1"), []string{"8.8.8.8:80"}},
		{addrs("169.254.169.254", "8.8.8.8", "168.63.129.16"), []string{"8.8.8.8:80"}},
	} {
		client, list := dialled(c.answers)
		err := get(client, t.Context(), "http://name.example/")
		if f := failure(t, err); f.Code != outbound.CodeConnectionRefused || !slices.Equal(*list, c.want) {
			t.Errorf("%v: %v, dialled %v", c.answers, err, *list)
		}
	}
	client, list := dialled(many)
	get(client, t.Context(), "http://name.example/")
	if len(*list) != 16 || slices.ContainsFunc(*list, func(a string) bool { return !strings.HasPrefix(a, "8.8.") }) {
		t.Errorf("of 2,000 answers %d were dialled: %v", len(*list), *list)
	}
}

// A name is resolved once: what was judged is what is dialled, however fast the answers change.
func TestRebinding(t *testing.T) {
	queries := 0
	var c *outbound.Client
	c, list := dialled(resolverFunc(func(context.Context, string) ([]netip.Addr, error) {
		queries++
		if queries%2 == 0 {
			return addrs("127.0.0.1"), nil
		}
		return addrs("8.8.4.4"), nil
	}))
	for i := range 500 {
		err := get(c, t.Context(), "http://rebind.example/")
		if forbidden := hookglass.Is(err, hookglass.CodeTargetNotAllowed); forbidden != (i%2 == 1) {
			t.Fatalf("try %d: %v", i, err)
		}
	}
	if queries != 500 || len(*list) != 250 || slices.ContainsFunc(*list, func(a string) bool { return a != "8.8.4.4:80" }) {
		t.Errorf("%d queries, %d dialled", queries, len(*list))
	}
}

// The address that the kernel is given is judged once more, should everything before have been fooled.
func TestTheLastLook(t *testing.T) {
	s := serve(t, func(net.Conn) {})
	at := netip.MustParseAddrPort(s.addr)
	if err := outbound.New(outbound.Config{}).Attempt(t.Context(), at); !hookglass.Is(err, hookglass.CodeTargetNotAllowed) || s.count() != 0 {
		t.Errorf("%v, %d hits", err, s.count())
	}
	if err := local(t).Attempt(t.Context(), at); err != nil {
		t.Error(err)
	}
}

// localhost is not asked of anyone, so that no resolver can move it.
func TestLocalhostIsLoopback(t *testing.T) {
	for rule, want := range map[string]string{"127.0.0.0/8": "127.0.0.1:80", "::1": "[::1]:80"} {
		for _, name := range []string{"localhost", "LOCALHOST.", "a.localhost"} {
			c, list := dialled(noResolver{t}, rules(t, rule)...)
			if err := get(c, t.Context(), "http://"+name+"/"); failure(t, err).Code != outbound.CodeConnectionRefused || !slices.Equal(*list, []string{want}) {
				t.Errorf("%s with %s: %v, dialled %v", name, rule, err, *list)
			}
		}
	}
}

func TestNamesAreAskedInASCII(t *testing.T) {
	for url, want := range map[string]string{
		"http://EXAMPLE.com/": "example.com", "http://example.com./": "example.com.", "http://bücher.example/": "xn--bcher-kva.example",
		"http://BU\u0308CHER。example/": "xn--bcher-kva.example", "http://еxample.com/": "xn--xample-2of.com", "http://ⓔxample.com": "example.com",
	} {
		asked := ""
		c, _ := dialled(resolverFunc(func(_ context.Context, host string) ([]netip.Addr, error) { asked = host; return nil, nil }))
		if err := get(c, t.Context(), url); asked != want || failure(t, err).Code != outbound.CodeDNSError {
			t.Errorf("%s: asked for %q, want %q: %v", url, asked, want, err)
		}
	}
}

func TestNamesThatDoNotResolve(t *testing.T) {
	messages := map[string]bool{}
	for _, err := range []error{nil, &net.DNSError{IsNotFound: true, Err: "no such host", Name: "name.example", Server: "10.0.0.53"}, &net.DNSError{IsTimeout: true, Server: "10.0.0.53"}, &net.DNSError{Err: "server misbehaving", Server: "10.0.0.53"}, errors.New("10.0.0.53")} {
		c, _ := dialled(resolverFunc(func(context.Context, string) ([]netip.Addr, error) { return nil, err }))
		got := get(c, t.Context(), "http://name.example/")
		if f := failure(t, got); f.Code != outbound.CodeDNSError || f.Sent != outbound.NotSent || strings.Contains(f.Error(), "10.0.0.53") {
			t.Errorf("%v: %v", err, got)
		}
		messages[got.Error()] = true
	}
	if len(messages) != 3 {
		t.Errorf("messages: %v", messages)
	}
}

// DNS takes at most 5 s, and a connection that nobody answers 10 s with all addresses of the name together.
func TestResolvingAndConnectingAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := dialled(resolverFunc(func(ctx context.Context, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		start := time.Now()
		if err := get(c, t.Context(), "http://silent.example/"); failure(t, err).Code != outbound.CodeDNSError || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}

		for _, n := range []int{1, 2, 5, 16} {
			list := answers{}
			for i := range n {
				list = append(list, netip.AddrFrom4([4]byte{8, 8, 8, byte(i)}))
			}
			c = outbound.New(outbound.Config{Resolver: list})
			tried := 0
			c.OnConnect(func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
				tried++
				<-ctx.Done()
				return nil, ctx.Err()
			})
			start = time.Now()
			if err := get(c, t.Context(), "http://filtered.example/"); failure(t, err).Code != outbound.CodeTimeout || time.Since(start) != 10*time.Second || tried < min(n, 10) {
				t.Errorf("%d addresses: %v after %v, %d tried", n, err, time.Since(start), tried)
			}
		}
	})
}

// The first address that accepts is used, after one that does not answer.
func TestTheNextAddressIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := outbound.New(outbound.Config{Resolver: addrs("2606:4700::1", "8.8.4.4")})
		c.OnConnect(func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Addr().Is6() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				readRequest(theirs)
				io.WriteString(theirs, noContent)
			}()
			return ours, nil
		})
		resp, err := c.Do(t.Context(), outbound.Request{Method: "GET", URL: "http://two.example/"})
		if err != nil || resp.Status != 204 || resp.Duration != 5*time.Second {
			t.Fatal(resp, err)
		}
	})
}
