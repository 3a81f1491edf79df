package web

import (
	"encoding/csv"
	"net/http"
	"time"

	"hookglass"
	"hookglass/internal/httpd"
	"hookglass/internal/ledger"
	"hookglass/internal/store"
	"hookglass/internal/web/fresh"
	"hookglass/internal/web/layout"
	pages "hookglass/internal/web/ledger"
)

// Bounds of the ledger's page and file. The file is read in parts, each of which looks for the window anew.
const (
	ledgerPage = 25
	ledgerRead = 500
	ledgerFile = 50_000
)

func (a *app) registerLedger() {
	a.page("GET /endpoints/{endpoint}/ledger", a.showLedger)
	a.part("GET /endpoints/{endpoint}/ledger/book", a.ledgerBook)
	a.page("GET /endpoints/{endpoint}/ledger/file", a.ledgerFile)
}

func askedLedger(r *http.Request) pages.Asked {
	q := r.URL.Query()
	asked := pages.Asked{From: q.Get("from"), To: q.Get("to")}
	if asked == (pages.Asked{}) {
		asked.From = pages.DefaultFrom
	}
	return asked
}

// showLedger renders at once without the sums, which may take a while: the page fetches them. With sums=1, for browsers
// without scripts, they are included.
func (a *app) showLedger(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	m := pages.Model{Asked: askedLedger(r), Cursor: r.FormValue("cursor")}
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Metrics, fresh.Script); err != nil {
		return err
	}
	m.Frame.Title = "Ledger · " + e.Name
	if _, err := place(m.Cursor); err != nil {
		return err
	}
	now := a.DB.Now()
	span, err := ledger.ParseWindow(m.Asked.From, m.Asked.To, now)
	if faults := faultsOf(err); faults != nil {
		m.Fault = "The window: " + faults[0].Field + " " + faults[0].Message + "."
		return render(w, r, http.StatusUnprocessableEntity, pages.Page(m))
	}
	if err != nil {
		return err
	}
	if r.FormValue("sums") != "" {
		if err := a.addUp(r, v, e, span, now, &m); err != nil {
			return err
		}
	}
	return render(w, r, http.StatusOK, pages.Page(m))
}

// ledgerBook is the sums and the events alone.
func (a *app) ledgerBook(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	m := pages.Model{Asked: askedLedger(r), Cursor: r.FormValue("cursor")}
	m.Endpoint = e
	now := a.DB.Now()
	span, err := ledger.ParseWindow(m.Asked.From, m.Asked.To, now)
	if err != nil {
		return err
	}
	err = a.addUp(r, v, e, span, now, &m)
	if hookglass.Is(err, hookglass.CodeUnavailable) {
		m.Failed = "The totals could not be computed: the storage is busy or the window is too long. Try again or choose a shorter window."
	} else if err != nil {
		return err
	}
	return render(w, r, http.StatusOK, pages.Book(m))
}

func (a *app) addUp(r *http.Request, v visitor, e hookglass.Endpoint, span ledger.Window, now time.Time, m *pages.Model) error {
	after, err := place(m.Cursor)
	if err != nil {
		return err
	}
	m.Summed = true
	return a.DB.View(r.Context(), v.who, func(view *store.View) error {
		if m.Ledger, err = ledger.Read(view, string(e.ID), span, now); err != nil {
			return err
		}
		var next int64
		m.Lines, next, err = view.LedgerLines(string(e.ID), m.Ledger.From, m.Ledger.To, after, ledgerPage)
		if next > 0 {
			m.Next = cursor(next)
		}
		return err
	})
}

// ledgerFile serves all events of a window as CSV. After an error the download is incomplete, which browsers report.
func (a *app) ledgerFile(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	asked, now := askedLedger(r), a.DB.Now()
	span, err := ledger.ParseWindow(asked.From, asked.To, now)
	if err != nil {
		return err
	}
	book, err := store.Read(r.Context(), a.DB, v.who, func(view *store.View) (hookglass.Ledger, error) {
		return ledger.Read(view, string(e.ID), span, now)
	})
	if err != nil {
		return err
	}
	if book.Kept > ledgerFile {
		return hookglass.Errorf(hookglass.CodeValidationFailed, "This window has %d events, and a file holds at most %d. Choose a shorter window, or page through the API.", book.Kept, ledgerFile)
	}
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="ledger-`+string(e.ID)+`-`+book.From.UTC().Format("20060102T1504Z")+`.csv"`)
	out := csv.NewWriter(w)
	_ = out.Write(pages.Head) // what fails here fails at Flush
	for after := int64(0); ; {
		var lines []hookglass.LedgerLine
		err := a.DB.View(r.Context(), v.who, func(view *store.View) (err error) {
			lines, after, err = view.LedgerLines(string(e.ID), book.From, book.To, after, ledgerRead)
			return err
		})
		if err != nil {
			httpd.BrokeOff(r.Context(), err)
			panic(http.ErrAbortHandler) // half a file must not look like a whole one
		}
		for _, l := range lines {
			_ = out.Write(pages.Record(l))
		}
		if out.Flush(); out.Error() != nil || after == 0 {
			return nil
		}
	}
}
