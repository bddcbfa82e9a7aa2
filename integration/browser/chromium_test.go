package browser

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// chromium is one browser for all tests; each test has a profile of its own in it.
type chromium struct {
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
	err    error
}

var theBrowser chromium

// errNoBrowser says what to install.
var errNoBrowser = errors.New("no browser found: run tools/chromium.sh as root, or install it (Debian: apt-get install chromium; Fedora: dnf install chromium; macOS: brew install --cask chromium)")

// programs are the names of browsers, the preferred ones first.
var programs = []string{
	"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
	"/Applications/Chromium.app/Contents/MacOS/Chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
}

func findBrowser(look func(string) (string, error)) (string, error) {
	for _, name := range programs {
		if path, err := look(name); err == nil {
			return path, nil
		}
	}
	return "", errNoBrowser
}

// start returns the context of the running browser.
func (c *chromium) start(t *testing.T) context.Context {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil && c.err == nil {
		c.err = c.launch()
	}
	if c.err != nil {
		t.Fatal(c.err)
	}
	return c.ctx
}

func (c *chromium) launch() error {
	path, err := findBrowser(exec.LookPath)
	if err != nil {
		return err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.WSURLReadTimeout(2*patience),
		chromedp.Flag("font-render-hinting", "none"),
		chromedp.Flag("lang", "en-GB"),
		chromedp.Flag("no-pings", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("proxy-server", "direct://"), // pages are on loopback
	)
	if os.Geteuid() == 0 { // Chromium's sandbox refuses root
		options = append(options, chromedp.NoSandbox)
	}
	allocator, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		cancel()
		cancelAllocator()
		return errors.Join(errors.New("start "+path), err)
	}
	c.ctx, c.cancel = ctx, func() { cancel(); cancelAllocator() }
	return nil
}

// close ends the browser and waits for its process.
func (c *chromium) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		return
	}
	_ = chromedp.Cancel(c.ctx) // waits; the browser may have crashed, which the tests reported
	c.cancel()
}

// TestNoBrowser: a machine without a browser gets an error that says what to install.
func TestNoBrowser(t *testing.T) {
	if _, err := findBrowser(func(string) (string, error) { return "", exec.ErrNotFound }); !errors.Is(err, errNoBrowser) {
		t.Error(err)
	}
	path, err := findBrowser(func(name string) (string, error) {
		if name == "google-chrome" {
			return "/opt/" + name, nil
		}
		return "", exec.ErrNotFound
	})
	if path != "/opt/google-chrome" || err != nil {
		t.Error(path, err)
	}
}
