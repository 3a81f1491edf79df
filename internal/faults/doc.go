// Package faults holds tests alone: it runs the built program as separate processes, takes away what the program
// stands on (its life, its database, its disk, its time) and compares what senders were told with what is stored.
//
// The senders keep a ledger of every request and its answer. Of each answer 200 the event must be there afterwards,
// with the body that was sent; no request may be there twice; and while storage cannot accept, the answer must be
// 503 with Retry-After, in time.
//
// make faults runs a short form of every test, make crash the long one: HOOKGLASS_LONG=1. Tests that have no short form
// are built with the tag long.
package faults
