package run

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// TestPage: one address serves the page, the daemon's status and the JSON API. Before the journal exists, it says so.
func TestPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protection, err := auth.New(auth.Options{Address: l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	status := func(context.Context) (control.Status, error) {
		return control.Status{Version: "v9", Cluster: "prod", Streams: []control.Stream{{Resource: "configmaps", State: control.Live}}}, nil
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- servePage(l, protection, &page{path: path, log: slog.New(slog.DiscardHandler)})(ctx, status)
	}()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	}()
	get := func(path string) (int, string) {
		resp, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if code, body := get("/"); code != http.StatusServiceUnavailable || !strings.Contains(body, "try again") {
		t.Errorf("before the journal exists: %d %s", code, body)
	}
	write(t, path)
	for path, want := range map[string]string{
		"/":                    "settings",
		"/status":              "configmaps",
		"/api/v1/openapi.json": `"openapi"`,
		"/api/v1/changes":      `"name":"settings"`,
		"/api/v1/status":       `"v9"`,
	} {
		if code, body := get(path); code != http.StatusOK || !strings.Contains(strings.ReplaceAll(body, ": ", ":"), want) {
			t.Errorf("%s: %d, without %q:\n%s", path, code, want, body)
		}
	}
	if code, _ := get("/api/v1/nothing"); code != http.StatusNotFound {
		t.Errorf("an unknown path of the API: %d", code)
	}
}

// write makes a journal with one change.
func write(t *testing.T, path string) {
	t.Helper()
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	k := journal.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}
	now := time.Now()
	_, err = j.Append(t.Context(), []journal.Batch{{
		Stream: journal.Stream{GroupResource: k.GroupResource()},
		Head:   journal.Head{Version: "7", Epoch: 1, Live: true, EverLive: true, At: now},
		Rows: []journal.Row{{
			Meta:  journal.Meta{Op: event.Created, Kind: k, Namespace: "shop", Name: "settings", UID: "u", ResourceVersion: "7", Time: now, At: now},
			After: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop","uid":"u","resourceVersion":"7"}}`),
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// allowing is a viewer who may see everything, or nothing.
type allowing bool

func (a allowing) May(_ context.Context, targets []access.Target) ([]bool, error) {
	all := make([]bool, len(targets))
	for i := range all {
		all[i] = bool(a)
	}
	return all, nil
}

func (allowing) Created(ctx context.Context, namespaces []access.Namespace) ([]time.Time, error) {
	return access.Everything{}.Created(ctx, namespaces)
}

// TestHideSubjects: the status names the object that blocks a sink only to viewers who may see it.
func TestHideSubjects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	write(t, path)
	r, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	st := control.Status{Sinks: []control.Sink{{Name: "log"}, {Name: "hook", Stuck: &control.Stuck{Subject: "settings"}}}}
	for e, err := range r.Rows(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		st.Sinks[1].Stuck.ID = e.ID
	}
	s := access.New(r)
	for may, want := range map[allowing]string{true: "settings", false: "an object that you may not see"} {
		if got := hideSubjects(access.With(t.Context(), may), s, st).Sinks[1].Stuck.Subject; got != want {
			t.Errorf("%v: %s", may, got)
		}
	}
	if st.Sinks[1].Stuck.Subject != "settings" {
		t.Error("the daemon's status was changed")
	}
}
