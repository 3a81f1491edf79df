package cli

import (
	"fmt"
	"strings"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/paste"
	"hookglass/internal/server"
)

// pasted writes code that sends a request again, in a language.
func pasted(t *server.Terminal, e api.EventDetail, language string) error {
	if e.Type == "email" {
		return outcome{exitUsage, "--as writes what sends a webhook again, and this is a mail; --body writes the whole message"}
	}
	body, _ := bodyOf(e)
	e = e.Exact()
	event := &hookglass.Event{ID: hookglass.EventID(e.ID), Method: e.Method, URL: e.URL, Payload: &hookglass.Payload{Headers: headersOf(e), Body: body}}
	for _, c := range paste.Copies(event) {
		if strings.EqualFold(c.Name, language) {
			if _, err := fmt.Fprintln(t.Out, c.Text); err != nil {
				return err
			}
		}
	}
	if file := paste.BodyFile(event); file != "" {
		fmt.Fprintf(t.Err, "the body is read from a file: hookglass requests get %s --body > %s\n", e.ID, file)
	}
	return nil
}
