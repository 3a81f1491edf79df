package rest

import (
	"bufio"
	"net/http"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/httpd"
)

type eventExport struct {
	InEndpoint
	EventFilter
	Format string `query:"format" words:"ndjson,har,csv,mbox" default:"ndjson" doc:"ndjson (the detail form, one a line), har, csv, or mbox (the raw messages of mail)." example:"ndjson"`
}

const exportBuffer = 64 << 10

func (s *service) export(t *table) {
	handleRaw(t, operation{
		id: "export-requests", method: http.MethodGet, path: "/endpoints/{endpoint_id}/requests/export", tag: "Requests", summary: "Export captured events",
		text: "What the filters select, oldest first, as a file. A file whose transfer breaks off is not whole. Where slow readers leave no room for large events, " +
			"a file that was begun goes on once there is some.",
		access: access{scope: hookglass.ScopeRead, key: true}, file: true,
	}, []string{"application/x-ndjson", "application/json", "text/csv", "application/mbox"}, s.exportRequests)
}

// exportRequests writes the file while it reads, however many events there are. An error after the beginning breaks the
// connection, so that the file does not look complete.
func (s *service) exportRequests(in *eventExport, w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	q, err := in.query(s.DB.Now())
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, exportBuffer)
	file, err := capture.NewExport(in.Format, out, func(e *hookglass.Event) any { return capture.Detail(e) })
	if err != nil {
		return err
	}
	e, err := s.existing(ctx, in.EndpointID)
	if err != nil {
		return err
	}
	if r.Method != http.MethodHead {
		if err := s.Captures.MayExport(ctx, asker(ctx)); err != nil {
			return err
		}
	}
	download(w, file.MediaType(), in.EndpointID+"."+in.Format)
	if r.Method == http.MethodHead {
		return nil
	}
	_ = http.NewResponseController(w).Flush() // send the headers now: a search may find nothing for longer than clients wait
	checked := time.Now()
	each := s.Captures.Each
	if in.Format == "ndjson" { // the detail form, which includes deliveries
		each = s.Captures.EachReported
	}
	err = each(ctx, asker(ctx), string(e.ID), q, func(e *hookglass.Event) error {
		if time.Since(checked) > poll {
			if !s.stillValid(r) {
				return http.ErrAbortHandler
			}
			checked = time.Now()
		}
		return file.Add(e)
	})
	if err == nil {
		err = file.Close()
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		httpd.BrokeOff(ctx, err)
		panic(http.ErrAbortHandler)
	}
	return nil
}
