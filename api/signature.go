package api

import (
	"hookglass"
)

// SignatureConfig configures the verification of a provider's deliveries. No answer contains a secret.
type SignatureConfig struct {
	ID        int64           `json:"id" example:"7"`
	Provider  string          `json:"provider" doc:"The provider whose signatures it checks." example:"github"`
	Enabled   bool            `json:"enabled" example:"true"`
	Options   *GenericOptions `json:"options,omitempty" doc:"With generic_hmac alone."`
	CreatedAt Time            `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	UpdatedAt Time            `json:"updated_at" example:"2026-11-20T10:15:30.123456Z"`
}

// GenericOptions describe how a generic_hmac signature is made. Absent options have their defaults.
type GenericOptions struct {
	_                struct{} `additionalProperties:"false"`
	Header           string   `json:"header,omitempty" maxLength:"200" doc:"Default X-Signature." example:"X-Acme-Signature"`
	Algorithm        string   `json:"algorithm,omitempty" enum:"sha1,sha256,sha512" doc:"Default sha256." example:"sha256"`
	Encoding         string   `json:"encoding,omitempty" enum:"hex,base64" doc:"Default hex." example:"hex"`
	Prefix           string   `json:"prefix,omitempty" maxLength:"200" doc:"What stands before the value; a leading sha256= and the like is tolerated." example:"v1="`
	PayloadTemplate  string   `json:"payload_template,omitempty" maxLength:"500" doc:"What is signed, over {body}, {timestamp} and {id}; default {body}." example:"{timestamp}.{body}"`
	TimestampHeader  string   `json:"timestamp_header,omitempty" maxLength:"200" example:"X-Acme-Timestamp"`
	TimestampUnit    string   `json:"timestamp_unit,omitempty" enum:"s,ms" doc:"Default s." example:"s"`
	IDHeader         string   `json:"id_header,omitempty" maxLength:"200" doc:"The header of {id}." example:"X-Acme-Delivery"`
	ToleranceSeconds *int     `json:"tolerance_seconds,omitempty" minimum:"0" maximum:"86400" doc:"How old or new a timestamp may be; 0 does not check. Default 300 where a timestamp is signed." example:"300"`
	SecretEncoding   string   `json:"secret_encoding,omitempty" enum:"utf8,base64,hex" doc:"How the secret is written; default utf8." example:"utf8"`
}

// CreateSignatureConfig is the body of POST /endpoints/{endpoint_id}/signature_configs.
type CreateSignatureConfig struct {
	_               struct{}            `additionalProperties:"false"`
	SignatureConfig *NewSignatureConfig `json:"signature_config,omitempty" required:"true"`
}

// NewSignatureConfig describes a new config.
type NewSignatureConfig struct {
	_        struct{}                 `additionalProperties:"false"`
	Provider Optional[string]         `json:"provider,omitzero" required:"true" minLength:"1" doc:"github, stripe, shopify, slack, twilio, generic_hmac, or another provider whose signatures can be checked." example:"github"`
	Secret   Optional[string]         `json:"secret,omitzero" required:"true" minLength:"1" maxLength:"4096" doc:"As the provider shows it. It is sealed and never shown again." example:"It's a Secret to Everybody"`
	Enabled  Optional[bool]           `json:"enabled,omitzero" doc:"Default true." example:"true"`
	Options  Optional[GenericOptions] `json:"options,omitzero" doc:"With generic_hmac alone."`
}

// UpdateSignatureConfig is the body of PATCH /endpoints/{endpoint_id}/signature_configs/{id}.
type UpdateSignatureConfig struct {
	_               struct{}               `additionalProperties:"false"`
	SignatureConfig *SignatureConfigChange `json:"signature_config,omitempty" required:"true"`
}

// SignatureConfigChange lists the fields to change; absent ones stay.
type SignatureConfigChange struct {
	_            struct{}                 `additionalProperties:"false"`
	Provider     Optional[string]         `json:"provider,omitzero" doc:"Cannot change." example:"github"`
	Secret       Optional[string]         `json:"secret,omitzero" minLength:"1" maxLength:"4096" doc:"Replaces the secrets there are, unless keep_previous." example:"whsec_new"`
	KeepPrevious Optional[bool]           `json:"keep_previous,omitzero" doc:"The two secrets before stay valid, while the provider changes over; default false." example:"true"`
	Enabled      Optional[bool]           `json:"enabled,omitzero" example:"true"`
	Options      Optional[GenericOptions] `json:"options,omitzero" doc:"Replaces the whole object."`
}

// Signature explains an event's signature.
type Signature struct {
	Provider string           `json:"provider" doc:"The detected provider." example:"github"`
	Status   string           `json:"signature_status" enum:"verified,failed,unchecked" doc:"As it was judged at reception, or when it was judged again." example:"failed"`
	Reason   *string          `json:"signature_reason" doc:"A stable code when it failed." example:"signature_mismatch"`
	Now      SignatureVerdict `json:"now" doc:"The verdict with the signature configs of now, as of the time of reception."`
	Finding  SignatureFinding `json:"finding" doc:"What explains a failure."`
}

// SignatureVerdict is the outcome of a check.
type SignatureVerdict struct {
	Status   string  `json:"status" enum:"verified,failed,unchecked" example:"failed"`
	Reason   *string `json:"reason" doc:"A stable code when it failed." example:"signature_mismatch"`
	Message  *string `json:"message" doc:"The same for a person." example:"The signature does not match the body."`
	ConfigID *int64  `json:"signature_config_id" doc:"The config that matched." example:"7"`
}

// SignatureFinding is the first change that would make the signature valid.
type SignatureFinding struct {
	Code     string `json:"code" doc:"Stable." example:"trailing_newline"`
	Message  string `json:"message" doc:"What to do about it." example:"The signature is right for the body without its last line break: something on the way adds one."`
	ConfigID *int64 `json:"signature_config_id" doc:"The config whose secret matched." example:"7"`
}

// Rejudged counts the results of verifying again.
type Rejudged struct {
	Checked   int `json:"checked" doc:"The newest events, 1,000 at most." example:"40"`
	Changed   int `json:"changed" example:"38"`
	Verified  int `json:"verified" example:"38"`
	Failed    int `json:"failed" example:"1"`
	Unchecked int `json:"unchecked" example:"1"`
}

// FromSignatureConfig converts a config.
func FromSignatureConfig(c hookglass.SignatureConfig) SignatureConfig {
	out := SignatureConfig{ID: c.ID, Provider: c.Provider, Enabled: c.Enabled, CreatedAt: Time{c.CreatedAt}, UpdatedAt: Time{c.UpdatedAt}}
	if o := c.Options; o != (hookglass.GenericOptions{}) {
		out.Options = &GenericOptions{
			Header: o.Header, Algorithm: o.Algorithm, Encoding: o.Encoding, Prefix: o.Prefix, PayloadTemplate: o.PayloadTemplate,
			TimestampHeader: o.TimestampHeader, TimestampUnit: o.TimestampUnit, IDHeader: o.IDHeader,
			SecretEncoding: o.SecretEncoding,
		}
		if o.ToleranceSeconds != 0 || o.SignsTime() {
			out.Options.ToleranceSeconds = &o.ToleranceSeconds
		}
	}
	return out
}

// Domain converts the options to the domain type.
func (o GenericOptions) Domain() hookglass.GenericOptions {
	options := hookglass.GenericOptions{
		Header: o.Header, Algorithm: o.Algorithm, Encoding: o.Encoding, Prefix: o.Prefix, PayloadTemplate: o.PayloadTemplate,
		TimestampHeader: o.TimestampHeader, TimestampUnit: o.TimestampUnit, IDHeader: o.IDHeader, SecretEncoding: o.SecretEncoding,
	}
	switch {
	case o.ToleranceSeconds != nil:
		options.ToleranceSeconds = *o.ToleranceSeconds
	case options.SignsTime():
		options.ToleranceSeconds = hookglass.DefaultTolerance
	}
	return options
}

// SendTestRequest is the body of POST /endpoints/{endpoint_id}/test_requests: a provider's sample, or a complete
// request.
type SendTestRequest struct {
	_         struct{}          `additionalProperties:"false"`
	Provider  string            `json:"provider,omitempty" doc:"Whose sample to send: github, stripe, shopify, slack, twilio or generic_hmac." example:"github"`
	EventType string            `json:"event_type,omitempty" doc:"Which sample; default the provider's first." example:"push"`
	Set       JSONObject        `json:"set,omitempty" maxProperties:"100" doc:"With provider: values for the sample's JSON body, by their JSON Pointers, 100 at most. They take the place of what is there, or become members of an object that is there." example:"{\"/repository/name\":\"orders\"}"`
	Method    string            `json:"method,omitempty" enum:"GET,POST,PUT,PATCH,DELETE,HEAD,OPTIONS" doc:"Without provider; default POST."`
	Path      string            `json:"path,omitempty" pattern:"^([/?]|$)" maxLength:"65536" doc:"Without provider: what follows the endpoint's URL."`
	Headers   map[string]string `json:"headers,omitempty" maxProperties:"256" doc:"Without provider."`
	Body      string            `json:"body,omitempty" doc:"Without provider."`
}

// SentTestRequest is the event made from a test request.
type SentTestRequest struct {
	RequestID string `json:"request_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
}
