package provider

import "strings"

// hubspotURL decodes the characters of a URL that HubSpot's page on validating requests says to decode for the third
// version; the rest stays escaped.
var hubspotURL = strings.NewReplacer("%3A", ":", "%3a", ":", "%2F", "/", "%2f", "/", "%3F", "?", "%3f", "?", "%40", "@", "%21", "!",
	"%24", "$", "%27", "'", "%28", "(", "%29", ")", "%2A", "*", "%2a", "*", "%2C", ",", "%2c", ",", "%3B", ";", "%3b", ";")
