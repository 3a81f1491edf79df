package cli

import (
	"fmt"
	"strings"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/paste"
	"hookglass/internal/server"
)

// pasted writes what sends a request again, in a language.
func pasted(t *server.Terminal, e api.EventDetail, language string) error {
	if e.Type == "email" {
		return outcome{exitUsage, "--as writes what sends a webhook again, and this is a mail; --body writes the whole message"}
	}
	body, _ := bodyOf(e)
	headers := make(hookglass.Headers, len(e.HeaderList))
	for i, h := range e.HeaderList {
		headers[i] = hookglass.Header{Name: h[0], Value: h[1]}
	}
	event := &hookglass.Event{ID: hookglass.EventID(e.ID), Method: e.Method, URL: e.URL, Payload: &hookglass.Payload{Headers: headers, Body: body}}
	for _, c := range paste.Copies(event) {
		if strings.EqualFold(c.Name, language) {
			if _, err := fmt.Fprintln(t.Out, c.Text); err != nil {
				return err
			}
		}
	}
	if mayBeLatin1(e.URL) {
		fmt.Fprintln(t.Err, "the URL may have come in Latin-1: what is not ASCII in it is sent as UTF-8")
	}
	for _, h := range headers {
		if mayBeLatin1(h.Value) {
			fmt.Fprintf(t.Err, "%s may have come in Latin-1: what is not ASCII in it is sent as UTF-8\n", h.Name)
		}
	}
	if file := paste.BodyFile(event); file != "" {
		fmt.Fprintf(t.Err, "the body is read from a file: hookglass requests get %s --body > %s\n", e.ID, file)
	}
	return nil
}

// mayBeLatin1 reports whether a text of the API may stand for bytes that were no UTF-8 ([hookglass.Readable]): which
// ones came is not seen from it.
func mayBeLatin1(s string) bool {
	ascii := true
	for _, r := range s {
		if r > 0xff {
			return false
		}
		ascii = ascii && r < 0x80
	}
	return !ascii
}
