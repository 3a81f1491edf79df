package cases

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/replay"
	"hookglass/internal/web/show"
)

// Form is a case as it is typed.
type Form struct {
	Event       string // of a new case
	Name        string
	Description string
	Tunnel      bool
	URL         string
	Identity    string
	Signature   string
	StatusClass string
	StatusCode  string
	Subset      string
	LockVersion int64
	Faults      []hookglass.FieldError
}

// NewForm is the form for a case that is made of an event.
func NewForm(e *hookglass.Event) Form {
	return Form{Event: string(e.ID), Name: Title(e), Identity: string(hookglass.IdentityOriginal), Signature: string(hookglass.DefaultSignatureMode), StatusClass: "2xx"}
}

// FormOf is the form of a case as it stands.
func FormOf(c hookglass.ReplayCase) Form {
	f := Form{
		Event: string(c.SourceID), Name: c.Name, Description: c.Description, Identity: string(c.Options.Identity),
		Signature: string(c.Options.Signature), StatusClass: c.Assertions.StatusClass, Subset: pretty(c.Assertions.JSONSubset), LockVersion: c.LockVersion,
	}
	f.Aim(c.TargetURL)
	if c.Assertions.StatusCode != 0 {
		f.StatusCode = strconv.Itoa(c.Assertions.StatusCode)
	}
	return f
}

// Aim sets the target.
func (f *Form) Aim(target string) {
	if f.Tunnel = target == hookglass.TunnelTarget; !f.Tunnel {
		f.URL = target
	}
}

// ReadForm reads what a browser sends.
func ReadForm(v url.Values) Form {
	text := func(name string) string { return strings.ReplaceAll(v.Get(name), "\r\n", "\n") }
	f := Form{
		Event: v.Get("event"), Name: strings.TrimSpace(v.Get("name")), Description: text("description"), Tunnel: v.Get("target") == hookglass.TunnelTarget,
		URL: strings.TrimSpace(v.Get("target_url")), Identity: v.Get("identity_mode"), Signature: v.Get("signature_mode"),
		StatusClass: v.Get("status_class"), StatusCode: strings.TrimSpace(v.Get("status_code")), Subset: text("json_subset"),
	}
	f.LockVersion, _ = strconv.ParseInt(v.Get("lock_version"), 10, 64) // what is no number is no version
	return f
}

// assertions reads what is asserted. Its faults are of the fields below replay_case.
func (f Form) assertions() (a hookglass.Assertions, faults []hookglass.FieldError) {
	fault := func(field, message string) {
		faults = append(faults, hookglass.FieldError{Field: "replay_case.assertions." + field, Message: message})
	}
	a.StatusClass = f.StatusClass
	if f.StatusCode != "" {
		code, err := strconv.Atoi(f.StatusCode)
		if err != nil || code < 100 || code > 599 {
			fault("status.code", "must be from 100 to 599")
		}
		a.StatusCode = code
	}
	subset := bytes.TrimSpace([]byte(f.Subset))
	if len(subset) > 0 {
		switch why := notJSON(subset); {
		case why != "":
			fault("json_subset", why)
		case subset[0] != '{':
			fault("json_subset", "must be an object, { … }")
		case len(bytes.TrimSpace(subset[1:len(subset)-1])) > 0:
			a.JSONSubset = subset
		}
	}
	return a, faults
}

// Draft is what the form asks of the case.
func (f Form) Draft() (replay.CaseDraft, []hookglass.FieldError) {
	a, faults := f.assertions()
	target := f.URL
	if f.Tunnel {
		target = hookglass.TunnelTarget
	}
	return replay.CaseDraft{
		Name: &f.Name, Description: &f.Description, TargetURL: &target, Assertions: &a,
		Options: &replay.CaseOptions{Identity: f.Identity, Signature: f.Signature},
	}, faults
}

// notJSON says where a text stops being JSON; empty: it is.
func notJSON(text []byte) string {
	var any json.RawMessage
	err := json.Unmarshal(text, &any)
	if err == nil {
		return ""
	}
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return "has a mistake"
	}
	at := min(max(int(syntax.Offset)-1, 0), len(text)) // the offset is behind the character
	if strings.HasPrefix(syntax.Error(), "unexpected end") {
		return "ends before it is complete"
	}
	wrong, _ := utf8.DecodeRune(text[at:])
	return fmt.Sprintf("has a mistake in line %d, at “%s”", bytes.Count(text[:at], []byte("\n"))+1, show.Line(string(wrong)))
}

// pretty indents JSON; what is none stays as it is.
func pretty(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text)
	}
	return b.String()
}

// maxTaken bounds an answer that is turned into assertions, in bytes.
const maxTaken = 16 << 10

// Take sets the assertions from an answer: its status, and its body if that is a JSON object.
func (f *Form) Take(r *hookglass.TargetResponse) {
	f.StatusClass, f.StatusCode = "", strconv.Itoa(r.Status)
	if text := bytes.TrimSpace(r.Body); len(text) > 0 && len(text) <= maxTaken && !r.Truncated && text[0] == '{' && notJSON(text) == "" {
		f.Subset = pretty(text)
	}
}

// Judge checks the form's assertions against the last answer.
func (c *Check) Judge(f Form) {
	a, faults := f.assertions()
	switch {
	case len(faults) > 0:
		c.Fault = sentence(faults[0])
	case a.StatusClass == "" && a.StatusCode == 0 && a.JSONSubset == nil:
		c.Fault = "No assertions yet. Set a status or JSON that the response must contain."
	case c.Response == nil:
	case c.Response.Truncated && a.JSONSubset != nil:
		c.Fault = "Only the beginning of the last response is kept, so its JSON cannot be checked here."
	default:
		c.Results, c.Passed = replay.Judge(a, c.Response)
	}
}

var words = map[string]string{
	"name": "The name", "description": "The description", "target_url": "The target URL", "source_id": "The request", "assertions": "The list of assertions",
	"assertions.status.class": "The status class", "assertions.status.code": "The status code", "assertions.json_subset": "The JSON",
	"options.identity_mode": "The identity", "options.signature_mode": "The signature",
}

func sentence(f hookglass.FieldError) string {
	field := strings.TrimPrefix(f.Field, "replay_case.")
	return cmp.Or(words[field], field) + " " + strings.ReplaceAll(f.Message, "json_subset", "JSON that the response must contain") + "."
}

// fault says what is wrong with a field.
func (f Form) fault(field string) string {
	for _, fault := range f.Faults {
		if fault.Field == "replay_case."+field {
			return sentence(fault)
		}
	}
	return ""
}
