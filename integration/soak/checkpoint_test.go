package soak

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/devcluster/clustertest"
	"github.com/tattler-dev/tattler/informer"
)

// stored are informers of a cluster with a checkpoint: two formats, metadata, a selector, several
// streams.
type stored struct {
	pods    *informer.Informer[*corev1.Pod]
	golden  *informer.Informer[*metav1.PartialObjectMetadata]
	spread  *informer.Informer[*unstructured.Unstructured]
	widgets *informer.Informer[*unstructured.Unstructured]
}

func openStored(c *informer.Cluster) (s stored, err error) {
	if s.pods, err = informer.For[*corev1.Pod](c); err != nil {
		return s, err
	}
	if s.golden, err = informer.Metadata(c, podResource, informer.WithLabels(tierLabel+"="+gold)); err != nil {
		return s, err
	}
	if s.spread, err = informer.Unstructured(c, podResource, informer.InNamespaces(namespaces[:2]...)); err != nil {
		return s, err
	}
	s.widgets, err = informer.Unstructured(c, widgetResource)
	return s, err
}

// keeper is a cluster with a checkpoint, and its views.
type keeper struct {
	*running
	*testing.T
	world *world
	views []view
	pods  *watched[*corev1.Pod]
	trail *trail[*corev1.Pod]
}

// keeper opens a cluster on a checkpoint; it is not started.
func (w *world) keeper(ctx context.Context, t *testing.T, dir string, r rules) *keeper {
	t.Helper()
	// Without audits, whose lists would be counted as the streams'.
	k := &keeper{running: w.open(t, informer.Options{Checkpoint: dir, AuditEvery: -1}, nil), T: t, world: w}
	s := must(openStored(k.Cluster))(t)
	selected := r
	selected.returns = true
	k.pods = &watched[*corev1.Pod]{name: "pods", Informer: s.pods, list: w.typed(nil, metav1.ListOptions{}), kind: podKind}
	k.trail = follow(ctx, t, k.pods, "latest", informer.SubscribeOptions{FromCheckpoint: true}, r, nil)
	indexed(k.pods, "ip", podIPs)
	golden := &watched[*metav1.PartialObjectMetadata]{
		name: "metadata of golden pods", Informer: s.golden,
		list: w.partial(podResource, nil, metav1.ListOptions{LabelSelector: tierLabel + "=" + gold}), kind: partialKind,
	}
	follow(ctx, t, golden, "latest", informer.SubscribeOptions{}, selected, nil)
	spread := &watched[*unstructured.Unstructured]{
		name: "pods of two namespaces", Informer: s.spread, list: w.maps(podResource, namespaces[:2], metav1.ListOptions{}),
	}
	follow(ctx, t, spread, "every", informer.SubscribeOptions{Mode: informer.Every, FromCheckpoint: true}, r, nil)
	widgets := &watched[*unstructured.Unstructured]{
		name: "widgets", Informer: s.widgets, list: w.maps(widgetResource, nil, metav1.ListOptions{}),
	}
	follow(ctx, t, widgets, "latest", informer.SubscribeOptions{}, r, nil)
	k.views = []view{k.pods, golden, spread, widgets}
	return k
}

// loaded starts the cluster where nobody answers, and returns what it has nevertheless.
func (k *keeper) loaded(ctx context.Context) []map[informer.Key]version {
	k.Helper()
	k.line.refuse(true)
	began := time.Now()
	k.start(k.T)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, v := range k.views {
		if err := v.source().WaitForLoad(ctx); err != nil {
			k.Fatalf("%s: %v", v.label(), err)
		}
		for _, st := range v.source().Status() {
			if st.Synced {
				k.Errorf("%s: synced, though the server was not asked", v.label())
			}
		}
	}
	k.Logf("loaded after %v", time.Since(began).Round(time.Millisecond))
	var states []map[informer.Key]version
	for _, v := range k.views {
		states = append(states, v.state())
	}
	return states
}

// sync waits until everything is current, with something that was written just now.
func (k *keeper) sync(ctx context.Context) {
	k.Helper()
	ctx, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	k.line.refuse(false)
	began := time.Now()
	if err := k.WaitForSync(ctx); err != nil {
		k.Fatalf("%v\n%s", err, k.dump())
	}
	k.Logf("synced after %v", time.Since(began).Round(time.Millisecond))
	marks := must(k.world.mark(ctx, rand.New(rand.NewPCG(k.world.seed, uint64(k.world.ledger.next())))))(k.T)
	for _, v := range k.views {
		if err := clustertest.Poll(ctx, 20*time.Millisecond, func() error { return current(v, marks) }); err != nil {
			k.Fatalf("%v\n%s", err, k.dump())
		}
	}
}

// settle waits until every view equals a fresh list, and holds what was shown against what was
// written. Nobody writes any more.
func (k *keeper) settle(ctx context.Context) {
	k.Helper()
	began := time.Now()
	defer func() { k.Logf("held against fresh lists in %v", time.Since(began).Round(time.Millisecond)) }()
	for _, v := range k.views {
		within, cancel := context.WithTimeout(ctx, recovery)
		if err := v.equal(within); err != nil {
			k.Error(err)
		}
		cancel()
		if err := v.verify(k.world.ledger); err != nil {
			k.Error(err)
		}
		for _, st := range v.source().Status() {
			if st.Checkpoint != nil {
				k.Errorf("%s: checkpoint: %v", v.label(), st.Checkpoint)
			}
		}
	}
	if n := k.counters.all("checkpoint error"); len(n) > 0 {
		k.Errorf("errors of checkpoints: %v", n)
	}
}

// end stops the cluster and returns what it had.
func (k *keeper) end() (states []map[informer.Key]version) {
	k.Helper()
	for _, v := range k.views {
		states = append(states, v.replayed())
	}
	if err := k.stop(); err != nil {
		k.Fatal(err)
	}
	return states
}

// meanwhile changes things while nobody looks: many, and some in a certain way.
func (w *world) meanwhile(ctx context.Context, t *testing.T, occasion uint64) {
	t.Helper()
	c := w.churn(ctx, occasion)
	err := c.some(ctx, 150)
	c.stop()
	if err != nil {
		t.Fatal(err)
	}
	h := &hand{world: w, rng: rand.New(rand.NewPCG(w.seed, occasion))}
	for n := range 10 {
		for _, do := range []func(context.Context, object) error{h.delete, h.create, h.status} {
			if err := do(ctx, w.pod(n*7)); err != nil && !isRefusal(err) {
				t.Fatal(err)
			}
		}
		if err := h.delete(ctx, w.pod(n*7+1)); err != nil && !isRefusal(err) {
			t.Fatal(err)
		}
	}
	// Others write as well, as in any cluster. An API server has no bookmark for a watch that was
	// told of the last write of all, though it was not selected.
	_, err = w.client.CoreV1().ConfigMaps("default").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "soak-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheckpoint stops a cluster and starts it again, in every way that there is while the server's
// history goes on.
func TestCheckpoint(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+time.Duration(here.size)*20*time.Millisecond)
	defer cancel()
	w, dir := here, filepath.Join(t.TempDir(), "state")

	k := w.keeper(ctx, t, dir, rules{})
	k.start(t)
	k.sync(ctx)
	w.meanwhile(ctx, t, 20)
	k.sync(ctx)
	k.settle(ctx)
	if len(k.requests.lists()) == 0 {
		t.Error("the first start asked for no list: the log of requests sees nothing")
	}
	left := k.end()

	t.Run("stopped", func(t *testing.T) {
		w.meanwhile(ctx, t, 21)
		k := w.keeper(ctx, t, dir, rules{})
		for i, state := range k.loaded(ctx) {
			if err := differ(state, left[i]); err != nil {
				t.Errorf("%s: what was loaded is not what there was: %v", k.views[i].label(), err)
			}
		}
		k.sync(ctx)
		k.settle(ctx)
		k.resumed()
		k.end()
	})

	t.Run("killed", func(t *testing.T) {
		c := w.churn(ctx, 22)
		for range 2 { // the second goes on with what the first one left
			w.killed(ctx, t, dir, func() {
				if err := c.some(ctx, 100+rand.New(rand.NewPCG(w.seed, 22)).Int64N(100)); err != nil {
					t.Error(err)
				}
			})
		}
		c.stop()
		w.meanwhile(ctx, t, 23)
		k := w.keeper(ctx, t, dir, rules{})
		k.loaded(ctx)
		k.sync(ctx)
		k.settle(ctx)
		k.resumed()
		left = k.end()
	})

	t.Run("forgotten", func(t *testing.T) {
		w.meanwhile(ctx, t, 24)
		if err := w.forget(ctx); err != nil {
			t.Fatal(err)
		}
		k := w.keeper(ctx, t, dir, rules{})
		k.loaded(ctx)
		k.sync(ctx)
		k.settle(ctx)
		if k.counters.of("expired") == 0 || len(k.requests.lists()) == 0 {
			t.Errorf("no 410, or no list after it: %v", k.counters.n)
		}
		if err := k.onlyDifferences(left[0]); err != nil {
			t.Error(err)
		}
		k.end()
	})

	if err := leftOver(ctx); err != nil {
		t.Error(err)
	}
}

// manyPods are so many that to hold them against lists takes minutes, in which an API server's memory of
// what happened to them may shrink to its least, a hundred changes.
const manyPods = 5000

// resumed checks that nothing but what had changed was asked for.
func (k *keeper) resumed() {
	k.Helper()
	forgotten := func(what string) bool { return strings.HasPrefix(what, "expired of ") }
	if here.size > manyPods && slices.ContainsFunc(slices.Collect(maps.Keys(k.counters.n)), forgotten) {
		k.Logf("the server did not remember everything: it met %v", k.counters.n)
		return
	}
	if lists := k.requests.lists(); len(lists) > 0 {
		k.Errorf("lists were asked for: %q", lists)
	}
	if k.requests.probes() == 0 {
		k.Error("nobody looked at what the server is at")
	}
	if len(k.counters.n) > 0 {
		k.Errorf("it met %v", k.counters.n)
	}
}

// onlyDifferences checks that a list which was compared with what was loaded told of nothing that is
// the same.
func (k *keeper) onlyDifferences(before map[informer.Key]version) error {
	now := k.pods.state()
	differences := 0
	for key, v := range before {
		if now[key] != v {
			differences++
		}
	}
	for key := range now {
		if _, ok := before[key]; !ok {
			differences++
		}
	}
	told := k.trail.told()
	// A pod that was made anew is two changes; what was written since the list is one or two more.
	if limit := 2*differences + 10; told < differences || told > limit {
		return fmt.Errorf("%d changes were told, and %d objects are different", told, differences)
	}
	return nil
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}
