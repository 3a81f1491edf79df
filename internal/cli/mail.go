package cli

import (
	"cmp"
	"fmt"
	"strings"

	"hookglass/api"
)

// mailDetail formats a mail for people: its header, its text, and its links and codes. The raw message is in the JSON.
func mailDetail(e api.EventDetail) string {
	var b strings.Builder
	var client *string
	to := e.Path
	if e.Envelope != nil {
		client, to = e.Envelope.ClientIP, cmp.Or(strings.Join(e.Envelope.RcptTo, ", "), to)
	}
	fmt.Fprintf(&b, "%s  %s  to %s  from %s  %s", e.ID, clock(&e.RequestedAt), visible(to), orDash(client), e.DetectedProvider)
	if e.ProviderEventData != nil && e.ProviderEventData.EventType != nil {
		fmt.Fprintf(&b, " %s", visible(*e.ProviderEventData.EventType))
	}
	if a := e.Authentication; a != nil {
		fmt.Fprintf(&b, "  SPF %s, DKIM %s, DMARC %s", a.SPF, a.DKIM, a.DMARC)
	}
	b.WriteString(noted(e) + "\n\n")
	for _, h := range e.HeaderList {
		fmt.Fprintf(&b, "%s: %s\n", visible(h[0]), visible(h[1]))
	}
	if text := cmp.Or(deref(e.TextBody), deref(e.HTMLBody)); text != "" {
		fmt.Fprintf(&b, "\n%s\n", visibleLines(strings.TrimRight(text, "\r\n")))
	}
	if x := e.Extracted; x != nil {
		section(&b, "Codes", x.Codes)
		section(&b, "Links", x.Links)
	}
	var files []string
	for _, f := range e.AttachmentMetadata {
		files = append(files, fmt.Sprintf("%d  %s  %s  %s", f.Index, f.Filename, f.ContentType, plural(f.Size, "byte", "bytes")))
	}
	section(&b, "Attachments", files)
	section(&b, "Faults", e.ParseFaults)
	switch {
	case e.ResponseStatusSent != nil:
		fmt.Fprintf(&b, "\nAnswered %d %s (by the script)\n", *e.ResponseStatusSent, visible(deref(e.ResponseBodySent)))
	case e.ResponseSource != "":
		b.WriteString(notAnswered)
	}
	return b.String()
}

// section writes a title and lines, or nothing without lines.
func section(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, l := range lines {
		fmt.Fprintf(b, "  %s\n", visible(l))
	}
}
