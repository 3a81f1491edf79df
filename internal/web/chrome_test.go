package web_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// chrome is a tab of a headless browser that remembers what its console said.
type chrome struct {
	*site
	ctx context.Context

	mu      sync.Mutex
	console []string
	strange []string // requests to another host
}

// browserNames are the programs that script/need looks for.
var browserNames = []string{
	"chromium-headless-shell", "chrome-headless-shell", "headless_shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
}

// shared is the browser of all tests of the process. Each test has tabs with cookies of their own: those of one of the
// browser's profiles, which the next test takes over, as a new one costs a process and all that a first page costs it.
var shared struct {
	once   sync.Once
	ctx    context.Context
	cancel context.CancelFunc
	err    error

	mu   sync.Mutex
	free []context.Context // each the one blank tab that keeps the process of a profile
}

// profile takes a profile of the browser that holds nothing, until the test ends.
func (s *site) profile() context.Context {
	s.t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	var ctx context.Context
	if n := len(shared.free); n > 0 {
		ctx, shared.free = shared.free[n-1], shared.free[:n-1]
	} else {
		ctx, _ = chromedp.NewContext(shared.ctx, chromedp.WithNewBrowserContext()) // ends with the browser
		if err := chromedp.Do(ctx); err != nil {
			s.t.Fatal(err)
		}
	}
	s.t.Cleanup(func() {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		err := chromedp.Do(limited, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			_, err := cdp.Call(ctx, tab, storage.ClearDataForOrigin, storage.ClearDataForOriginParams{Origin: s.url, StorageTypes: "all"})
			if err == nil {
				_, err = cdp.Call(ctx, tab, network.ClearBrowserCookies, cdp.Empty{})
			}
			return err
		}))
		if err != nil {
			s.t.Error(err)
			return
		}
		shared.mu.Lock()
		defer shared.mu.Unlock()
		shared.free = append(shared.free, ctx)
	})
	return ctx
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.cancel != nil {
		shared.cancel()
	}
	os.Exit(code)
}

var errNoBrowser = errors.New("no headless browser: see script/need")

func startBrowser() {
	var program string
	for _, name := range browserNames {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		shared.err = errNoBrowser
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.WSURLReadTimeout(patience),
		// What moves costs more processor here than all else of a page.
		chromedp.Flag("force-prefers-reduced-motion", true),
		// Nothing here is a stranger's: fewer processes are enough.
		chromedp.Flag("in-process-gpu", true), chromedp.Flag("enable-features", "NetworkServiceInProcess2"),
		chromedp.Flag("disable-site-isolation-trials", true), chromedp.Flag("renderer-process-limit", "1"),
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,IsolateOrigins,site-per-process"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	shared.ctx, shared.cancel = ctx, func() { cancel(); cancelAllocator() }
	shared.err = chromedp.Do(ctx)
}

// chrome opens a tab of the given size. Without a browser the test skips, and fails where CI is set.
func (s *site) chrome(width, height int64) *chrome {
	s.t.Helper()
	shared.once.Do(startBrowser)
	switch {
	case shared.err == errNoBrowser && os.Getenv("CI") != "true":
		s.t.Skip(shared.err)
	case shared.err != nil:
		s.t.Fatal(shared.err)
	}
	ctx, cancel := chromedp.NewContext(s.profile())
	s.t.Cleanup(cancel)
	c := &chrome{site: s, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		s.t.Fatal(err)
	}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			c.mu.Lock()
			c.console = append(c.console, m.String())
			c.mu.Unlock()
		}
	}()
	requests := chromedp.Events(ctx, network.RequestWillBeSent)
	go func() {
		for r, err := range requests {
			if err != nil {
				return
			}
			if !strings.HasPrefix(r.Request.URL, s.url+"/") {
				c.mu.Lock()
				c.strange = append(c.strange, r.Request.URL)
				c.mu.Unlock()
			}
		}
	}()
	c.agree()
	c.do(chromedp.EmulateViewport(width, height))
	return c
}

// tab opens another tab, with the same cookies.
func (c *chrome) tab() *chrome {
	c.t.Helper()
	ctx, cancel := chromedp.NewContext(c.ctx)
	c.t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		c.t.Fatal(err)
	}
	c = &chrome{site: c.site, ctx: ctx}
	c.agree()
	return c
}

// agree answers every question of the browser with yes, such as whether to leave what was typed.
func (c *chrome) agree() {
	questions := chromedp.Events(c.ctx, page.JavascriptDialogOpening)
	go func() {
		for _, err := range questions {
			if err != nil {
				return
			}
			ctx, cancel := context.WithTimeout(c.ctx, patience)
			_ = chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
				_, err := cdp.Call(ctx, tab, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
				return err
			}))
			cancel()
		}
	}()
}

func (c *chrome) do(actions ...chromedp.Action[chromedp.Void]) {
	c.t.Helper()
	c.did(c.try(actions...))
}

func (c *chrome) try(actions ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, actions...)
}

func (c *chrome) did(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%v\nconsole: %v", err, c.said())
	}
}

// prefer has the pages come in a colour scheme, and without moving.
func (c *chrome) prefer(scheme string) {
	c.t.Helper()
	c.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return err
	}))
}

func (c *chrome) open(address string) {
	c.t.Helper()
	c.do(chromedp.Navigate(address))
}

// until waits until a JavaScript expression, or what it promises, holds.
func (c *chrome) until(expression string) {
	c.t.Helper()
	c.untilIn(patience, expression)
}

// patience is how long a test waits for what comes: a busy machine takes its time.
const patience = 2 * time.Minute

// soon is how long what is told at once takes at most: two seconds, and what a busy machine adds. What nobody told of comes
// with the next beat of its stream, 15 s after the one before.
const soon = 5 * time.Second

// untilIn is until with a limit. The time in which the browser or this process stood still is not a part of it.
func (c *chrome) untilIn(limit time.Duration, expression string) {
	c.t.Helper()
	const look = 100 * time.Millisecond
	for left, held := limit, false; !held; {
		began := time.Now()
		ctx, cancel := context.WithTimeout(c.ctx, patience)
		var err error
		held, err = chromedp.Run(ctx, chromedp.Evaluate[bool](fmt.Sprintf(`new Promise((resolve) => {
			const end = performance.now() + %d;
			const look = async () => {
				let holds = false;
				try { holds = Boolean(await (%s)); } catch {}
				if (holds || performance.now() > end) resolve(holds); else setTimeout(look, 10);
			};
			look();
		})`, look.Milliseconds(), expression), chromedp.EvalAwaitPromise))
		cancel()
		left -= min(time.Since(began), look)
		if !held && left <= 0 { // an error before that is a page that was left while it was looked at
			c.t.Fatalf("within %v it never held: %s\n%v, console: %v\n%s", limit, expression, err, c.said(), eval[string](c, "document.body.innerText"))
		}
	}
}

func eval[T any](c *chrome, expression string) T {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		c.t.Fatalf("%s: %v\nconsole: %v", expression, err, c.said())
	}
	return v
}

// click presses what a CSS selector finds, once it stays where it is: what moves after it was looked for is missed.
func (c *chrome) click(selector string) {
	c.t.Helper()
	c.until(fmt.Sprintf(`((e) => {
		const { x, y } = e.getBoundingClientRect(), was = window.clicked;
		window.clicked = { e, x, y, looks: was?.e === e && was.x === x && was.y === y ? was.looks + 1 : 0 };
		return window.clicked.looks >= 3;
	})(document.querySelector(%q))`, selector))
	var err error
	for range 5 { // a page may replace what was found before it is pressed
		if err = c.try(chromedp.Click(selector)); err == nil || !strings.Contains(err.Error(), "Could not find node") {
			break
		}
	}
	c.did(err)
}

// copies presses, and waits until a copy button says that it copied. It does for 1.5 s, in which a busy machine may not
// look.
func (c *chrome) copies(button string, press func()) {
	c.t.Helper()
	eval[any](c, fmt.Sprintf(`window.copied = "", new MutationObserver(([change]) => window.copied ||= change.target.dataset.copied)
		.observe(document.querySelector(%q), { attributeFilter: ["data-copied"] })`, button))
	press()
	c.until(`window.copied === "yes"`)
}

// press presses keys one after another, each with its text in the same event, as a keyboard does: what a page
// prevents is not typed.
func (c *chrome) press(keys string) {
	c.t.Helper()
	c.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		for _, key := range keys {
			events := kb.Encode(key)
			for _, e := range events[1:] {
				if e.Type == input.DispatchKeyEventTypeChar {
					events[0].Type, events[0].Text = input.DispatchKeyEventTypeKeyDown, e.Text
				}
			}
			for _, e := range events {
				if e.Type == input.DispatchKeyEventTypeChar {
					continue
				}
				if _, err := cdp.Call(ctx, tab, input.DispatchKeyEvent, *e); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

func (c *chrome) said() (lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.console {
		if !strings.Contains(line, "Blocked attempt to show a 'beforeunload'") { // tests type by script, people do not
			lines = append(lines, line)
		}
	}
	return lines
}

// forget forgets what the console said so far.
func (c *chrome) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.console = nil
}

// silent fails when the console said anything (an error, an exception, what the policy refused), or when the page
// asked another host.
func (c *chrome) silent() {
	c.t.Helper()
	if said := c.said(); len(said) > 0 {
		c.t.Errorf("the console is not empty:\n%s", strings.Join(said, "\n"))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.strange) > 0 {
		c.t.Errorf("the page asked other hosts:\n%s", strings.Join(c.strange, "\n"))
	}
}

// picture writes a screenshot where HOOKGLASS_PICTURES names a directory: for a person to look at.
func (c *chrome) picture(name string) {
	c.t.Helper()
	dir := os.Getenv("HOOKGLASS_PICTURES")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/"+name+".png", png, 0o644); err != nil {
		c.t.Fatal(err)
	}
}
