package capture

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/coding"
)

// maxUnpacked bounds how much of a compressed body is decompressed to read its parts, in bytes.
const maxUnpacked = 8 << 20

// parts yields the parts of a webhook's multipart body with their indexes. A compressed body is decompressed up to
// maxUnpacked bytes.
func parts(e *hookglass.Event) iter.Seq2[int, coding.Part] {
	if e.Payload == nil || e.Type == hookglass.EventEmail {
		return func(func(int, coding.Part) bool) {}
	}
	body := e.Body
	if plain, ok := coding.Beginning(body, coding.Of(e.Headers), maxUnpacked); ok {
		body = plain
	}
	return coding.Parts(body, e.ContentType)
}

// bodyParts lists the parts of a webhook's multipart body as the API shows them.
func bodyParts(e *hookglass.Event) (all []api.BodyPart) {
	for i, p := range parts(e) {
		sum := sha256.Sum256(p.Content)
		all = append(all, api.BodyPart{
			Index: i, Name: api.Text(p.Name), Filename: api.Text(p.Filename), ContentType: api.Text(p.ContentType),
			Size: int64(len(p.Content)), SHA256: hex.EncodeToString(sum[:]),
		})
	}
	return all
}

// Part returns a part of a webhook's multipart body by its index in the detail form. It answers not_found.
func Part(e *hookglass.Event, index int) (coding.Part, error) {
	for i, p := range parts(e) {
		if i == index {
			return p, nil
		}
	}
	return coding.Part{}, hookglass.NotFound("part")
}
