package rest

import "hookglass/internal/httpd"

const defaultLimit = 25 // of a page (spec: decisions, section 3)

// The lists that cursors belong to. A cursor of another list is refused.
const (
	ofEndpoints httpd.List = 'n'
	ofEvents    httpd.List = 'e'
	ofTargets   httpd.List = 't'
	ofForwards  httpd.List = 'f'

	ofReplays    httpd.List = 'r'
	ofReleases   httpd.List = 'y'
	ofCases      httpd.List = 'c'
	ofRuns       httpd.List = 'u'
	ofBatches    httpd.List = 'b'
	ofBatchItems httpd.List = 'i'

	ofActions    httpd.List = 'o'
	ofActionRuns httpd.List = 'v'
	ofSecrets    httpd.List = 's'

	ofUndelivered httpd.List = 'm'
	ofGaps        httpd.List = 'k'

	ofTags      httpd.List = 'g'
	ofChannels  httpd.List = 'h'
	ofAlerts    httpd.List = 'a'
	ofIncidents httpd.List = 'd'
	ofLedger    httpd.List = 'l'
	ofFlows     httpd.List = 'w'

	ofConfigs httpd.List = 'p'
	ofShares  httpd.List = 'x'
)

// paged parses the parameters of a list that is complete unless paging is requested (spec: decisions, section 13,
// "Paging").
func paged(list httpd.List, limit int, cursor string) (httpd.Page, error) {
	if limit == 0 && cursor != "" {
		limit = defaultLimit
	}
	return list.Page(limit, cursor)
}
