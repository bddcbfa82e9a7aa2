package informer_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// deep is nested too deeply to be read.
var deep = strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)

// script answers watches with its frames, once they are set, until it ends.
type script struct {
	frames string
	known  chan struct{}
	over   chan struct{}
}

func newScript() *script { return &script{known: make(chan struct{}), over: make(chan struct{})} }

func (p *script) play(frames string) {
	p.frames = frames
	close(p.known)
}

func (p *script) answer(w http.ResponseWriter, r *http.Request) bool {
	select {
	case <-p.over:
		return false
	default:
	}
	if !isWatch(r) {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	for _, c := range []chan struct{}{p.known, p.over} {
		select {
		case <-c:
		case <-r.Context().Done():
		}
		if c == p.known {
			_, _ = io.WriteString(w, p.frames)
			w.(http.Flusher).Flush()
		}
	}
	return true
}

// frame returns the watch frame of a server's current object; with deep, an unreadable one.
func frame(t *testing.T, server *informertest.Server, gvr schema.GroupVersionResource, key string, tooDeep bool) string {
	t.Helper()
	o := maps.Clone(server.Objects(gvr)[key])
	o["apiVersion"], o["kind"] = gvr.GroupVersion().String(), map[schema.GroupVersionResource]string{pods: "Pod", widgets: "Widget"}[gvr]
	if tooDeep {
		o["deep"] = json.RawMessage(deep)
	}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"type":"MODIFIED","object":%s}`+"\n", raw)
}

// TestUnknownFrameAcrossARestart: a deletion that could not be read is not lost if the process ends before it has
// relisted.
func TestUnknownFrameAcrossARestart(t *testing.T) {
	restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
		k.firstRun(c)
		s, f := k.keep(c, feed.Options{})
		follow := k.follow(f)
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second)
		server.Misbehave(informertest.Fault{On: informertest.Watches, Effect: informertest.GarbleFrame, Times: 2})
		heal := server.Misbehave(informertest.Fault{On: informertest.Lists, Code: http.StatusServiceUnavailable})
		server.Delete(widgets, "n", "b") // garbled, twice
		synctest.Wait()
		server.Put(widgets, "n", "a", spec(2))
		<-time.After(100 * time.Millisecond)
		synctest.Wait()
		s.Close()
		heal()
		if got := follow(); strings.Contains(got, "1004") {
			t.Errorf("frames after the unreadable one were applied before a list: %s", got)
		}
		s, f = k.keep(c, feed.Options{})
		follow = k.follow(f)
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := s.Status()[0].Objects; n != 1 {
			t.Errorf("%d objects, the server has 1", n)
		}
		s.Close()
		if got := follow(); !strings.Contains(got, "- b 1002 final 1003\n~ a 1001>1004") || strings.Contains(got, "!") {
			t.Errorf("the second run reads on before the frame: %s", got)
		}
	})
}

// TestUnknownFrameAndACheckpoint is the same with a checkpoint.
func TestUnknownFrameAndACheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dir := podServer(), t.TempDir()
		var heal func()
		restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
			if err := all.Source().Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-time.After(10 * time.Second)
			server.Misbehave(informertest.Fault{On: informertest.Watches | informertest.StreamingLists, Effect: informertest.GarbleFrame, Times: 2})
			heal = server.Misbehave(informertest.Fault{On: informertest.StreamingLists | informertest.Lists, Code: http.StatusServiceUnavailable})
			server.Delete(pods, "a", "p2")
			synctest.Wait()
			server.Put(pods, "a", "p3", podFields("x", "node-2"))
			<-time.After(10 * time.Second)
		})
		heal()
		restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
			if err := all.Source().Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			compare(t, "a deletion could not be read", server, all)
		})
	})
}

// TestSkippedVersionAcrossARestart: an object with a skipped version is out of date. A later process relists, since no
// watch would deliver that version.
func TestSkippedVersionAcrossARestart(t *testing.T) {
	restored(t, func(t *testing.T, server *informertest.Server, c *informer.Cluster, k *keeper) {
		k.firstRun(c)
		server.Put(widgets, "n", "a", spec(2)) // 1003, unreadable
		server.Put(widgets, "n", "b", spec(2)) // 1004
		p := newScript()
		p.play(frame(t, server, widgets, "n/a", true) + frame(t, server, widgets, "n/b", false))
		server.Intercept(p.answer)
		s, f := k.keep(c, feed.Options{})
		follow := k.follow(f)
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if d := s.Status()[0].Dropped; d.Unreadable != 1 || d.LastErr == nil {
			t.Errorf("counted %+v", d)
		}
		s.Close()
		if got := follow(); !strings.Contains(got, "! unreadable") || !strings.Contains(got, "~ b 1002>1004") {
			t.Errorf("the first run: %s", got)
		}
		close(p.over)
		s, f = k.keep(c, feed.Options{})
		follow = k.follow(f)
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.Close()
		if got := follow(); !strings.Contains(got, "~ a 1001>1003 relisted\n= 1004") {
			t.Errorf("the second run does not read the version that was skipped: %s", got)
		}
	})
}

// TestSkippedVersionAndACheckpoint is the same with a checkpoint; once the object was read again, the state can be
// resumed.
func TestSkippedVersionAndACheckpoint(t *testing.T) {
	for _, tc := range []struct {
		why   string
		then  func(*informertest.Server)
		lists int
	}{
		{"it stays so", func(*informertest.Server) {}, 1},
		{"it is read again", func(s *informertest.Server) { s.Put(pods, "a", "p3", podFields("x", "node-5")) }, 0},
		{"it is deleted", func(s *informertest.Server) { s.Delete(pods, "a", "p3") }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			server, dir := podServer(), t.TempDir()
			restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
				if err := all.Source().Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				<-time.After(10 * time.Second)
				p := newScript()
				server.Intercept(p.answer)
				server.CloseWatches()
				<-time.After(time.Second)
				server.Put(pods, "a", "p3", podFields("x", "node-4"))
				server.Put(pods, "a", "p4", podFields("x", "node-4"))
				p.play(frame(t, server, pods, "a/p3", true) + frame(t, server, pods, "a/p4", false))
				<-time.After(5 * time.Second)
				if p, err := all.Get("a", "p3"); err != nil || p.Spec.NodeName != "node-1" {
					t.Errorf("%s: the version could be read: %+v", tc.why, p)
				}
				if p, err := all.Get("a", "p4"); err != nil || p.Spec.NodeName != "node-4" {
					t.Errorf("%s: later frames are not read: %+v", tc.why, p)
				}
				close(p.over)
				<-time.After(time.Second)
				tc.then(server)
				<-time.After(10 * time.Second)
			})
			asked := restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
				if err := all.Source().Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				compare(t, tc.why, server, all)
				<-time.After(10 * time.Second)
			})
			if n := lists(asked); n != tc.lists {
				t.Errorf("%s: %d lists, want %d", tc.why, n, tc.lists)
			}
			if n := lists(restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
				if err := all.Source().Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			})); n != 0 {
				t.Errorf("%s: the third run lists %d times", tc.why, n)
			}
		})
	}
}
