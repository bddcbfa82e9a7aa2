package informer_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// healing is what a cache needs, after faults end, to converge with the server.
type healing int

const (
	byItself healing = iota
	byAudit          // by the next audit, within auditAfter
)

// auditAfter is longer than a source's wait for its next audit.
const auditAfter = 26 * time.Hour

// modelFault is a fault of the server or the process.
type modelFault struct {
	name  string
	on    bool // enabled by default
	heals healing
	gaps  string // reasons of the gaps that it makes necessary
	do    func(*world)
}

// modelFaults are the random faults beside those in act. A run has some of the enabled ones.
var modelFaults = []modelFault{
	{"form", true, byAudit, "", (*world).changeForm},
	{"garbled", true, byItself, informer.ReasonUnreadable, (*world).garble},
	{"garbled object", true, byAudit, informer.ReasonUnreadable, (*world).garbleObject},
	{"fork", true, byAudit, informer.ReasonHistoryChanged + informer.ReasonExpired + informer.ReasonMissed, (*world).fork},
	{"storm of lists", true, byItself, "", (*world).stormLists},
	{"storm of watches", true, byItself, "", (*world).stormWatches},
	{"storm in watches", true, byItself, "", (*world).stormInWatches},
	{"expired", true, byItself, informer.ReasonExpired, (*world).expire},
	{"restart", true, byItself, informer.ReasonUnverified, (*world).restart},
}

// chooseFaults picks a run's faults: a few together find more than all together. INFORMER_FAULTS names them instead,
// disabled ones included.
func (w *world) chooseFaults() {
	names, chosen := os.LookupEnv("INFORMER_FAULTS")
	for i := range modelFaults {
		f := &modelFaults[i]
		has := f.on && w.rand.IntN(3) == 0
		if chosen {
			has = slices.Contains(strings.Split(names, ","), f.name)
		}
		if has {
			w.faults = append(w.faults, f)
			w.Logf("this run has the fault %q", f.name)
		}
	}
	w.plain = w.rand.IntN(2) == 0 // no other gap is necessary
	w.Logf("plain: %t", w.plain)
}

// fail causes one of the run's faults.
func (w *world) fail() {
	if len(w.faults) == 0 {
		return
	}
	f := w.faults[w.rand.IntN(len(w.faults))]
	w.Logf("fault %q", f.name)
	w.caused(f.gaps)
	w.heals = max(w.heals, f.heals)
	f.do(w)
}

// caused allows gaps with these reasons from now on.
func (w *world) caused(reasons string) {
	w.reasons.Lock()
	defer w.reasons.Unlock()
	w.necessary += " " + reasons
}

// causes returns the reasons of the gaps that are allowed now.
func (w *world) causes() string {
	w.reasons.Lock()
	defer w.reasons.Unlock()
	return w.necessary
}

// unnecessary reports whether no event explains a gap.
func (w *world) unnecessary(g *informer.Gap) bool {
	necessary := w.causes()
	for reason := range strings.SplitSeq(g.Reason, ", ") {
		if reason != informer.ReasonSlowConsumer && !strings.Contains(necessary, reason) {
			return true
		}
	}
	return false
}

// spoil adds a fault that ends with all others.
func (w *world) spoil(f informertest.Fault) { w.ends = append(w.ends, w.server.Misbehave(f)) }

// calm ends all faults, and waits until caches must have converged with the server.
func (w *world) calm() {
	w.server.SetDown(false)
	w.server.Mute(false)
	w.server.Intercept(nil)
	for _, end := range w.ends {
		end()
	}
	w.Logf("%s version %s: faults end", time.Now().Format(time.TimeOnly), w.server.Version())
	<-time.After(15 * time.Minute) // enough for any backoff, silence or timeout, and a slow consumer
	if w.heals == byAudit {
		<-time.After(auditAfter)
	}
	synctest.Wait()
}

// changeForm adds a default.
func (w *world) changeForm() {
	name, value := "default"+strconv.Itoa(w.rand.IntN(3)), w.rand.IntN(1e9)
	w.server.ChangeForm(widgets, func(o map[string]any) {
		spec, _ := o["spec"].(map[string]any)
		if spec == nil {
			spec = map[string]any{}
			o["spec"] = spec
		}
		if spec[name] == nil {
			spec[name] = value
		}
	})
}

// garble corrupts the next event, for every watch, until faults end.
func (w *world) garble() { w.garbleNext(informertest.GarbleFrame) }

// garbleObject does the same, but leaves the metadata readable.
func (w *world) garbleObject() { w.garbleNext(informertest.GarbleObject) }

func (w *world) garbleNext(how informertest.Effect) {
	now, _ := strconv.Atoi(w.server.Version())
	w.spoil(informertest.Fault{Effect: how, Resource: widgets, Version: strconv.Itoa(now + 1)})
	w.write()
}

// fork restores the backup, and lets other writes overtake the old history.
func (w *world) fork() {
	w.forked.Store(true)
	w.server.Fork(w.backup, func() {
		for range w.rand.IntN(4) {
			w.write()
		}
	})
	if w.rand.IntN(2) == 0 {
		w.sleep(2 * time.Minute)
		w.server.Bookmark()
	}
}

var stormCodes = []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}

// storm refuses some requests in a row.
func (w *world) storm(f informertest.Fault) informertest.Fault {
	f.Resource, f.Code, f.Times = widgets, stormCodes[w.rand.IntN(len(stormCodes))], 1+w.rand.IntN(6)
	f.RetryAfter = time.Duration(w.rand.IntN(5)) * time.Second
	w.spoil(f)
	return f
}

func (w *world) stormLists() {
	w.storm(informertest.Fault{On: informertest.Lists | informertest.StreamingLists})
}

func (w *world) stormWatches() {
	w.storm(informertest.Fault{On: informertest.Watches})
	w.server.CloseWatches()
}

// stormInWatches ends watches with errors that do not mean that versions were lost.
func (w *world) stormInWatches() {
	if f := w.storm(informertest.Fault{On: informertest.Watches, Effect: informertest.ErrorEvent}); f.Code == http.StatusInternalServerError {
		w.caused(informer.ReasonUnwatched) // the server may be unable to watch from this version
	}
}

// expire answers a watch, or a list, with 410.
func (w *world) expire() {
	f := informertest.Fault{On: informertest.Lists, Code: http.StatusGone, Resource: widgets, Times: 1}
	if w.rand.IntN(3) > 0 {
		f.On, f.Effect = informertest.Watches, informertest.ErrorEvent
	}
	w.spoil(f)
}

// restart ends the process and starts another with its checkpoint.
func (w *world) restart() {
	w.end()
	if w.rand.IntN(2) == 0 {
		w.sleep(10 * time.Minute)
	}
	for range w.rand.IntN(3) {
		w.write()
	}
	w.begin()
}

// begin starts a process with its subscribers.
func (w *world) begin() {
	cluster, err := informer.NewCluster(w.server.Config(), informer.Options{Checkpoint: w.dir})
	if err != nil {
		w.Fatal(err)
	}
	if w.source, err = cluster.Source(widgets, w.options); err != nil {
		w.Fatal(err)
	}
	if w.view, err = informer.Unstructured(cluster, widgets, informer.On(w.source)); err != nil {
		w.Fatal(err)
	}
	if w.values, err = informer.AddFieldIndex(w.view, "spec.v"); err != nil {
		w.Fatal(err)
	}
	done := make(chan error)
	ctx, cancel := context.WithCancel(w.Context())
	go func() { done <- cluster.Run(ctx) }()
	w.end = func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
		for _, c := range w.consumers {
			<-c.done
		}
		w.consumers = nil
	}
	w.follow(w.source, 0, 0)                // keeps up
	w.follow(w.source, 1, time.Minute)      // always folds, and is slow
	w.follow(w.source, 3000, 3*time.Second) // folds now and then
}

// compareCache checks that reads return the server's objects, in full.
func (w *world) compareCache() {
	server := w.server.Objects(widgets)
	if n := w.view.Len(); n != len(server) {
		w.Errorf("the cache has %d objects, the server %d", n, len(server))
	}
	for k, want := range server {
		ns, name, _ := strings.Cut(k, "/")
		obj, err := w.view.Get(ns, name)
		if err != nil {
			w.Errorf("%s: %v", k, err)
		} else if got := jsonOf(w.T, obj.Object); got != jsonOf(w.T, want) {
			w.Errorf("%s: the cache has %s, want %s", k, got, jsonOf(w.T, want))
		}
	}
	w.compareSelected(server)
}

// list selects by labels at any time; from the first call on, the source has a label index.
func (w *world) list() {
	for _, err := range w.view.List("", labels.SelectorFromSet(labels.Set{"app": "a1"})) {
		if err != nil && !errors.Is(err, informer.ErrNotSynced) {
			w.Error(err)
		}
	}
}

// compareSelected checks selectors and the index against the server.
func (w *world) compareSelected(server map[string]map[string]any) {
	for _, text := range []string{"app=a1", "app in (a0,a2),tier=t1", "tier", "!app", "app!=a1", "app notin (a0),tier"} {
		selector, err := labels.Parse(text)
		if err != nil {
			w.Fatal(err)
		}
		for _, namespace := range []string{"", "n1", "n2", "n3"} {
			var want []string
			for k, fields := range server {
				u := unstructured.Unstructured{Object: fields}
				if (namespace == "" || strings.HasPrefix(k, namespace+"/")) && selector.Matches(labels.Set(u.GetLabels())) {
					want = append(want, k)
				}
			}
			slices.Sort(want)
			if got := keys(w.view.List(namespace, selector)); got != strings.Join(want, " ") {
				w.Errorf("%s in %q: the cache has %s, the server %s", text, namespace, got, want)
			}
		}
	}
	for k, fields := range server {
		v, _, err := unstructured.NestedString(fields, "spec", "v")
		if err != nil {
			w.Fatal(err)
		}
		if got := " " + keys(w.values.Get(v)) + " "; !strings.Contains(got, " "+k+" ") {
			w.Errorf("the index finds %s at %s, which %s has", got, v, k)
		}
	}
	if values, err := w.values.Values(); err != nil || len(values) > len(server) {
		w.Errorf("the index has %d values of %d objects, %v", len(values), len(server), err)
	}
}
