package web

import (
	"cmp"
	"mime"
	"net/http"
	"strconv"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/email"
	"hookglass/internal/web/inspector"
)

// mailHTML serves the HTML of a mail as its sender wrote it, in a response that runs nothing and, unless asked to,
// loads nothing.
func (a *app) mailHTML(w http.ResponseWriter, r *http.Request) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	event, err := a.event(r.Context(), v, e, r.PathValue("event"))
	if err != nil {
		return err
	}
	if event.Type != hookglass.EventEmail {
		return hookglass.NotFound("message")
	}
	remote := ""
	loads := r.FormValue("remote") == "1"
	h := w.Header()
	if loads {
		remote = " https: http:"
	} else {
		h.Set("X-Dns-Prefetch-Control", "off") // browsers look up hosts of links on pages without TLS, and a host name may identify the reader
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; script-src 'none'; style-src 'unsafe-inline'"+remote+"; img-src data:"+remote+
		"; font-src data:"+remote+"; form-action 'none'; base-uri 'none'; frame-ancestors 'self'")
	answer(w, r, http.StatusOK, []byte(inspector.MailHTML(event.Body, loads)))
	return nil
}

func (a *app) attachment(w http.ResponseWriter, r *http.Request) error {
	return a.file(w, r, func(event *hookglass.Event, n int) ([]byte, string, error) {
		if event.Type != hookglass.EventEmail {
			return nil, "", hookglass.NotFound("attachment")
		}
		content, file, err := email.Attachment(event.Body, n)
		return content, file.Filename, err
	})
}

func (a *app) bodyPart(w http.ResponseWriter, r *http.Request) error {
	return a.file(w, r, func(event *hookglass.Event, n int) ([]byte, string, error) {
		part, err := capture.Part(event, n)
		return part.Content, cmp.Or(part.Filename, "part"), err
	})
}

// file serves a part of a request as a download that no browser renders.
func (a *app) file(w http.ResponseWriter, r *http.Request, part func(*hookglass.Event, int) ([]byte, string, error)) error {
	v, e, err := a.open(r)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(r.PathValue("index"))
	if err != nil {
		return hookglass.NotFound("part")
	}
	event, err := a.held(r.Context(), v, e, r.PathValue("event"), 2) // and what it is decoded to
	if err != nil {
		return err
	}
	content, name, err := part(event, n)
	if err != nil {
		return err
	}
	download(w, "application/octet-stream", name)
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // nobody is left to tell
	return nil
}

// download sets the headers for a file to be saved, not displayed.
func download(w http.ResponseWriter, media, name string) {
	disposition := mime.FormatMediaType("attachment", map[string]string{"filename": name})
	if disposition == "" {
		disposition = "attachment" // the name cannot be expressed in a header
	}
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Disposition", disposition)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
}
