// Package account is the pages about the user and the account: tokens, browser sessions, workspaces, password, plan.
package account

import (
	"embed"
	"errors"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/web/layout"
)

// Files is the style.
//
//go:embed account.css
var Files embed.FS

// Part identifies one of the pages.
type Part string

// The pages, by the word that each bears.
const (
	Overview   Part = "Overview"
	Tokens     Part = "Tokens"
	Sessions   Part = "Sessions"
	Workspaces Part = "Workspaces"
	Password   Part = "Password"
)

var parts = []struct {
	part Part
	path string
}{
	{Overview, "/account"}, {Tokens, "/account/tokens"}, {Sessions, "/account/sessions"}, {Workspaces, "/account/workspaces"}, {Password, "/account/password"},
}

// Common is what all of the pages show.
type Common struct {
	layout.Frame
	Part   Part
	Notice string // what was done
	Faults []hookglass.FieldError
	Now    time.Time
}

// fault says what is wrong with a field.
func (c Common) fault(field string) string {
	for _, f := range c.Faults {
		if f.Field == field {
			return strings.ToUpper(field[:1]) + strings.ReplaceAll(field[1:], "_", " ") + " " + f.Message + "."
		}
	}
	return ""
}

// OverviewModel is what the first page shows.
type OverviewModel struct {
	Common
	User      hookglass.User
	Account   hookglass.Account
	Retention time.Duration // how long requests are kept
}

// TokensModel is what the page of tokens shows.
type TokensModel struct {
	Common
	Tokens     []hookglass.Token
	Workspaces []hookglass.Workspace
	Made       string // the text of a token that was made just now
	// What was typed before.
	Name      string
	Level     hookglass.TokenLevel
	Workspace int64
	Scopes    []hookglass.Scope
	Expires   string
}

// SessionsModel is what the page of sessions shows.
type SessionsModel struct {
	Common
	Sessions []hookglass.BrowserSession
	Current  string // the id of this browser's
}

// WorkspacesModel is what the page of workspaces shows.
type WorkspacesModel struct {
	Common
	Account    hookglass.Account
	Workspaces []hookglass.Workspace
	Members    []hookglass.User
	Name       string // as typed before
}

// addMember returns the command that adds a member to the account.
func (m WorkspacesModel) addMember() string {
	return "hookglass admin user create --email ADDRESS --password-stdin --join " + strconv.FormatInt(m.Account.ID, 10)
}

// PasswordModel is what the page of the password shows.
type PasswordModel struct {
	Common
	User   hookglass.User
	HasOne bool
}

// browser returns the usual name of the browser and system in a User-Agent.
func browser(agent string) string {
	if agent == "" {
		return "Unknown browser"
	}
	name := "Another program"
	for _, b := range [][2]string{
		{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"HeadlessChrome/", "Chrome, headless"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
	} {
		if strings.Contains(agent, b[0]) {
			name = b[1]
			break
		}
	}
	for _, s := range [][2]string{
		{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Mac OS X", "macOS"}, {"Windows", "Windows"}, {"Linux", "Linux"},
	} {
		if strings.Contains(agent, s[0]) {
			return name + " on " + s[1]
		}
	}
	return name
}

// entitlements describes the limits of a plan.
func entitlements(a hookglass.Account) [][2]string {
	e := a.Entitlements()
	may := func(err error) string {
		if refused, ok := errors.AsType[*hookglass.Error](err); ok {
			return "no: " + refused.Message
		}
		return "yes"
	}
	count := func(n int) string {
		switch n {
		case -1:
			return "unlimited"
		case 0:
			return "none"
		}
		return itoa(n)
	}
	return [][2]string{
		{"Actions per endpoint", count(e.ActionsPerEndpoint())},
		{"Steps per action", count(e.StepsPerAction())},
		{"Forwarding", may(e.MayForward())},
		{"Transform steps", may(e.MayTransform())},
		{"HTTP Request steps", may(e.MayRequestHTTP())},
		{"Action secrets", may(e.MayUseSecrets())},
		{"Replays with new ids or signatures", may(e.MayRegenerateOrResign())},
	}
}
