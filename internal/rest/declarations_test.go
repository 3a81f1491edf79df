package rest_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestDeclarationsOverREST(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		const body = `{"declaration":{"endpoints":[{"custom_id":"declared","name":"D","forwarding_targets":[{"name":"a","url":"https://a.example.com"}]}]},"dry_run":true}`
		var out struct {
			Data struct {
				Applied bool
				Changed int
				Changes []struct {
					Op, Kind, Endpoint, Name string
					ID                       *string
				}
			}
		}
		s.want(http.StatusOK, http.MethodPost, "/declarations", body, &out)
		if out.Data.Applied || out.Data.Changed != 2 || len(out.Data.Changes) != 2 || out.Data.Changes[0].ID != nil {
			t.Errorf("dry run: %+v", out.Data)
		}
		s.want(http.StatusNotFound, http.MethodGet, "/endpoints/declared", "", nil)
		s.want(http.StatusOK, http.MethodPost, "/declarations", strings.Replace(body, `,"dry_run":true`, "", 1), &out)
		if !out.Data.Applied || out.Data.Changed != 2 || out.Data.Changes[0].ID == nil {
			t.Errorf("applied: %+v", out.Data)
		}
		s.want(http.StatusOK, http.MethodGet, "/endpoints/declared", "", nil)
		for text, field := range map[string]string{
			`{}`: "declaration",
			`{"declaration":{"endpoints":[{"custom_id":"x y"}]}}`:               "declaration.endpoints.0.custom_id",
			`{"declaration":{"endpoints":[{"custom_id":"xy","shape":1}]}}`:      "declaration.endpoints.0.shape",
			`{"declaration":{"endpoints":[{"custom_id":"xy","actions":[{}]}]}}`: "declaration.endpoints.0.actions.0.name",
			`{"declaration":{"endpoints":"x"}}`:                                 "declaration.endpoints",
			`{"declaration":{},"dry_run":null}`:                                 "dry_run",
			`{"declaration":{"account":"1"}}`:                                   "declaration.account",
		} {
			var failure struct {
				Error   string
				Details []struct{ Field string }
			}
			s.want(http.StatusUnprocessableEntity, http.MethodPost, "/declarations", text, &failure)
			if failure.Error != "validation_failed" || len(failure.Details) == 0 || failure.Details[0].Field != field {
				t.Errorf("%s: %+v", text, failure)
			}
		}
	})
}
