package cli

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/server"
)

// maxHeaderLines bounds what is read for the headers of a target. The server takes less.
const maxHeaderLines = 1 << 16

// targetHeaders returns the headers that a target is to have: the stored ones, which are known without their values,
// changed by the flags. A flag without a value removes a header. Without flags nothing changes.
func targetHeaders(t *server.Terminal, flags []string, there map[string]string) (o api.Optional[map[string]string], err error) {
	if len(flags) == 0 {
		return o, nil
	}
	var lines []string
	for _, flag := range flags {
		if flag != "-" {
			lines = append(lines, flag)
			continue
		}
		text, err := readInput(t, flag, maxHeaderLines)
		if err != nil {
			return o, err
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" {
				lines = append(lines, line)
			}
		}
	}
	headers := maps.Clone(there)
	if headers == nil {
		headers = make(map[string]string)
	}
	var given hookglass.Headers
	for _, line := range lines {
		name, value, found := strings.Cut(line, ":")
		f := hookglass.Header{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)}
		if !found || !hookglass.IsToken(f.Name) {
			return o, outcome{exitUsage, "--header must be of the form 'Name: value', each time"} // not quoted: it may hold a secret
		}
		if given.Has(f.Name) {
			return o, headerTwice(f.Name)
		}
		given = append(given, f)
		// Flags come with U+FFFD for what is not UTF-8, and so would JSON: nobody could see that another value is sent.
		if strings.ContainsRune(f.Value, utf8.RuneError) {
			return o, outcome{exitUsage, "--header " + f.Name + " has a value that is not UTF-8"}
		}
		maps.DeleteFunc(headers, func(other, _ string) bool { return strings.EqualFold(other, f.Name) })
		if f.Value != "" {
			headers[f.Name] = f.Value
		}
	}
	return api.Some(headers), nil
}

// adds returns the names of the headers that a target adds, as text.
func adds(t api.ForwardingTarget) string {
	if len(t.Headers) == 0 {
		return "-"
	}
	return strings.Join(slices.Sorted(maps.Keys(t.Headers)), ", ")
}
