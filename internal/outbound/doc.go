// Package outbound is the only way out of the process. It decides which addresses may be reached, and sends one
// HTTP/1.1 request exactly as its caller wrote it.
//
// The guard. A target is judged twice: as spelled, by Check and at the start of Do, in the widest reading that any
// resolver or browser would give the spelling; and as the address that is about to be dialled. A name is resolved once,
// every answer is judged, and only permitted addresses are dialled, so nothing can change in between. Everything but a
// public unicast address is refused, unless the operator opened it with a Rule; the addresses where clouds hand out
// credentials stay shut even then. Proxies and environment variables are ignored, and redirects are not followed.
//
// The exchange. A connection serves one request, unless the caller says that the request may arrive twice
// (Request.Keep); even then nothing is resent. Headers are sent in their order, spelling and number; only framing
// (Host, Content-Length, Connection) is computed, and hop-by-hop fields are left out. Nothing is added or decompressed,
// and the response is bounded in lines, bytes and time.
//
// What a caller may learn. A forbidden target is refused before any packet is sent, so open, closed and filtered ports
// look the same from outside. No message names an address that the caller did not write.
//
// A Client is safe for concurrent use.
package outbound
