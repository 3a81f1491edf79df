package redact

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"hookglass"
)

// fragments finds longer parts of secrets: a target may answer with a secret in pieces, or an answer may be cut off
// within one. A part is a run of overlapping eight-byte windows, each of which occurs in a spelling of a secret.
type fragments struct {
	often     bool // many texts will be searched
	spellings []string
	size      int             // bytes of the spellings
	index     func() *windows // made when it is first needed: most texts are short
	looked    atomic.Int32    // short texts that were searched without it
}

// windows is an index of all windows of the spellings.
type windows struct {
	least   map[uint64]int // by window: the shortest run that is redacted
	present [1024]uint64   // a bit for each hash of a window, so that most text needs no look-up
}

const (
	window       = 8
	maxFragment  = 24       // a run of this many bytes is always redacted
	maxFragments = 64 << 10 // bytes of spellings that are kept; a longer secret is found whole
	// shortText is the length up to which a text is searched spelling by spelling: building the index would cost more.
	shortText = 64
)

// add adds a secret whose parts are looked for; coded is nil or its codings, where they were computed before. A short
// secret has no parts: half of it could be any word.
func (f *fragments) add(secret string, coded *codings) {
	if len(secret) < 2*window || f.size > 4*maxFragments {
		return
	}
	if coded == nil {
		coded = codingsOf(secret)
	}
	f.spellings = append(append(f.spellings, secret, coded.hex), coded.cores[:]...)
	f.size += 7 * len(secret)
	f.index = sync.OnceValue(func() *windows { return indexWindows(f.spellings) })
}

func indexWindows(spellings []string) *windows {
	ws := &windows{least: make(map[uint64]int)}
	for _, s := range spellings {
		if len(ws.least)+len(s) > maxFragments {
			continue
		}
		least := min(max(window, len(s)/3), maxFragment)
		for i := 0; i+window <= len(s); i++ {
			w := windowAt(s, i)
			if known, ok := ws.least[w]; !ok || least < known {
				ws.least[w] = least
			}
			bit := hash(w)
			ws.present[bit/64] |= 1 << (bit % 64)
		}
	}
	return ws
}

func windowAt(s string, i int) uint64 {
	s = s[i : i+window]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func hash(w uint64) uint64 { return w * 0x9E3779B97F4A7C15 >> 48 }

// from returns the shortest run that begins with the window and is redacted, or 0 when the window is in no secret.
func (ws *windows) from(w uint64) int {
	if bit := hash(w); ws.present[bit/64]&(1<<(bit%64)) == 0 {
		return 0
	}
	return ws.least[w]
}

// mayHold reports whether a window of a short text is in a spelling.
func (f *fragments) mayHold(s string) bool {
	for i := 0; i+window <= len(s); i++ {
		w := s[i : i+window]
		if slices.ContainsFunc(f.spellings, func(spelling string) bool { return strings.Contains(spelling, w) }) {
			return true
		}
	}
	return false
}

// indexAfter is the number of short texts whose search without the index costs as much as building it.
const indexAfter = 16

// pays reports whether the index is worth building for one more short text.
func (f *fragments) pays() bool { return f.often || f.looked.Add(1) > indexAfter }

// hide redacts the parts.
func (f *fragments) hide(s string) string {
	if len(f.spellings) == 0 || len(s) < window || len(s) <= shortText && !f.pays() && !f.mayHold(s) {
		return s
	}
	ws := f.index()
	p := splice{s: s}
	for i := 0; i+window <= len(s); {
		least := ws.from(windowAt(s, i))
		if least == 0 {
			i++
			continue
		}
		end := i + window
		for end < len(s) && ws.from(windowAt(s, end-window+1)) > 0 {
			end++
		}
		if end-i < least {
			i++
			continue
		}
		p.put(i, end, hookglass.Redacted)
		i = end
	}
	if p.from == 0 {
		return s
	}
	return strings.ToValidUTF8(p.text(), "") // a window may begin within a character
}
