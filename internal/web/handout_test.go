package web_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/bundle"
	"hookglass/internal/replay"
	"hookglass/internal/store"
	"hookglass/internal/web"
)

const someone = `{"id":"evt_1","created":%d,"customer":{"email":"ada@lovelace.example.org","name":"Ada Lovelace"},"ref":"order-of-ada","session":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEiLCJleHAiOjE3MDAwMDAwMDB9.c2ln"}`

// clickText presses the button or link that shows this text.
func (c *chrome) clickText(text string) {
	c.t.Helper()
	c.until(fmt.Sprintf(`(() => { const e = [...document.querySelectorAll("a, button")].find((e) => e.textContent.trim() === %q && e.checkVisibility()); e?.click(); return Boolean(e); })()`, text))
}

func TestARequestIsGivenAwayAsABundle(t *testing.T) {
	s := newSite(t)
	id := s.hook(json(fmt.Sprintf(someone, 1700000000)))
	c := s.chrome(390, 844)
	c.open(s.link())
	c.open(s.page("/requests/" + string(id)))
	c.clickText("More")
	c.clickText("Share bundle")
	c.until(`document.querySelector("h1").textContent === "Share bundle"`)
	c.picture("bundle-390")
	text := eval[string](c, `document.querySelector(".bundle-report").innerText`)
	for _, want := range []string{"/customer/email", "/customer/name", "/session"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not listed in %s", want, text)
		}
	}
	if strings.Contains(text, "ada@") || strings.Contains(text, "/ref") {
		t.Error(text)
	}
	eval[bool](c, `(document.querySelector("[name=pointers]").value = "/ref\n", true)`)
	c.clickText("Preview")
	c.until(`document.querySelector(".bundle-report").innerText.includes("/ref")`)
	eval[bool](c, `(document.querySelector("[name=pointers]").value = "ref", true)`)
	c.clickText("Preview")
	c.until(`document.querySelector("[role=alert]")?.textContent.includes("JSON Pointers")`)

	// The file, as the form's address gives it.
	b := s.signedIn()
	file := b.want(200, "POST", s.page("/requests/"+string(id)+"/bundle"), url.Values{"pointers": {"/ref"}})
	read, err := bundle.Read(strings.NewReader(file.body))
	if !strings.Contains(file.Header.Get("Content-Disposition"), "hookglass-bundle.json") || err != nil || strings.Contains(string(read.Events[0].Body), "ada@") {
		t.Errorf("%v %v %s", file.Header, err, file.body)
	}
}

func TestAPublishedSecretFitsAPhone(t *testing.T) {
	s := newSite(t)
	id := s.hook(sent{headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}, {Name: "Stripe-Signature", Value: "t=1,v1=00"}}, body: `{"object":"event","type":"invoice.paid"}`})
	c := s.chrome(320, 700)
	c.open(s.link())
	c.open(s.page("/requests/" + string(id) + "/bundle"))
	c.until(`document.querySelector(".bundle-report").innerText.includes("published secret whsec_")`)
	if wide := eval[int](c, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
		t.Errorf("the page is %d pixels too wide", wide)
	}
}

func TestTimesAreMovedWhenARequestIsReplayed(t *testing.T) {
	s := newSite(t)
	at := time.Now().Add(-48 * time.Hour)
	id := s.hook(json(fmt.Sprintf(someone, at.Unix())).before(48 * time.Hour))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(id)))
	c.until(isLive)
	c.click("[data-replay]")
	c.until(`document.getElementById("replay-form").open`)
	c.clickText("Preview changes")
	c.until(`document.getElementById("time-changes").innerText.includes("/created")`)
	c.picture("times-1440")
	if row := eval[string](c, `document.getElementById("time-changes").innerText`); !strings.Contains(row, fmt.Sprint(at.Unix())) {
		t.Error(row)
	}
	c.click(`[name="time_shift"]`)
	eval[bool](c, `(document.querySelector("#replay-form [name=target_url]").value = "https://app.example.com/", true)`)
	c.click(`#replay-form button[type="submit"].primary`)
	c.until(`document.querySelector("#part-replays").checkVisibility() && document.querySelector("#part-replays").innerText.includes("app.example.com")`)
	var sent []*hookglass.Replay
	err := s.db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
		sent, err = v.Replays(string(s.endpoint.ID), string(id), 0, 5)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sent) != 1 || strings.Contains(string(sent[0].Request.Body), fmt.Sprint(at.Unix())) || !strings.Contains(string(sent[0].Request.Body), `"created":`+fmt.Sprint(time.Now().Unix())[:7]) {
		t.Errorf("%+v", sent)
	}
	c.silent()
}

func TestSeveralAreReplayedInARow(t *testing.T) {
	t.Parallel() // it waits for most of its time
	var replays *replay.Service
	s := newSiteWith(t, func(d *web.Deps) { replays = d.Replays })
	for i := range 23 {
		s.hook(json(fmt.Sprintf(`{"n":%d}`, i)))
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive + ` && document.querySelectorAll(".pick").length === 23`)
	eval[bool](c, `(document.querySelectorAll(".pick").forEach((b) => b.click()), true)`)
	c.until(`document.getElementById("bulk-count").textContent === "23 selected"`)
	c.clickText("Replay selected")
	eval[bool](c, `(document.querySelector("#bulk-replay [name=target_url]").value = "https://app.example.com/", true)`)
	c.clickText("Replay all selected")
	c.until(`document.querySelector("h1").textContent === "Bulk replay" && document.querySelector("#batch-state [role=status]").textContent.startsWith("0 of 23 sent")`)
	c.clickText("Pause")
	c.until(`document.querySelector("#batch-state [role=status]").textContent.endsWith("paused")`)
	c.clickText("Resume")
	c.until(`document.querySelector("#batch-state [role=status]").textContent.endsWith("running")`)
	id := eval[string](c, `location.pathname.split("/").pop()`)
	if done, err := replays.WorkBatch(t.Context(), id); err != nil || !done {
		t.Fatalf("%v %v", done, err)
	}
	c.until(`document.querySelector("#batch-state [role=status]").textContent === "23 of 23 sent: completed"`)
	c.picture("batch-1440")
	if n := eval[int](c, `document.querySelectorAll("#batch-state tbody tr").length`); n != 23 {
		t.Errorf("%d results", n)
	}
	c.click("#batch-state tbody tr a")
	c.until(`document.querySelector("#detail-title").textContent.startsWith("POST") && document.querySelector("#part-replays .outcome")`)
	c.silent()
}

func TestASearchIsExportedInAFormatOfChoice(t *testing.T) {
	s := newSite(t)
	s.hook(json(`{"kind":"wanted"}`))
	s.hook(json(`{"kind":"other"}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("?q=wanted"))
	c.until(`document.querySelector(".exports summary").textContent.trim() === "Export search results"`)
	c.picture("export-1440")
	address := eval[string](c, `(() => { const f = document.querySelector(".exports form"); f.querySelector("select").value = "csv"; return f.action + "?" + new URLSearchParams(new FormData(f)); })()`)
	b := s.signedIn()
	file := b.want(200, "GET", address, nil)
	if !strings.HasPrefix(file.Header.Get("Content-Type"), "text/csv") || !strings.Contains(file.body, "wanted") || strings.Contains(file.body, "other") {
		t.Errorf("%v %s", file.Header, file.body)
	}
	if eval[bool](c, `[...document.querySelectorAll("#bulk-format option")].some((o) => o.value === "mbox")`) {
		t.Error("mail formats are offered for webhooks")
	}
	c.silent()
}

func TestATokenInABodyIsDecodedInTheBrowser(t *testing.T) {
	s := newSite(t)
	id := s.hook(json(fmt.Sprintf(someone, 1)))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(id)))
	c.until(isLive)
	c.until(`document.querySelector('.tree [data-k="session"]').click() === undefined`)
	c.until(`document.querySelector(".tree-place [data-jwt]").checkVisibility()`)
	c.clickText("Decode JWT")
	c.until(`document.querySelector('dialog[aria-label="JSON Web Token"]').open`)
	text := eval[string](c, `document.querySelector('dialog[aria-label="JSON Web Token"]').innerText`)
	for _, want := range []string{`"sub": "ada"`, "Expires 2023-11-14 22:13:20.000 UTC (expired)", "not verified"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	c.clickText("Close")
	c.until(`document.querySelector('.tree [data-k="id"]').click() === undefined`)
	c.until(`!document.querySelector(".tree-place [data-jwt]").checkVisibility()`)
	c.silent()
}

func TestANumberInATokenIsShownAsItIsWritten(t *testing.T) {
	s := newSite(t)
	part := base64.RawURLEncoding.EncodeToString
	id := s.hook(json(`{"token":"` + part([]byte(`{"alg":"none"}`)) + "." + part([]byte(`{"sub":1234567890123456789,"exp":1700000000,"rate":1.0}`)) + `."}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(id)))
	c.until(isLive)
	c.until(`document.querySelector('.tree [data-k="token"]').click() === undefined`)
	c.clickText("Decode JWT")
	c.until(`document.querySelector('dialog[aria-label="JSON Web Token"]').open`)
	text := eval[string](c, `document.querySelector('dialog[aria-label="JSON Web Token"]').innerText`)
	for _, want := range []string{`"sub": 1234567890123456789,`, `"rate": 1.0`, "Expires 2023-11-14 22:13:20.000 UTC (expired)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	c.silent()
}

func TestTheWayToTheStartHasAName(t *testing.T) {
	s := newSite(t)
	c := s.chrome(390, 844)
	c.open(s.link())
	if name := eval[string](c, `document.querySelector(".brand").ariaLabel`); !strings.Contains(name, "hookglass") {
		t.Errorf("%q", name)
	}
}
