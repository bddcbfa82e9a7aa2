package feed_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestSteps: the steps make of a watch's bytes what a source delivers.
func TestSteps(t *testing.T) {
	run(t, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		key := []byte("a key of sums")
		f, err := feed.Open(c, widgets, "kept", feed.Options{SumKey: key})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		want := next(t, f).Deltas[0]
		raw, err := want.New.JSON()
		if err != nil {
			t.Fatal(err)
		}
		s, n := feed.NewSteps(key), 0
		for o, err := range s.Cut(strings.NewReader(fmt.Sprintf(`{"type":"ADDED","object":%s}`+"\n"+`{"type":"MODIFIED","object":%[1]s}`, raw))) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; o.Key != want.Key || o.UID != string(want.UID) || o.ResourceVersion != want.New.ResourceVersion || !bytes.Equal(o.Raw, raw) {
				t.Errorf("object %d is %+v", n, o)
			}
			if s.Sum(o.Raw) != want.New.Sum() {
				t.Errorf("the sum of object %d differs from the source's", n)
			}
			v := s.Pack(o.UID, o.ResourceVersion, s.Sum(o.Raw), o.Raw)
			if got, err := v.JSON(); err != nil || !bytes.Equal(got, raw) || v.Sum() != want.New.Sum() {
				t.Errorf("packed and unpacked, object %d is %s, %v", n, got, err)
			}
		}
		if n != 2 {
			t.Errorf("there are %d objects", n)
		}
	})
}

func TestStepsCutFails(t *testing.T) {
	var last error
	for _, err := range feed.NewSteps(nil).Cut(strings.NewReader(`{"type":"ADDED","object":{"metadata":`)) {
		if last != nil {
			t.Error("something follows an error")
		}
		last = err
	}
	if last == nil {
		t.Error("a watch that ends within an object is complete")
	}
}

func TestStepsDropManagedFields(t *testing.T) {
	got := feed.NewSteps(nil).DropManagedFields([]byte(`{"metadata":{"name":"a","managedFields":[{"manager":"m"}]}}`))
	if want := `{"metadata":{"name":"a"}}`; string(got) != want {
		t.Errorf("it leaves %s", got)
	}
}
