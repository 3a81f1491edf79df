// Package fresh keeps a part of a page as new as what it shows: the part says where to fetch it and how often,
// and fresh.js puts it in place of the old one. Without scripts a part is as old as its page.
package fresh

import "embed"

// Script is the name of the module that a page with such parts loads.
const Script = "fresh.js"

// Files is the script.
//
//go:embed fresh.js
var Files embed.FS
