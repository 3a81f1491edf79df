package api

import "hookglass"

// ShareLink is a link with which anybody may read one request, without its secrets.
type ShareLink struct {
	ID        int64  `json:"id" doc:"For revoking it; it opens nothing." example:"12"`
	RequestID string `json:"request_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	URL       string `json:"url,omitempty" doc:"What to give away, in the answer that created the link and never again." example:"https://hooks.example.com/shared/k3v6m8t7h1s9xq2b4c5n6wzk3v6m8t7h1s9xq2b4"`
	CreatedAt Time   `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	ExpiresAt Time   `json:"expires_at" example:"2026-11-27T10:15:30.123456Z"`
}

// CreateShareLink is the body of POST /endpoints/{endpoint_id}/requests/{id}/share_links.
type CreateShareLink struct {
	_         struct{}      `additionalProperties:"false"`
	ShareLink *NewShareLink `json:"share_link,omitempty"`
}

// NewShareLink describes a new link.
type NewShareLink struct {
	_         struct{}        `additionalProperties:"false"`
	ExpiresIn Optional[int64] `json:"expires_in,omitzero" minimum:"60" maximum:"2592000" doc:"Seconds, 1 minute to 30 days; default 7 days." example:"86400"`
}

// FromShare converts a link for lists.
func FromShare(s hookglass.Share) ShareLink {
	return ShareLink{ID: s.ID, RequestID: string(s.EventID), CreatedAt: Time{s.CreatedAt}, ExpiresAt: Time{s.ExpiresAt}}
}
