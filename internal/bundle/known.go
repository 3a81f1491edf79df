package bundle

import (
	"slices"
	"strings"
)

// known holds the recognised values, which are replaced wherever they occur.
type known struct {
	entries map[string]entry
	by      map[[3]byte][]length // by their first bytes, long ones first
	pairs   []bool               // by their first two bytes, as a number
	sums    map[uint64]bool      // checksums of the long ones
	exempt  map[string]bool      // values to keep
}

// length is the length of known values, with the power that removes a preceding checksum.
type length struct {
	bytes int
	power uint64
}

// entry is a value in lower case with what is known of it.
type entry struct {
	kind Kind
	sure bool // replaced within words, too, and must not remain anywhere
	name bool // in small letters it is an ordinary word, not a name
	out  bool // replaced even if it is to be kept
}

// span is a part of a text that is replaced.
type span struct {
	start, end int
	kind       Kind
	put        string // the replacement; "": the substitute of the text
}

const (
	leastKnown = 3 // bytes; a shorter value is replaced only where it was recognised
	leastSure  = 6
	leastSum   = 32 // bytes; a shorter value is found as fast without its checksum
	leastPlain = 5  // shorter names in small letters are often ordinary words
)

func newKnown() known {
	return known{entries: map[string]entry{}, by: map[[3]byte][]length{}, pairs: make([]bool, 1<<16), sums: map[uint64]bool{}, exempt: map[string]bool{}}
}

// add remembers a value. A sure value is one that nobody writes by chance.
func (k *known) add(value string, kind Kind, sure bool) {
	text := lower(strings.TrimSpace(value))
	if len(text) < leastKnown || len(text) > 64<<10 || strings.IndexFunc(text, letterOrDigit) < 0 { // ******** has nothing to hide
		return
	}
	e := entry{kind: kind, sure: sure && len(text) >= leastSure}
	if first := strings.TrimSpace(value)[0]; kind == Name && len(text) < leastPlain {
		e.name = first >= 'A' && first <= 'Z'
	}
	if old, found := k.entries[text]; found {
		if old.sure || !e.sure {
			e.kind, e.sure = old.kind, old.sure
		}
		e.name, e.out = e.name && old.name, old.out
		k.entries[text] = e
		return
	}
	k.entries[text] = e
	first := [3]byte{text[0], text[1], text[2]}
	if i, there := slices.BinarySearchFunc(k.by[first], len(text), func(a length, n int) int { return n - a.bytes }); !there {
		k.by[first] = slices.Insert(k.by[first], i, length{len(text), power(len(text))})
	}
	if len(text) >= leastSum {
		k.sums[sums(text)[len(text)]] = true
	}
	k.pairs[int(text[0])<<8|int(text[1])] = true
}

// forbid remembers a value that must never be kept.
func (k *known) forbid(value string, kind Kind) {
	k.add(value, kind, true)
	text := lower(strings.TrimSpace(value))
	if e, found := k.entries[text]; found {
		e.out = true
		k.entries[text] = e
	}
}

// find returns the non-overlapping places of known values, or of sure ones only.
func (k *known) find(s string, sure bool) (found []span) {
	if len(k.entries) == 0 {
		return nil
	}
	var upTo []uint64 // the checksums of s, once they are needed
	for i := 0; i+leastKnown <= len(s); i++ {
		a, b := lowerByte(s[i]), lowerByte(s[i+1])
		if !k.pairs[int(a)<<8|int(b)] {
			continue
		}
		for _, n := range k.by[[3]byte{a, b, lowerByte(s[i+2])}] {
			end := i + n.bytes
			if end > len(s) {
				continue
			}
			if n.bytes >= leastSum { // many places may begin as a long value does
				if upTo == nil {
					upTo = sums(s)
				}
				if !k.sums[upTo[end]-upTo[i]*n.power] {
					continue
				}
			}
			if e, is := k.value(s, i, end, sure); is {
				found = append(found, span{start: i, end: end, kind: e.kind})
				i = end - 1
				break
			}
		}
	}
	return found
}

// value returns the known value that stands at a place of s, if it counts there.
func (k *known) value(s string, start, end int, sure bool) (e entry, is bool) {
	text := lower(s[start:end])
	e, is = k.entries[text]
	if !is || k.exempt[text] && !e.out || !e.sure && (sure || inWord(s, start, end)) {
		return e, false
	}
	return e, !e.name || s[start] < 'a'
}

// multiplier makes a checksum depend on the order of bytes (Knuth's MMIX generator).
const multiplier = 6364136223846793005

// sums returns the checksums of all prefixes of a text in lower case. The checksum of any part follows: the sum up to
// its end, minus the sum up to its start times the power of its length.
func sums(s string) []uint64 {
	upTo := make([]uint64, len(s)+1)
	for i := range len(s) {
		upTo[i+1] = upTo[i]*multiplier + uint64(lowerByte(s[i]))
	}
	return upTo
}

func power(n int) uint64 {
	p := uint64(1)
	for range n {
		p *= multiplier
	}
	return p
}

// inWord reports whether a part of a text is preceded or followed by more of the same word.
func inWord(s string, start, end int) bool {
	return start > 0 && wordByte(s[start-1]) && wordByte(s[start]) || end < len(s) && wordByte(s[end-1]) && wordByte(s[end])
}

func wordByte(c byte) bool { return alphanumericByte(c) || c >= 0x80 }

func letterOrDigit(r rune) bool { return r >= 0x80 || alphanumericByte(byte(r)) }

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// lower returns s with ASCII in lower case; lengths stay.
func lower(s string) string {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				b[j] = lowerByte(b[j])
			}
			return string(b)
		}
	}
	return s
}
