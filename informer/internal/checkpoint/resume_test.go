package checkpoint

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// TestResume checks whether a file is continued, and its bytes.
func TestResume(t *testing.T) {
	for _, tc := range []struct {
		name      string
		before    func(b *bench) // Load
		after     func(b *bench)
		continued bool
		gone      bool // until a new file exists
	}{
		{name: "the same program continues", continued: true},
		{name: "another pipeline starts a new file: its bytes differ", before: func(b *bench) { b.opts.Fingerprint = "two" }},
		{name: "another cluster starts a new file", before: func(b *bench) { b.opts.Identity = "other" }},
		{name: "a torn end is not followed by new records", before: func(b *bench) {
			i := b.disk.names[b.stream.file]
			i.data = append(i.data, "torn"...)
		}},
		{name: "a file that was not loaded is removed: it may be of another history", after: func(b *bench) { b.stream = b.open() }, gone: true},
		{name: "a file that changed since it was loaded is not continued", after: func(b *bench) {
			i := b.disk.names[b.stream.file]
			i.data = append(i.data, "another"...)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.start()
				b.send(store.Live, "7", added("a", b.version("5")), added("b", b.version("6")), added("c", b.version("7")))
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
				// The loaded objects, but c was deleted before the queue was opened.
				b.send(store.Listing, "", added("a", loaded["a"]), added("b", loaded["b"]))
				time.Sleep(time.Minute)
				if tc.gone {
					b.wants(nothing)
				} else {
					b.wants("live 7: a@5 b@6 c@7")
				}
				b.send(store.Live, "9", updated("b", loaded["b"], b.version("9")))
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

// TestNewEpochOfAParkedStream: a parked stream opens its checkpoint again without loading it. If the server's
// history was replaced meanwhile, a crash before the new list ends must not leave the old checkpoint.
func TestNewEpochOfAParkedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start()
		b.send(store.Live, "7", added("a", b.version("5")))
		b.end()
		b.stream = b.open()
		b.start()
		b.batches <- store.Batch{Epoch: 2, Phase: store.Listing, Deltas: []store.Delta{added("a", b.version("5"))}}
		synctest.Wait()
		b.wants(nothing)
		ops := b.disk.ops
		b.batches <- store.Batch{Epoch: 2, Phase: store.Listing, Deltas: []store.Delta{added("b", b.version("6"))}}
		synctest.Wait()
		if b.disk.ops != ops {
			t.Errorf("%d operations to remove a missing file", b.disk.ops-ops)
		}
		b.batches <- store.Batch{Epoch: 2, Phase: store.Live, Version: "6"}
		synctest.Wait()
		b.wants("live 6: a@5 b@6")
		b.end()
	})
}

// TestStoppedBeforeCurrent: a process that ends before it knows the current state leaves the file unchanged.
func TestStoppedBeforeCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start()
		b.send(store.Live, "7", added("a", b.version("5")))
		b.end()
		before := slices.Clone(b.disk.names[b.stream.file].data)
		b.start()
		b.send(store.Listing, "", added("b", b.version("6")))
		if st := b.end(); !bytes.Equal(b.disk.names[b.stream.file].data, before) {
			t.Errorf("left %s, and %d torn bytes", describe(st), st.Torn)
		}
	})
}
