package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long a test waits for a condition or an action of the browser.
const patience = time.Minute

// look is how a tab shows pages. The zero value is light, on a wide screen.
type look struct {
	width, height int64 // 1300 and 900 by default
	dark          bool
	phone         bool // 390 px, with touch
	noScripts     bool
	zone          string // UTC by default
}

func (l look) String() string {
	words := []string{"light"}
	if l.dark {
		words[0] = "dark"
	}
	if l.phone {
		words = append(words, "phone")
	}
	return strings.Join(words, "-")
}

// looks are those in which every page is checked.
var looks = []look{{}, {dark: true}, {phone: true}}

const phoneWidth = 390

// tab is a tab with a profile of its own. Its test fails if problems remain when the test ends.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string // the address of the server

	loads atomic.Int64 // pages loaded

	mu       sync.Mutex
	problems []string
	over     bool // further problems do not count
}

// open opens an empty tab for the pages of a server.
func open(t *testing.T, base string, l look) *tab {
	t.Helper()
	b := &tab{t: t, base: strings.TrimSuffix(base, "/")}
	ctx, cancel := chromedp.NewContext(theBrowser.start(t), chromedp.WithNewBrowserContext(), chromedp.WithListener(b.notice))
	b.ctx = ctx
	t.Cleanup(func() {
		cancel()
		for _, p := range b.take() {
			t.Error(p)
		}
	})
	if l.width == 0 {
		l.width, l.height = 1300, 900
	}
	if l.phone {
		l.width, l.height = phoneWidth, 844
	}
	if l.zone == "" {
		l.zone = "UTC"
	}
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}
	if err := chromedp.Do(ctx); err != nil { // the tab lives as long as this context
		t.Fatal(err)
	}
	none := cdp.Empty{}
	b.run(
		command(audits.Enable, none), command(network.Enable, network.EnableParams{}), command(cdplog.Enable, none),
		command(page.Enable, page.EnableParams{}), command(runtime.Enable, none),
		command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.phone}),
		command(emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: l.phone}),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}),
		command(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: l.zone}),
		command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.noScripts}),
		command(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
	)
	return b
}

// notice records what a page must not do. It runs in the goroutine of the connection, which it must not block.
func (b *tab) notice(event any) {
	switch e := event.(type) {
	case *page.EventLoadEventFired:
		b.loads.Add(1)
	case *network.EventRequestWillBeSent:
		if !b.own(e.Request.URL) {
			b.problem("a request leaves the server: %s", e.Request.URL)
		}
	case *network.EventWebSocketCreated:
		b.problem("a WebSocket: %s", e.URL)
	case *page.EventJavascriptDialogOpening:
		b.problem("a dialog: %s", e.Message)
		go func() { _ = b.try(command(page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})) }() // the tab may have been closed
	case *runtime.EventExceptionThrown:
		b.problem("an exception: %s", described(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			b.problem("a console message: %s", arguments(e.Args))
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Level == cdplog.EntryLevelWarning {
			b.problem("a %s of the browser: %s (%s)", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *audits.EventIssueAdded:
		if d := e.Issue.Details.ContentSecurityPolicyIssueDetails; d != nil {
			b.problem("the content security policy is violated: %s %s", d.ViolatedDirective, d.BlockedURL)
		}
	}
}

func described(e *runtime.ExceptionDetails) string {
	if e.Exception != nil {
		return e.Text + " " + e.Exception.Description
	}
	return e.Text
}

func arguments(all []*runtime.RemoteObject) string {
	var words []string
	for _, a := range all {
		words = append(words, string(a.Value), a.Description)
	}
	return strings.Join(words, " ")
}

// own reports whether a URL is one of the server, or has no server.
func (b *tab) own(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (b.base == u.Scheme+"://"+u.Host || u.Scheme == "data" || u.Scheme == "about" || u.Scheme == "blob")
}

func (b *tab) problem(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.problems = append(b.problems, fmt.Sprintf(format, args...))
	}
}

// finish forgets the problems so far, and those that the browser reports later.
func (b *tab) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems, b.over = nil, true
}

// take returns the problems so far, and forgets them.
func (b *tab) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.problems
	b.problems = nil
	return all
}

// expect requires a problem that contains the text, and forgets it.
func (b *tab) expect(text string) {
	b.t.Helper()
	end := time.Now().Add(patience)
	for {
		var kept []string
		all := b.take()
		for _, p := range all {
			if !strings.Contains(p, text) {
				kept = append(kept, p)
			}
		}
		b.mu.Lock()
		b.problems = append(kept, b.problems...)
		b.mu.Unlock()
		if len(kept) < len(all) {
			return
		}
		if time.Now().After(end) {
			b.t.Errorf("no problem says %q: %q", text, kept)
			return
		}
		<-time.After(15 * time.Millisecond)
	}
}

// action is a step that returns nothing.
type action = chromedp.Action[chromedp.Void]

// command is a command of the protocol, as a step.
func command[P, R any](c cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// try runs actions.
func (b *tab) try(actions ...action) error {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, actions...)
}

// run runs actions, which must succeed.
func (b *tab) run(actions ...action) {
	b.t.Helper()
	if err := b.try(actions...); err != nil {
		b.t.Fatalf("%v; problems: %q", err, b.take())
	}
}

// visit opens a page by its path and query, and waits until its scripts have run.
func (b *tab) visit(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.base + path))
}

// eval returns the value of an expression of JavaScript as text; what is not a string is JSON.
func (b *tab) eval(expression string) string {
	b.t.Helper()
	s, err := b.value(expression)
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return s
}

func (b *tab) value(expression string) (string, error) {
	var raw []byte
	yes := true
	err := b.try(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		r, err := cdp.Call(ctx, t, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ReturnByValue: &yes, AwaitPromise: &yes, UserGesture: &yes})
		switch {
		case err != nil:
			return err
		case r.ExceptionDetails != nil:
			return errors.New(described(r.ExceptionDetails))
		}
		raw = r.Result.Value
		return nil
	}))
	if err != nil {
		return "", err
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	return string(raw), nil
}

// number returns the value of an expression that is a number.
func (b *tab) number(expression string) float64 {
	b.t.Helper()
	var n float64
	if s := b.eval(expression); json.Unmarshal([]byte(s), &n) != nil {
		b.t.Fatalf("%s is not a number: %s", expression, s)
	}
	return n
}

// is waits until an expression has a value: a busy browser handles an input later than it answers. While a page loads,
// evaluation may fail.
func (b *tab) is(expression, want string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(15 * time.Millisecond) {
		got, err := b.value(expression)
		if err == nil && got == want {
			return
		}
		if time.Now().After(end) {
			b.t.Errorf("%s\n got: %s (%v)\nwant: %s", expression, got, err, want)
			return
		}
	}
}

// until waits until an expression is true. While a page loads, evaluation may fail.
func (b *tab) until(expression string) {
	b.t.Helper()
	end := time.Now().Add(patience)
	for {
		got, err := b.value("Boolean(" + expression + ")")
		if err == nil && got == "true" {
			return
		}
		if time.Now().After(end) {
			b.shoot("failed-" + b.t.Name())
			b.t.Fatalf("not true within %v: %s (%v) on %s", patience, expression, err, b.eval("location.href"))
		}
		<-time.After(15 * time.Millisecond)
	}
}

// click clicks the middle of the first element that matches, as a user would.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.run(chromedp.Click(chromedp.CSS(selector)))
}

// follow clicks a link and waits for the page that it leads to.
func (b *tab) follow(selector string) {
	b.t.Helper()
	b.leave(chromedp.Click(chromedp.CSS(selector)))
}

// submit evaluates an expression that leads to another page, and waits for that page.
func (b *tab) submit(expression string) {
	b.t.Helper()
	b.leave(command(runtime.Evaluate, runtime.EvaluateParams{Expression: expression}))
}

// leave runs an action that leads to another page, and waits for that page. It counts load events: an expression may be
// evaluated in the empty document that stands in for a page before it arrives.
func (b *tab) leave(by action) {
	b.t.Helper()
	before := b.loads.Load()
	b.run(by)
	for end := time.Now().Add(patience); b.loads.Load() == before; <-time.After(15 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("no page is loaded within %v after %s", patience, b.eval("location.href"))
		}
	}
}

// location is the path and query of the page.
func (b *tab) location() *url.URL {
	b.t.Helper()
	u, err := url.Parse(b.eval("location.href"))
	if err != nil {
		b.t.Fatal(err)
	}
	return u
}

// quote returns a text as JavaScript.
func quote(s string) string {
	raw, _ := json.Marshal(s) // a string
	return string(raw)
}

// press presses keys one after the other. Unlike chromedp.KeyEvent it sends no text if the page takes the key itself.
func (b *tab) press(keys string) {
	b.t.Helper()
	for _, r := range keys {
		events := kb.Encode(r)
		down, up := *events[0], *events[len(events)-1]
		if len(events) == 3 {
			down.Type, down.Text, down.UnmodifiedText = input.DispatchKeyEventTypeKeyDown, events[1].Text, events[1].UnmodifiedText
		}
		b.run(command(input.DispatchKeyEvent, down), command(input.DispatchKeyEvent, up))
	}
}

// drop forgets problems that contain the text.
func (b *tab) drop(text string) {
	all := b.take()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range all {
		if !strings.Contains(p, text) {
			b.problems = append(b.problems, p)
		}
	}
}

// whole loads the whole timeline. A busy server sends fewer entries at once, and the rest as the reader scrolls.
func (b *tab) whole() {
	b.t.Helper()
	b.until(`(scrollTo(0, document.body.scrollHeight), !document.querySelector("#entries .older"))`)
	b.eval("scrollTo(0, 0)")
}
