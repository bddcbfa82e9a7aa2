package soak

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

// recovery bounds the time until a view shows a write made after a fault ended. It is a multiple of the usual
// time, for loaded machines.
const recovery = 4 * time.Minute

// TestConvergence changes pods and custom resources while the API server and etcd are killed, history is
// compacted and connections break. It compares the changes of every kind of view with the writes, and its final
// state with a fresh list.
func TestConvergence(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute+time.Duration(here.size)*120*time.Millisecond)
	defer cancel()
	s := &soak{world: here, T: t, rng: rand.New(rand.NewPCG(here.seed, 7))}
	s.observe(ctx)
	s.watch.start(t)
	s.paged.start(t)
	for _, r := range []*running{s.watch, s.paged} {
		if err := r.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	s.churn = s.world.churn(ctx, 1)
	defer s.churn.stop()
	s.runFaults(ctx)
	s.churn.stop()
	s.recovered(ctx, "the end") // the mark is the last write, so everything before it has arrived
	s.awaitEqual(ctx)
	s.conclude(ctx)
}

// soak is one run of TestConvergence.
type soak struct {
	*testing.T
	world *world
	rng   *rand.Rand
	churn *churn
	// watch is a cluster over HTTP/2; paged is one over HTTP/1.1 that lists in pages.
	watch, paged *running
	views        []view
	feeds        []*feedTrail

	pods   *watched[*corev1.Pod]
	gate   chan struct{} // closed when the slow subscribers may read
	slow   *trail[*corev1.Pod]
	small  *trail[*corev1.Pod] // slow, in mode Every with a small budget
	leaver *trail[*corev1.Pod]
}

// observe opens the views.
func (s *soak) observe(ctx context.Context) {
	s.watch = s.world.open(s.T, informer.Options{}, nil)
	s.paged = s.world.open(s.T, informer.Options{}, func(cfg *rest.Config) { cfg.NextProtos = []string{"http/1.1"} })
	s.observePods(ctx)
	s.observeSelections(ctx)
	s.observeMaps(ctx)
	s.observeWidgets(ctx)
	s.observePaged(ctx)
}

func (s *soak) observePods(ctx context.Context) {
	w, every := s.world, informer.SubscribeOptions{Mode: informer.Every}
	pods := &watched[*corev1.Pod]{
		name: "pods", Informer: must(informer.For[*corev1.Pod](s.watch.Cluster))(s.T),
		list: w.typed(nil, metav1.ListOptions{}), kind: podKind,
	}
	s.pods, s.gate = pods, make(chan struct{})
	indexed(pods, "ip", podIPs)
	indexed(pods, "place", placeOf)
	follow(ctx, s.T, pods, "latest", informer.SubscribeOptions{}, rules{}, nil)
	s.slow = follow(ctx, s.T, pods, "slow", informer.SubscribeOptions{}, rules{}, s.gate)
	s.small = follow(ctx, s.T, pods, "slow, every", informer.SubscribeOptions{Mode: informer.Every, Budget: 64 << 10}, rules{}, s.gate)
	follow(ctx, s.T, pods, "every", every, rules{}, nil)
	s.leaver = must(trailOf(ctx, pods.Informer, "leaver", informer.SubscribeOptions{}, rules{}, nil))(s.T)
	pods.mirrors = append(pods.mirrors, mirrored(ctx, pods.Informer, "mirror"))

	shared := &watched[*corev1.Pod]{name: "shared pods", Informer: pods.Shared(), list: pods.list, kind: podKind}
	follow(ctx, s.T, shared, "latest", informer.SubscribeOptions{}, rules{}, nil)
	s.views = append(s.views, pods, shared)
}

// observeSelections opens views of a part of the pods; objects that enter and leave it are added and deleted.
func (s *soak) observeSelections(ctx context.Context) {
	w, returns := s.world, rules{returns: true}
	labelled := &watched[*corev1.Pod]{
		name: "golden pods", Informer: must(informer.For[*corev1.Pod](s.watch.Cluster, informer.WithLabels(tierLabel+"="+gold)))(s.T),
		list: w.typed(nil, metav1.ListOptions{LabelSelector: tierLabel + "=" + gold}), kind: podKind,
	}
	indexed(labelled, "app", appOf[*corev1.Pod])
	follow(ctx, s.T, labelled, "latest", informer.SubscribeOptions{}, returns, nil)
	follow(ctx, s.T, labelled, "every", informer.SubscribeOptions{Mode: informer.Every}, returns, nil)

	field := "status.phase=" + string(corev1.PodRunning)
	fielded := &watched[*corev1.Pod]{
		name: "running pods", Informer: must(informer.For[*corev1.Pod](s.watch.Cluster, informer.WithFields(field), informer.WithStorage(informer.AutoStorage)))(s.T),
		list: w.typed(nil, metav1.ListOptions{FieldSelector: field}), kind: podKind,
	}
	follow(ctx, s.T, fielded, "latest", informer.SubscribeOptions{}, returns, nil)

	some := namespaces[:2]
	spread := &watched[*corev1.Pod]{
		name: "pods of two namespaces", Informer: must(informer.For[*corev1.Pod](s.watch.Cluster, informer.InNamespaces(some...)))(s.T),
		list: w.typed(some, metav1.ListOptions{}), kind: podKind,
	}
	indexed(spread, "ip", podIPs)
	follow(ctx, s.T, spread, "latest", informer.SubscribeOptions{}, rules{}, nil)
	follow(ctx, s.T, spread, "every", informer.SubscribeOptions{Mode: informer.Every}, rules{}, nil)
	spread.mirrors = append(spread.mirrors, mirrored(ctx, spread.Informer, "mirror"))
	s.views = append(s.views, labelled, fielded, spread)
}

func (s *soak) observeMaps(ctx context.Context) {
	w := s.world
	maps := &watched[*unstructured.Unstructured]{
		name: "pods as maps", Informer: must(informer.Unstructured(s.watch.Cluster, podResource))(s.T),
		list: w.maps(podResource, nil, metav1.ListOptions{}),
	}
	indexed(maps, "app", appOf[*unstructured.Unstructured])
	follow(ctx, s.T, maps, "every", informer.SubscribeOptions{Mode: informer.Every}, rules{}, nil)
	s.feed(ctx, maps)
	partial := &watched[*metav1.PartialObjectMetadata]{
		name: "metadata of pods", Informer: must(informer.Metadata(s.watch.Cluster, podResource))(s.T),
		list: w.partial(podResource, nil, metav1.ListOptions{}), kind: partialKind,
	}
	follow(ctx, s.T, partial, "latest", informer.SubscribeOptions{}, rules{}, nil)
	s.views = append(s.views, maps, partial)
}

// feed adds a feed to a view of maps.
func (s *soak) feed(ctx context.Context, v *watched[*unstructured.Unstructured]) {
	f := must(feeding(ctx, v.Source(), "feed", s.world.ledger.next()))(s.T)
	v.feeds = append(v.feeds, f)
	s.feeds = append(s.feeds, f)
}

func (s *soak) observeWidgets(ctx context.Context) {
	w := s.world
	maps := &watched[*unstructured.Unstructured]{
		name: "widgets as maps", Informer: must(informer.Unstructured(s.watch.Cluster, widgetResource))(s.T),
		list: w.maps(widgetResource, nil, metav1.ListOptions{}),
	}
	follow(ctx, s.T, maps, "every", informer.SubscribeOptions{Mode: informer.Every}, rules{}, nil)
	s.feed(ctx, maps)
	typed := &watched[*Widget]{
		name: "widgets", Informer: must(informer.For[*Widget](s.watch.Cluster))(s.T), list: w.widgets,
		kind: widgetKind,
	}
	indexed(typed, "app", appOf[*Widget])
	follow(ctx, s.T, typed, "latest", informer.SubscribeOptions{}, rules{}, nil)
	typed.mirrors = append(typed.mirrors, mirrored(ctx, typed.Informer, "mirror"))
	some := namespaces[:1]
	partial := &watched[*metav1.PartialObjectMetadata]{
		name:     "metadata of golden widgets",
		Informer: must(informer.Metadata(s.watch.Cluster, widgetResource, informer.InNamespaces(some...), informer.WithLabels(tierLabel+"="+gold)))(s.T),
		list:     w.partial(widgetResource, some, metav1.ListOptions{LabelSelector: tierLabel + "=" + gold}), kind: partialKind,
	}
	follow(ctx, s.T, partial, "every", informer.SubscribeOptions{Mode: informer.Every}, rules{returns: true}, nil)
	s.views = append(s.views, maps, typed, partial)
}

// observePaged opens views with every option that affects how a source receives and stores objects.
func (s *soak) observePaged(ctx context.Context) {
	w := s.world
	tuned := func(o *informer.ViewOptions) {
		o.Paged, o.Storage, o.DropManagedFields = true, informer.LiveStorage, true
		o.Transform = informer.TransformOf("no environment", 1, func(p *corev1.Pod) error { withoutEnv(p); return nil })
	}
	pods := &watched[*corev1.Pod]{
		name: "tuned pods, in pages", Informer: must(informer.For[*corev1.Pod](s.paged.Cluster, tuned))(s.T),
		list: w.typed(nil, metav1.ListOptions{}), kind: podKind,
		normal: func(p *corev1.Pod) { p.ManagedFields = nil; withoutEnv(p) },
	}
	indexed(pods, "ip", podIPs)
	follow(ctx, s.T, pods, "latest", informer.SubscribeOptions{}, rules{}, nil)
	maps := &watched[*unstructured.Unstructured]{
		name: "widgets as maps, in pages", Informer: must(informer.Unstructured(s.paged.Cluster, widgetResource, func(o *informer.ViewOptions) { o.Paged = true }))(s.T),
		list: w.maps(widgetResource, nil, metav1.ListOptions{}),
	}
	follow(ctx, s.T, maps, "every", informer.SubscribeOptions{Mode: informer.Every}, rules{}, nil)
	s.feed(ctx, maps)
	s.views = append(s.views, pods, maps)
}

func withoutEnv(p *corev1.Pod) {
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Env = nil
	}
}

// awaitEqual waits until every view equals a fresh list. There must be no more writers.
func (s *soak) awaitEqual(ctx context.Context) {
	s.Helper()
	began := time.Now()
	for _, v := range s.views {
		ctx, cancel := context.WithTimeout(ctx, recovery)
		if err := v.equal(ctx); err != nil {
			s.Error(err)
		}
		cancel()
	}
	s.Logf("compared with fresh lists in %v; %d writes were accepted", time.Since(began).Round(time.Millisecond), s.churn.taken.Load())
}

// conclude compares the changes with the writes.
func (s *soak) conclude(ctx context.Context) {
	s.Helper()
	for _, v := range s.views {
		if err := v.verify(s.world.ledger); err != nil {
			s.Error(err)
		}
		for _, st := range v.source().Status() {
			if st.Epoch != 1 {
				s.Errorf("%s: epoch %d of %v, although history was never replaced", v.label(), st.Epoch, st.Stream)
			}
		}
	}
	if err := s.leaver.verify(s.world.ledger); err != nil {
		s.Error(err)
	}
	for _, r := range []*running{s.watch, s.paged} {
		for _, never := range []string{"decode error", "lossy decode", "index error"} {
			if n := r.counters.of(never); n > 0 {
				s.Errorf("%d times %s", n, never)
			}
		}
		if r.counters.of("expired") == 0 {
			s.Error("no 410, although history was compacted")
		}
		if err := r.stop(); err != nil {
			s.Error(err)
		}
	}
	if err := leftOver(ctx); err != nil {
		s.Error(err)
	}
	for _, f := range s.feeds {
		if f.because(informer.ReasonExpired) == 0 {
			s.Errorf("%s of %s: no gap, although history was compacted", f.name, f.resource)
		}
	}
	if s.small.because(informer.ReasonSlowConsumer) == 0 {
		s.Errorf("%s: no gap, although it exceeded its budget", s.small.name)
	}
}
