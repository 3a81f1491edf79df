package outbound_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hookglass"
	"hookglass/internal/outbound"
)

// What is at a host of our own stays shut by the name and by the addresses to which it leads at that moment, and led of
// late, for each of several hosts. Other ports ask nobody.
func TestNamesOfOurOwnStayShut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var zone map[string]answers
		asked := 0
		c := outbound.New(outbound.Config{
			Allow:    rules(t, "10.0.0.0/8", "127.0.0.0/8"),
			OwnHosts: []string{"DB.internal:6500", "standby.internal:6501", "10.0.0.5:6500", ":6502"}, // the last names nothing
			Resolver: resolverFunc(func(_ context.Context, host string) ([]netip.Addr, error) {
				if host == "db.internal" || host == "standby.internal" {
					asked++
				}
				if list, ok := zone[host]; ok {
					return list, nil
				}
				return nil, errors.New("the name server is away")
			}),
		})
		c.OnConnect(func(context.Context, netip.AddrPort) (net.Conn, error) { return nil, syscall.ECONNREFUSED })
		open := func(url string, want bool) {
			t.Helper()
			err := get(c, t.Context(), url)
			if want && failure(t, err).Code != outbound.CodeConnectionRefused || !want && !hookglass.Is(err, hookglass.CodeTargetNotAllowed) {
				t.Errorf("%s: %v, open should be %v", url, err, want)
			}
		}

		open("http://10.0.0.1:8080/", true)
		open("http://10.0.0.5:6500/", false)
		open("http://db.internal:6500/", false)
		open("http://Standby.Internal.:6501/", false)
		if asked > 0 {
			t.Errorf("names of our own were looked up %d times for nothing", asked)
		}
		if f := failure(t, get(c, t.Context(), "http://10.0.0.1:6500/")); f.Code != outbound.CodeDNSError || f.Sent != outbound.NotSent {
			t.Errorf("where nobody knows where our own is: %v", f)
		}

		zone = map[string]answers{"db.internal": addrs("10.0.0.1", "::ffff:10.0.0.2"), "standby.internal": addrs("10.0.0.3"), "alias.example": addrs("10.0.0.1"), "other.example": addrs("10.0.0.9")}
		open("http://10.0.0.1:6500/", false)
		open("http://10.0.0.2:6500/", false)
		open("http://alias.example:6500/", false)
		open("http://10.0.0.3:6500/", true)
		open("http://10.0.0.3:6501/", false)
		open("http://10.0.0.1:6501/", true)
		open("http://10.0.0.1:6502/", true)
		open("http://other.example:6500/", true)
		open("http://db.internal:6502/", true) // something else listens there

		zone["db.internal"] = addrs("10.0.0.4")
		for range 3 { // the name is asked for again, however often its last answer is used
			time.Sleep(400 * time.Millisecond)
			open("http://10.0.0.1:6500/", false)
		}
		open("http://10.0.0.4:6500/", false)
		open("http://10.0.0.1:6500/", false)
		delete(zone, "db.internal")
		time.Sleep(30 * time.Minute)
		open("http://10.0.0.4:6500/", false) // the name server is away, and what it said last holds
		open("http://10.0.0.9:6500/", true)
		zone["db.internal"] = addrs("127.0.0.1")
		time.Sleep(31 * time.Minute)
		open("http://10.0.0.9:6500/", true)
		open("http://10.0.0.4:6500/", true)
		open("http://127.0.0.2:6500/", false) // what else it listens on here is not known
		open("http://127.0.0.2:6501/", true)
	})
}

// A host of our own that is an address of this machine is shut at each of its addresses, before anything is asked.
func TestAHostOfOurOwnOnThisMachine(t *testing.T) {
	c := outbound.New(outbound.Config{Allow: rules(t, "127.0.0.0/8", "::1", "10.0.0.0/8", "fd00::/8"), OwnHosts: []string{"127.0.0.1:6500", "localhost:6501", "[fd00::1]:6502", "no port"}, Resolver: noResolver{t}})
	for url, want := range map[string]bool{
		"http://127.0.0.1:6500": false, "http://127.0.0.2:6500": false, "http://[::1]:6500": false, "http://10.0.0.9:6500": true,
		"http://localhost:6501": false, "http://127.9.9.9:6501": false, "http://127.0.0.1:6502": true,
		"http://[fd00::1]:6502": false, "http://[fd00::2]:6502": true,
	} {
		if err := c.Check("url", url); (err == nil) != want {
			t.Errorf("%s: %v, permitted should be %v", url, err, want)
		}
	}
}
