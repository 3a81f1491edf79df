package capture

import "hookglass"

// PreviewResponse returns the reply that a custom answer would give to the sender of an event in detail form.
func PreviewResponse(r *hookglass.Response, e *hookglass.Event) *hookglass.Reply {
	return given(e.Method, customReply(r, e))
}
