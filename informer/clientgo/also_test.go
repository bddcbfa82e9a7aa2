package clientgo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// measured is a custom resource with a json.Number and quantities.
type measured struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Count json.Number                  `json:"count"`
	Share resource.Quantity            `json:"share"`
	Most  *resource.Quantity           `json:"most,omitempty"`
	Each  map[string]resource.Quantity `json:"each,omitempty"`
}

// TestNumbersAndQuantities: numbers and quantities round-trip. Those that would not are kept decoded and counted.
func TestNumbersAndQuantities(t *testing.T) {
	packed := map[string]bool{"500m": true, "1": true, "2Gi": true, "1e3": true, "100n": true, "0": true, "0.5": false, "1000m": false, "1.5Gi": false, "-0.25": false}
	p := newPacking(false)
	unpacked := uint64(0)
	for q, ok := range packed {
		raw := `{"metadata":{"name":"m"},"count":7,"share":"` + q + `","most":"` + q + `","each":{"cpu":"` + q + `"}}`
		obj, want := &measured{}, &measured{}
		for _, into := range []*measured{obj, want} {
			if err := utiljson.Unmarshal([]byte(raw), into); err != nil {
				t.Fatal(err)
			}
		}
		it := p.item(obj)
		if !ok {
			unpacked++
		}
		if (it.v != nil) != ok {
			t.Errorf("%s packed: %v", q, it.v != nil)
		}
		if got := it.decode(); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(obj, want) {
			t.Errorf("%s comes back as %+v, want %+v", q, got, want)
		}
	}
	if got := p.unpacked.Load(); got != unpacked {
		t.Errorf("unpacked: %d, want %d", got, unpacked)
	}
	for range 2 * verifyFirst { // afterwards the check alone decides
		p.item(&measured{Count: "7"})
	}
	for _, n := range []json.Number{"", "0", "1.50", "1e400", "12345678901234567890"} {
		if got := p.item(&measured{Count: n}).decode().(*measured); got.Count != n {
			t.Errorf("the number %q comes back as %q", n, got.Count)
		}
	}
}

// TestMutationDetector: with KUBE_CACHE_MUTATION_DETECTOR, a write to an object ends the program, and the report
// names all readers of the object.
func TestMutationDetector(t *testing.T) {
	t.Setenv("KUBE_CACHE_MUTATION_DETECTOR", "true")
	for _, storage := range []Storage{Auto, Compact, Live} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(pod("shop/a", "1", "n1"), pod("shop/b", "2", "n1"))
			i := newEngine(Options{Storage: storage}).newInformer(s, unknown, &corev1.Pod{}, cache.SharedIndexInformerOptions{Indexers: cache.Indexers{"node": byNode}})
			var reports []string
			i.detector.fail = func(report string) { reports = append(reports, report) }
			var l log
			handle(t, i, &l)
			start(t, i)
			pass(10 * time.Second)
			if len(reports) > 0 {
				t.Fatalf("%v: %q", storage, reports)
			}
			obj, _, _ := i.GetStore().GetByKey("shop/a")
			write := func(f func()) { // not built with -race: the write is a deliberate race
				i.detector.mu.Lock()
				defer i.detector.mu.Unlock()
				f()
			}
			write(func() { obj.(*corev1.Pod).Spec.NodeName = "n2" })
			pass(2 * time.Second)
			if len(reports) != 1 || !strings.Contains(reports[0], `shop/a: spec.nodeName was "n1" and is "n2"`) ||
				!strings.Contains(reports[0], "GetByKey by ") || !strings.Contains(reports[0], "TestMutationDetector") {
				t.Errorf("%v: %q", storage, reports)
			}
			reports = nil
			objs, _ := i.GetIndexer().ByIndex("node", "n1")
			slices.SortFunc(objs, func(a, b any) int { return strings.Compare(a.(*corev1.Pod).Name, b.(*corev1.Pod).Name) })
			write(func() { objs[len(objs)-1].(*corev1.Pod).Labels["app"] = "other" })
			pass(2 * time.Second)
			if len(reports) != 1 || !strings.Contains(reports[0], "shop/b") || !strings.Contains(reports[0], `index "node"`) {
				t.Errorf("%v: %q", storage, reports)
			}
		})
	}
}

// TestMutationDetectorIsOff: without the variable, nothing is compared.
func TestMutationDetectorIsOff(t *testing.T) {
	t.Setenv("KUBE_CACHE_MUTATION_DETECTOR", "")
	if newDetector() != nil {
		t.Error("the detector is on")
	}
}

// gauges are an informer's metrics.
type gauges struct {
	mu      sync.Mutex
	version float64
	queued  []float64
	took    int
}

type gauge func(float64)

func (g gauge) Set(v float64)     { g(v) }
func (g gauge) Observe(v float64) { g(v) }

func (g *gauges) NewQueuedItemMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return gauge(func(v float64) { g.mu.Lock(); g.queued = append(g.queued, v); g.mu.Unlock() })
}

func (g *gauges) NewProcessingLatencyMetric(cache.InformerNameAndResource) cache.HistogramMetric {
	return gauge(func(float64) { g.mu.Lock(); g.took++; g.mu.Unlock() })
}

func (g *gauges) NewStoreResourceVersionMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return gauge(func(v float64) { g.mu.Lock(); g.version = v; g.mu.Unlock() })
}

// TestMetrics: an informer with an identifier has client-go's metrics.
func TestMetrics(t *testing.T) {
	name := must[*cache.InformerName](t)(cache.NewInformerName(t.Name()))
	defer name.Release()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("shop/a", "1", "n1"))
		g := &gauges{}
		i := newEngine(Options{}).NewInformerWithOptions(s, &corev1.Pod{}, cache.SharedIndexInformerOptions{
			Identifier: name.WithResource(pods), InformerMetricsProvider: g,
		})
		start(t, i)
		pass(time.Second)
		for n := range 3 {
			s.add(pod(fmt.Sprint("shop/b", n), "2", "n1"))
		}
		pass(time.Second)
		if g.version != 104 || g.took < 4 || !slices.Contains(g.queued, 1) || g.queued[len(g.queued)-1] != 0 {
			t.Errorf("%+v", g)
		}
	})
}

// TestNames: an informer of unstructured objects is named after their kind, once that is known.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		s.Serve(widgets, "Widget")
		e := must[*Engine](t)(New(s.Config(), Options{}))
		i := e.NewInformer(accesses[2].lw(t, s.Config(), e.HTTPClient()), &unstructured.Unstructured{}, 0, nil)
		handle(t, i, &recorder{})
		start(t, i)
		pass(time.Second)
		if n := e.Stats().Informers[0].Name; n != "SharedIndexInformer *unstructured.Unstructured" {
			t.Errorf("it is called %s", n)
		}
		s.Put(widgets, "shop", "a", nil)
		pass(time.Second)
		if n := e.Stats().Informers[0].Name; n != "SharedIndexInformer *unstructured.Unstructured (example.com/v1, Kind=Widget)" {
			t.Errorf("it is called %s", n)
		}
	})
}

// TestIndexPeak: while the first list is stored, an index keeps only a few objects decoded.
func TestIndexPeak(t *testing.T) {
	const objects = 3000
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		s.Serve(pods, "Pod")
		for n := range objects {
			s.Put(pods, "shop", fmt.Sprint("p", n), map[string]any{"spec": map[string]any{"nodeName": fmt.Sprint("n", n%10)}})
		}
		s.Misbehave(informertest.Fault{On: informertest.StreamingLists, Code: http.StatusUnprocessableEntity})
		e := must[*Engine](t)(New(s.Config(), Options{Hot: 1}))
		var mu sync.Mutex
		var born births
		most := 0
		i := e.NewInformer(plain(t, s.Config(), e.HTTPClient()), &corev1.Pod{}, 0, cache.Indexers{"node": func(obj any) ([]string, error) {
			mu.Lock()
			defer mu.Unlock()
			if _, err := born.note(obj); err != nil {
				return nil, err
			}
			if len(born.of)%500 == 0 {
				most = max(most, born.alive())
			}
			return byNode(obj)
		}})
		start(t, i)
		pass(time.Minute)
		if most == 0 || most > objects/2 {
			t.Errorf("%d of %d objects were decoded at once", most, objects)
		}
	})
}
