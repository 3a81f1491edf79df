package provider

// GitHub signs the body with HMAC-SHA256 in X-Hub-Signature-256, and with HMAC-SHA1 in X-Hub-Signature for old
// receivers. When the first is present only it counts, so that a request cannot be downgraded; form deliveries are
// signed as sent, not as the JSON inside (providers.md section 3, 2).
func githubSchemes() []*scheme {
	return []*scheme{
		{Headers: []string{"X-Hub-Signature-256"}, Hash: "sha256", Encoding: "hex", Prefix: "sha256="},
		{Headers: []string{"X-Hub-Signature"}, Hash: "sha1", Encoding: "hex", Prefix: "sha1="},
	}
}
