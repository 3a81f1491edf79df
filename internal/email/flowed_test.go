package email_test

import (
	"slices"
	"testing"

	"hookglass/internal/email"
)

// A long link that Apple's programs broke with DelSp is whole again, and nothing else is joined.
func TestFlowedTextIsJoined(t *testing.T) {
	for _, c := range []struct{ kind, sent, want string }{
		{"format=flowed; delsp=yes", "See https://a.example/verify-my- \r\naddress?t=1 \r\n\r\nBye\r\n", "See https://a.example/verify-my-address?t=1\n\nBye\n"},
		{`delsp="Yes"; format=Flowed`, "one  \r\ntwo\r\n three\r\n From here\r\n", "one two\nthree\nFrom here\n"},
		{"format=flowed; delsp=yes", "> quo \r\n> ted\r\n>> deeper \r\n> up\r\n>\r\nmine \r\n-- \r\nsig", "> quoted\n>> deeper\n> up\n>\nmine\n-- \nsig"},
		{"format=flowed", "one \r\ntwo\r\n three\r\n", "one \ntwo\n three\n"},
		{"delsp=yes", "one \r\ntwo\r\n", "one \ntwo\n"},
		{"format=flowed; delsp=yes", "", ""},
		{"format=flowed; delsp=yes", "end ", "end"},
	} {
		m := email.Parse([]byte("Content-Type: text/plain; charset=us-ascii; " + c.kind + "\r\n\r\n" + c.sent))
		if m.Text != c.want {
			t.Errorf("%s %q: %q, want %q", c.kind, c.sent, m.Text, c.want)
		}
	}
	m := email.Parse([]byte("Content-Type: text/plain; format=flowed; delsp=yes\r\n\r\nhttps://a.example/verify-my- \r\naddress?t=1\r\nYour code: 4829 \r\n13\r\n"))
	if got := email.Extract(m); !slices.Equal(got.Links, []string{"https://a.example/verify-my-address?t=1"}) || !slices.Equal(got.Codes, []string{"482913"}) {
		t.Errorf("%q", got)
	}
}
