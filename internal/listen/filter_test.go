package listen_test

import (
	"slices"
	"strings"
	"testing"

	"hookglass/api"
	"hookglass/internal/listen"
)

func TestWhatASearchMeansOfWhatAListenerIsTold(t *testing.T) {
	kind, contentType := "invoice.paid", "application/json"
	event := api.TunnelRequest{
		ID: "req_1", Method: "PUT", Path: "/orders/7", QueryString: "page=2", HeaderList: [][2]string{{"X-Plan", "gold"}, {"X-Name", "caf\u00e9"}}, Latin1: []string{"/header_list/1/1"},
		Body: base64of(`{"type":"order","n":7}`), BodySize: 22, ContentType: &contentType, IPAddress: some("203.0.113.7"), DetectedProvider: "stripe", ProviderEventData: &api.ProviderEventData{EventType: &kind},
	}
	mail := api.TunnelRequest{ID: "eml_1", Method: "EMAIL", Path: "inbox@mail.test", Body: base64of(`{"subject":"Your invoice"}`)}
	for when, want := range map[string][]string{
		"method:PUT path:/orders/* query.page:2": {"req_1"}, "-method:PUT": {"eml_1"}, "header.x-plan:gold": {"req_1"}, "header.x-name:café": {"req_1"}, "header.x-plan:silver": nil,
		"body./type:order body./n:7": {"req_1"}, "body./subject:*invoice": {"eml_1"}, "invoice": {"eml_1"}, "type:json": {"req_1"}, "ip:203.0.113.7": {"req_1"}, "size:>20": {"req_1"}, "size:>22": nil,
		"provider:stripe event:invoice.*": {"req_1"}, "is:email": {"eml_1"}, "id:req_1": {"req_1"}, "": {"req_1", "eml_1"},
	} {
		f, err := listen.ParseFilter(when)
		if err != nil {
			t.Fatalf("%q: %v", when, err)
		}
		var got []string
		for _, r := range []api.TunnelRequest{event, mail} {
			if f.Means(&r) {
				got = append(got, r.ID)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q means %q, want %q", when, got, want)
		}
	}
	if none := (*listen.Filter)(nil); !none.Means(&event) {
		t.Error("without a search an event is left out")
	}
	for _, text := range []string{"signature:failed", "from:a", "-to:b", "subject:c", "status:200", "tag:x", "after:1h", `"not closed`, "size:big", "delivery:failed", strings.Repeat("a", 1001)} {
		if _, err := listen.ParseFilter(text); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
