package redact_test

import (
	"strings"
	"testing"

	"hookglass/internal/redact"
)

// The headers of clouds and vendors that hold credentials are known by the words of their names, and so are fields.
func TestNamesOfCredentials(t *testing.T) {
	for header := range strings.FieldsSeq(`Authorization Authentication X-Authentication X-Original-Authorization
		X-Serverless-Authorization X-Auth X-Sentry-Auth X-Session-Id X-Session Mcp-Session-Id X-Functions-Key
		Ocp-Apim-Subscription-Key CF-Access-Client-Id CF-Access-Client-Secret Cf-Access-Jwt-Assertion
		CF-Access-Token X-Goog-IAP-JWT-Assertion X-Goog-Api-Key X-Amzn-Oidc-Data X-Amzn-Oidc-Accesstoken
		X-Amz-Security-Token X-MS-CLIENT-PRINCIPAL X-Ms-Token-Aad-Id-Token DPoP X-JWT DD-APPLICATION-KEY
		X-Honeycomb-Team X-Insert-Key Fastly-Key Aeg-Sas-Key X-Parse-Master-Key
		X-Amz-Server-Side-Encryption-Customer-Key X-GitHub-OTP X-Credentials X-Shopify-Hmac-Sha256 Content-Hmac
		PayPal-Transmission-Sig X-Trello-Webhook Signature-Input X-Auth-Pass X-Bearer`) {
		if !redact.SensitiveHeader(header) {
			t.Errorf("%s holds no credential", header)
		}
	}
	for header := range strings.FieldsSeq(`Idempotency-Key X-Idempotency-Key Sec-WebSocket-Key X-Event-Key
		X-Cache-Key X-Routing-Key X-Request-Id X-GitHub-Event X-Session-Count Authentication-Results X-Author
		X-Forwarded-For Webhook-Id Message-ID X-Auth-User X-Token-Type X-Amz-Date Content-Type Host X-Monkey`) {
		if redact.SensitiveHeader(header) {
			t.Errorf("%s holds a credential", header)
		}
	}
	for field := range strings.FieldsSeq(`PASSWORD db_pass userPwd user[pwd] user[auth] client_secrets
		x-functions-key X-Session-Id subscriptionKey AccountKey masterKey appkey sig X-Amz-Credential hmac
		client_assertion SAMLResponse code_verifier PHPSESSID JSESSIONID ASP.NET_SessionId connect.sid
		connectionString api_keys access_tokens credit_card_number card[cvc] two_factor_code recovery_codes
		password_hash secret_key_base seed_phrase consumer_key licenseKey contraseña`) {
		if !redact.Sensitive(field) {
			t.Errorf("%s is no name of a credential", field)
		}
	}
	for field := range strings.FieldsSeq(`id orders token_type author authorised_amount authentication_method
		keyboard monkey session session_count call_session_id checkout_session_id signature_status signed_at sign
		design AccountSid sid pin key code hash nonce state tokens max_tokens issue_key primary_key public_key
		compass bypass passport passenger password_changed_at cvc_check otp_enabled cookie_consent user[name]
		secretary bearer_type`) {
		if redact.Sensitive(field) {
			t.Errorf("%s is the name of a credential", field)
		}
	}
	// What may be a credential is not refused where a file would write one down.
	if redact.Credential("X-Functions-Key") || !redact.Credential("X-Api-Key") {
		t.Error("other names are those of credentials for sure")
	}
}
