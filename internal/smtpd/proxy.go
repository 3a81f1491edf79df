package smtpd

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"strings"
)

// The PROXY protocol (haproxy.org, proxy-protocol.txt, 2020). A proxy writes the header before anything else; the
// client behind it can write only after that.

const (
	proxyV1Max = 107  // with CR LF (section 2.1)
	proxyV2Max = 4096 // of addresses and extensions; the known ones need far less
)

// proxyV2Signature is the start of a version 2 header (section 2.2).
const proxyV2Signature = "\r\n\r\n\x00\r\nQUIT\n"

var errProxy = errors.New("the PROXY header is malformed")

// readProxy reads the header at the front of r, if there is one, and returns the client that it names. That is the zero
// Addr if it names none, because the proxy connects on its own behalf or does not know the client. It reads nothing
// else.
func readProxy(r *bufio.Reader) (client netip.Addr, found bool, err error) {
	first, err := r.Peek(1)
	if err != nil {
		return client, false, err
	}
	switch first[0] {
	case 'P':
		if start, err := r.Peek(len("PROXY ")); err != nil || string(start) != "PROXY " {
			return client, false, nil // not a header; the command loop will refuse it
		}
		client, err = readProxyV1(r)
		return client, true, err
	case '\r':
		client, err = readProxyV2(r)
		return client, true, err
	}
	return client, false, nil
}

func readProxyV1(r *bufio.Reader) (client netip.Addr, err error) {
	var line []byte
	for !bytes.HasSuffix(line, []byte("\r\n")) {
		b, err := r.ReadByte()
		if err != nil {
			return client, err
		}
		if line = append(line, b); len(line) > proxyV1Max {
			return client, errProxy
		}
	}
	fields := strings.Split(string(line[:len(line)-2]), " ")
	if len(fields) >= 2 && fields[1] == "UNKNOWN" {
		return client, nil
	}
	if len(fields) != 6 || fields[1] != "TCP4" && fields[1] != "TCP6" {
		return client, errProxy
	}
	for _, port := range fields[4:] {
		if n, ok := parseSize(port); !ok || n > 0xffff {
			return client, errProxy
		}
	}
	source, err := netip.ParseAddr(fields[2])
	destination, err2 := netip.ParseAddr(fields[3])
	if err != nil || err2 != nil || source.Zone() != "" || source.Is4() != (fields[1] == "TCP4") || source.Is4() != destination.Is4() {
		return client, errProxy
	}
	return source.Unmap(), nil
}

func readProxyV2(r *bufio.Reader) (client netip.Addr, err error) {
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return client, errProxy
	}
	version, command := head[12]>>4, head[12]&15
	size := int(binary.BigEndian.Uint16(head[14:]))
	if string(head[:12]) != proxyV2Signature || version != 2 || command > 1 || size > proxyV2Max {
		return client, errProxy
	}
	rest := make([]byte, size)
	if _, err := io.ReadFull(r, rest); err != nil {
		return client, errProxy
	}
	if command == 0 { // LOCAL: the proxy's own health check
		return client, nil
	}
	switch family := head[13] >> 4; {
	case family == 1 && size >= 12:
		client = netip.AddrFrom4([4]byte(rest[:4]))
	case family == 2 && size >= 36:
		client = netip.AddrFrom16([16]byte(rest[:16])).Unmap()
	case family == 1 || family == 2:
		return client, errProxy
	}
	return client, nil
}
