package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// orders records its requests, and answers as a test requires.
type orders struct {
	mu   sync.Mutex
	seen []string
	err  error
}

func (o *orders) note(format string, args ...any) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, fmt.Sprintf(format, args...))
	return o.err
}

func (o *orders) Pause(_ context.Context, sink string, paused bool) error {
	return o.note("pause %s %v", sink, paused)
}

func (o *orders) Replay(_ context.Context, sink string, from Place) (Replayed, error) {
	return Replayed{Again: 3, Behind: 5, Paused: true}, o.note("replay %s %v %d", sink, from.Since.Format(time.RFC3339), from.After)
}

func (o *orders) ReplayDead(_ context.Context, sink string, ids []string) (Retried, error) {
	err := o.note("replay dead %s %s", sink, strings.Join(ids, ","))
	if err != nil {
		return Retried{Taken: 1}, err
	}
	return Retried{Taken: len(ids) - 1, Refused: 1}, nil
}

func (o *orders) Skip(_ context.Context, sink, id string) (Skipped, error) {
	return Skipped{ID: "i", Subject: "s", Error: "403"}, o.note("skip %s %s", sink, id)
}

func (o *orders) DropDead(_ context.Context, sink string, ids []string) (int, error) {
	return len(ids), o.note("drop %s %s", sink, strings.Join(ids, ","))
}

func (o *orders) Remove(_ context.Context, sink string) error {
	return o.note("remove %s", sink)
}

// served serves the orders beside a journal, and returns a client for it.
func served(t *testing.T, journal string, o Orders) *Client {
	t.Helper()
	l, err := Listen(journal)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	status := func(context.Context) (Status, error) {
		if o, ok := o.(*orders); ok {
			return Status{Cluster: "test", PID: 42}, o.err
		}
		return Status{}, nil
	}
	go func() { ended <- Serve(ctx, l, Options{Status: status, Orders: o}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := Remove(journal); err != nil {
			t.Error(err)
		}
	})
	return &Client{Journal: journal}
}

// raw sends an unmodified request, and returns the code and the answer.
func raw(t *testing.T, journal, method, path, contentType string, body io.Reader) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, SocketPath(journal)) },
	}}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://x"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// abandon leaves the socket of a killed daemon behind.
func abandon(t *testing.T, journal string) {
	t.Helper()
	l, err := Listen(journal)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// mute is a daemon that hangs: it accepts connections and never answers.
func mute(t *testing.T, journal string) {
	t.Helper()
	l, err := Listen(journal)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var taken []net.Conn
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				break
			}
			taken = append(taken, c)
		}
		for _, c := range taken {
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
}

func inDir(t *testing.T) string { return filepath.Join(t.TempDir(), "journal.db") }
