package listen_test

import (
	"reflect"
	"testing"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/listen"
)

func TestWhatAListenerIsToldOfAnEvent(t *testing.T) {
	kind, contentType := "invoice.paid", "application/json"
	for _, c := range []struct {
		from api.TunnelRequest
		want hookglass.Event
	}{
		{api.TunnelRequest{
			ID: "req_1", Method: "PUT", Path: "/orders/caf\u00e9", QueryString: "page=2", HeaderList: [][2]string{{"X-Plan", "gold"}, {"X-Name", "caf\u00e9"}}, Latin1: []string{"/header_list/1/1"},
			Body: base64of("{}"), BodySize: 2, ContentType: &contentType, IPAddress: some("203.0.113.7"), DetectedProvider: "stripe", ProviderEventData: &api.ProviderEventData{EventType: &kind},
		}, hookglass.Event{
			ID: "req_1", Type: hookglass.EventWebhook, Method: "PUT", Path: "/orders/caf\u00e9", RawQuery: "page=2", Size: 2, ContentType: contentType, IP: "203.0.113.7", Provider: "stripe", EventType: kind,
			Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "X-Plan", Value: "gold"}, {Name: "X-Name", Value: "caf\xe9"}}, Body: []byte("{}")},
		}},
		{api.TunnelRequest{ID: "eml_1", Method: "EMAIL", Path: "inbox@mail.test", Headers: map[string]string{"Subject": "Hi"}, Body: base64of(`{"subject":"Hi"}`)}, hookglass.Event{
			ID: "eml_1", Type: hookglass.EventEmail, Method: "EMAIL", Path: "inbox@mail.test",
			Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "Subject", Value: "Hi"}}, Body: []byte(`{"subject":"Hi"}`)},
		}},
	} {
		if got := listen.Event(&c.from); !reflect.DeepEqual(*got, c.want) {
			t.Errorf("told\n%+v %+v, want\n%+v %+v", *got, *got.Payload, c.want, *c.want.Payload)
		}
	}
}
