// Package batches is the page of one bulk replay: how far it is, what came of each request, and the way to pause or end
// it.
package batches

import (
	"embed"
	"fmt"
	"strconv"

	"hookglass"
	"hookglass/internal/web/cases"
	"hookglass/internal/web/layout"
)

// Files is the style.
//
//go:embed batches.css
var Files embed.FS

// State is the part that is kept fresh.
type State struct {
	Endpoint hookglass.EndpointID
	Batch    hookglass.ReplayBatch
	Items    []hookglass.BatchItem      // in the order in which they are sent, the first ones
	Events   map[int64]*hookglass.Event // of the items, by seq; those that were deleted are missing
}

// Model is what the page shows.
type Model struct {
	layout.Frame
	State
}

func (s State) path() string {
	return "/endpoints/" + string(s.Endpoint) + "/replay_batches/" + s.Batch.ID
}

// every is how often the part is looked at again, in milliseconds; "" once nothing will change.
func (s State) every() string {
	if s.Batch.State.Final() {
		return ""
	}
	return "1000"
}

func (s State) done() int64 { return s.Batch.Passed + s.Batch.Failed }

func (s State) say() string {
	text := fmt.Sprintf("%d of %d sent", s.done(), s.Batch.Total)
	if s.Batch.Failed > 0 {
		text += fmt.Sprintf(", %d failed", s.Batch.Failed)
	}
	return text + ": " + string(s.Batch.State)
}

// title returns a short title of an item's request, or "" if it was deleted.
func (s State) title(i hookglass.BatchItem) string {
	e := s.Events[i.EventSeq]
	if e == nil {
		return ""
	}
	return cases.Title(e)
}

func outcome(i hookglass.BatchItem) string {
	switch {
	case i.StatusCode > 0:
		return strconv.Itoa(i.StatusCode)
	case i.Failure != nil:
		return i.Failure.Message
	}
	return ""
}

// class is how a result looks.
func class(i hookglass.BatchItem) string {
	switch i.State {
	case hookglass.ItemPassed:
		return "good"
	case hookglass.ItemFailed:
		return "bad"
	}
	return ""
}
