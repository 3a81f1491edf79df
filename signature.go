package hookglass

import (
	"strings"
	"time"
)

// SignatureConfig holds the secrets that check the deliveries of one provider to an endpoint. The secrets are sealed;
// they are opened only to check or to make a signature.
type SignatureConfig struct {
	ID          int64
	EndpointNum int64
	Provider    string
	Enabled     bool
	Options     GenericOptions // generic_hmac alone
	Sealed      []byte         // the sealed secrets, see internal/seal
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// GenericOptions are the settings of generic_hmac (spec: decisions, section 13).
type GenericOptions struct {
	Header           string // default X-Signature
	Algorithm        string // sha1, sha256 (default), sha512
	Encoding         string // hex (default), base64
	Prefix           string // what stands before the value; a leading "sha256=" and the like is tolerated
	PayloadTemplate  string // over {body} {timestamp} {id}; default {body}
	TimestampHeader  string
	TimestampUnit    string // s (default), ms
	IDHeader         string // the header of {id}; also the delivery id
	ToleranceSeconds int    // 0: no check
	SecretEncoding   string // utf8 (default), base64, hex
}

// DefaultTolerance is how many seconds a generic_hmac timestamp may be off where a config does not say.
const DefaultTolerance = 300

// SignsTime reports whether a timestamp is part of what is signed, or sent beside the signature.
func (o GenericOptions) SignsTime() bool {
	return o.TimestampHeader != "" || strings.Contains(o.PayloadTemplate, "{timestamp}")
}
