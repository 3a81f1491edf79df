package cli

import (
	"regexp"
	"strings"
)

var (
	unknownKey = regexp.MustCompile(`field (\S+) not found in type \S+`)
	wrongType  = regexp.MustCompile("cannot unmarshal !!(\\w+)(?: `[^`]*`)? into (\\S+)")
)

// yamlFault says for people what is wrong with a YAML file, and in which lines: the library names types of Go.
func yamlFault(err error) string {
	said := unknownKey.ReplaceAllString(err.Error(), `there is no key "$1" here`)
	said = wrongType.ReplaceAllStringFunc(said, func(s string) string {
		m := wrongType.FindStringSubmatch(s)
		return "a " + yamlKind(m[2]) + " belongs here, not a " + yamlKind(m[1])
	})
	return strings.TrimPrefix(strings.TrimPrefix(said, "yaml: "), "unmarshal errors:\n  ")
}

// yamlKind names a kind of value for people.
func yamlKind(s string) string {
	switch {
	case s == "seq" || strings.HasPrefix(s, "["):
		return "list"
	case s == "map" || strings.HasPrefix(s, "map[") || strings.HasPrefix(s, "cli.") || strings.HasPrefix(s, "hookglass."):
		return "mapping"
	case s == "time.Time":
		return "time"
	case s == "bool":
		return "true or false"
	case s == "int" || s == "int64":
		return "number"
	}
	return "text"
}
