package main

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
)

// serialDigits is the width of the number that makes each captured event another one.
const serialDigits = 12

// header is the head of a GitHub push delivery, Host and Content-Length beside.
var header = [][2]string{
	{"User-Agent", "GitHub-Hookshot/4f5a3b1"},
	{"Accept", "*/*"},
	{"Content-Type", "application/json"},
	{"X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"},
	{"X-GitHub-Event", "push"},
	{"X-GitHub-Hook-ID", "292430182"},
	{"X-GitHub-Hook-Installation-Target-ID", "79929171"},
	{"X-GitHub-Hook-Installation-Target-Type", "repository"},
	{"X-Hub-Signature", "sha1=7d38cdd689735b008b3c702edd92eea23791c5f6"},
	{"X-Hub-Signature-256", "sha256=d57c68ca6f92289e6987922ff26938930f6e66a2d161ef06abdf1859230aa23c"},
	{"X-Forwarded-Proto", "https"},
	{"Accept-Encoding", "gzip"},
}

// pushBody is a push of 1.5 KB; %s is its serial number.
const pushBody = `{"ref":"refs/heads/main","before":"6113728f27ae82c7b1a177c8d03f9e96e0adf246","after":"0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c",` +
	`"serial":"%s","repository":{"id":186853002,"node_id":"MDEwOlJlcG9zaXRvcnkxODY4NTMwMDI=","name":"Hello-World","full_name":"Codertocat/Hello-World",` +
	`"private":false,"owner":{"name":"Codertocat","email":"21031067+Codertocat@users.noreply.github.com","login":"Codertocat","id":21031067,"type":"User","site_admin":false},` +
	`"html_url":"https://github.com/Codertocat/Hello-World","description":null,"fork":false,"created_at":1557933565,"updated_at":"2019-05-15T15:20:41Z","pushed_at":1557933657,` +
	`"default_branch":"main","stargazers":0,"master_branch":"main"},"pusher":{"name":"Codertocat","email":"21031067+Codertocat@users.noreply.github.com"},` +
	`"sender":{"login":"Codertocat","id":21031067,"node_id":"MDQ6VXNlcjIxMDMxMDY3","type":"User","site_admin":false},"created":false,"deleted":false,"forced":false,` +
	`"base_ref":null,"compare":"https://github.com/Codertocat/Hello-World/compare/6113728f27ae...0d1a26e67d8f","commits":[{"id":"0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c",` +
	`"tree_id":"f9d2a07e9488b91af2641b26b9407fe22a451433","distinct":true,"message":"Update README.md: say what the example is for, and how to run it","timestamp":"2019-05-15T15:20:40Z",` +
	`"author":{"name":"Codertocat","email":"21031067+Codertocat@users.noreply.github.com","username":"Codertocat"},"committer":{"name":"GitHub","email":"noreply@github.com","username":"web-flow"},"added":[],"removed":[],"modified":["README.md"]}]}`

// request is one HTTP/1.1 request as bytes, with the place of its serial number; -1 when it has none.
type request struct {
	bytes  []byte
	serial int
}

// push is a GitHub push to the address, an absolute http URL.
func push(address *url.URL) request {
	body := fmt.Sprintf(pushBody, strings.Repeat("0", serialDigits))
	r := post(address, []byte(body))
	r.serial = bytes.Index(r.bytes, []byte(`"serial":"`)) + len(`"serial":"`)
	return r
}

// post is a request with the header of a GitHub push and any body.
func post(address *url.URL, body []byte) request {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\n", address.RequestURI(), address.Host)
	for _, h := range header {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(body))
	b.Write(body)
	return request{b.Bytes(), -1}
}

// copy returns a copy for one connection, whose serial number can be set.
func (r request) copy() request { return request{bytes.Clone(r.bytes), r.serial} }

// number writes the serial number into the request.
func (r request) number(n int64) {
	if r.serial < 0 {
		return
	}
	for i := r.serial + serialDigits - 1; i >= r.serial; i-- {
		r.bytes[i] = byte('0' + n%10)
		n /= 10
	}
}
