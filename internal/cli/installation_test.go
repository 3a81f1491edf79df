package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hookglass"
	"hookglass/internal/cli"
	"hookglass/internal/endpoint"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// installation is a storage with a user, a token, an endpoint and a sealed secret.
type installation struct {
	storage
	token    string
	endpoint hookglass.Endpoint
}

// install makes a fresh storage an installation. It is made once for all tests of a database, and copied: what the
// commands do that make one takes longer than most tests.
func install(t testing.TB, s storage) installation {
	t.Helper()
	if len(s.flags) == 2 {
		made := furnished.copy(t, s.dir)
		made.storage = s
		return made
	}
	s.flags[3] = furnishedPostgres(t)
	made := furnishedKeys.copy(t, s.dir)
	made.storage = s
	return made
}

var (
	furnished         = template[installation]{make: func(dir string) (installation, error) { return furnish(embedded(dir)) }}
	furnishedPostgres = storetest.Template(func(dsn string) error {
		furnishedKeys.make = func(dir string) (installation, error) { return furnish(remote(dir, dsn)) }
		return furnishedKeys.once()
	})
	furnishedKeys template[installation] // the data directory beside furnishedPostgres

	// peopled is a data directory with a user, and three tokens: of every scope, to read, and for the tunnel.
	peopled = template[[]string]{make: func(dir string) (tokens []string, err error) {
		s := embedded(dir)
		if _, err = command(s.args("admin", "user", "create", "--email", "ada@example.com")...); err != nil {
			return nil, err
		}
		for _, scopes := range [][]string{nil, {"--scopes", "read"}, {"--scopes", "tunnel"}} {
			made, err := command(append(s.args("admin", "token", "create", "--email", "ada@example.com"), scopes...)...)
			if err != nil {
				return nil, err
			}
			tokens = append(tokens, made["token"].(string))
		}
		return tokens, nil
	}}
)

// command runs a command that prints one JSON object.
func command(args ...string) (made map[string]any, err error) {
	var out, faults bytes.Buffer
	if code := cli.Main(context.Background(), append(args, "--json"), strings.NewReader(""), &out, &faults); code != 0 {
		return nil, fmt.Errorf("%s: exit code %d: %s", strings.Join(args, " "), code, &faults)
	}
	return made, json.Unmarshal(out.Bytes(), &made)
}

func furnish(s storage) (i installation, err error) {
	i.storage = s
	if _, err := command(s.args("admin", "user", "create", "--email", "ada@example.com")...); err != nil {
		return i, err
	}
	if _, err := command(s.args("admin", "keys", "rotate")...); err != nil {
		return i, err
	}
	made, err := command(s.args("admin", "token", "create", "--email", "ada@example.com")...)
	if err != nil {
		return i, err
	}
	i.token = made["token"].(string)
	db, err := store.Open(context.Background(), s.config())
	if err != nil {
		return i, err
	}
	keys, err := seal.Load(filepath.Join(s.dir, "keys.json"))
	if err != nil {
		return i, errors.Join(err, db.Close())
	}
	who := hookglass.Principal{Account: 1, User: 1, Scopes: hookglass.System.Scopes}
	endpoints := endpoint.New(db, keys)
	if i.endpoint, err = endpoints.Create(context.Background(), who, endpoint.Draft{Name: new("default")}); err == nil {
		draft := endpoint.SignatureDraft{Provider: new("stripe"), Secret: new("whsec_canary")}
		_, err = endpoints.CreateSignatureConfig(context.Background(), who, string(i.endpoint.ID), draft, false)
	}
	return i, errors.Join(err, db.Close())
}

// template is a data directory that is made once for all tests of the process, with what is known of it.
type template[T any] struct {
	make func(dir string) (T, error)

	mu    sync.Mutex
	done  bool
	err   error
	known T
	files map[string][]byte
}

func (d *template[T]) once() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.done {
		d.err = d.fill()
		d.done = true
	}
	return d.err
}

func (d *template[T]) fill() error {
	above, err := os.MkdirTemp("", "cli")
	if err != nil {
		return err
	}
	defer os.RemoveAll(above)
	dir := filepath.Join(above, "data")
	if d.known, err = d.make(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	d.files = make(map[string][]byte)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "-wal") {
			return fmt.Errorf("%s: the database of the template is not in one file", e.Name())
		}
		if d.files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// copy makes the directory, which must not be there, a copy of the template.
func (d *template[T]) copy(t testing.TB, dir string) T {
	t.Helper()
	err := d.once()
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	for name, content := range d.files {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return d.known
}
