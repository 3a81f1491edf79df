package capture

import (
	"context"

	"hookglass"
	"hookglass/internal/inspect"
)

// Judge is [Service.Signature] as far as a diagnosis needs it.
func (s *Service) Judge(ctx context.Context, who hookglass.Principal, ref, eventID string) (inspect.Signature, error) {
	sig, err := s.Signature(ctx, who, ref, eventID)
	return inspect.Signature{Status: sig.Now.Status, Code: sig.Finding.Code, Message: sig.Finding.Message}, err
}
