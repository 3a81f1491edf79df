package endpoint

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// maxSearches bounds the saved searches of an endpoint.
const maxSearches = 50

// SaveSearch saves a query of the endpoint's requests under a name, replacing one of the same name. It answers
// not_found, and validation_failed for an invalid query.
func (s *Service) SaveSearch(ctx context.Context, who hookglass.Principal, ref, name, q string) (saved hookglass.SavedSearch, err error) {
	name, q = strings.TrimSpace(name), strings.TrimSpace(q)
	if name == "" || utf8.RuneCountInString(name) > 60 || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return saved, hookglass.Invalid("name", "must be 1 to 60 characters without control characters")
	}
	switch {
	case q == "":
		return saved, hookglass.Invalid("q", "is empty")
	case !utf8.ValidString(q) || strings.Contains(q, "\x00"): // PostgreSQL cannot store it
		return saved, hookglass.Invalid("q", "must be UTF-8, without NUL characters")
	}
	if _, err := query.Parse(q, s.db.Now()); err != nil {
		return saved, err
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		e, err := tx.EndpointToChange(ref) // locked, so that concurrent saves count each other
		if err != nil {
			return err
		}
		all, err := tx.SavedSearches(ref)
		if err != nil {
			return err
		}
		named := func(other hookglass.SavedSearch) bool { return other.Name == name }
		if len(all) >= maxSearches && !slices.ContainsFunc(all, named) {
			return hookglass.Invalid("name", "would be one too many: %d searches can be saved", maxSearches)
		}
		saved = hookglass.SavedSearch{EndpointNum: e.Num, Name: name, Query: q}
		return tx.SaveSearch(&saved)
	})
	return saved, err
}

// DeleteSearch deletes a saved search. It answers not_found.
func (s *Service) DeleteSearch(ctx context.Context, who hookglass.Principal, ref string, id int64) error {
	return s.db.Update(ctx, who, func(tx *store.Tx) error { return tx.DeleteSearch(ref, id) })
}
