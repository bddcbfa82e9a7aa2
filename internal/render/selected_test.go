package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

func patterns(t *testing.T, texts ...string) (all []diff.Pattern) {
	for _, text := range texts {
		p, err := diff.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// TestSelectedFields: with paths, an object that appears or disappears is printed with the selected values only.
func TestSelectedFields(t *testing.T) {
	web := obj{"kind": "Deployment", "spec": obj{"replicas": int64(3), "template": obj{"spec": obj{
		"initContainers": []any{obj{"name": "init", "image": "init:1"}}, "containers": []any{obj{"name": "app", "image": "app:1.5", "args": []any{obj{"a": "b\nc"}}}}}}}}
	pod := obj{"kind": "Pod", "spec": obj{"containers": []any{obj{"name": "app", "image": "evil\x1b[31m\u202e"}}}}
	owner := &event.Owner{Kind: "ReplicaSet", Name: "web-1"}
	changes := []change.Change{
		{Meta: change.Meta{Op: event.Created, Kind: resources["Deployment"].ID(), Name: "web", Manager: "helm"}, Names: resources["Deployment"].Names(), After: web},
		{Meta: change.Meta{Op: event.Created, Kind: resources["Pod"].ID(), Name: "web-1-a", Owner: owner}, Names: resources["Pod"].Names(), After: pod},
		{Meta: change.Meta{Op: event.Deleted, Kind: resources["Pod"].ID(), Name: "web-1-a", Owner: owner}, Names: resources["Pod"].Names(), Before: pod},
		{Meta: change.Meta{Op: event.Snapshot, Kind: resources["Pod"].ID(), Name: "web-1-b", Owner: owner}, Names: resources["Pod"].Names(), After: pod},
	}
	text := func(o Options) string {
		var out bytes.Buffer
		o.Out, o.Location, o.Terminal, o.Flat = &out, time.UTC, true, true
		r := New(o)
		for _, c := range changes {
			c.At = morning
			if err := r.Change(morning, c); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Flush(morning); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for l := range strings.Lines(out.String()) {
			lines = append(lines, strings.TrimSpace(l))
		}
		return strings.Join(lines, "\n")
	}
	for _, tc := range []struct {
		why          string
		only, ignore []string
		want         string
	}{
		{"images", []string{"spec.**.image"}, nil, `
10:42:07 + deploy/web                               helm
+ spec.template.spec.containers[name=app].image: app:1.5
+ spec.template.spec.initContainers[name=init].image: init:1
10:42:07 +   pod/web-1-a
+ spec.containers[name=app].image: "evil\x1b[31m\u202e"
10:42:07 -   pod/web-1-a                                                      ?
- spec.containers[name=app].image: "evil\x1b[31m\u202e"
10:42:07 =   pod/web-1-b  Pending
spec.containers[name=app].image: "evil\x1b[31m\u202e"`},
		{"but not those of init containers", []string{"spec.template.**.image"}, []string{"**.initContainers"}, `
10:42:07 + deploy/web                               helm
+ spec.template.spec.containers[name=app].image: app:1.5
10:42:07 +   pod/web-1-a
10:42:07 -   pod/web-1-a                                                      ?
10:42:07 =   pod/web-1-b  Pending`},
		{"values of several lines", []string{"spec.template.**.args"}, nil, `
10:42:07 + deploy/web                               helm
+ spec.template.spec.containers[name=app].args:
- a: |-
b
c
10:42:07 +   pod/web-1-a
10:42:07 -   pod/web-1-a                                                      ?
10:42:07 =   pod/web-1-b  Pending`},
	} {
		t.Run(tc.why, func(t *testing.T) {
			got := text(Options{Only: patterns(t, tc.only...), Ignore: patterns(t, tc.ignore...)})
			squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
			if d := cmp.Diff(squeeze(tc.want), squeeze(got)); d != "" {
				t.Errorf("got:\n%s\n-want +got:\n%s", got, d)
			}
		})
	}
}
