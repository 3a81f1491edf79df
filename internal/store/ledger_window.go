package store

import (
	"math"
	"time"

	"hookglass"
	"hookglass/internal/query"
)

// ledgerWindow is the events of an endpoint that were received in a period, as disjoint pieces.
type ledgerWindow struct {
	v        *View
	log      eventLog // its floor is raised to where the window can begin
	below    int64
	from, to time.Time
	pieces   []ledgerPiece
	spots    []ledgerSpot
}

// ledgerSpot says between which seqs the events of some minutes lie.
type ledgerSpot struct{ from, to, low, high int64 }

// ledgerPiece is a range of seqs, both bounds excluded. All events of a whole piece were received in the period, so
// that they can be counted by the index alone; in other pieces the time of each event is checked.
type ledgerPiece struct {
	above, below int64
	whole        bool
}

// ledgerWindow finds the pieces and adds up the figures of the period. If the figures place all events by their seqs,
// there is one whole piece, and pieces at its ends in which events of different periods are mixed.
func (v *View) ledgerWindow(ref string, from, to time.Time) (w ledgerWindow, all hookglass.Figures, err error) {
	log, err := v.eventLog(ref)
	if err != nil {
		return w, all, err
	}
	w = ledgerWindow{v: v, log: log, below: math.MaxInt64, from: from, to: to}
	narrow := log
	if err := v.bracket(&narrow, &w.below, query.Between(from.Add(-time.Microsecond), to)); err != nil {
		return w, all, err
	}
	before, within, after, err := w.figures()
	if err != nil {
		return w, all, err
	}
	w.log.floor = narrow.floor
	if within.Low > 0 { // one may lie beyond, whose clock was wrong by more than clockError
		w.log.floor = max(log.floor, min(narrow.floor, within.Low-1))
		w.below = max(w.below, next(within.High))
	}
	w.checkEach()
	// A small log was not bracketed: any event may be of the period, however wrong its clock was.
	if log.endpoint.EventCount >= bracketFrom && placed(before) && placed(within) && placed(after) {
		w.pieces = w.placedPieces(before, within, after)
	}
	return w, within, nil
}

// checkEach has the time of each event checked. The figures near a window do not tell whether an event lies in it whose
// clock was wrong by more than clockError.
func (w *ledgerWindow) checkEach() {
	w.pieces = []ledgerPiece{{above: w.log.floor, below: w.below}}
}

func placed(f hookglass.Figures) bool { return f.Placed == f.Events }

func (w ledgerWindow) placedPieces(before, within, after hookglass.Figures) []ledgerPiece {
	above, below := max(w.log.floor, before.High), w.below
	if after.Low > 0 {
		below = min(below, after.Low)
	}
	if above >= below {
		return w.pieces
	}
	pieces := []ledgerPiece{{above: above, below: below, whole: true}}
	if within.Low > 0 && within.Low <= above {
		pieces = append(pieces, ledgerPiece{above: max(within.Low-1, w.log.floor), below: above + 1})
	}
	if within.High >= below {
		pieces = append(pieces, ledgerPiece{above: below - 1, below: next(within.High)})
	}
	return pieces
}

// figures adds up what arrived in the period, and what arrived within clockError before and after it.
func (w *ledgerWindow) figures() (before, within, after hookglass.Figures, err error) {
	add := func(at, span int64, f hookglass.Figures) {
		if f.Placed > 0 {
			w.spots = append(w.spots, ledgerSpot{at, at + span, f.Low, f.High})
		}
		switch {
		case at < w.from.Unix()/60:
			before.Add(f)
		case at < w.to.Unix()/60:
			within.Add(f)
		default:
			after.Add(f)
		}
	}
	first, last := w.from.Add(-clockError).Truncate(time.Hour), w.to.Add(clockError+time.Hour).Truncate(time.Hour)
	cut := func(at time.Time) int64 { // the hour that a bound splits, to be read by minutes; -60: none
		if hour := at.Truncate(time.Hour); !hour.Equal(at) {
			return hour.Unix() / 60
		}
		return -spanHour
	}
	begin, end := cut(w.from), cut(w.to)
	err = w.v.queryEach(func(scan func(...any) error) error {
		var start, span int64
		f, err := scanFigures(func(dest ...any) error { return scan(append([]any{&start, &span}, dest...)...) })
		if err == nil {
			add(start, span, f)
		}
		return err
	}, `SELECT start, span, figures FROM rollups WHERE endpoint = $1 AND span = 60 AND start >= $2 AND start < $3 AND start <> $4 AND start <> $5
		UNION ALL SELECT start, span, figures FROM rollups WHERE endpoint = $1 AND span = 1 AND start >= $4 AND start < cast($4 AS bigint) + 60
		UNION ALL SELECT start, span, figures FROM rollups WHERE endpoint = $1 AND span = 1 AND start >= $5 AND start < cast($5 AS bigint) + 60 AND start >= cast($4 AS bigint) + 60`,
		w.log.endpoint.Num, first.Unix()/60, last.Unix()/60, begin, max(end, -spanHour))
	if err != nil {
		return before, within, after, err
	}
	tail, err := w.v.notRolled(w.log.endpoint.Num)
	for _, a := range tail {
		var f hookglass.Figures
		a.addTo(&f)
		add(a.ReceivedAt.Unix()/60, spanMinute, f)
	}
	return before, within, after, err
}

// among returns the condition for the events of a piece, for counting.
func (w ledgerWindow) among(a *args, p ledgerPiece) string {
	return w.timed(a, p, w.v.dialect.bounded(a, w.log.endpoint.Num, p.above, p.below))
}

// listed returns the condition for the events of a piece above a seq, for reading in order.
func (w ledgerWindow) listed(a *args, p ledgerPiece, above int64) string {
	return w.timed(a, p, w.v.dialect.within(a, w.log.endpoint.Num, max(above, p.above), p.below))
}

func (w ledgerWindow) timed(a *args, p ledgerPiece, condition string) string {
	if p.whole {
		return condition
	}
	return condition + " AND received_at >= " + a.add(w.from.UnixMicro()) + " AND received_at < " + a.add(w.to.UnixMicro())
}

// table returns the events of a piece as a table w.
func (w ledgerWindow) table(a *args, p ledgerPiece) string {
	return "(SELECT seq, received_at, spf FROM events WHERE " + w.among(a, p) + ") AS w"
}

// hull returns the smallest range that contains all pieces. It is not whole: see checkEach.
func (w ledgerWindow) hull() (h ledgerPiece) {
	h.above, h.below = w.pieces[0].above, w.pieces[0].below
	for _, p := range w.pieces {
		h.above, h.below = min(h.above, p.above), max(h.below, p.below)
	}
	return h
}

// since splits a whole piece at a time. All events of late were received after it, those of mixed may have been, and
// all others were received before it.
func (w ledgerWindow) since(p ledgerPiece, at time.Time) (late, mixed ledgerPiece) {
	minute, low, high := at.Unix()/60, int64(math.MaxInt64), p.above
	for _, s := range w.spots {
		if s.from <= minute {
			high = max(high, s.high)
		}
		if s.to > minute {
			low = min(low, s.low)
		}
	}
	late = ledgerPiece{above: min(high, p.below-1), below: p.below, whole: true}
	return late, ledgerPiece{above: max(min(low-1, late.above), p.above), below: late.above + 1, whole: true}
}

// ends returns the first and the last seq of a piece, or 0 if it is empty.
func (w ledgerWindow) ends(p ledgerPiece) (first, last int64, err error) {
	for _, order := range []struct {
		text string
		seq  *int64
	}{{oldestFirst, &first}, {newestFirst, &last}} {
		a := &args{}
		found, err := queryAll(w.v, scanNum, "SELECT seq FROM events WHERE "+w.v.dialect.within(a, w.log.endpoint.Num, p.above, p.below)+order.text+" LIMIT 1", a.all()...)
		if err != nil || len(found) == 0 {
			return 0, 0, err
		}
		*order.seq = found[0]
	}
	return first, last, nil
}

// sparse is how many seqs there may be per event of an endpoint for reading the records of a whole range of seqs to be
// cheaper than looking them up for each event.
const sparse = 4

// dense reports whether the kept events of a piece lie close together, and between which seqs.
func (w ledgerWindow) dense(p ledgerPiece, kept int64) (first, last int64, dense bool, err error) {
	if !p.whole || kept == 0 {
		return 0, 0, false, nil
	}
	first, last, err = w.ends(p)
	return first, last, err == nil && last-first < sparse*kept, err
}

// having returns the FROM and the start of the WHERE for the rows x of a table that belong to the events of a piece, of
// which there are kept. If these lie close together, rows are selected by the range of seqs. "endpoint + 0" keeps the
// index on the endpoint out, which may have any number of rows.
func (w ledgerWindow) having(a *args, table string, p ledgerPiece, kept int64) (string, error) {
	first, last, dense, err := w.dense(p, kept)
	if err != nil {
		return "", err
	}
	if dense {
		return " FROM " + table + " x WHERE x.event >= " + a.add(first) + " AND x.event <= " + a.add(last) + " AND x.endpoint + 0 = " + a.add(w.log.endpoint.Num), nil
	}
	return " FROM " + w.table(a, p) + w.v.dialect.each(table, "x.event = w.seq"), nil
}
