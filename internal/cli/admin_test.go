package cli_test

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/cli"
	"hookglass/internal/store"
)

// service opens the storage beside the commands, as a running server has it.
func service(t testing.TB, s storage) *account.Service {
	t.Helper()
	db, err := store.Open(t.Context(), s.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return account.New(db, slog.New(slog.DiscardHandler))
}

func member(t testing.TB, v any, path ...string) any {
	t.Helper()
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("no %v in %v", path, v)
		}
		v = m[name]
	}
	return v
}

func TestAPasswordIsALine(t *testing.T) {
	each(t, func(t *testing.T, s storage) {
		if r := run(t, "", s.args("admin", "user", "create", "--email", "ada@example.com")...); r.code != 0 || !strings.Contains(r.out, `"admin user password --password-stdin" sets one`) {
			t.Errorf("%+v", r)
		} else if made := strings.Contains(r.out, "There was no database yet") && strings.Contains(r.out, s.dir); made != (len(s.flags) == 2) {
			t.Errorf("it says nothing of the database that it made, or of one that it did not: %+v", r)
		}
		if r := run(t, "", s.args("admin", "user", "create", "--email", "grace@example.com")...); r.code != 0 || strings.Contains(r.out, "no database") {
			t.Errorf("of a database that is there: %+v", r)
		}
		terminal, types := io.Pipe() // stays open
		go func() { _, _ = io.WriteString(types, "correct horse\r\n") }()
		var out, faults bytes.Buffer
		if code := cli.Main(t.Context(), s.args("admin", "user", "create", "--email", "bob@example.com", "--password-stdin"), terminal, &out, &faults); code != 0 || strings.Contains(out.String(), "password") {
			t.Errorf("%d %s %s", code, &out, &faults)
		}
		if _, err := service(t, s).SignIn(t.Context(), "bob@example.com", "correct horse", "192.0.2.1"); err != nil {
			t.Error(err)
		}
	})
}

func TestAdminBeginsOnNothingAndPrintsTheDescribedObjects(t *testing.T) {
	each(t, func(t *testing.T, s storage) {
		made := object(t, "correct horse\n", s.args("admin", "user", "create", "--email", "Ada@Example.com", "--password-stdin", "--account", "Engines")...)
		for path, want := range map[string]any{
			"user.id": 1., "user.email": "ada@example.com", "account.id": 1., "account.name": "Engines", "account.plan": "business",
			"account.subscription": "active", "account.payment_method": true, "workspace.id": 1., "workspace.name": "Default",
		} {
			if got := member(t, made, strings.Split(path, ".")...); got != want {
				t.Errorf("user create: %s is %v, want %v", path, got, want)
			}
		}
		if info, err := os.Stat(s.dir); len(s.flags) == 2 && (err != nil || info.Mode().Perm() != 0o700) { // the database is in it
			t.Errorf("data directory: %v, %v", info, err)
		}
		live := service(t, s)
		if _, err := live.SignIn(t.Context(), "ada@example.com", "correct horse", "192.0.2.1"); err != nil {
			t.Errorf("signing in with the password: %v", err)
		}

		// Flags of the storage may stand anywhere behind admin.
		workspace := object(t, "", append(append([]string{"admin"}, s.flags...), "workspace", "create", "--account", "1", "--name", "Other")...)
		if member(t, workspace, "workspace", "id") != 2. || member(t, workspace, "workspace", "name") != "Other" {
			t.Errorf("workspace create: %v", workspace)
		}
		if all := member(t, object(t, "", s.args("admin", "workspace", "list", "--account", "1")...), "workspaces").([]any); len(all) != 2 {
			t.Errorf("workspace list: %v", all)
		}

		colleague := object(t, "", s.args("admin", "user", "create", "--email", "grace@example.com", "--join", "1")...)
		if member(t, colleague, "account", "id") != 1. || member(t, colleague, "workspace", "id") != 1. || member(t, colleague, "user", "id") != 2. {
			t.Errorf("user create --join: %v", colleague)
		}

		token := object(t, "", s.args("admin", "token", "create", "--email", "ada@example.com", "--workspace", "2", "--scopes", "read", "--expires-in", "2d", "--name", "ci")...)
		secret := token["token"].(string)
		who, err := live.Authenticate(t.Context(), secret)
		if err != nil || who.Workspace != 2 || who.May(hookglass.ScopeRead) != nil || who.May(hookglass.ScopeWrite) == nil {
			t.Errorf("the token is %+v, %v", who, err)
		}
		if r := run(t, "", s.args("admin", "token", "list", "--email", "ada@example.com", "--json")...); strings.Contains(r.out, secret) || !strings.Contains(r.out, `"name":"ci"`) {
			t.Errorf("token list: %s", r.out)
		}
		if r := run(t, "", s.args("admin", "token", "list", "--email", "ada@example.com")...); strings.Contains(r.out, secret) || !strings.Contains(r.out, "ci") {
			t.Errorf("token list: %s", r.out)
		}
		plain := run(t, "", s.args("admin", "token", "create", "--email", "ada@example.com")...)
		if who, err := live.Authenticate(t.Context(), strings.TrimSpace(plain.out)); err != nil || who.Workspace != 0 || len(who.Scopes) != 3 {
			t.Errorf("a token of every default is %+v, %v", who, err)
		}
		object(t, "", s.args("admin", "token", "revoke", "--id", "1")...)
		if _, err := live.Authenticate(t.Context(), secret); !hookglass.Is(err, hookglass.CodeUnauthorized) {
			t.Errorf("after its revocation: %v", err)
		}

		set := object(t, "", s.args("admin", "account", "set", "--account", "1", "--plan", "pro", "--subscription", "past_due", "--payment-method", "false", "--retention", "1m")...)
		for name, want := range map[string]any{"plan": "pro", "subscription": "past_due", "payment_method": false, "retention": "1m0s"} {
			if got := member(t, set, "account", name); got != want {
				t.Errorf("account set: %s is %v, want %v", name, got, want)
			}
		}
		if all := member(t, object(t, "", s.args("admin", "account", "list")...), "accounts").([]any); len(all) != 1 || member(t, all[0], "plan") != "pro" {
			t.Errorf("account list: %v", all)
		}

		object(t, "a new password", s.args("admin", "user", "password", "--email", "ada@example.com", "--password-stdin")...)
		if _, err := live.SignIn(t.Context(), "ada@example.com", "a new password", "192.0.2.1"); err != nil {
			t.Errorf("signing in with the new password: %v", err)
		}
		for _, step := range []struct {
			prepare bool
			args    []string
		}{{true, []string{"--prepare"}}, {false, nil}} {
			args := append([]string{"admin", "keys", "rotate"}, step.args...)
			if keys := object(t, "", s.args(args...)...); keys["keys"] != 2. || keys["prepared"] != step.prepare {
				t.Errorf("keys rotate %v: %v", step.args, keys)
			}
		}
		if version := object(t, "", s.args("migrate")...); version["schema_version"] == nil {
			t.Errorf("migrate: %v", version)
		}
	})
}

func TestWhatAdminCanNotDoItSays(t *testing.T) {
	s := freshSQLite(t)
	object(t, "", s.args("admin", "user", "create", "--email", "ada@example.com")...)
	for _, c := range []struct {
		says string
		args []string
	}{
		{"in use already", []string{"admin", "user", "create", "--email", "ADA@example.com"}},
		{"email address", []string{"admin", "user", "create", "--email", "ada"}},
		{"no password", []string{"admin", "user", "create", "--email", "bob@example.com", "--password-stdin"}},
		{"no such user", []string{"admin", "token", "create", "--email", "eve@example.com"}},
		{"no such user", []string{"admin", "token", "list", "--email", "eve@example.com"}},
		{"no such workspace", []string{"admin", "token", "create", "--email", "ada@example.com", "--workspace", "99"}},
		{"no such workspace", []string{"admin", "token", "create", "--email", "ada@example.com", "--workspace", "0"}},
		{"no such token", []string{"admin", "token", "revoke", "--id", "99"}},
		{"no such account", []string{"admin", "account", "set", "--account", "99", "--plan", "pro"}},
		{"at least 1m", []string{"admin", "account", "set", "--account", "1", "--retention", "59s"}},
		{"no such account", []string{"admin", "workspace", "list", "--account", "99"}},
		{"no such account", []string{"admin", "workspace", "create", "--account", "99", "--name", "W"}},
	} {
		fails(t, 1, c.says, s.args(c.args...)...)
	}
	fails(t, 1, "cannot be read", "admin", "account", "list", "--data", s.dir, "--database-url", "postgres://u:canary@[::1")
	if r := run(t, "", "admin", "account", "list", "--data", s.dir, "--database-url", "mysql://u:canary@localhost/x"); r.code != 2 || strings.Contains(r.err, "canary") {
		t.Errorf("a password was shown: %+v", r)
	}
}

// A directory that was misspelt is told, and no installation is begun there, but with its first user.
func TestAdminMakesNoDatabaseWhereItFindsNone(t *testing.T) {
	s := freshSQLite(t)
	for _, args := range [][]string{
		{"account", "list"}, {"account", "set", "--account", "1", "--plan", "pro"}, {"user", "list"}, {"user", "password", "--email", "ada@example.com", "--password-stdin"},
		{"token", "create", "--email", "ada@example.com"}, {"token", "list", "--email", "ada@example.com"}, {"token", "revoke", "--id", "1"},
		{"workspace", "list", "--account", "1"}, {"workspace", "create", "--account", "1", "--name", "W"}, {"keys", "rotate"},
	} {
		if r := run(t, "a long password\n", s.args(append([]string{"admin"}, args...)...)...); r.code != 1 || r.out != "" || !strings.Contains(r.err, "there is no database in "+s.dir) {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("the directory was made: %v", err)
	}
	object(t, "", s.args("admin", "user", "create", "--email", "ada@example.com")...)
}

func TestTheEnvironmentSaysWhereTheDataIs(t *testing.T) {
	s := freshSQLite(t)
	t.Setenv("HOOKGLASS_DATA", s.dir)
	object(t, "", "admin", "user", "create", "--email", "ada@example.com")
	if _, err := os.Stat(filepath.Join(s.dir, "hookglass.db")); err != nil {
		t.Error(err)
	}
}

func TestAVariableThatIsEmptyIsNotSet(t *testing.T) {
	s := freshSQLite(t)
	for _, name := range []string{"SECRET_KEY_FILE", "ENDPOINTS_FILE", "TLS_CERT", "SMTP_TLS_CERT", "RETENTION", "SIGNUP", "LISTEN", "SMTP_LISTEN", "DATABASE_URL", "TRUSTED_PROXIES"} {
		t.Setenv("HOOKGLASS_"+name, "")
	}
	object(t, "", s.args("admin", "user", "create", "--email", "ada@example.com")...)
	object(t, "", s.args("admin", "keys", "rotate")...)
	if _, err := os.Stat(filepath.Join(s.dir, "keys.json")); err != nil {
		t.Error(err)
	}
	if r := run(t, "", s.args("doctor")...); r.code != 0 || !strings.Contains(r.out, "every value can be used") {
		t.Errorf("%+v", r)
	}
}

// A variable that a flag overrides is not looked at, and a file that is given as nothing is none.
func TestAFlagOverridesItsVariable(t *testing.T) {
	s := freshSQLite(t)
	object(t, "", s.args("admin", "user", "create", "--email", "ada@example.com")...)
	given := map[string]string{"RETENTION": "30d", "MAX_BODY_BYTES": "1000", "SIGNUP": "open", "TRUSTED_PROXIES": "10.0.0.0/8", "TLS_CERT": "", "TLS_KEY": "", "SECRET_KEY_FILE": ""}
	args := s.args("doctor")
	for name, value := range given {
		t.Setenv("HOOKGLASS_"+name, "wrong")
		args = append(args, "--"+strings.ToLower(strings.ReplaceAll(name, "_", "-"))+"="+value)
	}
	if r := run(t, "", args...); r.code != 0 || !strings.Contains(r.out, "every value can be used") {
		t.Errorf("%+v", r)
	}
	fails(t, 2, `--retention: "wrong" is not a duration`, s.args("doctor")...)
}

func TestAdminListsUsersByAccount(t *testing.T) {
	each(t, func(t *testing.T, s storage) {
		object(t, "", s.args("admin", "user", "create", "--email", "ada@example.com", "--account", "Engines")...)
		object(t, "", s.args("admin", "user", "create", "--email", "grace@example.com", "--join", "1")...)
		object(t, "", s.args("admin", "user", "create", "--email", "eve@example.com")...)
		for account, want := range map[string]string{"": "ada@example.com grace@example.com eve@example.com", "1": "ada@example.com grace@example.com", "2": "eve@example.com"} {
			args := []string{"admin", "user", "list"}
			if account != "" {
				args = append(args, "--account", account)
			}
			var emails []string
			for _, one := range member(t, object(t, "", s.args(args...)...), "users").([]any) {
				emails = append(emails, member(t, one, "user", "email").(string))
			}
			if got := strings.Join(emails, " "); got != want {
				t.Errorf("user list of account %q: %s, want %s", account, got, want)
			}
		}
		if r := run(t, "", s.args("admin", "user", "list")...); r.code != 0 || !strings.Contains(r.out, "grace@example.com  1        Engines") {
			t.Errorf("user list: %+v", r)
		}
		fails(t, 1, "account", s.args("admin", "user", "list", "--account", "99")...)
	})
}

// What administers a database elsewhere leaves no directory behind, and needs no place where it could.
func TestADatabaseElsewhereNeedsNoDirectory(t *testing.T) {
	s := freshPostgres(t)
	object(t, "", s.args("migrate")...)
	object(t, "", s.args("admin", "user", "create", "--email", "ada@example.com")...)
	object(t, "", s.args("admin", "token", "create", "--email", "ada@example.com")...)
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("%s was made: %v", s.dir, err)
	}
	object(t, "", s.args("admin", "keys", "rotate")...)
	if info, err := os.Stat(s.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("for the keyset there is %v, %v", info, err)
	}
}
