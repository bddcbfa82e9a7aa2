package render

import (
	"fmt"
	"strings"
	"testing"
)

// TestWidths: the failure is readable on every terminal.
func TestWidths(t *testing.T) {
	for _, width := range []int{80, 100, 160} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			p := newPlay(t, Options{Terminal: true, Width: width})
			shop(p)
			setImage(p, "registry.example.com/shop/web:1.6-does-not-exist")
			pod := "web-86c9647fcb-dvmwn"
			podStarts(p, pod)
			p.at(1)
			p.write("kubelet/status", "Pod/"+pod, set{"status", waiting("ErrImagePull", 0)})
			p.at(40)
			crashing := "web-86c9647fcb-k6m2x"
			podStarts(p, crashing)
			p.at(42)
			p.write("kubelet/status", "Pod/"+crashing, set{"status", waiting("CrashLoopBackOff", 3)})
			p.at(100)
			p.write(kcm+"/status", "Deployment/web", set{"status.updatedReplicas", int64(1)}, set{"status.conditions", []any{
				obj{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}}})
			p.at(110)
			evicted := "web-77dc77595-xdkdf"
			p.write("kubelet/status", "Pod/"+evicted, set{"status", obj{"phase": "Failed", "reason": "Evicted",
				"message": "The node was low on resource: memory. Container app was using 1Gi, request is 0."}})
			p.at(120)
			p.create(kcm, newPod(p.t, "web-86c9647fcb-zzzzz"))
			p.write("kube-scheduler/status", "Pod/web-86c9647fcb-zzzzz", set{"status.conditions", []any{obj{
				"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu."}}})
			p.at(140)
			out := p.end()
			golden(t, fmt.Sprintf("widths-%d.txt", width), out)
			for _, bad := range []string{"ErrImagePull", "CrashLoopBackOff", "ProgressDeadlineExceeded", "Evicted", "Unschedulable", "request is 0."} {
				if !strings.Contains(out, bad) {
					t.Errorf("%q is cut:\n%s", bad, out)
				}
			}
		})
	}
}

// TestLongValues: a value of 200,000 characters takes one line of the screen, which says how much of it is cut.
// A pipe gets the whole value.
func TestLongValues(t *testing.T) {
	const size = 200_000
	long := strings.Repeat("x", size)
	for _, columns := range []int{0, 20, 80, 120} {
		p := newPlay(t, Options{Terminal: columns > 0, Width: columns})
		p.create("kubectl", obj{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": obj{"name": "a", "namespace": "shop", "uid": "1", "annotations": obj{"a": long}}, "data": obj{"k": long, "l": "a\n" + long},
		})
		p.at(10)
		p.write("kubectl", "ConfigMap/a", set{"metadata.annotations.a", long + "y"}, set{"metadata.annotations.b", "y\n" + long})
		out := p.end()
		widest, said := 0, 0
		for line := range strings.Lines(out) {
			widest = max(widest, width(strings.TrimSuffix(line, "\n")))
			var left int
			if at := strings.LastIndex(line, "… "); at >= 0 {
				if n, _ := fmt.Sscanf(line[at:], "… %d more characters", &left); n == 1 && left+strings.Count(line, "x") == size {
					said++
				}
			}
		}
		switch {
		case columns == 0 && widest < size:
			t.Errorf("in a pipe, the widest line has %d columns", widest)
		case columns > 0 && widest > columns:
			t.Errorf("on %d columns, a line has %d", columns, widest)
		case columns >= 80 && said != 4, columns < 80 && said != 0:
			t.Errorf("on %d columns, %d lines say what is left out:\n%s", columns, said, out)
		}
	}
}
