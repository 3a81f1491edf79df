package hookglass_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	linkPattern   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	makePattern   = regexp.MustCompile("(?m)(?:^|`)make ([a-z]+)")
	targetPattern = regexp.MustCompile(`(?m)^([a-z]+):.*## `)
)

func TestLinksBetweenDocumentsLeadSomewhere(t *testing.T) {
	eachDocument(t, func(file, text string) {
		for _, m := range linkPattern.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), filepath.FromSlash(target))); err != nil {
				t.Errorf("%s: the link %s leads nowhere", file, m[1])
			}
		}
	})
}

func TestDocumentsNameTargetsThatTheMakefileHas(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range targetPattern.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	eachDocument(t, func(file, text string) {
		for _, m := range makePattern.FindAllStringSubmatch(text, -1) {
			if !targets[m[1]] {
				t.Errorf("%s: there is no target for make %s", file, m[1])
			}
		}
	})
}

func eachDocument(t *testing.T, visit func(file, text string)) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != "." {
			return fs.SkipDir
		}
		if filepath.Ext(file) != ".md" {
			return nil
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found++
		visit(file, string(b))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Fatal("no document was found")
	}
}
