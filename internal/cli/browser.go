package cli

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/client"
	"hookglass/internal/server"
)

// follows is how long a browser may take to follow the redirect to this machine that hides the token. What is no
// browser, such as a script that plays one, may never follow, and keeps nobody waiting.
const follows = 3 * time.Second

// byCode signs in with a code that a browser on any machine shows.
func (c *LoginCmd) byCode(ctx context.Context, t *server.Terminal, nobody *client.Client) (string, error) {
	fmt.Fprintf(t.Err, "Open %s in a browser, approve, and type the code that it shows.\nCode: ", c.page(nil))
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	code, ok := readLine(ctx, t.In)
	if !ok || code == "" {
		return "", hookglass.Errorf(hookglass.CodeUnauthorized, "No code was typed.")
	}
	got, err := nobody.ExchangeCode(ctx, code)
	return got.Token, err
}

// byBrowser opens the page on which the user approves, and waits for the browser to return with the token.
func (c *LoginCmd) byBrowser(ctx context.Context, t *server.Terminal) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("wait for the browser: %w", err)
	}
	state := rand.Text()
	tokens, seen := make(chan string, 1), make(chan struct{}, 1)
	back := &http.Server{ReadTimeout: 10 * time.Second, Handler: callback(state, tokens, seen)}
	served := make(chan error, 1)
	go func() { served <- back.Serve(listener) }()
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if back.Shutdown(closing) != nil { // the browser keeps its connection open, but has its answer
			back.Close()
		}
		<-served
	}()
	port := listener.Addr().(*net.TCPAddr).Port
	page := c.page(url.Values{"callback_port": {strconv.Itoa(port)}, "state": {state}})
	fmt.Fprintf(t.Err, "Approve the sign-in in your browser:\n\n  %s\n\nNo browser here? End this and run \"hookglass login --no-browser\".\n", page)
	openBrowser(page)
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	select {
	case token := <-tokens:
		select {
		case <-seen:
		case <-time.After(follows): // the token has arrived, even if the browser does not follow
		case <-ctx.Done():
		}
		return token, nil
	case <-ctx.Done():
		return "", hookglass.Errorf(hookglass.CodeUnauthorized, "Nobody approved the sign-in.")
	}
}

// page returns the URL of the page on which the user approves.
func (c *LoginCmd) page(query url.Values) string {
	page := strings.TrimRight(c.Server, "/") + "/auth/cli"
	if query != nil {
		page += "?" + query.Encode()
	}
	return page
}

// callback takes the token from the browser, which proves itself with the state that no other page knows, and redirects
// it to a URL without the token, because URLs are displayed and stored in the history. seen gets a value when the
// browser has arrived there.
func callback(state string, tokens chan<- string, seen chan<- struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(state)) != 1 || query.Get("token") == "" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintln(w, "This is not the sign-in that the command line waits for.")
			return
		}
		select {
		case tokens <- query.Get("token"):
		default: // a token has arrived before
		}
		http.Redirect(w, r, "/signed-in", http.StatusSeeOther)
	})
	mux.HandleFunc("GET /signed-in", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "The command line is signed in. You can close this page.")
		select {
		case seen <- struct{}{}:
		default:
		}
	})
	return mux
}

// openBrowser opens an address, if there is a way to.
func openBrowser(address string) {
	var command *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		command = exec.Command("open", address)
	case "windows":
		command = exec.Command("rundll32", "url.dll,FileProtocolHandler", address)
	default:
		command = exec.Command("xdg-open", address)
	}
	if command.Start() == nil { // if that fails, the printed address remains
		_ = command.Process.Release()
	}
}
