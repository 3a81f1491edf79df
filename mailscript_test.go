package hookglass_test

import (
	"strings"
	"testing"
	"time"

	"hookglass"
)

func TestAScriptOfMailIsReadAndSpelled(t *testing.T) {
	for _, c := range []struct {
		script, spelled string
		stage           hookglass.MailStage
		answers         []hookglass.ScriptedAnswer // to the first attempts
	}{
		{"451,451,250", "451,451,250", hookglass.StageData, []hookglass.ScriptedAnswer{{Status: 451, Times: 1}, {Status: 451, Times: 1}, {Status: 250, Times: 1}, {Status: 250, Times: 1}}},
		{" RCPT: 450*2, 250", "rcpt:450*2,250", hookglass.StageRecipient, []hookglass.ScriptedAnswer{{Status: 450, Times: 2}, {Status: 450, Times: 2}, {Status: 250, Times: 1}}},
		{"data:550 5.7.1 Spam: go away", "550 5.7.1 Spam: go away", hookglass.StageData, []hookglass.ScriptedAnswer{{Status: 550, Times: 1, Enhanced: "5.7.1", Text: "Spam: go away"}}},
		{"451+2s*3  4.7.1  Greylisted , 250 Thanks", "451+2s*3 4.7.1 Greylisted,250 Thanks", hookglass.StageData, []hookglass.ScriptedAnswer{
			{Status: 451, Delay: 2 * time.Second, Times: 3, Enhanced: "4.7.1", Text: "Greylisted"},
		}},
		{"RESET*2,Timeout+5s,timeout+60s,459,400,559,500 5.1.10", "reset*2,timeout+5s,timeout,459,400,559,500 5.1.10", hookglass.StageData, []hookglass.ScriptedAnswer{{Times: 2}, {Times: 2}, {Delay: 5 * time.Second, Times: 1}}},
		{"550 " + strings.Repeat("x", 400), "550 " + strings.Repeat("x", 400), hookglass.StageData, nil},
	} {
		s, err := hookglass.ParseMailScript(c.script)
		if err != nil {
			t.Errorf("%q: %v", c.script, err)
			continue
		}
		if s.String() != c.spelled || s.Stage != c.stage {
			t.Errorf("%q is spelled %q at %s, want %q at %s", c.script, s, s.Stage, c.spelled, c.stage)
		}
		for i, want := range c.answers {
			if got := s.At(int64(i + 1)); got != want {
				t.Errorf("%q answers attempt %d with %+v, want %+v", c.script, i+1, got, want)
			}
		}
		if again, err := hookglass.ParseMailScript(s.String()); err != nil || again.String() != s.String() {
			t.Errorf("%q is read again as %q, %v", s, again, err)
		}
	}
}

func TestWhatIsNoScriptOfMailIsRefusedWithItsEntry(t *testing.T) {
	for script, fault := range map[string]string{
		"":                                "entry 1 must be 250, 400 to 459",
		"rcpt:":                           "entry 1 must be 250",
		"mail:451":                        "entry 1 must be 250",
		"451,200":                         "entry 2 must be 250",
		"251":                             "must be 250",
		"354":                             "must be 250",
		"460":                             "must be 250",
		"560":                             "must be 250",
		"451@30s":                         "Retry-After",
		"451 5.7.1 x":                     "the enhanced code 5.7.1, which is not of the class of 451",
		"250 4.0.0 x":                     "class of 250",
		"reset bye":                       "has a text",
		"timeout+5s 4.4.2":                "has a text",
		"451 *2":                          "has a space before",
		"451 +2s":                         "has a space before",
		"451+31s":                         "delayed by 30s at most",
		"550 Grüße":                       "printable ASCII",
		"550 a\tb":                        "printable ASCII",
		"550 a\r\n250 b":                  "printable ASCII",
		"550 " + strings.Repeat("x", 401): "400 characters",
		strings.Repeat("451,", 300):       "1000 characters",
	} {
		if _, err := hookglass.ParseMailScript(script); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%.30q: %v, want %q", script, err, fault)
		}
	}
}

func TestWhatIsSaidWithACodeOfSMTP(t *testing.T) {
	for _, c := range []struct {
		script string
		want   string
	}{
		{"451", "4.3.0 An error occurred here; try again later"},
		{"550", "5.7.1 The message is refused"},
		{"rcpt:550", "5.1.1 There is no such mailbox here"},
		{"250", "2.0.0 Stored"},
		{"rcpt:250", "2.1.5 OK"},
		{"459", "4.0.0 Try again later"},
		{"559", "5.0.0 Refused"},
		{"451 4.7.1 Greylisted", "4.7.1 Greylisted"},
		{"552 Full", "5.2.2 Full"},
		{"552 5.3.4", "5.3.4 The mailbox is full"},
	} {
		s, err := hookglass.ParseMailScript(c.script)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.At(1).SMTPText(s.Stage); got != c.want {
			t.Errorf("%s says %q, want %q", c.script, got, c.want)
		}
	}
}

func TestAScriptIsOverWhenItsLastEntryAccepts(t *testing.T) {
	for script, over := range map[string][]bool{
		"rcpt:451,451,250": {false, false, true, true},
		"rcpt:451,250*2":   {false, false, true},
		"rcpt:451,250,550": {false, false, false, false},
		"rcpt:550":         {false, false},
		"rcpt:451,reset":   {false, false, false},
	} {
		s, err := hookglass.ParseMailScript(script)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range over {
			if got := s.Over(int64(i + 1)); got != want {
				t.Errorf("%s is over after attempt %d: %t", script, i+1, got)
			}
		}
	}
}

func TestAttemptsOfAMailBelongTogether(t *testing.T) {
	mail := func(change func(*hookglass.Event)) hookglass.DeliveryKey {
		e := &hookglass.Event{
			Type: hookglass.EventEmail, Path: "a@mail.test", From: "Ann <ann@example.org>", Subject: "Hello", EventRef: "<1@example.org>",
			Payload: &hookglass.Payload{Envelope: &hookglass.Envelope{From: "ann@example.org", To: []string{"a@mail.test"}}},
		}
		change(e)
		_, key := hookglass.DeliveryIdentity(e)
		return key
	}
	two := func(e *hookglass.Event) { e.Envelope.To = []string{"a@mail.test", "B@mail.test"} }
	bare := func(e *hookglass.Event) { e.EventRef = "" }
	same := mail(func(*hookglass.Event) {})
	for name, key := range map[string]hookglass.DeliveryKey{
		"another body and provider": mail(func(e *hookglass.Event) { e.Body, e.Provider, e.EventType = []byte("x"), "github", "push" }),
		"a header of webhooks":      mail(func(e *hookglass.Event) { e.Headers = hookglass.Headers{{Name: "Webhook-Id", Value: "1"}} }),
		"another case":              mail(func(e *hookglass.Event) { e.Envelope.To = []string{"A@Mail.test"} }),
		"another sender":            mail(func(e *hookglass.Event) { e.Envelope.From = "bounce+1@example.org" }),
	} {
		if key != same {
			t.Errorf("%s made another mail", name)
		}
	}
	others := map[hookglass.DeliveryKey]string{same: "the mail"}
	for name, key := range map[string]hookglass.DeliveryKey{
		"another Message-ID":    mail(func(e *hookglass.Event) { e.EventRef = "<2@example.org>" }),
		"another recipient":     mail(func(e *hookglass.Event) { e.Envelope.To = []string{"b@mail.test"} }),
		"two recipients":        mail(two),
		"no Message-ID":         mail(bare),
		"none, another subject": mail(func(e *hookglass.Event) { bare(e); e.Subject = "Other" }),
		"none, another sender":  mail(func(e *hookglass.Event) { bare(e); e.Envelope.From = "b@example.org" }),
	} {
		if before, there := others[key]; there {
			t.Errorf("%s and %s are one", name, before)
		}
		others[key] = name
	}
	if mail(two) != mail(func(e *hookglass.Event) { e.Envelope.To = []string{"b@mail.test", "a@mail.test"} }) {
		t.Error("the order of recipients made another mail")
	}
	if hookglass.RecipientIdentity("a@x", "B@y") != hookglass.RecipientIdentity("A@x", "b@Y") || hookglass.RecipientIdentity("a@x", "b@y") == hookglass.RecipientIdentity("b@y", "a@x") {
		t.Error("senders and recipients are told apart wrongly")
	}
}

func FuzzMailScript(f *testing.F) {
	for _, s := range []string{"rcpt:451*2,250", "451+2s*3 4.7.1 Greylisted,250", "timeout+5s,reset,550 x", "data: 450", " ,*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := hookglass.ParseMailScript(text)
		if err != nil {
			return
		}
		again, err := hookglass.ParseMailScript(s.String())
		if err != nil || again.String() != s.String() || again.Stage != s.Stage {
			t.Fatalf("%q is spelled %q, which reads as %q, %v", text, s, again, err)
		}
		for n := int64(1); n < 5; n++ {
			a := s.At(n)
			if said := a.SMTPText(s.Stage); a != again.At(n) || strings.ContainsAny(said, "\r\n") || len(said) > 450 {
				t.Fatalf("%q answers attempt %d with %+v, which says %q", text, n, a, said)
			}
		}
	})
}
