// Package outbound is the only way out of the process. It hides which addresses may be reached, and sends one
// HTTP/1.1 request exactly as its caller wrote it.
//
// The guard. A target is judged twice: as it is spelled, by Check and at the start of Do, in the widest reading that
// any resolver or browser would give the spelling; and as the address that is about to be dialled. A name is resolved
// once, every answer is judged, and only addresses that passed are dialled, so nothing can change in between. Refused
// is everything that is not a public unicast address, unless the operator opened it with a Rule; the addresses at which
// clouds hand out credentials stay shut even then. There is no proxy, no redirect and no environment.
//
// The exchange. A connection serves one request, unless a caller says that what it sends may arrive twice; even then
// nothing is sent again by itself. Headers go out in their order, spelling and number; only framing (Host,
// Content-Length, Connection) is computed and hop-by-hop fields are left out. Nothing is added, nothing is
// decompressed, and the answer is bounded in lines, bytes and time.
//
// What a caller may learn. A target that protection forbids is refused without a packet, so an open, a closed and a
// filtered port behind it are one and the same from outside. No message names an address that the caller did not write.
//
// A Client is safe for concurrent use.
package outbound
