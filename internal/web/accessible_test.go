package web_test

import (
	"context"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// templates calls each with every template of the pages.
func templates(t *testing.T, each func(path, text string)) {
	t.Helper()
	pages := os.DirFS(".")
	paths, err := fs.Glob(pages, "*/*.templ")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d templates, %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := fs.ReadFile(pages, path)
		if err != nil {
			t.Fatal(err)
		}
		each(path, string(text))
	}
}

// A screen reader lists the tables of a page by their names.
func TestEveryTableHasAName(t *testing.T) {
	table := regexp.MustCompile(`<table[^>]*>`)
	templates(t, func(path, text string) {
		for _, tag := range table.FindAllString(text, -1) {
			if !strings.Contains(tag, " aria-label=") {
				t.Errorf("%s: %s has no aria-label", path, tag)
			}
		}
	})
}

// A fault is hidden where it stands: only the field that refers to it says it.
func TestEveryFaultOfAFieldDescribesTheField(t *testing.T) {
	shown, referred := regexp.MustCompile(`layout\.Fault\(([^,]*),`), regexp.MustCompile(`layout\.Faulty\(([^,]*),`)
	ids := func(what *regexp.Regexp, text string) (all []string) {
		for _, found := range what.FindAllStringSubmatch(text, -1) {
			all = append(all, strings.ReplaceAll(found[1], " ", ""))
		}
		return all
	}
	templates(t, func(path, text string) {
		described := ids(referred, text)
		for _, id := range ids(shown, text) {
			if !slices.Contains(described, id) {
				t.Errorf("%s: no field refers to the fault %s", path, id)
			}
		}
	})
}

// A label is the name of its field: a hint in it, to which the field refers, would be read twice.
func TestAHintOfAFieldIsReadOnce(t *testing.T) {
	hint, found := regexp.MustCompile(`<\w+[^>]* id="?[^">]*-hint"[^>]*>`), 0
	templates(t, func(path, text string) {
		for _, tag := range hint.FindAllString(text, -1) {
			if found++; !strings.Contains(tag, ` aria-hidden="true"`) {
				t.Errorf("%s: %s is part of the name, too", path, tag)
			}
		}
	})
	if found != 3 {
		t.Errorf("%d hints, want those of headers, bodies and passwords", found)
	}
}

// Forced colours give a colour to each border, so an arrow made of transparent borders is a box there.
func TestNoArrowIsMadeOfTransparentBorders(t *testing.T) {
	pages := os.DirFS(".")
	paths, err := fs.Glob(pages, "*/*.css")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d styles, %v", len(paths), err)
	}
	made := regexp.MustCompile(`.*[^-]border: ?\d+px solid transparent.*`)
	for _, path := range paths {
		style, err := fs.ReadFile(pages, path)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range made.FindAll(style, -1) {
			t.Errorf("%s: %s", path, rule)
		}
	}
}

func TestAScreenReaderSaysOfAFieldItsNameAndThenItsFault(t *testing.T) {
	w := newWorkshop(t)
	c := w.chrome(1280, 900)
	c.open(w.link())
	c.until(isLive)
	for path, q := range map[string]struct{ button, field, name, fault string }{
		"/settings":    {"[action$='/targets'] button:last-of-type", "url", "URL", "The URL must begin with http:// or https://."},
		"/actions/new": {"[name=do][value=save]", "name", "Name", "Must have 1 to 200 characters."},
	} {
		c.open(w.page(path))
		c.until(`document.querySelector("` + q.button + `").formNoValidate = true`)
		eval[any](c, `document.querySelector("`+q.button+`").click() ?? true`)
		c.until(`document.querySelector("[name=` + q.field + `][aria-invalid]")`)
		var said [][2]string
		c.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			tree, err := cdp.Call(ctx, tab, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
			for _, n := range tree.Nodes {
				if n.Name != nil && n.Description != nil {
					said = append(said, [2]string{strings.Trim(string(n.Name.Value), `"`), strings.Trim(string(n.Description.Value), `"`)})
				}
			}
			return err
		}))
		if !slices.Contains(said, [2]string{q.name, q.fault}) {
			t.Errorf("%s: no field is called %q and described as %q, but %q", path, q.name, q.fault, said)
		}
	}
}
