package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// history is a file with many transactions, and the stream that it is of.
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

// TestEveryByte damages each byte of a file in each way. What comes out is an error or an earlier
// state, never another one; and it is an error exactly where a later commit knows that the record had
// been durable, so that no crash can have done it.
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

// loads tells why the bytes cannot be loaded. If they can, it must be a state that was.
func (m *model) loads(file []byte) error {
	l, err := load(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return err
	}
	if err := m.check(l.state(int64(len(file)))); err != nil {
		m.t.Error(err)
	}
	if _, err := l.report(int64(len(file))); err != nil {
		m.t.Errorf("loads, and verify says: %v", err)
	}
	return nil
}

// TestRegions damages regions of a larger file, which is read in several pieces, also with what looks
// right: parts of the same file, and of another one of the same objects.
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

// updates is the file of a batch and of an update of each object to raw, each of which is durable
// before the next.
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

// wantUpdates checks that exactly as many objects are updated as the version says.
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

// framed is a file of these records, each with the right CRC.
func framed(bodies ...[]byte) []byte {
	id := make([]byte, idSize)
	file := appendPreface(nil, id)
	seal := newSeal(id)
	for _, body := range bodies {
		sum := seal.crc(int64(len(file)), body)
		file = binary.LittleEndian.AppendUint32(file, uint32(len(body)))
		file = binary.LittleEndian.AppendUint32(file, sum)
		file = append(file, body...)
	}
	return file
}

func live(objects int) []byte {
	c := commit{head: store.Head{Epoch: 1, Phase: store.Live, Version: "7"}, objects: objects}
	return c.append(nil)
}

// TestRefused are files that nobody wrote, most with the right CRCs: none may be used, and none may
// take more memory than it has bytes to show for.
func TestRefused(t *testing.T) {
	key := store.Key{Namespace: "n", Name: "a"}
	head := (&header{stream: "pods"}).append(nil)
	v := (&compact.Packer{}).Pack(wire.JSON, "u", "1", []byte("{}"))
	payload, _ := v.Stored()
	put := appendPut(nil, key, v, payload, 0)
	huge := binary.AppendUvarint(nil, 2<<30)
	good := framed(head, put, live(1))
	if _, err := load(bytes.NewReader(good), int64(len(good))); err != nil {
		t.Fatalf("the file that the others are made from: %v", err)
	}
	for name, file := range map[string][]byte{
		"empty":                             {},
		"another file":                      []byte("#!/bin/sh\nexit 0\n# and so on, for longer than the preface\n"),
		"nothing but a preface":             framed(),
		"nothing but a header":              framed(head),
		"no commit":                         framed(head, put),
		"no header":                         framed(put, live(1)),
		"two headers":                       framed(head, head, put, live(1)),
		"an unknown kind":                   framed(head, []byte{9}, put, live(1)),
		"kind zero":                         framed(head, []byte{0}, put, live(1)),
		"a wrong count":                     framed(head, put, live(2)),
		"an unknown dictionary":             framed(head, appendPut(nil, key, v, payload, 1), live(1)),
		"a dictionary that is none":         framed(head, appendDict(nil, 1, []byte("none")), live(0)),
		"a dictionary of 2 GB":              framed(head, appendDict(nil, 1, append([]byte{1}, huge...)), live(0)),
		"dictionary 0":                      framed(head, appendDict(nil, 0, []byte("none")), live(0)),
		"an object of 2 GB":                 framed(head, appendPut(nil, key, v, huge, 0), live(1)),
		"a name of 2 GB":                    framed(head, append([]byte{kindDelete}, huge...), live(0)),
		"a number that never ends":          framed(head, append([]byte{kindDelete}, bytes.Repeat([]byte{0xff}, 20)...), live(0)),
		"an object of no format":            framed(head, edit(put, func(b []byte) { b[bytes.Index(b, []byte("\x01u\x011"))+4] = 0 }), live(1)),
		"a delete with something behind":    framed(head, append(appendDelete(nil, key), 0), live(0)),
		"a commit without its mark":         framed(head, put, []byte{kindCommit, 1, 2, 3}),
		"a commit of no phase":              framed(head, put, edit(live(1), func(b []byte) { b[len(commitMark)] = 0 })),
		"a commit that ends early":          framed(head, put, live(1)[:12]),
		"a record of 2 GB":                  append(framed(head), 0, 0, 0, 0x80, 1, 2, 3, 4, 5),
		"a record of no bytes":              append(framed(head), make([]byte, 64)...),
		"another format version":            edit(good, func(b []byte) { b[len(magic)] = 2 }),
		"a damaged preface":                 edit(good, func(b []byte) { b[len(magic)+5]++ }),
		"commits of huge lengths, for ever": append(framed(head), bytes.Repeat([]byte("\xff\xff\xff\x03crc!"+commitMark), 100_000)...),
		"commits with wrong CRCs, for ever": append(framed(head), bytes.Repeat([]byte("\x20\x00\x00\x00crc!"+commitMark), 100_000)...),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := load(bytes.NewReader(file), int64(len(file)))
			runtime.ReadMemStats(&after)
			var damage *DamagedError
			if !errors.As(err, &damage) {
				t.Errorf("got %v", err)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
				t.Errorf("took %d bytes of memory for a file of %d", got, len(file))
			}
		})
	}
}

// TestCommitAcrossReads: a commit behind damage is found wherever it is in what is read at once.
func TestCommitAcrossReads(t *testing.T) {
	head := (&header{stream: "pods"}).append(nil)
	later := commit{head: store.Head{Epoch: 1, Phase: store.Live, Version: "8"}, durable: 1 << 40}
	for shift := range 100 {
		file := framed(head, live(0))
		file = append(file, make([]byte, readAhead-50-len(file)+shift)...)
		body := later.append(nil)
		seal := newSeal(make([]byte, idSize))
		sum := seal.crc(int64(len(file)), body)
		file = binary.LittleEndian.AppendUint32(file, uint32(len(body)))
		file = binary.LittleEndian.AppendUint32(file, sum)
		file = append(file, body...)
		file = append(file, make([]byte, 3000)...)
		var damage *DamagedError
		if _, err := load(bytes.NewReader(file), int64(len(file))); !errors.As(err, &damage) {
			t.Errorf("at %d bytes from the end of a read: %v", shift-50, err)
		}
	}
}

// TestReadError: a disk that cannot be read is not taken for a damaged file.
func TestReadError(t *testing.T) {
	file, _ := history(t, 8, 10)
	for i := range file {
		_, err := load(bytes.NewReader(file[:i]), int64(len(file))) // as if somebody cut it meanwhile
		var damage *DamagedError
		if err == nil || errors.As(err, &damage) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}
