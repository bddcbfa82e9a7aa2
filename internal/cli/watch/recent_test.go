package watch

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/reconstruct"
	"github.com/tattler-dev/tattler/internal/selection"
)

// noSource lists nothing.
type noSource struct{}

func (noSource) Selects(string, string) bool { return true }
func (noSource) ListAlso(context.Context, string, string, capture.Seen) *capture.Listing {
	return &capture.Listing{}
}

// listed sends a batch with an object that was created a number of seconds ago, as the first list does. named are the
// objects of the kind that the user names; none means all.
func (r *rig) listed(name string, ago int, named ...string) {
	at := time.Now().Add(-time.Duration(ago) * time.Second).UTC().Format(time.RFC3339)
	c := created(name)
	c.Op, c.UID = event.Snapshot, name
	c.After = map[string]any{"metadata": map[string]any{"namespace": "shop", "name": name, "uid": name, "creationTimestamp": at}}
	r.receive(capture.Message{Batch: &capture.Batch{
		Names:   named,
		Stream:  capture.Stream{Resource: change.Resource{Version: "v1", Resource: "configmaps", Short: "cm", Kind: "ConfigMap", Namespaced: true}},
		Changes: []capture.Version{{Change: c}},
	}})
}

// lines returns the names in stdout, with the signs of their lines.
func lines(out string) string {
	var all []string
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		switch {
		case words[0] == "──" && len(all) > 0 && all[len(all)-1] == "(":
			all = append(all, ")")
		case words[0] == "──" && words[1] == "reconstructed,":
			all = append(all, "(")
		case words[0] == "──":
			all = append(all, ")")
		case len(words) > 2 && strings.HasPrefix(words[2], "cm/"):
			all = append(all, words[1]+words[2])
		}
	}
	return strings.Join(all, " ")
}

func TestSince(t *testing.T) {
	for _, tc := range []struct {
		why  string
		o    Options
		do   func(r *rig)
		want string
	}{
		{"reconstructed first, the oldest first; older ones not at all", Options{Options: selection.Options{Since: "1h"}}, func(r *rig) {
			r.listed("b", 10)
			r.listed("a", 20)
			r.listed("old", 3601)
			r.becomesReady()
			r.change(created("live"))
		}, "( ≈cm/a ≈cm/b ) +cm/live"},
		{"live changes before everything is listed wait", Options{Options: selection.Options{Since: "1h"}}, func(r *rig) {
			r.listed("a", 20)
			r.change(created("live"))
			r.listed("b", 10)
			r.becomesReady()
		}, "( ≈cm/a ≈cm/b ) +cm/live"},
		{"many live changes do not wait for a slow list, which follows", Options{Options: selection.Options{Since: "1h"}}, func(r *rig) {
			r.listed("a", 20)
			for n := range maxHeld {
				c := created(fmt.Sprint("live", n))
				c.Quiet = n < maxHeld-1
				if c.Quiet {
					c.Op = "updated"
				}
				r.change(c)
			}
			r.listed("b", 10)
			r.becomesReady()
		}, "( ≈cm/a ) +cm/live999 ( ≈cm/b )"},
		{"a kind that does not answer does not delay the others", Options{Options: selection.Options{Since: "1h"}}, func(r *rig) {
			r.listed("a", 20)
			r.change(created("live"))
			r.started.Store(&[3]int{2, 1, 1})
			r.pass(slowStart)
		}, "( ≈cm/a ) +cm/live"},
		{"the end before that: nothing seen is lost", Options{Options: selection.Options{Since: "1h"}}, func(r *rig) {
			r.change(created("live"))
		}, "+cm/live"},
		{"named objects: others of the kind are left out", Options{Options: selection.Options{Since: "1h", Types: []string{"cm/b"}}}, func(r *rig) {
			r.listed("a", 20, "b")
			r.listed("b", 10, "b")
			r.becomesReady()
		}, "( ≈cm/b )"},
		{"without --since", Options{}, func(r *rig) {
			r.becomesReady()
			r.change(created("live"))
		}, "+cm/live"},
		{"for programs", Options{Options: selection.Options{Since: "1h"}, Output: "json"}, func(r *rig) {
			r.listed("a", 20)
			r.becomesReady()
			r.change(created("live"))
		}, ""},
	} {
		t.Run(tc.why, func(t *testing.T) {
			r, err := play(t, tc.o, func(r *rig) {
				tc.do(r)
				r.pass(time.Second)
				r.interrupt()
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := lines(r.out.String()); tc.o.Output == "" && got != tc.want {
				t.Errorf("got %s\nwant %s\n%s", got, tc.want, r.out.String())
			}
			if tc.o.Output == "json" {
				first, second, _ := strings.Cut(r.out.String(), "\n")
				if !strings.Contains(first, `"type":"dev.tattler.reconstructed.v1"`) || !strings.Contains(second, `"type":"dev.tattler.change.created.v1"`) ||
					!strings.Contains(r.err.String(), "reconstructed, since") {
					t.Errorf("%s\n%s", r.out.String(), r.err.String())
				}
			}
		})
	}
}

// collecting returns a session that collects, and a batch with one pod of a real server as the capture decoded it. The
// batch has no JSON.
func collecting(t testing.TB) (*session, *capture.Batch) {
	t.Helper()
	raw, err := os.ReadFile("../../managers/testdata/pod.json")
	if err != nil {
		t.Fatal(err)
	}
	obj, _, err := jsonmap.DecodeObject(raw)
	if err != nil {
		t.Fatal(err)
	}
	v := capture.Version{Change: created("web"), ManagedFields: change.Metadata(obj)["managedFields"]}
	(&change.Builder{}).Build(&v.Change, nil, obj, nil)
	v.Op = event.Snapshot
	pods := change.Resource{Version: "v1", Resource: "pods", Short: "po", Kind: "Pod", Namespaced: true}
	s := &session{history: &history{collector: reconstruct.NewCollector(reconstruct.Options{Since: time.Unix(0, 0)})}}
	return s, &capture.Batch{Stream: capture.Stream{Resource: pods}, Changes: []capture.Version{v}}
}

// TestCollect: the writes of an object are found without decoding its JSON again, and the change that others read stays
// without managed fields.
func TestCollect(t *testing.T) {
	s, b := collecting(t)
	s.collect(b)
	entries, _ := s.history.collector.Take()
	writers := map[string]bool{}
	for _, e := range entries {
		writers[e.Data.Manager] = true
	}
	if !writers["kubelet"] || len(entries) < 3 {
		t.Errorf("%d entries, by %v", len(entries), writers)
	}
	if _, there := change.Metadata(b.Changes[0].After)["managedFields"]; there {
		t.Error("the change has managed fields")
	}
}

// BenchmarkCollect: what --since adds to one pod of the first list.
func BenchmarkCollect(b *testing.B) {
	s, batch := collecting(b)
	b.ReportAllocs()
	for b.Loop() {
		s.collect(batch)
	}
}

func TestSinceUsage(t *testing.T) {
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		why  string
		o    Options
		want string
	}{
		{"not a time", Options{Options: selection.Options{Since: "soon"}}, `--since: "soon" is not a time`},
		{"later than now", Options{Options: selection.Options{Since: "11:00"}}, "--since: 11:00 is later than now"},
		{"the same objects twice", Options{Options: selection.Options{Since: "1h"}, Initial: true}, "--since and --initial exclude each other"},
	} {
		if _, err := tc.o.sinceTime(now); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
	if since, err := (&Options{Options: selection.Options{Since: "1h"}}).sinceTime(now); err != nil || !since.Equal(now.Add(-time.Hour)) {
		t.Errorf("%v, %v", since, err)
	}
}
