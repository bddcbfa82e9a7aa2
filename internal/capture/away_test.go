package capture

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/informertest"
)

func TestServerAway(t *testing.T) {
	before := func(s *informertest.Server) {
		s.Put(cmGVR, "n", "a", data("k", "1"))
		s.Put(cmGVR, "n", "b", data("k", "1"))
	}
	scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps,pods"}}}}, before, func(r *rig) {
		r.want("the start", "ready: 2 kinds, 2 objects")
		r.pass(10 * time.Second)
		r.server.SetDown(true)
		r.pass(5 * time.Second)
		r.want("one line for all", "away: 2 streams")
		r.server.Put(cmGVR, "n", "a", data("k", "2"))
		r.server.Put(cmGVR, "n", "a", data("k", "3"))
		r.server.Delete(cmGVR, "n", "b")
		r.pass(10 * time.Second)
		r.server.SetDown(false)
		r.pass(10 * time.Second)
		got := r.take()
		if len(got) != 4 || !strings.HasPrefix(got[3], "back after ") || !strings.HasSuffix(got[3], "2 streams, 0 relisted") {
			r.Errorf("resumed with every version: %q", got)
		}

		r.server.SetDown(true)
		r.pass(10 * time.Second)
		r.server.Put(cmGVR, "n", "a", data("k", "4"))
		r.server.Put(cmGVR, "n", "a", data("k", "5"))
		r.server.Compact()
		r.server.SetDown(false)
		r.pass(20 * time.Second)
		got = r.take()
		text := strings.Join(got, "\n")
		for _, want := range []string{"away: 2 streams", "gap configmaps expired (away)", "gap pods expired (away)", "updated configmaps/a data.k by ?", "2 streams, 2 relisted"} {
			if strings.Count(text, want) != 1 {
				r.Errorf("not once: %s, in:\n%s", want, text)
			}
		}
		if len(got) != 5 {
			r.Errorf("more than that:\n%s", text)
		}
	})
}

// TestGapThatAnOutageDoesNotExplain: such a gap is reported separately, even if a stream broke.
func TestGapThatAnOutageDoesNotExplain(t *testing.T) {
	scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}, nil, func(r *rig) {
		r.take()
		r.server.SetDown(true)
		r.pass(10 * time.Second)
		r.server.Skip(5)
		r.server.Compact()
		r.server.Intercept(oneUnreadable)
		r.server.SetDown(false)
		r.pass(20 * time.Second)
		if got := strings.Join(r.take(), "\n"); !strings.Contains(got, "\ngap configmaps expired, unreadable\n") {
			r.Errorf("got\n%s", got)
		}
	})
}

func TestGapWithoutAnOutage(t *testing.T) {
	o := Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}
	scenario(t, o, func(s *informertest.Server) { s.Put(cmGVR, "n", "a", nil) }, func(r *rig) {
		r.take()
		r.pass(10 * time.Second)
		r.server.Mute(true)
		r.server.Put(cmGVR, "n", "a", data("k", "1"))
		r.server.Compact()
		r.server.Mute(false)
		r.pass(time.Second)
		r.want("stands alone", "gap configmaps expired", "updated configmaps/a data.k by ?")
	})
}

// TestExtensionAway: an outage of an aggregated API is not one of the API server.
func TestExtensionAway(t *testing.T) {
	scenario(t, Options{}, define, func(r *rig) {
		r.take()
		r.pass(10 * time.Second)
		r.server.Intercept(refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, collection("widgets")))
		r.server.CloseWatches()
		r.pass(10 * time.Minute)
		r.want("no word of it", []string{}...)
		r.server.SetDown(true)
		r.pass(10 * time.Second)
		r.server.SetDown(false)
		r.pass(time.Minute)
		got := r.take()
		if len(got) != 2 || !strings.HasPrefix(got[0], "away: ") || !strings.HasPrefix(got[1], "back after 1") {
			r.Errorf("the real absence ends without it: %q", got)
		}
	})
}

// TestRefusalAfterAnOutage: a server that is back and refuses is not away, and the refusal is reported.
func TestRefusalAfterAnOutage(t *testing.T) {
	scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps,pods"}}}}, nil, func(r *rig) {
		r.take()
		r.server.SetDown(true)
		r.pass(10 * time.Second)
		r.server.Intercept(refuse(http.StatusForbidden, metav1.StatusReasonForbidden, collection("pods")))
		r.server.SetDown(false)
		r.pass(20 * time.Second)
		got := r.take()
		if len(got) != 3 || got[0] != "away: 2 streams" ||
			!strings.HasPrefix(got[1], "problem: pods can no longer be watched") || !strings.HasSuffix(got[2], "2 streams, 0 relisted") {
			r.Errorf("got %q", got)
		}
	})
}

// TestRightsThatGo: withdrawn rights are reported once when they go, and once when they are back.
func TestRightsThatGo(t *testing.T) {
	scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps,pods"}}}}, nil, func(r *rig) {
		r.server.Put(cmGVR, "n", "a", data("k", "1"))
		r.take()
		r.server.Intercept(refuse(http.StatusForbidden, metav1.StatusReasonForbidden, collection("configmaps")))
		r.server.Cut()
		r.pass(5 * time.Minute) // of refusals, a minute apart
		got := r.take()
		var reported []string
		for _, m := range got {
			if strings.HasPrefix(m, "problem: ") {
				reported = append(reported, m)
			}
		}
		if len(reported) != 1 || !strings.HasPrefix(reported[0], "problem: configmaps can no longer be watched") {
			r.Errorf("got %q", got)
		}
		r.server.Put(cmGVR, "n", "a", data("k", "2"))
		r.server.Intercept(nil)
		r.pass(2 * time.Minute)
		text := strings.Join(r.take(), "\n")
		for _, want := range []string{"updated configmaps/a data.k by ?", "problem: configmaps is watched again"} {
			if strings.Count(text, want) != 1 {
				r.Errorf("not once: %q in\n%s", want, text)
			}
		}
	})
}

// TestAllRightsThatGo: several kinds that are refused at once give one message.
func TestAllRightsThatGo(t *testing.T) {
	scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps,pods"}}}}, nil, func(r *rig) {
		r.take()
		r.server.Intercept(func(w http.ResponseWriter, q *http.Request) bool {
			return refuse(http.StatusForbidden, metav1.StatusReasonForbidden, collection("configmaps"))(w, q) ||
				refuse(http.StatusForbidden, metav1.StatusReasonForbidden, collection("pods"))(w, q)
		})
		r.server.Cut()
		r.pass(5 * time.Minute)
		got := slices.DeleteFunc(r.take(), func(m string) bool { return !strings.HasPrefix(m, "problem: ") })
		if len(got) != 1 || !strings.HasPrefix(got[0], "problem: configmaps, pods can no longer be watched, their changes are missed: ") {
			r.Errorf("got %q", got)
		}
	})
}
