package web

import (
	"context"
	"net/http"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/web/batches"
	"hookglass/internal/web/fresh"
	"hookglass/internal/web/layout"
)

// shownItems bounds the requests of a bulk replay that are listed.
const shownItems = 200

func (a *app) registerBatches() {
	const one = "/endpoints/{endpoint}/replay_batches/{batch}"
	a.page("GET "+one, a.showBatch)
	a.part("GET "+one+"/state", ofEndpoint(a, a.batchState, batches.Live))
	a.page("POST "+one+"/pause", a.moveBatch(a.Replays.Pause))
	a.page("POST "+one+"/resume", a.moveBatch(a.Replays.Resume))
	a.page("POST "+one+"/cancel", a.moveBatch(a.Replays.Cancel))
}

func (a *app) showBatch(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.own(r)
	if err != nil {
		return err
	}
	m := batches.Model{}
	if m.Frame, err = a.endpointFrame(r.Context(), v, e, layout.Requests, fresh.Script); err != nil {
		return err
	}
	m.Frame.Title = "Bulk replay · " + e.Name
	if m.State, err = a.batchState(r, v, e); err != nil {
		return err
	}
	return render(w, r, http.StatusOK, batches.Page(m))
}

func (a *app) batchState(r *http.Request, v visitor, e hookglass.Endpoint) (s batches.State, err error) {
	s.Endpoint = e.ID
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		if s.Batch, err = view.ReplayBatch(string(e.ID), r.PathValue("batch")); err != nil {
			return err
		}
		if s.Items, err = view.BatchItems(string(e.ID), s.Batch.ID, 0, shownItems); err != nil {
			return err
		}
		seqs := make([]int64, 0, len(s.Items))
		for _, i := range s.Items {
			seqs = append(seqs, i.EventSeq)
		}
		s.Events, err = view.EventsBySeq(seqs, -1) // without payloads
		return err
	})
	return s, err
}

func (a *app) moveBatch(move func(context.Context, hookglass.Principal, string, string) (hookglass.ReplayBatch, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		v, e, err := a.own(r)
		if err != nil {
			return err
		}
		id := r.PathValue("batch")
		if _, err := move(r.Context(), v.who, string(e.ID), id); err != nil && !hookglass.Is(err, hookglass.CodeConflict) { // it ended meanwhile: the page says so
			return err
		}
		redirect(w, r, "/endpoints/"+string(e.ID)+"/replay_batches/"+id)
		return nil
	}
}
