package web_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
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
