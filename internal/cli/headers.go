package cli

import (
	"errors"
	"fmt"
	"strings"

	"hookglass"
	"hookglass/internal/listen"
)

// headerFlag parses the value of --header.
func headerFlag(text string) (hookglass.Header, error) {
	name, value, ok := strings.Cut(text, ":")
	field, err := headerField(name, value)
	if ok && errors.Is(err, errFraming) {
		return field, fmt.Errorf("--header: %w", err)
	}
	if !ok || err != nil {
		return field, fmt.Errorf("--header %q is not of the form 'Name: value'", text)
	}
	return field, nil
}

// headerFlags parses the values of --header for what has one value under each name.
func headerFlags(texts []string) (fields hookglass.Headers, err error) {
	for _, text := range texts {
		field, err := headerFlag(text)
		if err != nil {
			return nil, outcome{exitUsage, err.Error()}
		}
		if fields.Has(field.Name) {
			return nil, headerTwice(field.Name)
		}
		fields = append(fields, field)
	}
	return fields, nil
}

func headerTwice(name string) error {
	return outcome{exitUsage, "--header gives " + name + " twice; it can have one value only"}
}

// headerField validates a header field.
func headerField(name, value string) (hookglass.Header, error) {
	f := hookglass.Header{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)}
	if !listen.ValidField(f) {
		return f, fmt.Errorf("%q is no header field", name)
	}
	if strings.EqualFold(f.Name, "Content-Length") || strings.EqualFold(f.Name, "Transfer-Encoding") {
		return f, fmt.Errorf("%s %w", f.Name, errFraming)
	}
	return f, nil
}

// errFraming refuses a field that the request sets itself: with two of them it would be ambiguous where the body ends.
var errFraming = errors.New("says where the body ends, which is the request's own to say")
