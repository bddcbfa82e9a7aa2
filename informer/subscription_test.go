package informer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// changeLine writes changes as text: "+ ns/name node old>new".
func changeLine(t *testing.T, c *informer.Change[*corev1.Pod]) string {
	t.Helper()
	if c.Op == informer.Gapped {
		return "! " + c.Gap.Reason
	}
	before, err := c.Old()
	after, err2 := c.New()
	if err := errors.Join(err, err2); err != nil {
		t.Error(err)
	}
	node := func(p *corev1.Pod) string {
		if p == nil {
			return "."
		}
		return p.Spec.NodeName
	}
	text := fmt.Sprintf("%s %s/%s %s>%s", c.Op, c.Key.Namespace, c.Key.Name, node(before), node(after))
	if c.Initial {
		text += " initial"
	}
	return text
}

// take reads the changes that a subscription has now.
func take(t *testing.T, s *informer.Subscription[*corev1.Pod]) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var lines []string
	for c, err := range s.All(ctx) {
		if err != nil {
			break // it is empty or has ended
		}
		lines = append(lines, changeLine(t, c))
	}
	return strings.Join(lines, "\n")
}

func TestSubscriptions(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c, informer.InNamespaces("b")))(t)
		subscribe := func(name string, o informer.SubscribeOptions) *informer.Subscription[*corev1.Pod] {
			return must(all.Subscribe(name, o))(t)
		}
		latest := subscribe("latest", informer.SubscribeOptions{})
		every := subscribe("every", informer.SubscribeOptions{Mode: informer.Every})
		skip := subscribe("skip", informer.SubscribeOptions{SkipInitial: true})
		want := func(why string, s *informer.Subscription[*corev1.Pod], want string) {
			t.Helper()
			if got := take(t, s); got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", why, got, want)
			}
		}
		synced(t, c)
		synctest.Wait()
		server.Put(pods, "b", "one", podFields("x", "node-2"))
		server.Put(pods, "b", "one", podFields("x", "node-3"))
		server.Put(pods, "b", "brief", podFields("x", "node-2"))
		server.Delete(pods, "b", "brief")
		synctest.Wait()
		if n := latest.Lag().Objects; n != 1 {
			t.Errorf("latest lags by %d objects", n)
		}
		want("latest: one addition, and nothing for an object that came and went", latest, "added b/one .>node-3 initial")
		want("every version", every, "added b/one .>node-1 initial\nupdated b/one node-1>node-2\nupdated b/one node-2>node-3\n"+
			"added b/brief .>node-2\ndeleted b/brief node-2>.")
		want("changes since the first list are never skipped", skip, "updated b/one node-1>node-3")
		for _, s := range []*informer.Subscription[*corev1.Pod]{latest, every, skip} {
			select {
			case <-s.Synced():
			default:
				t.Error("a subscription that has everything is synced")
			}
		}
		server.Delete(pods, "b", "one")
		server.Put(pods, "b", "one", podFields("x", "node-4"))
		synctest.Wait()
		again := "deleted b/one node-3>.\nadded b/one .>node-4"
		want("a new UID is a delete and an add", latest, again)
		want("also in every", every, again)
		late := subscribe("late", informer.SubscribeOptions{})
		want("a late one gets the state", late, "added b/one .>node-4 initial")
		want("a late one that skips it does not", subscribe("late skip", informer.SubscribeOptions{SkipInitial: true}), "")

		server.Delete(pods, "b", "one")
		synctest.Wait()
		late.Drain()
		latest.Stop()
		server.Put(pods, "b", "after", podFields("x", "node-5"))
		synctest.Wait()
		want("drained: only the queued change", late, "deleted b/one node-4>.")
		for _, s := range []*informer.Subscription[*corev1.Pod]{late, latest} {
			if _, err := s.Next(t.Context()); !errors.Is(err, informer.ErrClosed) {
				t.Errorf("over: %v", err)
			}
		}
	})
}

// TestEveryOverflows: beyond its budget, mode Every reports a gap.
func TestEveryOverflows(t *testing.T) {
	var lag []informer.Lag
	o := informer.Options{Hooks: informer.Hooks{Lag: func(_ schema.GroupVersionResource, name string, l informer.Lag) {
		if name == "small" {
			lag = append(lag, l)
		}
	}}}
	bubble(t, o, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c, informer.InNamespaces("b")))(t)
		small := must(all.Subscribe("small", informer.SubscribeOptions{Mode: informer.Every, Budget: 4000, SkipInitial: true}))(t)
		synced(t, c)
		for i := range 50 {
			server.Put(pods, "b", "one", podFields("x", fmt.Sprint("node-", i)))
			synctest.Wait()
		}
		if got := take(t, small); got != "! slow consumer\nupdated b/one node-1>node-49" {
			t.Errorf("got %s", got)
		}
		if len(lag) == 0 {
			t.Error("the lag is not empty")
		}
	})
}

func TestHandle(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c, informer.InNamespaces("b")))(t)
		s := must(all.Subscribe("handlers", informer.SubscribeOptions{}))(t)
		synced(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		var calls []string
		call := func(f string, a ...any) { calls = append(calls, fmt.Sprintf(f, a...)) }
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.Handle(ctx, informer.Handlers[*corev1.Pod]{
				OnAdd:    func(p *corev1.Pod, initial bool) { call("add %s %v", p.Name, initial) },
				OnUpdate: func(old, p *corev1.Pod) { call("update %s %v", p.Name, old == p) },
				OnDelete: func(last *corev1.Pod) { call("delete %s", last.Name) },
				Resync:   time.Minute,
			})
		}()
		synctest.Wait()
		server.Put(pods, "b", "one", podFields("x", "node-2"))
		synctest.Wait()
		<-time.After(61 * time.Second)
		synctest.Wait()
		server.Delete(pods, "b", "one")
		synctest.Wait()
		cancel()
		<-done
		if got := strings.Join(calls, ", "); got != "add one true, update one false, update one true, delete one" {
			t.Errorf("called %s", got)
		}
	})
}

// replica is a user's store that may fail.
type replica struct {
	objects map[informer.Key]string
	version string
	resets  int
	fail    error
}

func (r *replica) Reset(context.Context) error {
	r.resets++
	r.objects = map[informer.Key]string{}
	return nil
}

func (r *replica) Put(_ context.Context, k informer.Key, p *corev1.Pod) error {
	r.objects[k] = p.Spec.NodeName
	return r.fail
}

func (r *replica) Delete(_ context.Context, k informer.Key) error {
	delete(r.objects, k)
	return nil
}

func (r *replica) Version(_ context.Context, _ informer.Stream, v string) error {
	r.version = v
	return nil
}

func TestMirror(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c))(t)
		r := &replica{}
		done := make(chan error)
		go func() { done <- all.Mirror(t.Context(), "replica", r) }()
		synced(t, c)
		server.Put(pods, "b", "one", podFields("x", "node-2"))
		v := server.Delete(pods, "a", "one")
		synctest.Wait()
		want := map[informer.Key]string{{Namespace: "a", Name: "two"}: "node-1", {Namespace: "b", Name: "one"}: "node-2"}
		if fmt.Sprint(r.objects) != fmt.Sprint(want) || r.version != v || r.resets != 1 {
			t.Errorf("at %s after %d resets: %v", r.version, r.resets, r.objects)
		}
		r.fail = errors.New("disk full")
		server.Put(pods, "b", "one", podFields("x", "node-3"))
		if err := <-done; err == nil || !strings.Contains(err.Error(), "mirror replica: b/one: disk full") {
			t.Errorf("it ends with the storage's error: %v", err)
		}
		all.Close()
		if err := all.Mirror(t.Context(), "over", r); !errors.Is(err, informer.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// TestMirrorAfterAGap: after lost history and a relist, a replica is not refilled.
func TestMirrorAfterAGap(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c))(t)
		r := &replica{}
		go func() { _ = all.Mirror(t.Context(), "replica", r) }()
		synced(t, c)
		synctest.Wait()
		server.SetDown(true)
		synctest.Wait()
		server.Delete(pods, "a", "one")
		server.Put(pods, "b", "one", podFields("x", "node-2"))
		server.Compact()
		server.SetDown(false)
		<-time.After(time.Minute)
		synctest.Wait()
		want := map[informer.Key]string{{Namespace: "a", Name: "two"}: "node-1", {Namespace: "b", Name: "one"}: "node-2"}
		if lists := all.Source().Status()[0].Lists; fmt.Sprint(r.objects) != fmt.Sprint(want) || r.resets != 1 || lists != 2 {
			t.Errorf("after %d lists and %d resets: %v", lists, r.resets, r.objects)
		}
	})
}

func TestWriteStatus(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c))(t)
		informer.AddIndex(all, "node", byNode)
		must(all.Subscribe("someone", informer.SubscribeOptions{}))(t)
		synced(t, c)
		synctest.Wait() // the index may have been added while objects were arriving
		var text strings.Builder
		if err := c.WriteStatus(&text); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"resource": "pods v1"`, `"state": "watching"`, `"objects": 3`, `"name": "someone"`, `"mode": "latest"`, `"format": "protobuf"`, `"state": "ready"`} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %s in %s", want, text.String())
			}
		}
	})
}

// TestSharedChanges: subscribers to shared objects receive the same objects, decoded once, and their budget ends with
// the last of them.
func TestSharedChanges(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		shared := must(informer.For[*corev1.Pod](c))(t).Shared()
		synced(t, c)
		var subscriptions []*informer.Subscription[*corev1.Pod]
		for i := range 3 {
			subscriptions = append(subscriptions, must(shared.Subscribe(fmt.Sprint("s", i), informer.SubscribeOptions{SkipInitial: true}))(t))
		}
		server.Put(pods, "b", "one", podFields("x", "node-2"))
		seen := map[*corev1.Pod]bool{}
		for _, s := range subscriptions {
			c, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p, err := c.New()
			if err != nil || p.Spec.NodeName != "node-2" {
				t.Fatalf("got %v, %v", p, err)
			}
			seen[p] = true
		}
		if len(seen) != 1 {
			t.Errorf("decoded %d times", len(seen))
		}
		for _, s := range subscriptions {
			s.Stop()
			s.Stop()
		}
		before := hotBytes(t, c)
		server.Put(pods, "b", "one", podFields("x", "node-3"))
		synctest.Wait()
		if now := hotBytes(t, c); now >= before {
			t.Errorf("without subscribers, new versions are still decoded: %d bytes, then %d", before, now)
		}
	})
}

// TestResourceVersionsOfAChange: a missing old or new object has no version.
func TestResourceVersionsOfAChange(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c))(t)
		s := must(all.Subscribe("versions", informer.SubscribeOptions{Mode: informer.Every, SkipInitial: true}))(t)
		defer s.Stop()
		synced(t, c)
		first := server.Put(pods, "a", "new", nil)
		second := server.Put(pods, "a", "new", podFields("x", "node-1"))
		server.Delete(pods, "a", "new")
		for _, want := range [][2]string{{"", first}, {first, second}, {second, ""}} {
			change := must(s.Next(t.Context()))(t)
			if got := [2]string{change.OldResourceVersion(), change.ResourceVersion()}; got != want {
				t.Errorf("%v from and to %q, want %q", change.Op, got, want)
			}
		}
	})
}
