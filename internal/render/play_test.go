package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/goldentest"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

var morning = time.Date(2026, 11, 21, 10, 42, 7, 0, time.UTC)

type obj = map[string]any

// play is a cluster in a test: its objects change at given times, and a Text prints it, driven like the
// caller's loop: Tick whenever Next says so.
type play struct {
	t       *testing.T
	text    *Stream
	out     bytes.Buffer
	now     time.Time
	version int
	objects map[string]obj
	fed     int                    // changes
	stamp   func(c *change.Change) // writes the times of a change that did not come as it happened
}

func newPlay(t *testing.T, o Options) *play {
	p := &play{t: t, now: morning, objects: map[string]obj{}}
	o.Out, o.Location = &p.out, time.UTC
	p.text = NewStream(o)
	return p
}

var terminal = Options{Terminal: true, Width: 120}

// at moves the clock to a time, in seconds after the play's start.
func (p *play) at(seconds float64) {
	to := morning.Add(time.Duration(seconds * float64(time.Second)))
	if to.Before(p.now) {
		p.t.Fatalf("at %v: the play is at %v already", to, p.now)
	}
	for {
		due, ok := p.text.Next()
		if !ok || due.After(to) {
			break
		}
		p.must(p.text.Tick(due))
		if next, ok := p.text.Next(); ok && !next.After(due) {
			p.t.Fatalf("Tick at %v left work that was due at %v", due, next)
		}
	}
	p.now = to
}

// end flushes and checks that every change is accounted for.
func (p *play) end() string {
	p.t.Helper()
	p.must(p.text.Flush(p.now))
	c := p.text.Counts()
	if got := c.Shown + c.Folded + c.Quiet + c.Away; got != p.fed || c.Pending != 0 {
		p.t.Errorf("counts %+v, want a sum of %d and nothing pending", c, p.fed)
	}
	if n := len(p.text.objects) + len(p.text.due); n != 0 {
		p.t.Errorf("%d objects are remembered after Flush", n)
	}
	return p.out.String()
}

func (p *play) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *play) feed(c change.Change) {
	p.t.Helper()
	c.At = p.now
	if p.stamp != nil {
		p.stamp(&c)
	}
	p.fed++
	p.must(p.text.Change(p.now, c))
}

// change returns a change of an object.
func (p *play) change(op event.Op, before, after obj) change.Change {
	o := after
	if o == nil {
		o = before
	}
	c := change.Change{
		Meta:   change.Meta{Op: op, Kind: resources[jsonmap.Text(o, "kind")].ID(), Namespace: jsonmap.Text(o, "metadata", "namespace"), Name: jsonmap.Text(o, "metadata", "name"), UID: jsonmap.Text(o, "metadata", "uid"), Manager: "?"},
		Names:  resources[jsonmap.Text(o, "kind")].Names(),
		Before: before,
		After:  after,
	}
	for _, r := range jsonmap.List(o, "metadata", "ownerReferences") {
		ref := r.(obj)
		c.Owner = &event.Owner{Kind: jsonmap.Text(ref, "kind"), Name: jsonmap.Text(ref, "name"), UID: jsonmap.Text(ref, "uid")}
	}
	return c
}

// create adds an object; its version and UID are made up.
func (p *play) create(manager string, o obj) {
	p.t.Helper()
	p.version++
	m := o["metadata"].(obj)
	m["resourceVersion"] = fmt.Sprint(p.version)
	if m["uid"] == nil {
		m["uid"] = fmt.Sprintf("uid-%s-%d", m["name"], p.version)
	}
	if m["creationTimestamp"] == nil {
		m["creationTimestamp"] = p.now.Format(time.RFC3339)
	}
	p.objects[key(o)] = o
	c := p.change(event.Created, nil, clone(o))
	c.Manager = manager
	p.feed(c)
}

// have adds an object that existed before the play.
func (p *play) have(age time.Duration, o obj) {
	p.version++
	m := o["metadata"].(obj)
	m["resourceVersion"] = fmt.Sprint(p.version)
	m["uid"] = fmt.Sprintf("uid-%s", m["name"])
	m["creationTimestamp"] = p.now.Add(-age).Format(time.RFC3339)
	p.objects[key(o)] = o
}

func key(o obj) string { return jsonmap.Text(o, "kind") + "/" + jsonmap.Text(o, "metadata", "name") }

// set writes one field of an object, given by its dotted path.
type set struct {
	path  string
	value any // nil removes
}

// write updates an object as one write of a manager: removed fields have no owner.
func (p *play) write(manager, name string, sets ...set) {
	p.t.Helper()
	p.feed(p.written(manager, name, sets...))
}

func (p *play) written(manager, name string, sets ...set) change.Change {
	p.t.Helper()
	o := p.objects[name]
	if o == nil {
		p.t.Fatalf("there is no %s", name)
	}
	before := clone(o)
	p.version++
	put(o, "metadata.resourceVersion", fmt.Sprint(p.version))
	for _, s := range sets {
		put(o, s.path, s.value)
	}
	c := p.change(event.Updated, before, clone(o))
	c.Quiet = true
	who := map[string]bool{}
	for _, d := range diff.Objects(before, c.After, nil) {
		f := change.FieldChange{Change: d, Manager: manager, Quiet: quiet(d.Path.String())}
		f.Manager, f.Subresource, _ = strings.Cut(manager, "/")
		if d.Op == diff.Remove {
			f.Manager, f.Subresource = "?", ""
		}
		if !f.Quiet {
			c.Quiet = false
			who[f.Manager] = true
			c.Manager = f.Manager
		}
		c.Fields = append(c.Fields, f)
	}
	if len(who) != 1 {
		c.Manager = "?"
	}
	return c
}

func (p *play) remove(name string) {
	p.t.Helper()
	o := p.objects[name]
	delete(p.objects, name)
	p.feed(p.change(event.Deleted, o, nil))
}

// quiet replaces the quiet rules.
func quiet(path string) bool {
	for _, s := range []string{"resourceVersion", "generation", "observedGeneration", "TransitionTime", "UpdateTime", "HeartbeatTime", "renewTime"} {
		if strings.HasSuffix(path, s) {
			return true
		}
	}
	return false
}

// put writes a field; a numeric step is an element of a list.
func put(o obj, path string, value any) {
	steps := strings.Split(path, ".")
	for i, s := range steps[:len(steps)-1] {
		if at, err := strconv.Atoi(steps[i+1]); err == nil {
			rest := strings.Join(steps[i+2:], ".")
			put(o[s].([]any)[at].(obj), rest, value)
			return
		}
		next, _ := o[s].(obj)
		if next == nil {
			next = obj{}
			o[s] = next
		}
		o = next
	}
	last := steps[len(steps)-1]
	if value == nil {
		delete(o, last)
		return
	}
	o[last] = value
}

func clone(o obj) obj { return deep(o).(obj) }

func deep(v any) any {
	switch v := v.(type) {
	case obj:
		out := obj{}
		for k, e := range v {
			out[k] = deep(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = deep(e)
		}
		return out
	case int:
		return int64(v)
	}
	return v
}

// parse reads JSON as the engine does: integers are int64.
func parse(t *testing.T, s string) obj {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var o obj
	if err := dec.Decode(&o); err != nil {
		t.Fatalf("parse %s: %v", s, err)
	}
	return integers(o).(obj)
}

func integers(v any) any {
	switch v := v.(type) {
	case obj:
		for k, e := range v {
			v[k] = integers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = integers(e)
		}
	case json.Number:
		n, err := v.Int64()
		if err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

var resources = func() map[string]change.Resource {
	m := map[string]change.Resource{}
	for _, r := range []change.Resource{
		{Group: "apps", Resource: "deployments", Singular: "deployment", Short: "deploy", Kind: "Deployment"},
		{Group: "apps", Resource: "replicasets", Singular: "replicaset", Short: "rs", Kind: "ReplicaSet"},
		{Group: "apps", Resource: "statefulsets", Singular: "statefulset", Short: "sts", Kind: "StatefulSet"},
		{Group: "apps", Resource: "daemonsets", Singular: "daemonset", Short: "ds", Kind: "DaemonSet"},
		{Group: "batch", Resource: "cronjobs", Singular: "cronjob", Short: "cj", Kind: "CronJob"},
		{Group: "batch", Resource: "jobs", Singular: "job", Kind: "Job"},
		{Resource: "pods", Singular: "pod", Short: "po", Kind: "Pod"},
		{Resource: "nodes", Singular: "node", Short: "no", Kind: "Node"},
		{Resource: "namespaces", Singular: "namespace", Short: "ns", Kind: "Namespace"},
		{Resource: "services", Singular: "service", Short: "svc", Kind: "Service"},
		{Resource: "secrets", Singular: "secret", Kind: "Secret"},
		{Resource: "configmaps", Singular: "configmap", Short: "cm", Kind: "ConfigMap"},
		{Resource: "persistentvolumeclaims", Singular: "persistentvolumeclaim", Short: "pvc", Kind: "PersistentVolumeClaim"},
		{Resource: "events", Singular: "event", Short: "ev", Kind: "Event"},
		{Group: "autoscaling", Resource: "horizontalpodautoscalers", Singular: "horizontalpodautoscaler", Short: "hpa", Kind: "HorizontalPodAutoscaler"},
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Singular: "customresourcedefinition", Short: "crd", Kind: "CustomResourceDefinition"},
		{Group: "example.com", Resource: "backups", Singular: "backup", Kind: "Backup"},
	} {
		r.Version = "v1"
		m[r.Kind] = r
	}
	return m
}()

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	goldentest.Compare(t, filepath.Join("testdata", name), got)
}
