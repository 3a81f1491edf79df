package mcp

import "hookglass/internal/httpd"

// The lists that cursors belong to. A cursor of another list is refused.
const (
	ofEndpoints  httpd.List = 'n'
	ofEvents     httpd.List = 'e'
	ofCases      httpd.List = 'c'
	ofActions    httpd.List = 'o'
	ofActionRuns httpd.List = 'v'
	ofAlerts     httpd.List = 'a'
	ofArrivals   httpd.List = 'w'
)
