package hookglass

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MailStage is the stage of an SMTP transaction at which a script answers.
type MailStage string

// The stages.
const (
	StageRecipient MailStage = "rcpt" // to RCPT, before the mail is sent: what is refused there is not transferred
	StageData      MailStage = "data" // after the mail, which is stored with its answer
)

// MailScript answers the attempts of a mail one after another, as a ResponseScript does for webhooks.
type MailScript struct {
	Stage   MailStage
	Answers ResponseScript
}

// MaxScriptText bounds the text of an answer: a reply line has 512 bytes (RFC 5321, section 4.5.3.1.5).
const MaxScriptText = 400

// mailCodes are the codes that a script may answer: the one that accepts, and all that a server may refuse with
// (RFC 5321, section 4.2).
var mailCodes = statuses{"be 250, 400 to 459, 500 to 559, reset or timeout", func(code int64) bool {
	return code == 250 || code >= 400 && code <= 459 || code >= 500 && code <= 559
}}

// enhancedCode is the form of an enhanced code (RFC 3463, section 2).
var enhancedCode = regexp.MustCompile(`^[245]\.[0-9]{1,3}\.[0-9]{1,3}$`)

// ParseMailScript parses a script for mail. It may begin with "rcpt:" or "data:", the default. Entries are those of
// [ParseResponseScript], with SMTP codes and without Retry-After. An enhanced code and a text without commas may
// follow: "451*2 4.7.1 Greylisted,250". It answers validation_failed for the field response_script, naming the entry at
// fault.
func ParseMailScript(text string) (MailScript, error) {
	s := MailScript{Stage: StageData}
	rest := strings.TrimSpace(text)
	for _, stage := range []MailStage{StageRecipient, StageData} {
		if n := len(stage); len(rest) > n && rest[n] == ':' && strings.EqualFold(rest[:n], string(stage)) {
			s.Stage, rest = stage, rest[n+1:]
			break
		}
	}
	answers, err := parseScript(rest, utf8.RuneCountInString(text), parseMailEntry)
	s.Answers = answers
	return s, err
}

func parseMailEntry(entry string) (a ScriptedAnswer, fault string) {
	head, text, _ := strings.Cut(entry, " ")
	if a, fault = parseScripted(strings.ToLower(head), mailCodes); fault != "" {
		return a, fault
	}
	a.Text = strings.TrimSpace(text)
	if first, rest, _ := strings.Cut(a.Text, " "); enhancedCode.MatchString(first) {
		a.Enhanced, a.Text = first, strings.TrimSpace(rest)
	}
	switch {
	case a.RetryAfter > 0:
		return a, "has a Retry-After, which mail does not have"
	case a.Status == 0 && (a.Enhanced != "" || a.Text != ""):
		return a, "has a text, which a reset or a timeout does not send"
	case strings.ContainsAny(a.Text[:min(1, len(a.Text))], "*+@"):
		return a, "has a space before what stands behind the code"
	case a.Enhanced != "" && a.Enhanced[0] != strconv.Itoa(a.Status)[0]:
		return a, fmt.Sprintf("has the enhanced code %s, which is not of the class of %d", a.Enhanced, a.Status)
	case len(a.Text) > MaxScriptText:
		return a, fmt.Sprintf("may have a text of %d characters at most", MaxScriptText)
	case strings.ContainsFunc(a.Text, func(r rune) bool { return r < ' ' || r > '~' }):
		return a, "may have a text of printable ASCII alone"
	}
	return a, ""
}

// At returns the answer to the n-th attempt, counted from 1.
func (s MailScript) At(n int64) ScriptedAnswer { return s.Answers.At(n) }

// Over reports whether the n-th attempt is at the end of a script that ends with 250. What the same sender sends to the
// same recipient afterwards is another mail.
func (s MailScript) Over(n int64) bool {
	for _, a := range s.Answers {
		n -= int64(a.Times)
	}
	return n >= 0 && s.Answers[len(s.Answers)-1].Status == 250
}

// String returns the canonical spelling of the script, which [ParseMailScript] reads.
func (s MailScript) String() string {
	if s.Stage == StageRecipient {
		return string(StageRecipient) + ":" + s.Answers.String()
	}
	return s.Answers.String()
}

// mailReply is the default enhanced code and text of an SMTP code.
type mailReply struct{ enhanced, text string }

// mailReplies lists codes with a well-known meaning: the sentences of RFC 5321, section 4.2.3, shortened, with the
// matching enhanced codes of RFC 3463 and RFC 7505.
var mailReplies = map[int]mailReply{
	421: {"4.3.2", "The service is not available; the connection is closed"},
	450: {"4.2.1", "The mailbox is not available now; try again later"},
	451: {"4.3.0", "An error occurred here; try again later"},
	452: {"4.3.1", "There is not enough storage; try again later"},
	454: {"4.7.0", "This cannot be checked now; try again later"},
	500: {"5.5.2", "There is no such command"},
	501: {"5.5.4", "The argument is not valid"},
	502: {"5.5.1", "The command is not implemented"},
	503: {"5.5.1", "The command is out of order"},
	504: {"5.5.4", "The parameter is not implemented"},
	521: {"5.3.2", "This host takes no mail"},
	530: {"5.7.0", "Authentication is required"},
	550: {"5.7.1", "The message is refused"},
	551: {"5.1.6", "The mailbox is not here any more"},
	552: {"5.2.2", "The mailbox is full"},
	553: {"5.1.3", "The mailbox's name is not allowed"},
	554: {"5.3.0", "The transaction failed"},
	555: {"5.5.4", "A parameter is not recognised"},
	556: {"5.1.10", "The domain takes no mail"},
}

// SMTPText returns what follows the code in a reply: the enhanced code and the text.
func (a ScriptedAnswer) SMTPText(stage MailStage) string {
	usual, known := mailReplies[a.Status]
	switch {
	case a.Status == 550 && stage == StageRecipient:
		usual = mailReply{"5.1.1", "There is no such mailbox here"}
	case a.Status == 250 && stage == StageRecipient:
		usual = mailReply{"2.1.5", "OK"}
	case a.Status == 250:
		usual = mailReply{"2.0.0", "Stored"}
	case !known && a.Status < 500:
		usual = mailReply{"4.0.0", "Try again later"}
	case !known:
		usual = mailReply{"5.0.0", "Refused"}
	}
	if a.Enhanced != "" {
		usual.enhanced = a.Enhanced
	}
	if a.Text != "" {
		usual.text = a.Text
	}
	return usual.enhanced + " " + usual.text
}
