package log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/web/client"
	"github.com/tattler-dev/tattler/internal/web/client/clienttest"
)

// cable is a connection to a daemon that can fail.
type cable struct {
	http.RoundTripper
	fault atomic.Pointer[fault] // nil: none
}

// fault decides about a request: nil answers it.
type fault func(r *http.Request) (*http.Response, error)

func (c *cable) RoundTrip(r *http.Request) (*http.Response, error) {
	if f := c.fault.Load(); f != nil {
		if resp, err := (*f)(r); resp != nil || err != nil {
			return resp, err
		}
	}
	return c.RoundTripper.RoundTrip(r)
}

// fail makes requests fail from now on.
func (c *cable) fail(f fault) { c.fault.Store(&f) }

// mend ends that.
func (c *cable) mend() { c.fault.Store(nil) }

var errRefused = errors.New("connection refused")

func cut(*http.Request) (*http.Response, error) { return nil, errRefused }

// answers returns an answer; the connection breaks in its middle if broken.
func answers(code int, body string, broken error) fault {
	return func(r *http.Request) (*http.Response, error) {
		rest := io.Reader(strings.NewReader(body))
		if broken != nil {
			rest = io.MultiReader(rest, iotest.ErrReader(broken))
		}
		return &http.Response{StatusCode: code, Status: fmt.Sprint(code, " ", http.StatusText(code)), Header: http.Header{}, Body: io.NopCloser(rest), Request: r}, nil
	}
}

// serving opens the journal of a file as a daemon serves it, through the cable.
func (c *cable) serving(path string) func(context.Context) (past.Served, error) {
	return func(ctx context.Context) (past.Served, error) {
		r, err := journal.OpenReader(ctx, path)
		if err != nil {
			return nil, err
		}
		h, err := clienttest.Handler(access.New(r), nil)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		c.RoundTripper = clienttest.Transport{Handler: clienttest.As(h, access.Everything{})}
		j, err := client.Open(ctx, client.Options{URL: "http://tattler", Client: &http.Client{Transport: c}, Close: r.Close})
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		return j, nil
	}
}

// TestFollowLost: log -f of a daemon that cannot be reached says so, and goes on when it answers again; after a while it
// fails.
func TestFollowLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(t, time.Now())
		add := func(name string) {
			b.at = time.Now()
			b.add(maps, event.Created, "shop", name, nil, data("1"))
		}
		add("first")
		var line cable
		f := follow(t, b.path, Options{Output: "text", Recording: running, Past: past.Flags{Serving: line.serving(b.path)}})
		f.after(5*time.Second, "first")
		line.fail(cut)
		add("second")
		f.after(time.Minute)
		if said := f.err.take(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "the daemon does not answer (connection refused); trying again for 2m0s") {
			t.Errorf("while it is away: %q", said)
		}
		line.mend()
		f.after(10*time.Second, "second")
		if said := f.err.take(); said != "the daemon answers again\n" {
			t.Errorf("after that: %q", said)
		}
		line.fail(cut)
		select {
		case err := <-f.done:
			if err == nil || !strings.Contains(err.Error(), "the daemon has not answered for 2m0s: ask the daemon: ") || !strings.Contains(err.Error(), "connection refused") {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(3 * time.Minute):
			t.Error("it does not end")
		}
		b.close()
	})
}

// TestFollowBroken: the connection breaks while log -f reads changes, after some of them, and stays so for a while. Then each
// change was shown once, in order, and none counts as damaged.
func TestFollowBroken(t *testing.T) {
	for _, tc := range []struct {
		why   string
		fault fault
		said  string
	}{
		{"the daemon restarts", cut, "the daemon does not answer (connection refused)"},
		{"it ends in the middle of an answer", answers(200, `{"contents":[`, io.ErrUnexpectedEOF), "was cut off: unexpected EOF"},
		{"it ends before an answer", answers(200, "", nil), "was cut off: unexpected EOF"},
		{"it is too busy", answers(503, `{"error":"too many requests","reason":"busy"}`, nil), "the daemon answered: too many requests"},
		{"it cannot review rights", answers(503, `{"error":"your rights cannot be checked"}`, nil), "the daemon answered: your rights cannot be checked"},
		{"a proxy cannot reach it", answers(502, "bad gateway", nil), `answered 502 Bad Gateway: "bad gateway"`},
	} {
		for _, path := range []string{"raw/contents", "raw/rows"} {
			t.Run(tc.why+", "+path, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBook(t, time.Now())
					b.add(maps, event.Created, "shop", "first", nil, data("1"))
					var line cable
					f := follow(t, b.path, Options{Output: "oneline", Recording: running, Past: past.Flags{Serving: line.serving(b.path)}})
					f.after(5*time.Second, "cm/first")
					requests := 0
					line.fail(func(r *http.Request) (*http.Response, error) {
						if !strings.HasSuffix(r.URL.Path, path) {
							return nil, nil
						}
						if requests++; requests == 1 && path == "raw/contents" {
							return nil, nil // the first change is read, and the next ones are not
						}
						return tc.fault(r)
					})
					var rows []journal.Row
					var want []string
					b.at = time.Now()
					for i := range 20 {
						name := fmt.Sprintf("n%02d", i)
						rows = append(rows, b.row(maps, event.Created, "shop", name, nil, data("1")), b.row(maps, event.Updated, "shop", name, data("1"), data("1"), quiet))
						want = append(want, name)
					}
					b.append(rows...)
					<-time.After(time.Minute)
					line.mend()
					<-time.After(time.Minute)
					synctest.Wait()
					var got []string
					for shown := range strings.Lines(f.out.take()) {
						_, name, _ := strings.Cut(shown, "cm/")
						name, _, _ = strings.Cut(name, " ")
						got = append(got, strings.TrimSpace(name))
					}
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("shown (-want +got):\n%s", d)
					}
					said := strings.Split(f.end(), "\n")
					if len(said) != 4 || !strings.Contains(said[0], tc.said) || !strings.HasSuffix(said[0], "; trying again for 2m0s") || said[1] != "the daemon answers again" || said[2] != "20 quiet changes not shown (--noise)" {
						t.Errorf("said %q", said)
					}
					b.close()
				})
			})
		}
	}
}

// TestFollowBrokenForLong: log -f that gives up has shown all that it read, also what it folds.
func TestFollowBrokenForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(t, time.Now())
		b.add(widgets, event.Created, "pay", "w", nil, status("a"))
		var line cable
		f := follow(t, b.path, Options{Output: "text", Recording: running, Past: past.Flags{Serving: line.serving(b.path)}})
		f.after(5*time.Second, "widget/w")
		b.at = time.Now()
		b.add(widgets, event.Updated, "pay", "w", status("a"), status("b"))
		f.after(pollEvery)
		line.fail(cut)
		if err := <-f.done; err == nil || !strings.Contains(err.Error(), "the daemon has not answered for 2m0s") {
			t.Errorf("it ended with %v", err)
		}
		f.after(0, "widget/w")
		b.close()
	})
}

// TestBroken: if the connection breaks at any request of a command, the command fails and says why. It takes no change for
// damaged, and leaves none out.
func TestBroken(t *testing.T) {
	path := recorded(t)
	page := filepath.Join(t.TempDir(), "page.html")
	for _, tc := range []struct {
		why string
		o   Options
	}{
		{"events", Options{Limit: -1}},
		{"with a filter that reads objects", Options{Options: selection.Options{Paths: []string{"data"}}, Limit: 2}},
		{"with earlier changes that complete a story", Options{Options: selection.Options{Since: "58m"}, Output: "text", Limit: -1}},
		{"with a page", Options{Output: "text", HTML: page}},
		{"tables", Options{Stat: true}},
		{"related objects", Options{Options: selection.Options{Types: []string{"cm/a"}}, Related: true}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			var line cable
			tc.o.Past.Serving = line.serving(path)
			want, _, err := playOnce(t, path, tc.o)
			if err != nil {
				t.Fatal(err)
			}
			for _, once := range []bool{false, true} {
				for broken := 1; ; broken++ {
					n := 0
					line.fail(func(r *http.Request) (*http.Response, error) {
						if strings.HasSuffix(r.URL.Path, "/raw/schema") || strings.HasSuffix(r.URL.Path, "/raw/short-names") {
							return nil, nil // without these, changes are shown in a simpler form
						}
						if n++; n <= broken || once && n > broken+1 {
							return nil, nil
						}
						return nil, errRefused
					})
					out, said, err := playOnce(t, path, tc.o)
					switch {
					case err == nil && n > broken:
						t.Errorf("it succeeds although request %d fails:\n%s%s", broken+1, out, said)
					case err == nil && out != want:
						t.Errorf("without a failure (-before +now):\n%s", cmp.Diff(want, out))
					case err != nil && (!errors.Is(err, errRefused) || strings.Contains(out+said+err.Error(), "cannot be")):
						t.Errorf("request %d fails: %v\n%s%s", broken+1, err, out, said)
					}
					if n <= broken {
						break
					}
				}
			}
		})
	}
}
