package outbound

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"hookglass"
)

// Bounds of a header that people set on a request, in bytes.
const (
	maxSetName  = 256
	maxSetValue = 8 << 10
)

// ownPrefix begins the names of the headers by which the service tells of itself. Lower case.
const ownPrefix = "x-service-"

// Settable judges headers that people set on requests, as overrides of a replay or on a forwarding target: nil removes
// one. It returns the names of those that may be set, in their order, and sentences about the others, which hold no
// value.
//
// What frames the request or belongs to the connection may not be set, and neither what the service sends by itself.
func Settable(headers map[string]*string, most int) (names, faults []string) {
	if len(headers) > most {
		return nil, []string{"may name " + strconv.Itoa(most) + " headers at most"}
	}
	seen := make(map[string]bool, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value, lower := headers[name], strings.ToLower(name)
		switch {
		case seen[lower]:
			faults = append(faults, "names "+name+" twice, which is one header in any spelling")
		case len(name) > maxSetName:
			faults = append(faults, "has a name of more than "+strconv.Itoa(maxSetName)+" bytes")
		case !hookglass.IsToken(name):
			faults = append(faults, "has the invalid name "+strconv.Quote(name))
		case value != nil && len(*value) > maxSetValue:
			faults = append(faults, "has a value for "+name+" of more than "+strconv.Itoa(maxSetValue)+" bytes")
		case value != nil && !hookglass.IsFieldValue(*value):
			faults = append(faults, "has an invalid value for "+name)
		case ofConnection(name) || strings.HasPrefix(lower, ownPrefix):
			faults = append(faults, "may not set "+name+", which is computed")
		default:
			names = append(names, name)
		}
		seen[lower] = true
	}
	return names, faults
}
