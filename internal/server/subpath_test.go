package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAPublicURLIsOneThatCanBeCalled refuses one without a host, and one whose path hides a page: behind a proxy that
// cuts the path, nobody could tell /flows below it from itself.
func TestAPublicURLIsOneThatCanBeCalled(t *testing.T) {
	refused := map[string]bool{"http://:8080": true, "https://h?": true, "https://h/hooks": true, "https://h/some": false, "https://h:8443/": false}
	route := regexp.MustCompile(`"(?:(?:GET|POST|PUT|PATCH|DELETE) /([a-z.-]+)|/([a-z.-]+)": "/)`)
	files, err := filepath.Glob("../web/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range route.FindAllStringSubmatch(string(text), -1) {
			refused["https://h/"+m[1]+m[2]] = true
		}
	}
	if len(refused) < 20 {
		t.Fatalf("the web app has pages at %v alone", refused)
	}
	for address, wrong := range refused {
		cfg := config(t.TempDir())
		cfg.PublicURL = address
		if _, err := cfg.Validate(); (err != nil) != wrong {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestTheServiceStandsBelowAPath reaches it both as a proxy passes everything on and as one that cuts the path.
func TestTheServiceStandsBelowAPath(t *testing.T) {
	const below = "/some/path"
	cfg := config(filepath.Join(t.TempDir(), "data"))
	cfg.Listen = freePort(t)
	cfg.PublicURL = "http://" + cfg.Listen + below + "/"
	d, _ := start(t, cfg)
	root := "http://" + cfg.Listen
	for name, address := range map[string]string{"web": d.Web, "sign-in": d.SignIn, "webhooks": d.WebhookURL, "api": d.API} {
		if !strings.HasPrefix(address, root+below+"/") {
			t.Errorf("the address of %s is %s", name, address)
		}
	}
	get := func(c *http.Client, address string) (*http.Response, string) {
		t.Helper()
		res, err := c.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(body)
	}

	for _, before := range []string{below, ""} {
		status, answer := call(t, "POST", root+before+"/hooks/"+d.EndpointID+"/x//y", "", "{}")
		if status != 200 {
			t.Fatalf("a webhook at %q: %d %s", before, status, answer)
		}
		status, answer = call(t, "GET", root+before+"/api/v1/endpoints/"+d.EndpointID+"/requests/export?format=ndjson", d.Token, "")
		var newest struct{ URL, Path string }
		if err := json.NewDecoder(strings.NewReader(string(answer))).Decode(&newest); err != nil || status != 200 {
			t.Fatalf("%d %v %s", status, err, answer)
		}
		if newest.URL != d.WebhookURL+"/x//y" || newest.Path != "/x//y" {
			t.Errorf("captured at %q: path %s of %s", before, newest.Path, newest.URL)
		}
		for _, path := range []string{"/healthz", "/readyz", "/docs", "/api/v1/openapi.json", "/openapi.yaml", "/sign-in"} {
			if res, _ := get(http.DefaultClient, root+before+path); res.StatusCode != 200 {
				t.Errorf("%s answers %d", before+path, res.StatusCode)
			}
		}
	}
	if _, text := get(http.DefaultClient, root+below+"/api/v1/openapi.json"); !regexp.MustCompile(`"url":\s*"` + regexp.QuoteMeta(root+below) + `/api/v1"`).MatchString(text) {
		t.Error("the description names another server")
	}
	_, answer := call(t, "POST", root+below+"/api/v1/tunnel/connect", d.Token, `{"endpoint_id":"`+d.EndpointID+`"}`)
	if !strings.Contains(string(answer), strings.Replace(root, "http", "ws", 1)+below+"/cable") {
		t.Errorf("the tunnel is at %s", answer)
	}

	// The web app, as a browser without scripts: every address in every page that can be reached leads below the path,
	// and somewhere.
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	seen := map[string]bool{}
	queue := []string{d.SignIn}
	address := regexp.MustCompile(` ([a-z-]+)="(/[^"]*)"`)
	pages := 0
	for len(queue) > 0 && pages < 150 {
		at := queue[0]
		queue = queue[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		res, body := get(browser, at)
		pages++
		if res.StatusCode != 200 {
			t.Errorf("%s answers %d", at, res.StatusCode)
		}
		if !strings.HasPrefix(res.Request.URL.Path, below) {
			t.Errorf("%s leads to %s", at, res.Request.URL)
		}
		if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
			continue
		}
		for _, m := range address.FindAllStringSubmatch(body, -1) {
			if m[1] == "placeholder" || m[1] == "value" || m[1] == "aria-keyshortcuts" || m[1] == "d" || strings.HasPrefix(m[1], "data-k") || m[1] == "data-go-pointer" || m[1] == "data-label" || m[1] == "data-copy" || m[1] == "title" || m[1] == "data-title" {
				continue // not an address
			}
			if !strings.HasPrefix(m[2], below+"/") {
				t.Errorf("%s has %s=%q: if that is an address, name the attribute in addressed of internal/web/base.go", at, m[1], m[2])
				continue
			}
			if m[1] == "href" || m[1] == "src" {
				path, _, _ := strings.Cut(m[2], "#")
				queue = append(queue, root+strings.ReplaceAll(path, "&amp;", "&"))
			}
		}
	}
	if pages < 30 {
		t.Errorf("only %d pages were found", pages)
	}
	u, _ := url.Parse(d.Web)
	if len(jar.Cookies(u)) == 0 {
		t.Error("the session's cookie is not sent to the app")
	}
	if u.Path = "/other"; len(jar.Cookies(u)) != 0 {
		t.Error("the session's cookie is sent to other services of the host")
	}
}
