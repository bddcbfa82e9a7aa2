package controller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// modelSeeds is the number of runs of TestModel; CONTROLLER_SEED selects one.
const modelSeeds = 10

// TestModel: whatever happens to the objects, the server and Reconcile, no key is reconciled twice at once, and the last
// successful Reconcile of each key has seen the last state, including that of its children.
func TestModel(t *testing.T) {
	first, n := uint64(1), uint64(modelSeeds)
	if one, err := strconv.ParseUint(os.Getenv("CONTROLLER_SEED"), 10, 64); err == nil {
		first, n = one, 1
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { play(t, 10, func(r *rig) { r.model(seed) }) })
	}
}

func (r *rig) model(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	const names = 20
	name := func() string { return fmt.Sprintf("w%03d", rng.IntN(names)) }
	var mu sync.Mutex
	luck := rand.New(rand.NewPCG(seed, 2)) // guarded by mu
	running, saw := map[controller.Key]bool{}, map[controller.Key]string{}
	quiet := false
	reconcile := func(ctx context.Context, k controller.Key) (controller.Result, error) {
		mu.Lock()
		if running[k] {
			r.Errorf("%s is reconciled twice at once", k)
		}
		running[k] = true
		fate, took := luck.IntN(20), time.Duration(luck.IntN(300))*time.Millisecond
		if quiet {
			fate = 19
		}
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			running[k] = false
		}()
		state, err := r.state(k)
		if err != nil {
			return controller.Result{}, err
		}
		select {
		case <-time.After(took):
		case <-ctx.Done():
			return controller.Result{}, context.Cause(ctx)
		}
		switch {
		case fate < 2:
			return controller.Result{}, errors.New("it is Monday")
		case fate < 3:
			panic("it is Tuesday")
		}
		mu.Lock()
		defer mu.Unlock()
		saw[k] = state
		if fate < 5 {
			return controller.Result{RequeueAfter: took}, nil
		}
		return controller.Result{}, nil
	}
	c, end := r.run(controller.Options{Workers: 1 + rng.IntN(4), MaxBackoff: time.Minute}, reconcile,
		controller.For(r.widgets), controller.Owned(r.parts, r.widgets))
	resources := []informertest.Requests{informertest.Lists, informertest.Watches, informertest.StreamingLists}
	for range 200 {
		switch rng.IntN(16) {
		case 0:
			r.server.Delete(widgets, "n", name())
		case 1:
			r.server.Delete(parts, "n", "p-"+name())
		case 2, 3, 4, 5:
			r.part("p-"+name(), name(), "Widget", "example.com/v1", rng.IntN(1000))
		case 6:
			r.server.Cut()
		case 7:
			r.server.SetDown(true)
			<-time.After(time.Duration(rng.IntN(5000)) * time.Millisecond)
			r.server.SetDown(false)
		case 8:
			r.server.Mute(true)
			r.put(name(), rng.IntN(1000))
			<-time.After(time.Duration(rng.IntN(5000)) * time.Millisecond)
			r.server.Mute(false)
		case 9:
			r.server.Misbehave(informertest.Fault{On: resources[rng.IntN(len(resources))], Code: 503, Times: 1 + rng.IntN(3)})
		case 10:
			c.Enqueue(key(name()))
		default:
			r.put(name(), rng.IntN(1000))
		}
		<-time.After(time.Duration(rng.IntN(200)) * time.Millisecond)
	}
	mu.Lock()
	quiet = true
	mu.Unlock()
	<-time.After(10 * time.Minute) // the watches are current, and failed keys were retried
	if err := end(); err != nil {
		r.Error(err)
	}
	for i := range names {
		k := key(fmt.Sprintf("w%03d", i))
		last, err := r.state(k)
		if err != nil {
			r.Error(err)
		}
		if got, ok := saw[k]; got != last && (ok || last != "gone[]") {
			r.Errorf("%s: %q was seen last, and it is %q", k, got, last)
		}
	}
	if r.Failed() {
		r.Logf("CONTROLLER_SEED=%d", seed)
	}
}

// state returns the cached state of a widget and its parts.
func (r *rig) state(k controller.Key) (string, error) {
	state, owned := "gone", []string{}
	o, err := r.widgets.Get(k.Namespace, k.Name)
	switch {
	case err == nil:
		state = o.GetResourceVersion()
	case !errors.Is(err, informer.ErrNotFound):
		return "", err
	}
	for p, err := range r.parts.All() {
		if err != nil {
			return "", err
		}
		owners, _, _ := unstructured.NestedSlice(p.Object, "metadata", "ownerReferences")
		if len(owners) == 2 && owners[1].(map[string]any)["name"] == k.Name {
			owned = append(owned, p.GetName()+"@"+p.GetResourceVersion())
		}
	}
	slices.Sort(owned)
	return state + fmt.Sprint(owned), nil
}
