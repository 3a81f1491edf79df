package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/store"
	"hookglass/internal/web/layout"
	"hookglass/internal/web/secrets"
)

func (a *app) registerSecrets() {
	a.page("GET /secrets", a.showSecrets)
	a.page("POST /secrets", a.createSecret)
	a.page("POST /secrets/{workspace}/{secret}", a.changeSecret)
	a.page("POST /secrets/{workspace}/{secret}/delete", a.deleteSecret)
}

func (a *app) showSecrets(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	return a.renderSecrets(w, r, http.StatusOK, v, secrets.Model{Notice: notice(r)})
}

func (a *app) renderSecrets(w http.ResponseWriter, r *http.Request, status int, v visitor, m secrets.Model) (err error) {
	m.Now = time.Now()
	if m.Frame, err = a.globalFrame(r.Context(), v, layout.Secrets, "Secrets"); err != nil {
		return err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		account, err := view.Account(v.who.Account)
		if err != nil {
			return err
		}
		m.Forbidden = messageOf(account.Entitlements().MayUseSecrets())
		return eachWorkspace(view, v, func(ws hookglass.Workspace) error {
			in := secrets.Workspace{Workspace: ws}
			found, err := view.ActionSecrets(ws.ID, 0, 0)
			if err != nil {
				return err
			}
			for _, s := range found {
				refs, err := view.ActionReferences(store.RefSecret, s.Num)
				if err != nil {
					return err
				}
				in.Secrets = append(in.Secrets, secrets.Secret{ActionSecret: s, References: refs})
			}
			m.Workspaces = append(m.Workspaces, in)
			return nil
		})
	})
	if err != nil {
		return err
	}
	return render(w, r, status, secrets.Page(m))
}

// createSecret, changeSecret and deleteSecret show errors on the page itself.
func (a *app) createSecret(w http.ResponseWriter, r *http.Request) error {
	v, err := a.userForm(w, r)
	if err != nil {
		return err
	}
	m := secrets.Model{Form: secrets.Form{Name: strings.TrimSpace(r.PostFormValue("name")), Description: r.PostFormValue("description")}}
	if m.Form.Workspace, err = strconv.ParseInt(r.PostFormValue("workspace"), 10, 64); err != nil {
		return hookglass.NotFound("workspace")
	}
	_, err = a.Actions.CreateSecret(r.Context(), v.who, m.Form.Workspace, action.SecretDraft{Name: &m.Form.Name, Value: new(lines(r.PostForm, "secret_value")), Description: &m.Form.Description})
	return a.secretSet(w, r, v, m, err, "created")
}

func (a *app) changeSecret(w http.ResponseWriter, r *http.Request) error {
	v, workspace, err := a.secretOf(w, r)
	if err != nil {
		return err
	}
	m := secrets.Model{Form: secrets.Form{Workspace: workspace, Secret: r.PathValue("secret"), Description: r.PostFormValue("description")}}
	d := action.SecretDraft{Description: &m.Form.Description}
	done := "saved"
	if value := lines(r.PostForm, "secret_value"); value != "" {
		d.Value, done = &value, "replaced"
	}
	stored, err := store.Read(r.Context(), a.DB, v.who, func(view *store.View) (hookglass.ActionSecret, error) {
		return view.ActionSecret(workspace, m.Form.Secret)
	})
	if err != nil {
		return err
	}
	if stale(r.PostFormValue("seen"), secrets.Mark(stored)) {
		m.Form.Stale, m.Form.Faults = true, retypeSecret(d, nil)
		return a.renderSecrets(w, r, http.StatusConflict, v, m)
	}
	_, err = a.Actions.UpdateSecret(r.Context(), v.who, workspace, m.Form.Secret, d)
	if faults := faultsOf(err); faults != nil {
		m.Form.Faults = retypeSecret(d, faults)
		return a.renderSecrets(w, r, http.StatusUnprocessableEntity, v, m)
	}
	return a.secretSet(w, r, v, m, err, done)
}

// retypeSecret adds a fault to a refused form because its value must be typed again: an empty field would keep the old
// value.
func retypeSecret(d action.SecretDraft, faults []hookglass.FieldError) []hookglass.FieldError {
	const field = "action_secret.secret_value"
	if d.Value == nil || slices.ContainsFunc(faults, func(f hookglass.FieldError) bool { return f.Field == field }) {
		return faults
	}
	return append(slices.Clip(faults), hookglass.FieldError{Field: field, Message: "is not shown again; enter it once more"})
}

func (a *app) deleteSecret(w http.ResponseWriter, r *http.Request) error {
	v, workspace, err := a.secretOf(w, r)
	if err != nil {
		return err
	}
	err = a.Actions.DeleteSecret(r.Context(), v.who, workspace, r.PathValue("secret"))
	if hookglass.Is(err, hookglass.CodeSecretInUse) {
		return a.renderSecrets(w, r, http.StatusConflict, v, secrets.Model{
			Problem: "The secret is in use by the steps listed below. Change or delete them first.",
		})
	}
	return a.secretSet(w, r, v, secrets.Model{}, err, "deleted")
}

func (a *app) secretOf(w http.ResponseWriter, r *http.Request) (v visitor, workspace int64, err error) {
	if v, err = a.user(r); err != nil {
		return v, 0, err
	}
	if workspace, err = numberIn(r, "workspace", "workspace"); err != nil {
		return v, 0, err
	}
	return v, workspace, readForm(w, r)
}

func (a *app) secretSet(w http.ResponseWriter, r *http.Request, v visitor, m secrets.Model, err error, done string) error {
	if m.Form.Faults = faultsOf(err); m.Form.Faults != nil {
		return a.renderSecrets(w, r, http.StatusUnprocessableEntity, v, m)
	}
	if message, status := refused(err); message != "" {
		m.Problem = message
		return a.renderSecrets(w, r, status, v, m)
	}
	if err != nil {
		return err
	}
	redirect(w, r, "/secrets?done="+done)
	return nil
}

// lines returns a multi-line field as typed: browsers send CR LF.
func lines(form url.Values, name string) string {
	return strings.ReplaceAll(form.Get(name), "\r\n", "\n")
}

// messageOf is the sentence for a person.
func messageOf(err error) string {
	if e, ok := errors.AsType[*hookglass.Error](err); ok {
		return e.Message
	}
	return ""
}

// refused returns the message and the status of errors that a form's own page shows: missing rights, concurrent
// changes, and forbidden targets. Other errors have a page of their own, and no message here.
func refused(err error) (message string, status int) {
	switch hookglass.CodeOf(err) {
	case hookglass.CodePlanRequired, hookglass.CodeSubscriptionRequired, hookglass.CodePaymentMethodRequired, hookglass.CodeForbidden:
		return messageOf(err), http.StatusForbidden
	case hookglass.CodeStaleLockVersion, hookglass.CodeIdempotencyConflict, hookglass.CodeConflict:
		return messageOf(err), http.StatusConflict
	case hookglass.CodeTargetNotAllowed:
		return messageOf(err), http.StatusUnprocessableEntity
	}
	return "", 0
}
