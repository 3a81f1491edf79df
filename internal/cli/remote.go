package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/server"
)

// defaultServer is the default address of `serve` and `dev`.
const defaultServer = "http://127.0.0.1:8080"

// remote are the flags with which a command reaches its server.
type remote struct {
	Server string `env:"HOOKGLASS_SERVER" placeholder:"URL" help:"Address of the server (default: the one of login)."`
	Token  string `env:"HOOKGLASS_TOKEN" placeholder:"TOKEN" help:"API token (default: the one of login). Prefer the variable: other users can see flags."`
	JSON   bool   `name:"json" help:"Print JSON, as the API answers, instead of text."`
}

// ofEndpoint is the flag for a command's endpoint.
type ofEndpoint struct {
	Endpoint string `short:"e" required:"" env:"HOOKGLASS_ENDPOINT" placeholder:"EP" help:"The endpoint's id or custom id."`
}

// AfterApply implements kong.AfterApply. An empty -e is an unset variable, and no address of a server's.
func (e ofEndpoint) AfterApply() error {
	if e.Endpoint == "" {
		return errors.New("--endpoint is empty")
	}
	return nil
}

// endpointVariable names the default endpoint.
const endpointVariable = "HOOKGLASS_ENDPOINT"

// byWordOrFlag is the flag of a command that also takes its endpoint as its first word.
type byWordOrFlag struct {
	Flag string `name:"endpoint" short:"e" placeholder:"EP" help:"The same, as other commands take it ($$HOOKGLASS_ENDPOINT)."`
}

// endpoint returns the command's endpoint. If the flag is set there must be no such word.
func (b byWordOrFlag) endpoint(word string) (string, error) {
	if b.Flag != "" && word != "" {
		return "", outcome{exitUsage, fmt.Sprintf("the endpoint is named twice, %s and -e %s", word, b.Flag)}
	}
	if named := cmp.Or(b.Flag, word, os.Getenv(endpointVariable)); named != "" {
		return named, nil
	}
	return "", outcome{exitUsage, "name the endpoint with -e or " + endpointVariable}
}

// connect returns a client of the server given by flags, environment or login. It fails without a token.
func (r *remote) connect() (*client.Client, string, error) {
	address, token := r.Server, r.Token
	var saved credentials
	if address == "" || token == "" { // otherwise stored credentials are not needed, readable or not
		var err error
		if saved, err = loadCredentials(); err != nil {
			return nil, "", err
		}
	}
	address = cmp.Or(address, saved.Server, defaultServer)
	if token == "" && sameServer(address, saved.Server) {
		token = saved.Token // never sent to another server
	}
	if token == "" {
		return nil, address, hookglass.Errorf(hookglass.CodeUnauthorized, "You are not signed in to %s. Run \"hookglass login\", or set HOOKGLASS_TOKEN.", address)
	}
	c, err := client.New(address, token)
	if err != nil {
		return nil, address, outcome{exitUsage, err.Error()}
	}
	return c, address, nil
}

func sameServer(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// print writes the object as JSON, or what text writes.
func (r *remote) print(t *server.Terminal, object any, text func(io.Writer)) error {
	if r.JSON {
		return writeJSON(t.Out, object)
	}
	out := &minding{to: t.Out}
	text(out)
	return out.err
}

// say writes the object as JSON, or a sentence.
func (r *remote) say(t *server.Terminal, object any, format string, args ...any) error {
	if r.JSON {
		return writeJSON(t.Out, object)
	}
	_, err := fmt.Fprintf(t.Out, format, args...)
	return err
}

// everything reads all pages of a list. It is never nil, for JSON.
func everything[T any](list func(client.Page) (api.List[T], error)) ([]T, error) {
	all := []T{}
	for page := (client.Page{Limit: 100}); ; {
		some, err := list(page)
		if err != nil {
			return nil, err
		}
		if all = append(all, some.Data...); some.Meta.NextCursor == nil {
			return all, nil
		}
		page.Cursor = *some.Meta.NextCursor
	}
}

// minding is a writer that keeps its first error, so that printing code need not check each write.
type minding struct {
	to  io.Writer
	err error
}

func (w *minding) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.err = cmp.Or(w.err, err)
	return n, err
}

// table prints rows of cells under a heading.
func table(heading []string, rows [][]string) func(io.Writer) {
	return func(w io.Writer) {
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, cells := range append([][]string{heading}, rows...) {
			for i, cell := range cells {
				cells[i] = visible(cell)
			}
			fmt.Fprintln(tw, strings.Join(cells, "\t"))
		}
		tw.Flush()
	}
}

// visible makes captured text safe for a terminal, on one line: senders must not be able to move the cursor, change the
// title or paste.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// visibleLines is visible for text of several lines.
func visibleLines(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, l := range lines {
		lines[i] = visible(strings.ReplaceAll(l, "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// deref returns the value of a pointer, or "".
func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func clock(t *api.Time) string {
	if t == nil {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// credentials are what login stores.
type credentials struct {
	Server string `json:"server"`
	Token  string `json:"token"`
}

func credentialsPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("where to keep the credentials: %w", err)
	}
	return filepath.Join(dir, "hookglass", "credentials.json"), nil
}

// loadCredentials returns the zero value if nobody is signed in.
func loadCredentials() (c credentials, err error) {
	path, err := credentialsPath()
	if err != nil {
		return c, nil // without a home directory there are none
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(content, &c); err != nil {
		return c, fmt.Errorf("%s cannot be read; sign in again", path)
	}
	return c, nil
}

// save replaces the file, which only its owner may read.
func (c credentials) save() (path string, err error) {
	if path, err = credentialsPath(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	content, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", err
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), ".credentials-*") // mode 0600
	if err != nil {
		return "", err
	}
	defer os.Remove(fresh.Name())
	_, err = fresh.Write(append(content, '\n'))
	if err = errors.Join(err, fresh.Close()); err != nil {
		return "", err
	}
	return path, os.Rename(fresh.Name(), path)
}
