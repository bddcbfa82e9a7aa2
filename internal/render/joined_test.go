package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// happens creates an event of the core group about an object: its kind and name, how often it happened, and since when.
func (p *play) happens(about, kind, reason, message string, times int, since time.Duration) {
	p.t.Helper()
	_, name, _ := strings.Cut(about, "/")
	e := parse(p.t, fmt.Sprintf(`{"kind":"Event","metadata":{"name":"%s.%d","namespace":"shop"},"type":%q,"reason":%q,"count":%d,
		"firstTimestamp":%q,"lastTimestamp":%q}`, name, p.version, kind, reason, times, p.now.Add(-since).Format(time.RFC3339), p.now.Format(time.RFC3339)))
	e["message"], e["involvedObject"] = message, p.reference(about)
	p.create("kubelet", e)
}

func (p *play) reference(about string) obj {
	o := p.objects[about]
	kind, name, _ := strings.Cut(about, "/")
	group := resources[kind].Group
	if group != "" {
		group += "/"
	}
	return obj{"kind": kind, "name": name, "uid": jsonmap.Text(o, "metadata", "uid"), "apiVersion": group + "v1"}
}

// troubles is an incident with watched events.
func troubles(p *play) {
	p.have(day, replicaSet(p.t, "web-1", 2, 3))
	pod := func(name string) string {
		p.create(kcm, newPod(p.t, name))
		return "Pod/" + name
	}
	unscheduled := pod("web-1-unscheduled")
	p.write("kube-scheduler/status", unscheduled, set{"status.conditions", []any{obj{
		"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu."}}})
	p.happens(unscheduled, "Warning", "FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.", 1, 0)
	mount := pod("web-1-mount")
	p.write("?", mount, set{"spec.nodeName", "n1"})
	p.happens(mount, "Normal", "Scheduled", "Successfully assigned shop/web-1-mount to n1", 1, 0)
	p.write("kubelet/status", mount, set{"status", waiting("ContainerCreating", 0)})
	image := pod("web-1-image")
	p.happens(image, "Normal", "Pulling", "Pulling image", 1, 0)
	crash := pod("web-1-crash")
	ready := pod("web-1-ready")
	evil := pod("web-1-evil")
	p.at(1)
	p.write("kubelet/status", ready, set{"status", runningStatus(p.now)})
	p.write("kubelet/status", image, set{"status", waiting("ErrImagePull", 0)})
	p.happens(image, "Warning", "Failed", `Failed to pull image "shop/web:1.6": not found`, 1, 0)
	p.happens(image, "Warning", "BackOff", `Back-off pulling image "shop/web:1.6"`, 1, 0)
	p.write("kubelet/status", crash, set{"status", waiting("CrashLoopBackOff", 1)})
	p.happens(crash, "Warning", "BackOff", "Back-off restarting failed container app", 4, 12*time.Second)
	p.happens(mount, "Warning", "FailedMount", `MountVolume.SetUp failed for volume "config": configmap "web" not found`, 5, 8*time.Second)
	p.write("kubelet/status", evil, set{"status", waiting("CrashLoopBackOff", 1)})
	p.happens(evil, "Warning", "BackOff", "\x1b[31mall is well\n10:42:07 - deploy/web\u202e", 1, 0)
	p.at(20)
	// The event of a pod that was ready comes before the change of its status.
	p.happens(ready, "Warning", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", 3, 20*time.Second)
	p.at(20.2)
	p.write("kubelet/status", ready,
		set{"status.conditions", []any{obj{"type": "PodScheduled", "status": "True"}, obj{"type": "Ready", "status": "False", "lastTransitionTime": p.now.Format(time.RFC3339)}}},
		set{"status.containerStatuses", []any{obj{"name": "app", "ready": false, "state": obj{"running": obj{"startedAt": p.now.Add(-19 * time.Second).Format(time.RFC3339)}}}}})
	p.at(25)
	// A repeated event is printed once a minute.
	for i := range 6 {
		p.at(25 + float64(10*i))
		p.happens(crash, "Warning", "BackOff", "Back-off restarting failed container app", 5+i, time.Duration(24+10*i)*time.Second)
	}
	p.at(100)
	// An event about an object that is not watched has its own line, with the object's name.
	p.happens("ReplicaSet/web-1", "Warning", "FailedCreate", "pods \"web-1-x\" is forbidden: exceeded quota", 2, 3*time.Second)
	p.remove(mount)
	p.write("kubelet/status", image, set{"status", runningStatus(p.now)})
	p.at(120)
}

// TestJoinedEvents: the line of an object includes events of the cluster about it, with correct counts and times.
func TestJoinedEvents(t *testing.T) {
	for name, o := range map[string]Options{
		"joined-160.txt": {Terminal: true, Width: 160}, "joined-80.txt": {Terminal: true, Width: 80}, "joined-pipe.txt": {Full: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, o)
			troubles(p)
			got := p.end()
			if strings.ContainsAny(got, "\x1b\u202e") {
				t.Error("a message commands the terminal")
			}
			if o.Width == 0 && strings.Contains(got, "…") {
				t.Error("something is cut in a pipe")
			}
			golden(t, name, got)
		})
	}
}

// TestJoinedForms: the two event groups have counts and times in different fields.
func TestJoinedForms(t *testing.T) {
	for _, tc := range []struct{ why, event, want string }{
		{"core", `{"type":"Warning","reason":"BackOff","message":"m","count":3,"firstTimestamp":"2026-11-21T10:40:00Z","lastTimestamp":"2026-11-21T10:42:00Z"}`, "BackOff: m (3 times in 2 min)"},
		{"core with a series", `{"type":"Warning","reason":"BackOff","message":"m","eventTime":"2026-11-21T10:41:00.5Z","series":{"count":7,"lastObservedTime":"2026-11-21T10:42:00.5Z"}}`, "BackOff: m (7 times in 1 min)"},
		{"events.k8s.io", `{"type":"Warning","reason":"BackOff","note":"m","eventTime":"2026-11-21T10:41:30Z","series":{"count":2,"lastObservedTime":"2026-11-21T10:42:00Z"}}`, "BackOff: m (2 times in 30 s)"},
		{"events.k8s.io, of an old reporter", `{"type":"Warning","reason":"BackOff","note":"m","deprecatedCount":4,"deprecatedFirstTimestamp":"2026-11-21T10:42:00Z","deprecatedLastTimestamp":"2026-11-21T10:42:05Z"}`, "BackOff: m (4 times in 5 s)"},
		{"once", `{"type":"Warning","reason":"BackOff","message":"m","eventTime":"2026-11-21T10:41:30Z"}`, "BackOff: m"},
		{"a time that is not known makes no duration", `{"type":"Warning","reason":"BackOff","message":"m","count":9,"lastTimestamp":"2026-11-21T10:42:05Z"}`, "BackOff: m (9 times)"},
	} {
		p := newPlay(t, Options{})
		p.create(kcm, newPod(t, "web-1-a"))
		e := parse(t, tc.event)
		e["kind"], e["metadata"] = "Event", obj{"name": "web-1-a.17f", "namespace": "shop"}
		field := "involvedObject"
		if strings.Contains(tc.why, "events.k8s.io") {
			field = "regarding"
		}
		e[field] = p.reference("Pod/web-1-a")
		p.create("kubelet", e)
		p.at(40)
		if got := p.end(); !strings.Contains(got, " "+tc.want) || strings.Contains(got, "17f") {
			t.Errorf("%s: %s", tc.why, got)
		}
	}
}

// TestEventsOnOneLine: without folding, an event has the name of its object.
func TestEventsOnOneLine(t *testing.T) {
	var out bytes.Buffer
	l := NewLines(Options{Out: &out, Location: time.UTC}, "test")
	e := obj{"type": "Warning", "reason": "BackOff", "message": "m", "count": int64(3), "involvedObject": obj{"kind": "Pod", "name": "web-1-a"}}
	for i, c := range []change.Change{{Meta: change.Meta{Op: event.Created}, After: e}, {Meta: change.Meta{Op: event.Updated}, Before: e, After: e}, {Meta: change.Meta{Op: event.Deleted}, Before: e}} {
		c.Kind, c.Name, c.At, c.Namespace = resources["Event"].ID(), "web-1-a.17f", morning.Add(time.Duration(i)*time.Second), "shop"
		if err := l.Change(c); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); strings.Contains(got, "17f") || strings.Count(got, "pod/web-1-a") != 3 || strings.Count(got, "event BackOff: m (3 times)") != 2 || !strings.Contains(got, "event BackOff expired") {
		t.Errorf("%s", got)
	}
}

// TestNarrowEvents: if the columns leave too little for the message, it is below.
func TestNarrowEvents(t *testing.T) {
	p := newPlay(t, Options{Terminal: true, Width: 80, Namespaces: true})
	p.have(day, replicaSet(t, "web-1", 2, 3))
	p.happens("ReplicaSet/web-1", "Warning", "FailedCreate", "pods is forbidden: exceeded quota: team, requested: pods=1", 2, 3*time.Second)
	p.happens("ReplicaSet/web-1", "Warning", "FailedCreate", "quota", 1, 0)
	want := "10:42:07 · shop     replicaset/web-1  FailedCreate (2 times in 3 s)  (1 change)\n" +
		"             pods is forbidden: exceeded quota: team, requested: pods=1\n" +
		"10:42:07 · shop     replicaset/web-1  FailedCreate: quota  (1 change)\n"
	if got := p.end(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestStoppedPod: why a pod did not run no longer matters once it terminates.
func TestStoppedPod(t *testing.T) {
	p := newPlay(t, narrow)
	p.have(day, replicaSet(t, "web-1", 2, 3))
	p.create(kcm, newPod(t, "web-1-a"))
	const why = "0/3 nodes are available: 3 Insufficient cpu."
	p.write("kube-scheduler/status", "Pod/web-1-a", set{"status.conditions", []any{obj{
		"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}}})
	p.happens("Pod/web-1-a", "Warning", "FailedScheduling", why, 1, 0)
	p.at(20)
	before := p.out.Len()
	p.happens("Pod/web-1-a", "Warning", "FailedScheduling", why, 2, 20*time.Second)
	p.at(30)
	p.write("?", "Pod/web-1-a", set{"metadata.deletionTimestamp", p.now.Add(30 * time.Second).Format(time.RFC3339)}, set{"metadata.deletionGracePeriodSeconds", int64(30)})
	p.at(35)
	p.remove("Pod/web-1-a")
	p.at(60)
	if got := p.end()[before:]; strings.Contains(got, "FailedScheduling") || !strings.Contains(got, "gone after 35 s") {
		t.Errorf("got\n%s", got)
	}
}
