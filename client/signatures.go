package client

import (
	"context"
	"net/http"
	"strconv"

	"hookglass/api"
)

// SignatureConfigs lists the signature configs of an endpoint, the oldest first.
func (c *Client) SignatureConfigs(ctx context.Context, endpoint string) ([]api.SignatureConfig, error) {
	return all[api.SignatureConfig](ctx, c, signatureConfigs(endpoint))
}

// CreateSignatureConfig creates a config. If the provider already has one, the error is signature_config_exists.
func (c *Client) CreateSignatureConfig(ctx context.Context, endpoint string, s api.NewSignatureConfig) (api.SignatureConfig, error) {
	return data[api.SignatureConfig](ctx, c, http.MethodPost, signatureConfigs(endpoint), nil, api.CreateSignatureConfig{SignatureConfig: &s})
}

// UpdateSignatureConfig changes what is set in the change.
func (c *Client) UpdateSignatureConfig(ctx context.Context, endpoint string, id int64, change api.SignatureConfigChange) (api.SignatureConfig, error) {
	return data[api.SignatureConfig](ctx, c, http.MethodPatch, signatureConfigs(endpoint, strconv.FormatInt(id, 10)), nil, api.UpdateSignatureConfig{SignatureConfig: &change})
}

// DeleteSignatureConfig deletes a config.
func (c *Client) DeleteSignatureConfig(ctx context.Context, endpoint string, id int64) error {
	_, err := data[api.DeletedNumber](ctx, c, http.MethodDelete, signatureConfigs(endpoint, strconv.FormatInt(id, 10)), nil, nil)
	return err
}

// VerifySignatureConfig verifies the newest events of the endpoint again.
func (c *Client) VerifySignatureConfig(ctx context.Context, endpoint string, id int64) (api.Rejudged, error) {
	return data[api.Rejudged](ctx, c.unhurried(), http.MethodPost, signatureConfigs(endpoint, strconv.FormatInt(id, 10), "verify"), nil, nil)
}

func signatureConfigs(endpoint string, more ...string) string {
	return join(append([]string{"endpoints", endpoint, "signature_configs"}, more...)...)
}
