package informer_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestHistoryChecksAreBounded cuts many streams at once: all of them check the history, a few at a time.
func TestHistoryChecksAreBounded(t *testing.T) {
	const streams, most = 30, 3
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		server.Serve(widgets, "Widget")
		var o informer.SourceOptions
		for i := range streams {
			ns := fmt.Sprintf("n%d", i)
			o.Selection.Namespaces = append(o.Selection.Namespaces, ns)
			for _, name := range []string{"a", "b", "c", "d"} {
				server.Put(widgets, ns, name, spec(1))
			}
		}
		c, err := informer.NewCluster(server.Config(), informer.Options{MaxLists: most})
		if err != nil {
			t.Fatal(err)
		}
		source, err := c.Source(widgets, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		if err := source.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var mu sync.Mutex
		now, peak, all := 0, 0, 0
		server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
			if path.Base(path.Dir(r.URL.Path)) != "widgets" {
				return false // not of an object
			}
			mu.Lock()
			now++
			all++
			peak = max(peak, now)
			mu.Unlock()
			<-time.After(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return false
		})
		server.Cut()
		<-time.After(5 * time.Minute)
		synctest.Wait()
		if peak != most || all != 3*streams {
			t.Errorf("%d objects were asked for, %d at once; want %d, %d at once", all, peak, 3*streams, most)
		}
		for _, st := range source.Status() {
			if st.State != informer.Watching || st.Epoch != 1 {
				t.Errorf("%v: %v in epoch %d: %v", st.Stream, st.State, st.Epoch, st.Err)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// page answers requests for an object like a proxy that does not find the API server.
func page(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/widgets/b") {
		return false
	}
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, "<html>404</html>")
	return true
}

// TestNotFoundByAProxy: a proxy's 404 says nothing about an object.
func TestNotFoundByAProxy(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Intercept(page)
		r.server.Cut()
		r.pass(10 * time.Second)
		r.server.Put(widgets, "n", "a", spec(2))
		r.server.Bookmark()
		r.pass(10 * time.Second)
		if got := without(r.feed.take(), "="); got != "~ a 1001>1003" {
			r.Errorf("it tells\n%s", got)
		}
		if st := r.source.Status()[0]; st.Epoch != 1 {
			r.Errorf("epoch %d", st.Epoch)
		}
	})
}

// TestRestoreBehindAProxy: nor does it say anything about a restored state.
func TestRestoreBehindAProxy(t *testing.T) {
	restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
		k.firstRun(c)
		server.Intercept(page)
		s, f := k.keep(c, feed.Options{})
		end := k.follow(f)
		<-time.After(5 * time.Second)
		synctest.Wait()
		if st := s.Status()[0]; st.Synced || st.Err == nil {
			t.Errorf("while only the proxy answers: %+v", st)
		}
		server.Intercept(nil)
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.Close()
		if got := end(); got != "= 1002 epoch 1" {
			t.Errorf("got\n%s", got)
		}
	})
}
