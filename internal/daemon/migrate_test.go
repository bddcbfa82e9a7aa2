package daemon

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/ops"
)

// holding is a log that blocks when a text is logged, until it is released.
type holding struct {
	slog.Handler
	text    string
	reached chan struct{}
	goOn    chan struct{}
}

func (h *holding) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, h.text) {
		close(h.reached)
		<-h.goOn
	}
	return nil
}

// migrating starts a daemon on a journal of an older format, and blocks it before it migrates or copies it. The
// address is that of the HTTP server.
func migrating(t *testing.T, at string) (h *holding, o Options, address string) {
	t.Helper()
	dir := t.TempDir()
	old, err := os.ReadFile("../journal/testdata/v3.journal")
	if err != nil {
		t.Fatal(err)
	}
	l, err := ops.Listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	h = &holding{Handler: slog.DiscardHandler, text: at, reached: make(chan struct{}), goOn: make(chan struct{})}
	h.Handler = slog.NewTextHandler(io.Discard, nil)
	r := newRig(t)
	o = Options{
		Config: r.server.Config(), Cluster: "prod", Scopes: []capture.Scope{{Types: []string{"configmaps"}}},
		Journal: filepath.Join(dir, "journal.db"), Key: filepath.Join(dir, "key"), listen: nowhere, Log: slog.New(h),
		Serve: func(ctx context.Context, status func(context.Context) (control.Status, error)) error {
			return ops.Serve(ctx, l, ops.Options{Status: status, Address: l.Addr().String()})
		},
	}
	if err := os.WriteFile(o.Journal, old, 0o600); err != nil {
		t.Fatal(err)
	}
	return h, o, l.Addr().String()
}

func get(t *testing.T, address, path string) (code int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	resp, err := client.Get("http://" + address + path)
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

// TestHealthWhileMigrating: a daemon that migrates its journal, which may take minutes, is alive and reports
// the current step, but is not ready. Then it continues, and the copy exists.
func TestHealthWhileMigrating(t *testing.T) {
	for _, doing := range []string{"copying the journal before its migration to format 4", "migrating the journal from format 3 to 4"} {
		h, o, address := migrating(t, doing)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Run(ctx, o) }()
		select {
		case <-h.reached:
		case err := <-ended:
			t.Fatalf("it has ended: %v", err)
		}
		if code, body := get(t, address, "/healthz"); code != http.StatusOK || body != "ok: "+doing+"\n" {
			t.Errorf("/healthz: %d %q", code, body)
		}
		if code, body := get(t, address, "/readyz"); code != http.StatusServiceUnavailable || !strings.HasPrefix(body, "the start: "+doing+" for ") {
			t.Errorf("/readyz: %d %q", code, body)
		}
		code, body := get(t, address, "/metrics")
		if code != http.StatusOK || !strings.Contains(body, "\ntattler_settled 0\n") || strings.Contains(body, "tattler_journal_") {
			t.Errorf("/metrics: %d %s", code, body)
		}
		close(h.goOn)
		for code := 0; code != http.StatusOK; { // limited by the test's timeout
			code, _ = get(t, address, "/readyz")
		}
		if code, body := get(t, address, "/healthz"); code != http.StatusOK || body != "ok\n" {
			t.Errorf("/healthz: %d %q", code, body)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if copies, err := journal.Copies(o.Journal); err != nil || len(copies) != 1 {
			t.Errorf("%v, %v", copies, err)
		}
	}
}

// TestEndWhileMigrating: stopping before the migration is not a failure, and leaves the journal unchanged.
func TestEndWhileMigrating(t *testing.T) {
	h, o, _ := migrating(t, "migrating")
	before, err := os.ReadFile(o.Journal)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	<-h.reached
	cancel()
	close(h.goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if after, err := os.ReadFile(o.Journal); err != nil || string(after) != string(before) {
		t.Errorf("the journal was changed, %v", err)
	}
	if _, err := os.Stat(o.Journal + "-reserve"); !os.IsNotExist(err) {
		t.Errorf("a reserve was made: %v", err)
	}
}

// TestStatusWhileMigrating: during a migration, the socket beside the journal answers, reports the current
// step, and refuses orders. It disappears if the migration is ended.
func TestStatusWhileMigrating(t *testing.T) {
	for _, doing := range []string{"copying the journal before its migration to format 4", "migrating the journal from format 3 to 4"} {
		for _, goesOn := range []bool{true, false} {
			h, o, _ := migrating(t, doing)
			o.listen = nil // the real one
			client := control.Client{Journal: o.Journal}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- Run(ctx, o) }()
			<-h.reached
			if s, err := client.Status(t.Context()); err != nil || s.Starting != doing || s.PID != os.Getpid() {
				t.Errorf("%+v, %v; want %q", s, err, doing)
			}
			if err := client.Pause(t.Context(), "hook", true); err == nil || !strings.Contains(err.Error(), "the daemon is starting") {
				t.Errorf("an order: %v", err)
			}
			if !goesOn {
				cancel()
			}
			close(h.goOn)
			for goesOn { // limited by the test's timeout
				if s, err := client.Status(t.Context()); err == nil && s.Starting == "" {
					break
				}
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(control.SocketPath(o.Journal)); !os.IsNotExist(err) {
				t.Errorf("the socket stays: %v", err)
			}
		}
	}
}
