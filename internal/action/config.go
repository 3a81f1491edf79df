package action

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/jsondoc"
	"hookglass/internal/outbound"
)

// Bounds and defaults of configurations (spec, "Step configurations"; spec: decisions, section 8).
const (
	maxForwardURL    = 2_048 // characters, as that of a forwarding target
	maxMessage       = 4_000 // characters
	defaultMessage   = "{{endpoint_name}}: {{event_type}} from {{provider}} ({{request_id}})"
	maxRequestTime   = 30 * time.Second
	defaultRequest   = 10 * time.Second
	maxHeaderValue   = 8 << 10 // bytes
	maxConfigBytes   = 1 << 20
	maxConfigDepth   = 64
	defaultMethod    = "POST"
	maxChannelLength = 200 // characters
)

// requestMethods are those of http_request (spec, "Step configurations").
var requestMethods = []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"}

// forwardConfig, notifyConfig, tagConfig, ignoreConfig and requestConfig are configurations as they are stored and
// answered: whole, with their defaults.
type (
	forwardConfig struct {
		URL            string `json:"url"`
		TimeoutSeconds int    `json:"timeout_seconds"`
		RetryCount     int    `json:"retry_count"`
		AppendPath     bool   `json:"append_path"`
		AppendQuery    bool   `json:"append_query"`
	}
	notifyConfig struct {
		Channel string `json:"channel"`
		Message string `json:"message"`
	}
	tagConfig struct {
		Tag string `json:"tag"`
	}
	ignoreConfig struct {
		Reason string `json:"reason"`
	}
	requestConfig struct {
		Method         string          `json:"method"`
		URL            string          `json:"url"`
		Headers        []requestHeader `json:"-"`
		Named          json.RawMessage `json:"headers"`
		Body           string          `json:"body"`
		TimeoutSeconds int             `json:"timeout_seconds"`
	}
	requestHeader struct{ Name, Value string }
)

// configReader reads the members of a configuration and collects what is wrong with them.
type configReader struct {
	of        jsondoc.Value
	known     []string
	faults    []hookglass.FieldError
	forbidden bool // among the faults is a target that may not be reached
}

func (c *configReader) fault(field, format string, args ...any) {
	c.faults = append(c.faults, hookglass.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (c *configReader) member(name string) (jsondoc.Value, bool) {
	c.known = append(c.known, name)
	return c.of.Member(name)
}

// text reads a string that has a default.
func (c *configReader) text(name, absent string) string {
	v, ok := c.member(name)
	switch {
	case !ok:
		return absent
	case v.Kind() != jsondoc.String:
		c.fault(name, "must be a string")
		return ""
	}
	return v.Text()
}

// required reads a string that must be there.
func (c *configReader) required(name string) string {
	if _, ok := c.of.Member(name); !ok {
		c.fault(name, "is required")
	}
	return c.text(name, "")
}

func (c *configReader) whole(name string, absent, least, most int) int {
	v, ok := c.member(name)
	if !ok {
		return absent
	}
	var n int64
	if ok = v.Kind() == jsondoc.Number; ok {
		n, ok = jsondoc.Whole(v.Text())
	}
	if !ok || n < int64(least) || n > int64(most) {
		c.fault(name, "must be a whole number from %d to %d", least, most)
	}
	return int(n)
}

func (c *configReader) flag(name string) bool {
	v, ok := c.member(name)
	if ok && v.Kind() != jsondoc.True && v.Kind() != jsondoc.False {
		c.fault(name, "must be true or false")
	}
	return v.Kind() == jsondoc.True
}

// end returns all faults, with one for each member that is not known.
func (c *configReader) end() []hookglass.FieldError {
	for name := range c.of.All() {
		if !slices.Contains(c.known, name) {
			c.fault(name, "is not a known key")
		}
	}
	return c.faults
}

// checkConfig validates the configuration of a step as sent and returns it as stored, with its defaults. Faults name
// fields relative to config. forbidden reports that one of them is a target that may not be reached.
func (s *Service) checkConfig(kind hookglass.StepType, raw []byte) (stored []byte, faults []hookglass.FieldError, forbidden bool) {
	v, err := jsondoc.Parse(raw, jsondoc.Bounds{Bytes: maxConfigBytes, Depth: maxConfigDepth})
	if err != nil || v.Kind() != jsondoc.Object {
		return nil, []hookglass.FieldError{{Field: "", Message: "must be an object"}}, false
	}
	c := &configReader{of: v}
	var made any
	switch kind {
	case hookglass.StepForward:
		made = s.forwardConfig(c)
	case hookglass.StepNotify:
		made = c.notifyConfig()
	case hookglass.StepTag:
		made = c.tagConfig()
	case hookglass.StepIgnore:
		made = c.ignoreConfig()
	case hookglass.StepTransform:
		_, faults := ParseTransform(raw)
		return v.Bytes(), faults, false
	case hookglass.StepRequest:
		made = s.requestConfig(c)
	}
	if faults := c.end(); len(faults) > 0 {
		return nil, faults, c.forbidden
	}
	stored, err = json.Marshal(made)
	if err != nil {
		return nil, []hookglass.FieldError{{Field: "", Message: "cannot be stored"}}, false
	}
	return stored, nil, false
}

func (s *Service) forwardConfig(c *configReader) forwardConfig {
	f := forwardConfig{
		URL: c.required("url"), TimeoutSeconds: c.whole("timeout_seconds", 30, 1, 300),
		RetryCount: c.whole("retry_count", hookglass.DefaultForwardRetries, 0, hookglass.MaxForwardRetries),
		AppendPath: c.flag("append_path"), AppendQuery: c.flag("append_query"),
	}
	if url, _ := c.of.Member("url"); utf8.RuneCountInString(f.URL) > maxForwardURL {
		c.fault("url", "may have %d characters at most", maxForwardURL)
	} else if url.Kind() == jsondoc.String {
		c.refused(s.Client.Check("url", f.URL))
	}
	return f
}

func (c *configReader) notifyConfig() notifyConfig {
	n := notifyConfig{Channel: c.required("channel"), Message: c.text("message", defaultMessage)}
	if v, ok := c.of.Member("channel"); ok && v.Kind() == jsondoc.String && (n.Channel == "" || utf8.RuneCountInString(n.Channel) > maxChannelLength) {
		c.fault("channel", "must be the id or the name of a notification channel")
	}
	if utf8.RuneCountInString(n.Message) > maxMessage {
		c.fault("message", "may have %d characters at most", maxMessage)
	}
	if _, err := ParseMessage(n.Message); err != nil {
		c.fault("message", "%s", err)
	}
	return n
}

func (c *configReader) tagConfig() tagConfig {
	t := tagConfig{Tag: c.required("tag")}
	if len(c.faults) == 0 && !hookglass.ValidTag(t.Tag) {
		c.fault("tag", "must have 1 to %d printable characters, and no space around them", hookglass.MaxTagLength)
	}
	return t
}

func (c *configReader) ignoreConfig() ignoreConfig {
	i := ignoreConfig{Reason: c.text("reason", hookglass.IgnoreReasons[0])}
	if len(c.faults) == 0 && !slices.Contains(hookglass.IgnoreReasons, i.Reason) {
		c.fault("reason", "must be one of %s", strings.Join(hookglass.IgnoreReasons, ", "))
	}
	return i
}

func (s *Service) requestConfig(c *configReader) requestConfig {
	r := requestConfig{
		Method: c.text("method", defaultMethod), URL: c.required("url"), Body: c.text("body", ""),
		TimeoutSeconds: c.whole("timeout_seconds", int(defaultRequest/time.Second), 1, int(maxRequestTime/time.Second)),
	}
	c.requestHeaders(&r)
	s.checkRequest(c, r)
	return r
}

// template reports whether a text is a valid template, and faults one that is not.
func (c *configReader) template(field, text string, place Place) bool {
	_, err := ParseTemplate(text, place)
	if err != nil {
		c.fault(field, "%s", err)
	}
	return err == nil
}

// refused adds the faults of a target that was refused; a nil error adds none.
func (c *configReader) refused(err error) {
	if err == nil {
		return
	}
	c.forbidden = c.forbidden || hookglass.Is(err, hookglass.CodeTargetNotAllowed)
	if coded, ok := errors.AsType[*hookglass.Error](err); ok && len(coded.Details) > 0 {
		c.faults = append(c.faults, coded.Details...)
		return
	}
	c.fault("url", "is not allowed")
}

func (c *configReader) requestHeaders(r *requestConfig) {
	r.Named = json.RawMessage("{}")
	v, ok := c.member("headers")
	if !ok || v.Kind() == jsondoc.Null {
		return
	}
	if v.Kind() != jsondoc.Object {
		c.fault("headers", "must be an object of strings")
		return
	}
	if v.Len() > maxHeaders {
		c.fault("headers", "may hold %d headers at most", maxHeaders)
		return
	}
	seen := map[string]bool{}
	for name, value := range v.All() {
		field := "headers." + name
		lower := strings.ToLower(name)
		switch {
		case !hookglass.IsToken(name) || len(name) > 256:
			c.fault("headers", "holds a name that is not a header name")
		case seen[lower]:
			c.fault(field, "is named twice")
		case len(outbound.Sanitize(hookglass.Headers{{Name: name}})) == 0:
			c.fault(field, "may not be set: it is computed")
		case value.Kind() != jsondoc.String:
			c.fault(field, "must be a string")
		case len(value.Text()) > maxHeaderValue:
			c.fault(field, "may have %d bytes at most", maxHeaderValue)
		default:
			c.template(field, value.Text(), InHeader)
		}
		seen[lower] = true
		r.Headers = append(r.Headers, requestHeader{name, value.Text()})
	}
	r.Named = v.Bytes()
}

// checkRequest validates what is known of an http_request before its templates are rendered.
func (s *Service) checkRequest(c *configReader, r requestConfig) {
	method, given := c.of.Member("method")
	if !slices.Contains(requestMethods, r.Method) && (!given || method.Kind() == jsondoc.String) {
		c.fault("method", "must be one of %s", strings.Join(requestMethods, ", "))
	}
	if (r.Method == "GET" || r.Method == "HEAD") && r.Body != "" {
		c.fault("body", "cannot be sent with %s", r.Method)
	}
	if len(r.Body) > MaxRendered {
		c.fault("body", "may have 256 KiB at most")
	} else {
		c.template("body", r.Body, InText)
	}
	if r.URL == "" {
		if url, ok := c.of.Member("url"); ok && url.Kind() == jsondoc.String {
			c.fault("url", "may not be empty")
		}
		return // a missing or mistyped url was faulted before
	}
	if utf8.RuneCountInString(r.URL) > maxURL {
		c.fault("url", "may have 2,048 characters at most")
		return
	}
	if !c.template("url", r.URL, InURL) {
		return
	}
	fixed, _, filled := strings.Cut(r.URL, "{{")
	if filled {
		_, rest, found := strings.Cut(fixed, "://")
		if !found || !strings.ContainsAny(rest, "/?") {
			return // the host is not known before it is rendered
		}
	}
	c.refused(s.Client.Check("url", fixed))
}
