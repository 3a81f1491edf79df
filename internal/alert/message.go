package alert

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hookglass"
)

// Bounds of a message in a chat, in characters. Slack cuts at 40,000, Discord refuses more than 2,000 and Telegram more
// than 4,096; nobody reads more than this.
const (
	maxChatText     = 3_500
	maxDiscordText  = 2_000
	maxTelegramText = 4_000
)

// request is a message in the form of a kind of channel.
type request struct {
	url     string
	headers hookglass.Headers
	body    []byte
}

// compose builds the request that delivers a message to a channel over HTTP. Text by people or senders is shown
// literally: markup in it has no effect, and it mentions nobody.
func compose(kind hookglass.ChannelKind, config hookglass.ChannelConfig, telegram string, m hookglass.Message, at time.Time) (request, error) {
	r := request{url: config.WebhookURL, headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}, {Name: "User-Agent", Value: "hookglass"}}}
	var body any
	switch kind {
	case hookglass.ChannelSlack:
		// Slack's formatting characters cannot be escaped, so mrkdwn is off.
		body = map[string]any{"text": strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(chatText(m, maxChatText)), "mrkdwn": false, "unfurl_links": false, "unfurl_media": false}
	case hookglass.ChannelDiscord:
		body = map[string]any{"content": discordText(chatText(m, maxDiscordText-1)), "allowed_mentions": map[string]any{"parse": []string{}}, "flags": suppressEmbeds}
	case hookglass.ChannelTeams:
		body = adaptiveCard(m)
	case hookglass.ChannelTelegram:
		r.url = telegram + "/bot" + config.BotToken + "/sendMessage"
		body = map[string]any{"chat_id": config.ChatID, "text": chatText(m, maxTelegramText), "link_preview_options": map[string]any{"is_disabled": true}}
	case hookglass.ChannelWebhook:
		return signed(config, m, at)
	}
	var err error
	r.body, err = json.Marshal(body)
	return r, err
}

// suppressEmbeds tells Discord to show no previews of links.
const suppressEmbeds = 1 << 2

// address finds URLs that Discord turns into links. They are not escaped, since a backslash would become part of them.
var address = regexp.MustCompile(`\bhttps?://[0-9A-Za-z][0-9A-Za-z.-]*(:[0-9]+)?(/[0-9A-Za-z._/?=&%+@-]*)?`)

// discordText escapes Discord's Markdown, within the length that Discord takes.
func discordText(s string) string {
	var b strings.Builder
	room := maxDiscordText - 1 // and an ellipsis
	put := func(piece string) (fits bool) {
		if room -= utf8.RuneCountInString(piece); room >= 0 {
			b.WriteString(piece)
		} else {
			b.WriteString("…")
		}
		return room >= 0
	}
	links, from := append(address.FindAllStringIndex(s, -1), []int{len(s), len(s)}), 0
	for _, at := range links {
		for _, r := range s[from:at[0]] {
			piece := string(r)
			if strings.ContainsRune("\\`*_~|<>#-[]", r) {
				piece = `\` + piece
			}
			if !put(piece) {
				return b.String()
			}
		}
		if from = at[1]; !put(s[at[0]:at[1]]) {
			break
		}
	}
	return b.String()
}

// chatText returns a message as one text of at most that many characters.
func chatText(m hookglass.Message, most int) string {
	text := m.Text
	if m.Title != "" {
		text = m.Title + "\n" + m.Text
	}
	text = strings.Map(func(r rune) rune {
		if r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1 // it would reorder or hide the text around it
		}
		return r
	}, text)
	if text = strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD"); text == "" {
		text = m.Type // an empty text is refused
	}
	return shortened(text, most)
}

// shortened is a text of at most that many characters.
func shortened(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// adaptiveCard returns a message for a Teams workflow. Text runs have no markup.
func adaptiveCard(m hookglass.Message) any {
	run := func(text, weight string) map[string]any {
		return map[string]any{"type": "RichTextBlock", "inlines": []any{map[string]any{"type": "TextRun", "text": text, "weight": weight}}}
	}
	body := []any{}
	if m.Title != "" {
		body = append(body, run(m.Title, "bolder"))
	}
	body = append(body, run(chatText(hookglass.Message{Type: m.Type, Text: m.Text}, maxChatText), "default"))
	return map[string]any{"type": "message", "attachments": []any{map[string]any{
		"contentType": "application/vnd.microsoft.card.adaptive",
		"content":     map[string]any{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": body},
	}}}
}

// envelope is the payload of a webhook channel: a line of the activity feed in the form of Standard Webhooks ("Payload
// structure").
type envelope struct {
	ID         string         `json:"id"`
	Type       string         `json:"type"`
	Timestamp  string         `json:"timestamp"`
	OccurredAt string         `json:"occurred_at"`
	EndpointID *string        `json:"endpoint_id"`
	RequestID  *string        `json:"request_id"`
	Title      string         `json:"title,omitempty"`
	Message    string         `json:"message,omitempty"`
	Data       map[string]any `json:"data"`
}

// signed builds a message for a webhook channel, signed as Standard Webhooks has it: HMAC-SHA256 over id, time and
// body.
func signed(config hookglass.ChannelConfig, m hookglass.Message, at time.Time) (r request, err error) {
	when := m.At.UTC().Format(hookglass.TimeLayout)
	e := envelope{ID: m.ID, Type: m.Type, Timestamp: when, OccurredAt: when, Title: m.Title, Message: m.Text, Data: m.Data}
	if e.Data == nil {
		e.Data = map[string]any{}
	}
	if m.EndpointID != "" {
		e.EndpointID = (*string)(&m.EndpointID)
	}
	if m.EventID != "" {
		e.RequestID = (*string)(&m.EventID)
	}
	if r.body, err = json.Marshal(e); err != nil {
		return r, err
	}
	key, err := signingKey(config.Secret)
	if err != nil {
		return r, errors.New("the secret of the channel cannot be used")
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(m.ID + "." + stamp + "."))
	mac.Write(r.body)
	r.url = config.URL
	r.headers = hookglass.Headers{
		{Name: "Content-Type", Value: "application/json"}, {Name: "User-Agent", Value: "hookglass"},
		{Name: "webhook-id", Value: m.ID}, {Name: "webhook-timestamp", Value: stamp},
		{Name: "webhook-signature", Value: "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}
	return r, nil
}

// secretPrefix marks a secret that is base64 (Standard Webhooks, "Signature scheme").
const secretPrefix = "whsec_"

// Bounds of a signing key in bytes (Standard Webhooks, "Signature scheme").
const minKey, maxKey = 24, 64

// signingKey derives the signing key from a secret: whsec_ and base64; bare base64 of a key's length, as libraries
// accept it; or any other text, whose bytes are the key.
func signingKey(secret string) ([]byte, error) {
	encoded, marked := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	fits := err == nil && len(key) >= minKey && len(key) <= maxKey
	switch {
	case fits:
		return key, nil
	case marked:
		return nil, errors.New("must be base64 of 24 to 64 bytes behind whsec_")
	case secret == "":
		return nil, errors.New("may not be empty")
	}
	return []byte(secret), nil
}
