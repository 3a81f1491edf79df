package action

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// fragments finds longer parts of secrets: a target may answer with one in pieces, or an answer may end within it. A part is a
// run of windows of eight bytes, each of which is in a spelling of a secret.
type fragments struct {
	windows map[uint64]int // to the shortest run that counts
	present [1024]uint64   // a bit for each hash of a window: most text is passed over by it
}

const (
	window       = 8
	maxFragment  = 24       // a run of so many bytes always counts
	maxFragments = 64 << 10 // bytes of spellings that are kept; a longer secret is found whole
)

// add makes the parts of a secret known. A short secret has none: its halves are anybody's words.
func (f *fragments) add(secret string) {
	if len(secret) < 2*window {
		return
	}
	if f.windows == nil {
		f.windows = make(map[uint64]int, min(6*len(secret), maxFragments))
	}
	spellings := []string{secret, hex.EncodeToString([]byte(secret))}
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), secret...))
		spellings = append(spellings, text[(before*8+5)/6:(before+len(secret))*8/6])
	}
	for _, s := range spellings {
		if len(f.windows)+len(s) > maxFragments {
			return
		}
		least := min(max(window, len(s)/3), maxFragment)
		for i := 0; i+window <= len(s); i++ {
			w := windowAt(s, i)
			if known, ok := f.windows[w]; !ok || least < known {
				f.windows[w] = least
			}
			bit := hash(w)
			f.present[bit/64] |= 1 << (bit % 64)
		}
	}
}

func windowAt(s string, i int) uint64 {
	s = s[i : i+window]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func hash(w uint64) uint64 { return w * 0x9E3779B97F4A7C15 >> 48 }

// least is the shortest run that counts and begins with the window, 0 when the window is in no secret.
func (f *fragments) least(w uint64) int {
	if bit := hash(w); f.present[bit/64]&(1<<(bit%64)) == 0 {
		return 0
	}
	return f.windows[w]
}

// hide blots the parts out.
func (f *fragments) hide(s string) string {
	if len(f.windows) == 0 || len(s) < window {
		return s
	}
	var b strings.Builder
	from := 0
	for i := 0; i+window <= len(s); {
		least := f.least(windowAt(s, i))
		if least == 0 {
			i++
			continue
		}
		end := i + window
		for end < len(s) && f.least(windowAt(s, end-window+1)) > 0 {
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
