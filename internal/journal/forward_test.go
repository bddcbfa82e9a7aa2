package journal

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
)

// TestReadForwards reads the chains of some objects from their oldest changes: kept changes equal the file's, one walk serves
// all changes up to the next whole version, and memory is bounded and released at the end.
func TestReadForwards(t *testing.T) {
	j, err := Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), Options{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	f := &fleet{nodes: 5}
	for range 70 {
		if _, err := j.Append(t.Context(), f.batch(f.nodes)); err != nil {
			t.Fatal(err)
		}
	}
	plain, err := OpenReader(t.Context(), j.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	type contents struct{ before, after []byte }
	want := map[int64]contents{}
	for e, err := range plain.Rows(t.Context(), Query{Quiet: true, Snapshots: true}) {
		if err != nil {
			t.Fatal(err)
		}
		before, after, err := e.Contents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want[e.Seq] = contents{before, after}
	}
	for _, limit := range []struct {
		name         string
		bytes, walks int
	}{
		{"enough", 1 << 20, 15}, // of 350: one from the first change, one from the 64th, and one from the state
		{"too little", 12 << 10, 340},
		{"next to nothing", 100, 350},
	} {
		t.Run(limit.name, func(t *testing.T) {
			r, err := OpenReader(t.Context(), j.Path())
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			r.ReadForwards(limit.bytes)
			walks, n := 0, 0
			for e, err := range r.Rows(t.Context(), Query{Quiet: true, Snapshots: true, OldestFirst: true}) {
				if err != nil {
					t.Fatal(err)
				}
				w := r.ahead.of[e.object]
				if w == nil || w.steps[0].seq != e.Seq {
					walks++
				}
				before, after, err := e.Contents(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if in := want[e.Seq]; !bytes.Equal(before, in.before) || !bytes.Equal(after, in.after) {
					t.Fatalf("change %d differs from what the file has", e.Seq)
				}
				if n++; r.ahead.size > limit.bytes {
					t.Fatalf("%d bytes are kept, of %d", r.ahead.size, limit.bytes)
				}
			}
			if n != 350 || walks > limit.walks {
				t.Errorf("%d changes, %d walks; want at most %d", n, walks, limit.walks)
			}
			if len(r.ahead.of) != 0 || r.ahead.size != 0 {
				t.Errorf("%d objects and %d bytes are kept after the end", len(r.ahead.of), r.ahead.size)
			}
			for e, err := range r.Rows(t.Context(), Query{Quiet: true, Snapshots: true}) {
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := e.Contents(t.Context()); err != nil || len(r.ahead.of) > 0 {
					t.Fatalf("newest first, %d objects are kept (%v)", len(r.ahead.of), err)
				}
				if n--; n == 300 { // the others are like the first 50
					break
				}
			}
		})
	}
}

// TestReadForwardsAfterClose: kept changes go with the reader.
func TestReadForwardsAfterClose(t *testing.T) {
	j, err := Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), Options{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	f := &fleet{nodes: 1}
	for range 3 {
		if _, err := j.Append(t.Context(), f.batch(1)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := OpenReader(t.Context(), j.Path())
	if err != nil {
		t.Fatal(err)
	}
	r.ReadForwards(1 << 20)
	n := 0
	for e, err := range r.Rows(t.Context(), Query{Quiet: true, Snapshots: true, OldestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 2 {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := e.Contents(t.Context()); errors.Is(err, ErrClosed) != (n > 1) {
			t.Errorf("change %d: %v", n, err)
		}
		if n == 2 {
			break
		}
	}
	if n != 2 {
		t.Fatalf("%d changes", n)
	}
}
