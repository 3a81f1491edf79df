package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/declare"
	"hookglass/internal/endpointsfile"
	"hookglass/internal/store"
)

// lookEvery is how often the endpoints file is checked for changes.
const lookEvery = 2 * time.Second

// maxUnread is after how many consecutive failures to read the file it is reported.
const maxUnread = 3

// maxSecretFile bounds a file that holds a secret.
const maxSecretFile = 64 << 10

// ReadEndpointsFile reads an endpoints file with the secrets that it names, from this process's environment or from
// files next to it.
func ReadEndpointsFile(path string) (*endpointsfile.File, error) {
	text, err := readBounded(path, endpointsfile.MaxBytes+1)
	if err != nil {
		return nil, fmt.Errorf("endpoints file: %w", err)
	}
	return ParseEndpointsFile(path, text, filepath.Dir(path))
}

// ParseEndpointsFile is [ReadEndpointsFile] for a text that was already read. File names are relative to dir.
func ParseEndpointsFile(name string, text []byte, dir string) (*endpointsfile.File, error) {
	return endpointsfile.Parse(name, text, machineSecrets{dir})
}

func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// machineSecrets reads secrets on this machine. File names are relative to the directory of the endpoints file.
type machineSecrets struct{ dir string }

// Env implements endpointsfile.Secrets.
func (machineSecrets) Env(name string) (string, error) {
	value := os.Getenv(name)
	if value == "" {
		return "", fmt.Errorf("names the variable %s, which is not set", name)
	}
	return value, nil
}

// File implements endpointsfile.Secrets.
func (m machineSecrets) File(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.dir, path)
	}
	text, err := readBounded(path, maxSecretFile+1)
	switch {
	case err != nil:
		return "", fmt.Errorf("names a file that cannot be read: %w", err)
	case len(text) > maxSecretFile:
		return "", fmt.Errorf("names a file of more than %d bytes", maxSecretFile)
	}
	value := strings.TrimRight(string(text), "\r\n")
	if value == "" {
		return "", errors.New("names a file that is empty")
	}
	return value, nil
}

// errNoAccount says that there is no account yet whose endpoints could be declared.
var errNoAccount = errors.New("there is no account yet; the endpoints file waits for one")

// declaration keeps a running server in line with its endpoints file.
type declaration struct {
	path    string
	db      *store.DB
	service *declare.Service
	ok      func(bool) // observes whether the server matches the current file
	hangup  <-chan os.Signal
	log     *slog.Logger
	seen    [sha256.Size]byte // of the content that was last tried
	pending bool              // try again
	unread  int               // consecutive failures to read it
}

// start applies the file for the first time. An invalid file is an error; if the database does not answer or there is
// no account yet, run waits for them.
func (d *declaration) start(ctx context.Context) error {
	err := d.apply(ctx)
	if errors.Is(err, errNoAccount) || hookglass.Is(err, hookglass.CodeUnavailable) {
		d.log.Warn("the endpoints file is not applied yet", "reason", err)
		d.pending = true
		return nil
	}
	return err
}

// run applies the file whenever its content changes, and on SIGHUP. An invalid file changes nothing.
func (d *declaration) run(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		asked := false
		select {
		case <-ctx.Done():
			return nil
		case <-d.hangup:
			asked = true
		case <-look.C:
		}
		if !asked && !d.pending && !d.changed() {
			continue
		}
		was := d.pending
		d.pending = false
		switch err := d.apply(ctx); {
		case errors.Is(err, errNoAccount), hookglass.Is(err, hookglass.CodeUnavailable):
			d.pending = true
			if !was {
				d.log.Warn("the endpoints file is not applied yet", "reason", err)
			}
		case err != nil && ctx.Err() == nil:
			d.log.Error("the endpoints file is refused; what was declared before stays", "error", err)
		}
	}
}

// changed reports whether the content differs from what was last tried. A file that is briefly unreadable, because it
// is being replaced, has not changed; one that is missing for longer is tried, so that the error is reported.
func (d *declaration) changed() bool {
	text, err := readBounded(d.path, endpointsfile.MaxBytes+1)
	if err != nil {
		d.unread++
		return d.unread == maxUnread
	}
	d.unread = 0
	return sha256.Sum256(text) != d.seen
}

func (d *declaration) apply(ctx context.Context) (err error) {
	defer func() { d.ok(err == nil) }()
	d.seen = [sha256.Size]byte{} // try the file once it is readable again, whatever its content
	if text, err := readBounded(d.path, endpointsfile.MaxBytes+1); err == nil {
		d.seen = sha256.Sum256(text)
	}
	changes, err := d.declare(ctx, false)
	if err != nil {
		return err
	}
	counts := make(map[string]int)
	for _, c := range changes {
		counts[c.Op]++
		if c.Op != hookglass.OpUnchanged {
			d.log.Info("declared", "op", c.Op, "kind", c.Kind, "endpoint", c.Endpoint, "name", c.Name)
		}
	}
	d.log.Info("the endpoints file is applied", "file", d.path, "created", counts[hookglass.OpCreate], "updated", counts[hookglass.OpUpdate],
		"unchanged", counts[hookglass.OpUnchanged], "deleted", counts[hookglass.OpDelete])
	return nil
}

// declare applies the file; a dry run rolls back, and finds the same errors.
func (d *declaration) declare(ctx context.Context, dryRun bool) ([]hookglass.DeclaredChange, error) {
	file, wrong := ReadEndpointsFile(d.path)
	if file == nil {
		return nil, wrong
	}
	who, err := d.owner(ctx, file)
	if err != nil {
		return nil, cmp.Or(wrong, err)
	}
	changes, err := d.service.Apply(ctx, who, file.Declaration, dryRun || wrong != nil) // of a file with faults, to find them all
	if coded, ok := errors.AsType[*hookglass.Error](err); ok && len(coded.Details) > 0 {
		return nil, errors.Join(wrong, file.Locate(coded.Details))
	}
	if wrong != nil {
		return nil, wrong
	}
	if err != nil {
		return nil, fmt.Errorf("endpoints file: %w", err)
	}
	return changes, nil
}

// owner finds the account for the file: the one it names, or the only one.
func (d *declaration) owner(ctx context.Context, file *endpointsfile.File) (who hookglass.Principal, err error) {
	all, err := store.Read(ctx, d.db, hookglass.System, (*store.View).Accounts)
	if err != nil {
		return who, err
	}
	if len(all) == 0 {
		return who, errNoAccount
	}
	var found []hookglass.Account
	for _, a := range all {
		if file.Account == "" || a.Name == file.Account || strconv.FormatInt(a.ID, 10) == file.Account {
			found = append(found, a)
		}
	}
	switch {
	case len(found) == 0:
		return who, file.Fault("account", "is no account of this installation")
	case len(found) > 1:
		return who, file.Fault("account", fmt.Sprintf("must say which of %d accounts: their ids are unique", len(found)))
	}
	return hookglass.Principal{Account: found[0].ID, Scopes: hookglass.System.Scopes}, nil
}
