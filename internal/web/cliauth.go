package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/web/cliauth"
)

// statePattern is the form of a command line's state: visible ASCII, as in OAuth, except for characters that are
// special in HTML.
var statePattern = regexp.MustCompile(`^[!#-;=?-\[\]-~]{1,200}$`)

// cliRequest parses where a command line waits: on a port of its machine with a state, or for a code.
func cliRequest(form url.Values) (port, state string, err error) {
	port, state = form.Get("callback_port"), form.Get("state")
	if port == "" {
		return "", "", nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return "", "", hookglass.Invalid("callback_port", "must be a port")
	}
	if !statePattern.MatchString(state) {
		return "", "", hookglass.Invalid("state", `must be 1 to 200 visible ASCII characters without < > " \`)
	}
	return port, state, nil
}

// showCLIAuth asks whether a command line may sign in.
func (a *app) showCLIAuth(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	port, state, err := cliRequest(r.URL.Query())
	if err != nil {
		return err
	}
	return a.renderCLIAuth(w, r, v, cliauth.Model{Port: port, State: state})
}

// approveCLI signs the command line in: it gets a token, or the page shows a code to exchange for one.
func (a *app) approveCLI(w http.ResponseWriter, r *http.Request) error {
	v, err := a.userForm(w, r)
	if err != nil {
		return err
	}
	port, state, err := cliRequest(r.PostForm)
	if err != nil {
		return err
	}
	if port == "" {
		code, err := a.Accounts.CommandLineCode(r.Context(), v.who)
		if err != nil {
			return err
		}
		return a.renderCLIAuth(w, r, v, cliauth.Model{Code: code})
	}
	token, err := a.Accounts.CommandLineToken(r.Context(), v.who)
	if err != nil {
		return err
	}
	// Existing command lines read one of the two: older ones the token, newer ones a code that they exchange.
	query := url.Values{"token": {token}, "code": {token}, "state": {state}}
	waits := url.URL{Scheme: "http", Host: "127.0.0.1:" + port, Path: "/callback", RawQuery: query.Encode()}
	http.Redirect(w, r, waits.String(), http.StatusSeeOther) // not redirect, which stays within the app
	return nil
}

func (a *app) renderCLIAuth(w http.ResponseWriter, r *http.Request, v visitor, m cliauth.Model) (err error) {
	if m.Frame, err = a.globalFrame(r.Context(), v, "", "Command line"); err != nil {
		return err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		account, err := view.Account(v.who.Account)
		m.Account = account.Name
		return err
	})
	if err != nil {
		return err
	}
	if m.Port != "" {
		// The form's answer redirects to the command line, and browsers apply form-action to redirects, too.
		w.Header().Set("Content-Security-Policy", strings.Replace(contentPolicy, "form-action 'self'", "form-action 'self' http://127.0.0.1:"+m.Port, 1))
	}
	return render(w, r, http.StatusOK, cliauth.Page(m))
}
