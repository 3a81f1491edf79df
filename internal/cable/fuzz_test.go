package cable_test

import (
	"testing"

	"hookglass/internal/cable"
)

// What a client sends is read without a panic, and means a command, an endpoint or a report, or nothing.
func FuzzCommands(f *testing.F) {
	f.Add(`{"command":"subscribe","identifier":"{\"channel\":\"TunnelChannel\",\"endpoint_id\":\"ep_x\"}"}`)
	f.Add(`{"command":"message","identifier":"x","data":"{\"action\":\"delivery_report\",\"status_code\":200}"}`)
	f.Add(`{"channel":"TunnelChannel","endpoint_id":"ep_x","client_metadata":{"hostname":7}}`)
	f.Add(`{"action":"delivery_report","status_code":"x","delivery_attempt_id":"a"}`)
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = cable.ParseCommand([]byte(text))
		if w, err := cable.ParseIdentifier(text); err == nil && w.Endpoint == "" {
			t.Errorf("%q names no endpoint", text)
		}
		_, _ = cable.ParseAction(text)
	})
}
