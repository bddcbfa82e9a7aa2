package informer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestSumOfHiddenValues: a transform hides a value, and the checkpoint has nothing that a guess of it could be tested with:
// no sum that another process computes from the same object. The state resumes, and is compared without false changes.
func TestSumOfHiddenValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dir := informertest.NewServer(), t.TempDir()
		server.Serve(widgets, "Widget")
		two(server)
		hide := func() informer.SourceOptions {
			return informer.SourceOptions{Transform: &informer.Transform{Name: "hide", Apply: func(o *unstructured.Unstructured) error {
				o.Object["spec"] = "hidden"
				return nil
			}}}
		}
		// sums runs a source and returns the sums of its objects, and its changes after the first state.
		run := func(o informer.SourceOptions, dir string, during func(*informer.Source)) (sums []uint64, changes []string) {
			c, err := informer.NewCluster(server.Config(), informer.Options{Checkpoint: dir})
			if err != nil {
				t.Fatal(err)
			}
			s, err := c.Source(widgets, o)
			if err != nil {
				t.Fatal(err)
			}
			f, err := feed.Join(s, "test", 0)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for {
					b, err := f.Next(t.Context())
					if err != nil {
						return
					}
					for _, d := range b.Deltas {
						if d.Initial {
							sums = append(sums, d.New.Sum())
						} else {
							changes = append(changes, line(d))
						}
					}
					if b.Gap != nil {
						changes = append(changes, "gap "+b.Gap.Reason)
					}
				}
			}()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- c.Run(ctx) }()
			if err := s.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
			during(s)
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			<-ended
			return sums, changes
		}
		public, _ := run(informer.SourceOptions{}, "", func(*informer.Source) {})
		run(hide(), dir, func(*informer.Source) {})
		names, err := filepath.Glob(filepath.Join(dir, "*.checkpoint"))
		if err != nil || len(names) != 1 || len(public) != 2 {
			t.Fatalf("checkpoints %q, sums %v, %v", names, public, err)
		}
		file, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, sum := range public {
			if sum == 0 || bytes.Contains(file, binary.LittleEndian.AppendUint64(nil, sum)) {
				t.Errorf("the checkpoint has the sum %x of an object as the server sent it", sum)
			}
		}
		_, changes := run(hide(), dir, func(s *informer.Source) {
			if n := s.Status()[0].Lists; n != 0 {
				t.Errorf("%d lists: it was not resumed", n)
			}
			<-time.After(13 * time.Hour) // audits
			server.Skip(10)
			server.Compact()
			server.CloseWatches()
			<-time.After(time.Minute)
			if st := s.Status()[0]; st.Lists != 1 || st.Epoch != 1 {
				t.Errorf("it was not listed: %+v", st)
			}
		})
		if len(changes) != 1 || changes[0] != "gap expired" {
			t.Errorf("changes after a restart: %q", changes)
		}
	})
}
