package rest_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
)

func TestALinkToARequestIsMadeListedAndRevoked(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		event, other := s.arriveFrom(e.ID, someone), s.arriveFrom(e.ID, `{}`)
		of := func(event string) string { return "/endpoints/" + e.ID + "/requests/" + event + "/share_links" }
		all := "/endpoints/" + e.ID + "/share_links"
		create := func(event, body string) api.ShareLink {
			t.Helper()
			var made api.One[api.ShareLink]
			s.want(201, "POST", of(event), body, &made)
			return made.Data
		}
		first := create(event, "")
		secret, found := strings.CutPrefix(first.URL, "https://hooks.example.com/shared/")
		if !found || first.ID == 0 || first.RequestID != event || first.ExpiresAt.Sub(first.CreatedAt.Time) != 7*24*time.Hour {
			t.Fatalf("%+v", first)
		}
		seen, link, err := s.deps.Shares.Open(t.Context(), secret)
		if err != nil || string(seen.ID) != event || link.ID != first.ID || strings.Contains(string(seen.Body)+seen.Headers.Get("Authorization"), "canary") {
			t.Fatalf("%+v, %v", link, err)
		}
		if link.CreatedBy != s.owner.User.ID {
			t.Errorf("it was made by %d", link.CreatedBy)
		}
		second := create(event, `{"share_link":{"expires_in":60}}`)
		if second.ExpiresAt.Sub(second.CreatedAt.Time) != time.Minute || second.URL == first.URL {
			t.Errorf("%+v", second)
		}
		third := create(other, `{"share_link":{"expires_in":2592000}}`)

		list := func(path string) (ids []int64, next *string) {
			t.Helper()
			res, text := s.call(s.token, "GET", path, "")
			if res.StatusCode != 200 || strings.Contains(text, "/shared/") {
				t.Fatalf("%s: %d %s", path, res.StatusCode, text)
			}
			var page api.List[api.ShareLink]
			s.want(200, "GET", path, "", &page)
			for _, l := range page.Data {
				ids = append(ids, l.ID)
			}
			return ids, page.Meta.NextCursor
		}
		same := func(path string, want ...int64) {
			t.Helper()
			if got, next := list(path); !slices.Equal(got, want) || next != nil {
				t.Errorf("%s: %v, want %v", path, got, want)
			}
		}
		same(all, third.ID, second.ID, first.ID)
		same(of(event), second.ID, first.ID)
		if page, next := list(all + "?limit=2"); !slices.Equal(page, []int64{third.ID, second.ID}) || next == nil {
			t.Errorf("%v %v", page, next)
		} else {
			same(all+"?limit=2&cursor="+*next, first.ID)
		}

		s.want(200, "DELETE", all+"/"+strconv.FormatInt(first.ID, 10), "", nil)
		if _, _, err := s.deps.Shares.Open(t.Context(), secret); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("a revoked link: %v", err)
		}
		same(of(event), second.ID)
		s.wantError(404, "not_found", "DELETE", all+"/"+strconv.FormatInt(first.ID, 10), "")
		s.wantError(404, "not_found", "DELETE", "/endpoints/"+s.newEndpoint("").ID+"/share_links/"+strconv.FormatInt(second.ID, 10), "")
		s.want(200, "DELETE", "/endpoints/"+e.ID+"/requests/"+other, "", nil)
		same(all, second.ID) // what is left leads to something
		s.wantError(404, "not_found", "GET", of(other), "")
		s.wantError(404, "not_found", "POST", of(other), "")
		s.want(200, "DELETE", "/endpoints/"+e.ID+"/requests/destroy_all", "", nil)
		same(all)
	})
}

func TestTheLifeOfALinkIsBounded(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		at := "/endpoints/" + e.ID + "/requests/" + s.arrive(e.ID, nil) + "/share_links"
		for _, life := range []string{"59", "0", "-1", "2592001", "9223372036854775807", "-9223372036854775808", "null", `"60"`, "60.5"} {
			res, text := s.call(s.token, "POST", at, `{"share_link":{"expires_in":`+life+`}}`)
			if res.StatusCode != 422 || !strings.Contains(text, "share_link.expires_in") {
				t.Errorf("%s: %d %s", life, res.StatusCode, text)
			}
		}
		s.wantError(422, "validation_failed", "POST", at, `{"expires_in":60}`)
		s.want(201, "POST", at, `{}`, nil)
		s.want(201, "POST", at, `{"share_link":{}}`, nil)
	})
}
