package rest_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A client counts characters, because maxLength in the description does (JSON Schema).
func TestLimitsOfTextCountCharacters(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		id := s.newEndpoint("").ID
		endpoint := "/endpoints/" + id
		for name, c := range map[string]struct {
			most               int
			text               string // with ~ in the place of characters of more than one byte
			method, path, body string // with $ in the place of the text
		}{
			"script":           {1000, "200~,500", "PATCH", endpoint, `{"endpoint":{"response_script":"$"}}`},
			"prefix":           {200, "~", "POST", endpoint + "/signature_configs?force=true", `{"signature_config":{"provider":"generic_hmac","secret":"s3cr3t","options":{"prefix":"$"}}}`},
			"template":         {500, "{body}~", "POST", endpoint + "/signature_configs?force=true", `{"signature_config":{"provider":"generic_hmac","secret":"s3cr3t","options":{"payload_template":"$"}}}`},
			"signature secret": {4096, "~", "POST", endpoint + "/signature_configs?force=true", `{"signature_config":{"provider":"github","secret":"$"}}`},
			"target URL":       {2048, "https://example.com/~", "POST", endpoint + "/forwarding_targets", `{"forwarding_target":{"name":"T","url":"$"}}`},
			"duplicates":       {200, "/~", "POST", endpoint + "/forwarding_targets", `{"forwarding_target":{"name":"T","url":"https://example.com","dedupe_by":"$"}}`},
			"step URL":         {2048, "https://example.com/~", "POST", endpoint + "/actions", `{"endpoint_action":{"name":"A","steps":[{"step_type":"forward","name":"F","config":{"url":"$"}}]}}`},
			"channel URL":      {2048, "https://example.com/~", "POST", "/notification_channels", `{"notification_channel":{"name":"C1","kind":"webhook","config":{"url":"$"}}}`},
			"channel secret":   {256, "~", "POST", "/notification_channels", `{"notification_channel":{"name":"C2","kind":"webhook","config":{"url":"https://example.com","secret":"$"}}}`},
			"flow event type":  {500, "~", "POST", "/flows", `{"flow":{"steps":[{"endpoint_id":"` + id + `","event_type":"$"}]}}`},
			"list provider":    {1000, "~", "GET", endpoint + "/requests?provider=$", ""},
			"list event type":  {1000, "~", "GET", endpoint + "/requests?event_type=$", ""},
			"list tag":         {1000, "~", "GET", endpoint + "/requests?tag=$", ""},
			"list type":        {1000, "~", "GET", endpoint + "/requests?content_type=$", ""},
		} {
			t.Run(name, func(t *testing.T) {
				call := func(characters int) (status int, answer string) {
					filler := "😀"
					if name == "script" {
						filler = "\u3000" // a script takes others only as space around its entries
					}
					text := strings.Replace(c.text, "~", strings.Repeat(filler, characters-utf8.RuneCountInString(c.text)+1), 1)
					res, answer := s.call(s.token, c.method, strings.Replace(c.path, "$", url.QueryEscape(text), 1), strings.Replace(c.body, "$", text, 1))
					return res.StatusCode, answer
				}
				if status, answer := call(c.most); !slices.Contains([]int{200, 201}, status) {
					t.Errorf("%d characters: %d %s", c.most, status, answer)
				}
				if status, answer := call(c.most + 1); status != 422 || !strings.Contains(answer, "characters") {
					t.Errorf("%d characters: %d %s", c.most+1, status, answer)
				}
			})
		}
	})
}
