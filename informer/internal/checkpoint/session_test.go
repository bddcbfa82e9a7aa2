package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// bench is a Stream that runs on a memDisk; batches are told by hand. It lives in a synctest bubble.
type bench struct {
	t       *testing.T
	disk    *memDisk
	stream  *Stream
	opts    Options
	batches chan store.Batch
	opened  int // queues
	reports []error
	stop    func()
	done    chan error
	packer  compact.Packer
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, disk: newMemDisk(), batches: make(chan store.Batch)}
	b.stream = b.open()
	b.opts = Options{
		Fingerprint: "one", Identity: "cluster",
		Subscribe: func() (Queue, error) { b.opened++; return handQueue{b.batches}, nil },
		Report:    func(err error) { b.reports = append(b.reports, err) },
	}
	return b
}

func (b *bench) open() *Stream {
	return &Stream{dir: &Dir{path: "mem", disk: b.disk, names: map[string]bool{}}, name: "pods", file: fileName("pods"),
		minFile: minFile, maxBuffer: maxBuffer}
}

type handQueue struct{ c chan store.Batch }

func (q handQueue) Close() {}

func (q handQueue) Next(ctx context.Context) (store.Batch, error) {
	select {
	case b := <-q.c:
		return b, nil
	case <-ctx.Done():
		return store.Batch{}, ctx.Err()
	}
}

func (b *bench) start() {
	var ctx context.Context
	ctx, b.stop = context.WithCancel(b.t.Context())
	b.done = make(chan error, 1)
	go func() { b.done <- b.stream.Run(ctx, b.opts) }()
	synctest.Wait()
}

// end stops Run and loads what it leaves.
func (b *bench) end() *State {
	b.t.Helper()
	b.stop()
	if err := <-b.done; err != nil {
		b.t.Fatalf("Run: %v", err)
	}
	b.done <- nil
	st, err := b.stream.Load(b.opts.Fingerprint)
	if err != nil {
		b.t.Fatal(err)
	}
	return st
}

func (b *bench) tell(phase store.Phase, version string, deltas ...store.Delta) {
	b.batches <- store.Batch{Epoch: 1, Phase: phase, Version: version, Deltas: deltas}
	synctest.Wait()
}

// durable describes what a crash of the machine is sure to leave.
func (b *bench) durable() string {
	after := bench{disk: b.disk.reboot(loseAll, nil)}
	st, err := after.open().Load(b.opts.Fingerprint)
	if err != nil {
		return fmt.Sprint(errors.Is(err, fs.ErrNotExist), " ", err)
	}
	return describe(st)
}

func describe(st *State) string {
	var names []string
	for _, it := range st.Items {
		names = append(names, it.Key.Name+"@"+it.V.RV())
	}
	slices.Sort(names)
	phase := map[store.Phase]string{store.Listing: "listing", store.Live: "live"}[st.Head.Phase]
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s", phase, st.Head.Version, strings.Join(names, " ")))
}

func (b *bench) wants(want string) {
	b.t.Helper()
	if got := b.durable(); got != want {
		b.t.Errorf("durable is %q, want %q", got, want)
	}
}

func (b *bench) version(rv string) *compact.Version {
	return b.packer.Pack(wire.JSON, "u", rv, fmt.Appendf(nil, `{"kind":"Pod","version":%q}`, rv))
}

func added(name string, v *compact.Version) store.Delta {
	return store.Delta{Op: store.Added, Key: store.Key{Namespace: "n", Name: name}, New: v}
}

func updated(name string, old, v *compact.Version) store.Delta {
	return store.Delta{Op: store.Updated, Key: store.Key{Namespace: "n", Name: name}, Old: old, New: v}
}

func deleted(name string, old *compact.Version) store.Delta {
	return store.Delta{Op: store.Deleted, Key: store.Key{Namespace: "n", Name: name}, Old: old}
}

const nothing = "true load checkpoint mem/pods.checkpoint: file does not exist"

func TestSession(t *testing.T) {
	for _, tc := range []struct {
		name string // and why it is there
		run  func(b *bench)
	}{
		{"the first list leaves nothing until it is through, then all at once", func(b *bench) {
			b.tell(store.Listing, "", added("a", b.version("5")))
			time.Sleep(time.Hour)
			b.wants(nothing)
			b.tell(store.Live, "7", added("b", b.version("6")))
			b.wants("live 7: a@5 b@6")
		}},
		{"a first list that is not through leaves nothing", func(b *bench) {
			b.tell(store.Listing, "", added("a", b.version("5")))
		}},
		{"an empty stream has a checkpoint, too", func(b *bench) {
			b.tell(store.Live, "7")
			b.wants("live 7:")
		}},
		{"a change is durable after a second, not at once", func(b *bench) {
			b.tell(store.Live, "7")
			b.tell(store.Live, "8", added("a", b.version("8")))
			time.Sleep(time.Second - 1)
			b.wants("live 7:")
			time.Sleep(1)
			synctest.Wait()
			b.wants("live 8: a@8")
		}},
		{"a stream that is never idle is made durable all the same", func(b *bench) {
			b.tell(store.Live, "1000")
			old := (*compact.Version)(nil)
			for i := range 30 {
				time.Sleep(100 * time.Millisecond)
				v := b.version(fmt.Sprint(1001 + i))
				b.tell(store.Live, v.RV(), updated("a", old, v))
				old = v
			}
			if got := b.durable(); got < "live 1020" {
				b.t.Errorf("after 3 s, durable is %q", got)
			}
		}},
		{"a bookmark moves the version", func(b *bench) {
			b.tell(store.Live, "7")
			b.tell(store.Live, "9")
			time.Sleep(time.Second)
			synctest.Wait()
			b.wants("live 9:")
		}},
		{"nothing new writes nothing", func(b *bench) {
			b.tell(store.Live, "7")
			ops := b.disk.ops
			b.tell(store.Live, "7")
			time.Sleep(time.Hour)
			if b.disk.ops != ops {
				b.t.Errorf("%d operations", b.disk.ops-ops)
			}
		}},
		{"what is taken in parts does not set listing", func(b *bench) {
			b.tell(store.Live, "7", added("a", b.version("5")))
			b.tell(store.Listing, "", added("b", b.version("8")))
			time.Sleep(time.Second / 2)
			b.tell(store.Live, "9", added("c", b.version("9")))
			b.wants("live 7: a@5")
			time.Sleep(time.Second)
			b.wants("live 9: a@5 b@8 c@9")
		}},
		{"a list of more than a second sets listing; its sweep sets live, at once", func(b *bench) {
			a := b.version("5")
			b.tell(store.Live, "7", added("a", a))
			b.tell(store.Listing, "", added("b", b.version("8")))
			time.Sleep(time.Second)
			synctest.Wait()
			b.wants("listing : a@5 b@8")
			b.tell(store.Live, "9", deleted("a", a))
			b.wants("live 9: b@8")
		}},
		{"a new epoch sets listing at once: the server's history was replaced", func(b *bench) {
			a := b.version("5")
			b.tell(store.Live, "7", added("a", a))
			b.batches <- store.Batch{Epoch: 2, Phase: store.Listing, Deltas: []store.Delta{updated("a", a, b.version("2"))}}
			synctest.Wait()
			b.wants("listing : a@2")
			b.batches <- store.Batch{Epoch: 2, Phase: store.Live, Version: "3"}
			synctest.Wait()
			b.wants("live 3: a@2")
		}},
		{"an object with a new UID replaces the old one", func(b *bench) {
			a := b.version("5")
			b.tell(store.Live, "7", added("a", a))
			b.tell(store.Live, "8", deleted("a", a), added("a", b.packer.Pack(wire.Protobuf, "other", "8", []byte("raw"))))
			st := b.end()
			if it := st.Items[0]; describe(st) != "live 8: a@8" || it.V.UID() != "other" || it.V.Format() != wire.Protobuf {
				b.t.Errorf("got %s with UID %s in %v", describe(st), it.V.UID(), it.V.Format())
			}
		}},
		{"the end makes everything durable", func(b *bench) {
			b.tell(store.Live, "7")
			b.tell(store.Live, "8", added("a", b.version("8")))
			b.end()
			b.wants("live 8: a@8")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.start()
				tc.run(b)
				b.stop()
				<-b.done
				if b.disk.handles != 0 || b.disk.names[b.stream.file+unfinished] != nil {
					t.Errorf("%d open files; unfinished file: %v", b.disk.handles, b.disk.names[b.stream.file+unfinished] != nil)
				}
			})
		})
	}
}

// TestResume continues a file, or does not, and looks at its bytes.
func TestResume(t *testing.T) {
	for _, tc := range []struct {
		name      string
		before    func(b *bench) // Load
		after     func(b *bench)
		continued bool
	}{
		{name: "the same program continues", continued: true},
		{name: "another pipeline begins anew: its bytes differ", before: func(b *bench) { b.opts.Fingerprint = "two" }},
		{name: "another cluster begins anew", before: func(b *bench) { b.opts.Identity = "other" }},
		{name: "what a crash left at the end is not buried", before: func(b *bench) {
			i := b.disk.names[b.stream.file]
			i.data = append(i.data, "torn"...)
		}},
		{name: "what was not loaded is not continued", after: func(b *bench) { b.stream = b.open() }},
		{name: "what is not as it was loaded is not continued", after: func(b *bench) {
			i := b.disk.names[b.stream.file]
			i.data = append(i.data, "another"...)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.start()
				b.tell(store.Live, "7", added("a", b.version("5")), added("b", b.version("6")), added("c", b.version("7")))
				b.end()
				before := slices.Clone(b.disk.names[b.stream.file].data)

				if tc.before != nil {
					tc.before(b)
				}
				st, err := b.stream.Load(b.opts.Fingerprint)
				if err != nil {
					t.Fatal(err)
				}
				if tc.after != nil {
					tc.after(b)
				}
				loaded := map[string]*compact.Version{}
				for _, it := range st.Items {
					loaded[it.Key.Name] = it.V
				}
				b.start()
				// What was loaded; but c went before the queue was opened.
				b.tell(store.Listing, "", added("a", loaded["a"]), added("b", loaded["b"]))
				time.Sleep(time.Minute)
				b.wants("live 7: a@5 b@6 c@7")
				b.tell(store.Live, "9", updated("b", loaded["b"], b.version("9")))
				b.wants("live 9: a@5 b@9")

				after := b.disk.names[b.stream.file].data
				if got := bytes.HasPrefix(after, before); got != tc.continued {
					t.Errorf("continued is %v, want %v", got, tc.continued)
				}
				if puts := bytes.Count(after, []byte("\x01n\x01a")); puts != 1 {
					t.Errorf("a is in the file %d times", puts)
				}
				b.end()
			})
		})
	}
}

// TestStoppedBeforeCurrent: a process that ends before it knows what is leaves the file as it was.
func TestStoppedBeforeCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start()
		b.tell(store.Live, "7", added("a", b.version("5")))
		b.end()
		before := slices.Clone(b.disk.names[b.stream.file].data)
		b.start()
		b.tell(store.Listing, "", added("b", b.version("6")))
		if st := b.end(); !bytes.Equal(b.disk.names[b.stream.file].data, before) {
			t.Errorf("left %s, and %d torn bytes", describe(st), st.Torn)
		}
	})
}

// TestGarbage updates one object until the file is written anew, and again.
func TestGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.stream.minFile = 2000
		rng := rand.New(rand.NewPCG(1, 2))
		now := b.version("100")
		keep := b.version("99")
		b.opts.Subscribe = func() (Queue, error) {
			b.opened++
			b.batches = make(chan store.Batch, 1)
			b.batches <- store.Batch{Epoch: 1, Phase: store.Live, Version: now.RV(), Deltas: []store.Delta{added("a", now), added("keep", keep)}}
			return handQueue{b.batches}, nil
		}
		b.start()
		largest := 0
		for i := range 300 {
			v := b.packer.Pack(wire.JSON, "u", fmt.Sprint(101+i), fmt.Appendf(nil, "%d %x", i, rng.Uint64()))
			b.tell(store.Live, v.RV(), updated("a", now, v))
			now = v
			time.Sleep(time.Second)
			synctest.Wait()
			largest = max(largest, len(b.disk.names[b.stream.file].data))
		}
		if b.opened < 5 || b.opened > 30 || largest > 2000 || largest < 1500 {
			t.Errorf("written anew %d times, the largest had %d bytes", b.opened-1, largest)
		}
		if got, want := describe(b.end()), "live 400: a@400 keep@99"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestRetry: a disk that refuses is tried again, ever more rarely; Run goes on.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var tries []int
		began := time.Now()
		b.opts.Report = func(err error) {
			b.reports = append(b.reports, err)
			tries = append(tries, int(time.Since(began)/time.Second))
			b.disk.failAt = b.disk.ops + 1
			if len(tries) == 9 {
				b.disk.failAt = 0
			}
		}
		b.disk.failAt = 1
		b.start()
		time.Sleep(10 * time.Minute)
		b.tell(store.Live, "7")
		want := []int{0, 1, 3, 7, 15, 31, 63, 123, 183, 600}
		if !slices.Equal(tries, want) {
			t.Errorf("tried after %v seconds, want %v", tries, want)
		}
		for i, err := range b.reports {
			if i < 9 && !errors.Is(err, errInjected) || i == 9 && err != nil {
				t.Errorf("report %d: %v", i, err)
			}
		}
		b.end()
	})
}

func TestSubscribeEndsRun(t *testing.T) {
	b := newBench(t)
	closed := errors.New("the source is closed")
	b.opts.Subscribe = func() (Queue, error) { return nil, closed }
	if err := b.stream.Run(t.Context(), b.opts); err != closed {
		t.Errorf("got %v", err)
	}
}

// TestStopWhileBusy: a stream that goes on and on does not keep Run from ending.
func TestStopWhileBusy(t *testing.T) {
	b := newBench(t)
	ctx, stop := context.WithCancel(t.Context())
	told := 0
	b.opts.Subscribe = func() (Queue, error) {
		return queueFunc(func(context.Context) (store.Batch, error) {
			if told++; told == 100 {
				stop()
			}
			return store.Batch{Epoch: 1, Phase: store.Live, Version: fmt.Sprint(1000 + told)}, nil
		}), nil
	}
	if err := b.stream.Run(ctx, b.opts); err != nil {
		t.Fatal(err)
	}
	b.wants("live 1101:")
}

// TestAccounting: what a writer counts as it goes is what one finds that continues the file.
func TestAccounting(t *testing.T) {
	d := newMemDisk()
	f, err := d.Create("f")
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWriter(f, maxBuffer, &header{stream: "pods"})
	if err != nil {
		t.Fatal(err)
	}
	empty := w.live
	first, second := pods(40, 4).Deltas, pods(40, 3).Deltas
	step := func(deltas []store.Delta) {
		t.Helper()
		err := errors.Join(w.apply(&store.Batch{Deltas: deltas}), w.commit(store.Head{Epoch: 1, Phase: store.Live, Version: "7"}), w.sync())
		if err != nil {
			t.Fatal(err)
		}
		data := d.names["f"].data
		l, err := load(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if c := continued(nil, 0, l); c.live != w.live || c.objects != w.objects || len(c.dicts) != len(w.dicts) || c.size != w.size {
			t.Errorf("counted %d bytes, %d objects, %d dictionaries; found %d, %d, %d", w.live, w.objects, len(w.dicts), c.live, c.objects, len(c.dicts))
		}
	}
	step(first)
	dicts := len(w.dicts)
	var deltas []store.Delta
	for i, d := range first {
		deltas = append(deltas, store.Delta{Op: store.Updated, Key: d.Key, Old: d.New, New: second[i].New})
	}
	step(deltas[:20])
	step(deltas[20:])
	deltas = nil
	for i, d := range first {
		deltas = append(deltas, store.Delta{Op: store.Deleted, Key: d.Key, Old: second[i].New})
	}
	step(deltas)
	if dicts == 0 || len(w.dicts) != 0 || w.live != empty {
		t.Errorf("of %d dictionaries, %d are left; of nothing, %d bytes", dicts, len(w.dicts), w.live-empty)
	}
}

// TestOldIsAnother: what the queue calls old may be another Version with the content of what is on
// disk, made with another dictionary. The file's objects are counted right all the same.
func TestOldIsAnother(t *testing.T) {
	first, same := pods(3, 1).Deltas, pods(3, 1).Deltas
	batch := store.Batch{Epoch: 1, Phase: store.Live, Version: "1", Deltas: slices.Clone(first)}
	dicts := 0
	for _, d := range same {
		if _, dict := d.New.Stored(); dict != nil {
			dicts++
		}
		batch.Deltas = append(batch.Deltas, store.Delta{Op: store.Deleted, Key: d.Key, Old: d.New})
	}
	file := written(t, batch)
	l, err := load(bytes.NewReader(file), int64(len(file)))
	if err != nil || len(l.objects) != 0 || dicts == 0 {
		t.Fatalf("got %+v, %v, with %d dictionaries", l, err, dicts)
	}
}
