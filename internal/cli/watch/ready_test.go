package watch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/selection"
)

func refusals(n int, err error) []capture.Refusal {
	var rs []capture.Refusal
	for i := range n {
		rs = append(rs, capture.Refusal{Resource: change.Resource{Group: "g", Resource: fmt.Sprintf("kind%ds", i+1)}, Err: err})
	}
	return rs
}

// in sets the namespaces in which kinds are refused.
func in(rs []capture.Refusal, namespaces ...string) []capture.Refusal {
	for i := range rs {
		rs[i].Namespaces = namespaces
	}
	return rs
}

var (
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(`user "u" cannot list`))
	errFailing   = errors.New("it has a cold")
)

func TestReady(t *testing.T) {
	all := Options{Options: selection.Options{Objects: selection.Objects{All: true}}}
	verbose := Options{Options: selection.Options{Objects: selection.Objects{All: true}}, Verbose: true}
	for _, tt := range []struct {
		why  string
		o    Options
		r    capture.Ready
		want string // of stderr
	}{
		{"one of each", all, capture.Ready{Kinds: 1, Objects: 1},
			"prod, all namespaces: 1 kind, 1 object, live after 0.9 s.\nWaiting for changes.\n"},
		{"the context's namespace; a user who sees little must learn how to see more", Options{}, capture.Ready{Kinds: 2, Objects: 0},
			"prod, namespace shop: 2 kinds, 0 objects, live after 0.9 s.\nWaiting for changes; -A is the whole cluster.\n"},
		{"several namespaces, one left out", Options{Options: selection.Options{Objects: selection.Objects{Namespaces: []string{"a,b*", "a"}, Exclude: []string{"bc"}}}}, capture.Ready{Kinds: 2},
			"prod, namespaces a, b* without bc: 2 kinds, 0 objects, live after 0.9 s.\nWaiting for changes; -A is the whole cluster.\n"},
		{"--exclude-namespace alone means the whole cluster", Options{Options: selection.Options{Objects: selection.Objects{Exclude: []string{"kube-*"}}}}, capture.Ready{Kinds: 2},
			"prod, all namespaces without kube-*: 2 kinds, 0 objects, live after 0.9 s.\nWaiting for changes.\n"},
		{"noisy kinds are named", all, capture.Ready{Kinds: 2, Hidden: []string{"events", "leases"}},
			"prod, all namespaces: 2 kinds, 0 objects, live after 0.9 s. Left out as noisy: events, leases (--noise)\nWaiting for changes.\n"},
		{"a namespace that may be a mistake", Options{Options: selection.Options{Objects: selection.Objects{Namespaces: []string{"nope"}}}}, capture.Ready{Kinds: 2, Missing: []string{"nope"}},
			"prod, namespace nope: 2 kinds, 0 objects, live after 0.9 s.\nnamespace nope does not exist (yet)\nWaiting for changes; -A is the whole cluster.\n"},
		{"a glob waits for kinds", all, capture.Ready{Unmatched: []string{"*.x.io"}},
			"prod, all namespaces: 0 kinds, 0 objects, live after 0.9 s.\nno kind matches *.x.io (yet)\nWaiting for changes.\n"},
		{"two of them", Options{Options: selection.Options{Objects: selection.Objects{Namespaces: []string{"a,b"}}}}, capture.Ready{Kinds: 2, Missing: []string{"a", "b"}},
			"prod, namespaces a, b: 2 kinds, 0 objects, live after 0.9 s.\nnamespaces a, b do not exist (yet)\nWaiting for changes; -A is the whole cluster.\n"},
		{"kinds that are forbidden in one of the namespaces", Options{Options: selection.Options{Objects: selection.Objects{Namespaces: []string{"a,b"}}}},
			capture.Ready{Kinds: 2, Forbidden: in(refusals(2, errForbidden), "b")},
			"prod, namespaces a, b: 2 kinds, 0 objects, live after 0.9 s.\nmay not watch 2 kinds in b: kind1s, kind2s. Waiting for changes; -A is the whole cluster.\n"},
		{"forbidden here and there", Options{Options: selection.Options{Objects: selection.Objects{Namespaces: []string{"a,b"}}}},
			capture.Ready{Kinds: 2, Forbidden: append(in(refusals(1, errForbidden), "b"), refusals(1, errForbidden)...)},
			"prod, namespaces a, b: 2 kinds, 0 objects, live after 0.9 s.\nmay not watch 2 kinds everywhere: kind1s, kind1s. Waiting for changes; -A is the whole cluster.\n"},
		{"an object that may be a mistake", all, capture.Ready{Kinds: 1, Absent: []string{"deployments/nope"}},
			"prod, all namespaces: 1 kind, 0 objects, live after 0.9 s.\nno deployments/nope (yet)\nWaiting for changes.\n"},
		{"kinds that do not know the field", Options{Options: selection.Options{Objects: selection.Objects{All: true, Fields: "status.phase=Running"}}},
			capture.Ready{Kinds: 1, Failing: append(refusals(1, apierrors.NewBadRequest("field label not supported")), refusals(1, errFailing)...)},
			"prod, all namespaces: 1 kind, 0 objects, live after 0.9 s.\n" +
				`1 kind cannot be selected by "status.phase=Running": kind1s. 1 kind cannot be watched now: kind1s. Waiting for changes.` + "\n"},
		{"the server is overloaded", all, capture.Ready{Failing: refusals(1, apierrors.NewTooManyRequests("slow down", 3))},
			"prod, all namespaces: 0 kinds, 0 objects, live after 0.9 s.\nThe API server is overloaded and lets 1 kind wait: kind1s. Waiting for changes.\n"},
		{"a few that are forbidden are all named", all, capture.Ready{Kinds: 2, Forbidden: refusals(4, errForbidden)},
			"prod, all namespaces: 2 kinds, 0 objects, live after 0.9 s.\nmay not watch 4 kinds: kind1s, kind2s, kind3s, kind4s. Waiting for changes.\n"},
		{"many are one line", all, capture.Ready{Kinds: 2, Forbidden: refusals(5, errForbidden), Failing: refusals(1, errFailing)},
			"prod, all namespaces: 2 kinds, 0 objects, live after 0.9 s.\n" +
				"may not watch 5 kinds: kind1s, kind2s, kind3s, … (-v lists them). 1 kind cannot be watched now: kind1s. Waiting for changes.\n"},
		{"-v names all, and says why", verbose, capture.Ready{Kinds: 2, Forbidden: refusals(5, errForbidden), Failing: refusals(1, errFailing)},
			"prod, all namespaces: 2 kinds, 0 objects, live after 0.9 s.\n" +
				"may not watch 5 kinds: kind1s, kind2s, kind3s, kind4s, kind5s. 1 kind cannot be watched now: kind1s. Waiting for changes.\n" +
				`  kind1s.g: pods is forbidden: user "u" cannot list` + "\n" +
				`  kind2s.g: pods is forbidden: user "u" cannot list` + "\n" +
				`  kind3s.g: pods is forbidden: user "u" cannot list` + "\n" +
				`  kind4s.g: pods is forbidden: user "u" cannot list` + "\n" +
				`  kind5s.g: pods is forbidden: user "u" cannot list` + "\n" +
				"  kind1s.g: it has a cold\n"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			r, err := play(t, tt.o, func(r *rig) {
				r.pass(900 * time.Millisecond)
				r.receive(capture.Message{Ready: &tt.r})
				r.interrupt()
			})
			if err != nil || r.err.String() != tt.want || r.out.Len() > 0 {
				t.Errorf("%v\n%s%s\nwant\n%s", err, r.out.String(), r.err.String(), tt.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	bad := apierrors.NewBadRequest("field label not supported: spec.nope")
	expired := apierrors.NewUnauthorized("Unauthorized")
	for _, tt := range []struct {
		why  string
		o    Options
		r    capture.Ready
		want string // the error; empty: none
	}{
		{"all is forbidden: whom to ask, where else to look", Options{Options: selection.Options{Objects: selection.Objects{All: true}}}, capture.Ready{Forbidden: refusals(1, errForbidden)},
			`may not watch kind1s in all namespaces: pods is forbidden: user "u" cannot list; request the rights to list and watch, or choose a namespace that you may read with -n`},
		{"all is forbidden in the namespace", Options{}, capture.Ready{Forbidden: refusals(1, errForbidden)},
			`may not watch kind1s in namespace shop: pods is forbidden: user "u" cannot list; request the rights to list and watch`},
		{"nothing answers", Options{}, capture.Ready{Failing: refusals(2, errFailing)}, "watch kind1s, kind2s: it has a cold"},
		{"the credentials expired between discovery and the lists", Options{}, capture.Ready{Failing: refusals(1, expired)},
			`watch kind1s: the API server refused the credentials of context "prod": they may have expired; log in again`},
		{"a selector that a named kind does not have", Options{Options: selection.Options{Types: []string{"pods,cm"}}}, capture.Ready{Kinds: 1, Failing: refusals(1, bad)},
			"watch kind1s.g: field label not supported: spec.nope"},
		{"the server is overloaded, which passes", Options{}, capture.Ready{Failing: refusals(1, apierrors.NewTooManyRequests("slow down", 3))}, ""},
		{"a selector that some of all kinds do not have", Options{}, capture.Ready{Kinds: 1, Failing: refusals(1, bad)}, ""},
	} {
		t.Run(tt.why, func(t *testing.T) {
			r, err := play(t, tt.o, func(r *rig) {
				r.receive(capture.Message{Ready: &tt.r})
				r.interrupt()
			})
			if tt.want == "" {
				if err != nil || !strings.Contains(r.err.String(), "Waiting for changes") {
					t.Errorf("%v\n%s", err, r.err.String())
				}
				return
			}
			if err == nil || err.Error() != tt.want || r.err.Len() > 0 {
				t.Errorf("%v\n%s\nwant\n%s", err, r.err.String(), tt.want)
			}
		})
	}
}
