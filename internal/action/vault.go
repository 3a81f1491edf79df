package action

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"hookglass"
	"hookglass/internal/redact"
	"hookglass/internal/store"
)

const (
	// maxVaults and maxVaultBytes bound the cache. When it is full, all of it is dropped.
	maxVaults     = 1_000
	maxVaultBytes = 64 << 20
)

// vault is a redactor of all secrets of a workspace: a target may answer one action with a secret that another action
// sent to it.
type vault struct {
	redactor *redact.Redactor
	versions []secretVersion // of the secrets it was made of
	heard    uint64          // the count of announcements when they were read
	until    time.Time
}

type secretVersion struct{ num, updatedAt int64 }

// vaults caches vaults by workspace, so that secrets are opened when one has changed and not for each event. The next
// look-up sees what this process changed. A change by another process is seen when it is announced, or within planLife
// if the announcement is lost.
type vaults struct {
	db      *store.DB
	sealer  Sealer
	log     *slog.Logger
	changed *store.Subscription

	loading sync.Mutex // held while reading: dozens of workers may want the same vault
	mu      sync.Mutex
	known   map[int64]*vault
	size    int // bytes of all vaults
}

func newVaults(db *store.DB, sealer Sealer, log *slog.Logger) *vaults {
	return &vaults{db: db, sealer: sealer, log: log, changed: db.Listen(store.TopicSecrets), known: make(map[int64]*vault)}
}

// find returns a redactor of the secrets of a workspace.
func (vs *vaults) find(ctx context.Context, workspaceID int64) (*redact.Redactor, error) {
	if workspaceID == 0 { // an endpoint without an owner
		return redact.New(), nil
	}
	if known := vs.current(workspaceID); known != nil {
		return known.redactor, nil
	}
	vs.loading.Lock()
	defer vs.loading.Unlock()
	if known := vs.current(workspaceID); known != nil {
		return known.redactor, nil
	}
	fresh := &vault{heard: vs.changed.Heard(), until: time.Now().Add(planLife)}
	secrets, err := store.Read(ctx, vs.db, hookglass.System, func(v *store.View) ([]hookglass.ActionSecret, error) {
		return v.WorkspaceActionSecrets(workspaceID)
	})
	if err != nil {
		return nil, err
	}
	for _, s := range secrets {
		fresh.versions = append(fresh.versions, secretVersion{s.Num, s.UpdatedAt.UnixMicro()})
	}
	vs.mu.Lock()
	before := vs.known[workspaceID]
	vs.mu.Unlock()
	if before != nil && slices.Equal(before.versions, fresh.versions) {
		fresh.redactor = before.redactor
	} else {
		fresh.redactor = vs.open(secrets)
	}
	vs.keep(workspaceID, fresh)
	return fresh.redactor, nil
}

// current is the vault of a workspace, or nil when the vault may be out of date.
func (vs *vaults) current(workspaceID int64) *vault {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if v := vs.known[workspaceID]; v != nil && v.heard == vs.changed.Heard() && time.Now().Before(v.until) {
		return v
	}
	return nil
}

func (vs *vaults) keep(workspaceID int64, v *vault) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if before := vs.known[workspaceID]; before != nil {
		vs.size -= before.redactor.Size()
	}
	if vs.size += v.redactor.Size(); len(vs.known) >= maxVaults || vs.size > maxVaultBytes {
		clear(vs.known)
		vs.size = v.redactor.Size()
	}
	vs.known[workspaceID] = v
}

// open makes a redactor of sealed secrets.
func (vs *vaults) open(secrets []hookglass.ActionSecret) *redact.Redactor {
	var masks []redact.Mask
	for _, s := range secrets {
		plain, err := vs.sealer.Open(s.Sealed, valueOf(s.ID))
		if err != nil {
			vs.log.Error("an action secret cannot be opened", "secret", s.ID, "error", err)
			continue
		}
		masks = append(masks, redact.Mask{Value: string(plain), Shown: placeholder(s.Name)})
	}
	return redact.NewForMany(masks...)
}
