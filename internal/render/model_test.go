package render

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/tattler-dev/tattler/event"
)

// TestModel feeds random lives of objects and checks what must hold for all of them: every change is
// accounted for at any time, deleted objects are forgotten, and lines are clean and in order.
func TestModel(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { model(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func model(t *testing.T, r *rand.Rand) {
	p := newPlay(t, Options{
		Terminal: r.IntN(2) == 0, Flat: r.IntN(5) == 0, Noise: r.IntN(3) == 0, Namespaces: r.IntN(2) == 0,
	})
	shop(p)
	clock := 0.0
	for range 200 {
		clock += r.ExpFloat64() * []float64{0.05, 0.5, 5}[r.IntN(3)]
		p.at(clock)
		act(p, r)
		c := p.text.Counts()
		if sum := c.Shown + c.Folded + c.Pending + c.Quiet + c.Away; sum != p.fed {
			t.Fatalf("after %v: counts %+v have a sum of %d, want %d", p.now, c, sum, p.fed)
		}
		if due, ok := p.text.Next(); ok && !due.After(p.now) {
			t.Fatalf("at %v Next says %v, which is not in the future", p.now, due)
		}
	}
	for name := range p.objects {
		p.remove(name)
	}
	p.at(p.now.Sub(morning).Seconds() + 2*60)
	if n := len(p.text.objects) + len(p.text.due) + len(p.text.family.members) + len(p.text.family.workloads); n != 0 {
		t.Errorf("%d objects are remembered after all are gone", n)
	}
	out := p.end()
	checkLines(t, out, p.text.o.Terminal)
}

// act changes an object, or creates one.
func act(p *play, r *rand.Rand) {
	pod := fmt.Sprint("web-86c9647fcb-", r.IntN(5))
	switch _, exists := p.objects["Pod/"+pod]; {
	case r.IntN(8) == 0:
		p.feed(p.change(event.Gap, nil, obj{"kind": "Pod"}))
	case r.IntN(3) == 0 && p.objects["ConfigMap/web-config"] != nil:
		p.write("kubectl-edit", "ConfigMap/web-config", set{"data.LOG_LEVEL", fmt.Sprint(r.IntN(100))})
	case r.IntN(4) == 0:
		p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", int64(r.IntN(4))}, set{"status.availableReplicas", int64(r.IntN(4))})
	case !exists:
		podStarts(p, pod)
	default:
		switch r.IntN(6) {
		case 0:
			p.remove("Pod/" + pod)
		case 1:
			p.write("kubelet/status", "Pod/"+pod, set{"status", running(r.IntN(3))})
		case 2:
			p.write("kubelet/status", "Pod/"+pod, set{"status", waiting("CrashLoopBackOff", 1+r.IntN(3))})
		case 3:
			p.write("kubelet/status", "Pod/"+pod, set{"status", waiting("ErrImagePull", 0)})
		case 4:
			p.write("kubectl-label", "Pod/"+pod, set{"metadata.labels.x", fmt.Sprint(r.IntN(100))})
		default:
			p.write("?", "Pod/"+pod, set{"metadata.deletionTimestamp", p.now.Add(time.Second).Format(time.RFC3339)},
				set{"metadata.deletionGracePeriodSeconds", int64(1)})
		}
	}
}

func checkLines(t *testing.T, out string, short bool) {
	t.Helper()
	head := regexp.MustCompile(`^(\S+) ([-+~=<>·!]) `)
	last := ""
	for _, l := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		if strings.ContainsFunc(l, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.TrimRight(l, " ") != l {
			t.Errorf("line %q is not clean", l)
		}
		m := head.FindStringSubmatch(l)
		switch {
		case m == nil && strings.HasPrefix(l, strings.Repeat(" ", detailIndent)):
		case m == nil:
			t.Errorf("line %q is neither a head nor a detail", l)
		case m[1] < last && m[2] == signFolded: // it waited until its object was calm
		case m[1] < last && !(short && last > "23:00"): // midnight
			t.Errorf("line %q comes after one of %s", l, last)
		default:
			last = m[1]
		}
	}
}

func TestColourIsAllThatDiffers(t *testing.T) {
	plain := session(t, Options{Terminal: true, Width: 100})
	colour := session(t, Options{Terminal: true, Width: 100, Color: true})
	if colour == plain {
		t.Error("with colour there is no colour")
	}
	if got := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(colour, ""); got != plain {
		t.Errorf("without its escapes the coloured text is\n%s\nwant\n%s", got, plain)
	}
}

// Short-lived names leave nothing behind, even if nothing is ever flushed.
func TestShortLivedNames(t *testing.T) {
	p := newPlay(t, Options{})
	for i := range 2000 {
		p.at(float64(i) / 100)
		podStarts(p, fmt.Sprint("job-1-", i))
		p.remove(fmt.Sprint("Pod/job-1-", i))
		p.create("kubectl", obj{"kind": "ConfigMap", "metadata": obj{"name": fmt.Sprint("c", i)}})
		p.write("kubectl", fmt.Sprint("ConfigMap/c", i), set{"data", obj{"a": "b"}})
		p.write("x", fmt.Sprint("ConfigMap/c", i), set{"status", obj{"a": "b"}})
		p.remove(fmt.Sprint("ConfigMap/c", i))
		if n := len(p.text.objects); n > 100*int(ownerWait/time.Second)+1 { // a hundred pods go each second
			t.Fatalf("after %d names %d are remembered", i+1, n)
		}
	}
}

// An object that stays is forgotten a minute after its last line.
func TestForgets(t *testing.T) {
	p := newPlay(t, Options{})
	shop(p)
	p.write("kubectl", "ConfigMap/web-config", set{"data.a", "b"})
	p.write("x", "Deployment/web", set{"status.note", "b"})
	p.at(59)
	if n := len(p.text.objects); n != 1 {
		t.Errorf("after 59 s %d objects are remembered, want 1: its line counts for a minute", n)
	}
	p.at(62)
	if n := len(p.text.objects); n != 0 {
		t.Errorf("after 62 s %d objects are remembered, want none", n)
	}
	if due, ok := p.text.Next(); ok {
		t.Errorf("with nothing to do Next says %v", due)
	}
}

// A stuck rollout is printed, and not forgotten: its end says how long it took.
func TestStuckRollout(t *testing.T) {
	p := newPlay(t, Options{Terminal: true})
	shop(p)
	setImage(p, "shop/web:1.6")
	p.at(0.1)
	counts(p, 3, 1, 0)
	p.at(300)
	if due, ok := p.text.Next(); ok {
		t.Errorf("nothing is pending, but Next says %v", due)
	}
	counts(p, 0, 3, 3)
	p.at(310)
	golden(t, "stuck-rollout.txt", p.end())
}
