package job_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/job"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// telling says when a note was logged.
type telling struct {
	*account.Service
	told chan struct{}
}

func (t telling) Tell(ctx context.Context, note hookglass.NoteJob) {
	t.Service.Tell(ctx, note)
	t.told <- struct{}{}
}

func TestAServerLogsWhatWasChangedBesideIt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		made, err := account.Administer(db).Register(t.Context(), account.Registration{Email: "ada@example.com", Password: "correct horse battery"})
		if err != nil {
			t.Fatal(err)
		}
		secret, _, err := account.Administer(db).CreateToken(t.Context(), hookglass.System, account.TokenRequest{
			User: made.User.ID, Level: hookglass.LevelAccount, Scopes: []hookglass.Scope{hookglass.ScopeRead},
		})
		if err != nil {
			t.Fatal(err)
		}

		var log bytes.Buffer
		server := telling{account.New(db, slog.New(slog.NewTextHandler(&log, nil))), make(chan struct{})}
		w, err := job.New(db, idly(func(do *job.Capabilities) { do.Accounts = server }), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		<-server.told
		<-server.told
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, line := range []string{
			`msg="a user was created, with an account" by=admin user=1 email=ada@example.com account=1`,
			`msg="a token was created" by=admin token=1 user=1 account=1 scopes=read`,
		} {
			if !strings.Contains(log.String(), line) {
				t.Errorf("no %q in\n%s", line, &log)
			}
		}
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has the token:\n%s", &log)
		}
	})
}
