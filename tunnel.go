package hookglass

import "time"

// Prefixes of ids of the tunnel. Tickets, credentials and result tokens are secrets and stored as hashes.
const (
	PrefixTunnelTicket     = "tt"
	PrefixTunnelClient     = "tcl"
	PrefixTunnelCredential = "tcc"
	PrefixTunnelSession    = "tsess"
	PrefixTunnelCommand    = "tcmd"
	PrefixResultToken      = "trt"
)

// Capabilities that a client may announce (spec: decisions, section 10).
const (
	CapabilityEvidence = "delivery_response_evidence_v2"
	CapabilityReplay   = "tunnel_replay_v1"
)

// Bounds of a delivery report, in bytes except for EvidenceFields. EvidenceLimit is announced to clients (spec:
// decisions, section 10); the others exceed what real answers need. Of a body or message the beginning is kept.
const (
	EvidenceLimit       = 64 << 10
	EvidenceFields      = 100
	EvidenceFieldsLimit = 32 << 10
	MessageLimit        = 4 << 10 // of response_message and error
	EvidenceWordLimit   = 255     // of content_type and the like
	AddressLimit        = 8 << 10 // of target_url and resolved_url
)

// FailureCategories classify why a local machine gave no good answer (spec: decisions, section 10).
var FailureCategories = []string{"connection_refused", "timeout", "dns_error", "tls_error", "http_error", "unknown_error"}

// NoTunnel is the failure of a request to a local machine when none is connected (spec: decisions, section 14).
var NoTunnel = Failure{Code: "no_tunnel", Message: "No local machine is connected to this endpoint."}

// TunnelClient is the program at the other end of a tunnel. All fields but ID are as the client describes itself.
type TunnelClient struct {
	ID             string
	InstallationID string
	Name           string
	Hostname       string
	OS             string
	Arch           string
	Capabilities   []string
}

// TunnelTicket lets one client open one socket, once.
type TunnelTicket struct {
	EndpointNum int64     // the endpoint it was requested for
	Who         Principal // the socket's principal; for an anonymous one, its endpoint's key
	Client      TunnelClient
	ExpiresAt   time.Time
}

// TunnelSession is an open socket.
type TunnelSession struct {
	Num    int64 // the row; never shown
	ID     string
	Node   string // the process that holds it
	Client TunnelClient
}

// TunnelSubscription is a session's request for the events of one endpoint.
type TunnelSubscription struct {
	Num         int64 // the row; never shown
	SessionNum  int64
	EndpointNum int64
	EndpointID  EndpointID
	Begins      int64 // it gets the events with a greater Seq
	Received    int64 // the client has confirmed the events up to this Seq
	TargetURL   string
	Hostname    string
	Reports     bool // the client says that it reports what became of each event
	Replays     bool // the client says that it can replay
}

// TunnelConnection is a subscription and its session, as shown to people.
type TunnelConnection struct {
	Session   TunnelSession // its ID and Client
	Since     time.Time
	TargetURL string
	Hostname  string
	Reports   bool // it says what became of each event
	Replays   bool // it can make requests for replays
}

// DeliveryReport is what a client reports of one delivery to its local machine.
type DeliveryReport struct {
	Num             int64 // the row; never shown
	EndpointNum     int64
	EventSeq        int64
	EventID         EventID
	AttemptID       string // empty: none; reports with the same id are one
	ClientID        string // empty: none
	Version         int    // 1 or 2
	TargetURL       string
	ResolvedURL     string
	StatusCode      int // 0: no answer came
	FailureCategory string
	Message         string
	ResponseTime    time.Duration
	Evidence        *DeliveryEvidence // nil: none
	At              time.Time
}

// Delivered reports whether the local machine took the event.
func (r *DeliveryReport) Delivered() bool { return r.StatusCode >= 200 && r.StatusCode <= 299 }

// DeliveryEvidence is the part of the local machine's answer that the client kept.
type DeliveryEvidence struct {
	ContentType      string
	Headers          Headers
	Body             []byte // EvidenceLimit bytes at most
	DeclaredLength   int64  // -1: not declared
	ObservedBytes    int64
	RetainedBytes    int64
	Complete         bool
	TruncationReason string
}

// TunnelCommand is a request that a connected client is to make for a replay.
type TunnelCommand struct {
	Num         int64 // the row; never shown
	ID          string
	EndpointNum int64
	SessionNum  int64
	RunID       string // of a replay case; empty: none
	Provider    string // of the event, with EventType: by them a client chooses among its targets
	EventType   string
	Request     SentRequest
	Timeout     time.Duration
	ExpiresAt   time.Time
}

// TunnelResult is what a client reports of a command.
type TunnelResult struct {
	StatusCode      int // 0: no answer came
	Message         string
	ResponseTime    time.Duration
	Error           string
	FailureCategory string
	MaySent         bool // the local machine may have received the request although no answer came
	Evidence        *DeliveryEvidence
}

// TunnelOutcome is the outcome of a request that a connected client was to make.
type TunnelOutcome struct {
	Response *TargetResponse // nil: no complete answer came
	Failure  *Failure        // set when Response is nil
	Duration time.Duration
	Blocked  bool // no client can have received it
	MaySent  bool // with Failure: the local machine may have received it all the same
}
