package cli

import (
	"errors"
	"slices"

	"hookglass"
	"hookglass/internal/query"
)

// untold are the search fields that only the server knows.
var untold = []query.Field{query.Signature, query.From, query.To, query.Subject, query.Attachment}

// listenFilter compiles a search on what a listener is sent of an event. Errors are for the user.
func listenFilter(text string) (func(*hookglass.Event) bool, error) {
	when, err := query.ParseCondition(text)
	var coded *hookglass.Error
	switch {
	case errors.As(err, &coded) && len(coded.Details) > 0:
		return nil, errors.New(coded.Details[0].Message)
	case err != nil:
		return nil, err
	case slices.ContainsFunc(when.Terms(), func(t query.Term) bool { return slices.Contains(untold, t.Field) }):
		return nil, errors.New("a listener is not told signature, from, to, subject and attachments of an event")
	}
	return when.Means, nil
}
