package web_test

import (
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/alert"
	"hookglass/internal/delivery"
	"hookglass/internal/replay"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
	"hookglass/internal/tunnel"
	"hookglass/internal/web"
)

// PostgreSQL takes no NUL in text: whatever a browser sends, one with a NUL is refused, or kept where it is data.
func TestNULIsNowhereAFault(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(slog.DiscardHandler)
		s := newSiteOn(t, db, func(d *web.Deps) {
			d.Alerts = alert.New(db, alert.Config{Client: chats{}, Sealer: keys, Log: log})
			d.Actions = action.New(db, action.Config{Client: chats{}, Sealer: keys, Log: log})
			d.Replays = replay.New(db, replay.Config{Client: echo{}, Verifiers: d.Endpoints, Sealer: keys, Reads: d.Captures, Log: log, Retention: time.Hour})
			d.Tunnels = tunnel.New(db, tunnel.Config{Mail: delivery.MailJSON, Retention: time.Hour, Draining: d.Draining, Log: log})
			d.Signup = true
		})
		b := s.signedIn()
		s.signedIn() // elsewhere, which can be ended
		s.create("mail", hookglass.KindEmail)
		id := string(s.hook(json(`{"a":1}`)))
		for _, made := range []struct {
			status int
			path   string
			form   url.Values
		}{
			{303, "/tags", url.Values{"name": {"t"}, "color": {"red"}}},
			{303, "/channels", url.Values{"name": {"On call"}, "kind": {"slack"}, "webhook_url": {"https://hooks.slack.com/services/T0/B0/x"}}},
			{303, "/secrets", url.Values{"workspace": {"1"}, "name": {"KEY"}, "secret_value": {"x"}}},
			{201, "/account/tokens", url.Values{"name": {"t"}, "level": {"account"}, "scopes": {"read"}}},
			{303, s.path("/targets"), url.Values{"name": {"t"}, "url": {"https://example.com/"}, "enabled": {"true"}}},
			{303, s.path("/signatures"), url.Values{"provider": {"github"}, "secret": {"x"}}},
			{303, s.path("/alerts"), url.Values{"name": {"a"}, "kind": {"keyword_match"}, "keyword": {"x"}, "field": {"any"}}},
			{303, s.path("/searches"), url.Values{"name": {"s"}, "q": {"x"}}},
			{303, s.path("/schemas"), url.Values{"tracking": {"true"}}},
			{303, s.path("/cases"), url.Values{"do": {"save"}, "event": {id}, "name": {"c"}, "target_url": {"https://example.com/"}, "status_class": {"2xx"}}},
			{303, s.path("/actions/new"), url.Values{
				"do": {"save"}, "name": {"a"}, "failure_policy": {"continue"}, "steps[0].step_type": {"ignore"}, "steps[0].name": {"b"}, "steps[0].config.reason": {"noise"},
			}},
			{201, s.path("/requests/" + id + "/share"), url.Values{"expires": {"24h"}}},
			{303, s.path("/bulk"), url.Values{"do": {"replay"}, "id": {id}, "target_url": {"https://example.com/"}}},
		} {
			b.want(made.status, "POST", made.path, made.form)
		}
		pages, forms := b.reached("/endpoints", s.path("/requests/"+id))
		if len(pages) < 40 || len(forms) < 100 {
			t.Errorf("%d pages and %d forms were reached", len(pages), len(forms))
		}
		try := func(method, address string, form url.Values) {
			t.Helper()
			if a := b.do(method, address, form); a.StatusCode >= 500 {
				t.Errorf("%s %s %v: %d", method, address, form, a.StatusCode)
			}
		}
		for _, page := range pages {
			for _, spoiled := range withNUL(page.Query()) {
				try("GET", page.Path+"?"+spoiled.Encode(), nil)
			}
		}
		for _, f := range forms {
			steps := strings.Split(f.to.Path, "/")
			for i := 1; i < len(steps); i++ {
				spoiled := slices.Clone(steps)
				spoiled[i] += "%00"
				try(f.method, strings.Join(spoiled, "/"), f.values)
			}
			for _, spoiled := range withNUL(f.values) {
				if f.method == "POST" {
					try("POST", f.to.RequestURI(), spoiled)
				} else {
					try("GET", f.to.Path+"?"+spoiled.Encode(), nil)
				}
			}
		}
	})
}

// withNUL are copies of values, each of which has a NUL in another of them.
func withNUL(values url.Values) (all []url.Values) {
	for name := range values {
		spoiled := url.Values{}
		for other, given := range values {
			spoiled[other] = given
		}
		spoiled[name] = []string{values.Get(name) + "\x00"}
		all = append(all, spoiled)
	}
	return all
}

// form is a form of a page, with what it sends.
type form struct {
	method string
	to     *url.URL
	values url.Values
}

// reached are the pages and forms that links lead to, each once for all that differ only in values. What deletes comes
// last, and nothing signs out.
func (b *browser) reached(from ...string) (pages []*url.URL, forms []form) {
	b.t.Helper()
	seen := map[string]bool{}
	fresh := func(method string, at *url.URL, values url.Values) bool {
		key := method + at.Path + " " + strings.Join(slices.Sorted(maps.Keys(values)), " ")
		known := seen[key] || at.Path == "/sign-out" || strings.HasSuffix(at.Path, "/stream")
		seen[key] = true
		return !known
	}
	for len(from) > 0 {
		at, err := url.Parse(from[0])
		from = from[1:]
		if err != nil || at.Host != "" || !fresh("GET", at, at.Query()) {
			continue
		}
		pages = append(pages, at)
		page := b.do("GET", at.RequestURI(), nil)
		if !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") {
			continue
		}
		root, err := html.Parse(strings.NewReader(page.body))
		if err != nil {
			b.t.Fatal(err)
		}
		sent := map[*html.Node]url.Values{}
		for n := range root.Descendants() {
			name, of := attribute(n, "name"), n
			for of != nil && of.Data != "form" {
				of = of.Parent
			}
			if n.Data == "a" {
				if to, err := at.Parse(attribute(n, "href")); err == nil {
					from = append(from, to.String())
				}
			}
			if of == n {
				sent[n] = url.Values{}
			} else if of != nil && name != "" {
				sent[of].Add(name, valueOf(n))
			}
		}
		for n, values := range sent {
			f := form{strings.ToUpper(attribute(n, "method")), at, values}
			if action := attribute(n, "action"); action != "" {
				if f.to, err = at.Parse(action); err != nil {
					b.t.Fatal(err)
				}
			}
			if fresh("form "+f.method, f.to, values) {
				forms = append(forms, f)
			}
		}
	}
	slices.SortStableFunc(forms, func(a, b form) int {
		return strings.Count(a.to.Path, "/delete") - strings.Count(b.to.Path, "/delete")
	})
	return pages, forms
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// valueOf is what a field of a form sends, of a choice the last.
func valueOf(n *html.Node) (value string) {
	switch n.Data {
	case "textarea":
		for c := range n.ChildNodes() {
			value += c.Data
		}
		return value
	case "select":
		for c := range n.Descendants() {
			if c.Data == "option" {
				value = attribute(c, "value")
			}
		}
		return value
	}
	return attribute(n, "value")
}
