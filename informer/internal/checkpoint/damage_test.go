package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// history returns a file with many transactions, and its stream.
func history(t *testing.T, seed uint64, steps int) (file []byte, m *model) {
	synctest.Test(t, func(t *testing.T) {
		p := &protocol{seed: seed, t: t, rng: rand.New(rand.NewPCG(seed, 0)), disk: newMemDisk(), fp: "one"}
		p.model = newModel(t, seed, steps)
		s := p.stream()
		s.minFile = 1 << 30
		err := s.Run(t.Context(), Options{Subscribe: func() (Queue, error) {
			q := p.model.subscribe()
			q.gone, q.end = func() bool { return false }, func() error { return store.ErrClosed }
			return q, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		file, m = p.disk.names[s.file].data, p.model
	})
	m.t = t
	return file, m
}

// place is a record in a file.
type place struct {
	at, end int64
	durable int64 // of a commit
}

func places(t *testing.T, file []byte) []place {
	s, err := newScanner(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	all := []place{{end: int64(prefaceSize)}}
	for s.off < s.size {
		body, at, err := s.next()
		if err != nil {
			t.Fatal(err)
		}
		pl := place{at: at, end: s.off}
		if fields, ok := bytes.CutPrefix(body, []byte(commitMark)); ok {
			c, err := readCommit(fields)
			if err != nil {
				t.Fatal(err)
			}
			pl.durable = c.durable
		}
		all = append(all, pl)
	}
	return all
}

// TestEveryByte damages each byte of a file in each way. Loading must yield an error or an earlier state, never
// another one. It must be an error exactly if a later commit knows that the record had been durable, so that a
// crash cannot be the cause.
func TestEveryByte(t *testing.T) {
	file, m := history(t, 7, 30)
	all := places(t, file)
	last := all[len(all)-1].at
	if len(all) < 40 || len(file) > 12_000 {
		t.Fatalf("the file has %d records in %d bytes", len(all), len(file))
	}
	outcomes := map[bool]int{}
	for i := range file {
		r, _ := slices.BinarySearchFunc(all, int64(i), func(p place, at int64) int {
			if at < p.at {
				return 1
			}
			if at >= p.end {
				return -1
			}
			return 0
		})
		refused := r < 2 || slices.ContainsFunc(all[r+1:], func(p place) bool { return p.durable > all[r].at })
		outcomes[refused]++
		for kind, damaged := range map[string][]byte{
			"inverted":    edit(file, func(b []byte) { b[i] ^= 0xff }),
			"one bit":     edit(file, func(b []byte) { b[i] ^= 1 << (i % 8) }),
			"zero":        edit(file, func(b []byte) { b[i] = 0 }),
			"inserted":    slices.Insert(slices.Clone(file), i, 'x'),
			"deleted":     slices.Delete(slices.Clone(file), i, i+1),
			"cut":         file[:i],
			"zero behind": edit(file, func(b []byte) { clear(b[i:]) }),
		} {
			if bytes.Equal(damaged, file) {
				continue
			}
			err := m.loads(damaged)
			var damage *DamagedError
			switch inPlace := len(damaged) == len(file) && kind != "zero behind"; {
			case err != nil && !errors.As(err, &damage):
				t.Errorf("byte %d %s: %v", i, kind, err)
			case inPlace && refused != (err != nil):
				t.Errorf("byte %d %s: got %v, want refused: %v", i, kind, err, refused)
			case int64(i) > last && err != nil:
				t.Errorf("byte %d %s, of the last commit: %v", i, kind, err)
			}
		}
	}
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("the test has only one outcome: %v", outcomes)
	}
}

func edit(file []byte, f func([]byte)) []byte {
	b := slices.Clone(file)
	f(b)
	return b
}

// loads returns the load error of the bytes. If they load, the state must be one that the stream had.
func (m *model) loads(file []byte) error {
	l, err := load(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return err
	}
	if err := m.check(l.state(int64(len(file)))); err != nil {
		m.t.Error(err)
	}
	if _, err := l.report(int64(len(file))); err != nil {
		m.t.Errorf("loads, but verify fails: %v", err)
	}
	return nil
}

// TestRegions damages regions of a larger file, which is read in several pieces. It also inserts plausible
// bytes: parts of the same file, and of another file with the same objects.
func TestRegions(t *testing.T) {
	const n = 500
	first := pods(n, 50)
	file, other := updates(t, first, "updated"), updates(t, first, "another")
	rng := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for range 60 {
		size := 1 + rng.IntN(5000)
		at, from := rng.IntN(len(file)-size), rng.IntN(len(file)-size)
		for kind, with := range map[string][]byte{
			"zeros":              make([]byte, size),
			"another part":       file[from : from+size],
			"another file's":     other[at : at+size],
			"another file's end": other[at:],
		} {
			damaged := append(slices.Clone(file[:at]), with...)
			damaged = append(damaged, file[len(damaged):]...)
			l, err := load(bytes.NewReader(damaged), int64(len(damaged)))
			var damage *DamagedError
			switch {
			case errors.As(err, &damage):
				refused++
			case err != nil:
				t.Errorf("%d bytes of %s at %d: %v", size, kind, at, err)
			default:
				if err := wantUpdates(l, first); err != nil {
					t.Errorf("%d bytes of %s at %d: %v", size, kind, at, err)
				}
			}
		}
	}
	if refused < 120 {
		t.Errorf("only %d of 240 were refused", refused)
	}
}

// updates is the file of a batch and of an update of each object to raw. Each update is durable before the
// next.
func updates(t *testing.T, first store.Batch, raw string) []byte {
	d := newMemDisk()
	f, err := d.Create("f")
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWriter(f, maxBuffer, &header{stream: "pods"})
	if err != nil {
		t.Fatal(err)
	}
	batch := first
	for i := range len(first.Deltas) {
		if err := errors.Join(w.apply(&batch), w.commit(store.Head{Epoch: 1, Phase: store.Live, Version: fmt.Sprint(i)}), w.sync()); err != nil {
			t.Fatal(err)
		}
		old := first.Deltas[i]
		v := (&compact.Packer{}).Pack(wire.JSON, old.New.UID(), fmt.Sprint(i), []byte(raw))
		batch.Deltas = []store.Delta{{Op: store.Updated, Key: old.Key, Old: old.New, New: v}}
	}
	return d.names["f"].data
}

// wantUpdates checks that the version matches the number of updated objects.
func wantUpdates(l *loader, first store.Batch) error {
	var updated int
	if _, err := fmt.Sscan(l.last.head.Version, &updated); err != nil {
		return err
	}
	if len(l.objects) != len(first.Deltas) {
		return fmt.Errorf("loaded %d objects", len(l.objects))
	}
	for i, d := range first.Deltas {
		want := d.New
		if i < updated {
			want = (&compact.Packer{}).Pack(wire.JSON, d.New.UID(), fmt.Sprint(i), []byte("updated"))
		}
		if got := l.objects[d.Key]; got.RV() != want.RV() || !got.Identical(want) {
			return fmt.Errorf("at %d, object %d has version %s, want %s", updated, i, got.RV(), want.RV())
		}
	}
	return nil
}

// TestReadError checks that a read error is not reported as damage.
func TestReadError(t *testing.T) {
	file, _ := history(t, 8, 10)
	for i := range file {
		_, err := load(bytes.NewReader(file[:i]), int64(len(file))) // as if the file were truncated meanwhile
		var damage *DamagedError
		if err == nil || errors.As(err, &damage) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}
