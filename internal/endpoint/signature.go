package endpoint

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/provider"
	"hookglass/internal/store"
)

// Sealer encrypts secrets. where names the row, so that ciphertext cannot be moved to another row.
type Sealer interface {
	Seal(plaintext []byte, where string) ([]byte, error)
	Open(sealed []byte, where string) ([]byte, error)
}

// Bounds of a signature config. maxSecrets allows for two rotations.
const (
	maxSecret  = 4096 // characters
	maxSecrets = 3
)

// SignatureDraft is what a caller sets on a signature config. A nil field is not set.
type SignatureDraft struct {
	Provider     *string // create only
	Secret       *string
	KeepPrevious bool // update: earlier secrets stay valid during the sender's rotation
	Enabled      *bool
	Options      *hookglass.GenericOptions
	NamesOptions bool // some option was given, even with its default value
}

// SignatureConfigs lists the configs of the endpoint. Their secrets stay sealed.
func (s *Service) SignatureConfigs(ctx context.Context, who hookglass.Principal, ref string) (configs []hookglass.SignatureConfig, err error) {
	err = s.db.View(ctx, who, func(v *store.View) error {
		if _, err := v.Endpoint(ref); err != nil {
			return err
		}
		configs, err = v.SignatureConfigs(ref)
		return err
	})
	return configs, err
}

// CreateSignatureConfig stores a config. It answers plan_required if the account's plan does not allow it (spec,
// "Signature configs"), signature_config_exists unless force replaces an existing one, and validation_failed.
func (s *Service) CreateSignatureConfig(ctx context.Context, who hookglass.Principal, ref string, d SignatureDraft, force bool) (c hookglass.SignatureConfig, err error) {
	if err := who.MayManage(); err != nil {
		return c, err
	}
	return s.createSignatureConfig(ctx, who, ref, d, force)
}

// CreateOwnSignatureConfig is CreateSignatureConfig for the holder of a temporary endpoint's key (spec: decisions,
// section 10).
func (s *Service) CreateOwnSignatureConfig(ctx context.Context, key hookglass.Principal, d SignatureDraft, force bool) (hookglass.SignatureConfig, error) {
	return s.createSignatureConfig(ctx, key, string(key.Endpoint), d, force)
}

func (s *Service) createSignatureConfig(ctx context.Context, who hookglass.Principal, ref string, d SignatureDraft, force bool) (c hookglass.SignatureConfig, err error) {
	c.Enabled = true
	var faults []hookglass.FieldError
	if d.Provider == nil {
		faults = append(faults, signatureFault("provider", "is required"))
	} else if c.Provider = *d.Provider; !configurable(c.Provider) {
		faults = append(faults, signatureFault("provider", "is no provider whose signatures can be checked"))
	}
	if d.Secret == nil {
		faults = append(faults, signatureFault("secret", "is required"))
	}
	if faults = append(faults, d.apply(&c)...); len(faults) > 0 {
		return c, hookglass.InvalidFields(faults)
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		e, err := tx.EndpointToChange(ref) // locked: a concurrent update could restore the old secret
		if err != nil {
			return err
		}
		if e.Kind != hookglass.KindWebhook {
			return hookglass.Invalid("signature_config", "applies to webhook endpoints only")
		}
		if e.AccountID != 0 {
			account, err := tx.Account(e.AccountID)
			if err != nil {
				return err
			}
			if err := account.Entitlements().MayConfigureSignature(c.Provider, e.Provider); err != nil {
				return err
			}
		}
		c.EndpointNum = e.Num
		if c.Sealed, err = s.sealSecrets(&c, []string{*d.Secret}); err != nil {
			return err
		}
		return tx.CreateSignatureConfig(&c, force)
	})
	return c, err
}

// UpdateSignatureConfig changes the fields that the draft sets.
func (s *Service) UpdateSignatureConfig(ctx context.Context, who hookglass.Principal, ref string, id int64, d SignatureDraft) (c hookglass.SignatureConfig, err error) {
	if err := who.MayManage(); err != nil {
		return c, err
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		if _, err := tx.EndpointToChange(ref); err != nil {
			return err
		}
		if c, err = tx.SignatureConfig(ref, id); err != nil {
			return err
		}
		before := c
		var faults []hookglass.FieldError
		if d.Provider != nil && *d.Provider != c.Provider {
			faults = append(faults, signatureFault("provider", "cannot change"))
		}
		faults = append(faults, d.apply(&c)...)
		if len(faults) > 0 {
			return hookglass.InvalidFields(faults)
		}
		if d.Secret != nil {
			err = s.replaceSecret(&c, d)
		} else if c.Options.SecretEncoding != before.Options.SecretEncoding {
			err = s.checkKept(&c)
		}
		if err != nil {
			return err
		}
		return tx.SaveSignatureConfig(&c)
	})
	return c, err
}

// replaceSecret seals the draft's secret and, if requested, keeps the earlier ones.
func (s *Service) replaceSecret(c *hookglass.SignatureConfig, d SignatureDraft) (err error) {
	secrets := []string{*d.Secret}
	if d.KeepPrevious {
		previous, err := s.openSecrets(c)
		if err != nil {
			return err
		}
		for _, p := range previous {
			if p != *d.Secret && len(secrets) < maxSecrets {
				secrets = append(secrets, p)
			}
		}
	}
	c.Sealed, err = s.sealSecrets(c, secrets)
	return err
}

// checkKept answers validation_failed if the existing secret cannot be decoded in its new encoding.
func (s *Service) checkKept(c *hookglass.SignatureConfig) error {
	kept, err := s.openSecrets(c)
	if err != nil || len(kept) == 0 || provider.UsableSecret(c.Options, kept[0]) {
		return err
	}
	return hookglass.InvalidFields([]hookglass.FieldError{
		signatureFault("options.secret_encoding", "does not fit the secret that there is, which is not "+c.Options.SecretEncoding),
	})
}

// DeleteSignatureConfig deletes a config.
func (s *Service) DeleteSignatureConfig(ctx context.Context, who hookglass.Principal, ref string, id int64) error {
	if err := who.MayManage(); err != nil {
		return err
	}
	return s.db.Update(ctx, who, func(tx *store.Tx) error {
		e, err := tx.Endpoint(ref)
		if err != nil {
			return err
		}
		return tx.DeleteSignatureConfig(e.Num, id)
	})
}

// Verifiers returns the enabled configs of an endpoint with their secrets opened. Use it only to check and to make
// signatures.
func (s *Service) Verifiers(v *store.View, ref string) ([]provider.Config, error) {
	configs, err := v.SignatureConfigs(ref)
	if err != nil {
		return nil, err
	}
	var verifiers []provider.Config
	for _, c := range configs {
		if !c.Enabled {
			continue
		}
		secrets, err := s.openSecrets(&c)
		if err != nil {
			return nil, err
		}
		verifiers = append(verifiers, provider.Config{ID: c.ID, Provider: c.Provider, Secrets: secrets, Options: c.Options})
	}
	return verifiers, nil
}

// Secrets returns the secrets of all configs of an endpoint, including disabled ones. Use it only to redact them.
func (s *Service) Secrets(v *store.View, ref string) ([]string, error) {
	configs, err := v.SignatureConfigs(ref)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, c := range configs {
		secrets, err := s.openSecrets(&c)
		if err != nil {
			return nil, err
		}
		all = append(all, secrets...)
	}
	return all, nil
}

// openSecrets returns the secrets of a config, newest first.
func (s *Service) openSecrets(c *hookglass.SignatureConfig) ([]string, error) {
	plain, err := s.sealer.Open(c.Sealed, secretsOf(c))
	if err != nil {
		return nil, fmt.Errorf("secrets of signature config %d: %w", c.ID, err)
	}
	var secrets []string
	if err := json.Unmarshal(plain, &secrets); err != nil {
		return nil, fmt.Errorf("secrets of signature config %d cannot be read", c.ID)
	}
	return secrets, nil
}

func (s *Service) sealSecrets(c *hookglass.SignatureConfig, secrets []string) ([]byte, error) {
	plain, err := json.Marshal(secrets)
	if err != nil {
		return nil, err
	}
	return s.sealer.Seal(plain, secretsOf(c))
}

// secretsOf names the row by its natural key, because the secret is sealed before the row has an id.
func secretsOf(c *hookglass.SignatureConfig) string {
	return fmt.Sprintf("signature_configs:sealed:%d:%s", c.EndpointNum, c.Provider)
}

func configurable(id string) bool {
	p, ok := provider.Known(id)
	return ok && p.Verifiable
}

func (d SignatureDraft) apply(c *hookglass.SignatureConfig) (faults []hookglass.FieldError) {
	if d.Secret != nil {
		switch {
		case *d.Secret == "":
			faults = append(faults, signatureFault("secret", "may not be empty"))
		case utf8.RuneCountInString(*d.Secret) > maxSecret:
			faults = append(faults, signatureFault("secret", fmt.Sprintf("may have %d characters at most", maxSecret)))
		}
	}
	if d.Enabled != nil {
		c.Enabled = *d.Enabled
	}
	if d.Options != nil {
		c.Options = *d.Options
		if c.Provider != provider.GenericHMAC && (d.NamesOptions || c.Options != (hookglass.GenericOptions{})) {
			faults = append(faults, signatureFault("options", "apply to generic_hmac only"))
		}
		var invalid *hookglass.Error
		if errors.As(provider.ValidateOptions("signature_config.options.", c.Options), &invalid) {
			faults = append(faults, invalid.Details...)
		}
	}
	// Secrets of other providers are all taken; a diagnosis says when one cannot be a key.
	if d.Secret != nil && len(faults) == 0 && c.Provider == provider.GenericHMAC && !provider.UsableSecret(c.Options, *d.Secret) {
		faults = append(faults, signatureFault("secret", "is not "+c.Options.SecretEncoding))
	}
	return faults
}

func signatureFault(field, message string) hookglass.FieldError {
	return hookglass.FieldError{Field: "signature_config." + field, Message: message}
}

// HoldsSecret reports whether secret is the newest secret of a config.
func (s *Service) HoldsSecret(c hookglass.SignatureConfig, secret string) (bool, error) {
	secrets, err := s.openSecrets(&c)
	if err != nil {
		return false, err
	}
	return len(secrets) > 0 && subtle.ConstantTimeCompare([]byte(secrets[0]), []byte(secret)) == 1, nil
}
