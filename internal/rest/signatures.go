package rest

import (
	"context"
	"net/http"
	"slices"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/capture"
	"hookglass/internal/draft"
	"hookglass/internal/endpoint"
)

type (
	// ForceConfig is part of what makes a signature config.
	ForceConfig struct {
		Force bool `query:"force" doc:"Replace the config that the provider has already." example:"false"`
	}

	newSignatureConfig struct {
		InEndpoint
		ForceConfig
	}

	// ConfigPath is the path of one signature config.
	ConfigPath struct {
		InEndpoint
		ConfigID int64 `path:"config_id" doc:"The signature config's id." example:"7"`
	}
)

func (s *service) signatures(t *table) {
	const tag, base = "Signatures", "/endpoints/{endpoint_id}/signature_configs"
	read, write := access{scope: hookglass.ScopeRead}, access{scope: hookglass.ScopeWrite}
	handle(t, operation{
		id: "list-signature-configs", method: http.MethodGet, path: base, tag: tag, summary: "List signature configs", access: read,
		text: "Oldest first. No answer holds a secret.",
	}, s.listSignatureConfigs)
	handleBody(t, operation{
		id: "create-signature-config", method: http.MethodPost, path: base, tag: tag, summary: "Create a signature config", access: write,
		text: "Webhook endpoints have at most one for each provider. On the free plan it must be the endpoint's provider.", status: http.StatusCreated,
		errors: []int{http.StatusConflict},
	}, s.createSignatureConfig)
	handle(t, operation{
		id: "get-signature-config", method: http.MethodGet, path: base + "/{config_id}", tag: tag, summary: "Read a signature config", access: read,
		text: "Its provider, whether it is enabled, and the options of a generic_hmac. The secret is never shown.",
	}, s.getSignatureConfig)
	handleBody(t, operation{
		id: "update-signature-config", method: http.MethodPatch, path: base + "/{config_id}", tag: tag, summary: "Change a signature config", access: write,
		text: "What the body does not name stays as it is.",
	}, s.updateSignatureConfig)
	handle(t, operation{
		id: "delete-signature-config", method: http.MethodDelete, path: base + "/{config_id}", tag: tag, summary: "Delete a signature config", access: write,
		text: "With its secret. Events keep the verdict that they have; those that come later are judged without it.",
	}, s.deleteSignatureConfig)
	handle(t, operation{
		id: "verify-signature-config", method: http.MethodPost, path: base + "/{config_id}/verify", tag: tag, summary: "Judge captured events again", access: write,
		text: "Checks the endpoint's newest events, 1,000 at most, with its configs of now; timestamps as of the reception of each.",
	}, s.rejudge)
	handle(t, operation{
		id: "get-request-signature", method: http.MethodGet, path: "/endpoints/{endpoint_id}/requests/{id}/signature", tag: tag, summary: "Explain a signature",
		access: access{scope: hookglass.ScopeRead, key: true}, text: "Judges it again and finds out why it fails.", errors: []int{http.StatusUnprocessableEntity},
	}, s.explainSignature)
	handleBody(t, operation{
		id: "send-test-request", method: http.MethodPost, path: "/endpoints/{endpoint_id}/test_requests", tag: "Requests", summary: "Send a test request", access: write,
		text:   "A sample event of a provider, with fresh ids and signed with the endpoint's own config where there is one, or a request spelled out. It is captured as if it had come from outside. 409 where the endpoint is disabled.",
		status: http.StatusCreated, errors: []int{http.StatusConflict, http.StatusTooManyRequests},
	}, s.sendTestRequest)
}

// listSignatureConfigs reads all configs and cuts the page: an endpoint has at most one for each provider.
func (s *service) listSignatureConfigs(ctx context.Context, in *inEndpointListed) (api.List[api.SignatureConfig], error) {
	return paged(ofConfigs, in, func(behind int64, _ int) ([]hookglass.SignatureConfig, error) {
		configs, err := s.Endpoints.SignatureConfigs(ctx, asker(ctx), in.EndpointID)
		return slices.DeleteFunc(configs, func(c hookglass.SignatureConfig) bool { return c.ID <= behind }), err
	}, func(c hookglass.SignatureConfig) int64 { return c.ID }, api.FromSignatureConfig)
}

// newConfig reads a signature config that is to be created.
func newConfig(b *api.NewSignatureConfig) (endpoint.SignatureDraft, error) {
	if b == nil {
		return endpoint.SignatureDraft{}, hookglass.Invalid("signature_config", "is required")
	}
	return draft.Signature(api.SignatureConfigChange{Provider: b.Provider, Secret: b.Secret, Enabled: b.Enabled, Options: b.Options})
}

func (s *service) createSignatureConfig(ctx context.Context, in *newSignatureConfig, body *api.CreateSignatureConfig) (out api.One[api.SignatureConfig], err error) {
	d, err := newConfig(body.SignatureConfig)
	if err != nil {
		return out, err
	}
	c, err := s.Endpoints.CreateSignatureConfig(ctx, asker(ctx), in.EndpointID, d, in.Force)
	out.Data = api.FromSignatureConfig(c)
	return out, err
}

func (s *service) getSignatureConfig(ctx context.Context, in *ConfigPath) (out api.One[api.SignatureConfig], err error) {
	configs, err := s.Endpoints.SignatureConfigs(ctx, asker(ctx), in.EndpointID)
	if err != nil {
		return out, err
	}
	i := slices.IndexFunc(configs, func(c hookglass.SignatureConfig) bool { return c.ID == in.ConfigID })
	if i < 0 {
		return out, hookglass.NotFound("signature config")
	}
	out.Data = api.FromSignatureConfig(configs[i])
	return out, nil
}

func (s *service) updateSignatureConfig(ctx context.Context, in *ConfigPath, body *api.UpdateSignatureConfig) (out api.One[api.SignatureConfig], err error) {
	if body.SignatureConfig == nil {
		return out, hookglass.Invalid("signature_config", "is required")
	}
	d, err := draft.Signature(*body.SignatureConfig)
	if err != nil {
		return out, err
	}
	c, err := s.Endpoints.UpdateSignatureConfig(ctx, asker(ctx), in.EndpointID, in.ConfigID, d)
	out.Data = api.FromSignatureConfig(c)
	return out, err
}

func (s *service) deleteSignatureConfig(ctx context.Context, in *ConfigPath) (out api.One[api.DeletedNumber], err error) {
	err = s.Endpoints.DeleteSignatureConfig(ctx, asker(ctx), in.EndpointID, in.ConfigID)
	out.Data = api.DeletedNumber{ID: in.ConfigID, Deleted: true}
	return out, err
}

func (s *service) rejudge(ctx context.Context, in *ConfigPath) (out api.One[api.Rejudged], err error) {
	r, err := s.Captures.Rejudge(ctx, asker(ctx), in.EndpointID, in.ConfigID)
	out.Data = api.Rejudged(r)
	return out, err
}

func (s *service) explainSignature(ctx context.Context, in *EventPath) (out api.One[api.Signature], err error) {
	sig, err := s.Captures.Signature(ctx, asker(ctx), in.EndpointID, in.ID)
	if err != nil {
		return out, err
	}
	out.Data = api.Signature{
		Provider: sig.Provider, Status: string(sig.Recorded.Status), Reason: orNull(sig.Recorded.Reason),
		Now: api.SignatureVerdict{
			Status: string(sig.Now.Status), Reason: orNull(sig.Now.Reason), Message: orNull(sig.Now.Message), ConfigID: orNull(sig.Now.ConfigID),
		},
		Finding: api.SignatureFinding{Code: sig.Finding.Code, Message: sig.Finding.Message, ConfigID: orNull(sig.Finding.ConfigID)},
	}
	return out, nil
}

func (s *service) sendTestRequest(ctx context.Context, in *InEndpoint, body *api.SendTestRequest) (out api.One[api.SentTestRequest], err error) {
	r, err := capture.ReadTestRequest(*body)
	if err != nil {
		return out, err
	}
	id, err := s.Captures.SendTest(ctx, asker(ctx), in.EndpointID, s.Addresses.PublicURL, r)
	out.Data.RequestID = string(id)
	return out, err
}
