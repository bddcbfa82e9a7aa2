// Package storytest plays what happens in a cluster, as the changes of its objects, for tests of stories.
package storytest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

type obj = map[string]any

var kinds = map[string]change.Kind{
	"Deployment": {Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true},
	"ReplicaSet": {Group: "apps", Version: "v1", Resource: "replicasets", Kind: "ReplicaSet", Namespaced: true},
	"Job":        {Group: "batch", Version: "v1", Resource: "jobs", Kind: "Job", Namespaced: true},
	"Pod":        {Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true},
	"Node":       {Version: "v1", Resource: "nodes", Kind: "Node"},
	"ConfigMap":  {Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true},
}

// World is a cluster in a test. Its clock stands still during a write.
type World struct {
	now     time.Time
	version int
	objects map[string]obj
	Changes []change.Change // of all kinds, in the order of their writes
}

// NewWorld returns an empty cluster.
func NewWorld() *World {
	return &World{now: time.Date(2026, 11, 27, 10, 42, 0, 0, time.UTC), objects: map[string]obj{}}
}

// Pass moves the clock.
func (w *World) Pass(d time.Duration) { w.now = w.now.Add(d) }

func (w *World) clock() string { return w.now.Format(time.RFC3339) }

func key(o obj) string {
	m := o["metadata"].(obj)
	return o["kind"].(string) + "/" + m["name"].(string)
}

func (w *World) record(op event.Op, manager string, before, after obj) {
	o := after
	if o == nil {
		o = before
	}
	m := o["metadata"].(obj)
	k := kinds[o["kind"].(string)]
	c := change.Change{
		Meta: change.Meta{
			Op: op, Kind: k, Namespace: "shop", Name: m["name"].(string), UID: m["uid"].(string), ResourceVersion: m["resourceVersion"].(string), Time: w.now.Truncate(time.Second), At: w.now.Add(20 * time.Millisecond), Manager: manager,
			Owner: change.Controller(o),
		},
		Before: before, After: after,
	}
	if op == event.Deleted {
		c.Time = c.At
	}
	if op == event.Updated {
		for _, d := range diff.Objects(before, after, nil) {
			c.Fields = append(c.Fields, change.FieldChange{Change: d, Manager: manager, Quiet: strings.HasSuffix(d.Path.String(), "resourceVersion")})
		}
	}
	w.Changes = append(w.Changes, c)
}

func (w *World) Create(manager string, o obj) {
	w.version++
	m := o["metadata"].(obj)
	m["uid"], m["creationTimestamp"], m["resourceVersion"], m["generation"] = fmt.Sprint("uid-", m["name"], "-", w.version), w.clock(), fmt.Sprint(w.version), int64(1)
	w.objects[key(o)] = o
	w.record(event.Created, manager, nil, clone(o).(obj))
}

func (w *World) Write(manager, name string, edit func(o obj)) {
	o := w.objects[name]
	if o == nil {
		return
	}
	before := clone(o).(obj)
	edit(o)
	if len(diff.Objects(before, o, nil)) == 0 {
		return
	}
	w.version++
	o["metadata"].(obj)["resourceVersion"] = fmt.Sprint(w.version)
	w.record(event.Updated, manager, before, clone(o).(obj))
}

func (w *World) Remove(name string) {
	if o := w.objects[name]; o != nil {
		delete(w.objects, name)
		w.record(event.Deleted, "?", o, nil)
	}
}

func clone(v any) any {
	switch v := v.(type) {
	case obj:
		out := obj{}
		for k, e := range v {
			out[k] = clone(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = clone(e)
		}
		return out
	}
	return v
}

func owned(kind, name string, by obj) obj {
	o := obj{"kind": kind, "metadata": obj{"name": name}}
	if by != nil {
		m := by["metadata"].(obj)
		o["metadata"].(obj)["ownerReferences"] = []any{obj{"kind": by["kind"], "name": m["name"], "uid": m["uid"], "controller": true}}
	}
	return o
}

// deployment is a Deployment with what its controllers and kubelets do about it.
type Deployment struct {
	*World
	r     *rand.Rand
	name  string
	set   int            // number of the current ReplicaSet
	pods  map[string]int // the ReplicaSet of each
	names int
}

func (d *Deployment) self() string { return "Deployment/" + d.name }

func (d *Deployment) setName(i int) string { return fmt.Sprintf("%s-%d", d.name, i) }

func NewDeployment(w *World, r *rand.Rand, name string, replicas int) *Deployment {
	d := &Deployment{World: w, r: r, name: name, pods: map[string]int{}}
	o := owned("Deployment", name, nil)
	o["spec"] = obj{"replicas": int64(replicas), "template": template("web:1")}
	w.Create("kubectl", o)
	d.makeSet()
	d.reconcile(replicas)
	return d
}

func template(image string) obj {
	return obj{"spec": obj{"containers": []any{obj{"name": "app", "image": image}}}}
}

func (d *Deployment) makeSet() {
	d.set++
	o := owned("ReplicaSet", d.setName(d.set), d.objects[d.self()])
	o["spec"], o["status"] = obj{"replicas": int64(0)}, obj{"observedGeneration": int64(1)}
	d.Create("kube-controller-manager", o)
}

// status writes the counters.
func (d *Deployment) status() {
	ready, updated := 0, 0
	for name, set := range d.pods {
		if isReady(d.objects["Pod/"+name]) {
			ready++
		}
		if set == d.set {
			updated++
		}
	}
	d.Write("kube-controller-manager", d.self(), func(o obj) {
		o["status"] = obj{
			"observedGeneration": o["metadata"].(obj)["generation"], "replicas": int64(len(d.pods)), "updatedReplicas": int64(updated),
			"readyReplicas": int64(ready), "availableReplicas": int64(ready),
		}
	})
}

func isReady(pod obj) bool {
	s, _ := pod["status"].(obj)
	for _, c := range s["conditions"].([]any) {
		if c.(obj)["type"] == "Ready" {
			return c.(obj)["status"] == "True"
		}
	}
	return false
}

func (d *Deployment) podStatus(name string, ready bool, container obj) {
	d.Write("kubelet", "Pod/"+name, func(o obj) {
		status := "False"
		if ready {
			status = "True"
		}
		since := d.clock()
		if s, ok := o["status"].(obj); ok {
			if c := s["conditions"].([]any)[0].(obj); c["status"] == status {
				since = c["lastTransitionTime"].(string)
			}
		}
		container["name"] = "app"
		o["status"] = obj{"phase": "Running", "conditions": []any{obj{"type": "Ready", "status": status, "lastTransitionTime": since}}, "containerStatuses": []any{container}}
	})
}

func (d *Deployment) startPod(good bool) {
	d.names++
	name := fmt.Sprintf("%s-%d", d.setName(d.set), d.names)
	o := owned("Pod", name, d.objects["ReplicaSet/"+d.setName(d.set)])
	o["status"] = obj{"phase": "Pending", "conditions": []any{obj{"type": "Ready", "status": "False", "lastTransitionTime": d.clock()}}}
	d.Create("kube-controller-manager", o)
	d.pods[name] = d.set
	d.Pass(time.Duration(1+d.r.IntN(3)) * time.Second)
	if !good {
		d.podStatus(name, false, obj{"state": obj{"waiting": obj{"reason": "ImagePullBackOff"}}})
		return
	}
	d.podStatus(name, true, obj{"state": obj{"running": obj{"startedAt": d.clock()}}})
}

func (d *Deployment) StopPod(name string) {
	d.Write("?", "Pod/"+name, func(o obj) {
		o["metadata"].(obj)["deletionTimestamp"], o["metadata"].(obj)["deletionGracePeriodSeconds"] = d.now.Add(30*time.Second).Format(time.RFC3339), int64(30)
	})
	delete(d.pods, name)
}

// reconcile replaces pods of older sets, up to the wanted number.
func (d *Deployment) reconcile(want int) {
	var leaving []string
	for _, name := range d.PodNames() {
		if d.pods[name] != d.set || len(d.pods) > want {
			d.startIf(want)
			d.StopPod(name)
			leaving = append(leaving, name)
			d.status()
		}
	}
	for len(d.pods) < want {
		d.startPod(true)
		d.status()
	}
	d.status()
	for _, name := range leaving {
		d.Pass(time.Second)
		d.Remove("Pod/" + name)
	}
}

func (d *Deployment) startIf(want int) {
	n := 0
	for _, set := range d.pods {
		if set == d.set {
			n++
		}
	}
	if n < want {
		d.startPod(true)
	}
}

func (d *Deployment) RollOut(image string) {
	want := 0
	d.Write("kubectl-set", d.self(), func(o obj) {
		o["spec"].(obj)["template"] = template(image)
		o["metadata"].(obj)["generation"] = o["metadata"].(obj)["generation"].(int64) + 1
		want = int(o["spec"].(obj)["replicas"].(int64))
	})
	d.makeSet()
	d.reconcile(want)
}

func (d *Deployment) Scale(n int) {
	d.Write("kubectl", d.self(), func(o obj) {
		if o["spec"].(obj)["replicas"] == int64(n) {
			return
		}
		o["spec"].(obj)["replicas"] = int64(n)
		o["metadata"].(obj)["generation"] = o["metadata"].(obj)["generation"].(int64) + 1
	})
	d.reconcile(n)
}

// crash lets the container of a pod crash some times.
func (d *Deployment) Crash(name string, times int, pause time.Duration) {
	for range times {
		d.Pass(pause)
		end := obj{"terminated": obj{"exitCode": int64(1), "reason": "Error", "finishedAt": d.clock()}}
		d.podStatus(name, false, obj{"restartCount": int64(1), "state": obj{"waiting": obj{"reason": "CrashLoopBackOff"}}, "lastState": end})
		d.status()
		d.Pass(5 * time.Second)
		d.podStatus(name, true, obj{"restartCount": int64(1), "state": obj{"running": obj{"startedAt": d.clock()}}, "lastState": end})
		d.status()
	}
}

// PodNames returns the names of the pods that are not being deleted.
func (d *Deployment) PodNames() []string { return slices.Sorted(maps.Keys(d.pods)) }

// Random plays a random hour of two Deployments.
func Random(r *rand.Rand) []change.Change {
	w := NewWorld()
	var all []*Deployment
	for i := range 2 {
		all = append(all, NewDeployment(w, r, fmt.Sprint("d", i), 1+r.IntN(3)))
		w.Pass(time.Duration(r.IntN(100)) * time.Second)
	}
	for i := range 6 {
		d := all[r.IntN(len(all))]
		switch r.IntN(4) {
		case 0:
			d.RollOut(fmt.Sprint("web:", i+2))
		case 1:
			d.Scale(1 + r.IntN(4))
		case 2:
			if names := d.PodNames(); len(names) > 0 {
				d.Crash(names[r.IntN(len(names))], 1+r.IntN(3), time.Duration(1+r.IntN(90))*time.Second)
			}
		case 3:
			if names := d.PodNames(); len(names) > 0 {
				name := names[0]
				d.StopPod(name)
				d.status()
				d.reconcile(len(d.pods) + 1)
				w.Pass(time.Second)
				w.Remove("Pod/" + name)
			}
		}
		w.Pass(time.Duration(r.IntN(200)) * time.Second)
	}
	return w.Changes
}

// Shuffled interleaves the changes of kinds anew. The order within a kind stays.
func Shuffled(r *rand.Rand, changes []change.Change) []change.Change {
	streams := map[string][]change.Change{}
	for _, c := range changes {
		streams[c.Kind.Resource] = append(streams[c.Kind.Resource], c)
	}
	names := slices.Sorted(maps.Keys(streams))
	var out []change.Change
	for len(names) > 0 {
		i := r.IntN(len(names))
		for range 1 + r.IntN(20) {
			if len(streams[names[i]]) == 0 {
				break
			}
			out = append(out, streams[names[i]][0])
			streams[names[i]] = streams[names[i]][1:]
		}
		if len(streams[names[i]]) == 0 {
			names = slices.Delete(names, i, i+1)
		}
	}
	return out
}

// Now returns the time.
func (w *World) Now() time.Time { return w.now }
