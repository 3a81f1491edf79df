package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base32"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"

	"hookglass/internal/httpd"
	"hookglass/internal/web/account"
	"hookglass/internal/web/actions"
	"hookglass/internal/web/activity"
	"hookglass/internal/web/alerts"
	"hookglass/internal/web/batches"
	"hookglass/internal/web/cases"
	"hookglass/internal/web/channels"
	"hookglass/internal/web/compare"
	"hookglass/internal/web/endpoints"
	"hookglass/internal/web/flows"
	"hookglass/internal/web/fresh"
	"hookglass/internal/web/inspector"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/ledger"
	"hookglass/internal/web/metrics"
	"hookglass/internal/web/retries"
	"hookglass/internal/web/schemas"
	"hookglass/internal/web/secrets"
	"hookglass/internal/web/settings"
	"hookglass/internal/web/setup"
	"hookglass/internal/web/signin"
	"hookglass/internal/web/tags"
	"hookglass/internal/web/tunnel"
)

// stylesheet is the single stylesheet of all pages, joined from theirs in the order of the folders.
const stylesheet = "app.css"

// assets are the files of all pages, under names that contain their hash, so that browsers may cache them for ever.
type assets struct {
	urls  map[string]string         // by the file's own name
	files map[string]httpd.Document // by the name in the URL
}

// mediaTypes are the types of the assets; the system's table may differ.
var mediaTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// comments are the lines of a script that only its readers need, a tenth of what it takes on the line. They are left
// empty, so that errors name the lines of the source.
var comments = regexp.MustCompile(`(?m)^[ \t]*//.*$`)

func newAssets() *assets {
	a := &assets{urls: make(map[string]string), files: make(map[string]httpd.Document)}
	var style bytes.Buffer
	for _, folder := range []embed.FS{layout.Files, signin.Files, account.Files, endpoints.Files, settings.Files, inspector.Files, compare.Files, fresh.Files, cases.Files, actions.Files, tunnel.Files, batches.Files, secrets.Files, tags.Files, channels.Files, alerts.Files, metrics.Files, retries.Files, schemas.Files, activity.Files, setup.Files, flows.Files, ledger.Files} {
		entries, err := folder.ReadDir(".")
		if err != nil {
			panic(err) // an embedded folder can be read, or the binary is broken
		}
		for _, entry := range entries {
			content, err := fs.ReadFile(folder, entry.Name())
			if err != nil {
				panic(err)
			}
			switch path.Ext(entry.Name()) {
			case ".css":
				style.Write(content)
			case ".js":
				a.add(entry.Name(), comments.ReplaceAll(content, nil))
			default:
				a.add(entry.Name(), content)
			}
		}
	}
	a.add(stylesheet, style.Bytes())
	return a
}

// hashLength is that of the hash in a name, which is 10 bytes in base32.
const hashLength = 16

func (a *assets) add(name string, content []byte) {
	sum := sha256.Sum256(content)
	hash := strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10]))
	ext := path.Ext(name)
	hashed := strings.TrimSuffix(name, ext) + "." + hash + ext
	a.files[hashed] = httpd.NewDocument(mediaTypes[ext], content)
	a.urls[name] = "/assets/" + hashed
}

// url returns the URL of an asset, or "" for one that does not exist, which a test finds.
func (a *assets) url(name string) string { return a.urls[name] }

// find returns the file of a name, and its Cache-Control. During a rolling upgrade, pages of another version may ask
// for their version of a file; they get this version, uncached.
func (a *assets) find(name string) (file httpd.Document, keep string, ok bool) {
	if file, ok = a.files[name]; ok {
		return file, "public, max-age=31536000, immutable", true
	}
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	hash := path.Ext(stem)
	if len(hash) != len(".")+hashLength {
		return httpd.Document{}, "", false
	}
	file, ok = a.files[path.Base(a.urls[strings.TrimSuffix(stem, hash)+ext])]
	return file, "no-store", ok
}

func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	file, keep, ok := a.find(name)
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", keep)
	file.ServeHTTP(w, r)
}
