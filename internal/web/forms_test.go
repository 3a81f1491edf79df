package web_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/endpoint"
	"hookglass/internal/web"
)

func TestSettingsThatAreRefusedKeepWhatWasTypedAndBlameTheField(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	typed := url.Values{"name": {"Typed"}, "url": {"nowhere"}, "timeout_seconds": {"7"}, "retry_count": {"1"}, "rate_limit": {"12"}, "rate_period": {"minute"}}
	kept := []string{`value="Typed"`, `value="nowhere"`, `value="7"`, `value="1"`, `value="12"`, `<option value="minute" selected>`, "The URL must begin with"}
	b.want(422, "POST", s.page("/targets"), typed).holds(t, append(kept, `aria-describedby="forwarding-url-fault"`)...)
	b.want(422, "POST", s.page("/targets"), url.Values{"name": {"App"}, "url": {"http://127.0.0.1/"}}).holds(t, "The URL is not a public address")

	b.want(303, "POST", s.page("/targets"), url.Values{"name": {"App"}, "url": {"https://app.example.com/hook"}})
	page := b.want(200, "GET", s.page("/settings"), nil)
	target := page.found(t, `action="([^"]+/targets/\d+)/delete"`)
	id := regexp.MustCompile(`\d+$`).FindString(target)
	again := b.want(422, "POST", target, typed)
	again.holds(t, append(kept, `aria-describedby="target-`+id+`-url-fault"`)...)
	again.lacks(t, `aria-describedby="forwarding-url-fault"`)
	all := b.want(422, "POST", target, url.Values{"name": {""}, "url": {"ftp://x"}, "headers": {"no header"}, "timeout_seconds": {"soon"}, "retry_count": {"9"}, "rate_limit": {"many"}, "dedupe_by": {"id"}, "dedupe_seconds": {"long"}})
	for _, field := range []string{"name", "url", "headers", "timeout", "retries", "rate", "window"} {
		all.holds(t, `target-`+id+`-`+field+`-fault"`)
	}
	for _, limit := range []string{"0", "1001", "many"} {
		b.want(422, "POST", target, url.Values{"rate_limit": {limit}, "rate_period": {"second"}}).holds(t, `aria-describedby="target-`+id+`-rate-fault"`)
	}
	b.want(303, "POST", target, url.Values{"rate_limit": {"12"}, "rate_period": {"minute"}})
	b.want(200, "GET", s.page("/settings"), nil).holds(t, `value="12"`, `<option value="minute" selected>`)
	b.want(303, "POST", target, url.Values{"name": {"App"}})
	b.want(422, "POST", target, url.Values{"when": {"tag:x"}}).holds(t, `value="tag:x"`, `aria-describedby="target-`+id+`-when-fault"`)
	b.want(303, "POST", target, url.Values{"when": {"event:a -path:/b&c"}})
	b.want(200, "GET", s.page("/settings"), nil).holds(t, "<code>event:a -path:/b&amp;c</code>", `?q=event%3Aa+-path%3A%2Fb%26c"`)
	b.want(303, "POST", target, url.Values{"when": {""}})
	b.want(303, "POST", target, url.Values{"headers": {"Authorization: Bearer hush-1\r\nX-Environment: hush-2\r\n"}})
	headed := b.want(200, "GET", s.page("/settings"), nil)
	headed.holds(t, "Authorization: [redacted]\nX-Environment: [redacted]\n</textarea>", "<code>Authorization, X-Environment</code>")
	headed.lacks(t, "hush")
	bad := b.want(422, "POST", target, url.Values{"headers": {"Authorization: [redacted]\r\nX-Environment: staging\r\nX-Api-Key: hush-3\r\nhush-4\r\nX-Mark: hush-hush-hush-6\r\n"}})
	bad.holds(t, "Authorization: [redacted]\nX-Environment: staging\nX-Api-Key: \nX-Mark: \n</textarea>", `aria-describedby="target-`+id+`-headers-again target-`+id+`-headers-fault"`,
		"Type the value of X-Api-Key, X-Mark again: it may be a secret, so it is not shown.", "A line without a colon was left out")
	bad.lacks(t, "hush")
	b.want(422, "POST", target, url.Values{"headers": {"Authorization: [redacted]\r\nX-Environment:\r\n"}}).holds(t, "may not leave X-Environment empty")
	bad = b.want(422, "POST", target, url.Values{"headers": {"Host: other.example\r\nX-Token: hush-5"}})
	bad.holds(t, "may not set Host", "Host: other.example\nX-Token: \n</textarea>")
	bad.lacks(t, "hush")
	b.want(303, "POST", target, url.Values{"headers": {"authorization: [redacted]"}})
	b.want(200, "GET", s.page("/settings"), nil).holds(t, "<code>authorization</code>")
	b.want(303, "POST", target, url.Values{"headers": {""}})
	b.want(200, "GET", s.page("/settings"), nil).lacks(t, "[redacted]\n</textarea>")
	b.want(200, "GET", s.page("/settings"), nil).lacks(t, "Matching requests")
	b.want(200, "GET", s.page("/settings"), nil).holds(t, `value="12"`)
	b.want(303, "POST", target, url.Values{"rate_limit": {""}, "rate_period": {"second"}})
	b.want(200, "GET", s.page("/settings"), nil).lacks(t, `value="12"`)
	b.want(422, "POST", target, url.Values{"dedupe_by": {"x y"}, "dedupe_seconds": {"9"}}).holds(t, `value="x y"`, `aria-describedby="target-`+id+`-dedupe-fault"`)
	b.want(422, "POST", target, url.Values{"dedupe_by": {"id"}, "dedupe_seconds": {"604801"}}).holds(t, `aria-describedby="target-`+id+`-window-fault"`)
	b.want(303, "POST", target, url.Values{"dedupe_by": {" id "}, "dedupe_seconds": {""}})
	b.want(200, "GET", s.page("/settings"), nil).holds(t, "What has the same <code>id</code> within 1 day is sent once", `value="86400"`)
	b.want(303, "POST", target, url.Values{"name": {"App"}})
	b.want(200, "GET", s.page("/settings"), nil).holds(t, "is sent once")
	b.want(303, "POST", target, url.Values{"dedupe_by": {""}, "dedupe_seconds": {"86400"}})
	b.want(200, "GET", s.page("/settings"), nil).lacks(t, "is sent once")

	hmac := url.Values{
		"provider": {"generic_hmac"}, "secret": {"swordfish"}, "header": {"not a header"}, "algorithm": {"sha512"}, "encoding": {"base64"}, "prefix": {"v9="},
		"payload_template": {"{id}.{body}"}, "timestamp_header": {"X-Time"},
	}
	refused := b.want(422, "POST", s.page("/signatures"), hmac)
	refused.holds(t, `value="not a header"`, "<option selected>sha512", "<option selected>base64", `value="v9="`, `value="{id}.{body}"`, `value="X-Time"`,
		`aria-describedby="option-header-fault"`, "The header must be the name of a header")
	refused.lacks(t, "swordfish")

	b.want(303, "POST", s.page("/signatures"), url.Values{"provider": {"github"}, "secret": {"swordfish"}})
	page = b.want(200, "GET", s.page("/settings"), nil)
	config := page.found(t, `action="([^"]+/signatures/\d+)/delete"`)
	id = regexp.MustCompile(`\d+$`).FindString(config)
	b.want(422, "POST", config+"/secret", url.Values{"secret": {""}}).holds(t, `aria-describedby="config-`+id+`-fault"`, "<details open>")
}

// What a plan refuses is refused as a fault is: the settings keep what was typed and say why.
func TestSettingsThatThePlanRefusesKeepWhatWasTyped(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	b.want(303, "POST", s.page("/targets"), url.Values{"name": {"App"}, "url": {"https://app.example.com/hook"}})
	target := b.want(200, "GET", s.page("/settings"), nil).found(t, `action="([^"]+/targets/\d+)/delete"`)
	b.want(303, "POST", target, url.Values{"enabled": {"false"}})
	b.want(200, "GET", s.page("/settings"), nil).lacks(t, "Forwarding needs", "On the free plan")
	free, none := hookglass.PlanFree, hookglass.SubscriptionNone
	if _, err := s.accounts.SetAccount(t.Context(), s.who.Account, account.Change{Plan: &free, Subscription: &none}); err != nil {
		t.Fatal(err)
	}

	const unpaid, onlyOwn = "Forwarding needs an active paid subscription.", "On the free plan the provider of a signature config must be the endpoint&#39;s provider."
	b.want(200, "GET", s.page("/settings"), nil).holds(t, unpaid, onlyOwn) // before anything is typed
	b.want(403, "POST", s.page("/targets"), url.Values{"name": {"CRM"}, "url": {"https://crm.example.com/"}, "when": {"event:a"}}).
		holds(t, `id="forwarding-fault"`, unpaid, `value="CRM"`, `value="https://crm.example.com/"`, `value="event:a"`)
	refused := b.want(403, "POST", target, url.Values{"enabled": {"true"}}) // a button has nothing typed
	refused.holds(t, `id="target-`+regexp.MustCompile(`\d+$`).FindString(target)+`-fault"`, unpaid, `value="https://app.example.com/hook"`)
	b.want(403, "POST", s.page("/signatures"), url.Values{"provider": {"generic_hmac"}, "secret": {"swordfish"}, "header": {"X-Mine"}}).
		holds(t, onlyOwn, `value="X-Mine"`)

	plan := b.want(200, "GET", "/account", nil)
	plan.holds(t, "no: "+unpaid)
	plan.lacks(t, "_required")
}

// A form without a page of its own is refused in the words of pages, and for all that is wrong with it.
func TestWhatIsWrongWithAFormIsToldInWords(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	request := s.page("/requests/" + string(s.hook(json(`{}`))))
	b.want(422, "POST", request+"/replay", url.Values{"target_url": {"localhost:3000"}, "identity_mode": {"odd"}}).
		holds(t, "The target URL must begin with http:// or https://.", "The identity mode must be ")
	b.want(422, "POST", request+"/replay", url.Values{"target_url": {"https://app.example.com/"}, "method": {"ODD"}}).holds(t, "The method must be one of ")
	b.want(422, "POST", request+"/replay", url.Values{"target_url": {"https://app.example.com/"}, "headers": {"X-A: 1\nX-B=2"}}).
		holds(t, "The headers must be lines as Name: value")
	b.want(422, "POST", s.page("/response"), url.Values{"status": {"200"}, "headers": {"X-A: 1\nX-A: 2"}}).holds(t, "names X-A twice")
	b.want(422, "POST", request+"/tags", url.Values{"tag": {""}}).holds(t, "The tag must have 1 to 64 printable characters")
	b.want(422, "POST", request+"/note", url.Values{"note": {strings.Repeat("a", 2001)}}).holds(t, "The note must have 2000 characters at most")
}

// Who speaks to a browser says what stands on a button (WCAG 2.5.3).
func TestTheNameOfAButtonHasWhatStandsOnIt(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	b.want(303, "POST", s.page("/targets"), url.Values{"name": {"App"}, "url": {"https://app.example.com/hook"}})
	b.want(303, "POST", s.page("/signatures"), url.Values{"provider": {"github"}, "secret": {"swordfish"}})
	b.want(303, "POST", s.page("/response_rules"), url.Values{"when": {"path:/1", "path:/2"}, "status": {"200", "200"}})
	buttons := regexp.MustCompile(`<button [^>]*aria-label="([^"]+)"[^>]*>(\w[^<]*)</button>`).FindAllStringSubmatch(b.want(200, "GET", s.page("/settings"), nil).body, -1)
	if len(buttons) < 10 {
		t.Fatalf("%d buttons: %q", len(buttons), buttons)
	}
	for _, button := range buttons {
		if name, text := button[1], button[2]; !strings.Contains(strings.ToLower(name), strings.ToLower(text)) {
			t.Errorf("%q is the name of a button on which %q stands", name, text)
		}
	}
}

func TestGenericHMACTakesTheOptionsOfTheAPI(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	typed := url.Values{
		"provider": {"generic_hmac"}, "secret": {"c2VjcmV0"}, "payload_template": {"{id}.{timestamp}.{body}"}, "id_header": {"X-Id"}, "timestamp_header": {"X-Time"},
		"timestamp_unit": {"ms"}, "secret_encoding": {"base64"}, "tolerance_seconds": {"soon"},
	}
	b.want(422, "POST", s.page("/signatures"), typed).holds(t, `value="X-Id"`, `value="ms" selected`, `<option selected>base64`, `value="soon"`,
		`aria-describedby="option-tolerance_seconds-fault"`, "must be a whole number")
	want := hookglass.GenericOptions{
		PayloadTemplate: "{id}.{timestamp}.{body}", IDHeader: "X-Id", TimestampHeader: "X-Time", TimestampUnit: "ms", SecretEncoding: "base64",
		ToleranceSeconds: hookglass.DefaultTolerance, // a timestamp that is signed is checked
	}
	for tolerance, seconds := range map[string]int{"": hookglass.DefaultTolerance, "0": 0, " 60 ": 60} {
		typed.Set("tolerance_seconds", tolerance)
		b.want(303, "POST", s.page("/signatures"), typed)
		config := b.want(200, "GET", s.page("/settings"), nil).found(t, `action="([^"]+/signatures/\d+)/delete"`)
		configs, err := s.endpoints.SignatureConfigs(t.Context(), s.who, string(s.endpoint.ID))
		if err != nil || len(configs) != 1 {
			t.Fatal(configs, err)
		}
		if want.ToleranceSeconds = seconds; configs[0].Options != want {
			t.Errorf("with %q: %+v, want %+v", tolerance, configs[0].Options, want)
		}
		b.want(303, "POST", config+"/delete", nil)
	}
}

func TestANewSignatureConfigIsOfTheEndpointsProvider(t *testing.T) {
	s := newSite(t)
	stripe := "stripe"
	if _, err := s.endpoints.Update(t.Context(), s.who, string(s.endpoint.ID), endpoint.Draft{Provider: &stripe}); err != nil {
		t.Fatal(err)
	}
	b := s.signedIn()
	const stripes, chosen = `<option value="stripe" selected>`, `<option value="">Choose…</option>`
	b.want(200, "GET", s.page("/settings"), nil).holds(t, stripes, chosen)

	// One that has its secret is not asked for again: the next is who else sends here, or has to be chosen.
	b.want(303, "POST", s.page("/signatures"), url.Values{"provider": {"stripe"}, "secret": {"swordfish"}})
	signer := func() string {
		t.Helper()
		form := b.want(200, "GET", s.page("/settings"), nil).found(t, `(?s)/signatures" class="stack"[^>]*>(.*?)</select>`)
		if selected := regexp.MustCompile(`<option value="(\w*)" selected>`).FindStringSubmatch(form); selected != nil {
			return selected[1]
		}
		return ""
	}
	if got := signer(); got != "" {
		t.Errorf("the form is filled in with %s", got)
	}
	s.hook(sent{body: `{}`, headers: hookglass.Headers{{Name: "X-GitHub-Event", Value: "push"}, {Name: "X-GitHub-Delivery", Value: "1"}}})
	s.hook(json(`{}`))
	if got := signer(); got != "github" {
		t.Errorf("the form is filled in with %q, not with who sends here", got)
	}
}

// One press deletes nothing.
func TestSecretsAndTargetsAreDeletedAfterAQuestion(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	b.want(303, "POST", s.page("/signatures"), url.Values{"provider": {"stripe"}, "secret": {"swordfish"}})
	b.want(303, "POST", s.page("/targets"), url.Values{"name": {"App"}, "url": {"https://app.example.com/hook"}, "timeout_seconds": {"5"}, "retry_count": {"0"}})
	c := s.chrome(1440, 900)
	c.open(s.link())
	for button, question := range map[string]string{"Delete the signature config of Stripe": "Delete the secret of Stripe?", "Delete the target App": "Delete the target App?"} {
		selector := `button[aria-label="` + button + `"]`
		c.open(s.page("/settings"))
		c.click(selector)
		c.until(`document.querySelector("[popover]:popover-open")?.textContent.trim().startsWith("` + question + `")`)
		c.click("[popover]:popover-open .solid")
		c.until(`document.querySelector(".saved")?.textContent === "Deleted." && !document.querySelector('` + selector + `')`)
	}
	c.silent()
}

// Who mistyped a password types it again; the address stands.
func TestASignInThatIsRefusedGoesOnAtThePassword(t *testing.T) {
	s := newSite(t)
	page := s.visitor().want(http.StatusUnauthorized, "POST", "/sign-in", url.Values{"email": {"ada@example.com"}, "password": {"wrong"}})
	if got := regexp.MustCompile(`<input[^>]* autofocus[ >]`).FindAllString(page.body, -1); len(got) != 1 || !strings.Contains(got[0], `name="password"`) {
		t.Errorf("the fields that begin: %q", got)
	}
}

// The ways down the page bear the words of what they lead to, and each form says what it makes.
func TestTheSettingsCallTheirPartsByOneName(t *testing.T) {
	s := newSite(t)
	s.signedIn().want(200, "GET", s.page("/settings"), nil).
		holds(t, `<a href="#danger">Delete</a>`, "Delete this endpoint</h2>", "Create a signature config</h3>", "Create a forwarding target</h3>")
}

func TestAFormThatComesBackBeginsAtItsFault(t *testing.T) {
	s := newSite(t)
	c := s.chrome(390, 700)
	c.open(s.link())
	c.until(isLive)
	inSight := func(e string) string {
		return `(() => { const box = ` + e + `.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight; })()`
	}
	c.open(s.page("/settings"))
	eval[any](c, `document.querySelector("[name=url]").form.noValidate = true`)
	eval[any](c, `document.querySelector("[name=url]").form.requestSubmit() ?? true`)
	c.until(`document.activeElement.getAttribute("aria-describedby") === "forwarding-name-fault" && ` + inSight("document.activeElement"))

	c.open(s.url + "/account/tokens")
	eval[any](c, `document.querySelectorAll("[name=scopes]").forEach((box) => { box.checked = false; }) ?? true`)
	eval[any](c, `document.querySelector("[name=scopes]").form.requestSubmit() ?? true`)
	c.until(`document.querySelector("#scopes-fault") && ` + inSight(`document.querySelector("#scopes-fault")`))
}

func TestAFormThatWasTriedComesBackAtItsOutcome(t *testing.T) {
	w := newWorkshop(t)
	var event hookglass.EventID
	for range 25 {
		event = w.hook(json(`{"id":7}`))
	}
	b := w.signedIn()
	replayCase := b.want(303, "POST", w.below("/cases"), caseForm(event)).Header.Get("Location")
	w.target.answer(500, `{"status":"down"}`)
	w.execute(b.want(303, "POST", strings.TrimSuffix(replayCase, "?done=created")+"/run", url.Values{"key": {"one"}}).Header.Get("Location"))
	c := w.chrome(1280, 700)
	c.open(w.link())
	c.until(isLive)
	for _, tried := range []struct{ page, button, outcome string }{
		{w.below("/settings"), `[value="try"]`, "#rules .preview p"},
		{w.below("/settings"), `[value="preview"]`, "#response .preview p"},
		{replayCase, `[value="take"]`, "#check p"},
	} {
		c.open(w.url + tried.page)
		c.click(tried.button)
		c.until(`(() => { const line = document.querySelector("` + tried.outcome + `"), box = line?.getBoundingClientRect();
			return line && document.activeElement.matches("[autofocus]") && box.top >= 0 && box.bottom <= innerHeight; })()`)
	}
	c.silent()
}

func TestAPageThatTellsOfAPastFailureBeginsAtItsTop(t *testing.T) {
	w := newWorkshop(t)
	event := w.hook(json(`{"id":7}`))
	action := w.below("/actions/" + w.makeTricky().ID)
	w.target.answer(500, "down")
	w.execute(w.signedIn().want(303, "POST", action+"/rerun", url.Values{"event": {string(event)}}).Header.Get("Location"))
	c := w.chrome(390, 700)
	c.open(w.link())
	c.open(w.url + action)
	c.until(`document.readyState === "complete" && document.querySelector(".steps-trace .fault").getBoundingClientRect().top > innerHeight`)
	c.silent()
}

func TestWhatWasSavedIsSaidWhereItWas(t *testing.T) {
	s := newSite(t)
	for _, height := range []int64{700, 900} {
		c := s.chrome(390, height)
		c.open(s.link())
		c.until(isLive)
		c.open(s.page("/settings"))
		c.click(`[aria-label="Save the response"]`)
		c.until(`location.hash === "#response" && document.querySelector("#response .saved")`)
		c.until(`(() => { const box = document.querySelector(".saved").getBoundingClientRect(); return box.top >= 0 && box.bottom <= ` +
			strconv.FormatInt(height, 10) + `; })()`)
		c.silent()
	}
}

func TestAFaultOfASignUpIsToldBesideTheHint(t *testing.T) {
	s := newSiteWith(t, func(d *web.Deps) { d.Signup = true })
	b := s.visitor()
	b.want(422, "POST", "/sign-up", url.Values{"email": {"grace@example.com"}, "password": {"short"}}).holds(t, `aria-describedby="password-hint password-fault"`)
}

// maxlength counts an emoji twice, the API once; and what is pasted is cut off by it without a word.
func TestALimitOfCharactersIsToldAndNotTypedInto(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	event := s.hook(json(`{}`))
	texts := regexp.MustCompile(`<(?:input|textarea)[^>]* name="(?:name|description|tag|note|when|dedupe_by)"[^>]*>`)
	for _, path := range []string{
		"/endpoints", "/account/tokens", "/account/workspaces", "/tags",
		s.path("/settings"), s.path("/requests/" + string(event)), s.path("?q=x"),
	} {
		fields := texts.FindAllString(b.want(200, "GET", path, nil).body, -1)
		if len(fields) == 0 {
			t.Errorf("%s has none", path)
		}
		for _, field := range fields {
			if strings.Contains(field, "maxlength") {
				t.Errorf("%s: %s", path, field)
			}
		}
	}
	long := strings.Repeat("😀", 65)
	b.want(422, "POST", "/tags", url.Values{"name": {long}}).holds(t, "64 printable characters", long)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("?q=x"))
	c.until(`(() => {
		const name = document.querySelector(".searches [name=name]");
		const fits = (n) => (name.value = "😀".repeat(n), name.checkValidity());
		return fits(60) && !fits(61);
	})()`)
}

// PostgreSQL takes nothing else for text.
func TestAFormIsUTF8(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	id := s.hook(json(`{}`))
	for path, form := range map[string]url.Values{
		"/targets":                            {"name": {"a\xffb"}, "url": {"https://example.com/"}},
		"/response":                           {"status": {"200"}, "body": {"\xff"}},
		"/response_rules":                     {"when": {"path:/a"}, "status": {"200"}, "body": {"\xff"}},
		"/requests/" + string(id) + "/replay": {"target_url": {"https://example.com/"}, "body": {"\xff"}},
	} {
		b.want(422, "POST", s.page(path), form).holds(t, "The form is not UTF-8.")
	}
}

func TestAFormThatIsTooLargeSaysSo(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	id := s.hook(json(`{}`))
	for path, most := range map[string]int{"/targets": 64, "/requests/" + string(id) + "/replay": 512, "/response": 4096} {
		b.want(413, "POST", s.page(path), url.Values{"name": {strings.Repeat("a", most<<10)}}).holds(t, "The form is larger than "+strconv.Itoa(most)+" KiB.")
	}
	// Neither is it a wrong password.
	s.visitor().want(413, "POST", "/sign-in", url.Values{"email": {"ada@example.com"}, "password": {strings.Repeat("a", 64<<10)}}).holds(t, "The form is larger than 64 KiB.")
	b.want(422, "POST", s.page("/targets?a=%zz"), url.Values{}).holds(t, "The form could not be read.")
}

// Two windows hold one thing: the second to save does not undo, without a word, what the first did.
func TestAFormOfWhatWasChangedMeanwhileIsNotSavedUnasked(t *testing.T) {
	s := newWorkshop(t)
	b := s.signedIn()
	action := b.want(303, "POST", s.page("/actions/new"), url.Values{
		"do": {"save"}, "name": {"Mine"}, "enabled": {"true"}, "failure_policy": {"continue"},
		"steps[0].step_type": {"ignore"}, "steps[0].name": {"Hide"}, "steps[0].config.reason": {"noise"},
	}).Header.Get("Location")
	action, _, _ = strings.Cut(action, "?")
	for _, form := range []struct {
		page, address string
		seen          string // where a form says what it was shown with
		change        string
		fields        url.Values
	}{
		{s.page("/settings"), s.page("/settings"), `(?s)action="[^"]*/settings".*?name="seen" value="([^"]+)"`, "name", url.Values{"complete": {"1"}, "enabled": {"true"}}},
		{s.page("/settings"), s.page("/response"), `(?s)action="[^"]*/response".*?name="seen" value="([^"]+)"`, "body", url.Values{"status": {"202"}, "headers": {""}, "delay_ms": {"0"}}},
		{s.page("/settings"), s.page("/response_rules"), `(?s)action="[^"]*/response_rules".*?name="seen" value="([^"]+)"`, "body", url.Values{"when": {"path:/a"}, "status": {"202"}, "headers": {""}, "delay_ms": {"0"}}},
		{action, action, `name="seen" value="([^"]+)"`, "name", url.Values{
			"do": {"save"}, "enabled": {"true"}, "failure_policy": {"continue"},
			"steps[0].step_type": {"ignore"}, "steps[0].name": {"Hide"}, "steps[0].config.reason": {"noise"},
		}},
	} {
		typed := func(text, seen string) url.Values {
			v := maps.Clone(form.fields)
			v.Set(form.change, text)
			v.Set("seen", seen)
			return v
		}
		seen := b.want(200, "GET", form.page, nil).found(t, form.seen)
		b.want(303, "POST", form.address, typed("first", seen))
		refused := b.want(409, "POST", form.address, typed("second", seen))
		refused.holds(t, "changed while you were editing", "second")
		b.want(200, "GET", form.page, nil).holds(t, "first")
		now := refused.found(t, form.seen)
		b.want(303, "POST", form.address, typed("second", now))
		b.want(200, "GET", form.page, nil).holds(t, "second")
		b.want(409, "POST", form.address, typed("third", now))
		b.want(303, "POST", form.address, typed("third", ""))
	}
}

func TestARetryScriptOfWhatWasChangedMeanwhileIsNotSavedUnasked(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	const seen = `name="seen" value="([^"]+)"`
	typed := func(script, seen string) url.Values {
		return url.Values{"response_script": {script}, "seen": {seen}}
	}
	shown := b.want(200, "GET", s.page("/retries"), nil).found(t, seen)
	b.want(303, "POST", s.page("/retries"), typed("500,200", shown))
	refused := b.want(409, "POST", s.page("/retries"), typed("503,200", shown))
	refused.holds(t, "changed while you were editing", `value="503,200"`)
	b.want(200, "GET", s.page("/retries"), nil).holds(t, `value="500,200"`)
	b.want(422, "POST", s.page("/retries"), typed("no script", refused.found(t, seen))).holds(t, refused.found(t, seen))
	b.want(303, "POST", s.page("/retries"), typed("503,200", refused.found(t, seen)))
	b.want(303, "POST", s.page("/retries"), typed("", ""))
}

// What cannot be taken back is asked about first.
func TestTokensAndSessionsEndAfterAQuestion(t *testing.T) {
	for _, width := range []int64{1280, 390} {
		s := newSite(t)
		s.signedIn().want(201, "POST", "/account/tokens", url.Values{"name": {"CI"}, "scopes": {"read"}, "level": {"account"}})
		s.signedIn()
		c := s.chrome(width, 900)
		c.open(s.link())
		for _, of := range []struct{ page, press, question string }{
			{"tokens", `td > button`, "Revoke the token CI?"},
			{"sessions", `td > button`, "End the session of"},
			{"sessions", `[popovertarget="end-others"]`, "End all other sessions?"},
		} {
			c.open(s.url + "/account/" + of.page)
			eval[any](c, `document.querySelector('main `+of.press+`').click() ?? true`)
			c.until(`document.querySelector("main .confirm:popover-open").innerText.includes("` + of.question + `") && document.activeElement.textContent === "Cancel" && !location.search`)
			c.picture(of.page + strconv.FormatInt(width, 10))
			c.click("main .confirm:popover-open .solid")
			c.until(`document.querySelector(".saved") && document.readyState === "complete"`)
		}
		c.silent()
	}
}

// Without scripts, a page of its own says what is wrong with a form of the inspector.
func TestARefusedFormOfTheInspectorShowsWhatWasTypedAndTheWayBack(t *testing.T) {
	s := newSite(t)
	event := s.hook(sent{target: "/a", body: `{}`})
	b := s.signedIn()
	for _, form := range []struct {
		path, back string
		status     int
		fields     url.Values
		typed      string
	}{
		{"/requests/" + string(event) + "/note", "/requests/" + string(event), 409, url.Values{"seen": {"older"}, "note": {"\nlong <b>\r\ntext"}}, "\n\nlong &lt;b&gt;\r\ntext</textarea>"},
		{"/requests/" + string(event) + "/replay", "/requests/" + string(event), 422, url.Values{"target_url": {"ftp://typed"}}, "ftp://typed</textarea>"},
		{"/bulk?q=path%3A%2Fa", "?q=path%3A%2Fa", 422, url.Values{"do": {"replay"}, "id": {string(event)}, "target_url": {"ftp://typed"}}, "ftp://typed</textarea>"},
		{"/bulk", "", 422, url.Values{"do": {"tag"}, "id": {string(event)}, "tag": {" "}}, "Tag"},
	} {
		back := `href="/endpoints/` + string(s.endpoint.ID) + form.back + `">Back to`
		b.want(form.status, "POST", s.page(form.path), form.fields).holds(t, back, form.typed)
	}
}

func TestEnterInAFieldOfTheSelectionDoesWhatTheFieldIsFor(t *testing.T) {
	s := newSite(t)
	event := s.hook(sent{target: "/a", body: `{}`})
	b := s.signedIn()
	ask := url.Values{"do": {"tag"}, "id": {string(event)}, "tag": {""}, "target_url": {"https://app.example.com/"}} // the first button
	if to := b.want(303, "POST", s.page("/bulk"), ask).Header.Get("Location"); !strings.HasSuffix(to, "?tab=replays") {
		t.Errorf("it leads to %s", to)
	}
	ask.Set("tag", "seen")
	b.want(303, "POST", s.page("/bulk"), ask)
	b.want(200, "GET", s.page("/requests/"+string(event)), nil).holds(t, ">seen<")
}

func TestTheSelectionIsDeletedByADialogAlone(t *testing.T) {
	s := newSite(t)
	s.hook(sent{target: "/a", body: `{}`})
	page := s.signedIn().want(200, "GET", s.page(""), nil).body
	if bar, dialog, _ := strings.Cut(page, `<div popover id="bulk-delete"`); strings.Contains(bar, `value="delete"`) || !strings.Contains(dialog, `value="delete"`) {
		t.Error("a button deletes the selected requests without a question")
	}
}
