package replay

import (
	"bytes"

	"hookglass"
	"hookglass/api"
)

// ReadAssertions reads assertions and appends what is wrong with them to faults, with field names that begin with in.
// An empty object or null asserts nothing and counts as no assertions.
func ReadAssertions(faults *[]hookglass.FieldError, in string, a *api.Assertions) *hookglass.Assertions {
	out := new(hookglass.Assertions)
	fault := func(field, message string) {
		*faults = append(*faults, hookglass.FieldError{Field: in + field, Message: message})
	}
	if s := a.Status; s != nil {
		switch {
		case s.Class == nil && s.Code == nil:
			fault("status", "must name class or code")
		case s.Class != nil && *s.Class == "":
			fault("status.class", "must be one of 1xx, 2xx, 3xx, 4xx and 5xx")
		case s.Code != nil && *s.Code == 0:
			fault("status.code", "must be from 100 to 599")
		}
		if s.Class != nil {
			out.StatusClass = *s.Class
		}
		if s.Code != nil {
			out.StatusCode = *s.Code
		}
	}
	subset := bytes.TrimSpace(a.JSONSubset)
	switch {
	case len(subset) == 0, string(subset) == "null":
	case subset[0] != '{':
		fault("json_subset", "must be an object")
	case len(bytes.TrimSpace(subset[1:len(subset)-1])) > 0:
		out.JSONSubset = subset
	}
	return out
}
