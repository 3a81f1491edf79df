package redact_test

import (
	"strings"
	"testing"

	"hookglass/internal/redact"
)

// What has the form of a credential is hidden under whatever name, and nothing beside it.
func TestFormsOfCredentials(t *testing.T) {
	const id = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"
	r := redact.New()
	for _, credential := range []string{
		"sk_live_" + id, "rk_test_" + id, "whsec_MfKQ9r8GKYqrTwjU/PD8ILPZ+o=", "ghp_" + id, "github_pat_11AB_" + id,
		"glpat-" + id, "xoxb-123-456-" + id, "xapp-1-A0-" + id, "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE",
		"AIzaSyA1234567890abcdefghijklmnopqrstuv", "ya29." + id, "GOCSPX-" + id, "SG." + id + "." + id, "npm_" + id,
		"pypi-AgEIcHlwaS5vcmc" + id, "shpat_" + id, "sk-proj-" + id, "sk-ant-api03-" + id, "hf_" + id, "dop_v1_" + id,
		"hvs." + id, "dapi" + id, "AGE-SECRET-KEY-1QQQQQQQQQQ23456789QQQ", "hg_" + id,
		"hooks.slack.com/services/T000/B000/" + id, "hooks.slack.com/actions/T000/1/" + id,
		"hooks.slack.com/commands/T000/1/" + id, "hooks.slack-gov.com/actions/T000/1/" + id,
		`hooks.slack.com\/actions\/T000\/1\/` + id, `hooks.slack.com\\\/actions\\\/T000\\\/1\\\/` + id,
		"api.telegram.org/bot123456789:" + id, "123456789:AA" + id[:33], "discord.com/api/webhooks/123456789012345678/" + id,
		"Bearer " + id, "bearer 123e4567-e89b", "Basic dXNlcjpwYXNz", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_1",
		"eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.",
		"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n" + id + "\n-----END RSA PRIVATE KEY-----",
		"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n" + id + "=\n-----END PGP PRIVATE KEY BLOCK-----",
	} {
		for text, want := range map[string]string{
			credential:                            "[redacted]",
			"see " + credential + ". There":       "see [redacted]. There",
			"(" + credential + ")":                "([redacted])",
			"https://h/?a=" + credential + "&b=c": "https://h/?a=[redacted]&b=c",
		} {
			if strings.HasSuffix(credential, ".") { // an unsigned JWT ends with a dot
				text = strings.Replace(text, credential+". T", credential+" T", 1)
				want = strings.Replace(want, "]. T", "] T", 1)
			}
			if got := r.Body(text); got != want {
				t.Errorf("%q became %q, want %q", text, got, want)
			}
		}
	}
	for text, want := range map[string]string{
		"-----BEGIN PRIVATE KEY-----\nMIIE\nvQIB cut off":                                "[redacted] cut off",
		`{"a":"-----BEGIN EC PRIVATE KEY-----\nMIIE\n-----END EC PRIVATE KEY-----\n","b`: `{"a":"[redacted]\n","b`,
		`{"a":"x\nghp_` + id + `","b`:                                                    `{"a":"x\n[redacted]","b`,
		"https://h/?a=x%20ghp_" + id:                                                     "https://h/?a=x%20[redacted]",
		`{"a":"https:\/\/hooks.slack.com\/actions\/T0\/1\/` + id + `\\n","b`:             `{"a":"https:\/\/[redacted]\\n","b`,
		`{"a":"Basic dXNl\/nBhc3M=\/","b`:                                                `{"a":"[redacted]","b`,
		`{"a":"https:\/\/ada:p@h\/x@y","b`:                                               `{"a":"https:\/\/[redacted]@h\/x@y","b`,
		"a=hooks.slack.com%5C%2Factions%5C%2FT0%5C%2F" + id:                              "a=%5Bredacted%5D",
		`{"n":["AKIAIOSFODNN7EXAMPLE"]}`:                                                 `{"n":["[redacted]"]}`,
	} {
		if got := r.Body(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{
		"-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----",
		"-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", "Basic authentication failed",
		"the bearer representative", "Basic Authentication", "task_live_12345678",
		"evt_1NG8Du2eZvKYlo2CUI79vXWy pi_3MtwBwLkdIwHu7ix28a3tqPa", "xghp_" + id, "AKIA", "eyJhbGciOiJIUzI1NiJ9.abc",
		"secret_santa_list_of_the_whole_company_department_of_sales", "123e4567-e89b-12d3-a456-426614174000",
		"12:AA" + id[:33], "123456789:" + id[:35], "123456789:AA" + id[:32], "123456789:AA" + id[:34],
		"https://hooks.slack.com/services/your-webhook-path", "hf_feature_flag_for_the_new_navigation",
	} {
		if got := r.Body(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
