package render

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestFamilies is TestModel for objects that own each other in every way that a client can write, also in circles, and
// that come and go at any time.
func TestFamilies(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { families(t, rand.New(rand.NewPCG(seed, 2))) })
	}
}

func families(t *testing.T, r *rand.Rand) {
	p := newPlay(t, Options{Terminal: r.IntN(2) == 0, Noise: r.IntN(3) == 0, Flat: r.IntN(8) == 0})
	clock, uids := 0.0, lives{}
	for range 400 {
		clock += r.ExpFloat64() * []float64{0.01, 0.5, 20}[r.IntN(3)]
		p.at(clock)
		live(p, r, uids)
		c := p.text.Counts()
		if sum := c.Shown + c.Folded + c.Pending + c.Quiet + c.Away; sum != p.fed || c.Pending < 0 {
			t.Fatalf("after %v: counts %+v have a sum of %d, want %d", p.now, c, sum, p.fed)
		}
		if due, ok := p.text.Next(); ok && !due.After(p.now) {
			t.Fatalf("at %v Next says %v, which is not in the future", p.now, due)
		}
	}
	if r.IntN(2) == 0 {
		for name := range p.objects {
			p.remove(name)
		}
		p.at(p.now.Sub(morning).Seconds() + 5*60)
		if n := len(p.text.objects) + len(p.text.due) + len(p.text.family.members) + len(p.text.family.workloads); n != 0 {
			t.Errorf("%d objects are remembered after all are gone", n)
		}
		if c := p.text.Counts(); c.Pending != 0 {
			t.Errorf("%d changes have no line after all are gone", c.Pending)
		}
	}
	checkLines(t, p.end(), p.text.o.Terminal)
}

// lives counts the objects of one name.
type lives map[string]int

func (l lives) of(kind string, n int) string {
	key := fmt.Sprint(kind, n)
	return fmt.Sprint("uid-", key, "-", l[key])
}

// live changes one of a few objects of each kind.
func live(p *play, r *rand.Rand, uids lives) {
	kinds := []string{"Deployment", "StatefulSet", "CronJob", "ReplicaSet", "Job", "Pod", "ConfigMap", "Node"}
	kind, n := kinds[r.IntN(len(kinds))], r.IntN(3)
	name := fmt.Sprintf("%s/%s-%d", kind, kind, n)
	o := p.objects[name]
	if o == nil {
		made := obj{"kind": kind, "metadata": obj{"name": fmt.Sprintf("%s-%d", kind, n), "namespace": "shop", "generation": int64(1)},
			"spec": obj{"replicas": int64(r.IntN(3)), "template": obj{"image": "a"}}, "status": obj{}}
		if r.IntN(4) > 0 { // of any kind: also of its own, and of one that is still to come
			owner, i := kinds[r.IntN(len(kinds))], r.IntN(3)
			made["metadata"].(obj)["ownerReferences"] = []any{
				obj{"kind": owner, "name": fmt.Sprintf("%s-%d", owner, i), "uid": uids.of(owner, i), "controller": true}}
		}
		made["metadata"].(obj)["uid"] = uids.of(kind, n)
		p.create(kcm, made)
		return
	}
	switch r.IntN(10) {
	case 0:
		p.remove(name)
		uids[fmt.Sprint(kind, n)]++
	case 1:
		p.write("?", name, set{"metadata.deletionTimestamp", p.now.Add(time.Second).Format(time.RFC3339)}, set{"metadata.deletionGracePeriodSeconds", int64(r.IntN(40))})
	case 2:
		p.write("kubectl", name, set{"spec.template.image", fmt.Sprint(r.IntN(9))}, set{"metadata.generation", int64(r.IntN(99))})
	case 3:
		p.write("kubectl", name, set{"metadata.labels", obj{"x": fmt.Sprint(r.IntN(99))}})
	default:
		p.write(kcm+"/status", name, set{"status", anyStatus(p, r, kind)})
	}
}

// anyStatus returns a random status for objects of a kind.
func anyStatus(p *play, r *rand.Rand, kind string) obj {
	n := func() any { return int64(r.IntN(3)) }
	switch kind {
	case "Pod":
		return []obj{
			runningStatus(p.now), running(r.IntN(5)), waiting("CrashLoopBackOff", r.IntN(5)), waiting("ErrImagePull", 0), {"phase": "Succeeded"},
			{"phase": "Failed", "reason": "Evicted"},
		}[r.IntN(6)]
	case "Job":
		return []obj{{"active": n()}, {"conditions": []any{obj{"type": "Complete", "status": "True"}}},
			{"conditions": []any{obj{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}}}}[r.IntN(3)]
	case "CronJob":
		return []obj{{}, {"active": []any{obj{"name": fmt.Sprint("Job-", n())}}}}[r.IntN(2)]
	case "Node":
		return obj{"conditions": []any{obj{"type": "Ready", "status": []string{"True", "Unknown"}[r.IntN(2)]}}}
	}
	s := obj{"observedGeneration": int64(r.IntN(99)), "replicas": n(), "readyReplicas": n(), "availableReplicas": n(), "updatedReplicas": n(), "x": int64(r.IntN(99))}
	if r.IntN(6) == 0 {
		s["conditions"] = []any{obj{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}}
	}
	return s
}
