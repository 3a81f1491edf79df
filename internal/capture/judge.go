package capture

import (
	"context"

	"hookglass"
	"hookglass/internal/inspect"
)

// Judge is [Service.SignatureOf] reduced to what a diagnosis needs.
func (s *Service) Judge(ctx context.Context, who hookglass.Principal, ref string, ev *hookglass.Event) (inspect.Signature, error) {
	sig, err := s.SignatureOf(ctx, who, ref, ev)
	return inspect.Signature{Status: sig.Now.Status, Code: sig.Finding.Code, Message: sig.Finding.Message}, err
}
