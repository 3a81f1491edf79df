package outbound

import (
	"net/netip"
	"slices"
)

// notPublic4 lists the IPv4 networks that are not public unicast: the IANA special-purpose registry (RFC 6890 and its
// updates), multicast and the reserved range. It is the union of what smokescreen and Svix refuse.
var notPublic4 = prefixes(
	"0.0.0.0/8",       // this network (RFC 791)
	"10.0.0.0/8",      // private (RFC 1918)
	"100.64.0.0/10",   // shared by carriers (RFC 6598)
	"127.0.0.0/8",     // loopback (RFC 1122)
	"169.254.0.0/16",  // link-local (RFC 3927)
	"172.16.0.0/12",   // private (RFC 1918)
	"192.0.0.0/24",    // protocol assignments (RFC 6890)
	"192.0.2.0/24",    // documentation (RFC 5737)
	"192.31.196.0/24", // AS112 (RFC 7535)
	"192.52.193.0/24", // multicast tunnels (RFC 7450)
	"192.88.99.0/24",  // 6to4 relays (RFC 7526)
	"192.168.0.0/16",  // private (RFC 1918)
	"192.175.48.0/24", // AS112 (RFC 7534)
	"198.18.0.0/15",   // benchmarks (RFC 2544)
	"198.51.100.0/24", // documentation (RFC 5737)
	"203.0.113.0/24",  // documentation (RFC 5737)
	"224.0.0.0/4",     // multicast (RFC 5771)
	"240.0.0.0/4",     // reserved, and broadcast (RFC 1112, RFC 919)
)

// public6 is the only part of IPv6 from which unicast addresses are assigned (RFC 4291, IANA). Outside of it are ::,
// ::1, ::a.b.c.d, ::ffff:0:a.b.c.d, 64:ff9b::/96, 64:ff9b:1::/48, 100::/64, 5f00::/16, fc00::/7, fe80::/10, fec0::/10,
// ff00::/8.
var public6 = netip.MustParsePrefix("2000::/3")

// notPublic6 lists the networks within public6 that are not public.
var notPublic6 = prefixes(
	"2001::/23",         // protocol assignments (RFC 2928), with Teredo, benchmarks, ORCHID
	"2001:db8::/32",     // documentation (RFC 3849)
	"2002::/16",         // 6to4 (RFC 3056)
	"2620:4f:8000::/48", // AS112 (RFC 7534)
	"3ffe::/16",         // the former 6bone (RFC 3701)
	"3fff::/20",         // documentation (RFC 9637)
)

// metadata lists the addresses of cloud metadata services, which answer anyone inside the cloud, often with
// credentials. No rule opens them.
var metadata = prefixes(
	"169.254.169.0/24",   // AWS, Google, Azure, Oracle, OpenStack, DigitalOcean and others; AWS's DNS and time
	"169.254.170.0/24",   // AWS: credentials of containers
	"169.254.42.42/32",   // Scaleway
	"169.254.0.23/32",    // Tencent
	"100.88.222.5/32",    // Tencent
	"100.100.100.200/32", // Alibaba
	"168.63.129.16/32",   // Azure: a public address, but it leads to the host
	"192.0.0.192/32",     // Oracle
	"fd00:ec2::/32",      // AWS: ::254 metadata, ::23 credentials, ::253 DNS, ::123 time
	"fd20:ce::254/128",   // Google
	"fd00:42::42/128",    // Scaleway
	"fe80::a9fe:a9fe/128",
)

// metadataNames are names of metadata services that resolve only inside their cloud.
var metadataNames = map[string]bool{
	"metadata.google.internal": true, "metadata.goog": true, "metadata.tencentyun.com": true,
	"metadata.platformequinix.com": true, "instance-data": true, "instance-data.ec2.internal": true,
}

// shutPorts are ports of protocols other than HTTP that could be made to act on an HTTP request: the list that browsers
// block (WHATWG Fetch, "port blocking"), and data stores. A rule that names the port opens it. Ports 1 and 9 of that
// list stay open: what listens there discards HTTP or makes nothing of it, and people use them for a target where
// nobody listens.
var shutPorts = []uint16{
	7, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
	111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540,
	548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000,
	6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
	445, 873, 1433, 1521, 3306, 3389, 5432, 6379, 11211, 27017,
}

// public reports whether an address is public unicast. It does not look for an IPv4 address inside an IPv6 one.
func public(a netip.Addr) bool {
	if a.Is4() {
		return !anyContains(notPublic4, a)
	}
	return public6.Contains(a) && !anyContains(notPublic6, a)
}

// isMetadata reports whether an address is a metadata service's, or an IPv6 address that embeds one, which a gateway on
// the way could unwrap.
func isMetadata(a netip.Addr) bool {
	if anyContains(metadata, a) {
		return true
	}
	if !a.Is6() {
		return false
	}
	b := a.As16()
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte(b[i : i+4])) }
	return anyContains(carriers6, a) &&
		(anyContains(metadata, at(2)) || anyContains(metadata, at(12)) ||
			anyContains(metadata, netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))) // Teredo (RFC 4380, section 4)
}

// carriers6 are the IPv6 forms that embed an IPv4 address: in the last four bytes (compatible, translated, NAT64),
// after the first two (6to4), or inverted in the last four (Teredo).
var carriers6 = prefixes("::/80", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")

func anyContains(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}
