package store

import (
	"database/sql"

	"hookglass"
)

func scanSearch(scan func(...any) error) (s hookglass.SavedSearch, err error) {
	var created sql.NullInt64
	err = scan(&s.ID, &s.EndpointNum, &s.Name, &s.Query, &created)
	s.CreatedAt = fromMicros(created)
	return s, err
}

// SavedSearches lists the saved searches of an endpoint by name.
func (v *View) SavedSearches(ref string) ([]hookglass.SavedSearch, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return nil, err
	}
	return queryAll(v, scanSearch, "SELECT num, endpoint, name, query, created_at FROM saved_searches WHERE endpoint = $1 ORDER BY "+v.dialect.byBytes("name")+", num", e.Num)
}

// SaveSearch stores a search and sets its ID. It replaces one of the same name at the endpoint.
func (tx *Tx) SaveSearch(s *hookglass.SavedSearch) error {
	s.CreatedAt = tx.Now
	return tx.queryRow("search", `INSERT INTO saved_searches (endpoint, name, query, created_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (endpoint, name) DO UPDATE SET query = excluded.query RETURNING num`,
		[]any{s.EndpointNum, s.Name, s.Query, micros(s.CreatedAt)}, &s.ID)
}

// DeleteSearch deletes a saved search of an endpoint.
func (tx *Tx) DeleteSearch(ref string, id int64) error {
	e, err := tx.Endpoint(ref)
	if err != nil {
		return err
	}
	return tx.change("search", "DELETE FROM saved_searches WHERE num = $1 AND endpoint = $2", id, e.Num)
}
