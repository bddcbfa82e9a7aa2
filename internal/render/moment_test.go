package render

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
)

// late makes the next changes come from a daemon that was away until second 45: written at a given second, or
// at an unknown time, and seen when it came back.
func (p *play) late(second float64, known bool) {
	at := morning.Add(time.Duration(second * float64(time.Second))).Truncate(time.Second)
	p.stamp = func(c *change.Change) {
		c.Since = morning
		if c.Time = c.At; known {
			c.Time = at
		}
	}
}

// short is a rollout whose status is complete at a given second.
func short(p *play, at func(second float64)) {
	shop(p)
	at(0)
	p.write("kubectl-set", "Deployment/web", set{"spec.template.spec.containers.0.image", "shop/web:1.5"}, set{"metadata.generation", int64(2)})
	at(1)
	p.write(kcm+"/status", "Deployment/web", set{"status.observedGeneration", int64(2)}, set{"status.updatedReplicas", int64(1)}, set{"status.readyReplicas", int64(2)})
	at(13)
	p.write(kcm+"/status", "Deployment/web", set{"status.updatedReplicas", int64(3)}, set{"status.readyReplicas", int64(3)})
}

// hotConfig is a ConfigMap that is written 21 times, ten of them at once.
func hotConfig(p *play, at func(second float64)) {
	p.have(day, parse(p.t, `{"kind":"ConfigMap","metadata":{"name":"leader-x"},"data":{"n":"0"}}`))
	at(0)
	for i := range 21 {
		if i >= 10 {
			at(float64(i-10) / 2)
		}
		p.write("elector", "ConfigMap/leader-x", set{"data.n", fmt.Sprint("v", i)})
	}
}

// TestDurations: both ends of a duration come from objects, or were seen as they happened.
func TestDurations(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		play       func(p *play)
	}{
		{"seen as it happened", "rolled out in 13 s: 3/3 ready", func(p *play) {
			short(p, p.at)
		}},
		{"caught up: the managers' times", "rolled out in 13 s: 3/3 ready", func(p *play) {
			p.at(45)
			short(p, func(s float64) { p.late(s, true) })
		}},
		{"caught up, and no manager's time", "rolled out: 3/3 ready", func(p *play) {
			p.at(45)
			short(p, func(s float64) { p.late(s, false) })
		}},
		{"caught up, and one end is not known", "rolled out: 3/3 ready", func(p *play) {
			p.at(45)
			short(p, func(s float64) { p.late(s, s > 0) })
		}},
		{"written in one second", "rolled out within 1 s: 3/3 ready", func(p *play) {
			p.at(45)
			short(p, func(float64) { p.late(7, true) })
		}},
		{"the cause is the write, not what was unready before", "rolled out in 19 s: 3/3 ready", func(p *play) {
			shop(p)
			p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", int64(1)}, set{"status.availableReplicas", int64(1)})
			p.at(705)
			p.write("kubectl-set", "Deployment/web", set{"spec.template.spec.containers.0.image", "shop/web:1.5"}, set{"metadata.generation", int64(2)})
			p.at(724)
			p.write(kcm+"/status", "Deployment/web", set{"status.observedGeneration", int64(2)},
				set{"status.readyReplicas", int64(3)}, set{"status.availableReplicas", int64(3)})
		}},
		{"the end is that of the first change without anything to do", "rolled out in 13 s: 3/3 ready", func(p *play) {
			p.at(45)
			short(p, func(s float64) { p.late(s, true) })
			p.write(kcm+"/status", "Deployment/web", set{"status.conditions", []any{obj{"type": "Progressing", "status": "True",
				"reason": "NewReplicaSetAvailable", "lastUpdateTime": morning.Add(6 * time.Second).Format(time.RFC3339)}}})
		}},
		{"a pod's own times", "CrashLoopBackOff → Ready, after 13 s", func(p *play) {
			podStarts(p, "web-1-a")
			p.at(1)
			p.write("kubelet/status", "Pod/web-1-a", set{"status", since(p.now, waiting("CrashLoopBackOff", 1))})
			p.at(13)
			ready := since(p.now, running(1))
			p.at(13.4)
			p.write("kubelet/status", "Pod/web-1-a", set{"status", ready})
		}},
		{"a pod without times", "CrashLoopBackOff → Ready, after 13 s", func(p *play) {
			podStarts(p, "web-1-a")
			p.at(1)
			p.write("kubelet/status", "Pod/web-1-a", set{"status", waiting("CrashLoopBackOff", 1)})
			p.at(13)
			p.write("kubelet/status", "Pod/web-1-a", set{"status.conditions.1.status", "True"}, set{"status.containerStatuses", nil})
		}},
		{"caught up: a pod that fails", "10:42:14 ·   pod/web-1-a                  ErrImagePull: back-off, new on n1", func(p *play) {
			pod := newPod(p.t, "web-1-a")
			put(pod, "metadata.creationTimestamp", morning.Add(3*time.Second).Format(time.RFC3339))
			p.at(45)
			p.late(3, true)
			p.create(kcm, pod)
			p.write("?", "Pod/web-1-a", set{"spec.nodeName", "n1"})
			p.late(7, true)
			p.write("kubelet/status", "Pod/web-1-a", set{"status", waiting("ErrImagePull", 0)})
		}},
		{"a pod that fails at once", "10:42:14 ·   pod/web-1-a                  ErrImagePull: back-off, new on n1", func(p *play) {
			p.late(7, true)
			podStarts(p, "web-1-a")
			p.objects["Pod/web-1-a"]["metadata"].(obj)["creationTimestamp"] = morning.Add(7 * time.Second).Format(time.RFC3339)
			p.write("kubelet/status", "Pod/web-1-a", set{"status", waiting("ErrImagePull", 0)})
		}},
		{"pods that are ready again in the same second", "3/3 ready again, within 1 s", func(p *play) {
			shop(p)
			p.late(7, true)
			for _, ready := range []int64{2, 3} {
				p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", ready}, set{"status.availableReplicas", ready})
			}
		}},
		{"a Job in one second", "complete within 1 s", func(p *play) {
			p.create("kubectl", parse(p.t, `{"kind":"Job","metadata":{"name":"migrate","generation":1},"spec":{}}`))
			at := p.now.Format(time.RFC3339)
			p.write(kcm+"/status", "Job/migrate", set{"status.startTime", at}, set{"status.completionTime", at},
				set{"status.conditions", []any{obj{"type": "Complete", "status": "True"}}})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlay(t, terminal)
			tc.play(p)
			p.stamp = nil
			if out := p.end(); !strings.Contains(out, tc.want) {
				t.Errorf("want %q in:\n%s", tc.want, out)
			}
		})
	}
}

// TestWhenItHappened: a delayed line has the time at which its change happened.
func TestWhenItHappened(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		play       func(p *play)
	}{
		{"a rollout", "10:42:20 · deploy/web                     rolled out in 13 s: 3/3 ready ", func(p *play) { short(p, p.at) }},
		{"a rollout whose end the Deployment says", "10:42:19 · deploy/web                     rolled out in 12 s: 3/3 ready ", func(p *play) {
			short(p, func(s float64) {
				p.stamp = func(c *change.Change) { c.Time = c.At.Truncate(time.Second) }
				if p.at(s + 0.3); s == 13 {
					put(p.objects["Deployment/web"], "status.conditions", []any{obj{"type": "Progressing", "status": "True",
						"reason": "NewReplicaSetAvailable", "lastUpdateTime": morning.Add(12 * time.Second).Format(time.RFC3339)}})
				}
			})
		}},
		{"a pod that went", "10:42:10 ·   pod/web-1-a                  gone after 1 d ", func(p *play) {
			p.have(day, newPod(p.t, "web-1-a"))
			p.at(3)
			p.remove("Pod/web-1-a")
		}},
		{"what a deleted workload owned", "10:42:12 · deploy/web                     3 pods gone ", func(p *play) {
			shop(p)
			p.remove("Deployment/web")
			p.remove("ReplicaSet/web-77dc77595")
			for _, suffix := range []string{"xdkdf", "b2p8q", "zzt4l"} {
				stop(p, suffix)
			}
			for i, suffix := range []string{"xdkdf", "b2p8q", "zzt4l"} {
				p.at(3 + float64(i))
				p.remove("Pod/web-77dc77595-" + suffix)
			}
		}},
		{"a node", "10:42:10 · node/n1                        NotReady ", func(p *play) {
			p.have(day, parse(p.t, `{"kind":"Node","metadata":{"name":"n1"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))
			p.at(3)
			p.write(kcm+"/status", "Node/n1", set{"status.conditions", []any{obj{"type": "Ready", "status": "Unknown"}}})
		}},
		{"a failure", "10:42:10 ·   pod/web-1-a                  ErrImagePull: back-off, new on n1 ", func(p *play) {
			podStarts(p, "web-1-a")
			p.at(3)
			p.write("kubelet/status", "Pod/web-1-a", set{"status", waiting("ErrImagePull", 0)})
		}},
		{"pods that are not ready any more", "10:42:10 · deploy/web                     3/3 → 1/3 ready ", func(p *play) {
			shop(p)
			p.at(3)
			p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", int64(1)}, set{"status.availableReplicas", int64(1)})
		}},
		{"a failure that goes on", "10:42:10 ·   pod/web-1-a                  ErrImagePull: back-off, new on n1 ", func(p *play) {
			podStarts(p, "web-1-a")
			for i := range 6 {
				p.at(3 + 10*float64(i))
				p.write("kubelet/status", "Pod/web-1-a", set{"status", waiting([]string{"ErrImagePull", "ImagePullBackOff"}[i%2], 0)})
			}
		}},
		{"what changes too often", "10:42:12 · cm/leader-x                    changed 11 times in 5 s ", func(p *play) { hotConfig(p, p.at) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlay(t, Options{Terminal: true, Width: 140})
			tc.play(p)
			p.at(80)
			if out := p.end(); !strings.Contains(out, tc.want) {
				t.Errorf("want %q in:\n%s", tc.want, out)
			}
		})
	}
}

// TestCaughtUp: a summary of changes that were seen late has the time at which they happened.
func TestCaughtUp(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		play       func(p *play)
	}{
		{"the managers' times", "10:42:20 · deploy/web                     rolled out in 13 s: 3/3 ready         (3 changes; --flat)\n",
			func(p *play) { short(p, func(s float64) { p.late(s, true) }) }},
		{"the end that the Deployment says, before its last change", "10:42:19 · deploy/web                     rolled out in 12 s: 3/3 ready         (3 changes; --flat)\n",
			func(p *play) {
				short(p, func(s float64) {
					if p.late(s, true); s == 13 {
						put(p.objects["Deployment/web"], "status.conditions", []any{obj{"type": "Progressing", "status": "True",
							"reason": "NewReplicaSetAvailable", "lastUpdateTime": morning.Add(12 * time.Second).Format(time.RFC3339)}})
					}
				})
			}},
		{"no manager's time", "10:42:07–10:42:52 · deploy/web                     rolled out: 3/3 ready ",
			func(p *play) { short(p, func(s float64) { p.late(s, false) }) }},
		{"a pod that went", "10:42:10 ·   pod/web-1-a                  gone ",
			func(p *play) { p.have(day, newPod(p.t, "web-1-a")); p.late(3, true); p.remove("Pod/web-1-a") }},
		{"what changed too often", "10:42:12 · cm/leader-x                    changed 11 times in 5 s ",
			func(p *play) { hotConfig(p, func(s float64) { p.late(s, true) }) }},
		{"what changed too often, nobody knows when", "10:42:07–10:42:52 · cm/leader-x                    changed 11 times  ",
			func(p *play) { hotConfig(p, func(s float64) { p.late(s, false) }) }},
		{"what a workload owned that was deleted", "10:42:07–10:42:52 · deploy/web                     3 pods gone ",
			func(p *play) {
				shop(p)
				p.late(0, false)
				p.remove("Deployment/web")
				p.remove("ReplicaSet/web-77dc77595")
				for _, suffix := range []string{"xdkdf", "b2p8q", "zzt4l"} {
					p.remove("Pod/web-77dc77595-" + suffix)
				}
			}},
		{"the end was seen as it happened", "10:42:53 · deploy/web                     rolled out in 46 s: 3/3 ready ",
			func(p *play) {
				short(p, func(s float64) {
					if s < 13 {
						p.late(s, true)
					} else {
						p.stamp = nil
						p.at(46)
					}
				})
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlay(t, Options{Terminal: true, Width: 140})
			p.at(45)
			tc.play(p)
			p.stamp = nil
			p.at(60)
			if out := p.end(); !strings.Contains(out, tc.want) {
				t.Errorf("want %q in:\n%s", tc.want, out)
			}
		})
	}
}
