package control

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOrders(t *testing.T) {
	ctx, o := t.Context(), &orders{}
	c := served(t, inDir(t), o)
	if s, err := c.Status(ctx); s.Cluster != "test" || s.PID != 42 || err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	if err := errors.Join(c.Pause(ctx, "a b/..", true), c.Pause(ctx, "x", false), c.Remove(ctx, "x")); err != nil {
		t.Error(err)
	}
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	if r, err := c.Replay(ctx, "x", Place{Since: at}); r != (Replayed{3, 5, true}) || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := c.Replay(ctx, "x", Place{}); r != (Replayed{3, 5, true}) || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	for _, id := range []string{"", "i"} {
		if s, err := c.Skip(ctx, "x", id); s != (Skipped{"i", "s", "403"}) || err != nil {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if n, err := c.DropDead(ctx, "x", []string{"i", "j"}); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	ids := strings.Split("abcdefghijkl", "")
	if r, err := c.ReplayDead(ctx, "x", ids); r != (Retried{Taken: 10, Refused: 2}) || err != nil {
		t.Errorf("some at a time: %+v, %v", r, err)
	}
	want := []string{
		"pause a b/.. true", "pause x false", "remove x", "replay x 2026-03-01T10:00:00Z 0", "replay x 0001-01-01T00:00:00Z 0",
		"skip x ", "skip x i", "drop x i,j", "replay dead x a,b,c,d,e,f,g,h,i,j", "replay dead x k,l",
	}
	if d := cmp.Diff(want, o.seen); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestErrors: an error shows whether the caller or the daemon is at fault.
func TestErrors(t *testing.T) {
	ctx, o := t.Context(), &orders{}
	c := served(t, inDir(t), o)
	o.err = Refuse("there is no sink %q", "x")
	var refusal *Refusal
	if err := c.Pause(ctx, "x", true); !errors.As(err, &refusal) || err.Error() != `there is no sink "x"` {
		t.Errorf("refused: %v", err)
	}
	o.err = errors.New("disk full")
	for what, err := range map[string]error{"pause": c.Pause(ctx, "x", true), "status": second(c.Status(ctx))} {
		if errors.As(err, &refusal) || err == nil || !strings.Contains(err.Error(), c.Journal+": disk full") {
			t.Errorf("%s failed: %v", what, err)
		}
	}
	if r, err := c.ReplayDead(ctx, "x", []string{"a", "b"}); r.Taken != 1 || err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("what was done before the failure is returned: %+v, %v", r, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestRequests(t *testing.T) {
	o := &orders{}
	c := served(t, inDir(t), o)
	const js = "application/json"
	for _, tc := range []struct {
		why, method, path, kind, body string
		code                          int
		want                          string
	}{
		{"no JSON", "POST", pathPause, js, "{", 400, "unexpected EOF"},
		{"nothing", "POST", pathPause, js, "", 400, "EOF"},
		{"another type", "POST", pathPause, "text/plain", `{"sink":"x"}`, 400, "not JSON"},
		{"an unknown key is not ignored", "POST", pathPause, js, `{"sink":"x","for":"1h"}`, 400, `unknown field \"for\"`},
		{"two at once", "POST", pathPause, js, `{"sink":"x"}{"sink":"y"}`, 400, "more than one value"},
		{"too much", "POST", pathPause, js, `{"sink":"` + strings.Repeat("x", maxBody) + `"}`, 400, "too large"},
		{"a replay without a start must not replay everything", "POST", pathReplay, js, `{"sink":"x"}`, 400, "from: required"},
		{"ambiguous", "POST", pathSkip, js, `{"sink":"x","ids":["a","b"]}`, 400, "at most one change"},
		{"an order by GET", "GET", pathPause, js, "", 405, "Method Not Allowed"},
		{"no such order", "POST", "/v1/sinks/explode", js, `{}`, 404, "not found"},
	} {
		code, text := raw(t, c.Journal, tc.method, tc.path, tc.kind, strings.NewReader(tc.body))
		if code != tc.code || !strings.Contains(text, tc.want) {
			t.Errorf("%s: %d, %s", tc.why, code, text)
		}
	}
	if len(o.seen) > 0 {
		t.Errorf("it was done nevertheless: %v", o.seen)
	}
	if code, text := raw(t, c.Journal, "POST", pathPause, js, bytes.NewBufferString(`{"sink":"x"}`)); code != http.StatusOK || text != "{}\n" {
		t.Errorf("one that is right: %d, %s", code, text)
	}
	if err := c.order(t.Context(), "/v1/newer", request{}, nil); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("a daemon that does not know the order: %v", err)
	}
}

// TestNoDaemon: the ways in which no daemon is there, and those in which one is.
func TestNoDaemon(t *testing.T) {
	ctx := t.Context()
	for _, tc := range []struct {
		why  string
		make func(*testing.T, string)
	}{
		{"there never was one", func(*testing.T, string) {}},
		{"it was killed", abandon},
		{"something else is in its place", func(t *testing.T, j string) {
			if err := os.WriteFile(SocketPath(j), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		j := inDir(t)
		tc.make(t, j)
		err := second((&Client{Journal: j}).Status(ctx))
		var none *NoDaemonError
		if want := "no daemon records into " + j + ": start tattler run"; !errors.As(err, &none) || err.Error() != want {
			t.Errorf("%s: %v", tc.why, err)
		}
	}

	j := inDir(t)
	mute(t, j)
	c := &Client{Journal: j, patience: 50 * time.Millisecond}
	if err := second(c.Status(ctx)); !errors.Is(err, ErrSilent) || !strings.Contains(err.Error(), j+": it does not answer") {
		t.Errorf("it hangs: %v", err)
	}
	if _, err := c.ReplayDead(ctx, "x", []string{"a"}); !errors.Is(err, ErrSilent) || errors.Is(err, ErrUncertain) {
		t.Errorf("it hangs: %v", err)
	}
}

// TestAnotherUser: the socket of another user's daemon differs from a daemon that does not run.
func TestAnotherUser(t *testing.T) {
	c := &Client{Journal: "/j.db"}
	refused := &url.Error{Op: "Get", URL: "http://tattler/v1/status", Err: &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)}}
	err := c.explain(t.Context(), &question{}, refused)
	if want := "the daemon that records into /j.db belongs to another user, and only answers that user: dial unix: connect: permission denied"; err.Error() != want {
		t.Errorf("%v", err)
	}
}

// TestEndsMeanwhile: a daemon that goes away during a request.
func TestEndsMeanwhile(t *testing.T) {
	j := inDir(t)
	l, err := Listen(j)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, err := l.Accept(); err == nil {
			buf := make([]byte, 4096)
			_, _ = c.Read(buf)
			c.Close()
		}
		l.Close()
	}()
	err = second((&Client{Journal: j}).Status(t.Context()))
	var none *NoDaemonError
	if errors.As(err, &none) || err == nil || !strings.Contains(err.Error(), "ended before") {
		t.Error(err)
	}
	<-done
}

// TestSocket: the socket belongs to the owner, and replaces that of a killed daemon and nothing else.
func TestSocket(t *testing.T) {
	j := inDir(t)
	abandon(t, j)
	c := served(t, j, &orders{})
	if err := second(c.Status(t.Context())); err != nil {
		t.Errorf("after a killed one: %v", err)
	}
	if fi, err := os.Lstat(SocketPath(j)); err != nil || fi.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	if left, err := os.ReadDir(filepath.Dir(j)); err != nil || len(left) != 1 {
		t.Errorf("beside it is %v, %v", left, err)
	}

	other := inDir(t)
	if err := os.WriteFile(SocketPath(other), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(other); err == nil || !strings.Contains(err.Error(), "is in the way") {
		t.Errorf("a file in its place: %v", err)
	}
	if b, err := os.ReadFile(SocketPath(other)); string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := Listen(filepath.Join(t.TempDir(), "none", "journal.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such directory: %v", err)
	}
}

// TestSocketIsRemoved: after the daemon's end, no unserved socket is left.
func TestSocketIsRemoved(t *testing.T) {
	j := inDir(t)
	t.Run("while it is served", func(t *testing.T) { served(t, j, &orders{}) })
	if _, err := os.Lstat(SocketPath(j)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := Remove(j); err != nil {
		t.Errorf("twice: %v", err)
	}
}

// TestLongPath: a journal's path may be longer than a socket's address.
func TestLongPath(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, tc := range []struct{ why, dir, name string }{
		{"a deep directory", strings.Repeat("/directory", 15), "journal.db"},
		{"a long name", "", strings.Repeat("journal", 25) + ".db"},
	} {
		dir := filepath.Join(t.TempDir(), tc.dir)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		j := filepath.Join(dir, tc.name)
		t.Run(tc.why, func(t *testing.T) {
			c := served(t, j, &orders{})
			if err := second(c.Status(t.Context())); err != nil {
				t.Error(err)
			}
			if fi, err := os.Lstat(SocketPath(j)); err != nil || fi.Mode() != fs.ModeSocket|0o600 {
				t.Errorf("%v, %v", fi, err)
			}
		})
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("%s: links are left: %v, %v", tc.why, left, err)
		}
		abandon(t, j)
		var none *NoDaemonError
		if err := second((&Client{Journal: j}).Status(t.Context())); !errors.As(err, &none) {
			t.Errorf("%s, killed: %v", tc.why, err)
		}
		t.Setenv("TMPDIR", filepath.Join(temp, "none"))
		if _, err := Listen(j); err == nil || !strings.Contains(err.Error(), "choose a shorter path") {
			t.Errorf("%s, and no place for a link: %v", tc.why, err)
		}
		if err := second((&Client{Journal: j}).Status(t.Context())); err == nil || !strings.Contains(err.Error(), "choose a shorter path") {
			t.Errorf("%s, and no place for a link: %v", tc.why, err)
		}
		t.Setenv("TMPDIR", temp)
	}
}

// TestServeBreaks: a listener that fails gives an error.
func TestServeBreaks(t *testing.T) {
	l, err := Listen(inDir(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), l, Options{}); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// TestLink: a daemon is reached by any name of its journal.
func TestLink(t *testing.T) {
	file, link := inDir(t), inDir(t)
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	for _, names := range [][2]string{{file, link}, {link, file}} {
		t.Run("", func(t *testing.T) {
			served(t, names[0], &orders{})
			if s, err := (&Client{Journal: names[1]}).Status(t.Context()); err != nil || s.PID != 42 {
				t.Errorf("served beside %s, and asked beside %s: %+v, %v", names[0], names[1], s, err)
			}
		})
	}
}
