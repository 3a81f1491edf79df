package web

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"hookglass"
	core "hookglass/internal/account"
	"hookglass/internal/store"
	"hookglass/internal/web/account"
	"hookglass/internal/web/layout"
)

func (a *app) registerAccount() {
	a.page("GET /account", a.showAccount)
	a.page("GET /account/tokens", a.showTokens)
	a.page("POST /account/tokens", a.createToken)
	a.page("POST /account/tokens/{token}/revoke", a.revokeToken)
	a.page("GET /account/sessions", a.showSessions)
	a.page("POST /account/sessions/end", a.endSessions)
	a.page("GET /account/workspaces", a.showWorkspaces)
	a.page("POST /account/workspaces", a.createWorkspace)
	a.page("GET /account/password", a.showPassword)
	a.page("POST /account/password", a.changePassword)
}

// notices are the messages after a form was processed, by the word in the URL.
var notices = map[string]string{
	"revoked": "The token was revoked.", "unshared": "The link was revoked.", "ended": "The session was signed out.", "created": "Created.", "saved": "Saved.", "password": "The password was saved.",
	"deleted": "Deleted.", "delete": "The requests were deleted.", "verifies": "Created. Requests are verified from now on. For those that arrived before, click Check captured requests again.", "rejudged": "The newest requests were checked again.", "tag": "Tagged.", "ignore": "The requests are now ignored.", "replaced": "The secret was replaced.", "accepted": "Accepted.", "recounted": "The delivery reports were counted again.", "resent": "Queued to be sent again.", "claimed": "This endpoint is yours now and no longer expires.",
}

// notice returns the message that a redirect asks for after a form was processed, or "".
func notice(r *http.Request) string { return notices[r.URL.Query().Get("done")] }

func (a *app) accountFrame(r *http.Request, v visitor, part account.Part, faults []hookglass.FieldError) (account.Common, error) {
	title := string(part)
	if part == account.Overview {
		title = "Account"
	}
	f, err := a.globalFrame(r.Context(), v, layout.Account, title)
	return account.Common{Frame: f, Part: part, Notice: notice(r), Faults: faults, Now: time.Now()}, err
}

func (a *app) showAccount(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	m := account.OverviewModel{User: v.user}
	if m.Common, err = a.accountFrame(r, v, account.Overview, nil); err != nil {
		return err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		m.Account, err = view.Account(v.who.Account)
		return err
	})
	if err != nil {
		return err
	}
	m.Retention = cmp.Or(m.Account.Retention, a.Retention)
	return render(w, r, http.StatusOK, account.OverviewPage(m))
}

func (a *app) showTokens(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	return a.renderTokens(w, r, http.StatusOK, v, account.TokensModel{Level: hookglass.LevelAccount, Scopes: v.who.Scopes})
}

func (a *app) renderTokens(w http.ResponseWriter, r *http.Request, status int, v visitor, m account.TokensModel) (err error) {
	if m.Common, err = a.accountFrame(r, v, account.Tokens, m.Faults); err != nil {
		return err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		if m.Tokens, err = view.Tokens(v.user.ID); err != nil {
			return err
		}
		m.Workspaces, err = view.Workspaces(v.who.Account)
		return err
	})
	if err != nil {
		return err
	}
	return render(w, r, status, account.TokensPage(m))
}

func (a *app) createToken(w http.ResponseWriter, r *http.Request) error {
	v, err := a.userForm(w, r)
	if err != nil {
		return err
	}
	m := account.TokensModel{Name: r.PostFormValue("name"), Level: hookglass.TokenLevel(r.PostFormValue("level")), Expires: r.PostFormValue("expires")}
	for _, s := range r.PostForm["scopes"] {
		m.Scopes = append(m.Scopes, hookglass.Scope(s))
	}
	m.Workspace, _ = strconv.ParseInt(r.PostFormValue("workspace"), 10, 64) // anything but a number selects no workspace
	ask := core.TokenRequest{User: v.user.ID, Account: v.who.Account, Level: m.Level, Name: m.Name, Scopes: m.Scopes}
	if m.Level == hookglass.LevelWorkspace && r.PostFormValue("workspace") != "" {
		ask.Workspace = &m.Workspace
	}
	if m.Expires != "" {
		days, err := strconv.Atoi(m.Expires)
		if err != nil || days < 1 || days > 3650 {
			return hookglass.Invalid("expires", "must be 1 to 3650 days, or empty for a token without end")
		}
		ask.ExpiresIn = time.Duration(days) * 24 * time.Hour
	}
	text, _, err := a.Accounts.CreateToken(r.Context(), v.who, ask)
	if m.Faults = faultsOf(err); m.Faults != nil {
		return a.renderTokens(w, r, http.StatusUnprocessableEntity, v, m)
	}
	if err != nil {
		return err
	}
	return a.renderTokens(w, r, http.StatusCreated, v, account.TokensModel{Made: text, Level: hookglass.LevelAccount, Scopes: v.who.Scopes})
}

func (a *app) revokeToken(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	id, err := numberIn(r, "token", "token")
	if err != nil {
		return err
	}
	// An account has members, and each sees and revokes their own tokens.
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		t, err := view.Token(id)
		if err == nil && t.UserID != v.user.ID {
			return hookglass.NotFound("token")
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := a.Accounts.RevokeToken(r.Context(), v.who, id); err != nil {
		return err
	}
	redirect(w, r, "/account/tokens?done=revoked")
	return nil
}

func (a *app) showSessions(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	m := account.SessionsModel{}
	if m.Common, err = a.accountFrame(r, v, account.Sessions, nil); err != nil {
		return err
	}
	if m.Sessions, m.Current, err = a.Accounts.Sessions(r.Context(), v.who, a.cookie(r, sessionCookie)); err != nil {
		return err
	}
	return render(w, r, http.StatusOK, account.SessionsPage(m))
}

func (a *app) endSessions(w http.ResponseWriter, r *http.Request) error {
	v, err := a.userForm(w, r)
	if err != nil {
		return err
	}
	if err := a.Accounts.EndSessions(r.Context(), v.who, r.PostFormValue("session"), a.cookie(r, sessionCookie)); err != nil {
		return err
	}
	redirect(w, r, "/account/sessions?done=ended")
	return nil
}

func (a *app) showWorkspaces(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	return a.renderWorkspaces(w, r, http.StatusOK, v, account.WorkspacesModel{})
}

func (a *app) renderWorkspaces(w http.ResponseWriter, r *http.Request, status int, v visitor, m account.WorkspacesModel) (err error) {
	if m.Common, err = a.accountFrame(r, v, account.Workspaces, m.Faults); err != nil {
		return err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		if m.Account, err = view.Account(v.who.Account); err != nil {
			return err
		}
		if m.Workspaces, err = view.Workspaces(v.who.Account); err != nil {
			return err
		}
		m.Members, err = view.Members(v.who.Account)
		return err
	})
	if err != nil {
		return err
	}
	return render(w, r, status, account.WorkspacesPage(m))
}

func (a *app) createWorkspace(w http.ResponseWriter, r *http.Request) error {
	v, err := a.userForm(w, r)
	if err != nil {
		return err
	}
	name := r.PostFormValue("name")
	_, err = a.Accounts.CreateWorkspace(r.Context(), v.who, v.who.Account, name)
	if faults := faultsOf(err); faults != nil {
		return a.renderWorkspaces(w, r, http.StatusUnprocessableEntity, v, account.WorkspacesModel{Common: account.Common{Faults: faults}, Name: name})
	}
	if err != nil {
		return err
	}
	redirect(w, r, "/account/workspaces?done=created")
	return nil
}

func (a *app) showPassword(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	return a.renderPassword(w, r, http.StatusOK, v, nil)
}

func (a *app) renderPassword(w http.ResponseWriter, r *http.Request, status int, v visitor, faults []hookglass.FieldError) (err error) {
	m := account.PasswordModel{User: v.user}
	if m.Common, err = a.accountFrame(r, v, account.Password, faults); err != nil {
		return err
	}
	if m.HasOne, err = a.Accounts.HasPassword(r.Context(), v.who); err != nil {
		return err
	}
	return render(w, r, status, account.PasswordPage(m))
}

func (a *app) changePassword(w http.ResponseWriter, r *http.Request) error {
	v, err := a.userForm(w, r)
	if err != nil {
		return err
	}
	err = a.Accounts.ChangePassword(r.Context(), v.who, r.PostFormValue("current_password"), r.PostFormValue("password"), a.cookie(r, sessionCookie))
	if faults := faultsOf(err); faults != nil {
		return a.renderPassword(w, r, http.StatusUnprocessableEntity, v, faults)
	}
	if err != nil {
		return err
	}
	redirect(w, r, "/account/password?done=password")
	return nil
}

// numberIn returns the number in a part of the path; kind names what is missing if there is none.
func numberIn(r *http.Request, part, kind string) (int64, error) {
	n, err := strconv.ParseInt(r.PathValue(part), 10, 64)
	if err != nil {
		return 0, hookglass.NotFound(kind)
	}
	return n, nil
}

// readForm parses a form of bounded size.
func readForm(w http.ResponseWriter, r *http.Request) error {
	return readFormUpTo(w, r, maxForm)
}

// readFormUpTo parses a form of at most that many bytes, and says what is wrong if it cannot. It must be UTF-8, like
// the API's JSON: PostgreSQL accepts nothing else as text.
func readFormUpTo(w http.ResponseWriter, r *http.Request, most int64) error {
	r.Body = http.MaxBytesReader(w, r.Body, most)
	err := r.ParseForm()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return hookglass.Errorf(hookglass.CodePayloadTooLarge, "The form is larger than %d KiB.", most>>10)
	case err != nil:
		return hookglass.Errorf(hookglass.CodeValidationFailed, "The form could not be read.")
	}
	for _, values := range r.PostForm {
		for _, v := range values {
			if !utf8.ValidString(v) {
				return hookglass.Errorf(hookglass.CodeValidationFailed, "The form is not UTF-8.")
			}
		}
	}
	return nil
}
