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

// stored are the informers of a cluster with a checkpoint: two formats, metadata, a selector, several streams.
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

// keeper opens a cluster on a checkpoint without starting it.
func (w *world) keeper(ctx context.Context, t *testing.T, dir string, r rules) *keeper {
	t.Helper()
	// No audits, whose lists would be counted as the streams'.
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

// loaded starts the cluster without a reachable server and returns the loaded states.
func (k *keeper) loaded(ctx context.Context) []map[informer.Key]version {
	k.Helper()
	k.line.refuse(true)
	began := time.Now()
	k.start(k.T)
	ctx, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	for _, v := range k.views {
		if err := v.source().WaitForLoad(ctx); err != nil {
			k.Fatalf("%s: %v", v.label(), err)
		}
		for _, st := range v.source().Status() {
			if st.Synced {
				k.Errorf("%s: synced without the server", v.label())
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

// sync waits until every view is current, by a mark written now.
func (k *keeper) sync(ctx context.Context) {
	k.Helper()
	ctx, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	k.line.refuse(false)
	began := time.Now()
	if err := k.Wait(ctx); err != nil {
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

// awaitEqual waits until every view equals a fresh list, then compares the changes with the writes. There must
// be no more writers.
func (k *keeper) awaitEqual(ctx context.Context) {
	k.Helper()
	began := time.Now()
	defer func() { k.Logf("compared with fresh lists in %v", time.Since(began).Round(time.Millisecond)) }()
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

// end stops the cluster and returns its states.
func (k *keeper) end() (states []map[informer.Key]version) {
	k.Helper()
	for _, v := range k.views {
		states = append(states, v.replayed())
	}
	if err := k.stop(); err != nil {
		k.Fatal(err)
	}
	k.world.left = time.Now()
	return states
}

// writeMeanwhile changes objects while no cluster runs: many at random, some deterministically.
func (w *world) writeMeanwhile(ctx context.Context, t *testing.T, occasion uint64) {
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
	// Other kinds are written too, as in any cluster. An API server sends no bookmark to a watch that has
	// already processed the server's last write, even one it did not select.
	_, err = w.client.CoreV1().ConfigMaps("default").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "soak-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheckpoint stops a cluster and starts it again, in every possible way, while the server's history
// continues.
func TestCheckpoint(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute+time.Duration(here.size)*20*time.Millisecond)
	defer cancel()
	w, dir := here, filepath.Join(t.TempDir(), "state")

	k := w.keeper(ctx, t, dir, rules{})
	k.start(t)
	k.sync(ctx)
	w.writeMeanwhile(ctx, t, 20)
	k.sync(ctx)
	k.awaitEqual(ctx)
	if len(k.requests.lists()) == 0 {
		t.Error("the first start requested no list: the request log does not work")
	}
	left := k.end()

	t.Run("stopped", func(t *testing.T) {
		w.writeMeanwhile(ctx, t, 21)
		k := w.keeper(ctx, t, dir, rules{})
		for i, state := range k.loaded(ctx) {
			if err := differ(state, left[i]); err != nil {
				t.Errorf("%s: the loaded state differs from the saved one: %v", k.views[i].label(), err)
			}
		}
		k.sync(ctx)
		k.awaitEqual(ctx)
		k.resumed()
		k.end()
	})

	t.Run("killed", func(t *testing.T) {
		c := w.churn(ctx, 22)
		for range 2 { // the second one resumes from the first one's checkpoint
			w.killed(ctx, t, dir, func() {
				if err := c.some(ctx, 100+rand.New(rand.NewPCG(w.seed, 22)).Int64N(100)); err != nil {
					t.Error(err)
				}
			})
		}
		c.stop()
		w.writeMeanwhile(ctx, t, 23)
		k := w.keeper(ctx, t, dir, rules{})
		k.loaded(ctx)
		k.sync(ctx)
		k.awaitEqual(ctx)
		k.resumed()
		left = k.end()
	})

	t.Run("forgotten", func(t *testing.T) {
		w.writeMeanwhile(ctx, t, 24)
		if err := w.forget(ctx); err != nil {
			t.Fatal(err)
		}
		k := w.keeper(ctx, t, dir, rules{})
		k.loaded(ctx)
		k.sync(ctx)
		k.awaitEqual(ctx)
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

// manyPods is a number of pods for which comparing takes minutes. In that time an API server's watch cache may
// shrink to its minimum, a hundred changes.
const manyPods = 5000

// resumed checks that only the changes were requested.
func (k *keeper) resumed() {
	k.Helper()
	forgotten := func(what string) bool { return strings.HasPrefix(what, "expired of ") }
	// It keeps the changes of a minute or more, if nobody follows.
	long := here.size > manyPods || time.Since(here.left) > 40*time.Second
	if long && slices.ContainsFunc(slices.Collect(maps.Keys(k.counters.n)), forgotten) {
		k.Logf("the server lost a part of its history: counted %v", k.counters.n)
		return
	}
	if lists := k.requests.lists(); len(lists) > 0 {
		k.Errorf("lists were requested: %q", lists)
	}
	if k.requests.probes() == 0 {
		k.Error("the server's version was not probed")
	}
	if len(k.counters.n) > 0 {
		k.Errorf("counted %v", k.counters.n)
	}
}

// onlyDifferences checks that a list compared with the loaded state notified only of differences.
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
	changes := k.trail.laterChanges()
	// A recreated pod is two changes; a write since the list is one or two more.
	if limit := 2*differences + 10; changes < differences || changes > limit {
		return fmt.Errorf("%d changes were received, but %d objects differ", changes, differences)
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
