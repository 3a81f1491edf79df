package bundle

import (
	"slices"
	"strings"
)

// known holds the values that were recognised, to be found wherever else they stand.
type known struct {
	entries map[string]entry
	by      map[[3]byte][]int // their lengths by their beginnings, long ones first
	pairs   []bool            // beginnings of the beginnings: two bytes, as a number
	exempt  map[string]bool   // what is to be kept
}

// entry is a value in lower case with what is known of it.
type entry struct {
	kind Kind
	sure bool // it is found within words too, and must not be left anywhere
	name bool // in small letters it is a word of the language, not a name
}

// span is a part of a text that is replaced.
type span struct {
	start, end int
	kind       Kind
	put        string // what is put there; "": the substitute of what stands there
}

const (
	leastKnown = 3 // bytes; what is shorter is replaced where it was recognised alone
	leastSure  = 6
	leastPlain = 5 // shorter names are often words of the language too, where they begin with a small letter
)

func newKnown() known {
	return known{entries: map[string]entry{}, by: map[[3]byte][]int{}, pairs: make([]bool, 1<<16), exempt: map[string]bool{}}
}

// add remembers a value. One that is sure is what nobody writes by chance.
func (k *known) add(value string, kind Kind, sure bool) {
	text := lower(strings.TrimSpace(value))
	if len(text) < leastKnown || len(text) > 64<<10 || strings.IndexFunc(text, letterOrDigit) < 0 { // as ******** has nothing to hide
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
		e.name = e.name && old.name
		k.entries[text] = e
		return
	}
	k.entries[text] = e
	first := [3]byte{text[0], text[1], text[2]}
	if i, there := slices.BinarySearchFunc(k.by[first], len(text), func(a, b int) int { return b - a }); !there {
		k.by[first] = slices.Insert(k.by[first], i, len(text))
	}
	k.pairs[int(text[0])<<8|int(text[1])] = true
}

// find lists where known values stand, one after another; those that are sure alone, where asked for.
func (k *known) find(s string, sure bool) (found []span) {
	if len(k.entries) == 0 {
		return nil
	}
	for i := 0; i+leastKnown <= len(s); i++ {
		a, b := lowerByte(s[i]), lowerByte(s[i+1])
		if !k.pairs[int(a)<<8|int(b)] {
			continue
		}
		for _, n := range k.by[[3]byte{a, b, lowerByte(s[i+2])}] {
			end := i + n
			if end > len(s) {
				continue
			}
			text := lower(s[i:end])
			e, there := k.entries[text]
			if !there || k.exempt[text] {
				continue
			}
			if !e.sure && (sure || inWord(s, i, end)) || e.name && s[i] >= 'a' {
				continue
			}
			found = append(found, span{start: i, end: end, kind: e.kind})
			i = end - 1
			break
		}
	}
	return found
}

// inWord reports whether a part of a text goes on before or after it.
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

// lower is s with ASCII in lower case; lengths stay.
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
