package web_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/chromedp"
)

// chrome is a tab of a headless browser that remembers what its console said.
type chrome struct {
	*site
	ctx context.Context

	mu      sync.Mutex
	console []string
}

// browserNames are the programs that script/need looks for.
var browserNames = []string{
	"chromium-headless-shell", "chrome-headless-shell", "headless_shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
}

// chrome opens a tab of the given size. Without a browser the test skips, and fails where CI is set.
func (s *site) chrome(width, height int64) *chrome {
	s.t.Helper()
	var program string
	for _, name := range browserNames {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		if os.Getenv("CI") == "true" {
			s.t.Fatal("no headless browser: see script/need")
		}
		s.t.Skip("no headless browser: see script/need")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	s.t.Cleanup(cancelAllocator)
	ctx, cancel := chromedp.NewContext(allocator)
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
	c.do(chromedp.EmulateViewport(width, height))
	return c
}

func (c *chrome) do(actions ...chromedp.Action[chromedp.Void]) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, 20*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		c.t.Fatalf("%v\nconsole: %v", err, c.said())
	}
}

func (c *chrome) open(address string) {
	c.t.Helper()
	c.do(chromedp.Navigate(address))
}

// until waits until a JavaScript expression holds, looking at each frame.
func (c *chrome) until(expression string) {
	c.t.Helper()
	c.untilIn(10*time.Second, expression)
}

func (c *chrome) untilIn(limit time.Duration, expression string) {
	c.t.Helper()
	held := eval[bool](c, fmt.Sprintf(`new Promise((resolve) => {
		const end = Date.now() + %d;
		const look = () => {
			let holds = false;
			try { holds = Boolean(%s); } catch {}
			if (holds || Date.now() > end) resolve(holds); else setTimeout(look, 10);
		};
		look();
	})`, limit.Milliseconds(), expression))
	if !held {
		c.t.Fatalf("within %v it never held: %s\nconsole: %v\n%s", limit, expression, c.said(), eval[string](c, "document.body.innerText"))
	}
}

func eval[T any](c *chrome, expression string) T {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, 20*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		c.t.Fatalf("%s: %v\nconsole: %v", expression, err, c.said())
	}
	return v
}

func (c *chrome) click(selector string) {
	c.t.Helper()
	c.do(chromedp.Click(selector))
}

func (c *chrome) press(keys string) {
	c.t.Helper()
	c.do(chromedp.KeyEvent(keys))
}

func (c *chrome) said() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.console...)
}

// silent fails when the console said anything: an error, an exception, or what the policy refused.
func (c *chrome) silent() {
	c.t.Helper()
	if said := c.said(); len(said) > 0 {
		c.t.Errorf("the console is not empty:\n%s", strings.Join(said, "\n"))
	}
}

// picture writes a screenshot where HOOKGLASS_PICTURES names a directory: for a person to look at.
func (c *chrome) picture(name string) {
	c.t.Helper()
	dir := os.Getenv("HOOKGLASS_PICTURES")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, 20*time.Second)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/"+name+".png", png, 0o644); err != nil {
		c.t.Fatal(err)
	}
}
