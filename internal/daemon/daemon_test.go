package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/sink"
)

// failing is a sink that accepts nothing while it is down.
type failing struct {
	sent
	down bool
}

func (f *failing) Send(ctx context.Context, ms []sink.Message) (int, error) {
	if f.down {
		return 0, errors.New("down")
	}
	return f.sent.Send(ctx, ms)
}

// run runs a daemon while f runs.
func (r *rig) run(dir string, f func(), sinks ...deliver.Options) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{
			Config: r.server.Config(), Cluster: "test", Scopes: []capture.Scope{{Types: []string{"configmaps"}}},
			Journal: filepath.Join(dir, "journal.db"), Key: filepath.Join(dir, "key"), Sinks: sinks, listen: nowhere,
		})
	}()
	synctest.Wait()
	f()
	synctest.Wait()
	<-time.After(2 * time.Second)
	cancel()
	return <-ended
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		up, down := &failing{}, &failing{down: true}
		sinks := []deliver.Options{{Name: "up", Sink: up}, {Name: "down", Sink: down}}
		r.put("a", "1")
		if err := r.run(dir, func() { r.put("a", "2") }, sinks...); err != nil {
			t.Error(err)
		}
		r.put("b", "1") // while it is stopped
		down.down = false
		if err := r.run(dir, func() { r.put("b", "2") }, sinks...); err != nil {
			t.Error(err)
		}
		want := []string{"updated a", "created b", "updated b"}
		for name, s := range map[string]*failing{"up": up, "down": down} {
			if diff := cmp.Diff(want, s.lines); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if diff := cmp.Diff(up.ids, down.ids); diff != "" {
			t.Errorf("ids differ:\n%s", diff)
		}
	})
}

func TestRunCannotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		j, err := journal.Open(t.Context(), filepath.Join(dir, "journal.db"), journal.Options{Cluster: "test"})
		if err != nil {
			t.Fatal(err)
		}
		var locked *journal.LockedError
		if err := r.run(dir, func() {}); !errors.As(err, &locked) {
			t.Errorf("beside another: %v", err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err := r.run(dir, func() {}, deliver.Options{Name: "x"}); err == nil || !strings.Contains(err.Error(), "sink x") {
			t.Errorf("an invalid sink: %v", err)
		}
		if err := r.run(dir, func() {}); err != nil {
			t.Errorf("after all that: %v", err)
		}
	})
}

// opening is a sink that must be opened before anything is sent to it.
type opening struct {
	failing
	opened, closed int
}

func (o *opening) Close(context.Context) error {
	o.closed++
	return nil
}

// TestOpen: outputs of sinks are opened once no other daemon can write there, and always closed.
func TestOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir, to := newRig(t), t.TempDir(), &opening{}
		path := filepath.Join(dir, "journal.db")
		refused := error(nil)
		start := func() error {
			return Run(t.Context(), Options{
				Config: r.server.Config(), Cluster: "test", Journal: path, Key: filepath.Join(dir, "key"),
				Scopes: []capture.Scope{{Types: []string{"nothings"}}}, // which ends it
				Sinks:  []deliver.Options{{Name: "x", Sink: to}}, listen: nowhere,
				Open: func() error {
					to.opened++
					return refused
				},
			})
		}
		j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
		if err != nil {
			t.Fatal(err)
		}
		if err := start(); err == nil || to.opened != 0 {
			t.Errorf("another daemon writes there: %v, opened %d times", err, to.opened)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		refused = errors.New("no such folder")
		if err := start(); !errors.Is(err, refused) || to.opened != 1 || to.closed != 1 {
			t.Errorf("it cannot be opened: %v, opened %d times, closed %d times", err, to.opened, to.closed)
		}
		refused = nil
		var unknown *capture.UnknownTypeError
		if err := start(); !errors.As(err, &unknown) || to.opened != 2 || to.closed != 2 {
			t.Errorf("it could: %v, opened %d times, closed %d times", err, to.opened, to.closed)
		}
	})
}

// TestOtherClusterName: a new name does not change the ids in the journal, and is logged.
func TestOtherClusterName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		j, err := journal.Open(t.Context(), filepath.Join(dir, "journal.db"), journal.Options{Cluster: "before"})
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		d := r.daemon(dir, Options{})
		if log := d.log.String(); !strings.Contains(log, "journal=before now=test") {
			t.Errorf("nothing is said of the name:\n%s", log)
		}
		if s := d.status(); s.Cluster != "before" {
			t.Errorf("the status names %q", s.Cluster)
		}
		d.stop()
	})
}

// TestOtherCluster: a journal of another cluster must not be used for this one, which lacks its objects.
func TestOtherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
		prod, other, dir := newRig(t), newRig(t), t.TempDir()
		for i, r := range []*rig{prod, other} {
			r.server.Serve(namespaces, "Namespace")
			for n := range i { // this gives another UID
				r.put(fmt.Sprint("x", n), "1")
			}
			r.server.Put(namespaces, "", "kube-system", nil)
		}
		prod.put("a", "1")
		d := prod.daemon(dir, Options{})
		d.pass(time.Second)
		d.stop()
		run := func(r *rig, cluster string) (string, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got := &sent{}
			err := Run(ctx, Options{
				Config: r.server.Config(), Cluster: cluster, Scopes: []capture.Scope{{Types: []string{"configmaps"}}},
				Journal: filepath.Join(dir, "journal.db"), Key: filepath.Join(dir, "key"), listen: nowhere,
				Sinks: []deliver.Options{{Name: "x", Sink: got}},
			})
			return strings.Join(got.lines, ", "), err
		}
		if log, err := run(other, "other"); err == nil || !strings.Contains(err.Error(), `records another cluster, "test"`) || log != "" {
			t.Errorf("a mistake: log %q, %v", log, err)
		}
		if log, err := run(prod, "renamed"); err != nil || log != "" {
			t.Errorf("a new name: log %q, %v", log, err)
		}
		if log, err := run(other, "test"); err != nil || !strings.Contains(log, "deleted a") {
			t.Errorf("the cluster was recreated: log %q, %v", log, err)
		}
	})
}
