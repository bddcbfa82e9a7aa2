package gen

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	// MaxPods is the number of pods with unique names. With twice as many, the numbers in the names of StatefulSets'
	// pods would need another digit, which does not fit into the templates.
	MaxPods = 5_000_000
	// Epoch is the start of the cluster, Unix seconds.
	Epoch = 1_790_000_000
	// FirstVersion is the resource version of pod 0; pod i has FirstVersion+i.
	FirstVersion = 1_000_000_000
)

// Generator generates objects. It is safe for concurrent use. The caller owns the results.
type Generator struct {
	seed uint64
	apps []*app
}

// New returns the generator for a seed, with 200 applications.
func New(seed uint64) *Generator { return NewApps(seed, Apps) }

// NewApps is New with another number of applications: the more applications, the less pods have in common.
func NewApps(seed uint64, apps int) *Generator {
	g := &Generator{seed: seed, apps: make([]*app, apps)}
	for i := range g.apps {
		g.apps[i] = newApp(seed, i)
	}
	return g
}

// text is a text of fixed length that is specific to a pod.
type text int

const (
	textName text = iota // the last part of the name
	textUID
	textToken // of the volume kube-api-access-…
	textIP
	textNode
	textHostIP
	textZone
	textVersion
	textContainer                          // ids, one for each container, init containers first
	textPrevious  = textContainer + maxIDs // of the container before the last restart
	numTexts      = textPrevious + 1
	maxIDs        = 8
)

// moment is a time that is specific to a pod.
type moment int

const (
	timeCreated moment = iota
	timeScheduled
	timeInitStarted
	timeInitDone
	timeStarted
	timeReady
	timePreviousStarted
	timePreviousEnded
	timeReported // the kubelet's last write
	numTimes
)

// identity has all values that are specific to a pod.
type identity struct {
	app, place int
	state      state
	texts      [numTexts]string
	times      [numTimes]int64 // seconds since 1970
}

// identify draws the identity of pod i after some updates by its kubelet.
func (g *Generator) identify(i, step int) identity {
	if i < 0 || i >= MaxPods {
		panic(fmt.Sprintf("gen: there is no pod %d", i))
	}
	r := newRandom(g.seed, saltPod+uint64(i))
	// A few applications have most of the pods.
	id := identity{app: int(float64(len(g.apps)) * math.Pow(r.Float64(), 1.7)), place: r.IntN(places)}
	a := g.apps[id.app]
	id.state = drawState(r, a.owner.Kind).after(step)
	t := &id.texts
	t[textName] = suffix(i)
	if a.owner.Kind == "StatefulSet" {
		t[textName] = strconv.Itoa(MaxPods + i)
	}
	node := r.IntN(Nodes)
	t[textUID], t[textToken], t[textIP] = r.uid(), r.string(letters, 5), r.ip()
	t[textNode], t[textHostIP], t[textZone] = nodeName(node), nodeIP(node), nodeZone(node)
	t[textVersion] = strconv.Itoa(FirstVersion + i)
	for c := range a.containers {
		t[textContainer+text(c)] = r.hex(64)
	}
	t[textPrevious] = r.hex(64)
	at := Epoch + int64(r.IntN(40*24*3600))
	for m := range id.times {
		id.times[m] = at
		at += int64(r.IntN(9))
	}
	if step > 0 {
		id.times[timeReady] = at + 30*int64(step)
	}
	id.times[timeReported] = id.times[timeReady] + 1
	return id
}

// name is the name of the pod.
func (g *Generator) name(id *identity) string {
	return g.apps[id.app].places[id.place].owner + "-" + id.texts[textName]
}

// Name returns the namespace and the name of pod i.
func (g *Generator) Name(i int) (namespace, name string) {
	id := g.identify(i, 0)
	return g.apps[id.app].places[id.place].namespace, g.name(&id)
}

// Index finds a pod by its name; it is the inverse of Name.
func (g *Generator) Index(namespace, name string) (int, bool) {
	last := name[strings.LastIndexByte(name, '-')+1:]
	i, ok := unsuffix(last)
	if !ok {
		n, err := strconv.Atoi(last)
		i, ok = n-MaxPods, err == nil
	}
	if !ok || i < 0 || i >= MaxPods {
		return 0, false
	}
	ns, full := g.Name(i)
	return i, ns == namespace && full == name
}
