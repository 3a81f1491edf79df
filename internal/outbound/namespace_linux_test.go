package outbound_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"hookglass"
	"hookglass/internal/outbound"
)

// inNamespace marks the run of this test binary inside namespaces of its own.
const inNamespace = "OUTBOUND_TEST_IN_NAMESPACE"

// TestInANamespace tries the guard on a network of its own, in which every address there is belongs to this machine and
// a canary listens on each. The resolver is the system's, with a name server that lies, and the environment names a
// proxy.
func TestInANamespace(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		insideNamespace(t)
		return
	}
	for _, mode := range []string{"go", "cgo"} {
		t.Run("netdns="+mode, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestInANamespace$", "-test.v")
			cmd.Env = append(os.Environ(), inNamespace+"="+t.TempDir(), "GODEBUG=netdns="+mode,
				"HTTP_PROXY=http://10.0.0.1", "HTTPS_PROXY=http://10.0.0.1", "ALL_PROXY=http://10.0.0.1", "http_proxy=http://10.0.0.1", "NO_PROXY=")
			attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
			if os.Getuid() != 0 {
				attr.Cloneflags |= syscall.CLONE_NEWUSER
				attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
				attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
			}
			cmd.SysProcAttr = attr
			out, err := cmd.CombinedOutput()
			if err != nil {
				if os.Getuid() != 0 && os.Getenv("CI") == "" && len(out) == 0 {
					t.Skipf("this machine gives users no namespaces: %v", err)
				}
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

func insideNamespace(t *testing.T) {
	ownEveryAddress(t)
	useResolver(t, os.Getenv(inNamespace))
	forbidden := map[string]netip.Addr{} // by the name that stands for it
	for i, a := range forbiddenAddresses {
		forbidden[fmt.Sprintf("forbidden-%d.test.", i)] = netip.MustParseAddr(a)
	}
	serveNames(t, forbidden)
	canary := listenEverywhere(t)

	// The canary sings: what is not guarded gets there, so that silence below means something.
	for _, a := range []string{"127.0.0.1", "127.9.9.9", "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "169.254.169.254", "192.0.0.1", "198.18.0.1", "240.0.0.1", "8.8.4.4",
		"::1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001::1", "fd00:ec2::254", "fec0::1", "100::1", "::ffff:0:127.0.0.1", "2606:4700::1111"} {
		c, err := net.Dial("tcp", net.JoinHostPort(a, "80"))
		if err != nil {
			t.Fatalf("the network is not what the test needs: %v", err)
		}
		c.Close()
	}
	canary.waitFor(t, 21)

	c := outbound.New(outbound.Config{})
	// do asks again where a busy machine did not resolve the name in time.
	do := func(r outbound.Request) (resp *outbound.Response, err error) {
		for range 10 {
			if resp, err = c.Do(t.Context(), r); err == nil || !strings.Contains(err.Error(), "in time") {
				break
			}
		}
		return resp, err
	}
	for _, u := range []string{"http://8.8.4.4/", "http://[2606:4700::1111]/", "http://public.test/", "http://chain.test/", "http://mixed.test/", "http://PUBLIC.test./"} {
		resp, err := do(outbound.Request{Method: "GET", URL: u})
		if err != nil || resp.Status != 302 {
			t.Errorf("%s: %v, %v", u, resp, err)
		}
	}
	denied := func(u string) {
		t.Helper()
		if _, err := do(outbound.Request{Method: "POST", URL: u, Body: []byte("x")}); !hookglass.Is(err, hookglass.CodeTargetNotAllowed) {
			t.Errorf("%s: %v, want target_not_allowed", u, err)
		}
	}
	for _, u := range allForbiddenURLs() {
		denied(u)
	}
	for name := range forbidden {
		denied("http://" + name + "/")
		denied("http://" + strings.TrimSuffix(name, ".") + "/")
	}
	for _, u := range []string{"http://chain-inside.test/", "http://many-inside.test/", "http://mapped.test/"} {
		denied(u)
	}
	unresolved := 0
	for range 500 {
		_, err := do(outbound.Request{Method: "GET", URL: "http://rebind.test/"})
		// The resolver of the C library says of an answer that came too late for it that there is no address.
		if err != nil && failure(t, err).Code == outbound.CodeDNSError {
			unresolved++
		} else if err != nil && !hookglass.Is(err, hookglass.CodeTargetNotAllowed) {
			t.Errorf("rebinding: %v", err)
		}
	}
	if unresolved > 50 {
		t.Errorf("rebinding: %d of 500 were not resolved", unresolved)
	}
	for _, u := range []string{"http://nowhere.test/", "http://2130706433.nowhere.test/"} {
		if _, err := do(outbound.Request{Method: "GET", URL: u}); failure(t, err).Code != outbound.CodeDNSError {
			t.Errorf("%s: %v", u, err)
		}
	}
	if bad := canary.heard(func(a netip.Addr) bool { return a.String() == "8.8.4.4" || a.String() == "2606:4700::1111" }); len(bad) > 0 {
		t.Errorf("the canary was reached at %v", bad)
	}

	// What a rule opens, and no more.
	c = outbound.New(outbound.Config{Allow: rules(t, "127.0.0.1/32:80", "10.0.0.0/8", "169.254.0.0/16")})
	for _, u := range []string{"http://127.0.0.1/", "http://localhost/", "http://10.1.2.3/", "http://169.254.1.1/"} {
		if _, err := do(outbound.Request{Method: "GET", URL: u}); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
	canary.heard(nil)
	for _, u := range []string{"http://127.0.0.1:81/", "http://127.0.0.2/", "http://[::1]/", "http://192.168.0.1/", "http://169.254.169.254/", "http://0.0.0.0/", "http://10.1.2.3:6379/"} {
		denied(u)
	}
	if bad := canary.heard(nil); len(bad) > 0 {
		t.Errorf("the canary was reached at %v", bad)
	}
}

// canary counts who was reached, by address.
type canary struct {
	mu      sync.Mutex
	hits    []netip.Addr
	counted *sync.Cond
}

// heard returns and forgets the addresses that were reached, without those that may be.
func (c *canary) heard(allowed func(netip.Addr) bool) []netip.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	hits := slices.DeleteFunc(c.hits, func(a netip.Addr) bool { return allowed != nil && allowed(a) })
	c.hits = nil
	return hits
}

// waitFor waits until n connections were counted, and forgets them.
func (c *canary) waitFor(t *testing.T, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.hits) < n {
		c.counted.Wait()
	}
	c.hits = nil
}

// listenEverywhere listens on all addresses, at the port of HTTP and at others, and answers with a redirect to
// metadata.
func listenEverywhere(t *testing.T) *canary {
	c := &canary{}
	c.counted = sync.NewCond(&c.mu)
	for _, port := range []string{"80", "81", "22", "25", "443", "5432", "6379", "8080", "9000"} {
		l, err := net.Listen("tcp", ":"+port)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				c.mu.Lock()
				c.hits = append(c.hits, netip.MustParseAddrPort(conn.LocalAddr().String()).Addr().Unmap())
				c.counted.Signal()
				c.mu.Unlock()
				go func() {
					defer conn.Close()
					if _, _, err := readRequest(conn); err == nil {
						io.WriteString(conn, "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n")
					}
				}()
			}
		}()
	}
	return c
}

// serveNames answers for the names of the test on the name server's port, by UDP and, for what is too long, by TCP.
func serveNames(t *testing.T, fixed map[string]netip.Addr) {
	var mu sync.Mutex
	asked := 0
	answer := func(query []byte, longest int) []byte {
		var m dnsmessage.Message
		if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
			return nil
		}
		q := m.Questions[0]
		name := strings.ToLower(q.Name.String())
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		add := func(owner string, list ...string) {
			for _, s := range list {
				a := netip.MustParseAddr(s)
				h := dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(owner), Class: dnsmessage.ClassINET} // TTL 0
				if a.Is4() && q.Type == dnsmessage.TypeA {
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
				} else if a.Is6() && q.Type == dnsmessage.TypeAAAA {
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
				}
			}
		}
		alias := func(from, to string) {
			h := dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(from), Class: dnsmessage.ClassINET}
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(to)}})
		}
		switch a, ok := fixed[name]; {
		case ok:
			add(name, a.String())
		case name == "public.test.":
			add(name, "8.8.4.4", "2606:4700::1111")
		case name == "mixed.test.":
			add(name, "10.0.0.1", "8.8.4.4", "127.0.0.1", "::1", "2606:4700::1111", "fd00::1")
		case name == "chain.test.":
			alias(name, "a.chain.test.")
			alias("a.chain.test.", "b.chain.test.")
			add("b.chain.test.", "8.8.4.4")
		case name == "chain-inside.test.":
			alias(name, "localhost.")
			add("localhost.", "127.0.0.1", "::1")
		case name == "mapped.test.":
			add(name, "::ffff:127.0.0.1", "::ffff:169.254.169.254")
		case name == "many-inside.test.":
			for i := range 1000 {
				add(name, fmt.Sprintf("10.1.%d.%d", i>>8, i&255))
			}
		case name == "rebind.test.":
			mu.Lock()
			if asked++; asked%3 == 0 {
				add(name, "8.8.4.4")
			} else {
				add(name, "127.0.0.1", "::1")
			}
			mu.Unlock()
		default:
			m.RCode = dnsmessage.RCodeNameError
		}
		out, err := m.Pack()
		if err == nil && len(out) > longest {
			m.Answers, m.Truncated = nil, true
			out, err = m.Pack()
		}
		if err != nil {
			t.Error(err)
		}
		return out
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		query := make([]byte, 4096)
		for {
			n, from, err := udp.ReadFrom(query)
			if err != nil {
				return
			}
			udp.WriteTo(answer(query[:n], 1232), from)
		}
	}()
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var size [2]byte
				if _, err := io.ReadFull(c, size[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(c, query); err != nil {
					return
				}
				out := answer(query, 65535)
				c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
			}()
		}
	}()
}

// useResolver makes the name server of the test that of the system, as far as this process sees.
func useResolver(t *testing.T, dir string) {
	file := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(file, "/etc/resolv.conf", "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
}

// ownEveryAddress brings loopback up and routes all of IPv4 and IPv6 to it as local, as ip(8) would with
// "ip link set lo up; ip route add local 0.0.0.0/0 dev lo; ip -6 route add local ::/0 dev lo".
func ownEveryAddress(t *testing.T) {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	const lo = 1
	order := binary.NativeEndian
	ask := func(kind uint16, body []byte) {
		t.Helper()
		m := order.AppendUint32(nil, uint32(syscall.SizeofNlMsghdr+len(body)))
		m = order.AppendUint16(m, kind)
		m = order.AppendUint16(m, syscall.NLM_F_REQUEST|syscall.NLM_F_ACK|syscall.NLM_F_CREATE)
		m = append(m, make([]byte, 8)...) // sequence, port
		if err := syscall.Sendto(fd, append(m, body...), 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
			t.Fatal(err)
		}
		reply := make([]byte, 4096)
		n, _, err := syscall.Recvfrom(fd, reply, 0)
		if err != nil || n < syscall.SizeofNlMsghdr+4 {
			t.Fatal(n, err)
		}
		if code := int32(order.Uint32(reply[syscall.SizeofNlMsghdr:])); code != 0 {
			t.Fatalf("netlink message %d: %v", kind, syscall.Errno(-code))
		}
	}
	link := make([]byte, syscall.SizeofIfInfomsg)
	order.PutUint32(link[4:], lo)
	order.PutUint32(link[8:], syscall.IFF_UP)
	order.PutUint32(link[12:], syscall.IFF_UP)
	ask(syscall.RTM_NEWLINK, link)
	for _, family := range []byte{syscall.AF_INET, syscall.AF_INET6} {
		scope := byte(syscall.RT_SCOPE_HOST)
		route := []byte{family, 0, 0, 0, syscall.RT_TABLE_LOCAL, syscall.RTPROT_STATIC, scope, syscall.RTN_LOCAL, 0, 0, 0, 0}
		route = order.AppendUint16(route, 8)
		route = order.AppendUint16(route, syscall.RTA_OIF)
		ask(syscall.RTM_NEWROUTE, order.AppendUint32(route, lo))
	}
}
