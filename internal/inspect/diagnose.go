package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hookglass"
)

// Signature is what was found out about an event's signature; see provider.Diagnose.
type Signature struct {
	Status  hookglass.SignatureStatus // with the configs of now
	Code    string                    // of the finding
	Message string
}

// Case is everything that is known of one event.
type Case struct {
	Event      *hookglass.Event // in the detail form
	Signature  *Signature       // nil for mail
	Deliveries []hookglass.Attempted
	Unmeant    []hookglass.ForwardingTarget // which it does not go to by their conditions
	Runs       []hookglass.ActionRun        // newest first
	Actions    map[string]string            // names by id; a deleted action has none
}

// Diagnose explains what became of an event.
func Diagnose(c Case) hookglass.Diagnosis {
	d := &diagnosis{Case: c, Diagnosis: hookglass.Diagnosis{
		EventID: c.Event.ID, EndpointID: c.Event.EndpointID,
		Severity: hookglass.SeverityOK, Deliveries: c.Deliveries, Runs: c.Runs, Sender: Sender(c.Event.Provider),
	}}
	if c.Event.Type == hookglass.EventEmail {
		d.authentication()
	} else {
		d.signature()
	}
	d.response()
	for _, a := range c.Deliveries {
		d.delivery(a)
	}
	for _, t := range c.Unmeant {
		d.unmeant(t)
	}
	for _, r := range c.Runs {
		d.run(r)
	}
	if len(c.Deliveries) == 0 && len(c.Runs) == 0 {
		d.add(hookglass.AreaDelivery, hookglass.SeverityInfo, "stored_only",
			"It was stored and passed on to nobody: there was no forwarding target for it, no matching action and no connected tunnel, and it was not replayed.",
			"To deliver it, replay it to a URL or to the word tunnel with a machine connected by hookglass listen.")
	}
	d.conclude()
	return d.Diagnosis
}

type diagnosis struct {
	Case
	hookglass.Diagnosis
}

func (d *diagnosis) add(area hookglass.Area, s hookglass.Severity, code, message, next string) {
	d.Findings = append(d.Findings, hookglass.Finding{Area: area, Severity: s, Code: code, Message: message, Next: next})
}

// rank orders severities.
func rank(s hookglass.Severity) int {
	return slices.Index([]hookglass.Severity{hookglass.SeverityOK, hookglass.SeverityInfo, hookglass.SeverityWarning, hookglass.SeverityProblem}, s)
}

func (d *diagnosis) signature() {
	sig := d.Case.Signature
	if sig == nil {
		return
	}
	recorded := d.Event.SignatureStatus
	switch {
	case recorded == hookglass.SignatureVerified:
		d.add(hookglass.AreaSignature, hookglass.SeverityOK, "verified", "The signature was right when it came.", "")
	case recorded == hookglass.SignatureFailed && sig.Status == hookglass.SignatureVerified:
		d.add(hookglass.AreaSignature, hookglass.SeverityInfo, "verified_now", "The signature failed when it came, and is right with the signature configs of now.",
			"Nothing for new events. To correct the verdicts of stored ones, judge them again: POST …/signature_configs/<id>/verify.")
	case recorded == hookglass.SignatureFailed || sig.Status == hookglass.SignatureFailed:
		d.add(hookglass.AreaSignature, hookglass.SeverityProblem, sig.Code, sig.Message, advice(sig.Code))
	case sig.Code == "no_config":
		d.add(hookglass.AreaSignature, hookglass.SeverityInfo, sig.Code, sig.Message, advice(sig.Code))
	default:
		d.add(hookglass.AreaSignature, hookglass.SeverityInfo, sig.Code, sig.Message, "")
	}
}

// advice says what to do about a signature. Codes without a line of their own have a message that says it.
func advice(code string) string {
	switch code {
	case "no_config":
		return "Add a signature config for the provider, with the secret that it shows: in the web app, by `hookglass signatures set` or over REST. No tool of MCP takes a secret."
	case "no_variant_matches", "signature_mismatch":
		return "Copy the signing secret from the sender's settings again, and check that nothing between the sender and this address changes the body."
	case "clock_offset", "timestamp_out_of_tolerance":
		return "Old deliveries that are sent again fail this check. To test a handler with one, replay it with signature_mode resign."
	case "missing_signature":
		return "Set a secret where the webhook is configured at the sender."
	case "other_secret", "secret_blanks", "secret_quotes", "secret_encoding", "secret_prefix", "secret_newline":
		return "Correct the signature config's secret, then judge stored events again."
	case "key_unavailable":
		return "The sender's public key could not be fetched yet; judge the event again in a minute."
	}
	return "Do what the finding says, then send a new event or judge stored ones again."
}

func (d *diagnosis) authentication() {
	a := d.Event.Authentication
	var failed []string
	for _, c := range []struct{ name, result string }{{"SPF", a.SPF}, {"DKIM", a.DKIM}, {"DMARC", a.DMARC}} {
		if strings.HasSuffix(c.result, "fail") || c.result == "permerror" {
			failed = append(failed, c.name+" "+c.result)
		}
	}
	switch {
	case len(failed) > 0:
		d.add(hookglass.AreaAuthentication, hookglass.SeverityWarning, "authentication_failed", "The sender's domain is not confirmed: "+strings.Join(failed, ", ")+".",
			"Check the domain's SPF and DKIM records; authentication_results of the request say what each result rests on.")
	case a.SPF == "" || a.SPF == hookglass.AuthPending:
		d.add(hookglass.AreaAuthentication, hookglass.SeverityInfo, "authentication_pending", "SPF, DKIM and DMARC are not looked up yet.", "Look again in a few seconds.")
	default:
		d.add(hookglass.AreaAuthentication, hookglass.SeverityOK, "authentication", fmt.Sprintf("SPF %s, DKIM %s, DMARC %s.", a.SPF, a.DKIM, a.DMARC), "")
	}
}

func (d *diagnosis) response() {
	if d.Event.Payload == nil || d.Event.Reply == nil {
		return
	}
	r := d.Event.Reply
	if r.Unanswered() {
		d.add(hookglass.AreaResponse, hookglass.SeverityWarning, "unanswered", fmt.Sprintf("The sender was given no answer: its connection was reset after %s, as the endpoint's response_script says.", r.Delay),
			"The retry profile of the endpoint shows what the sender did then.")
		return
	}
	text := fmt.Sprintf("The sender was answered %d (%s", r.Status, r.Source)
	if r.Rule != nil {
		text += fmt.Sprintf(", by the endpoint's rule %q", r.Rule.When)
	}
	if r.Delay > 0 {
		text += fmt.Sprintf(", after %s", r.Delay.Round(time.Millisecond))
	}
	text += ")."
	mail := d.Event.Type == hookglass.EventEmail // what is known of senders is of webhooks
	if e := d.Sender.Expects; e != "" && !mail {
		text += " It expects: " + e + "."
	}
	again := ""
	if d.Sender.Retries != "" && !mail {
		again = " Without that, it does this: " + d.Sender.Retries + "."
	}
	switch {
	case r.Status >= 200 && r.Status <= 299:
		d.add(hookglass.AreaResponse, hookglass.SeverityOK, "accepted", text, "")
	case mail:
		d.add(hookglass.AreaResponse, hookglass.SeverityWarning, "custom_error", text+" The code is that of the endpoint's response_script.",
			"If the sender shall take it as delivered, end the endpoint's response_script. The retry profile shows what the sender did then.")
	case r.Rule != nil:
		d.add(hookglass.AreaResponse, hookglass.SeverityWarning, "custom_error", text+again+" The status is that of the rule.",
			"If the sender shall take it as received, change the rule in the endpoint's response_rules: its condition, or its status to a 2xx one.")
	case r.Source == hookglass.SourceCustom:
		d.add(hookglass.AreaResponse, hookglass.SeverityWarning, "custom_error", text+again+" The status is the endpoint's own response.",
			"If the sender shall take it as received, change the endpoint's response to a 2xx status.")
	case r.Source == hookglass.SourceTunnel:
		d.add(hookglass.AreaResponse, hookglass.SeverityProblem, "tunnel_error", text+again+" The status came from the connected local machine.",
			"Mend the local handler; its answer is in the deliveries. Then replay this request to the word tunnel.")
	default:
		d.add(hookglass.AreaResponse, hookglass.SeverityWarning, "refused", text+again, "")
	}
	if r.Delay >= 3*time.Second {
		d.add(hookglass.AreaResponse, hookglass.SeverityWarning, "slow_answer", fmt.Sprintf("The answer was held back for %s; many senders give up sooner and send again.", r.Delay.Round(time.Millisecond)),
			"Shorten delay_ms of the endpoint's response.")
	}
}

// unmeant tells of a target that gets other events.
func (d *diagnosis) unmeant(t hookglass.ForwardingTarget) {
	d.add(hookglass.AreaDelivery, hookglass.SeverityInfo, "not_meant",
		fmt.Sprintf("The forwarding target %q gets other events: those that its condition means, %q.", brief(t.Name, maxNamed), t.When),
		"If it should have this one, change the target's when, and replay the request to its URL.")
}

func (d *diagnosis) delivery(a hookglass.Attempted) {
	to := map[string]string{"target": "forwarding target", "tunnel": "local machine", "replay": "replay to"}[a.Via]
	to += fmt.Sprintf(" %q", brief(a.To, maxNamed))
	tried := "one attempt"
	if a.Attempts != 1 {
		tried = fmt.Sprintf("%d attempts", a.Attempts)
	}
	switch {
	case a.StatusCode >= 200 && a.StatusCode <= 299:
		d.add(hookglass.AreaDelivery, hookglass.SeverityOK, "delivered", fmt.Sprintf("The %s answered %d after %s.", to, a.StatusCode, tried), "")
	case a.State == string(hookglass.ForwardSkipped) && a.SameAs != "":
		d.add(hookglass.AreaDelivery, hookglass.SeverityInfo, "duplicate", fmt.Sprintf("It was not sent to the %s: the same webhook was delivered with the request %s.", to, a.SameAs),
			"If it should have been sent, correct the target's dedupe_by, and replay the request to its URL.")
	case a.State == string(hookglass.ForwardPending) && a.Paused != "":
		why := "by people"
		if a.Paused == hookglass.PauseFailing {
			why = "because it failed for a long time"
		}
		d.add(hookglass.AreaDelivery, hookglass.SeverityWarning, "paused", fmt.Sprintf("It waits before the %s, which was paused %s: %s so far%s.", to, why, tried, outcome(a)), "Resume the target; what waits for it is sent then.")
	case a.State == string(hookglass.ForwardPending) && a.SameAs != "":
		d.add(hookglass.AreaDelivery, hookglass.SeverityInfo, "waits_for_first", fmt.Sprintf("It waits before the %s: the same webhook is on its way with the request %s, and this one is sent if that fails.", to, a.SameAs), "Look again when that is over.")
	case a.State == string(hookglass.ForwardSkipped):
		d.add(hookglass.AreaDelivery, hookglass.SeverityWarning, "skipped", fmt.Sprintf("It was not sent to the %s: that was disabled, or the account's plan did not allow it.", to), "Enable the target, then replay the request to its URL.")
	case a.State == string(hookglass.ForwardPending) || a.State == string(hookglass.ForwardSending):
		d.add(hookglass.AreaDelivery, hookglass.SeverityInfo, "pending", fmt.Sprintf("It is on its way to the %s: %s so far%s.", to, tried, outcome(a)), "Look again after the next attempt.")
	default:
		d.add(hookglass.AreaDelivery, hookglass.SeverityProblem, failureCode(a), fmt.Sprintf("The %s did not take it: %s%s.", to, tried, outcome(a)), mend(a))
	}
}

func failureCode(a hookglass.Attempted) string {
	if a.Failure != nil && a.Failure.Code != "" {
		return a.Failure.Code
	}
	return "error_response"
}

func outcome(a hookglass.Attempted) string {
	switch {
	case a.StatusCode > 0:
		return fmt.Sprintf(", last answered %d", a.StatusCode)
	case a.Failure != nil && a.Failure.Code != "":
		return ", last failed with " + a.Failure.Code
	}
	return ""
}

// mend says what to do about a failed delivery.
func mend(a hookglass.Attempted) string {
	code := failureCode(a)
	switch {
	case code == "no_tunnel":
		return "Connect a machine with hookglass listen, then replay to the word tunnel."
	case strings.Contains(code, "refused"):
		return "Nothing listens there: start the handler or correct the port, then replay the request."
	case strings.Contains(code, "timeout"):
		return "The target took too long: answer first and work after it, or raise the target's timeout_seconds, then replay the request."
	case strings.Contains(code, "dns"):
		return "The name could not be resolved: correct the target's URL, then replay the request."
	case strings.Contains(code, "tls"):
		return "The target's certificate was not accepted: mend it, then replay the request."
	case code == "target_not_allowed":
		return "Requests may not go to that address. For a machine of your own use the tunnel."
	case a.StatusCode == 401 || a.StatusCode == 403:
		return "The handler refused it: if it checks signatures, its secret differs or the timestamp is old; replay with signature_mode resign to tell these apart."
	case a.StatusCode == 404 || a.StatusCode == 405:
		return "The handler has no such path or method: correct the target's URL, then replay the request."
	case a.StatusCode >= 500:
		return "The handler failed: read its log at that time, mend it, then replay the request."
	}
	return "Read the target's answer, mend the handler, then replay the request."
}

func (d *diagnosis) run(r hookglass.ActionRun) {
	name := cmp.Or(d.Actions[r.ActionID], r.ActionID)
	switch {
	case !r.Status.Final():
		d.add(hookglass.AreaAction, hookglass.SeverityInfo, "running", fmt.Sprintf("The action %q is %s.", name, r.Status), "Look again shortly.")
	case r.Status == hookglass.ActionRunCompleted:
		d.add(hookglass.AreaAction, hookglass.SeverityOK, "completed", fmt.Sprintf("The action %q completed.", name), "")
	default:
		for _, st := range r.Steps {
			if st.Status != hookglass.StepFailed || st.Failure == nil {
				continue
			}
			rest := "the steps behind it went on"
			if r.Status == hookglass.ActionRunStopped {
				rest = "the steps behind it were not run"
			}
			d.add(hookglass.AreaAction, hookglass.SeverityProblem, st.Failure.Code,
				fmt.Sprintf("Step %q of the action %q failed, and %s: %s", st.ReferenceKey, name, rest, st.Failure.Message),
				"Correct the step; preview shows what it would render, without sending. Then run the action again on this request.")
		}
	}
}

// conclude sums up.
func (d *diagnosis) conclude() {
	count := map[hookglass.Severity]int{}
	for _, f := range d.Findings {
		count[f.Severity]++
		if rank(f.Severity) > rank(d.Severity) {
			d.Severity = f.Severity
		}
	}
	byGravity := slices.Clone(d.Findings)
	slices.SortStableFunc(byGravity, func(a, b hookglass.Finding) int { return cmp.Compare(rank(b.Severity), rank(a.Severity)) })
	for _, f := range byGravity {
		if f.Next != "" && !slices.Contains(d.Next, f.Next) {
			d.Next = append(d.Next, f.Next)
		}
	}
	switch {
	case count[hookglass.SeverityProblem] == 1:
		d.Summary = "One problem: " + byGravity[0].Message
	case count[hookglass.SeverityProblem] > 1:
		d.Summary = fmt.Sprintf("%d problems; the first: %s", count[hookglass.SeverityProblem], byGravity[0].Message)
	case count[hookglass.SeverityWarning] > 0:
		d.Summary = "Nothing failed, but: " + byGravity[0].Message
	default:
		d.Summary = "Nothing is wrong with it."
	}
}
