package log

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/client"
	"github.com/tattler-dev/tattler/internal/web/client/clienttest"
)

// cable is a connection that can be cut.
type cable struct {
	http.RoundTripper
	cut atomic.Bool
}

func (c *cable) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errors.New("connection refused")
	}
	return c.RoundTripper.RoundTrip(r)
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
		f := follow(t, b.path, Options{Output: "text", Recording: running, Past: past.Flags{Serving: func(ctx context.Context) (past.Served, error) {
			r, err := journal.OpenReader(ctx, b.path)
			if err != nil {
				return nil, err
			}
			h, err := clienttest.Handler(access.New(r), nil)
			if err != nil {
				return nil, err
			}
			line.RoundTripper = clienttest.Transport{Handler: clienttest.As(h, access.Everything{})}
			return client.Open(ctx, client.Options{URL: "http://tattler", Client: &http.Client{Transport: &line}, Close: r.Close})
		}}})
		f.after(5*time.Second, "first")
		line.cut.Store(true)
		add("second")
		f.after(time.Minute)
		if said := f.err.take(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "the daemon does not answer (connection refused); trying again for 2m0s") {
			t.Errorf("while it is away: %q", said)
		}
		line.cut.Store(false)
		f.after(10*time.Second, "second")
		if said := f.err.take(); said != "the daemon answers again\n" {
			t.Errorf("after that: %q", said)
		}
		line.cut.Store(true)
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
