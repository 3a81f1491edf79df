package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/account"
	"hookglass/internal/endpoint"
)

// newSignatureConfig gives the endpoint a config for github and returns its id.
func (s *site) newSignatureConfig(ref string) string {
	s.t.Helper()
	github, secret := "github", "s3cret"
	c, err := s.endpoints.CreateSignatureConfig(s.t.Context(), hookglass.System, ref, endpoint.SignatureDraft{Provider: &github, Secret: &secret}, false)
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprint(c.ID)
}

func TestAnEncodingFitsTheSecretThatIsThere(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		base := "/endpoints/" + s.newEndpoint("").ID + "/signature_configs"
		var made api.One[api.SignatureConfig]
		s.want(201, "POST", base, `{"signature_config":{"provider":"generic_hmac","secret":"no digits"}}`, &made)
		one := fmt.Sprintf("%s/%d", base, made.Data.ID)
		var refused api.Error
		s.want(422, "PATCH", one, `{"signature_config":{"options":{"secret_encoding":"hex"}}}`, &refused)
		if len(refused.Details) != 1 || refused.Details[0].Field != "signature_config.options.secret_encoding" {
			t.Errorf("refused with %+v", refused)
		}
		s.want(200, "PATCH", one, `{"signature_config":{"options":{"encoding":"base64"}}}`, nil)
		s.want(200, "PATCH", one, `{"signature_config":{"secret":"00ff","options":{"secret_encoding":"hex"}}}`, nil)
	})
}

func TestASignatureConfigIsMadeChangedAndDeleted(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		base := "/endpoints/" + e.ID + "/signature_configs"
		const canary = "canary-7f3a9"
		var made api.One[api.SignatureConfig]
		s.want(http.StatusCreated, "POST", base, `{"signature_config":{"provider":"github","secret":"`+canary+`"}}`, &made)
		if made.Data.ID == 0 || made.Data.Provider != "github" || !made.Data.Enabled {
			t.Errorf("made %+v", made.Data)
		}
		var exists map[string]any
		s.want(http.StatusConflict, "POST", base, `{"signature_config":{"provider":"github","secret":"other"}}`, &exists)
		if exists["error"] != "signature_config_exists" || exists["existing_provider"] != "github" {
			t.Errorf("a second one: %v", exists)
		}
		var forced api.One[api.SignatureConfig]
		s.want(http.StatusCreated, "POST", base+"?force=true", `{"signature_config":{"provider":"github","secret":"`+canary+`","enabled":false}}`, &forced)
		if forced.Data.ID != made.Data.ID || forced.Data.Enabled {
			t.Errorf("forced %+v", forced.Data)
		}
		one := fmt.Sprintf("%s/%d", base, made.Data.ID)
		s.want(http.StatusOK, "PATCH", one, `{"signature_config":{"enabled":true}}`, &forced)
		var all api.List[api.SignatureConfig]
		s.want(http.StatusOK, "GET", base, "", &all)
		if len(all.Data) != 1 || !all.Data[0].Enabled {
			t.Errorf("list %+v", all.Data)
		}
		s.want(http.StatusCreated, "POST", base, `{"signature_config":{"provider":"stripe","secret":"whsec_x"}}`, nil)
		var page api.List[api.SignatureConfig]
		s.want(http.StatusOK, "GET", base+"?limit=1", "", &page)
		if len(page.Data) != 1 || page.Data[0].Provider != "github" || page.Meta.NextCursor == nil {
			t.Fatalf("the first page: %+v", page)
		}
		s.want(http.StatusOK, "GET", base+"?cursor="+*page.Meta.NextCursor, "", &page)
		if len(page.Data) != 1 || page.Data[0].Provider != "stripe" || page.Meta.NextCursor != nil {
			t.Errorf("the last page: %+v", page)
		}
		s.wantError(http.StatusUnprocessableEntity, "validation_failed", "GET", base+"?limit=0", "")
		s.want(http.StatusOK, "DELETE", one, "", nil)
		s.want(http.StatusNotFound, "GET", one, "", nil)
		if strings.Contains(s.log.String(), canary) {
			t.Error("the secret is in the log")
		}
	})
}

func TestAKeyReplacesTheSignatureConfigOfItsEndpoint(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		_, key, err := s.endpoints.CreateTemporary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		config := `{"tunnel_key":"` + key + `","signature_config":{"provider":"github","secret":"s","enabled":false}}`
		const path = "/tunnel/signature_config_anonymous"
		var made, forced api.One[api.SignatureConfig]
		s.wantAs("", http.StatusCreated, "POST", path, config, &made)
		s.wantAs("", http.StatusConflict, "POST", path+"?force=false", config, nil)
		s.wantAs("", http.StatusCreated, "POST", path+"?force=true", strings.ReplaceAll(config, "false", "true"), &forced)
		if forced.Data.ID != made.Data.ID || !forced.Data.Enabled {
			t.Errorf("forced %+v of %+v", forced.Data, made.Data)
		}
		s.wantAs("", http.StatusUnprocessableEntity, "POST", path+"?force=x", config, nil)
	})
}

// A timestamp that is signed may be 300 s off, unless the config says otherwise.
func TestTheToleranceOfAGenericConfig(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		for options, want := range map[string]any{
			`{"payload_template":"{timestamp}.{body}"}`:                         300,
			`{"timestamp_header":"X-T"}`:                                        300,
			`{"payload_template":"{timestamp}.{body}","tolerance_seconds":0}`:   0,
			`{"payload_template":"{timestamp}.{body}","tolerance_seconds":900}`: 900,
			`{"prefix":"v1="}`: nil,
		} {
			var made api.One[api.SignatureConfig]
			s.want(http.StatusCreated, "POST", "/endpoints/"+e.ID+"/signature_configs?force=true", `{"signature_config":{"provider":"generic_hmac","secret":"s","options":`+options+`}}`, &made)
			got := made.Data.Options.ToleranceSeconds
			if want == nil && got != nil || want != nil && (got == nil || *got != want) {
				t.Errorf("%s: %v, want %v", options, got, want)
			}
		}
	})
}

func TestWhatASignatureConfigMayNotBe(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		mail := s.newEndpoint(`,"kind":"email"`)
		for name, c := range map[string]struct{ endpoint, body, field string }{
			"no provider":             {e.ID, `{"signature_config":{"secret":"x"}}`, "signature_config.provider"},
			"no secret":               {e.ID, `{"signature_config":{"provider":"github"}}`, "signature_config.secret"},
			"empty secret":            {e.ID, `{"signature_config":{"provider":"github","secret":""}}`, "signature_config.secret"},
			"unknown provider":        {e.ID, `{"signature_config":{"provider":"nobody","secret":"x"}}`, "signature_config.provider"},
			"unknown key":             {e.ID, `{"signature_config":{"provider":"github","secret":"x","zz":1}}`, "signature_config.zz"},
			"a zero of another":       {e.ID, `{"signature_config":{"provider":"stripe","secret":"x","options":{"tolerance_seconds":0}}}`, "signature_config.options"},
			"options of another":      {e.ID, `{"signature_config":{"provider":"github","secret":"x","options":{"header":"X-A"}}}`, "signature_config.options"},
			"unknown algorithm":       {e.ID, `{"signature_config":{"provider":"generic_hmac","secret":"x","options":{"algorithm":"md5"}}}`, "signature_config.options.algorithm"},
			"template without a body": {e.ID, `{"signature_config":{"provider":"generic_hmac","secret":"x","options":{"payload_template":"{id}"}}}`, "signature_config.options.payload_template"},
			"secret not as declared":  {e.ID, `{"signature_config":{"provider":"generic_hmac","secret":"no base64!","options":{"secret_encoding":"base64"}}}`, "signature_config.secret"},
			"mail":                    {mail.ID, `{"signature_config":{"provider":"github","secret":"x"}}`, "signature_config"},
		} {
			var refused api.Error
			s.want(http.StatusUnprocessableEntity, "POST", "/endpoints/"+c.endpoint+"/signature_configs", c.body, &refused)
			if len(refused.Details) == 0 || refused.Details[0].Field != c.field {
				t.Errorf("%s: %+v", name, refused)
			}
		}
	})
}

// What does not look like a key may be that of a receiver's test: a diagnosis says it, where a signature fails.
func TestAnyTextIsASecretOfAProvider(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		for _, provider := range []string{"discord", "sendgrid", "adyen", "svix", "stripe"} {
			s.want(http.StatusCreated, "POST", "/endpoints/"+e.ID+"/signature_configs", `{"signature_config":{"provider":"`+provider+`","secret":"%"}}`, nil)
		}
	})
}

func TestOnTheFreePlanTheConfigMustBeOfTheEndpointsProvider(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		free := hookglass.PlanFree
		if _, err := s.accounts.SetAccount(t.Context(), s.owner.Account.ID, account.Change{Plan: &free}); err != nil {
			t.Fatal(err)
		}
		plain, github := s.newEndpoint(""), s.newEndpoint(`,"provider":"github"`)
		const body = `{"signature_config":{"provider":"github","secret":"x"}}`
		s.want(http.StatusForbidden, "POST", "/endpoints/"+plain.ID+"/signature_configs", body, nil)
		s.want(http.StatusCreated, "POST", "/endpoints/"+github.ID+"/signature_configs", body, nil)
		s.want(http.StatusForbidden, "POST", "/endpoints/"+github.ID+"/signature_configs", `{"signature_config":{"provider":"stripe","secret":"x"}}`, nil)
	})
}

func TestASampleIsCapturedSignedAndExplained(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint("")
		send := func(body string) string {
			var sent api.One[api.SentTestRequest]
			s.want(http.StatusCreated, "POST", "/endpoints/"+e.ID+"/test_requests", body, &sent)
			return "/endpoints/" + e.ID + "/requests/" + sent.Data.RequestID
		}
		for _, c := range []struct{ provider, event, secret string }{
			{"github", "push", "s3cret"}, {"stripe", "", "whsec_abc"}, {"shopify", "orders/create", "hush"}, {"slack", "", "8f742231b10e"}, {"twilio", "", "12345"},
		} {
			s.want(http.StatusCreated, "POST", "/endpoints/"+e.ID+"/signature_configs",
				`{"signature_config":{"provider":"`+c.provider+`","secret":"`+c.secret+`"}}`, nil)
			path := send(`{"provider":"` + c.provider + `","event_type":"` + c.event + `"}`)
			var got api.One[struct {
				DetectedProvider string `json:"detected_provider"`
				SignatureStatus  string `json:"signature_status"`
				SignatureReason  string `json:"signature_reason"`
			}]
			s.want(http.StatusOK, "GET", path, "", &got)
			if got.Data.DetectedProvider != c.provider || got.Data.SignatureStatus != "verified" {
				t.Errorf("%s: %+v", c.provider, got.Data)
			}
		}

		// The secret changes, and what was verified fails, until the old one is kept beside it.
		path := send(`{"provider":"github","event_type":"ping"}`)
		var all api.List[api.SignatureConfig]
		s.want(http.StatusOK, "GET", "/endpoints/"+e.ID+"/signature_configs", "", &all)
		one := fmt.Sprintf("/endpoints/%s/signature_configs/%d", e.ID, all.Data[0].ID)
		s.want(http.StatusOK, "PATCH", one, `{"signature_config":{"secret":"other"}}`, nil)
		var explained api.One[api.Signature]
		s.want(http.StatusOK, "GET", path+"/signature", "", &explained)
		if d := explained.Data; d.Status != "verified" || d.Now.Status != "failed" || d.Finding.Code == "" || d.Finding.Message == "" {
			t.Errorf("explained %+v", d)
		}
		var judged api.One[api.Rejudged]
		s.want(http.StatusOK, "POST", one+"/verify", "", &judged)
		if judged.Data.Changed != 2 || judged.Data.Checked != 6 {
			t.Errorf("judged %+v", judged.Data)
		}
		s.want(http.StatusOK, "PATCH", one, `{"signature_config":{"secret":"s3cret","keep_previous":true}}`, nil)
		s.want(http.StatusOK, "POST", one+"/verify", "", &judged)
		if judged.Data.Verified != 6 {
			t.Errorf("judged again %+v", judged.Data)
		}

		// What the handler is to find is put into the sample, which is signed with it.
		var filled api.One[struct {
			Body              string
			SignatureStatus   string `json:"signature_status"`
			ProviderEventData struct {
				EventType string `json:"event_type"`
			} `json:"provider_event_data"`
		}]
		s.want(http.StatusOK, "GET", send(`{"provider":"stripe","event_type":"invoice.paid","set":{"/data/object/customer":"cus_mine","/type":"invoice.voided"}}`), "", &filled)
		if d := filled.Data; d.SignatureStatus != "verified" || d.ProviderEventData.EventType != "invoice.voided" || !strings.Contains(d.Body, `"customer":"cus_mine"`) {
			t.Errorf("filled in: %+v", d)
		}
		for _, wrong := range []string{`{"set":{"/a":1},"body":"hi"}`, `{"provider":"stripe","set":{"a":1}}`, `{"provider":"twilio","set":{"/a":1}}`, `{"provider":"stripe","set":[]}`} {
			s.wantError(http.StatusUnprocessableEntity, "validation_failed", "POST", "/endpoints/"+e.ID+"/test_requests", wrong)
		}

		var mine api.One[struct {
			Method, Path, Body string
		}]
		s.want(http.StatusOK, "GET", send(`{"method":"PUT","path":"/a%2Fb?x=1","headers":{"X-A":"b"},"body":"hi"}`), "", &mine)
		if mine.Data.Method != "PUT" || mine.Data.Path != "/a%2Fb" || mine.Data.Body != "hi" {
			t.Errorf("spelled out: %+v", mine.Data)
		}
		s.wantError(http.StatusUnprocessableEntity, "validation_failed", "POST", "/endpoints/"+e.ID+"/test_requests", `{"provider":"github","event_type":"nonsense"}`)
		s.wantError(http.StatusUnprocessableEntity, "validation_failed", "POST", "/endpoints/"+e.ID+"/test_requests", `{"provider":"nobody"}`)
	})
}

// 410 is what reception says to senders (spec: decisions, section 4); to who asks for a test it is a state that can
// change.
func TestADisabledEndpointTakesNoTestRequest(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint(`,"enabled":false`)
		at := "/endpoints/" + e.ID
		for _, body := range []string{`{"provider":"github","event_type":"push"}`, `{"body":"hello"}`} {
			s.wantError(http.StatusConflict, "conflict", "POST", at+"/test_requests", body)
		}
		s.want(http.StatusOK, "PATCH", at, `{"endpoint":{"enabled":true}}`, nil)
		s.want(http.StatusCreated, "POST", at+"/test_requests", `{"body":"hello"}`, nil)
	})
}
