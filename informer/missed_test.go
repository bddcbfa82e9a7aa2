package informer_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// deaf removes frames from the watches of a cluster, if they contain "missed": a bug of the server or of the client.
func deaf(r *http.Request, ask roundTrips) (*http.Response, error) {
	resp, err := ask(r)
	if err != nil || r.URL.Query().Get("watch") != "true" {
		return resp, err
	}
	out, in := io.Pipe()
	body := resp.Body
	go func() {
		lines := bufio.NewReader(body)
		for {
			line, err := lines.ReadBytes('\n')
			if !bytes.Contains(line, []byte(`"missed"`)) {
				if _, err := in.Write(line); err != nil {
					return
				}
			}
			if err != nil {
				in.CloseWithError(err)
				return
			}
		}
	}()
	resp.Body = deafened{out, body}
	return resp, nil
}

type deafened struct {
	*io.PipeReader
	body io.Closer
}

func (d deafened) Close() error { return errors.Join(d.PipeReader.Close(), d.body.Close()) }

// timed runs a cluster in a bubble, and records gaps and when audits began.
type timed struct {
	*testing.T
	server *informertest.Server
	dir    string // of the checkpoint

	mu    sync.Mutex
	gaps  []informer.Gap
	clean time.Time // when the last audit without a finding began
}

func (r *timed) run(every time.Duration, f func(*informer.Source, *feed.Feed)) {
	r.Helper()
	cfg := r.server.Config()
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return roundTrips(func(q *http.Request) (*http.Response, error) { return deaf(q, rt.RoundTrip) })
	})
	c, err := informer.NewCluster(cfg, informer.Options{Checkpoint: r.dir, AuditEvery: every, Hooks: informer.Hooks{
		Gap: func(_ informer.Stream, g informer.Gap) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.gaps = append(r.gaps, g)
		},
		Audit: func(i informer.AuditInfo) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if i.Err == nil {
				r.clean = time.Now().Add(-i.Duration)
			}
		},
	}})
	if err != nil {
		r.Fatal(err)
	}
	s, err := c.Source(widgets, informer.SourceOptions{Paged: true}) // a streaming list goes on as a watch
	if err != nil {
		r.Fatal(err)
	}
	fd, err := feed.Join(s, "test", 0)
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	if err := s.Wait(ctx); err != nil {
		r.Fatal(err)
	}
	f(s, fd)
	cancel()
	if err := <-done; err != nil {
		r.Errorf("Run: %v", err)
	}
}

// gap returns the only gap so far.
func (r *timed) gap() informer.Gap {
	r.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.gaps) != 1 {
		r.Fatalf("gaps: %+v", r.gaps)
	}
	return r.gaps[0]
}

// until reads deltas up to the first one for which stop returns true.
func until(t *testing.T, f *feed.Feed, stop func(feed.Delta) bool) feed.Delta {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 48*time.Hour)
	defer cancel()
	for {
		b, err := f.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range b.Deltas {
			if stop(d) {
				return d
			}
		}
	}
}

func relisted(d feed.Delta) bool { return d.Relisted }

func clocked(t *testing.T, test func(*timed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &timed{T: t, server: informertest.NewServer(), dir: t.TempDir()}
		r.server.Serve(widgets, "Widget")
		two(r.server)
		test(r)
	})
}

// TestMissedSince: an audit finds an update that the watch did not deliver. It happened after the last comparison of all
// objects, and perhaps long before the last bookmark.
func TestMissedSince(t *testing.T) {
	for _, tc := range []struct {
		why    string
		before time.Duration // until the change
	}{
		{"before the first audit", time.Minute},
		{"after an audit", 13 * time.Hour},
	} {
		t.Run(tc.why, func(t *testing.T) {
			clocked(t, func(r *timed) {
				began := time.Now()
				r.run(6*time.Hour, func(s *informer.Source, f *feed.Feed) {
					<-time.After(tc.before)
					if !r.clean.IsZero() {
						began = r.clean
					}
					r.server.Put(widgets, "n", "a", spec("missed"))
					d := until(r.T, f, relisted)
					if !d.After.Equal(began) {
						r.Errorf("the change came after %v, want %v", d.After, began)
					}
					if g := r.gap(); g.Reason != informer.ReasonMissed || !g.Since.Equal(began) || !g.Until.Equal(d.At) {
						r.Errorf("the gap is %+v, want since %v, until %v", g, began, d.At)
					}
					if st := s.Status()[0]; !st.LastCurrent.Equal(d.At.Add(-2 * time.Second)) { // a server may answer a relist from its cache
						r.Errorf("after the list at %v, the stream was last current at %v", d.At, st.LastCurrent)
					}
				})
			})
		})
	}
}

// TestMissedBeforeRestart: an earlier run missed the update, and nothing says when it last compared all objects.
func TestMissedBeforeRestart(t *testing.T) {
	clocked(t, func(r *timed) {
		r.run(-1, func(*informer.Source, *feed.Feed) {
			<-time.After(time.Minute)
			r.server.Put(widgets, "n", "a", spec("missed"))
			r.server.Skip(1)
			<-time.After(5 * time.Minute)
		})
		<-time.After(time.Minute)
		r.run(6*time.Hour, func(s *informer.Source, f *feed.Feed) {
			if n := s.Status()[0].Lists; n != 0 {
				r.Fatalf("%d lists: it was not resumed", n)
			}
			if d := until(r.T, f, relisted); !d.After.IsZero() {
				r.Errorf("the change came after %v, but nothing is known", d.After)
			}
			if g := r.gap(); g.Reason != informer.ReasonMissed || !g.Since.IsZero() {
				r.Errorf("the gap is %+v", g)
			}
		})
	})
}

// TestLateGap: changes of an outage that are lost because the stream breaks again while the server sends them happened
// after the outage began.
func TestLateGap(t *testing.T) {
	clocked(t, func(r *timed) {
		r.run(-1, func(s *informer.Source, f *feed.Feed) {
			<-time.After(time.Hour)
			current := s.Status()[0].LastCurrent
			r.server.SetDown(true)
			<-time.After(time.Minute)
			for _, name := range []string{"first", "second", "third"} {
				r.server.Put(widgets, "n", name, nil)
			}
			r.server.Misbehave(informertest.Fault{On: informertest.Watches, Effect: informertest.CutFrame, Name: "second", Times: 1})
			r.server.SetDown(false)
			d := until(r.T, f, func(d feed.Delta) bool { return d.Key.Name == "first" })
			if d.Relisted || !d.After.Equal(current) {
				r.Errorf("%s: relisted %v, after %v, want %v", line(d), d.Relisted, d.After, current)
			}
			r.server.Compact()
			if st := s.Status()[0]; !st.LastCurrent.Equal(current) {
				r.Errorf("the stream was last current at %v, want %v", st.LastCurrent, current)
			}
			d = until(r.T, f, func(d feed.Delta) bool { return d.Key.Name == "second" })
			if !d.Relisted || !d.After.Equal(current) {
				r.Errorf("%s: relisted %v, after %v, want %v", line(d), d.Relisted, d.After, current)
			}
			if g := r.gap(); g.Reason != informer.ReasonExpired || !g.Since.Equal(current) {
				r.Errorf("the gap is %+v, want since %v", g, current)
			}
			if st := s.Status()[0]; !st.LastCurrent.After(current) {
				r.Errorf("after the list, the stream was last current at %v", st.LastCurrent)
			}
		})
	})
}
