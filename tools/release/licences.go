package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is one that is linked in.
type module struct {
	path, version, sum string
	licences           []licence
}

// licence is the text of one file.
type licence struct {
	file string // below the module
	id   string // by SPDX; empty for a notice
	text string
}

// standardLibrary stands for what comes with Go.
const standardLibrary = "std"

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|unlicense|patents)([._-].*)?$`)

// inventory is what the binaries say that they are made of, with the licences of the packages that are used.
func (r *release) inventory(made []platform) ([]*module, error) {
	byPath := map[string]*module{}
	goVersion := ""
	for _, p := range made {
		info, err := buildinfo.ReadFile(r.binary(p))
		if err != nil {
			return nil, err
		}
		goVersion = info.GoVersion
		for _, d := range info.Deps {
			if d.Replace != nil {
				return nil, fmt.Errorf("%s is replaced by %s: a release is made of what go.mod names", d.Path, d.Replace.Path)
			}
			byPath[d.Path] = &module{path: d.Path, version: d.Version, sum: d.Sum}
		}
		if err := r.collect(p, byPath); err != nil {
			return nil, err
		}
	}
	goroot, err := r.output(nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	std := &module{path: standardLibrary, version: strings.TrimPrefix(goVersion, "go")}
	if err := std.read(goroot, goroot); err != nil {
		return nil, err
	}
	all := []*module{std}
	for _, m := range byPath {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *module) int { return strings.Compare(a.path, b.path) })
	var faults []error
	for _, m := range all {
		if !slices.ContainsFunc(m.licences, func(l licence) bool { return l.id != "" }) {
			faults = append(faults, fmt.Errorf("%s %s has no licence that is known", m.path, m.version))
		}
	}
	return all, errors.Join(faults...)
}

// collect reads the licences that stand in the folders of the packages that are linked, and above them.
func (r *release) collect(p platform, byPath map[string]*module) error {
	listed, err := r.output([]string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch}, "go", "list", "-deps", "-json=Dir,Module", "./cmd/hookglass")
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(strings.NewReader(listed))
	for decoder.More() {
		var one struct {
			Dir    string
			Module *struct {
				Path, Dir string
				Main      bool
			}
		}
		if err := decoder.Decode(&one); err != nil {
			return err
		}
		if one.Module == nil || one.Module.Main {
			continue
		}
		m := byPath[one.Module.Path]
		if m == nil {
			return fmt.Errorf("%s is needed and not linked", one.Module.Path)
		}
		for dir := one.Dir; ; dir = filepath.Dir(dir) {
			if err := m.read(one.Module.Dir, dir); err != nil {
				return err
			}
			if dir == one.Module.Dir {
				break
			}
		}
	}
	return nil
}

// read adds the licences of one folder.
func (m *module) read(root, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
			continue
		}
		name, err := filepath.Rel(root, filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		if slices.ContainsFunc(m.licences, func(l licence) bool { return l.file == name }) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		m.licences = append(m.licences, licence{name, identify(string(text)), string(text)})
	}
	return nil
}

// identify names a licence by its words. One that it does not know has no name, and a module that has no other stops
// the release: a person reads it then.
func identify(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	has := func(words string) bool { return strings.Contains(text, words) }
	switch {
	case has("apache license") && has("version 2.0"):
		return "Apache-2.0"
	case has("mozilla public license") && has("2.0"):
		return "MPL-2.0"
	case has("gnu "):
		return "" // of none of these may a part be linked into this program without more
	case has("permission is hereby granted, free of charge"):
		return "MIT"
	case has("permission to use, copy, modify, and/or distribute"), has("permission to use, copy, modify, and distribute this software for any purpose"):
		return "ISC"
	case has("redistribution and use in source and binary forms"):
		if has("neither the name") || has("names of its contributors") || has("may not be used to endorse") {
			return "BSD-3-Clause"
		}
		return "BSD-2-Clause"
	case has("this is free and unencumbered software released into the public domain"):
		return "Unlicense"
	case has("cc0 1.0"):
		return "CC0-1.0"
	}
	return ""
}

// ids are the names of a module's licences, each once.
func (m *module) ids() []string {
	var ids []string
	for _, l := range m.licences {
		if l.id != "" && !slices.Contains(ids, l.id) {
			ids = append(ids, l.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// writeLicences writes a list, and then every text.
func (r *release) writeLicences(modules []*module) error {
	var b strings.Builder
	b.WriteString("hookglass is made of these works of others, each under its own licence. The texts follow the list.\n\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "%-60s %-40s %s\n", m.path, m.version, strings.Join(m.ids(), " AND "))
	}
	for _, m := range modules {
		for _, l := range m.licences {
			fmt.Fprintf(&b, "\n%s\n%s %s, %s\n%s\n\n%s\n", strings.Repeat("=", 100), m.path, m.version, filepath.ToSlash(l.file), strings.Repeat("=", 100), strings.TrimSpace(l.text))
		}
	}
	return os.WriteFile(filepath.Join(r.work, "THIRD_PARTY_LICENSES"), []byte(b.String()), 0o644)
}
