// Package alert watches endpoints and notifies people: alert rules and their evaluation, the figures behind them, and
// notification channels with a sender for each kind.
//
// It hides the protocol of each kind of channel; that messages wait in rows which outlive the process; and that exactly
// one node changes the state of an alert. Credentials of channels are sealed and leave this package only in requests to
// the channel.
//
// All methods are safe for concurrent use.
package alert

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
)

// Bounds of channels. A workspace with more has a list of addressees, not channels.
const (
	maxName       = 200  // characters
	maxChannels   = 1000 // of a workspace
	maxURL        = 2048 // characters
	maxRecipients = 20
	maxAddress    = 254 // RFC 5321, section 4.5.3.1.3, less the brackets
	maxToken      = 256 // characters
)

// Client is the way out.
type Client interface {
	// Check validates the spelling of a URL. It answers validation_failed and target_not_allowed.
	Check(field, rawURL string) error
	// Do sends a request once. Its error is a *outbound.Failure.
	Do(ctx context.Context, r outbound.Request) (*outbound.Response, error)
}

// Sealer encrypts credentials. where names the row, so that ciphertext cannot be moved to another row.
type Sealer interface {
	Seal(plaintext []byte, where string) ([]byte, error)
	Open(sealed []byte, where string) ([]byte, error)
}

// Config is what the service is made of.
type Config struct {
	Client   Client
	Sealer   Sealer
	Mailer   *Mailer // nil: there is no relay, and mail channels say so
	Telegram string  // address of Telegram's API; empty: https://api.telegram.org
	Log      *slog.Logger
	Now      func() time.Time                  // nil: the clock
	Delay    func(time.Duration) time.Duration // a time from zero to the bound; nil: evenly distributed
}

// Service is the capability.
type Service struct {
	Config
	db *store.DB

	mu       sync.Mutex
	places   *fair.Places
	busy     map[int64]bool // channels that this node sends to
	purgedAt time.Time      // when this node last purged old figures

	judging rounds // of the alerts on figures and schemas
	reading rounds // of those that read events

	search func(matcher, *hookglass.Event) string // matcher.in; tests replace it
}

// New returns the service. [Service.Run] sends notifications, and [Service.Evaluate] evaluates alerts.
func New(db *store.DB, cfg Config) *Service {
	if cfg.Now == nil {
		cfg.Now = db.Now
	}
	if cfg.Delay == nil {
		cfg.Delay = mathrand.N[time.Duration]
	}
	if cfg.Telegram == "" {
		cfg.Telegram = "https://api.telegram.org"
	}
	return &Service{
		Config: cfg, db: db, places: fair.NewPlaces(sendersAtOnce, sendersAtOnce/2), busy: make(map[int64]bool), judging: rounds{time: roundFor}, reading: rounds{time: roundFor},
		search: matcher.in,
	}
}

// ChannelDraft is what a caller sets on a channel. A nil field is not named.
type ChannelDraft struct {
	Name        *string
	Kind        *hookglass.ChannelKind // may not change
	Enabled     *bool                  // true also re-enables a channel that the service disabled
	WorkspaceID *int64                 // only on create
	Config      *ChannelSettings
}

// ChannelSettings are the configuration as a caller sends it. A nil field changes nothing, nor does a URL as it is
// shown.
type ChannelSettings struct {
	WebhookURL, BotToken, ChatID, URL, Secret *string
	To, Events                                *[]string
}

// CreateChannel stores a new channel, in the principal's workspace or, when the draft names none, in its account's
// oldest. If it generated the signing secret of a webhook channel, it returns that, this once. It answers
// validation_failed and target_not_allowed.
func (s *Service) CreateChannel(ctx context.Context, who hookglass.Principal, d ChannelDraft) (c hookglass.Channel, secret string, err error) {
	if err := who.MayManage(); err != nil {
		return c, "", err
	}
	if faults := lacking(channelFault, required{"config", d.Config != nil}, required{"kind", d.Kind != nil}, required{"name", d.Name != nil}); len(faults) > 0 {
		return c, "", hookglass.InvalidFields(faults)
	}
	c.ID, c.Kind, c.Enabled = hookglass.NewSortableID(hookglass.PrefixChannel, s.Now()), *d.Kind, true
	if !slices.Contains(hookglass.ChannelKinds, c.Kind) {
		return c, "", hookglass.Invalid("notification_channel.kind", "must be slack, discord, teams, telegram, email or webhook")
	}
	if c.Kind == hookglass.ChannelWebhook && d.Config.Secret == nil {
		var key [32]byte
		rand.Read(key[:]) // never fails (crypto/rand, Go 1.24)
		secret = secretPrefix + base64.StdEncoding.EncodeToString(key[:])
		d.Config.Secret = &secret
	}
	var config hookglass.ChannelConfig
	if err := s.apply(d, &c, &config); err != nil {
		return c, "", err
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		id := int64(0)
		if d.WorkspaceID != nil {
			id = *d.WorkspaceID
		}
		w, err := tx.HomeWorkspace(id)
		if hookglass.Is(err, hookglass.CodeNotFound) && d.WorkspaceID != nil {
			return hookglass.Invalid("notification_channel.workspace_id", "is no workspace of yours")
		}
		if err != nil {
			return err
		}
		if n, err := tx.LockChannels(w.ID); err != nil {
			return err
		} else if n >= maxChannels {
			return hookglass.Invalid("notification_channel", "would be one too many: a workspace has %d at most", maxChannels)
		}
		c.WorkspaceID, c.AccountID = w.ID, w.AccountID
		return tx.CreateChannel(&c)
	})
	return c, secret, err
}

// UpdateChannel changes the fields that the draft sets, also within the configuration. It answers not_found,
// validation_failed, target_not_allowed, and conflict, with the references, while a step of an action refers to the
// channel by its old name.
func (s *Service) UpdateChannel(ctx context.Context, who hookglass.Principal, id string, d ChannelDraft) (c hookglass.Channel, err error) {
	if err := who.MayManage(); err != nil {
		return c, err
	}
	if d.Enabled != nil && *d.Enabled {
		if err := s.forget(ctx, who, id, false); err != nil {
			return c, err
		}
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		c, err = tx.ChangeChannel(id, func(c *hookglass.Channel) (bool, error) {
			if d.Kind != nil && *d.Kind != c.Kind {
				return false, hookglass.Invalid("notification_channel.kind", "cannot change")
			}
			config, err := s.open(*c)
			if err != nil {
				return false, err
			}
			old := c.Name
			back := d.Enabled != nil && *d.Enabled && c.Disabled() // enabling a working channel drops nothing
			if err := s.apply(d, c, &config); err != nil || c.Name == old {
				return back, err
			}
			steps, err := tx.ChannelReferences(c.WorkspaceID, old)
			if err != nil {
				return false, err
			}
			return back, hookglass.InUse(hookglass.CodeConflict, "The channel cannot be renamed: steps of actions name it so, and not by its id.", steps)
		})
		return err
	})
	return c, err
}

// DeleteChannel deletes a channel and the messages that wait for it. It returns the steps of actions that name it; they
// fail until they name another channel or another channel takes the name. It answers not_found.
func (s *Service) DeleteChannel(ctx context.Context, who hookglass.Principal, id string) (steps []hookglass.StepReference, err error) {
	if err := who.MayManage(); err != nil {
		return nil, err
	}
	if err := s.forget(ctx, who, id, true); err != nil {
		return nil, err
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) (err error) {
		steps, err = tx.DeleteChannel(id)
		return err
	})
	return steps, err
}

// forget deletes the messages that wait for a disabled channel, or for any channel with deleting. It works in pieces,
// so that captures come in between. It answers not_found.
func (s *Service) forget(ctx context.Context, who hookglass.Principal, id string, deleting bool) error {
	for more := true; more; {
		began := time.Now()
		err := s.db.Update(ctx, who, func(tx *store.Tx) (err error) {
			more, err = tx.ForgetMessages(id, deleting)
			return err
		})
		if err != nil {
			return err
		}
		if more {
			fair.Rest(ctx, began)
		}
	}
	return nil
}

// Sent is the result of one attempt. One of StatusCode and Failure is set; neither when a relay took the mail.
type Sent struct {
	Delivered  bool
	StatusCode int
	Failure    *hookglass.Failure
	retryAfter time.Duration
	looped     bool // with Failure: it was not sent and never will be
	unfit      bool // with Failure: the message itself is at fault
}

// TestChannel sends a test message at once, whether the channel is enabled or not, and returns the result. It answers
// not_found.
func (s *Service) TestChannel(ctx context.Context, who hookglass.Principal, id string) (sent Sent, err error) {
	if err := who.MayManage(); err != nil {
		return sent, err
	}
	c, err := store.Read(ctx, s.db, who, func(v *store.View) (hookglass.Channel, error) {
		return v.Channel(id)
	})
	if err != nil {
		return sent, err
	}
	now := s.Now().UTC()
	return s.send(ctx, c, hookglass.Message{
		ID: hookglass.NewSortableID(hookglass.PrefixMessage, now), Type: hookglass.MessageTest, At: now,
		Title: "Test message", Text: fmt.Sprintf("The notification channel %q works.", c.Name),
		Data: map[string]any{"channel_id": c.ID, "name": c.Name},
	})
}

// Problem says why nothing can be sent to channels of a kind in this installation; empty: it can.
func (s *Service) Problem(kind hookglass.ChannelKind) string {
	if kind == hookglass.ChannelEmail && s.Mailer == nil {
		return noRelay
	}
	return ""
}

const noRelay = "This installation has no mail relay, so nothing can be sent by email. Its operator sets one with --smtp-relay."

// apply applies the fields that the draft sets, validates the result, and seals it.
func (s *Service) apply(d ChannelDraft, c *hookglass.Channel, config *hookglass.ChannelConfig) error {
	var faults []hookglass.FieldError
	if d.Name != nil {
		c.Name = strings.TrimSpace(*d.Name)
		if !validName(c.Name) {
			faults = append(faults, channelFault("name", nameFault))
		}
	}
	if d.Enabled != nil {
		c.Enabled = *d.Enabled
	}
	if d.Config != nil {
		faults = append(faults, d.Config.apply(c, config)...)
	}
	if len(faults) > 0 {
		return hookglass.InvalidFields(faults)
	}
	if d.Config != nil {
		for field, address := range map[string]string{"webhook_url": config.WebhookURL, "url": config.URL} {
			if address == "" {
				continue
			}
			if err := s.Client.Check("notification_channel.config."+field, address); err != nil {
				return err
			}
		}
		c.Shown = hints(c.Kind, *config)
		plain, err := json.Marshal(config)
		if err != nil {
			return err
		}
		if c.Sealed, err = s.Sealer.Seal(plain, sealedIn(c.ID)); err != nil {
			return err
		}
	}
	return nil
}

// settings returns the fields of a kind (spec: decisions, section 13, "Channel config").
func settings(kind hookglass.ChannelKind) []string {
	switch kind {
	case hookglass.ChannelTelegram:
		return []string{"bot_token", "chat_id"}
	case hookglass.ChannelEmail:
		return []string{"to"}
	case hookglass.ChannelWebhook:
		return []string{"url", "secret", "events"}
	}
	return []string{"webhook_url"}
}

var (
	botToken = regexp.MustCompile(`^[A-Za-z0-9_:-]+$`) // safe in the path of a URL; whether a bot has it, Telegram decides
	chatID   = regexp.MustCompile(`^(-?[0-9]{1,20}|@[A-Za-z0-9_]{3,64})$`)
)

// apply merges the given settings into a configuration and validates the result.
func (d ChannelSettings) apply(c *hookglass.Channel, config *hookglass.ChannelConfig) []hookglass.FieldError {
	if faults := d.put(c, config); len(faults) > 0 {
		return faults
	}
	if faults := unfit(c.Kind, *config); len(faults) > 0 {
		return faults
	}
	return wrong(c.Kind, *config)
}

func settingFault(field, message string) hookglass.FieldError {
	return channelFault("config."+field, message)
}

// put merges the given settings into a configuration. Its faults are settings that the kind does not have.
func (d ChannelSettings) put(c *hookglass.Channel, config *hookglass.ChannelConfig) (faults []hookglass.FieldError) {
	takes := func(field string, given bool) bool {
		if given && !slices.Contains(settings(c.Kind), field) {
			faults = append(faults, settingFault(field, "is not a setting of "+string(c.Kind)))
			return false
		}
		return given
	}
	text := func(field string, given *string, to *string) {
		if takes(field, given != nil) {
			*to = *given
		}
	}
	text("webhook_url", d.WebhookURL, &config.WebhookURL)
	text("bot_token", d.BotToken, &config.BotToken)
	text("chat_id", d.ChatID, &config.ChatID)
	if config.URL == "" || d.URL == nil || *d.URL != hints(c.Kind, *config).URL { // the shown URL, sent back, keeps the query, which is not shown
		text("url", d.URL, &config.URL)
	}
	text("secret", d.Secret, &config.Secret)
	if takes("to", d.To != nil) {
		config.To = *d.To
	}
	if !takes("events", d.Events != nil) {
		return faults
	}
	c.Events = []hookglass.ActivityType{}
	for i, name := range *d.Events {
		t := hookglass.ActivityType(name)
		if !slices.Contains(hookglass.Subscribable, t) {
			faults = append(faults, settingFault(fmt.Sprintf("events.%d", i), "must be webhook.received, email.received, forwarding.failed or alert.triggered"))
		} else if !slices.Contains(c.Events, t) {
			c.Events = append(c.Events, t)
		}
	}
	return faults
}

// unfit faults the texts of a configuration that are missing or too long.
func unfit(kind hookglass.ChannelKind, config hookglass.ChannelConfig) (faults []hookglass.FieldError) {
	for _, f := range []struct {
		name, value string
		longest     int
	}{{"webhook_url", config.WebhookURL, maxURL}, {"bot_token", config.BotToken, maxToken}, {"chat_id", config.ChatID, maxToken}, {"url", config.URL, maxURL}, {"secret", config.Secret, maxToken}} {
		switch {
		case !slices.Contains(settings(kind), f.name):
		case f.value == "":
			faults = append(faults, settingFault(f.name, "is required"))
		case utf8.RuneCountInString(f.value) > f.longest:
			faults = append(faults, settingFault(f.name, fmt.Sprintf("may have %d characters at most", f.longest)))
		}
	}
	return faults
}

// wrong faults the values of a configuration that are not valid.
func wrong(kind hookglass.ChannelKind, config hookglass.ChannelConfig) (faults []hookglass.FieldError) {
	fault := func(field, message string) { faults = append(faults, settingFault(field, message)) }
	switch kind {
	case hookglass.ChannelTelegram:
		if !botToken.MatchString(config.BotToken) {
			fault("bot_token", "is not the token of a bot")
		}
		if !chatID.MatchString(config.ChatID) {
			fault("chat_id", "must be a number or @name")
		}
	case hookglass.ChannelEmail:
		if n := len(config.To); n < 1 || n > maxRecipients {
			fault("to", fmt.Sprintf("must name 1 to %d addresses", maxRecipients))
		}
		for i, address := range config.To {
			if a, err := mail.ParseAddress(address); err != nil || a.Address != address || len(address) > maxAddress || strings.ContainsAny(address, "\r\n") {
				fault(fmt.Sprintf("to.%d", i), "is not a mail address")
			}
		}
	case hookglass.ChannelWebhook:
		if _, err := signingKey(config.Secret); err != nil {
			fault("secret", err.Error())
		}
	}
	return faults
}

// hints returns what may be shown of a configuration.
func hints(kind hookglass.ChannelKind, c hookglass.ChannelConfig) hookglass.ChannelHints {
	h := hookglass.ChannelHints{ChatID: c.ChatID, To: c.To}
	if u, err := url.Parse(c.WebhookURL); err == nil {
		h.Host = u.Host
	}
	if kind == hookglass.ChannelWebhook {
		h.URL, _, _ = strings.Cut(c.URL, "?") // what follows may be a credential
	}
	return h
}

func (s *Service) open(c hookglass.Channel) (config hookglass.ChannelConfig, err error) {
	plain, err := s.Sealer.Open(c.Sealed, sealedIn(c.ID))
	if err != nil {
		return config, fmt.Errorf("configuration of channel %s: %w", c.ID, err)
	}
	if json.Unmarshal(plain, &config) != nil {
		return config, errors.New("the configuration of channel " + c.ID + " cannot be read") // the cause may quote it
	}
	return config, nil
}

func sealedIn(channelID string) string { return "notification_channels:sealed:" + channelID }

var nameFault = fmt.Sprintf("must have 1 to %d characters, none of them a control character", maxName)

func validName(s string) bool {
	n := utf8.RuneCountInString(s)
	return n > 0 && n <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError })
}

func channelFault(field, message string) hookglass.FieldError {
	return hookglass.FieldError{Field: "notification_channel." + field, Message: message}
}
