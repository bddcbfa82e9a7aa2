package render

import (
	"fmt"
	"strings"
	"testing"
)

// TestWidths: the failure is read on every terminal.
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
			for _, bad := range []string{"ImagePullBackOff", "CrashLoopBackOff, 3 restarts", "stuck: ProgressDeadlineExceeded", "Failed: Evicted", "Unschedulable"} {
				if !strings.Contains(out, bad) {
					t.Errorf("%q is cut:\n%s", bad, out)
				}
			}
		})
	}
}
