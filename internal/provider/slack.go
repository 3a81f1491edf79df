package provider

// Slack signs its version, the timestamp header and the body. The timestamp may be 300 seconds off in either direction,
// according to its documentation (one of its libraries checks only the past).
func slackSchemes() []*scheme {
	return []*scheme{{
		Headers: []string{"X-Slack-Signature"}, Encoding: "hex", Prefix: "v0=", TimeHeader: "X-Slack-Request-Timestamp",
		Tolerance: 300, Payload: []string{"v0:{time}:{body}"},
	}}
}

// describeSlack handles the three forms of Slack's requests: JSON events, interactions (JSON in the form field payload)
// and slash commands (a plain form).
func describeSlack(in *input, d *Detection) {
	if in.isForm() && len(in.doc()) == 0 { // manual tests often send JSON labelled as a form
		if payload, ok := formValue(in.params(), "payload"); ok {
			d.EventType = printable(parseJSON([]byte(payload)).child("type").text(), fieldBytes)
		} else if _, ok := formValue(in.params(), "command"); ok {
			d.EventType = "slash_command"
		}
		return
	}
	d.EventType = printable(in.at([]string{"type"}).text(), fieldBytes)
	d.EventID = printable(in.at([]string{"event_id"}).text(), fieldBytes)
	if d.EventType == "event_callback" {
		d.Flavour = d.EventType
		d.EventType = printable(in.at([]string{"event", "type"}).text(), fieldBytes)
	}
}
