package informer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// pass lets seconds pass.
func pass(seconds int) {
	<-time.After(time.Duration(seconds) * time.Second)
	synctest.Wait()
}

// TestFinalWithoutManagedFields: managed fields are also dropped from a deleted object's last state.
func TestFinalWithoutManagedFields(t *testing.T) {
	managed := map[string]any{"metadata": map[string]any{"managedFields": []any{map[string]any{"manager": "test"}}}}
	before := func(s *informertest.Server) { s.Put(widgets, "n", "a", managed) }
	scenario(t, informer.SourceOptions{DropManagedFields: true}, before, func(r *rig) {
		f, err := feed.Join(r.source, "own", 0)
		if err != nil {
			r.Fatal(err)
		}
		synctest.Wait()
		r.server.Delete(widgets, "n", "a")
		synctest.Wait()
		for {
			b, err := f.Next(r.Context())
			if err != nil {
				r.Fatal(err)
			}
			if len(b.Deltas) == 0 || b.Deltas[0].Op != informer.Deleted {
				continue
			}
			for _, v := range []feed.Version{b.Deltas[0].Old, b.Deltas[0].Final} {
				if raw, err := v.JSON(); err != nil || len(raw) == 0 || strings.Contains(string(raw), "managedFields") {
					r.Errorf("%s, %v", raw, err)
				}
			}
			return
		}
	})
}

// TestRecreatedAndUnreadable: a deletion is delivered, although the object that has the name now cannot be transformed.
func TestRecreatedAndUnreadable(t *testing.T) {
	transform := &informer.Transform{Name: "test", Apply: func(u *unstructured.Unstructured) error {
		if v, _, _ := unstructured.NestedString(u.Object, "spec", "v"); v == "bad" {
			return errors.New("as asked")
		}
		return nil
	}}
	scenario(t, informer.SourceOptions{Transform: transform}, two, func(r *rig) {
		r.feed.take()
		r.server.SetDown(true)
		r.pass(time.Second)
		r.server.Delete(widgets, "n", "a")
		r.server.Put(widgets, "n", "a", spec("bad"))
		r.server.Put(widgets, "n", "b", spec("bad")) // the same object keeps its last good version
		r.server.Compact()
		r.server.SetDown(false)
		r.pass(time.Minute)
		r.want("the deletion, in the gap", "! expired, transform 1002..1005\n- a 1001 relisted\n= 1005 epoch 1")
	})
}

// TestLagOfAFeed: Hooks.Lag is called each time that a feed takes a batch.
func TestLagOfAFeed(t *testing.T) {
	reported := map[string]int{}
	o := informer.Options{Hooks: informer.Hooks{Lag: func(_ schema.GroupVersionResource, name string, _ informer.Lag) { reported[name]++ }}}
	bubble(t, o, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		s := must(c.Source(widgets, informer.SourceOptions{}))(t)
		f, err := feed.Join(s, "own", 0)
		if err != nil {
			t.Fatal(err)
		}
		synced(t, c)
		if _, err := f.Next(t.Context()); err != nil || reported["own"] != 1 {
			t.Errorf("reported %v, %v", reported, err)
		}
	})
}

// TestRetryAsSoonAsParked: a Retry or Retire from within the transition to Parked takes effect.
func TestRetryAsSoonAsParked(t *testing.T) {
	for name, react := range map[string]func(*feed.Feed){
		"Retry":            func(f *feed.Feed) { f.Retry("") },
		"Retire and Retry": func(f *feed.Feed) { f.Retire(); f.Retry("") },
		"Retry and Retire": func(f *feed.Feed) { f.Retry(""); f.Retire() },
	} {
		bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
			var f *feed.Feed
			parked := 0
			f = must(feed.Open(c, widgets, "own", feed.Options{SourceOptions: informer.SourceOptions{OnState: func(st informer.Status) {
				if st.State == informer.Parked {
					parked++
					server.Serve(widgets, "Widget")
					react(f)
				}
			}}}))(t)
			source := f.Source()
			synced(t, c)
			server.Unserve(widgets)
			pass(60)
			if st := source.Status()[0]; st.State != informer.Watching || parked != 1 || st.Objects != 3 {
				t.Errorf("%s: parked %d times, then %+v", name, parked, st)
			}
			gone := strings.Count(drainFeed(t, f), "- ")
			if want := map[bool]int{true: 3, false: 0}[name == "Retire and Retry"]; gone != want {
				t.Errorf("%s: %d deletions, want %d", name, gone, want)
			}
		})
	}
}

// drainFeed reads a feed's queued batches.
func drainFeed(t *testing.T, f *feed.Feed) string {
	t.Helper()
	var all []string
	for f.Lag().Objects > 0 {
		b, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, describe(b)...)
	}
	return strings.Join(all, "\n")
}

// TestWaitAfterRetry: after Retry, Wait does not return the error with which the stream was parked.
func TestWaitAfterRetry(t *testing.T) {
	before := func(s *informertest.Server) { s.Unserve(widgets) }
	scenario(t, informer.SourceOptions{}, before, func(r *rig) {
		r.park()
		r.server.Serve(widgets, "Widget")
		r.feed.feed.Retry("v1")
		if err := r.source.Wait(r.Context()); err != nil {
			r.Errorf("Wait: %v", err)
		}
	})
}

// TestHooksMayCall: a hook may call any method of the cluster, even within Retire.
func TestHooksMayCall(t *testing.T) {
	var cluster *informer.Cluster
	var f *feed.Feed
	gaps := 0
	o := informer.Options{Hooks: informer.Hooks{Gap: func(informer.Stream, informer.Gap) {
		gaps++
		var text strings.Builder
		if err := cluster.WriteStatus(&text); err != nil {
			t.Error(err)
		}
		f.Retire()
		f.Retry("")
	}}}
	bubble(t, o, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		cluster, f = c, must(feed.Open(c, widgets, "own", feed.Options{}))(t)
		source := f.Source()
		synced(t, c)
		server.Unserve(widgets)
		untilParked(t, source)
		server.Serve(widgets, "Widget")
		f.Retire()
		pass(10)
		if st := source.Status()[0]; st.State != informer.Watching || gaps != 1 {
			t.Errorf("%d gaps, then %+v", gaps, st)
		}
	})
}

// TestPassingInternalError: a single 500 does not switch a source to JSON; consecutive ones do.
func TestPassingInternalError(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		format := func(why, want string) {
			t.Helper()
			if text := status(t, c); !strings.Contains(text, fmt.Sprintf(`"format": %q`, want)) {
				t.Errorf("%s: want %s in %s", why, want, text)
			}
		}
		server.Misbehave(informertest.Fault{Protobuf: true, Code: 500, Times: 1})
		all := must(informer.For[*corev1.Pod](c))(t)
		synced(t, c)
		format("once", "protobuf")
		for range 3 {
			server.CloseWatches()
			pass(10)
			server.Misbehave(informertest.Fault{Protobuf: true, Code: 500, Times: 1})
			server.CloseWatches()
			pass(10)
		}
		format("now and then", "protobuf")
		server.Misbehave(informertest.Fault{Protobuf: true, Code: 500})
		for range 2 {
			server.CloseWatches()
			pass(10)
		}
		format("permanently", "JSON")
		if all.Len() != 3 {
			t.Errorf("%d objects", all.Len())
		}
	})
}

// TestPinnedIsStored: the decoded object of a version that is not stored is not kept.
func TestPinnedIsStored(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		must(informer.For[*corev1.Pod](c, informer.WithStorage(informer.LiveStorage)))(t)
		synced(t, c)
		before := hotBytes(t, c)
		for range 3 { // each starts a new epoch, in which contents are compared and found equal
			old := server.Snapshot()
			server.Skip(1000)
			server.Bookmark()
			pass(1)
			server.Restore(old)
			pass(60)
		}
		if now := hotBytes(t, c); now != before {
			t.Errorf("%d bytes of decoded objects, then %d", before, now)
		}
		server.Misbehave(informertest.Fault{On: informertest.StreamingLists, Effect: informertest.CutFrame, Times: 1})
		server.Skip(10)
		server.Compact()
		server.CloseWatches()
		pass(60)
		if now := hotBytes(t, c); now != before {
			t.Errorf("after a list that was given up: %d bytes of decoded objects, then %d", before, now)
		}
	})
}
