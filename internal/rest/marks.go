package rest

import (
	"context"
	"net/http"
	"strings"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
)

type eventTag struct {
	EventPath
	Tag string `path:"tag" doc:"The tag's name." example:"billing"`
}

// marks are what people put on an event: tags, a note, and that it is to be ignored.
func (s *service) marks(t *table) {
	const tag, base = "Requests", "/endpoints/{endpoint_id}/requests/{id}"
	write := access{scope: hookglass.ScopeWrite}
	handle(t, operation{
		id: "tag-request", method: http.MethodPut, path: base + "/tags/{tag}", tag: tag, summary: "Tag a captured event", access: write,
		text: "A tag that the workspace does not have is made.", errors: []int{http.StatusUnprocessableEntity},
	}, s.tagRequest)
	handle(t, operation{
		id: "untag-request", method: http.MethodDelete, path: base + "/tags/{tag}", tag: tag, summary: "Take a tag off a captured event", access: write,
		text: "The answer is the tags that it still has. The tag itself stays in the workspace. A tag that the event does not have is no error.",
	}, s.untagRequest)
	handleBody(t, operation{
		id: "note-request", method: http.MethodPut, path: base + "/note", tag: tag, summary: "Write a note on a captured event", access: write,
		text: "In place of the one that it had; null takes it off. What is blank around it is left out.",
	}, s.noteRequest)
	handleBody(t, operation{
		id: "ignore-request", method: http.MethodPost, path: base + "/ignore", tag: tag, summary: "Ignore a captured event", access: write,
		text: "It leaves the default list and counts in no figure of health. Without a body the reason is noise.", bare: true,
	}, s.ignoreRequest)
	handle(t, operation{
		id: "unignore-request", method: http.MethodDelete, path: base + "/ignore", tag: tag, summary: "Stop ignoring a captured event", access: write,
		text: "It is in the default list again, and counts in figures and alerts from then on. The answer is the event; of one that is not ignored, as it is.",
	}, s.unignoreRequest)
}

func (s *service) tagRequest(ctx context.Context, in *eventTag) (out api.One[api.EventTags], err error) {
	tags, err := s.Captures.Tag(ctx, asker(ctx), in.EndpointID, in.ID, in.Tag)
	return tagsOf(tags), err
}

func (s *service) untagRequest(ctx context.Context, in *eventTag) (out api.One[api.EventTags], err error) {
	tags, err := s.Captures.Untag(ctx, asker(ctx), in.EndpointID, in.ID, in.Tag)
	return tagsOf(tags), err
}

func tagsOf(tags []string) (out api.One[api.EventTags]) {
	out.Data.Tags = append([]string{}, tags...)
	return out
}

func (s *service) noteRequest(ctx context.Context, in *EventPath, body *api.NoteEvent) (out api.One[api.Event], err error) {
	if !body.Note.Set {
		return out, hookglass.Invalid("note", "is required; null takes it off")
	}
	if err := s.Captures.SetNote(ctx, asker(ctx), in.EndpointID, in.ID, body.Note.Value); err != nil {
		return out, err
	}
	return s.listForm(ctx, in)
}

func (s *service) ignoreRequest(ctx context.Context, in *EventPath, body *api.IgnoreEvent) (out api.One[api.Event], err error) {
	if body.Reason.Null || body.Reason.Set && body.Reason.Value == "" {
		return out, hookglass.Invalid("reason", "must be one of %s", strings.Join(hookglass.IgnoreReasons, ", "))
	}
	if err := s.Captures.Ignore(ctx, asker(ctx), in.EndpointID, in.ID, body.Reason.Value); err != nil {
		return out, err
	}
	return s.listForm(ctx, in)
}

func (s *service) unignoreRequest(ctx context.Context, in *EventPath) (out api.One[api.Event], err error) {
	if err := s.Captures.Unignore(ctx, asker(ctx), in.EndpointID, in.ID); err != nil {
		return out, err
	}
	return s.listForm(ctx, in)
}

func (s *service) listForm(ctx context.Context, in *EventPath) (api.One[api.Event], error) {
	return single(ctx, s, func(v *store.View) (*hookglass.Event, error) { return v.ListedEvent(in.EndpointID, in.ID) }, api.FromEvent)
}
