package web

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// liveEvent is a server-sent event as a browser reads it.
type liveEvent struct{ name, id, data string }

// browser reads the events of a live page. It remembers the id as a browser does.
type browser struct {
	t      *testing.T
	srv    *httptest.Server
	lastID string
	lines  *bufio.Scanner
	leave  func()
}

// connect opens the live page, as a browser that has seen the event with lastID.
func (b *browser) connect(url string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.srv.URL+url, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.lastID != "" {
		r.Header.Set("Last-Event-ID", b.lastID)
	}
	resp, err := b.srv.Client().Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.lines = bufio.NewScanner(resp.Body)
	b.leave = cancel
	b.t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close()
	})
}

// next returns the next event.
func (b *browser) next() (e liveEvent) {
	b.t.Helper()
	for b.lines.Scan() {
		name, value, _ := strings.Cut(b.lines.Text(), ": ")
		switch name {
		case "event":
			e.name = value
		case "id":
			b.lastID = value
			e.id = value
		case "data":
			e.data += value + "\n"
		case "":
			if e.name != "" && e.name != "mark" {
				return e
			}
			e = liveEvent{}
		}
	}
	b.t.Fatalf("the live page ended: %v", b.lines.Err())
	return e
}

var shownName = regexp.MustCompile(`</span>([a-z0-9-]+)</a>`)

// TestLiveAgain: a browser whose connection breaks after any event gets all later entries when it connects again.
func TestLiveAgain(t *testing.T) {
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	b.set(cmKind, "shop", "before", "helm", configMap("k", "v"), nil)
	p := newPage(t, b.path, b.at.Add(time.Minute))
	srv := httptest.NewServer(p)
	defer srv.Close()
	c := &browser{t: t, srv: srv}
	var want, got []string
	for i := range 5 { // recorded at once
		name := fmt.Sprint("new-", i)
		want = append(want, name)
		b.set(cmKind, "shop", name, "helm", configMap("k", "v"), nil)
	}
	for n := range len(want) + 1 { // the connection breaks after n events
		c.connect("/live?after=1")
		for range n {
			got = append(got, shownName.FindStringSubmatch(c.next().data)[1])
		}
		c.leave()
	}
	slices.Sort(got)
	if !slices.Equal(slices.Compact(got), want) {
		t.Errorf("a browser that connects again after each event sees %v, want %v", got, want)
	}
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLiveFuture: a change that a daemon with a wrong clock recorded is live at once, and so are those after it.
func TestLiveFuture(t *testing.T) {
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	now, began := b.at, time.Now()
	p := newPage(t, b.path, now)
	p.o.Now = func() time.Time { return now.Add(time.Since(began)) }
	srv := httptest.NewServer(p)
	defer srv.Close()
	c := &browser{t: t, srv: srv}
	c.connect("/live?after=0")
	for i, at := range []time.Time{time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), now, now.Add(time.Hour), now.Add(-time.Hour), now} {
		b.at = at
		name := fmt.Sprint("new-", i)
		b.set(cmKind, "shop", name, "helm", configMap("k", "v"), nil)
		b.wait(time.Second)
		b.set(podKind, "shop", name, "kubelet", pod("web:1", "Running", "", 0), nil)
		if e := c.next(); !strings.Contains(e.data, name+"</a>") {
			t.Errorf("got %s, want %s", e.data, name)
		}
		if e := c.next(); !strings.Contains(e.data, name+"</a>") {
			t.Errorf("got %s, want the pod %s", e.data, name)
		}
	}
	c.leave()
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
}
