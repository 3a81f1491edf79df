package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/httpd"
	"hookglass/internal/store"
	"hookglass/internal/tunnel"
)

type (
	// TunnelEndpoints are the endpoints that a call of the tunnel is about.
	TunnelEndpoints struct {
		EndpointIDs []string `query:"endpoint_ids[],explode" most:"1000" doc:"Ids or custom ids; absent: all that the caller has." example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	}

	gapList struct {
		TunnelEndpoints
		Limit  int    `query:"limit" minimum:"1" maximum:"100" doc:"How many at most. Without limit and cursor all are answered, up to 500." example:"25"`
		Cursor string `query:"cursor" doc:"The next_cursor of the answer before."`
	}

	undeliveredList struct {
		TunnelEndpoints
		Minutes int    `query:"minutes" minimum:"1" maximum:"1440" default:"120" doc:"How far back, without gap_id and since." example:"120"`
		GapID   string `query:"gap_id" doc:"Those of one gap, in pages." example:"tgap_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
		Since   string `query:"since" doc:"Those received since a time (RFC 3339), in pages." example:"2026-11-20T10:15:30Z"`
		Limit   int    `query:"limit" minimum:"1" maximum:"100" default:"25" doc:"How many at most, with gap_id or since." example:"25"`
		Cursor  string `query:"cursor" doc:"The next_cursor of the answer before."`
	}

	missedList struct {
		TunnelEndpoints
		Since string `query:"since" required:"true" shortest:"1" doc:"RFC 3339." example:"2026-11-20T10:15:30Z"`
	}

	missedByKey struct {
		TunnelKey string `query:"tunnel_key" required:"true" shortest:"1" doc:"The key of a temporary endpoint." example:"tk_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
		Since     string `query:"since" required:"true" shortest:"1" doc:"RFC 3339." example:"2026-11-20T10:15:30Z"`
	}

	gapPath struct {
		GapID string `path:"gap_id" doc:"The gap's id." example:"tgap_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	}
)

// Rates of requesting sockets (spec, "Limits"), and of trying invalid keys.
var (
	connectRate   = rate{30, time.Minute}
	anonymousRate = rate{10, time.Minute}
)

// mostGaps bounds a list without paging parameters; its next_cursor leads to the rest.
const mostGaps = 500

func (s *service) tunnel(t *table) {
	const tag = "Tunnel"
	needs := access{scope: hookglass.ScopeTunnel}
	orKey := access{scope: hookglass.ScopeTunnel, key: true}
	anyone := access{public: true}
	handleBody(t, operation{
		id: "tunnel-connect", method: http.MethodPost, path: "/tunnel/connect", tag: tag, summary: "Get a ticket for the socket", access: needs, limit: connectRate, loose: true,
		text:   "It opens one socket, once, within 30 seconds, and the socket may subscribe to every endpoint of the token. 30 calls in 60 seconds for each token, whatever became of them.",
		errors: []int{http.StatusNotFound},
	}, s.connectTunnel)
	handleBody(t, operation{
		id: "tunnel-connect-anonymous", method: http.MethodPost, path: "/tunnel/connect_anonymous", tag: tag, summary: "Get a ticket by a temporary endpoint's key", access: anyone, limit: anonymousRate, loose: true,
		text:   "The socket may subscribe to that endpoint alone. 10 calls in 60 seconds for each address.",
		errors: []int{http.StatusUnauthorized},
	}, s.connectAnonymous)
	handleBody(t, operation{
		id: "report-delivery", method: http.MethodPost, path: "/tunnel/delivery_reports", tag: tag, summary: "Report a delivery", access: needs, loose: true,
		text:   "An event counts as delivered when a report about it carries a 2xx status; nothing takes that back. The same delivery_attempt_id counts once.",
		errors: []int{http.StatusNotFound, http.StatusConflict},
	}, s.reportDelivery)
	handleBody(t, operation{
		id: "report-delivery-anonymous", method: http.MethodPost, path: "/tunnel/delivery_reports_anonymous", tag: tag, summary: "Report a delivery by key", access: anyone, loose: true,
		text: "As with a token; endpoint_id may be left out.", errors: []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests},
	}, s.reportAnonymous)
	handle(t, operation{
		id: "list-tunnel-gaps", method: http.MethodGet, path: "/tunnel/gaps", tag: tag, summary: "List gaps", access: orKey,
		text: "Outages that are not recovered, oldest first: counts and times, no content.", errors: []int{http.StatusNotFound},
	}, s.listGaps)
	handleWritten[undeliveredList, api.Undelivered](t, operation{
		id: "list-undelivered", method: http.MethodGet, path: "/tunnel/undelivered", tag: tag, summary: "List undelivered events", access: orKey,
		text:   "Those that no report calls delivered, oldest first. With gap_id or since they come in pages, with meta; without, those of the last minutes, 500 at most, and data alone.",
		errors: []int{http.StatusNotFound},
	}, s.listUndelivered)
	handleWritten[missedList, api.Undelivered](t, operation{
		id: "list-missed", method: http.MethodGet, path: "/tunnel/missed", tag: tag, summary: "List events missed since a time", access: needs,
		text: "Undelivered events, oldest first, 500 at most.", errors: []int{http.StatusNotFound},
	}, s.listMissed)
	handleWritten[missedByKey, api.Undelivered](t, operation{
		id: "list-missed-anonymous", method: http.MethodGet, path: "/tunnel/missed_anonymous", tag: tag, summary: "List events missed since a time by key", access: anyone,
		text: "Undelivered events of a temporary endpoint, oldest first, 500 at most.", errors: []int{http.StatusUnauthorized, http.StatusTooManyRequests},
	}, s.listMissedByKey)
	handleBody(t, operation{
		id: "recover-gap", method: http.MethodPost, path: "/tunnel/gaps/{gap_id}/recovery", tag: tag, summary: "Report a recovery", access: orKey, loose: true,
		text: "The gap becomes recovered when the stored reports show that all its events were delivered, partial when they do not, whatever the body claims. One that is open stays so.",
	}, s.recoverGap)
	handleBody(t, operation{
		id: "report-tunnel-replay", method: http.MethodPost, path: "/tunnel/replay_results", tag: tag, summary: "Report the result of a replay", access: anyone, loose: true,
		text: "The answer to a tunnel_replay_command. Its result_token is the right to, once.", errors: []int{http.StatusUnauthorized, http.StatusConflict},
	}, s.reportReplay)
	handleBody(t, operation{
		id: "create-signature-config-anonymous", method: http.MethodPost, path: "/tunnel/signature_config_anonymous", tag: tag, summary: "Create a signature config by key", access: anyone, loose: true,
		text: "For a temporary endpoint.", status: http.StatusCreated, errors: []int{http.StatusUnauthorized, http.StatusConflict, http.StatusTooManyRequests},
	}, s.createSignatureConfigByKey)
	handleBody(t, operation{
		id: "claim-endpoint", method: http.MethodPost, path: "/endpoints/claim", tag: "Endpoints", summary: "Claim a temporary endpoint", access: access{scope: hookglass.ScopeWrite},
		text: "It becomes the account's, with its events, and ends no more by itself. Its key is of no use from then on.", errors: []int{http.StatusNotFound, http.StatusTooManyRequests},
	}, s.claimEndpoint)
}

// byKey finds the principal of a temporary endpoint's key. It answers validation_failed without a key, unauthorized for
// an invalid one, and rate_limited to an address that tries many invalid ones.
func (s *service) byKey(ctx context.Context, key string) (who hookglass.Principal, err error) {
	if key == "" {
		return who, hookglass.Invalid("tunnel_key", "is required")
	}
	if hookglass.IsTunnelKey(key) {
		who, err = s.Accounts.Authenticate(ctx, key)
		if err == nil || !hookglass.Is(err, hookglass.CodeUnauthorized) {
			return who, err
		}
	}
	if err := s.DB.Allow(ctx, "tunnel-key "+httpd.From(ctx).Caller(), anonymousRate.calls, anonymousRate.per); err != nil {
		return who, err
	}
	return who, hookglass.Errorf(hookglass.CodeUnauthorized, "The tunnel_key is not that of a temporary endpoint.")
}

func clientOf(installation, name string, m *api.TunnelMetadata, capabilities []string) hookglass.TunnelClient {
	c := hookglass.TunnelClient{InstallationID: installation, Name: name, Capabilities: capabilities}
	if m != nil {
		c.Hostname, c.OS, c.Arch = m.Hostname, m.OS, m.Arch
	}
	return c
}

func (s *service) connectTunnel(ctx context.Context, _ *struct{}, body *api.ConnectTunnel) (out api.TunnelTicket, err error) {
	g, err := s.Tunnels.Connect(ctx, asker(ctx), body.EndpointID, clientOf(body.InstallationID, body.ClientName, body.ClientMetadata, body.Capabilities))
	if err != nil {
		return out, err
	}
	return s.ticket(g), nil
}

func (s *service) connectAnonymous(ctx context.Context, _ *struct{}, body *api.ConnectTunnelAnonymous) (out api.TunnelTicket, err error) {
	who, err := s.byKey(ctx, body.TunnelKey)
	if err != nil {
		return out, err
	}
	g, err := s.Tunnels.Connect(ctx, who, "", clientOf(body.InstallationID, body.ClientName, body.ClientMetadata, body.Capabilities))
	if err != nil {
		return out, err
	}
	out = s.ticket(g)
	out.EndpointID = string(g.Endpoint.ID)
	return out, nil
}

func (s *service) ticket(g tunnel.Grant) api.TunnelTicket {
	return api.TunnelTicket{
		Ticket: g.Ticket, ExpiresIn: int(tunnel.TicketLife.Seconds()), TunnelClientID: g.ClientID, TunnelClientCredential: g.Credential,
		URL: "ws" + strings.TrimPrefix(s.Addresses.PublicURL, "http") + "/cable?ticket=" + g.Ticket,
		TunnelProtocol: api.TunnelProtocol{
			DeliveryReportVersion: 2, EvidenceBodyLimit: hookglass.EvidenceLimit, Capabilities: []string{hookglass.CapabilityEvidence, hookglass.CapabilityReplay},
		},
	}
}

func (s *service) reportDelivery(ctx context.Context, _ *struct{}, body *api.DeliveryReport) (out api.ReportedDelivery, err error) {
	return s.report(ctx, asker(ctx), *body)
}

func (s *service) reportAnonymous(ctx context.Context, _ *struct{}, body *api.DeliveryReportByKey) (out api.ReportedDelivery, err error) {
	who, err := s.byKey(ctx, body.TunnelKey)
	if err != nil {
		return out, err
	}
	report := body.DeliveryReport
	report.EndpointID = body.EndpointID
	return s.report(ctx, who, report)
}

func (s *service) report(ctx context.Context, who hookglass.Principal, body api.DeliveryReport) (out api.ReportedDelivery, err error) {
	r, err := s.Tunnels.Report(ctx, who, body)
	if err != nil {
		return out, err
	}
	ref := body.EndpointID
	if ref == "" || !hookglass.IsEndpointID(ref) {
		err = s.DB.View(ctx, who, func(v *store.View) error {
			e, err := v.EndpointByNum(r.EndpointNum)
			ref = string(e.ID)
			return err
		})
	}
	return api.ReportedDelivery{Status: "ok", Data: api.ReportedDeliveryData{
		EndpointID: ref, WebhookRequestID: string(r.EventID), DeliveryAttemptID: orNull(r.AttemptID),
		StatusCode: r.StatusCode, Delivered: r.Delivered(), ReportedAt: api.Time{Time: r.At},
	}}, err
}

func (s *service) listGaps(ctx context.Context, in *gapList) (api.List[api.Gap], error) {
	limit := in.Limit
	if limit == 0 && in.Cursor == "" {
		limit = mostGaps
	}
	return paged(ofGaps, OptionalPaging{limit, in.Cursor}, func(behind int64, most int) ([]hookglass.Gap, error) {
		return s.Tunnels.Gaps(ctx, asker(ctx), in.EndpointIDs, behind, most)
	}, func(g hookglass.Gap) int64 { return g.Num }, api.FromGap)
}

func (s *service) listUndelivered(in *undeliveredList, w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	if in.GapID != "" && in.Since != "" {
		return hookglass.Invalid("since", "takes the place of gap_id; leave one of them out")
	}
	after, err := ofUndelivered.Place(in.Cursor)
	if err != nil {
		return err
	}
	var m tunnel.Missing
	switch {
	case in.GapID != "":
		m, err = s.Tunnels.InGap(ctx, asker(ctx), in.EndpointIDs, in.GapID, after, in.Limit)
	case in.Since != "":
		var since time.Time
		if since, err = moment("since", in.Since, s.DB.Now()); err != nil {
			return err
		}
		m, err = s.Tunnels.Since(ctx, asker(ctx), tunnel.Span{Endpoints: in.EndpointIDs, Since: since, After: after, Limit: in.Limit, Counted: true})
	default:
		since := s.DB.Now().Add(-time.Duration(in.Minutes) * time.Minute)
		return s.writeMissing(w, r, func(ctx context.Context, after int64, limit int) (tunnel.Missing, error) {
			return s.Tunnels.Within(ctx, asker(ctx), tunnel.Span{Endpoints: in.EndpointIDs, Since: since, After: after, Limit: limit})
		})
	}
	if err != nil {
		return err
	}
	meta := &api.UndeliveredMeta{StartedAt: api.Time{Time: m.Since}, TotalCount: m.Total, PendingCount: m.Missed, ReturnedCount: int64(len(m.Events))}
	if g := m.Gap; g != nil {
		meta.GapID, meta.StartedAt, meta.DetectedAt = &g.ID, api.Time{Time: g.StartedAt}, &api.Time{Time: g.DetectedAt}
		if !g.ReconnectedAt.IsZero() {
			meta.EndedAt = &api.Time{Time: g.ReconnectedAt}
		}
		meta.TotalCount, meta.PendingCount, meta.RetentionTruncated = g.Counts.Total, g.Counts.Pending, g.Counts.Expired > 0
	}
	if m.Next > 0 {
		meta.NextCursor = ofUndelivered.Cursor(m.Next)
	}
	out := api.Undelivered{Data: make([]api.TunnelRequest, len(m.Events)), Meta: meta}
	for i, e := range m.Events {
		out.Data[i] = s.Tunnels.Request(e)
	}
	return writeJSON(w, out)
}

func (s *service) listMissed(in *missedList, w http.ResponseWriter, r *http.Request) error {
	return s.missed(w, r, asker(r.Context()), in.EndpointIDs, in.Since)
}

func (s *service) listMissedByKey(in *missedByKey, w http.ResponseWriter, r *http.Request) error {
	who, err := s.byKey(r.Context(), in.TunnelKey)
	if err != nil {
		return err
	}
	return s.missed(w, r, who, nil, in.Since)
}

func (s *service) missed(w http.ResponseWriter, r *http.Request, who hookglass.Principal, refs []string, text string) error {
	since, err := moment("since", text, s.DB.Now())
	if err != nil {
		return err
	}
	return s.writeMissing(w, r, func(ctx context.Context, after int64, limit int) (tunnel.Missing, error) {
		return s.Tunnels.Since(ctx, who, tunnel.Span{Endpoints: refs, Since: since, After: after, Limit: limit})
	})
}

// maxMissed bounds an answer without pages (spec: decisions, section 14).
const maxMissed = 500

// writeMissing writes an answer without pages while it reads: its events may be larger than memory, and the caller has
// no cursor to fetch the rest with. An error after the beginning breaks the connection, so that the answer does not
// look complete.
func (s *service) writeMissing(w http.ResponseWriter, r *http.Request, page func(ctx context.Context, after int64, limit int) (tunnel.Missing, error)) error {
	out := bufio.NewWriterSize(w, exportBuffer)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	n := 0
	// write reserves memory for a page until the page is written.
	write := func(after int64) (next int64, began bool, err error) {
		ctx, done := context.WithCancel(r.Context())
		defer done()
		m, err := page(ctx, after, maxMissed-n)
		if err != nil {
			return 0, false, err
		}
		if after == 0 {
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodHead {
				return 0, true, nil
			}
			_, _ = out.WriteString(`{"data":[`) // the writer keeps an error, and Flush returns it
		}
		for _, e := range m.Events {
			if n > 0 {
				_ = out.WriteByte(',')
			}
			if err := enc.Encode(s.Tunnels.Request(e)); err != nil {
				return 0, true, err
			}
			n++
		}
		return m.Next, true, nil
	}
	next, began, err := write(0)
	if !began || r.Method == http.MethodHead {
		return err
	}
	for err == nil && next > 0 && n < maxMissed {
		next, _, err = write(next)
	}
	if err == nil {
		_, _ = out.WriteString("]}\n")
		err = out.Flush()
	}
	if err != nil {
		httpd.BrokeOff(r.Context(), err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (s *service) recoverGap(ctx context.Context, in *gapPath, body *api.RecoverGap) (out api.One[api.Gap], err error) {
	g, err := s.Tunnels.Recover(ctx, asker(ctx), in.GapID, tunnel.Recovery{
		Outcome: body.Outcome, Attempted: body.AttemptedCount, Succeeded: body.SucceededCount, Failed: body.FailedCount,
	})
	out.Data = api.FromGap(g)
	return out, err
}

func (s *service) reportReplay(ctx context.Context, _ *struct{}, body *api.TunnelReplayResult) (out api.AcceptedReplayResult, err error) {
	out.Status, out.Data.CommandID = "ok", body.CommandID
	return out, s.Tunnels.Finish(ctx, *body)
}

func (s *service) createSignatureConfigByKey(ctx context.Context, in *ForceConfig, body *api.TunnelSignatureConfig) (out api.One[api.SignatureConfig], err error) {
	who, err := s.byKey(ctx, body.TunnelKey)
	if err != nil {
		return out, err
	}
	d, err := newConfig(body.SignatureConfig)
	if err != nil {
		return out, err
	}
	c, err := s.Endpoints.CreateOwnSignatureConfig(ctx, who, d, in.Force)
	out.Data = api.FromSignatureConfig(c)
	return out, err
}

func (s *service) claimEndpoint(ctx context.Context, _ *struct{}, body *api.ClaimEndpoint) (out api.One[api.Endpoint], err error) {
	var faults []hookglass.FieldError
	if body.TunnelKey == "" {
		faults = append(faults, hookglass.FieldError{Field: "tunnel_key", Message: "is required"})
	}
	name := given(&faults, "name", body.Name, false)
	workspace := given(&faults, "workspace_id", body.WorkspaceID, true)
	if len(faults) > 0 {
		return out, hookglass.InvalidFields(faults)
	}
	temporary, err := s.byKey(ctx, body.TunnelKey)
	if hookglass.Is(err, hookglass.CodeUnauthorized) {
		return out, hookglass.NotFound("temporary endpoint with this key") // the caller itself is authorized
	}
	if err != nil {
		return out, err
	}
	e, err := s.Endpoints.Claim(ctx, asker(ctx), temporary, name, workspace)
	out.Data = s.endpoint(e)
	return out, err
}
