package checkpoint

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// FuzzLoad loads arbitrary bytes.
func FuzzLoad(f *testing.F) {
	for _, file := range fuzzFiles(f) {
		f.Add(file)
		f.Add(file[:len(file)-5])
		f.Add(append(file[:len(file)/2], file[len(file)/2+1:]...))
	}
	f.Fuzz(loads)
}

// FuzzRecords loads arbitrary records with the right CRCs, which FuzzLoad would have to guess. A record is two
// bytes of length, big-endian, and the body.
func FuzzRecords(f *testing.F) {
	for _, file := range fuzzFiles(f) {
		s, err := newScanner(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			f.Fatal(err)
		}
		var records []byte
		for s.off < s.size {
			body, _, err := s.next()
			if err != nil {
				f.Fatal(err)
			}
			records = append(records, byte(len(body)>>8), byte(len(body)))
			records = append(records, body...)
		}
		f.Add(records)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var bodies [][]byte
		for len(b) > 2 {
			n := min(int(b[0])<<8|int(b[1]), len(b)-2)
			bodies = append(bodies, b[2:2+n])
			b = b[2+n:]
		}
		loads(t, framed(bodies...))
	})
}

// loads loads a file unless it is damaged. It writes the loaded state and loads it again.
func loads(t *testing.T, file []byte) {
	size := int64(len(file))
	l, err := load(bytes.NewReader(file), size)
	if err == nil {
		_, err = l.report(size)
	}
	var damage *DamagedError
	if err != nil {
		if !errors.As(err, &damage) {
			t.Fatal(err)
		}
		return
	}
	st := l.state(size)
	if st.Torn < 0 || len(st.Items) != l.last.objects {
		t.Fatalf("%d objects of %d, %d torn bytes", len(st.Items), l.last.objects, st.Torn)
	}
	batch := store.Batch{Epoch: st.Head.Epoch, Phase: st.Head.Phase, Version: st.Head.Version}
	for _, it := range st.Items {
		batch.Deltas = append(batch.Deltas, store.Delta{Op: store.Added, Key: it.Key, New: it.V})
	}
	again := written(t, batch)
	l, err = load(bytes.NewReader(again), int64(len(again)))
	if err != nil {
		t.Fatalf("written again: %v", err)
	}
	for _, it := range st.Items {
		v := l.objects[it.Key]
		if v.UID() != it.V.UID() || v.RV() != it.V.RV() || !v.Identical(it.V) {
			t.Fatalf("%v differs from the original", it.Key)
		}
	}
}

// fuzzFiles returns files with records of every kind.
func fuzzFiles(tb testing.TB) [][]byte {
	key := store.Key{Namespace: "n", Name: "a"}
	v := (&compact.Packer{}).Pack(wire.Protobuf, "u", "1", []byte("{}"))
	payload, _ := v.Stored()
	head := (&header{stream: "pods", fingerprint: "f", identity: "i"}).append(nil)
	return [][]byte{
		written(tb, pods(6, 1)),
		framed(head, live(0)),
		framed(head, appendPut(nil, key, v, payload, 0), live(1), appendDelete(nil, key), live(0)),
	}
}
