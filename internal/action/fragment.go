package action

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// fragments finds longer parts of secrets: a target may answer with one in pieces, or an answer may end within it. A
// part is a run of windows of eight bytes, each of which is in a spelling of a secret.
type fragments struct {
	often     bool // they are looked for in many texts
	spellings []string
	size      int             // bytes of the spellings
	index     func() *windows // made when it is first needed: most texts are short
	looked    atomic.Int32    // texts that were looked at without it
}

// windows are those of the spellings.
type windows struct {
	least   map[uint64]int // the shortest run that counts
	present [1024]uint64   // a bit for each hash of a window: most text is passed over by it
}

const (
	window       = 8
	maxFragment  = 24       // a run of so many bytes always counts
	maxFragments = 64 << 10 // bytes of spellings that are kept; a longer secret is found whole
	// shortText is the length up to which a text is searched for each spelling: to index them costs more.
	shortText = 64
)

// add makes the parts of a secret known, whose codings may be known already. A short secret has none: its halves are
// anybody's words.
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

// from is the shortest run that counts and begins with the window, 0 when the window is in no secret.
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

// indexAfter is of how many short texts the index takes as long as looking without it.
const indexAfter = 16

// pays reports whether the index is worth it for one more short text.
func (f *fragments) pays() bool { return f.often || f.looked.Add(1) > indexAfter }

// hide blots the parts out.
func (f *fragments) hide(s string) string {
	if len(f.spellings) == 0 || len(s) < window || len(s) <= shortText && !f.pays() && !f.mayHold(s) {
		return s
	}
	ws := f.index()
	var b strings.Builder
	from := 0
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
		b.WriteString(s[from:i])
		b.WriteString(Mark)
		from, i = end, end
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return strings.ToValidUTF8(b.String(), "") // a window may begin within a character
}
