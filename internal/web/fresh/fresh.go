// Package fresh refreshes parts of a page. A part names its address and how often to fetch it, and fresh.js replaces
// it. Without scripts a part is as old as its page.
package fresh

import "embed"

// Script is the name of the module that pages with such parts load.
const Script = "fresh.js"

// Files holds the script.
//
//go:embed fresh.js
var Files embed.FS
