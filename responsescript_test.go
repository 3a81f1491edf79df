package hookglass_test

import (
	"strings"
	"testing"
	"time"

	"hookglass"
)

func TestAScriptAnswersOneAttemptAfterAnother(t *testing.T) {
	for _, c := range []struct {
		script, spelled string
		answers         []hookglass.ScriptedAnswer // to the first attempts
	}{
		{"500,500,timeout,200", "500,500,timeout,200", []hookglass.ScriptedAnswer{
			{Status: 500, Times: 1}, {Status: 500, Times: 1}, {Delay: time.Minute, Times: 1}, {Status: 200, Times: 1}, {Status: 200, Times: 1},
		}},
		{"500*3, 200", "500*3,200", []hookglass.ScriptedAnswer{
			{Status: 500, Times: 3}, {Status: 500, Times: 3}, {Status: 500, Times: 3}, {Status: 200, Times: 1}, {Status: 200, Times: 1},
		}},
		{"503+2s@30s,RESET,timeout+5s,204+250ms", "503+2s@30s,reset,timeout+5s,204+250ms", []hookglass.ScriptedAnswer{
			{Status: 503, Delay: 2 * time.Second, RetryAfter: 30 * time.Second, Times: 1}, {Times: 1}, {Delay: 5 * time.Second, Times: 1}, {Status: 204, Delay: 250 * time.Millisecond, Times: 1},
		}},
		{"429@2m*1000", "429@120s*1000", []hookglass.ScriptedAnswer{{Status: 429, RetryAfter: 2 * time.Minute, Times: 1000}}},
		{"503@24h,timeout+120s,599+30s", "503@24h,timeout+120s,599+30s", nil},
		{strings.Repeat("500,", 99) + "200", strings.Repeat("500,", 99) + "200", nil},
	} {
		s, err := hookglass.ParseResponseScript(c.script)
		if err != nil {
			t.Errorf("%q: %v", c.script, err)
			continue
		}
		if s.String() != c.spelled {
			t.Errorf("%q is spelled %q, want %q", c.script, s, c.spelled)
		}
		for i, want := range c.answers {
			if got := s.At(int64(i + 1)); got != want {
				t.Errorf("%q answers attempt %d with %+v, want %+v", c.script, i+1, got, want)
			}
		}
	}
}

func TestWhatIsNoScriptIsRefusedWithItsEntry(t *testing.T) {
	for script, fault := range map[string]string{
		"":                            "entry 1 must be a status",
		"500,":                        "entry 2 must be a status",
		"500,600":                     "entry 2 must be a status from 200 to 599",
		"199":                         "must be a status from 200",
		"500+":                        "entry 1 has a time",
		"500+2":                       "entry 1 has a time",
		"500+-2s":                     "entry 1 has a time",
		"500+31s":                     "delayed by 30s at most",
		"reset+1s":                    "neither a delay",
		"timeout@1s":                  "no Retry-After",
		"timeout+121s":                "1s to 120s",
		"timeout+999ms":               "1s to 120s",
		"429@1500ms":                  "whole seconds",
		"429@25h":                     "1s to 24h",
		"500*0":                       "1 to 1000 times",
		"500*1001":                    "1 to 1000 times",
		"500*2*2":                     "1 to 1000 times",
		"500@1s+1s":                   "Retry-After",
		"teapot":                      "must be a status",
		strings.Repeat("200,", 101):   "100 entries",
		strings.Repeat("2", 1001):     "1000 characters",
		"500+9999999999999999999999s": "has a time",
	} {
		_, err := hookglass.ParseResponseScript(script)
		if err == nil || !hookglass.Is(err, hookglass.CodeValidationFailed) || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q: %v, want a fault with %q", script, err, fault)
		}
	}
}

func FuzzResponseScript(f *testing.F) {
	for _, s := range []string{"500*3,timeout,200", "503+2s@30s*2,reset", "429@1m,timeout+5s", ",", "*", "+@*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := hookglass.ParseResponseScript(text)
		if err != nil {
			return
		}
		again, err := hookglass.ParseResponseScript(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q is spelled %q, which reads as %q, %v", text, s, again, err)
		}
		for n := int64(1); n < 5; n++ {
			if a, b := s.At(n), again.At(n); a != b || a.Delay > hookglass.MaxScriptHold || a.Status != 0 && (a.Status < 200 || a.Status > 599) {
				t.Fatalf("%q answers attempt %d with %+v, and with %+v spelled again", text, n, a, b)
			}
		}
	})
}
