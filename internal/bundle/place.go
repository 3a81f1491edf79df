package bundle

import (
	"slices"
	"strings"

	"hookglass/internal/jsondoc"
)

// place is a parsed pointer of the options.
type place struct {
	source string // "": the body; header, query
	tokens []string
}

// parsePlace parses a pointer. A fault is a sentence for the user.
func parsePlace(text string) (p place, fault string) {
	if len(text) > maxPointer {
		return p, "may have 1,024 bytes at most"
	}
	if source, name, found := strings.Cut(text, ":"); found && (source == "header" || source == "query") {
		if name == "" {
			return p, "must name a header or a parameter after the colon"
		}
		return place{source, []string{name}}, ""
	}
	pointer, err := jsondoc.ParsePointer(text)
	if err != nil || text == "" {
		return p, "must be JSON Pointers (/data/email), header:<name> or query:<name>; keep also takes kinds"
	}
	return place{tokens: pointer.Tokens()}, ""
}

// covers reports whether a location is the place p or lies within it.
func (p place) covers(source string, path []string) bool {
	if p.source != source || len(path) < len(p.tokens) {
		return false
	}
	for i, token := range p.tokens {
		switch {
		case token == path[i], token == "*" && source == "", source == "header" && strings.EqualFold(token, path[i]):
		default:
			return false
		}
	}
	return true
}

// spot is the location of a text: at a path in the body, or in a header or a query parameter.
type spot struct {
	source string // "", header, query, path
	path   []string
	name   string // of the nearest field around it
	person bool   // that field is among those of a person
	shown  string // its name in the report
}

func covered(places []place, s spot) bool {
	return slices.ContainsFunc(places, func(p place) bool { return p.covers(s.source, s.path) })
}
