package capture

import "hookglass"

// FillForTest is the body of a JSON answer made by the template.
func FillForTest(template, body string) []byte {
	return customReply(&hookglass.Response{Status: 200, Headers: map[string]string{"Content-Type": "application/json"}, Body: template},
		&Arrival{Method: "POST", Body: []byte(body)}, &hookglass.Event{}).Body
}

// HeaderForTest are the headers of an answer whose header is made by the template.
func HeaderForTest(template, body string) hookglass.Headers {
	t := Target{known: &target{}}
	t.Endpoint.Response = &hookglass.Response{Status: 200, Headers: map[string]string{"X-A": template}}
	return reply(t, &Arrival{Method: "POST", Body: []byte(body)}, &hookglass.Event{Payload: &hookglass.Payload{}}).Headers
}
