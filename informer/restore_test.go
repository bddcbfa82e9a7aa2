package informer_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// keeper is a consumer that keeps a feed's state, and can reopen a source with it.
type keeper struct {
	t *testing.T

	mu       sync.Mutex
	objects  map[informer.Key]feed.RestoredObject
	version  string // of the last batch, if it was live
	epoch    int64
	identity string
	trusted  bool
	at       time.Time

	asked     int   // calls of Restore
	err       error // of Restore, once
	objectErr error // of Objects, once
}

func newKeeper(t *testing.T) *keeper {
	return &keeper{t: t, objects: map[informer.Key]feed.RestoredObject{}, trusted: true}
}

func (k *keeper) restore(_ context.Context, s informer.Stream) (*feed.Restored, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if s.Resource != widgets {
		k.t.Errorf("asked for %v", s)
	}
	if err := k.err; err != nil {
		k.err = nil
		return nil, err
	}
	if k.epoch == 0 {
		return nil, nil
	}
	r := &feed.Restored{
		Epoch: k.epoch, Version: k.version, Trusted: k.trusted, Identity: k.identity, At: k.at,
		Objects: k.all(k.objectErr, slices.Collect(maps.Values(k.objects))),
	}
	k.objectErr = nil
	return r, nil
}

func (k *keeper) all(err error, objects []feed.RestoredObject) iter.Seq2[feed.RestoredObject, error] {
	return func(yield func(feed.RestoredObject, error) bool) {
		for _, o := range objects {
			if err != nil {
				yield(feed.RestoredObject{}, err)
				return
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}

// take keeps a batch.
func (k *keeper) take(b feed.Batch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b.Phase == feed.Listing && b.Gap == nil && len(b.Deltas) == 0 {
		return // nothing was read yet
	}
	k.epoch, k.version, k.at = b.Epoch, b.Version, b.Current
	for _, d := range b.Deltas {
		if d.Op == informer.Deleted {
			delete(k.objects, d.Key)
			continue
		}
		raw, err := d.New.JSON()
		if err != nil {
			k.t.Error(err)
		}
		k.objects[d.Key] = feed.RestoredObject{
			Key: d.Key, UID: string(d.UID), ResourceVersion: d.New.ResourceVersion, JSON: raw,
		}
	}
}

// keep opens a source that starts with the keeper's state, and a feed that delivers only differences.
func (k *keeper) keep(c *informer.Cluster, o feed.Options) (*informer.Source, *feed.Feed) {
	k.t.Helper()
	o.Restore, o.Paged = k.restore, true
	f, err := feed.Open(c, widgets, "keeper", o)
	if err != nil {
		k.t.Fatal(err)
	}
	return f.Source(), f
}

// follow keeps a feed's batches until its source is closed, and returns them as text.
func (k *keeper) follow(f *feed.Feed) (end func() string) {
	var delivered []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			b, err := f.Next(context.Background())
			if err != nil {
				return
			}
			k.take(b)
			delivered = append(delivered, describe(b)...)
		}
	}()
	return func() string {
		<-done
		return strings.Join(delivered, "\n")
	}
}

// firstRun lets a keeper have a and b, whose server is at 1002.
func (k *keeper) firstRun(c *informer.Cluster) {
	k.t.Helper()
	s, f := k.keep(c, feed.Options{})
	end := k.follow(f)
	if err := s.Wait(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
	synctest.Wait()
	s.Close()
	if got := end(); got != "+ a 1001 initial\n+ b 1002 initial\n= 1002 epoch 1" {
		k.t.Errorf("without a state it is listed: %s", got)
	}
}

// restored runs a test in a bubble whose cluster runs, with a keeper of widgets.
func restored(t *testing.T, test func(*testing.T, *informertest.Server, *informer.Cluster, *keeper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		server.Serve(widgets, "Widget")
		two(server)
		server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/kube-system") {
				return false
			}
			_, err := io.WriteString(w, `{"metadata":{"uid":"this"}}`)
			return err == nil
		})
		c, err := informer.NewCluster(server.Config(), informer.Options{AuditEvery: -1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		test(t, server, c, newKeeper(t))
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestRestore(t *testing.T) {
	for _, tc := range []struct {
		why   string
		while func(*informertest.Server, *keeper) // between the two runs
		lists int
		want  string // what the feed delivers
		asked int    // calls of Restore
	}{
		{"nothing happened: it is watched on", func(*informertest.Server, *keeper) {}, 0, "= 1002 epoch 1", 1},
		{"only changes are delivered", func(s *informertest.Server, _ *keeper) {
			s.Put(widgets, "n", "a", spec(2))
			s.Delete(widgets, "n", "b")
		}, 0, "~ a 1001>1003\n- b 1002 final 1004\n= 1004 epoch 1", 1},
		{"other bytes are compared by content", func(_ *informertest.Server, k *keeper) {
			k.trusted = false
			o := k.objects[informer.Key{Namespace: "n", Name: "a"}]
			o.JSON = []byte(strings.Replace(string(o.JSON), `"spec"`, `"was"`, 1))
			k.objects[o.Key] = o
		}, 1, "~ a 1001>1001 relisted\n= 1002 epoch 1", 1},
		{"a list was under way: the history is unverified", func(_ *informertest.Server, k *keeper) {
			k.version = ""
			o := k.objects[informer.Key{Namespace: "n", Name: "b"}]
			o.JSON = []byte(strings.Replace(string(o.JSON), `"spec"`, `"was"`, 1))
			k.objects[o.Key] = o
		}, 1, "~ b 1002>1002 relisted\n= 1002 epoch 1", 1},
		{"another cluster's state", func(_ *informertest.Server, k *keeper) { k.identity = "another" }, 1,
			"! history-changed 1002..1002\n= 1002 epoch 2", 1},
		{"a failed Restore is repeated", func(_ *informertest.Server, k *keeper) {
			k.err, k.objectErr = errors.New("locked"), errors.New("damaged")
		}, 0, "= 1002 epoch 1", 3},
		{"there are no objects", func(s *informertest.Server, k *keeper) {
			clear(k.objects)
			s.Delete(widgets, "n", "a")
			s.Delete(widgets, "n", "b")
			k.version = s.Version()
		}, 0, "= 1004 epoch 1", 1},
	} {
		t.Run(tc.why, func(t *testing.T) {
			restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
				k.firstRun(c)
				k.identity, k.asked = "this", 0
				tc.while(server, k)
				before := len(server.Requests())
				s, f := k.keep(c, feed.Options{})
				end := k.follow(f)
				if err := s.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				n := 0
				for _, asked := range server.Requests()[before:] {
					if strings.Contains(asked, "/widgets?") && !strings.Contains(asked, "watch=") && !strings.Contains(asked, "limit=1&") && !strings.HasSuffix(asked, "limit=1") {
						n++
					}
				}
				if n != tc.lists || k.asked != tc.asked {
					t.Errorf("%d lists, want %d; Restore was called %d times, want %d: %q", n, tc.lists, k.asked, tc.asked, server.Requests()[before:])
				}
				s.Close()
				if got := end(); got != tc.want {
					t.Errorf("got\n%s\nwant\n%s", got, tc.want)
				}
			})
		})
	}
}

// TestRestoreFails: while Restore fails, the stream waits with its error, and sends no requests.
func TestRestoreFails(t *testing.T) {
	restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
		k.err = errors.New("locked")
		s, _ := k.keep(c, feed.Options{})
		synctest.Wait()
		st := s.Status()[0]
		if st.State != informer.Waiting || st.Err == nil || !strings.Contains(st.Err.Error(), "restore: locked") || st.Attempts != 1 {
			t.Errorf("status: %+v", st)
		}
		if asked := server.Requests(); len(asked) != 0 {
			t.Errorf("asked %q", asked)
		}
		if err := s.Wait(t.Context()); err != nil {
			t.Errorf("then it goes on: %v", err)
		}
	})
}

// TestRestoredAfter: the differences that a list finds happened after the state was current, however many lists failed
// before.
func TestRestoredAfter(t *testing.T) {
	restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
		k.firstRun(c)
		saved := k.at
		k.version = ""
		<-time.After(2 * time.Hour)
		server.Put(widgets, "n", "a", spec(2))
		server.Misbehave(informertest.Fault{On: informertest.Lists, Code: 500, Times: 2})
		_, f := k.keep(c, feed.Options{})
		for {
			b, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Deltas) == 0 {
				continue
			}
			if d := b.Deltas[0]; !d.Relisted || !d.After.Equal(saved) {
				t.Errorf("%s relisted %v, after %v, want %v", line(d), d.Relisted, d.After, saved)
			}
			return
		}
	})
}

// TestStrictFeed: a feed that ends because it is behind loses nothing if its source is reopened with the kept state.
func TestStrictFeed(t *testing.T) {
	restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
		k.firstRun(c)
		s, f := k.keep(c, feed.Options{Strict: true, Budget: 4000})
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			server.Put(widgets, "n", "a", spec(i))
			synctest.Wait()
		}
		delivered := 0
		for {
			b, err := f.Next(t.Context())
			if errors.Is(err, feed.ErrBehind) {
				break
			}
			if err != nil || b.Gap != nil {
				t.Fatalf("neither batches without a gap nor the end: %+v, %v", b.Gap, err)
			}
			k.take(b)
			delivered += len(b.Deltas)
		}
		if delivered == 0 || delivered == 100 {
			t.Errorf("%d versions were delivered before the end", delivered)
		}
		if text := status(t, c); strings.Contains(text, `"name": "keeper"`) {
			t.Errorf("the feed is over: %s", text)
		}
		s.Close()
		s, f = k.keep(c, feed.Options{Strict: true})
		end := k.follow(f)
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.Close()
		if got := end(); strings.Contains(got, "!") || strings.Contains(got, "initial") || strings.Count(got, "~ a ") != 100-delivered {
			t.Errorf("want every version, without a gap: %s", got)
		}
	})
}

func status(t *testing.T, c *informer.Cluster) string {
	t.Helper()
	var text strings.Builder
	if err := c.WriteStatus(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestRestoreNeedsJSON: with Restore a typed view reads JSON, and protobuf is refused.
func TestRestoreNeedsJSON(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		none := func(context.Context, informer.Stream) (*feed.Restored, error) { return nil, nil }
		binary := feed.Options{SourceOptions: informer.SourceOptions{Format: informer.Protobuf}, Restore: none}
		if _, err := feed.Open(c, pods, "none", binary); err == nil || !strings.Contains(err.Error(), "Restore needs JSON") {
			t.Errorf("protobuf: %v", err)
		}
		f, err := feed.Open(c, pods, "first", feed.Options{Restore: none})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		all := must(informer.For[*corev1.Pod](c, informer.On(f.Source())))(t)
		synced(t, c)
		if got := keys(all.All()); got != "a/one a/two b/one" {
			t.Errorf("it has %s", got)
		}
	})
}
