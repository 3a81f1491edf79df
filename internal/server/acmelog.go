package server

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"sync"
)

// acmeLog inspects the answers of an ACME authority and logs what autocert does not report: why the authority could not
// verify a name (autocert only says that no challenge is left), and errors of a renewal, which nobody would notice
// before the certificate expires.
type acmeLog struct {
	log *slog.Logger

	mu   sync.Mutex
	told map[string]string // the last reported challenge URL, by name and kind of challenge
}

// acmeAnswer is a problem (RFC 8555, section 6.7) or an authorization (section 7.1.4).
type acmeAnswer struct {
	acmeProblem
	Status     any // a word in an authorization, a number in a problem
	Identifier struct{ Value string }
	Challenges []struct {
		Type, URL string
		Error     *acmeProblem
	}
}

type acmeProblem struct{ Type, Detail string }

// badNonce is not a failure: the client retries.
const badNonce = "urn:ietf:params:acme:error:badNonce"

// largestACME bounds how much of an answer is inspected.
const largestACME = 64 << 10

// look reads the beginning of an answer and puts it back.
func (a *acmeLog) look(req *http.Request, res *http.Response, err error) {
	if err != nil {
		if req.Context().Err() == nil {
			a.log.Warn("the ACME authority cannot be asked", "url", req.URL.Redacted(), "error", err)
		}
		return
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		if res.StatusCode >= 400 {
			a.log.Warn("the ACME authority refuses", "url", req.URL.Redacted(), "status", res.StatusCode)
		}
		return
	}
	head, err := io.ReadAll(io.LimitReader(res.Body, largestACME))
	rest := io.Reader(res.Body)
	if err != nil {
		rest = failed{err}
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), res.Body}
	var answer acmeAnswer
	if json.Unmarshal(head, &answer) == nil {
		a.note(req, res.StatusCode, answer)
	}
}

func (a *acmeLog) note(req *http.Request, status int, answer acmeAnswer) {
	if status >= 400 {
		if answer.Type != badNonce {
			a.log.Warn("the ACME authority refuses", "url", req.URL.Redacted(), "status", status, "type", answer.Type, "detail", answer.Detail)
		}
		return
	}
	if answer.Status != "invalid" {
		return
	}
	for _, c := range answer.Challenges {
		if c.Error != nil && a.isNew(answer.Identifier.Value+" "+c.Type, c.URL) {
			a.log.Warn("the ACME authority could not verify a name", "domain", answer.Identifier.Value, "challenge", c.Type, "type", c.Error.Type, "detail", c.Error.Detail)
		}
	}
}

// isNew reports whether a challenge was not reported yet: autocert fetches it again when it cleans up.
func (a *acmeLog) isNew(of, url string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.told[of] == url {
		return false
	}
	a.told[of] = url
	return true
}

// failed is the rest of a body whose reading failed.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }
