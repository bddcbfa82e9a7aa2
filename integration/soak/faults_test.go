package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/devcluster/clustertest"
	"github.com/tattler-dev/tattler/informer"
)

// fault is a failure while objects change.
type fault struct {
	name string
	do   func(context.Context) error
	// resumes says that the servers keep their history: streams must resume without a list.
	resumes bool
	// long restricts the fault to long runs.
	long bool
}

func (s *soak) faults() []fault {
	w := s.world
	lines := []*line{s.watch.line, s.paged.line}
	return []fault{
		{name: "connections are cut", resumes: true, do: func(ctx context.Context) error {
			for range 5 {
				for _, l := range lines {
					l.cut()
				}
				if err := s.churn.some(ctx, 40); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "connections break within a frame", resumes: true, do: func(ctx context.Context) error {
			for _, l := range lines {
				l.breakAfter(64<<10 + s.rng.Int64N(64<<10))
			}
			err := s.churn.some(ctx, 200)
			for _, l := range lines {
				l.breakAfter(0)
			}
			return err
		}},
		{name: "connections fall silent", resumes: true, do: func(ctx context.Context) error {
			for _, l := range lines {
				l.stall()
			}
			err := s.churn.some(ctx, 100)
			s.paged.line.cut() // HTTP/1.1 has no pings; the watchdog takes minutes
			return err
		}},
		{name: "the server is unreachable for a while", resumes: true, do: func(ctx context.Context) error {
			for _, l := range lines {
				l.refuse(true)
				l.cut()
			}
			err := s.churn.some(ctx, 300)
			for _, l := range lines {
				l.refuse(false)
			}
			return err
		}},
		{name: "the API server is killed", long: true, do: func(ctx context.Context) error { return w.restartAPIServer(ctx, false) }},
		{name: "the API server is restarted in order", do: func(ctx context.Context) error { return w.restartAPIServer(ctx, true) }},
		{name: "etcd is killed", long: true, do: func(ctx context.Context) error { return w.restartEtcd(ctx, "") }},
		{name: "history is compacted", long: true, do: w.forget},
		{name: "history is compacted, and lists break", do: func(ctx context.Context) error {
			err := w.forget(ctx)
			for _, l := range lines {
				l.breakAfter(512<<10 + s.rng.Int64N(512<<10))
			}
			err = errors.Join(err, s.churn.some(ctx, 200))
			for _, l := range lines {
				l.breakAfter(0)
			}
			return err
		}},
		{name: "a burst", do: func(ctx context.Context) error { return w.burst(ctx, w.size/4) }},
		{name: "API server and etcd are killed", do: func(ctx context.Context) error {
			return errors.Join(w.KillAPIServer(), w.restartEtcd(ctx, ""), w.StartAPIServer(ctx))
		}},
	}
}

// runFaults goes through the faults in a random order, once or, in long runs, several times.
func (s *soak) runFaults(ctx context.Context) {
	s.Helper()
	rounds, faults := 1, s.faults()
	if s.world.long() {
		rounds = 3
	} else {
		faults = slices.DeleteFunc(faults, func(f fault) bool { return f.long })
	}
	for round := range rounds {
		s.rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		for i, f := range faults {
			if err := s.churn.some(ctx, 100); err != nil {
				s.Fatal(err)
			}
			if round == 0 && i == len(faults)/2 {
				s.midway(ctx)
			}
			began, lists := time.Now(), s.lists()
			if err := f.do(ctx); err != nil {
				s.Fatalf("%s: %v", f.name, err)
			}
			over := time.Now()
			s.recovered(ctx, f.name)
			s.Logf("%s: %v, current again after %v", f.name, over.Sub(began).Round(time.Millisecond), time.Since(over).Round(time.Millisecond))
			// The server may compact the history of a stream that is behind for more than a minute.
			if now := s.lists(); f.resumes && now != lists && time.Since(began) < 30*time.Second {
				s.Errorf("%s: lists went from %s to %s, although the server had the history", f.name, lists, now)
			}
		}
	}
}

// lists returns the numbers of lists, as text.
func (s *soak) lists() string {
	return fmt.Sprint(s.watch.counters.all("list"), s.paged.counters.all("list"))
}

// recovered waits until every view shows a new write.
func (s *soak) recovered(ctx context.Context, after string) {
	s.Helper()
	patience := recovery + time.Duration(s.world.size)*10*time.Millisecond // a burst grows with the pods
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not current %v after %s", patience, after))
	defer cancel()
	marks, err := s.world.mark(ctx, s.rng)
	if err != nil {
		s.Fatalf("write after %s: %v", after, err)
	}
	for _, v := range s.views {
		if err := clustertest.Poll(ctx, 20*time.Millisecond, func() error { return current(v, marks) }); err != nil {
			s.Fatalf("%v\n%s\n%s", err, s.watch.dump(), s.paged.dump())
		}
	}
}

// current returns an error if a view lacks a mark or is still listing.
func current(v view, marks []object) error {
	for _, st := range v.source().Status() {
		for _, o := range marks {
			belongs := o.resource == st.Stream.Resource.Resource && (st.Stream.Namespace == "" || st.Stream.Namespace == o.Namespace)
			if belongs && !v.has(o.Key) {
				return fmt.Errorf("%s: %v is missing", v.label(), o)
			}
		}
		if st.State != informer.Watching {
			return fmt.Errorf("%s: %v is %v", v.label(), st.Stream, st.State)
		}
	}
	return nil
}

// mark writes objects that every stream of every view selects.
func (w *world) mark(ctx context.Context, rng *rand.Rand) ([]object, error) {
	h := &hand{world: w, rng: rng}
	name := "mark-" + h.hex(8)
	var marks []object
	for _, resource := range []string{"pods", "widgets"} {
		for n := range 2 {
			o := named(resource, name, n)
			golden := fmt.Sprintf(`{"metadata":{"labels":{"%s":"%s"},`, tierLabel, gold) + annotate + `}}`
			writes := []func() error{
				func() error { return h.create(ctx, o) },
				func() error { return h.patch(ctx, o, "", golden) },
			}
			if resource == "pods" {
				running := `{"metadata":{` + annotate + `},"status":{"phase":"` + string(corev1.PodRunning) + `"}}`
				writes = append(writes, func() error { return h.patch(ctx, o, "status", running) })
			}
			for _, write := range writes {
				if err := clustertest.Poll(ctx, 50*time.Millisecond, func() error {
					err := write()
					if err != nil && isRefusal(err) {
						return nil // it was created by an attempt without a response
					}
					return err
				}); err != nil {
					return nil, fmt.Errorf("write %v: %w", o, err)
				}
			}
			marks = append(marks, o)
		}
	}
	return marks, nil
}

// midway opens and closes observers, and checks the lag of the slow ones.
func (s *soak) midway(ctx context.Context) {
	s.Helper()
	s.leaver.sub.Stop()
	if err := s.leaver.over(ctx); !errors.Is(err, informer.ErrClosed) {
		s.Errorf("after Stop, Next returns %v", err)
	}
	for _, tr := range []*trail[*corev1.Pod]{s.slow, s.small} {
		lag := tr.sub.Lag()
		// It may have one entry per known object and one per current object: those of the start, and those of
		// now.
		if limit := s.pods.Len() + s.world.size + 1; lag.Objects > limit || lag.Objects == 0 || lag.Oldest.IsZero() {
			s.Errorf("%s: it lags %+v, with %d objects", tr.name, lag, s.pods.Len())
		}
	}
	close(s.gate)

	follow(ctx, s.T, s.pods, "late", informer.SubscribeOptions{}, rules{}, nil)
	follow(ctx, s.T, s.pods, "late, every", informer.SubscribeOptions{Mode: informer.Every}, rules{}, nil)
	follow(ctx, s.T, s.pods, "late, without the start", informer.SubscribeOptions{SkipInitial: true}, rules{}, nil)
	indexed(s.pods, "late", appOf[*corev1.Pod])

	// An informer that opens and closes while the cluster runs.
	guest := must(informer.Metadata(s.watch.Cluster, podResource, informer.InNamespaces(namespaces[3])))(s.T)
	if err := guest.Source().Wait(ctx); err != nil {
		s.Error(err)
	}
	guest.Close()
	if n := guest.Len(); n == 0 {
		s.Error("a closed informer has lost its last state")
	}
	if err := guest.Wait(ctx); !errors.Is(err, informer.ErrClosed) {
		s.Errorf("wait for a closed informer: %v", err)
	}
	late := &watched[*metav1.PartialObjectMetadata]{
		name: "late metadata of golden pods", Informer: must(informer.Metadata(s.watch.Cluster, podResource, informer.WithLabels(tierLabel+"="+gold)))(s.T),
		list: s.world.partial(podResource, nil, metav1.ListOptions{LabelSelector: tierLabel + "=" + gold}), kind: partialKind,
	}
	follow(ctx, s.T, late, "latest", informer.SubscribeOptions{}, rules{returns: true}, nil)
	if err := late.Source().Wait(ctx); err != nil {
		s.Error(err)
	}
	s.views = append(s.views, late)
}
