package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

func openDir(t *testing.T, path string) *Dir {
	t.Helper()
	d := Open(path)
	if _, err := d.current(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func openStream(t *testing.T, d *Dir, name string) *Stream {
	t.Helper()
	s, err := d.Stream(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// once is a queue of one batch, closed afterwards.
type once struct{ batch *store.Batch }

func (q *once) Close() {}

func (q *once) Next(context.Context) (store.Batch, error) {
	if q.batch == nil {
		return store.Batch{}, store.ErrClosed
	}
	b := *q.batch
	q.batch = nil
	return b, nil
}

// save writes one object at the first attempt.
func save(t *testing.T, s *Stream) error {
	t.Helper()
	v := (&compact.Packer{}).Pack(wire.JSON, "u", "5", []byte("{}"))
	batch := store.Batch{Epoch: 1, Phase: store.Live, Version: "7", Deltas: []store.Delta{added("a", v)}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	return s.Run(ctx, Options{
		Subscribe: func() (Queue, error) { return &once{&batch}, nil },
		Report: func(err error) {
			if err != nil {
				stop()
			}
		},
	})
}

// TestVerify verifies a file while it is written.
func TestVerify(t *testing.T) {
	d := openDir(t, t.TempDir())
	s := openStream(t, d, "pods")
	deltas := pods(50, 2).Deltas
	batches := []store.Batch{
		{Epoch: 3, Phase: store.Live, Version: "7", Deltas: deltas},
		{Epoch: 3, Phase: store.Live, Version: "9", Deltas: []store.Delta{{Op: store.Deleted, Key: deltas[0].Key, Old: deltas[0].New}}},
	}
	var reports []Report
	err := s.Run(t.Context(), Options{
		Fingerprint: "f", Identity: "i", SyncEvery: 1,
		Subscribe: func() (Queue, error) {
			return queueFunc(func(context.Context) (store.Batch, error) {
				r, err := Verify(s.Path())
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
				reports = append(reports, r)
				if len(batches) == 0 {
					return store.Batch{}, store.ErrClosed
				}
				b := batches[0]
				batches = batches[1:]
				return b, nil
			}), nil
		},
	})
	if err != nil || len(reports) != 3 || reports[0] != (Report{}) {
		t.Fatalf("%v, %+v", err, reports)
	}
	first, second := reports[1], reports[2]
	if first.Stream != "pods" || first.Fingerprint != "f" || first.Identity != "i" || first.Created.IsZero() || first.Saved.IsZero() ||
		first.Head != (store.Head{Epoch: 3, Phase: store.Live, Version: "7"}) ||
		first.Objects != 50 || first.Dictionaries == 0 || first.Transactions != 1 || first.Records != 1+50+first.Dictionaries+1 {
		t.Errorf("got %+v", first)
	}
	if second.Head.Version != "9" || second.Objects != 49 || second.Transactions != 2 || second.Records != first.Records+2 ||
		second.Garbage <= first.Garbage || second.Bytes <= first.Bytes || second.Torn != 0 {
		t.Errorf("got %+v, then %+v", first, second)
	}

	file, err := os.ReadFile(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(t.TempDir(), "torn")
	if err := os.WriteFile(torn, file[:len(file)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(torn); err != nil || r.Head.Version != "7" || r.Torn == 0 {
		t.Errorf("torn: got %+v, %v", r, err)
	}
}

type queueFunc func(context.Context) (store.Batch, error)

func (f queueFunc) Next(ctx context.Context) (store.Batch, error) { return f(ctx) }
func (queueFunc) Close()                                          {}

func TestNewest(t *testing.T) {
	for _, tc := range []struct {
		rvs  []string
		want string
	}{
		{nil, ""},
		{[]string{"9", "10", "8"}, "10"}, // by length first
		{[]string{"", "0", "x"}, ""},     // not versions
		{[]string{"x", "3", ""}, "3"},
		{[]string{"18446744073709551616", "99"}, "18446744073709551616"}, // more than 64 bits
	} {
		var st State
		for _, rv := range tc.rvs {
			st.Items = append(st.Items, store.Item{V: (&compact.Packer{}).Pack(wire.JSON, "u", rv, []byte("{}"))})
		}
		it, ok := st.Newest()
		if it.V.RV() != tc.want || ok != (tc.want != "") {
			t.Errorf("%q: got %q, %v", tc.rvs, it.V.RV(), ok)
		}
	}
}
