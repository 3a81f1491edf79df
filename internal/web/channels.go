package web

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/alert"
	"hookglass/internal/httpd"
	"hookglass/internal/store"
	"hookglass/internal/web/channels"
	"hookglass/internal/web/layout"
)

func (a *app) registerChannels() {
	a.page("GET /channels", a.showChannels)
	a.page("POST /channels", a.createChannel)
	a.page("GET /channels/{channel}", a.showChannel)
	a.page("POST /channels/{channel}", a.changeChannel)
	a.page("POST /channels/{channel}/test", a.testChannel)
	a.page("POST /channels/{channel}/delete", a.deleteChannel)
}

func (a *app) showChannels(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	m := channels.Model{Notice: notice(r), Form: channels.Form{Kind: hookglass.ChannelSlack}}
	return a.renderChannels(w, r, http.StatusOK, v, m)
}

func (a *app) renderChannels(w http.ResponseWriter, r *http.Request, status int, v visitor, m channels.Model) (err error) {
	m.Now, m.Problems = time.Now(), make(map[hookglass.ChannelKind]string)
	for _, k := range hookglass.ChannelKinds {
		m.Problems[k] = a.Alerts.Problem(k)
	}
	if m.Frame, err = a.globalFrame(r.Context(), v, layout.Channels, "Channels"); err != nil {
		return err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		return eachWorkspace(view, v, func(ws hookglass.Workspace) error {
			found, err := view.Channels(ws.ID, 0, 0)
			m.Workspaces = append(m.Workspaces, channels.Workspace{Workspace: ws, Channels: found})
			return err
		})
	})
	if err != nil {
		return err
	}
	return render(w, r, status, channels.Page(m))
}

func (a *app) createChannel(w http.ResponseWriter, r *http.Request) error {
	v, err := a.userForm(w, r)
	if err != nil {
		return err
	}
	m := channels.Model{Form: channelForm(r)}
	m.Form.Kind = hookglass.ChannelKind(r.PostFormValue("kind"))
	if m.Form.Workspace, err = workspaceIn(r); err != nil {
		return err
	}
	d := alert.ChannelDraft{Name: &m.Form.Name, Kind: &m.Form.Kind, Config: channelSettings(r, m.Form)}
	if m.Form.Workspace != 0 {
		d.WorkspaceID = &m.Form.Workspace
	}
	c, secret, err := a.Alerts.CreateChannel(r.Context(), v.who, d)
	if m.Form.Faults = channelFaults(r, err); m.Form.Faults != nil {
		return a.renderChannels(w, r, http.StatusUnprocessableEntity, v, m)
	}
	if message, status := refused(err); message != "" {
		m.Refused = message
		return a.renderChannels(w, r, status, v, m)
	}
	if err != nil {
		return err
	}
	if secret != "" { // shown in this answer: a URL would be stored in the history
		return a.renderChannels(w, r, http.StatusCreated, v, channels.Model{Secret: secret, SecretOf: c, Form: channels.Form{Kind: hookglass.ChannelSlack}})
	}
	redirect(w, r, "/channels?done=created")
	return nil
}

// channelFaults is what is wrong with the form, and what has to be typed again.
func channelFaults(r *http.Request, err error) []hookglass.FieldError {
	faults := faultsOf(err)
	if faults == nil {
		return nil
	}
	return retype(r, faults)
}

// retype adds faults to a refused form for the credentials that must be typed again: left empty without notice, the old
// one would stay, or one would be generated.
func retype(r *http.Request, faults []hookglass.FieldError) []hookglass.FieldError {
	for _, name := range []string{"bot_token", "secret"} {
		field := "notification_channel.config." + name
		told := slices.ContainsFunc(faults, func(f hookglass.FieldError) bool { return f.Field == field })
		if !told && strings.TrimSpace(r.PostFormValue(name)) != "" {
			faults = append(slices.Clip(faults), hookglass.FieldError{Field: field, Message: "is not shown again; enter it once more"})
		}
	}
	return faults
}

// channelForm is what was typed.
func channelForm(r *http.Request) channels.Form {
	f := channels.Form{
		Name: strings.TrimSpace(r.PostFormValue("name")), Enabled: r.PostFormValue("enabled") == "true",
		ChatID: strings.TrimSpace(r.PostFormValue("chat_id")), To: lines(r.PostForm, "to"),
		WebhookURL: strings.TrimSpace(r.PostFormValue("webhook_url")), URL: strings.TrimSpace(r.PostFormValue("url")),
		Seen: r.PostFormValue("seen"),
	}
	for _, e := range r.PostForm["events"] {
		f.Events = append(f.Events, hookglass.ActivityType(e))
	}
	return f
}

// channelSettings returns the settings of the form for its kind of channel. An empty credential is left unchanged.
func channelSettings(r *http.Request, f channels.Form) *alert.ChannelSettings {
	s := &alert.ChannelSettings{}
	given := func(field string) *string {
		if text := strings.TrimSpace(r.PostFormValue(field)); text != "" {
			return &text
		}
		return nil
	}
	switch f.Kind {
	case hookglass.ChannelTelegram:
		s.BotToken, s.ChatID = given("bot_token"), &f.ChatID
	case hookglass.ChannelEmail:
		to := strings.FieldsFunc(f.To, func(c rune) bool { return strings.ContainsRune("\n,; \t", c) })
		s.To = &to
	case hookglass.ChannelWebhook:
		events := make([]string, len(f.Events))
		for i, e := range f.Events {
			events[i] = string(e)
		}
		s.URL, s.Secret, s.Events = given("url"), given("secret"), &events
	default:
		s.WebhookURL = given("webhook_url")
	}
	return s
}

// ownChannel finds the signed-in user and the channel that the path names.
func (a *app) ownChannel(r *http.Request) (v visitor, c hookglass.Channel, err error) {
	if v, err = a.user(r); err != nil {
		return v, c, err
	}
	err = a.DB.View(r.Context(), v.who, func(view *store.View) error {
		c, err = view.Channel(r.PathValue("channel"))
		return err
	})
	return v, c, err
}

func (a *app) showChannel(w http.ResponseWriter, r *http.Request) error {
	v, c, err := a.ownChannel(r)
	if err != nil {
		return err
	}
	return a.renderChannel(w, r, http.StatusOK, v, channels.EditModel{Channel: c, Notice: notice(r), Form: channels.NewForm(c)})
}

func (a *app) renderChannel(w http.ResponseWriter, r *http.Request, status int, v visitor, m channels.EditModel) (err error) {
	m.Now, m.Problem = time.Now(), a.Alerts.Problem(m.Channel.Kind)
	if m.Frame, err = a.globalFrame(r.Context(), v, layout.Channels, "Channel · "+m.Channel.Name); err != nil {
		return err
	}
	return render(w, r, status, channels.EditPage(m))
}

func (a *app) changeChannel(w http.ResponseWriter, r *http.Request) error {
	v, c, err := a.ownChannel(r)
	if err != nil {
		return err
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	m := channels.EditModel{Channel: c, Form: channelForm(r)}
	m.Form.Kind = c.Kind
	if now := channels.NewForm(c).Seen; stale(m.Form.Seen, now) {
		m.Form.Seen, m.Stale, m.Form.Faults = now, true, retype(r, nil)
		return a.renderChannel(w, r, http.StatusConflict, v, m)
	}
	d := alert.ChannelDraft{Name: &m.Form.Name, Config: channelSettings(r, m.Form)}
	if m.Form.Enabled != channels.NewForm(c).Enabled {
		d.Enabled = &m.Form.Enabled // only if changed: setting it would restart a working channel
	}
	_, err = a.Alerts.UpdateChannel(r.Context(), v.who, c.ID, d)
	if m.Form.Faults = channelFaults(r, err); m.Form.Faults != nil {
		return a.renderChannel(w, r, http.StatusUnprocessableEntity, v, m)
	}
	if message, status := refused(err); message != "" {
		m.Refused, m.References = message, referencesOf(err)
		return a.renderChannel(w, r, status, v, m)
	}
	if err != nil {
		return err
	}
	redirect(w, r, "/channels/"+c.ID+"?done=saved")
	return nil
}

// testChannel sends a message at once and says what came of it.
func (a *app) testChannel(w http.ResponseWriter, r *http.Request) error {
	v, c, err := a.ownChannel(r)
	if err != nil {
		return err
	}
	if err := a.DB.Allow(r.Context(), testBucket+httpd.From(r.Context()).Caller(), testLimit, time.Minute); err != nil {
		return err
	}
	sent, err := a.Alerts.TestChannel(r.Context(), v.who, c.ID)
	if err != nil {
		return err
	}
	t := &channels.Test{Delivered: sent.Delivered, StatusCode: sent.StatusCode}
	if sent.Failure != nil {
		t.Message = sent.Failure.Message
	}
	return a.renderChannel(w, r, http.StatusOK, v, channels.EditModel{Channel: c, Test: t, Form: channels.NewForm(c)})
}

// testLimit is how many test messages a caller may send in a minute. The bucket is that of the REST operation.
const (
	testLimit  = 30
	testBucket = "test-notification-channel "
)

func (a *app) deleteChannel(w http.ResponseWriter, r *http.Request) error {
	v, err := a.user(r)
	if err != nil {
		return err
	}
	steps, err := a.Alerts.DeleteChannel(r.Context(), v.who, r.PathValue("channel"))
	if err != nil {
		return err
	}
	if len(steps) > 0 {
		return a.renderChannels(w, answering(r, "/channels"), http.StatusOK, v, channels.Model{Bereft: steps, Form: channels.Form{Kind: hookglass.ChannelSlack}})
	}
	redirect(w, r, "/channels?done=deleted")
	return nil
}
