package compact

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/informer/internal/samples"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// like returns an object of a shape, different for each call.
func like(shape uint64, g *samples.Gen) []byte {
	return fmt.Appendf(nil, `{"metadata":{"name":"%s"},"spec":"%s"}`, g.Suffix(12), samples.New(shape).Suffix(200))
}

// oneRoute gives all objects the same fingerprint.
func oneRoute(wire.Format, []byte) (uint64, bool) { return 7, true }

func TestRouting(t *testing.T) {
	const a, b, c, d, e = 1, 2, 3, 4, 5
	repeat := func(n int, shapes ...uint64) (out []uint64) {
		for range n {
			out = append(out, shapes...)
		}
		return out
	}
	for _, tc := range []struct {
		why    string
		shapes []uint64
		alone  int // stored for themselves
		dicts  int
	}{
		{"a single object needs no sample", []uint64{a}, 1, 0},
		{"the first is the sample of those that follow", repeat(10, a), 1, 1},
		{"a rollout costs one miss", append(repeat(10, a), repeat(10, b)...), 2, 2},
		{"old and new objects alternate during a rollout", append(append(repeat(5, a), b, b), repeat(10, a, b)...), 2, 2},
		{"two shapes share a fingerprint from the start: the nominee changes until one comes twice", append(repeat(3, a, b), a, a), 7, 1},
		{"a stray object does not replace the sample", append(append(repeat(5, a), b), repeat(5, a)...), 2, 1},
		{"occasional stray objects do not end the use of a sample", []uint64{a, a, 10, a, 11, a, 12, a, 13, a, 14, a, 15, a, 16, a, 17, a, 18, a, 19, a, 20, a}, 12, 1},
		{"one namespace after another, with the same names but other objects", append(append(append(append(repeat(3, a), repeat(3, b)...), repeat(3, c)...), repeat(3, d)...), repeat(3, e)...), 5, 5},
	} {
		g := samples.New(1)
		r := NewRouter(Options{Fingerprint: oneRoute})
		p := Packer{Router: r}
		var versions []*Version
		for _, s := range tc.shapes {
			raw := like(s, g)
			v := p.Pack(wire.JSON, fmt.Sprint(len(versions)), "1", raw)
			if got, err := v.Append(nil); err != nil || !bytes.Equal(got, raw) {
				t.Fatalf("%s: %q came back as %q, %v", tc.why, raw, got, err)
			}
			versions = append(versions, v)
		}
		st := r.Stats()
		if int(st.Unrouted) != tc.alone || int(st.Routed) != len(tc.shapes)-tc.alone || st.Dictionaries != tc.dicts {
			t.Errorf("%s: %d were stored for themselves, want %d; %d samples, want %d", tc.why, st.Unrouted, tc.alone, st.Dictionaries, tc.dicts)
		}
		runtime.KeepAlive(versions)
	}
}

// TestOwnPast: an object that is the only one of its fingerprint is not stored as a delta from its own past.
func TestOwnPast(t *testing.T) {
	r := NewRouter(Options{Fingerprint: oneRoute})
	p := Packer{Router: r}
	g := samples.New(1)
	for i := range 10 {
		v := p.Pack(wire.JSON, "the only one", fmt.Sprint(i), like(1, g))
		if _, d := v.Stored(); d != nil {
			t.Fatalf("version %d has a sample", i)
		}
	}
	if _, d := p.Pack(wire.JSON, "another", "1", like(1, g)).Stored(); d == nil {
		t.Error("another one has none")
	}
}

// TestChallenge: a sample of pending pods gives way to one of a scheduled pod, and that to one of a running pod, although each
// suits the next object, and although the pod that could replace it keeps changing.
func TestChallenge(t *testing.T) {
	r := NewRouter(Options{Fingerprint: oneRoute})
	p := Packer{Router: r}
	g := samples.New(1)
	var versions []*Version
	pack := func(uid int, what string) {
		raw := fmt.Appendf(nil, "%s %s", g.Suffix(10), what)
		versions = append(versions, p.Pack(wire.JSON, fmt.Sprint(uid), "1", raw))
	}
	what := samples.New(2).Suffix(300)
	for i := range 10 {
		pack(i, what)
	}
	pack(10, samples.New(3).Suffix(300)) // a stray object
	for i := range 10 {
		pack(i, what)
	}
	if r.routes[7].losses > 0 {
		t.Error("a sample that suits is challenged")
	}
	for i := range 20 {
		pack(i, what[:250]+g.Suffix(20))
	}
	if v := r.routes[7].nominee.Value(); r.routes[7].losses > 0 || v != nil && !v.alone() {
		t.Error("a sample is challenged by a smaller object")
	}
	for stage := range 2 {
		_, was := versions[len(versions)-1].Stored()
		what += samples.New(uint64(4 + stage)).Suffix(150)
		for range 4 {
			pack(0, what)
		}
		for i := range 20 {
			pack(0, what)
			pack(i, what)
		}
		if payload, is := versions[len(versions)-1].Stored(); was == nil || is == was || len(payload) > 40 {
			t.Errorf("stage %d: an object is stored in %d bytes, still with the same sample: %v", stage, len(payload), is == was)
		}
	}
}

// TestLostChallenges: a sample that cannot be bettered is challenged ever more rarely.
func TestLostChallenges(t *testing.T) {
	r := NewRouter(Options{Fingerprint: oneRoute})
	p := Packer{Router: r}
	g := samples.New(1)
	same := samples.New(2).Suffix(600)
	var versions []*Version
	challenges, was := []int{}, uint8(0)
	for i := range 3_000 {
		raw := fmt.Appendf(nil, "%s %s", same, g.Suffix(10+g.IntN(150))) // the random part is in no sample
		versions = append(versions, p.Pack(wire.JSON, fmt.Sprint(i), "1", raw))
		if n := r.routes[7].losses; n != was {
			challenges, was = append(challenges, i), n
		}
	}
	if len(challenges) < 3 || len(challenges) > 8 {
		t.Errorf("3,000 objects challenged the sample at %v", challenges)
	}
	if st := r.Stats(); st.Dictionaries != 1 {
		t.Errorf("%d samples for one shape", st.Dictionaries)
	}
	runtime.KeepAlive(versions)
}

// TestMissesRest: a fingerprint whose objects are all different soon costs nothing, and is tried again later.
func TestMissesRest(t *testing.T) {
	r := NewRouter(Options{Fingerprint: oneRoute})
	p := Packer{Router: r}
	var versions []*Version
	g := samples.New(1)
	tried := 0
	for i := range 20_000 {
		if r.routes[7] == nil || r.routes[7].rest == 0 {
			tried++
		}
		versions = append(versions, p.Pack(wire.JSON, "", "1", like(uint64(i), g)))
	}
	if tried < manyMisses+5 || tried > 100 {
		t.Errorf("%d of 20,000 hopeless objects were compared", tried)
	}
	if r.shared.due != firstDue || r.shared.trial != nil {
		t.Error("objects of one fingerprint are no source for what all have in common")
	}
	for range longestRest + 2 {
		versions = append(versions, p.Pack(wire.JSON, "", "1", like(1, g)))
	}
	if before := r.Stats().Routed; before == 0 {
		t.Error("what is alike at last is never compared again")
	}
	runtime.KeepAlive(versions)
}

// TestEndlessFingerprints: names that come and go forever leave nothing behind.
func TestEndlessFingerprints(t *testing.T) {
	next := uint64(0)
	r := NewRouter(Options{Fingerprint: func(wire.Format, []byte) (uint64, bool) {
		next++
		return (next - 1) / 2, true // every second object has a sample
	}})
	p := Packer{Router: r}
	g := samples.New(1)
	before := heap()
	objects := 200_000
	if raceEnabled {
		objects = 30_000 // the race detector has nothing to find here
	}
	for i := range objects {
		p.Pack(wire.JSON, "", "1", like(next/2, g))
		if i%(minSweep/4) == 1 { // between two pairs
			runtime.GC() // a sweep counts what is not collected as living; how often the collector runs is not tested
		}
	}
	if n := len(r.routes) + len(r.made); n > 2*minSweep {
		t.Errorf("%d routes and samples are remembered of objects that are gone", n)
	}
	if st := r.Stats(); int(st.Routed) < objects/2-100 || st.Bytes > 1<<20 {
		t.Errorf("%+v", st)
	}
	if used := heap() - before; used > 1<<20 {
		t.Errorf("%d bytes are left of objects that are gone", used)
	}
	runtime.KeepAlive(r)
}

// TestEndlessSamples is the same for the samples of one fingerprint, such as of events: of one size and always another shape.
func TestEndlessSamples(t *testing.T) {
	const objects = 30_000
	r := NewRouter(Options{Fingerprint: oneRoute})
	p := Packer{Router: r}
	g := samples.New(1)
	var last *Version
	for i := range objects {
		last = p.Pack(wire.JSON, fmt.Sprint(i), "1", like(uint64(i/2), g))
		if i%(minSweep/4) == 1 {
			runtime.GC()
		}
	}
	if st := r.Stats(); st.Routed < objects/2-100 {
		t.Errorf("%+v", st)
	}
	if n := len(r.made); n > 2*minSweep {
		t.Errorf("%d samples are remembered of objects that are gone", n)
	}
	runtime.KeepAlive(last)
}

// TestSamplesGo: samples of replaced templates are freed with the last version that needs them, and those in use are not.
func TestSamplesGo(t *testing.T) {
	const apps, each, rollouts = 5, 4, 6
	var gone sync.WaitGroup
	r := NewRouter(Options{})
	p := Packer{Router: r}
	g := samples.New(1)
	state := make([]*Version, apps*each)
	dicts := map[*Dict]bool{}
	roll := func(a *samples.App, i int) {
		g.Rollout(a)
		for j := range each {
			it := samples.Encode(wire.Protobuf, g.Pod(a, j))
			v := p.Pack(it.Format, it.UID, it.RV, it.Raw)
			state[i*each+j] = v
			if _, d := v.Stored(); d != nil && d.index == nil && !dicts[d] {
				dicts[d] = true
				gone.Add(1)
				runtime.AddCleanup(d, func(struct{}) { gone.Done() }, struct{}{})
			}
		}
	}
	for i := range apps {
		a := g.App(i)
		for range rollouts {
			roll(a, i)
		}
	}
	if len(dicts) != apps*rollouts {
		t.Fatalf("%d samples were made, want one for each template, %d", len(dicts), apps*rollouts)
	}
	clear(dicts)
	heap()
	if st := r.Stats(); st.Dictionaries < apps || st.Dictionaries > 2*apps+1 {
		t.Errorf("%d dictionaries live, want those of the last templates, %d, and the shared one", st.Dictionaries, apps)
	}
	for i, v := range state {
		if _, err := v.Append(nil); err != nil {
			t.Errorf("object %d: %v", i, err)
		}
	}
	clear(state)
	done := make(chan struct{})
	go func() {
		gone.Wait()
		close(done)
	}()
	for waiting := true; waiting; {
		heap() // until the cleanups have run; the test's own deadline ends it else
		select {
		case <-done:
			waiting = false
		default:
			runtime.Gosched()
		}
	}
	if st := r.Stats(); st.Dictionaries > 1 {
		t.Errorf("%d dictionaries live without versions", st.Dictionaries)
	}
}

// TestRolloutsAdapt plays rollouts as a watch shows them, each pod from pending to running, several at a time, and compares the
// size of the last state with its size when listed.
func TestRolloutsAdapt(t *testing.T) {
	const apps, each, atOnce = 4, 40, 3
	for _, f := range []wire.Format{wire.Protobuf, wire.JSON} {
		g := samples.New(1)
		r := NewRouter(Options{})
		p := Packer{Router: r}
		last := make([]samples.Item, apps*each)
		state := make([]*Version, apps*each)
		var all []*samples.App
		for i := range apps {
			all = append(all, g.App(i))
		}
		roll := func(a *samples.App, i int) {
			for j := 0; j < each; j += atOnce {
				var lives [][]*corev1.Pod
				for k := j; k < min(each, j+atOnce); k++ {
					lives = append(lives, g.Life(g.Pod(a, k)))
				}
				for stage := range lives[0] {
					for k, life := range lives {
						it := samples.Encode(f, life[stage])
						at := i*each + j + k
						last[at], state[at] = it, p.Pack(f, it.UID, it.RV, it.Raw)
					}
				}
			}
		}
		for _, c := range []struct {
			what string
			do   func(*samples.App)
			max  float64 // relative to a list
		}{
			{"the first rollout, which starts with a pending sample", func(*samples.App) {}, 1.4},
			{"a new image: the sample is nearly right", g.Revise, 1.6},
			{"a new template", g.Rollout, 1.6},
			{"restarts: every pod changes", func(*samples.App) {}, 1.3},
		} {
			for i, a := range all {
				c.do(a)
				roll(a, i)
			}
			heap() // samples that nothing needs go
			fresh := NewRouter(Options{})
			got, listed := cost(state, r), cost(packAll(&Packer{Router: fresh}, last), fresh)
			t.Logf("%v, %s: %.0f bytes each, listed %.0f", f, c.what, got, listed)
			if got > c.max*listed {
				t.Errorf("%v, %s: %.0f bytes each, listed %.0f", f, c.what, got, listed)
			}
		}
	}
}

func TestSmallSourcesCostLittle(t *testing.T) {
	for kind, items := range map[string][]samples.Item{
		"a few leases":               samples.New(1).Leases(wire.JSON, 8),
		"pods, one of each":          samples.New(1).Pods(wire.JSON, 8, 1),
		"pods, two of each":          samples.New(1).Pods(wire.JSON, 4, 2),
		"config maps, all different": samples.New(1).ConfigMaps(wire.JSON, 8),
	} {
		r := NewRouter(Options{})
		with, without := cost(packAll(&Packer{Router: r}, items), r), cost(packAll(&Packer{}, items), NewRouter(Options{}))
		t.Logf("%s: %.0f bytes each, without a router %.0f", kind, with, without)
		if with > without+200 {
			t.Errorf("%s: %.0f bytes each, without a router %.0f", kind, with, without)
		}
	}
}

func TestSharedDictionary(t *testing.T) {
	for _, c := range []struct {
		why   string
		items []samples.Item
		want  bool
	}{
		{"pods of many applications have much in common", samples.New(1).Pods(wire.JSON, 60, 1), true},
		{"a small source does not pay for it", samples.New(1).Pods(wire.JSON, 8, 1), false},
		{"objects of one shape have their sample", samples.New(1).Leases(wire.JSON, 500), false},
		{"objects with little in common do not shrink", samples.New(1).ConfigMaps(wire.JSON, 300), false},
	} {
		r := NewRouter(Options{})
		packAll(&Packer{Router: r}, c.items)
		if got := r.shared.dict != nil; got != c.want {
			t.Errorf("%s: shared dictionary %v", c.why, got)
		}
	}
}

// TestSharedDictionaryIsRenewed: a dictionary of objects that no longer come gives way to one of objects that do.
func TestSharedDictionaryIsRenewed(t *testing.T) {
	next := uint64(0)
	r := NewRouter(Options{Fingerprint: func(wire.Format, []byte) (uint64, bool) {
		next++
		return next, true
	}})
	p := Packer{Router: r}
	packAll(&p, samples.New(1).Pods(wire.JSON, 60, 1))
	first := r.shared.dict
	if first == nil {
		t.Fatal("no dictionary to begin with")
	}
	g, always := samples.New(2), noise(2_000)
	size := func() int {
		return p.Pack(wire.JSON, "", "1", append(noise(100+g.IntN(100)), always...)).Size()
	}
	before := size()
	for range 400 {
		size()
	}
	if after := size(); r.shared.dict == first || after > before/4 {
		t.Errorf("an object of a new kind takes %d bytes, %d before", after, before)
	}
}

func TestAdopt(t *testing.T) {
	items := samples.New(1).Pods(wire.Protobuf, 50, 3)
	r := NewRouter(Options{})
	var loaded []*Dict
	seen := map[*Dict]bool{nil: true}
	for _, v := range packAll(&Packer{Router: r}, items) {
		if _, d := v.Stored(); !seen[d] {
			seen[d] = true
			l, err := LoadDict(d.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			loaded = append(loaded, l)
		}
	}
	again := NewRouter(Options{})
	for range 2 { // a second time changes nothing
		for _, d := range loaded {
			again.Adopt(wire.Protobuf, d)
		}
	}
	if again.Adopt(wire.Protobuf, newShared(noise(100))); again.shared.dict.size == 100 {
		t.Error("a second shared dictionary takes the place of the first")
	}
	versions := packAll(&Packer{Router: again}, items)
	if st := again.Stats(); int(st.Routed) != len(items) || st.Dictionaries != len(loaded) {
		t.Errorf("%d of %d objects have a sample, with %d dictionaries for %d", st.Routed, len(items), st.Dictionaries, len(loaded))
	}
	for i, v := range versions {
		if raw, err := v.Append(nil); err != nil || !bytes.Equal(raw, items[i].Raw) {
			t.Fatalf("object %d came back otherwise, %v", i, err)
		}
	}
	runtime.KeepAlive(loaded)
}

// TestConcurrentStreams packs from several goroutines through one router, as the streams of a source do, while others read. It
// is for the race detector.
func TestConcurrentStreams(t *testing.T) {
	const streams, rounds = 4, 3
	r := NewRouter(Options{})
	var wg sync.WaitGroup
	for i := range streams {
		items := samples.New(uint64(i%2)).Pods(wire.Protobuf, 12, 4) // two pairs of streams have the same
		wg.Go(func() {
			p := Packer{Router: r}
			for range rounds {
				versions := packAll(&p, items)
				var readers sync.WaitGroup
				for range 2 {
					readers.Go(func() {
						for i, v := range versions {
							if raw, err := v.Append(nil); err != nil || !bytes.Equal(raw, items[i].Raw) {
								t.Errorf("object %d came back otherwise, %v", i, err)
								return
							}
						}
					})
				}
				r.Stats()
				readers.Wait()
			}
		})
	}
	wg.Wait()
	if st := r.Stats(); st.Routed+st.Unrouted != streams*rounds*48 {
		t.Errorf("%+v of %d objects", st, streams*rounds*48)
	}
}
