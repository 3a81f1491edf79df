package provider

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"hookglass"
)

// Bounds of Diagnose, which hashes the body once for each attempt.
const (
	clockSeconds = 300      // how far around the presented timestamp to search
	clockBytes   = 64 << 20 // of hashing at most
)

// Diagnose finds out why the signature of a request does not verify. It tries the usual mistakes one at a time: the
// secret misread, the secret of another config, the body changed in transit, another digest or encoding, the URL, the
// timestamp. The first change that makes the signature verify is the finding. Its code is stable, its message tells the
// user what to do; neither contains a secret, or a signature that was not in the request.
func Diagnose(r *Request, d Detection, configs []Config) Finding {
	v := Verify(r, d, configs)
	if v.Status == hookglass.SignatureVerified {
		message := "The signature is right."
		if v.SecretIndex > 0 { // the newest secret comes first
			message += " It was made with a previous secret of the config: the sender has not changed over yet."
		}
		return Finding{Code: "verified", Message: message, ConfigID: v.ConfigID}
	}
	in := &input{Request: r}
	judges := judgesFor(in, d, configs)
	if len(judges) == 0 {
		for i := range configs {
			j := newJudge(&configs[i])
			if j != nil && configs[i].Provider != d.Provider && kin(configs[i].Provider, d.Provider) && j.presented(in) {
				return Diagnose(r, Detection{Provider: configs[i].Provider}, configs)
			}
		}
		return unjudged(d)
	}
	switch v.Reason {
	case missingSignature.code():
		return missing(in, judges[0])
	case timestampOutOfTolerance.code():
		return late(in, judges)
	case bodyHashMismatch.code(), missingTimestamp.code(), missingID.code(), foreignKey.code(), otherTopic.code(), keyUnavailable.code():
		return Finding{Code: v.Reason, Message: v.Message}
	case unusableSecret.code():
		return Finding{Code: v.Reason, Message: v.Message + " " + keyAdvice(judges[0])}
	}
	for _, try := range []func(*input, []*judge, []Config) (Finding, bool){
		trySecrets, tryOtherSecrets, tryBodies, tryForms, tryURLs, tryTimes,
	} {
		if f, ok := try(in, judges, configs); ok {
			return f
		}
	}
	if v.Reason != signatureMismatch.code() {
		return Finding{Code: v.Reason, Message: v.Message}
	}
	return Finding{Code: "no_variant_matches", Message: "None of the usual mistakes explains this." + judges[0].unlike() +
		" Most likely the sender signs with another secret: copy it again from the settings of the webhook at " + judges[0].Name + ". If the two are the same, look for a proxy on the way that changes the body."}
}

// unjudged explains why nothing was checked.
func unjudged(d Detection) Finding {
	s := table().byID[d.Provider]
	switch {
	case s == nil:
		return Finding{Code: "no_config", Message: "No known provider was recognised and no generic_hmac signature config is enabled, so nothing was checked."}
	case !s.info().Verifiable:
		return Finding{Code: "not_verifiable", Message: "Deliveries of " + s.Name + " carry no signature that a configured secret could verify."}
	}
	return Finding{Code: "no_config", Message: "No enabled signature config of this endpoint is for " + s.Name + ", so nothing was checked."}
}

// missing explains which signature was expected, and which ones are there instead.
func missing(in *input, j *judge) Finding {
	f := Finding{Code: missingSignature.code(), Message: missingSignature.message(j.Name, j.where())}
	var others []string
	for _, h := range in.Headers {
		if slices.ContainsFunc(table().strip, func(p string) bool { return headerMatches(p, h.Name) }) {
			others = append(others, printable(h.Name, 64))
		}
	}
	if len(others) > 0 {
		f.Message += " It does carry " + strings.Join(others, ", ") + ": is the config for another provider?"
	} else {
		f.Message += " Is a secret set where the webhook is configured, and does a proxy remove the header?"
	}
	return f
}

// late explains by how much the timestamp of a correct signature is off.
func late(in *input, judges []*judge) Finding {
	f := Finding{Code: "clock_offset", Message: timestampOutOfTolerance.message("", "")}
	for _, j := range judges {
		for _, s := range j.schemes {
			stamp, ok := s.stampOf(in)
			if !ok {
				continue
			}
			off := in.ReceivedAt.Unix() - stamp/1000
			side := "before"
			if off < 0 {
				off, side = -off, "after"
			}
			f.Message = fmt.Sprintf("The signature is right, but its timestamp is %d s %s the time of reception and %d s are allowed. "+
				"The delivery was held up or sent again, or a clock is wrong.", off, side, j.tolerance(s))
			return f
		}
	}
	return f
}

// stampOf returns the presented time in milliseconds.
func (s *scheme) stampOf(in *input) (int64, bool) {
	for _, h := range in.Headers {
		if s.isHeader(h.Name) {
			c, _ := s.parse(in, h.Value)
			return readTime(c.time, s.TimeUnit)
		}
	}
	return 0, false
}

func keyAdvice(j *judge) string {
	for _, s := range j.schemes {
		switch s.Key {
		case keyHex:
			return "It has to be hex digits."
		case keyBase64, keyStandard:
			return "It has to be base64, after an optional whsec_."
		case keyPublic:
			return "It has to be the sender's public key, in hex, base64 or PEM."
		}
	}
	return "Is it empty?"
}

// unlike returns a sentence if the newest secret is in another form than the sender's secrets.
func (j *judge) unlike() string {
	form, secrets := j.SecretForm, j.config.Secrets
	if len(secrets) == 0 {
		return ""
	}
	if fits, err := regexp.MatchString(form[0], strings.TrimSpace(secrets[0])); err != nil || fits {
		return ""
	}
	return " The configured secret does not look like a signing secret of " + j.Name + ", which " + form[1] + "."
}

// attempt checks a changed request with every secret of the judges, ignoring the time.
func attempt(in *input, judges []*judge) (Finding, bool) {
	for _, j := range judges {
		config := *j.config
		config.Options.ToleranceSeconds = -1
		relaxed := *j
		relaxed.config = &config
		if why, _ := relaxed.verify(in); why == verified {
			return Finding{ConfigID: config.ID}, true
		}
	}
	return Finding{}, false
}

// withSecrets returns the judges with other secrets.
func withSecrets(judges []*judge, change func(secret string) string) []*judge {
	var changed []*judge
	for _, j := range judges {
		config := *j.config
		config.Secrets = make([]string, len(j.config.Secrets))
		for i, s := range j.config.Secrets {
			if c := change(s); c != s {
				config.Secrets[i] = c
			}
		}
		k := *j
		k.config = &config
		changed = append(changed, &k)
	}
	return changed
}

// withSchemes returns the judges with their schemes changed.
func withSchemes(judges []*judge, change func(s *scheme)) []*judge {
	var changed []*judge
	for _, j := range judges {
		k := *j
		k.schemes = nil
		for _, s := range j.schemes {
			c := *s
			change(&c)
			k.schemes = append(k.schemes, &c)
		}
		changed = append(changed, &k)
	}
	return changed
}

// trySecrets interprets the configured secrets differently.
func trySecrets(in *input, judges []*judge, _ []Config) (Finding, bool) {
	for _, way := range []struct {
		code, message string
		change        func(string) string
	}{
		{"secret_blanks", "The configured secret has blanks or a line end around it. Save it again without them.", strings.TrimSpace},
		{"secret_quotes", "The configured secret has quotation marks around it. Save it again without them.", func(s string) string { return strings.Trim(strings.TrimSpace(s), `"'`) }},
		{"secret_newline", "The sender signs with a secret that ends in a line end: it probably reads it from a file. Remove the line end there.", func(s string) string { return s + "\n" }},
		{"secret_prefix", "The sender signs with the secret without its whsec_.", func(s string) string { return strings.TrimPrefix(s, standardPrefix) }},
	} {
		if f, ok := attempt(in, withSecrets(judges, way.change)); ok {
			f.Code, f.Message = way.code, way.message
			return f, true
		}
	}
	for _, kind := range []struct{ key, message string }{
		{keyStandard, "The sender signs with the base64-decoded secret, as Standard Webhooks does. This provider's key is the secret as text."},
		{keyHex, "The sender signs with the bytes that the secret spells in hex, not with its text."},
		{keyUTF8, "The sender signs with the text of the secret, not with the bytes that it encodes."},
	} {
		if f, ok := attempt(in, withSchemes(judges, func(s *scheme) { s.Key = kind.key })); ok {
			f.Code, f.Message = "secret_encoding", kind.message
			return f, true
		}
	}
	return Finding{}, false
}

// tryOtherSecrets uses the secrets of the endpoint's other configs.
func tryOtherSecrets(in *input, judges []*judge, configs []Config) (Finding, bool) {
	for _, c := range configs {
		for _, j := range judges {
			if c.ID == j.config.ID && c.Provider == j.config.Provider {
				continue
			}
			config := *j.config
			config.Secrets = c.Secrets
			k := *j
			k.config = &config
			if f, ok := attempt(in, []*judge{&k}); ok {
				f.Code, f.ConfigID = "other_secret", c.ID
				f.Message = fmt.Sprintf("The signature was made with the secret of another signature config (%d, %s). Use that secret for %s, or correct the sender.", c.ID, c.Provider, j.Name)
				return f, true
			}
		}
	}
	return Finding{}, false
}

func tryBodies(in *input, judges []*judge, _ []Config) (Finding, bool) {
	for v := range bodyVariants(in) {
		changed := *in.Request
		changed.Body = v.body
		if f, ok := attempt(&input{Request: &changed}, judges); ok {
			f.Code, f.Message = v.code, v.message
			return f, true
		}
	}
	return Finding{}, false
}

// tryForms interprets the presented signature differently: another encoding, without its prefix, another digest.
func tryForms(in *input, judges []*judge, _ []Config) (Finding, bool) {
	for _, form := range []struct {
		code, message string
		change        func(*scheme)
	}{
		{"signature_encoding", "The digest is right but sent in the wrong encoding: hex where base64 is expected, or the reverse.", func(s *scheme) { s.Encoding = otherEncoding(s.Encoding) }},
		{"signature_prefix", "The digest is right but the prefix that has to stand before it is missing or another.", func(s *scheme) { s.Prefix, s.lenient = "", true }},
		{"signature_algorithm", "The signature was made with SHA-1, another digest than the one expected.", func(s *scheme) { s.Hash, s.Prefix, s.lenient = "sha1", "", true }},
		{"signature_algorithm", "The signature was made with SHA-256, another digest than the one expected.", func(s *scheme) { s.Hash, s.Prefix, s.lenient = "sha256", "", true }},
		{"signature_algorithm", "The signature was made with SHA-512, another digest than the one expected.", func(s *scheme) { s.Hash, s.Prefix, s.lenient = "sha512", "", true }},
		{"signature_content", "The signature was made over the body alone, without the timestamp, id or URL that has to be signed with it.", func(s *scheme) { s.payloads = [][]payloadPart{{{source: "body"}}} }},
	} {
		if f, ok := attempt(in, withSchemes(judges, form.change)); ok {
			f.Code, f.Message = form.code, form.message
			return f, true
		}
	}
	if f, ok := attempt(recoded(in, twilioHeader), judges); ok {
		f.Code, f.Message = "signature_encoding", "The digest is right but sent as hex where base64 is expected."
		return f, true
	}
	return Finding{}, false
}

func otherEncoding(encoding string) string {
	if encoding == "hex" {
		return "base64"
	}
	return "hex"
}

// recoded returns the request with a hex digest in a header as base64.
func recoded(in *input, name string) *input {
	changed := *in.Request
	if digest, err := hex.DecodeString(in.Headers.Get(name)); err == nil && len(digest) > 0 {
		changed.Headers = setHeader(in.Headers, name, base64.StdEncoding.EncodeToString(digest))
	}
	return &input{Request: &changed}
}

// tryURLs spells the URL in other ways, for senders that sign it.
func tryURLs(in *input, judges []*judge, _ []Config) (Finding, bool) {
	signsURL := func(j *judge) bool {
		return j.check != nil || slices.ContainsFunc(j.schemes, func(s *scheme) bool { return s.uses("url") })
	}
	if !slices.ContainsFunc(judges, signsURL) {
		return Finding{}, false
	}
	for _, u := range urlVariants(in) {
		changed := *in.Request
		changed.URL, changed.URLs = u.url, nil
		if f, ok := attempt(&input{Request: &changed}, judges); ok {
			f.Code, f.Message = "url", "The sender signed another spelling of the URL: "+u.message
			return f, true
		}
	}
	return Finding{}, false
}

type urlVariant struct{ url, message string }

func urlVariants(in *input) []urlVariant {
	var all []urlVariant
	for _, u := range append([]string{in.URL}, in.URLs...) {
		scheme, rest, ok := strings.Cut(u, "://")
		if !ok {
			continue
		}
		other := "http"
		if strings.EqualFold(scheme, "http") {
			other = "https"
		}
		end := strings.IndexAny(rest+"/", "/?")
		tail := rest[end:]
		path, query, hasQuery := strings.Cut(tail, "?")
		if hasQuery {
			query = "?" + query
		}
		add := func(url, message string) {
			if url != u {
				all = append(all, urlVariant{url, message})
			}
		}
		add(other+"://"+rest, "with "+other+". A proxy in front ends TLS: set the public URL, or trust the proxy's X-Forwarded-Proto.")
		for _, name := range []string{"X-Forwarded-Host", "X-Original-Host", "Host"} {
			if host := in.Headers.Get(name); host != "" {
				for _, s := range []string{scheme, other} {
					add(s+"://"+host+tail, "with the host of the header "+name+". Set the public URL to what the sender calls.")
				}
			}
		}
		if port := in.Headers.Get("X-Forwarded-Port"); port != "" {
			add(scheme+"://"+rest[:end]+":"+port+tail, "with the port of the header X-Forwarded-Port.")
		}
		add(scheme+"://"+rest[:end]+strings.TrimSuffix(path, "/")+query, "without the slash at the end of the path.")
		add(scheme+"://"+rest[:end]+path+"/"+query, "with a slash at the end of the path.")
		add(scheme+"://"+rest[:end]+path, "without the query string.")
		add(scheme+"://"+rest[:end]+unescapePath(path)+unescapeForm(query), "with its escapes decoded.")
		add(strings.ToLower(u), "in lower case.")
	}
	return all
}

func unescapePath(path string) string { return unescapeForm(strings.ReplaceAll(path, "+", "%2B")) }

// tryTimes looks for a timestamp that was changed after signing.
func tryTimes(in *input, judges []*judge, _ []Config) (Finding, bool) {
	most := int64(clockSeconds)
	if n := int64(len(in.Body)); n > 0 {
		most = min(most, clockBytes/(2*n))
	}
	for _, j := range judges {
		for _, s := range j.schemes {
			if s.TimeUnit != "s" || s.timePath != nil || !s.presented(in) {
				continue
			}
			if f, ok := j.tryTimes(in, s, most); ok {
				return f, true
			}
		}
	}
	return Finding{}, false
}

// tryTimes searches for a scheme's timestamp up to most seconds around the presented one, nearest first.
func (j *judge) tryTimes(in *input, s *scheme, most int64) (Finding, bool) {
	stamp, ok := s.stampOf(in)
	if !ok {
		return Finding{}, false
	}
	for n := int64(1); n <= most; n++ {
		for _, off := range []int64{n, -n} {
			changed := *in.Request
			changed.Headers = s.withTime(in.Headers, fmt.Sprint(stamp/1000+off))
			if f, ok := attempt(&input{Request: &changed}, []*judge{j}); ok {
				f.Code = "timestamp_changed"
				f.Message = fmt.Sprintf("The timestamp was changed after signing: the signature was made for one that is %+d s away.", off)
				return f, true
			}
		}
	}
	return Finding{}, false
}

// withTime returns the headers with another time in place of the presented one.
func (s *scheme) withTime(h hookglass.Headers, stamp string) hookglass.Headers {
	if s.TimeHeader != "" {
		return setHeader(h, s.TimeHeader, stamp)
	}
	h = slices.Clone(h)
	for i := range h {
		if !s.isHeader(h[i].Name) {
			continue
		}
		entries := strings.Split(h[i].Value, s.List)
		for k, entry := range entries {
			if strings.HasPrefix(strings.TrimSpace(entry), s.TimeField+"=") {
				entries[k] = s.TimeField + "=" + stamp
			}
		}
		h[i].Value = strings.Join(entries, s.List)
	}
	return h
}
