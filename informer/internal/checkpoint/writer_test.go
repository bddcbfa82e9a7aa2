package checkpoint

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/tattler-dev/tattler/informer/internal/store"
)

// TestAccounting: a writer's running counts equal the counts of a writer that continues the file.
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
		t.Errorf("of %d dictionaries, %d are left; without objects, %d bytes are live", dicts, len(w.dicts), w.live-empty)
	}
}

// TestOldIsAnother: the queue's old version may be another Version with the same content as the one on disk,
// packed with another dictionary. The file's objects must still be counted right.
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
