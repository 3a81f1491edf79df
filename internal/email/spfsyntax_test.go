package email_test

import (
	"testing"

	"hookglass/internal/email"
)

// A fault in a record is one wherever it stands, also behind a term that matches (RFC 7208, section 4.6), and also in a
// record that another includes or leads to.
func TestAFaultAnywhereInARecordIsAPermError(t *testing.T) {
	for record, sound := range map[string]bool{
		"ip4:192.0.2.1 -all": true,
		"IP4:192.0.2.1/32 ip6:2001:db8::/32 ip6:::1 ~ALL ":   true,
		"ip4:192.0.2.1  a mx/24 a/24//64 a//0 mx:x.example":  true,
		"ip4:192.0.2.1 a:x.example./0 a:x.example//128 ptr":  true,
		"ip4:192.0.2.1 ?include:_spf.x.example ptr:x.co":     true,
		"ip4:192.0.2.1 exists:%{ir}.%{l1r+-}._spf.%{d2}":     true,
		"ip4:192.0.2.1 exists:%{i}.%%.%_%-.x.example -all":   true,
		"ip4:192.0.2.1 a:xn--bcher-kva.example a:x.xn--p1ai": true,
		"ip4:192.0.2.1 redirect=x.example exp=e.x.example":   true,
		"ip4:192.0.2.1 later.term-1=%{d}/x:y unknown= -all":  true,
		"ip4:192.0.2.1":                                       true,
		"ip4:192.0.2.1 nonsense":                              false,
		"ip4:192.0.2.1 all:x":                                 false,
		"ip4:192.0.2.1 -":                                     false,
		"ip4:192.0.2.1 --all":                                 false,
		"ip4:192.0.2.1 -all;":                                 false,
		"ip4:192.0.2.1\t-all":                                 false,
		"ip4:192.0.2.1 include":                               false,
		"ip4:192.0.2.1 include:":                              false,
		"ip4:192.0.2.1 exists/24":                             false,
		"ip4:192.0.2.1 a:":                                    false,
		"ip4:192.0.2.1 a:x":                                   false,
		"ip4:192.0.2.1 a:x.1":                                 false,
		"ip4:192.0.2.1 a:x.-y":                                false,
		"ip4:192.0.2.1 a:/24":                                 false,
		"ip4:192.0.2.1 a/33":                                  false,
		"ip4:192.0.2.1 a//129":                                false,
		"ip4:192.0.2.1 a/024":                                 false,
		"ip4:192.0.2.1 mx/x":                                  false,
		"ip4:192.0.2.1 ip4":                                   false,
		"ip4:192.0.2.1 ip4:1.2.3":                             false,
		"ip4:192.0.2.1 ip4:::1":                               false,
		"ip4:192.0.2.1 ip6:1.2.3.4":                           false,
		"ip4:192.0.2.1 ip6:::1%1":                             false,
		"ip4:192.0.2.1 ip4:1.2.3.4/":                          false,
		"ip4:192.0.2.1 ip4:1.2.3.4/33":                        false,
		"ip4:192.0.2.1 ip4:1.2.3.4/08":                        false,
		"ip4:192.0.2.1 ip6:::/129":                            false,
		"ip4:192.0.2.1 a:bücher.example":                      false,
		"ip4:192.0.2.1 exists:%{d0}.y.example":                false,
		"ip4:192.0.2.1 exp=%{r}.y.example":                    false,
		"ip4:192.0.2.1 exists:%{x}.y.example":                 false,
		"ip4:192.0.2.1 exists:%{d":                            false,
		"ip4:192.0.2.1 exists:%(d).y.example":                 false,
		"ip4:192.0.2.1 x=%":                                   false,
		"ip4:192.0.2.1 redirect=":                             false,
		"ip4:192.0.2.1 -redirect=x.example":                   false,
		"ip4:192.0.2.1 exp=a.x.example EXP=a.x.example":       false,
		"ip4:192.0.2.1 redirect=x.example redirect=x.example": false,
	} {
		dns := zone(t, `example.com TXT "v=spf1 `+record+`"`, `include.example TXT "v=spf1 include:example.com -all"`, `redirect.example TXT "V=SPF1 redirect=example.com"`)
		want, reason := email.Pass, "matched_ip"
		if !sound {
			want, reason = email.PermError, "invalid_record"
		}
		for _, domain := range []string{"example.com", "include.example", "redirect.example"} {
			r := email.Authenticate(t.Context(), dns, from("192.0.2.1", "ada@"+domain), []byte("\r\n"))
			if r.SPF.Result != want || r.SPF.Reason != reason {
				t.Errorf("%s, by %s: %s %s, want %s", record, domain, r.SPF.Result, r.SPF.Reason, want)
			}
		}
	}
}
