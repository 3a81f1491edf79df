package capture

import "hookglass"

// PreviewResponse is the reply that an endpoint's own answer makes to an event, as its sender would get it. The event
// is in the detail form.
func PreviewResponse(r *hookglass.Response, e *hookglass.Event) *hookglass.Reply {
	return given(e.Method, customReply(r, e))
}
