package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/endpoint"
	"hookglass/internal/httpd"
	"hookglass/internal/store"
	"hookglass/internal/web/signin"
)

// Names of the cookies. Over https they have a prefix that binds them to https and, if the app is at the root of its
// host, to the host.
const (
	sessionCookie   = "hookglass_session"
	temporaryCookie = "hookglass_temporary"
	hostPrefix      = "__Host-"
	securePrefix    = "__Secure-"
)

// errSignIn is for whoever has to sign in first.
var errSignIn = hookglass.Errorf(hookglass.CodeUnauthorized, "Sign in to continue.")

// visitor is who views the app: a signed-in user, the browser of a temporary endpoint, or anyone.
type visitor struct {
	who  hookglass.Principal
	user hookglass.User // of a session
	// claims says that a signed-in user views a temporary endpoint as the holder of its key.
	claims bool
}

func (v visitor) signedIn() bool  { return v.user.ID != 0 }
func (v visitor) temporary() bool { return v.who.Endpoint != "" }

// visit finds the visitor. Without session and key it answers unauthorized, and returns anyone.
func (a *app) visit(r *http.Request) (visitor, error) {
	if secret := a.cookie(r, sessionCookie); secret != "" {
		who, user, err := a.Accounts.Resume(r.Context(), secret)
		if err == nil {
			httpd.From(r.Context()).Who = who
			return visitor{who: who, user: user}, nil
		}
		if !hookglass.Is(err, hookglass.CodeUnauthorized) {
			return visitor{}, err
		}
	}
	return a.keyHolder(r)
}

// keyHolder returns the visitor as the holder of a temporary endpoint's key. Without a valid key it answers
// unauthorized.
func (a *app) keyHolder(r *http.Request) (visitor, error) {
	key := a.cookie(r, temporaryCookie)
	if !hookglass.IsTunnelKey(key) {
		return visitor{}, errSignIn
	}
	who, err := a.Accounts.Authenticate(r.Context(), key)
	if hookglass.Is(err, hookglass.CodeUnauthorized) {
		err = errSignIn
	}
	return visitor{who: who}, err
}

// session says whether the browser is signed in. A page asks before a form leaves it, so that what was typed is not
// lost.
func (a *app) session(w http.ResponseWriter, r *http.Request) error {
	if _, err := a.user(r); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// overTLS reports whether the browser speaks https, to here or to a proxy.
func (a *app) overTLS(r *http.Request) bool {
	return a.secure || httpd.From(r.Context()).Scheme == "https"
}

// cookieName returns the full name of a cookie. The __Host- prefix requires the path /.
func (a *app) cookieName(r *http.Request, name string) string {
	switch {
	case !a.overTLS(r):
		return name
	case a.base == nil:
		return hostPrefix + name
	}
	return securePrefix + name
}

func (a *app) cookie(r *http.Request, name string) string {
	c, err := r.Cookie(a.cookieName(r, name))
	if err != nil {
		return ""
	}
	return c.Value
}

// setCookie keeps a secret in the browser until a time; a time that has passed deletes it.
func (a *app) setCookie(w http.ResponseWriter, r *http.Request, name, value string, until time.Time) {
	c := &http.Cookie{
		Name: a.cookieName(r, name), Value: value, Path: "/", Expires: until, MaxAge: int(time.Until(until).Seconds()),
		HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
	if a.base != nil {
		c.Path = a.base.path // other services of the host do not get it
	}
	c.Secure = a.overTLS(r)
	if c.MaxAge <= 0 {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

func (a *app) registerSessions() {
	a.page("GET /{$}", a.start)
	a.part("GET /session", a.session)
	a.page("GET /sign-in", a.showSignIn)
	a.page("POST /sign-in", a.signIn)
	a.page("GET /sign-up", a.showSignUp)
	a.page("POST /sign-up", a.signUp)
	a.page("POST /sign-out", a.signOut)
	a.page("GET /auth/link/{secret}", a.followLink)
	a.page("GET /auth/cli", a.showCLIAuth)
	a.page("POST /auth/cli", a.approveCLI)
	a.page("POST /temporary", a.createTemporary)
	a.page("POST /temporary/key", a.openTemporary)
	for guess, to := range guesses {
		a.page("GET "+guess, func(w http.ResponseWriter, r *http.Request) error {
			redirect(w, r, to)
			return nil
		})
	}
}

// guesses are addresses that people type and that password managers open (W3C, A Well-Known URL for Changing
// Passwords), with the pages that they mean.
var guesses = map[string]string{
	"/login": "/sign-in", "/signin": "/sign-in", "/signup": "/sign-up",
	"/.well-known/change-password": "/account/password",
}

// start is the first page: the oldest endpoint of a user, or the sign-in page of a visitor.
func (a *app) start(w http.ResponseWriter, r *http.Request) error {
	v, err := a.visit(r)
	if hookglass.Is(err, hookglass.CodeUnauthorized) {
		if a.Temporary && arrives(r) {
			// A rate-limited visitor has enough endpoints, and gets the page that offers one.
			if err := a.giveTemporary(w, r); !hookglass.Is(err, hookglass.CodeRateLimited) {
				return err
			}
		}
		return a.renderSignIn(w, r, http.StatusOK, signin.Model{})
	}
	if err != nil {
		return err
	}
	all, err := a.endpointsOf(r.Context(), v)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		redirect(w, r, "/endpoints")
	} else {
		redirect(w, r, "/endpoints/"+string(all[0].ID))
	}
	return nil
}

// arrives reports whether the user navigated here, as opposed to a program or a prefetching browser.
func arrives(r *http.Request) bool {
	return r.Method == http.MethodGet && opens(r) && r.Header.Get("Sec-Purpose") == "" && r.Header.Get("Purpose") == ""
}

func (a *app) showSignIn(w http.ResponseWriter, r *http.Request) error {
	next := onSite(r.URL.Query().Get("next"))
	if v, err := a.visit(r); err == nil && v.signedIn() {
		redirect(w, r, next)
		return nil
	}
	return a.renderSignIn(w, r, http.StatusOK, signin.Model{Next: next})
}

func (a *app) renderSignIn(w http.ResponseWriter, r *http.Request, status int, m signin.Model) error {
	m.Frame = a.frame(visitor{}, "Sign in")
	m.Temporary, m.Signup = a.Temporary, a.Signup
	if v, err := a.keyHolder(r); err == nil && a.Temporary {
		m.Mine = "/endpoints/" + string(v.who.Endpoint)
	}
	if !m.Signup {
		empty, err := a.Accounts.Empty(r.Context())
		m.Empty = err == nil && empty // show the page even if the storage is unavailable
	}
	return render(w, answering(r, "/sign-in?next="+escape(m.Next)), status, signin.Page(m))
}

// maxForm bounds what a form of this app may send.
const maxForm = 64 << 10

func (a *app) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	email, next := r.PostFormValue("email"), onSite(r.PostFormValue("next"))
	session, err := a.Accounts.SignIn(r.Context(), email, r.PostFormValue("password"), httpd.From(r.Context()).Caller())
	if err != nil {
		if hookglass.Is(err, hookglass.CodeUnauthorized) || hookglass.Is(err, hookglass.CodeRateLimited) {
			f := httpd.Fail(r.Context(), err)
			if retry := f.Header.Get("Retry-After"); retry != "" {
				w.Header().Set("Retry-After", retry)
			}
			return a.renderSignIn(w, r, f.Status, signin.Model{Next: next, Email: email, Problem: f.Body.Message})
		}
		return err
	}
	a.begin(w, r, session, next)
	return nil
}

// begin signs the browser in and redirects it.
func (a *app) begin(w http.ResponseWriter, r *http.Request, session account.Session, next string) {
	// The description is optional.
	_ = a.Accounts.DescribeSession(r.Context(), session.Secret, r.UserAgent())
	a.setCookie(w, r, sessionCookie, session.Secret, session.ExpiresAt)
	redirect(w, r, next)
}

func (a *app) showSignUp(w http.ResponseWriter, r *http.Request) error {
	if !a.Signup {
		return hookglass.NotFound("page")
	}
	next := onSite(r.URL.Query().Get("next"))
	if v, err := a.visit(r); err == nil && v.signedIn() {
		redirect(w, r, next)
		return nil
	}
	return a.renderSignUp(w, r, http.StatusOK, signin.UpModel{Next: next})
}

func (a *app) renderSignUp(w http.ResponseWriter, r *http.Request, status int, m signin.UpModel) error {
	m.Frame = a.frame(visitor{}, "Create an account")
	return render(w, answering(r, "/sign-up?next="+escape(m.Next)), status, signin.UpPage(m))
}

func (a *app) signUp(w http.ResponseWriter, r *http.Request) error {
	if !a.Signup {
		return hookglass.NotFound("page")
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	m := signin.UpModel{Email: r.PostFormValue("email"), Next: onSite(r.PostFormValue("next"))}
	session, err := a.Accounts.SignUp(r.Context(), m.Email, r.PostFormValue("password"), httpd.From(r.Context()).Caller())
	if m.Faults = faultsOf(err); m.Faults != nil {
		return a.renderSignUp(w, r, http.StatusUnprocessableEntity, m)
	}
	if err != nil {
		return err
	}
	a.begin(w, r, session, m.Next)
	return nil
}

func (a *app) signOut(w http.ResponseWriter, r *http.Request) error {
	if secret := a.cookie(r, sessionCookie); secret != "" {
		if err := a.Accounts.SignOut(r.Context(), secret); err != nil {
			return err
		}
	}
	a.setCookie(w, r, sessionCookie, "", time.Unix(0, 0))
	redirect(w, r, "/sign-in") // not to "/", which would create a temporary endpoint
	return nil
}

// followLink signs in with a single-use link. A used one just lets signed-in users in.
func (a *app) followLink(w http.ResponseWriter, r *http.Request) error {
	next := onSite(r.URL.Query().Get("next"))
	if r.Method == http.MethodHead {
		return nil // prefetching must not use up the link
	}
	session, err := a.Accounts.FollowLink(r.Context(), r.PathValue("secret"))
	if err != nil {
		if !hookglass.Is(err, hookglass.CodeUnauthorized) {
			return err
		}
		if v, again := a.visit(r); again == nil && v.signedIn() {
			redirect(w, r, next)
			return nil
		}
		f := httpd.Fail(r.Context(), err)
		return a.renderSignIn(w, r, f.Status, signin.Model{Next: next, Problem: f.Body.Message})
	}
	a.begin(w, r, session, next)
	return nil
}

// createTemporary creates an endpoint without owner, whose key this browser keeps.
func (a *app) createTemporary(w http.ResponseWriter, r *http.Request) error {
	if !a.Temporary {
		return hookglass.NotFound("page")
	}
	return a.giveTemporary(w, r)
}

func (a *app) giveTemporary(w http.ResponseWriter, r *http.Request) error {
	if err := a.DB.Allow(r.Context(), temporaryBucket+httpd.From(r.Context()).Caller(), temporaryLimit, time.Minute); err != nil {
		return err
	}
	e, key, err := a.Endpoints.CreateTemporary(r.Context())
	if err != nil {
		return err
	}
	a.setCookie(w, r, temporaryCookie, key, time.Now().Add(endpoint.TemporaryLife))
	redirect(w, r, "/endpoints/"+string(e.ID))
	return nil
}

// openTemporary gives the browser access to a temporary endpoint whose key the user got elsewhere: from the API, or
// from "hookglass listen".
func (a *app) openTemporary(w http.ResponseWriter, r *http.Request) error {
	if !a.Temporary {
		return hookglass.NotFound("page")
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	key, next := strings.TrimSpace(r.PostFormValue("key")), onSite(r.PostFormValue("next"))
	wrong := signin.Model{Next: next, KeyProblem: "No temporary endpoint has this key. Temporary endpoints expire after 24 hours."}
	if !hookglass.IsTunnelKey(key) {
		return a.renderSignIn(w, r, http.StatusUnauthorized, wrong)
	}
	who, err := a.Accounts.Authenticate(r.Context(), key)
	if hookglass.Is(err, hookglass.CodeUnauthorized) {
		return a.renderSignIn(w, r, http.StatusUnauthorized, wrong)
	}
	if err != nil {
		return err
	}
	e, err := store.Read(r.Context(), a.DB, who, func(v *store.View) (hookglass.Endpoint, error) {
		return v.Endpoint(string(who.Endpoint))
	})
	if err != nil {
		return err
	}
	a.setCookie(w, r, temporaryCookie, key, e.ExpiresAt)
	mine := "/endpoints/" + string(e.ID)
	if !strings.HasPrefix(next, mine+"/") {
		next = mine
	}
	redirect(w, r, next)
	return nil
}

// temporaryLimit is how many temporary endpoints an address may create in a minute (spec: decisions, section 5). The
// bucket is shared with the REST operation.
const (
	temporaryLimit  = 10
	temporaryBucket = "create-temporary-endpoint "
)

// onSite returns next if it is a path of this site, otherwise the start page.
func onSite(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t\x00") {
		return "/"
	}
	return next
}

func escape(s string) string { return url.QueryEscape(s) }
