package redact_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/cputime"
	"hookglass/internal/redact"
)

// What stands under a sensitive name is hidden in an answer that is JSON in part alone, and nothing else of it is.
func TestSensitiveNamesInTexts(t *testing.T) {
	r := redact.New(redact.Mask{Value: "s3cret-value", Shown: "{{secrets.KEY}}"})
	pad := strings.Repeat("x", 2<<20) // more than is read as JSON
	for text, want := range map[string]string{
		`{ "a" : 1 }`:         `{ "a" : 1 }`,
		`"token":"abc","a":1`: `"token":"[redacted]","a":1`,
		`{"token":{},"password":[],"secret":false,"a`:                                      `{"token":{},"password":[],"secret":false,"a`,
		`{"data":"{\"credentials\":[\n1],\"c\":1}","a`:                                     `{"data":"{\"credentials\":\"[redacted]\",\"c\":1}","a`,
		`{"data":"{\"token\":\"a\\\\\",\"c\":1}","a`:                                       `{"data":"{\"token\":\"[redacted]\",\"c\":1}","a`,
		"Auth: abc\nX-Hub-Signature-256: abc\n":                                            "Auth: [redacted]\nX-Hub-Signature-256: [redacted]\n",
		"Authorization:\nAuthorization\nInvalid x-token: mismatch":                         "Authorization:\nAuthorization\nInvalid x-token: mismatch",
		"See https://h/?token=abc. Or (http://h/#a=b&token=abc)":                           "See https://h/?token=[redacted]. Or (http://h/#a=b&token=[redacted])",
		`<a href="https://h/?a=b&amp;token=abc&amp;c=d">token=abc</a> ?token= `:            `<a href="https://h/?a=b&amp;token=[redacted]&amp;c=d">token=[redacted]</a> ?token= `,
		`{"a":"http://h/?a=b\u0026token=abc\u0026c=d","cut`:                                `{"a":"http://h/?a=b\u0026token=[redacted]\u0026c=d","cut`,
		"https://h/?auth=abc&a=b":                                                          "https://h/?auth=[redacted]&a=b",
		"token=&password&a=b":                                                              "token=&password&a=b",
		"payload=%7b%22a%22%3a1%7d":                                                        "payload=%7b%22a%22%3a1%7d",
		"Content-Disposition: form-data; name=\"token\"\r\n\r\na\r\nb\r\n--x--":            "Content-Disposition: form-data; name=\"token\"\r\n\r\n[redacted]\r\n--x--",
		"\n {\"token\":\"abc\",\"a\":1}":                                                   `{"token":"[redacted]","a":1}`,
		"\ufeff{\"token\":\"abc\"}":                                                        `{"token":"[redacted]"}`,
		`{"a":1,"a":2, "token" : "abc", "b":"c"}`:                                          `{"a":1,"a":2, "token" : "[redacted]", "b":"c"}`,
		"{\"a\":1}\n{\"token\":\"abc\"}\n{\"b\":2}":                                        "{\"a\":1}\n{\"token\":\"[redacted]\"}\n{\"b\":2}",
		`)]}',` + "\n" + `{"a":"b","token":"abc"}`:                                         `)]}',` + "\n" + `{"a":"b","token":"[redacted]"}`,
		`{"token":"cut off`:                                                                `{"token":"[redacted]"`,
		`{"token":"with \" and \\","a":1,`:                                                 `{"token":"[redacted]","a":1,`,
		`{"api_key":12345,"pin":[1,`:                                                       `{"api_key":"[redacted]","pin":[1,`,
		`{"credentials":{"a":"}","b":["c"]},"d":1,`:                                        `{"credentials":"[redacted]","d":1,`,
		`{"credentials":{"a":"b`:                                                           `{"credentials":"[redacted]"`,
		`{"token":null,"password":"","secret":true,"a`:                                     `{"token":null,"password":"","secret":true,"a`,
		`{"data":"{\"token\":\"a\\\"b\",\"c\":1}","a`:                                      `{"data":"{\"token\":\"[redacted]\",\"c\":1}","a`,
		`{"data":"{\"token\":\"abc\",\"c\":1}"}`:                                           `{"data":"{\"token\":\"[redacted]\",\"c\":1}"}`,
		`{"data":"{\"password\":12345,\"c\":1}","a`:                                        `{"data":"{\"password\":\"[redacted]\",\"c\":1}","a`,
		`{"token":"s3cret-value","a`:                                                       `{"token":"{{secrets.KEY}}","a`,
		`{"headers":{"Authorization":"Bearer abc"},"a`:                                     `{"headers":{"Authorization":"[redacted]"},"a`,
		"GET / HTTP/1.1\r\nAuthorization: Bearer abc\r\nX-Api-Key: abc\r\nHost: a\r\n\r\n": "GET / HTTP/1.1\r\nAuthorization: [redacted]\r\nX-Api-Key: [redacted]\r\nHost: a\r\n\r\n",
		"> Cookie: a=b\n< Set-Cookie: c=d":                                                 "> Cookie: [redacted]\n< Set-Cookie: [redacted]",
		"Authorization: Bearer s3cret-value":                                               "Authorization: Bearer {{secrets.KEY}}",
		"token: is missing\nInvalid signature: mismatch":                                   "token: is missing\nInvalid signature: mismatch",
		`Unexpected token "<" : at "token"`:                                                `Unexpected token "<" : at "token"`,
		`"token":`:                                                                         `"token":`,
		`{"a":"{\"b\":\"{\\\"token\\\":\\\"abc\\\"}\"}"}`:                                  `{"a":"{\"b\":\"{\\\"token\\\":\\\"[redacted]\\\"}\"}"}`,
		"payload=" + url.QueryEscape(`{"a":1}`) + "&b=%5B":                                 "payload=" + url.QueryEscape(`{"a":1}`) + "&b=%5B",
		"token=abc&a=b\n":                                                                  "token=[redacted]&a=b\n",
		"a=b c&password=d e\r\n":                                                           "a=b c&password=[redacted]\r\n",
		"the token=a & the b=c":                                                            "the token=[redacted] & the b=c",
		`"`:                                                                                `"`,
		`payload=%7B%22token%22%3A%22abc%22%2C%22a%22%3A%22b+c%22%7D&a=%22`:                `payload=%7B%22token%22%3A%22%5Bredacted%5D%22%2C%22a%22%3A%22b+c%22%7D&a=%22`,
		"--x\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\na\r\nb\r\n--x\r\ncontent-disposition: form-data; name=a\r\n\r\nc\r\n--x--\r\n": "--x\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\n[redacted]\r\n--x\r\ncontent-disposition: form-data; name=a\r\n\r\nc\r\n--x--\r\n",
		"--x\nContent-Disposition: form-data; name=\"token\"\n\nabc\n--x--":                                                                          "--x\nContent-Disposition: form-data; name=\"token\"\n\n[redacted]\n--x--",
		"<a><s:sessionId x=\"y\"> abc </s:sessionId><token/>b<token c=\"d\"/>e<token></token></a>":                                                   "<a><s:sessionId x=\"y\"> [redacted] </s:sessionId><token/>b<token c=\"d\"/>e<token></token></a>",
		"<Password><![CDATA[a<b]]></Password><Token>\n<a>b</a></Token>":                                                                              "<Password>[redacted]</Password><Token>\n<a>b</a></Token>",
		"</a><token><![CDATA[a<token>b": "</a><token>[redacted]",
		"--b\ncontent-disposition: form-data; filename=\"f\"; name=token\nContent-Type: text/plain\n\nabc\n--b--":                                                                                                     "--b\ncontent-disposition: form-data; filename=\"f\"; name=token\nContent-Type: text/plain\n\n[redacted]\n--b--",
		"--b\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\nabc cut off":                                                                                                                                    "--b\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\n[redacted]",
		"--b\nContent-Disposition: form-data; name=private_key\n\n-----BEGIN CERTIFICATE-----\na\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nb\n--b\nContent-Disposition: form-data; name=a\n\nc\n--b--": "--b\nContent-Disposition: form-data; name=private_key\n\n[redacted]\n--b\nContent-Disposition: form-data; name=a\n\nc\n--b--",
		"--b\r\nContent-Disposition: form-data; name=\"token\"\r\n":                                                                                                                                                   "--b\r\nContent-Disposition: form-data; name=\"token\"\r\n",
	} {
		if got := r.Body(text); got != want {
			t.Errorf("%q\nbecame %q\nwant   %q", text, got, want)
		}
	}
	if got := r.Body(`{"token":"abc","pad":"` + pad + `"}`); got != `{"token":"[redacted]","pad":"`+pad+`"}` {
		t.Errorf("of a long answer %q is shown", got[:100])
	}
}

// Texts that are like JSON, and lists of headers.
func TestSensitiveNamesInTextsThatAreLikeJSON(t *testing.T) {
	r := redact.New(redact.Mask{Value: "s3cret-value", Shown: "{{secrets.KEY}}"})
	for text, want := range map[string]string{
		// Attributes.
		`<user name="ada" password="abc" id='1'/>`:                   `<user name="ada" password="[redacted]" id='1'/>`,
		`<a wsse:Token = 'a "b" c'>x</a>`:                            `<a wsse:Token = '[redacted]'>x</a>`,
		`<a token="abc" secret='d e'/>`:                              `<a token="[redacted]" secret='[redacted]'/>`,
		`<input type="hidden" name="csrf_token" value="abc">`:        `<input type="hidden" name="csrf_token" value="[redacted]">`,
		`<add key="ApiKey" note="x" value='abc'/><add value="def"/>`: `<add key="ApiKey" note="x" value='[redacted]'/><add value="def"/>`,
		`<add key="ApiKey"/><add key="b" value="c"/>`:                `<add key="ApiKey"/><add key="b" value="c"/>`,
		`<a token=""/><b token="cut off`:                             `<a token=""/><b token="[redacted]"`,
		`{"xml":"<a token=\"abc\" b=\"c\"/>","a`:                     `{"xml":"<a token=\"[redacted]\" b=\"c\"/>","a`,
		`{"xml":"<a token=\"abc\" b=\"c\"/>"}`:                       `{"xml":"<a token=\"[redacted]\" b=\"c\"/>"}`,
		`<a token="s3cret-value"/>`:                                  `<a token="{{secrets.KEY}}"/>`,
		`Signature keyId="k",signature="abc",headers="date"`:         `Signature keyId="k",signature="[redacted]",headers="date"`,
		`a.token == "abc", b != 'c'`:                                 `a.token == "abc", b != 'c'`,
		// Literals of JavaScript, Python, Ruby and PHP.
		`{'token': 'abc', 'a': 'b'}`:                            `{'token': '[redacted]', 'a': 'b'}`,
		`{'token': 'a\'b', 'a': 1}`:                             `{'token': '[redacted]', 'a': 1}`,
		`{'password': "it's", 'a': None}`:                       `{'password': "[redacted]", 'a': None}`,
		`{'pin': 1, 'otp': 123456, 'token': None}`:              `{'pin': 1, 'otp': '[redacted]', 'token': None}`,
		`{'credentials': {'user': 'a}', 'x': ['b']}, 'c': 1}`:   `{'credentials': '[redacted]', 'c': 1}`,
		`{token: "abc", user: 'ada', apiKey : 'x'}`:             `{token: "[redacted]", user: 'ada', apiKey : '[redacted]'}`,
		`{"token": 'a b', "c": 1}`:                              `{"token": "[redacted]", "c": 1}`,
		`{:a=>1, :token=>"abc", "password"=>"d", 'pin' => 'e'}`: `{:a=>1, :token=>"[redacted]", "password"=>"[redacted]", 'pin' => 'e'}`,
		`array('api_key' => 'abc', 'b' => 'c')`:                 `array('api_key' => '[redacted]', 'b' => 'c')`,
		`{'credentials': {"user": "a}", 'x': 'b'}, 'c': 1}`:     `{'credentials': '[redacted]', 'c': 1}`,
		`{'credentials': ('a', 'b'), 'c': 1}`:                   `{'credentials': '[redacted]', 'c': 1}`,
		`{'token': "a, otp='b'", 'c': 1}`:                       `{'token': "[redacted]", 'c': 1}`,
		`api_key='a' x-Api-Key="b" token2 = 'c' d='e'`:          `api_key='[redacted]' x-Api-Key="[redacted]" token2 = '[redacted]' d='e'`,
		`'token':`:           `'token':`,
		`{'token': 'cut off`: `{'token': '[redacted]'`,
		`Invalid token: missing, it's not "there": 'token' is it`: `Invalid token: missing, it's not "there": 'token' is it`,
		// Pairs.
		`["Authorization","Bearer abc"]`:                                                          `["Authorization","[redacted]"]`,
		`[["Host","a"],["X-Api-Key","abc"],["Cookie","a=b"]]`:                                     `[["Host","a"],["X-Api-Key","[redacted]"],["Cookie","[redacted]"]]`,
		`{"rawHeaders":["Host","a","Authorization","Bearer abc","Accept","*/*"]}`:                 `{"rawHeaders":["Host","a","Authorization","[redacted]","Accept","*/*"]}`,
		`["Authorization",["Bearer abc"]]`:                                                        `["Authorization","[redacted]"]`,
		`["Authorization","Bearer s3cret-value"]`:                                                 `["Authorization","Bearer {{secrets.KEY}}"]`,
		`["password","email"]`:                                                                    `["password","email"]`,
		`["Accept","Authorization","a"]`:                                                          `["Accept","Authorization","a"]`,
		`{"name":"Authorization","value":"Bearer abc","a":1}`:                                     `{"name":"Authorization","value":"[redacted]","a":1}`,
		`{"Value":"abc","Key":"api_key"}`:                                                         `{"Value":"[redacted]","Key":"api_key"}`,
		`{"header":"Cookie","values":["a=b","c=d"]}`:                                              `{"header":"Cookie","values":"[redacted]"}`,
		`{"name":"Ada","value":"b"}`:                                                              `{"name":"Ada","value":"b"}`,
		`[["Host","a"],["X-Api-Key","abc"],["cut`:                                                 `[["Host","a"],["X-Api-Key","[redacted]"],["cut`,
		`[{"name":"Authorization","value":"Bearer abc"},{"name":"Host","value":"a"},{"cut`:        `[{"name":"Authorization","value":"[redacted]"},{"name":"Host","value":"a"},{"cut`,
		`"[[\"Authorization\",\"Bearer abc\"],[\"cut`:                                             `"[[\"Authorization\",\"[redacted]\"],[\"cut`,
		`[('Authorization', 'Bearer abc'), ('Host', 'a')]`:                                        `[('Authorization', '[redacted]'), ('Host', 'a')]`,
		`{name: 'Authorization', value: 'Bearer abc'}, {'name': 'Cookie', 'value': 'a=b', 'c':1}`: `{name: 'Authorization', value: '[redacted]'}, {'name': 'Cookie', 'value': '[redacted]', 'c':1}`,
		`[('Cookie', ''), ('token', 'email')]`:                                                    `[('Cookie', ''), ('token', 'email')]`,
		`{name: 'Cookie', path: '/'}, {'name': 'Cookie', 'path': '/'}`:                            `{name: 'Cookie', path: '/'}, {'name': 'Cookie', 'path': '/'}`,
		`'X-Token', 'abc'`:                                                                        `'X-Token', '[redacted]'`,
		`'Cookie', value`:                                                                         `'Cookie', value`,
		`{"required":["X-Token"],"properties":{"cut`:                                              `{"required":["X-Token"],"properties":{"cut`,
	} {
		if got := r.Body(text); got != want {
			t.Errorf("%q\nbecame %q\nwant   %q", text, got, want)
		}
	}
}

// Settings, logs, connection strings and URLs are texts in which a value may stand bare.
func TestSensitiveNamesBeforeBareValues(t *testing.T) {
	r := redact.New()
	marks, marked := strings.NewReplacer("‹", "", "›", ""), regexp.MustCompile("‹[^›]*›")
	for _, text := range []string{
		// On a line of its own.
		"a: b\nPASSWORD: ‹hunter›\nc: d",
		"a\n  db.password = ‹hunter› # why\r\n- token: ‹x›",
		"export API_TOKEN=‹a&b;c›\n",
		"Your temporary password: ‹Xy12!z›\nInvalid token: mismatch",
		"token: is missing\ntoken:\npassword: null\nsecret = ",
		"token: {{secrets.KEY}}\ntoken: [redacted]",
		"X-Functions-Key: ‹a b›\nX-Event-Key: repo:push",
		"token: |\n  a\nsecret: \"‹a b›\"\npassword: { a: 1 }",
		`{"log":"a\nPASSWORD: ‹hunter›\nb"}`,
		// Behind a sign.
		"login user=ada password=‹hunter› ip=1 (token=‹x›)",
		"tool --api-key=‹x› --name=y",
		"Server=db;User Id=sa;Password=‹x/y+z==›;A=b",
		"Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey=‹x=›",
		"token==x, token != x, token=>x, token = x + 1",
		"password={{secrets.KEY}} token=[redacted] secret=null",
		"https://h/a;token=‹x/b?c=d›",
		"https://h/?a=b;token=‹x›;c=d",
		"https://h/?sv=1&sp=r&sig=‹a%2Fb%3D›",
		"user%5Bpwd%5D=‹x›&user[pwd]=‹y›&user[name]=z",
		"a=%7B%22b%22%3A%22c%22%7D 100% %20 %zz?token=‹%41›",
	} {
		if got, want := r.Body(marks.Replace(text)), marked.ReplaceAllString(text, hookglass.Redacted); got != want {
			t.Errorf("%q\nbecame %q", text, got)
		} else if again := r.Body(got); again != got {
			t.Errorf("%q became %q at last", got, again)
		}
	}
	link := hookglass.Header{Name: "Link", Value: `<https://h/?token=x>; rel="next"`}
	if got := r.Headers(hookglass.Headers{link})[0].Value; got != `<https://h/?token=[redacted]>; rel="next"` {
		t.Errorf("of a header is shown %s", got)
	}
}

// Escapes hide no name, and are written again.
func TestSensitiveNamesInEscapedTexts(t *testing.T) {
	r, escaped := redact.New(), url.QueryEscape
	for _, c := range [][2]string{
		{"https://h/?n=" + escaped("https://h/?a=b&token=x") + "&c=d", "https://h/?n=" + escaped("https://h/?a=b&token=[redacted]") + "&c=d"},
		{"to ?n=" + escaped("?n="+escaped("/?token=x")) + " it", "to ?n=" + escaped("?n="+escaped("/?token=[redacted]")) + " it"},
		{escaped("postgres://ada:x@h/"), escaped("postgres://[redacted]@h/")},
		{"p=" + escaped(`a=1&password=x&b={"token":"x"}`), "p=" + escaped(`a=1&password=[redacted]&b={"token":"[redacted]"}`)},
		{"<a>&lt;Token&gt;x &amp;amp; y&lt;/Token&gt;</a> it's", "<a>&lt;Token&gt;[redacted]&lt;/Token&gt;</a> it's"},
		{"<a>{&quot;token&quot;: &quot;x&quot;}</a>&lt;c&gt;", "<a>{&#34;token&#34;: &#34;[redacted]&#34;}</a>&lt;c&gt;"},
	} {
		if got := r.Body(c[0]); got != c[1] {
			t.Errorf("%q\nbecame %q\nwant   %q", c[0], got, c[1])
		} else if again := r.Body(got); again != got {
			t.Errorf("%q became %q at last", got, again)
		}
	}
}

// What follows a value that ends with a name may make it another.
func TestAValueThatEndsWithAName(t *testing.T) {
	r := redact.New(redact.Mask{Value: "/hooks/sub", Shown: "/hooks/…", Whole: true, Ends: true})
	for text, want := range map[string]string{
		"/hooks/subscriptions /hooks/sub-2 /hooks/sub_":       "/hooks/subscriptions /hooks/sub-2 /hooks/sub_",
		"/hooks/sub /hooks/sub/a /hooks/sub?b /hooks/sub.":    "/hooks/… /hooks/…/a /hooks/…?b /hooks/….",
		`"\/hooks\/sub" "\/hooks\/subs" %2Fhooks%2Fsub`:       `"/hooks/…" "\/hooks\/subs" /hooks/…`,
		"L2hvb2tzL3N1Yg== https://h.example/hooks/sub/x#subs": "/hooks/… https://h.example/hooks/…/x#subs",
	} {
		if got := r.Secrets(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestCredentialsAreFoundWhereTheyStand(t *testing.T) {
	for text, want := range map[string]string{
		`<a token="abc" b="c" secret='d'/>`: "abc d", `{'password': 'a b', 'otp': 123456, 'auth': {'x': 1}}`: "a b 123456", `{"token":"ab\"c","a":1}` + "\n": `ab\"c`, "nothing": "",
	} {
		var found []string
		for from, upTo := range redact.CredentialsIn(text) {
			found = append(found, text[from:upTo])
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("in %s are %q, want %q", text, got, want)
		}
	}
}

func FuzzTextsWithNames(f *testing.F) {
	for _, text := range []string{`{"token":"a\"b"`, `"{\"token\":\"a\\\"b\"}"`, `{"token":[{"a":"]"`, "A: b\nAuthorization: x", "a=%7B%22token%22:1%7D", "<token>a</token>", "--x\nContent-Disposition: form-data; name=token\n\na\n--x--",
		`<a token="b" name='otp' value="c"/>`, `{'token': ['a'], token: "b"}, ("Cookie", 'c')`, `:token=>"\'"`, `["Cookie","a","name","Cookie","value":"b"`} {
		f.Add(text)
	}
	r := redact.New()
	f.Fuzz(func(t *testing.T, text string) {
		once := r.Body(text)
		if again := r.Body(once); again != once {
			t.Errorf("%q became %q, and that %q", text, once, again)
		}
	})
}

// A text costs no more than its length, whatever marks are in it.
func TestTextsOfMarks(t *testing.T) {
	const n = 300_000
	r := redact.New()
	marks := strings.Repeat(`\`, n)
	part := "content-disposition: form-data; name=token\n"
	for _, text := range []string{
		strings.Repeat(part, n/40), strings.Repeat(part+"\n", n/40), strings.Repeat(part, n/12) + strings.Repeat("\n", 3*n), strings.Repeat("--"+marks[:n/100]+"\n"+part+"\n", 100),
		strings.Repeat(`token="`, n/4), strings.Repeat(`token='\`, n/4), strings.Repeat(`"x-token",'`, n/4), strings.Repeat(`'x-token','`+marks[:5]+`',"`, n/8), strings.Repeat(`'token':[`, n/4),
		strings.Repeat(`name="token" `, n/4), strings.Repeat(` ='`, n), `'` + strings.Repeat(`:`, n) + strings.Repeat(` `, n) + strings.Repeat(`a=,`, n),
		strings.Repeat("eyJhbGciOi-", n/8), strings.Repeat("eyJhbGciOi.", n/8), strings.Repeat("Bearer ", n/8),
		strings.Repeat("-----BEGIN PRIVATE KEY-----", n/16), strings.Repeat("sk_live_-", n/8), strings.Repeat("token=", n/4),
		strings.Repeat("hf_-", n/4), strings.Repeat("secret_-", n/8),
		strings.Repeat("a=b%3D&", n/4), strings.Repeat("%253D%3D=?", n/8), strings.Repeat("token: x\n", n/8),
		strings.Repeat("&quot;token&quot;:", n/8), strings.Repeat("&amp;quot;'", n/8),
		`"token` + marks + `":[` + marks, `"token` + marks + `":[` + strings.Repeat(marks[:n/4]+`a"`, 4),
	} {
		cputime.AtMost(t, 5*time.Second, fmt.Sprintf("a text of %d bytes", len(text)), func() { r.Body(text) })
	}
}
