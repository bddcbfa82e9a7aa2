package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// bench is a Stream that runs on a memDisk and receives batches from the test. It lives in a synctest bubble.
type bench struct {
	t       *testing.T
	disk    *memDisk
	stream  *Stream
	opts    Options
	batches chan store.Batch
	opened  int // number of queues opened
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

// end stops Run and loads the remaining file.
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

// wait lets time pass and the effects settle.
func (b *bench) wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (b *bench) send(phase store.Phase, version string, deltas ...store.Delta) {
	b.batches <- store.Batch{Epoch: 1, Phase: phase, Version: version, Deltas: deltas}
	synctest.Wait()
}

// durable describes the state guaranteed to survive a crash of the machine.
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
		{"the first list becomes durable at once when it ends", func(b *bench) {
			b.send(store.Listing, "", added("a", b.version("5")))
			b.wait(time.Hour)
			b.wants(nothing)
			b.send(store.Live, "7", added("b", b.version("6")))
			b.wants("live 7: a@5 b@6")
		}},
		{"an unfinished first list leaves nothing", func(b *bench) {
			b.send(store.Listing, "", added("a", b.version("5")))
		}},
		{"an empty stream has a checkpoint, too", func(b *bench) {
			b.send(store.Live, "7")
			b.wants("live 7:")
		}},
		{"a change is durable after a second, not at once", func(b *bench) {
			b.send(store.Live, "7")
			b.send(store.Live, "8", added("a", b.version("8")))
			b.wait(time.Second - time.Nanosecond)
			b.wants("live 7:")
			b.wait(time.Nanosecond)
			b.wants("live 8: a@8")
		}},
		{"a stream that is never idle is made durable too", func(b *bench) {
			b.send(store.Live, "1000")
			old := (*compact.Version)(nil)
			for i := range 30 {
				b.wait(100 * time.Millisecond)
				v := b.version(fmt.Sprint(1001 + i))
				b.send(store.Live, v.RV(), updated("a", old, v))
				old = v
			}
			if got := b.durable(); got < "live 1020" {
				b.t.Errorf("after 3 s, durable is %q", got)
			}
		}},
		{"a bookmark moves the version", func(b *bench) {
			b.send(store.Live, "7")
			b.send(store.Live, "9")
			b.wait(time.Second)
			b.wants("live 9:")
		}},
		{"without changes, nothing is written", func(b *bench) {
			b.send(store.Live, "7")
			ops := b.disk.ops
			b.send(store.Live, "7")
			b.wait(time.Hour)
			if b.disk.ops != ops {
				b.t.Errorf("%d operations", b.disk.ops-ops)
			}
		}},
		{"a change in parts does not set listing", func(b *bench) {
			b.send(store.Live, "7", added("a", b.version("5")))
			b.send(store.Listing, "", added("b", b.version("8")))
			b.wait(time.Second / 2)
			b.send(store.Live, "9", added("c", b.version("9")))
			b.wants("live 7: a@5")
			b.wait(time.Second)
			b.wants("live 9: a@5 b@8 c@9")
		}},
		{"a list of more than a second sets listing; its sweep sets live, at once", func(b *bench) {
			a := b.version("5")
			b.send(store.Live, "7", added("a", a))
			b.send(store.Listing, "", added("b", b.version("8")))
			b.wait(time.Second)
			b.wants("listing : a@5 b@8")
			b.send(store.Live, "9", deleted("a", a))
			b.wants("live 9: b@8")
		}},
		{"a new epoch sets listing at once: the server's history was replaced", func(b *bench) {
			a := b.version("5")
			b.send(store.Live, "7", added("a", a))
			b.batches <- store.Batch{Epoch: 2, Phase: store.Listing, Deltas: []store.Delta{updated("a", a, b.version("2"))}}
			synctest.Wait()
			b.wants("listing : a@2")
			b.batches <- store.Batch{Epoch: 2, Phase: store.Live, Version: "3"}
			synctest.Wait()
			b.wants("live 3: a@2")
		}},
		{"an object with a new UID replaces the old one", func(b *bench) {
			a := b.version("5")
			b.send(store.Live, "7", added("a", a))
			b.send(store.Live, "8", deleted("a", a), added("a", b.packer.Pack(wire.Protobuf, "other", "8", []byte("raw"))))
			st := b.end()
			if it := st.Items[0]; describe(st) != "live 8: a@8" || it.V.UID() != "other" || it.V.Format() != wire.Protobuf {
				b.t.Errorf("got %s with UID %s in %v", describe(st), it.V.UID(), it.V.Format())
			}
		}},
		{"the end makes everything durable", func(b *bench) {
			b.send(store.Live, "7")
			b.send(store.Live, "8", added("a", b.version("8")))
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
