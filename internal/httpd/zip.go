package httpd

import (
	"bufio"
	"compress/gzip"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

const (
	// worthZipping is the size from which answers are compressed. A shorter one arrives as fast without, and
	// compressing takes half a millisecond.
	worthZipping = 8 << 10
	// maxZips is how many answers are compressed at once: each takes 1.2 MB until its reader, who may be slow, has
	// taken it. Further ones are sent uncompressed.
	maxZips = 32
	// maxPadding bounds the random padding of a compressed answer, which hides its exact length.
	maxPadding = 64
)

// Zip is the body of an answer, compressed for callers that accept it. Use it only for answers whose length reveals
// nothing: see docs/decisions/0041-what-is-compressed.md. The size of the first write decides, so write an answer that
// is in memory at once. Close ends it. It is for one goroutine.
type Zip struct {
	to     http.ResponseWriter
	r      *http.Request
	status int
	begun  bool
	zipper *zipper // nil: uncompressed
}

// NewZip starts an answer with a status. Other headers must be set before the first write.
func NewZip(w http.ResponseWriter, r *http.Request, status int) *Zip {
	return &Zip{to: w, r: r, status: status}
}

// Write implements io.Writer.
func (z *Zip) Write(p []byte) (int, error) {
	if !z.begun {
		z.begin(len(p))
	}
	if z.zipper == nil {
		return z.to.Write(p)
	}
	return z.zipper.Write(p)
}

// Begun reports whether sending has begun.
func (z *Zip) Begun() bool { return z.begun }

// Close implements io.Closer. If nothing was written it answers with the status only.
func (z *Zip) Close() error {
	if !z.begun {
		z.begin(0)
	}
	if z.zipper == nil {
		return nil
	}
	err := z.zipper.end()
	z.zipper = nil
	return err
}

func (z *Zip) begin(length int) {
	z.begun = true
	h := z.to.Header()
	h.Add("Vary", "Accept-Encoding")
	if length >= worthZipping && acceptsGzip(z.r) {
		if z.zipper = From(z.r.Context()).zips.take(z.to); z.zipper != nil {
			h.Set("Content-Encoding", "gzip")
		}
	}
	z.to.WriteHeader(z.status)
}

// zipper compresses into pieces that are worth sending: a gzip.Writer alone writes a few hundred bytes at a time.
type zipper struct {
	*gzip.Writer
	out *bufio.Writer
	all *zips
}

// zips pools the zippers of a server, which are costly to make.
type zips struct {
	idle   sync.Pool
	places chan struct{}
}

func newZips() *zips {
	all := &zips{places: make(chan struct{}, maxZips)}
	all.idle.New = func() any {
		w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level exists
		return &zipper{w, bufio.NewWriterSize(nil, pieceBytes), all}
	}
	return all
}

// take returns nil when maxZips answers are being compressed, and outside of [Stack.Wrap].
func (all *zips) take(to http.ResponseWriter) *zipper {
	if all == nil {
		return nil
	}
	select {
	case all.places <- struct{}{}:
	default:
		return nil
	}
	z := all.idle.Get().(*zipper)
	z.out.Reset(to)
	z.Reset(z.out)
	z.Comment = strings.Repeat(" ", rand.IntN(maxPadding))
	return z
}

func (z *zipper) end() error {
	err := z.Close()
	if err == nil {
		err = z.out.Flush()
	}
	z.out.Reset(nil)
	z.Reset(nil)
	z.all.idle.Put(z)
	<-z.all.places
	return err
}

// acceptsGzip reports whether the caller accepts gzip (RFC 9110, section 12.5.3).
func acceptsGzip(r *http.Request) bool {
	for item := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, weight, weighed := strings.Cut(item, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		if !weighed {
			return true
		}
		name, value, _ := strings.Cut(weight, "=")
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return err == nil && q > 0 && strings.EqualFold(strings.TrimSpace(name), "q")
	}
	return false
}
