package capture

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/usage"
)

func TestFirstLook(t *testing.T) {
	before := func(s *informertest.Server) {
		s.Put(cmGVR, "shop", "a", data("k", "1"))
		s.Put(cmGVR, "shop", "b", data("k", "1"))
	}
	t.Run("existing objects are not reported", func(t *testing.T) {
		scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}, before, func(r *rig) {
			r.want("the start", "ready: 1 kinds, 2 objects")
			if kinds, settled, objects := r.watcher.Progress(); kinds != 1 || settled != 1 || objects != 2 {
				r.Errorf("progress: %d, %d, %d", kinds, settled, objects)
			}
			r.server.Put(cmGVR, "shop", "a", data("k", "2"))
			r.server.Put(cmGVR, "shop", "c", data("k", "1"))
			r.server.Delete(cmGVR, "shop", "b")
			r.inOrder("changes", "updated configmaps/a data.k by ?", "created configmaps/c", "deleted configmaps/b")
		})
	})
	t.Run("unless asked for", func(t *testing.T) {
		scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}, Initial: true}, before, func(r *rig) {
			r.want("the start", "snapshot configmaps/a", "snapshot configmaps/b", "ready: 1 kinds, 2 objects")
		})
	})
}

func TestEverything(t *testing.T) {
	before := func(s *informertest.Server) { s.Put(eventGVR, "n", "e", nil) }
	t.Run("leaves out noise, and says so", func(t *testing.T) {
		scenario(t, Options{}, before, func(r *rig) {
			r.want("the start", "ready: 8 kinds, 0 objects, hidden events")
			r.server.Put(eventGVR, "n", "f", nil)
			r.want("hidden", []string{}...)
		})
	})
	t.Run("or not", func(t *testing.T) {
		scenario(t, Options{Scopes: []Scope{{Noise: true}}}, before, func(r *rig) {
			r.want("the start", "ready: 9 kinds, 1 objects")
			r.server.Put(eventGVR, "n", "f", nil)
			r.want("shown", "created events/f")
		})
	})
	t.Run("of a namespace has no cluster-scoped kinds", func(t *testing.T) {
		o := Options{Scopes: []Scope{{Namespaces: selection.Namespaces{Include: []string{"shop", "shop"}}}}}
		scenario(t, o, func(s *informertest.Server) { s.Put(nsGVR, "", "shop", nil) }, func(r *rig) {
			r.want("the start", "ready: 5 kinds, 0 objects, hidden events")
			r.server.Put(cmGVR, "other", "a", nil)
			r.server.Put(nodeGVR, "", "n1", nil)
			r.server.Put(cmGVR, "shop", "a", nil)
			r.want("once, though the namespace was given twice", "created configmaps/a")
		})
	})
}

func TestSelectedNamespaces(t *testing.T) {
	for _, tt := range []struct {
		why   string
		o     Options
		start []string
		want  []string
	}{
		{"a cluster-scoped kind is watched whole, as kubectl does", Options{Scopes: []Scope{{Types: []string{"nodes"}, Namespaces: selection.Namespaces{Include: []string{"team-a"}}}}},
			[]string{"ready: 1 kinds, 0 objects, missing team-a"}, []string{"created nodes/team-a"}},
		{"names", Options{Scopes: []Scope{{Types: []string{"cm"}, Namespaces: selection.Namespaces{Include: []string{"team-a", "shop"}}}}},
			[]string{"ready: 1 kinds, 0 objects, missing shop team-a"}, []string{"created configmaps/in-shop", "created configmaps/in-team-a"}},
		{"globs", Options{Scopes: []Scope{{Types: []string{"cm"}, Namespaces: selection.Namespaces{Include: []string{"team-*"}, Exclude: []string{"team-b"}}}}},
			[]string{"ready: 1 kinds, 0 objects"}, []string{"created configmaps/in-team-a"}},
		{"exclusions", Options{Scopes: []Scope{{Types: []string{"cm"}, Namespaces: selection.Namespaces{Exclude: []string{"team-*", "shop"}}}}},
			[]string{"ready: 1 kinds, 0 objects"}, []string{"created configmaps/in-kube-system"}},
	} {
		t.Run(tt.why, func(t *testing.T) {
			describe := func(s *informertest.Server) { s.Describe(cmGVR, false, []string{"cm"}, nil) }
			scenario(t, tt.o, describe, func(r *rig) {
				r.want("the start", tt.start...)
				for _, ns := range []string{"team-a", "team-b", "shop", "kube-system"} {
					r.server.Put(cmGVR, ns, "in-"+ns, nil)
				}
				r.server.Put(nodeGVR, "", "team-a", nil)
				r.want("changes", tt.want...)
			})
		})
	}
}

func TestMissingNamespaces(t *testing.T) {
	o := Options{Scopes: []Scope{{Types: []string{"configmaps"}, Namespaces: selection.Namespaces{Include: []string{"empty", "shop", "typo"}}}}}
	before := func(s *informertest.Server) { // a namespace with objects need not be requested
		s.Put(nsGVR, "", "empty", nil)
		s.Put(cmGVR, "shop", "a", nil)
	}
	scenario(t, o, before, func(r *rig) {
		r.want("only the missing one", "ready: 1 kinds, 1 objects, missing typo")
		r.server.Put(cmGVR, "typo", "b", nil)
		r.want("it may yet appear", "created configmaps/b")
	})
}

func TestForbidden(t *testing.T) {
	before := func(s *informertest.Server) {
		s.Put(secretGVR, "n", "s", nil)
		s.Intercept(refuse(http.StatusForbidden, metav1.StatusReasonForbidden, collection("secrets")))
	}
	t.Run("a kind that is allowed later was there before", func(t *testing.T) {
		scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps,secrets"}}}, Initial: true}, before, func(r *rig) {
			r.want("the start", "ready: 1 kinds, 0 objects", "forbidden: secrets")
			r.server.Intercept(nil)
			r.pass(2 * time.Minute)
			r.want("a snapshot, not created", "snapshot secrets/s")
			r.server.Put(secretGVR, "n", "t", nil)
			r.want("from then on", "created secrets/t")
		})
	})
	t.Run("everything", func(t *testing.T) {
		before := func(s *informertest.Server) {
			s.Intercept(refuse(http.StatusForbidden, metav1.StatusReasonForbidden, func(r *http.Request) bool { return strings.Count(r.URL.Path, "/") > 1 }))
		}
		scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps,secrets"}}}}, before, func(r *rig) {
			r.want("is reported at once", "ready: 0 kinds, 0 objects", "forbidden: configmaps", "forbidden: secrets")
		})
	})
	t.Run("in one of two namespaces", func(t *testing.T) {
		before := func(s *informertest.Server) {
			s.Put(nsGVR, "", "a", nil)
			s.Put(nsGVR, "", "b", nil)
			s.Intercept(refuse(http.StatusForbidden, metav1.StatusReasonForbidden, collection("namespaces/b/configmaps")))
		}
		o := Options{Scopes: []Scope{{Types: []string{"configmaps"}, Namespaces: selection.Namespaces{Include: []string{"a", "b"}}}}}
		scenario(t, o, before, func(r *rig) {
			r.want("the other is live", "ready: 1 kinds, 0 objects", "forbidden: configmaps")
			r.server.Put(cmGVR, "a", "x", nil)
			r.want("and watched", "created configmaps/x")
		})
	})
}

func TestFailingAtTheStart(t *testing.T) {
	before := func(s *informertest.Server) {
		s.Put(cmGVR, "n", "a", nil)
		s.Intercept(refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, collection("configmaps")))
	}
	scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps,pods"}}}}, before, func(r *rig) {
		r.want("it does not hold up the start", "ready: 1 kinds, 0 objects", "failing: configmaps")
		r.server.Intercept(nil)
		r.pass(time.Minute)
		r.want("existing objects are not reported", []string{}...)
		r.server.Put(cmGVR, "n", "b", nil)
		r.want("it is watched", "created configmaps/b")
	})
}

func TestBadOptions(t *testing.T) {
	var u *usage.Error
	for why, s := range map[string]Scope{
		"a label selector":         {Labels: "a in ("},
		"a field selector":         {Fields: "a"},
		"all namespaces excluded":  {Namespaces: selection.Namespaces{Include: []string{"a"}, Exclude: []string{"a"}}},
		"a name beside a selector": {Types: []string{"configmaps", "a"}, Labels: "app=x"},
		"dependents and selector":  {Types: []string{"deploy/web"}, Fields: "metadata.name=x"},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := Options{Config: informertest.NewServer().Config(), Scopes: []Scope{s}}
				_, err := New(o)
				if err == nil {
					err = startErr(t, o)
				}
				if !errors.As(err, &u) {
					t.Errorf("got %v, want a *usage.Error", err)
				}
			})
		})
	}
}

// startErr returns the error with which Run ends by itself.
func startErr(t *testing.T, o Options) error {
	t.Helper()
	r := start(t, o, nil)
	defer r.cancel()
	err := <-r.ended
	if got := r.take(); len(got) != 0 {
		t.Errorf("sent before the error: %s", got)
	}
	return err
}

func TestRunFails(t *testing.T) {
	t.Run("an unknown type", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var unknown *UnknownTypeError
			if err := startErr(t, Options{Scopes: []Scope{{Types: []string{"podz"}}}}); !errors.As(err, &unknown) || unknown.Near != "pods" {
				t.Errorf("got %v", err)
			}
		})
	})
	for why, hook := range map[string]func(*informertest.Server){
		"a server that is not there": func(s *informertest.Server) { s.SetDown(true) },
		"a server that says nothing": func(s *informertest.Server) {
			s.Intercept(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
		},
		"a server that authenticates no one": func(s *informertest.Server) {
			s.Intercept(refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, func(*http.Request) bool { return true }))
		},
		"not an API server": func(s *informertest.Server) {
			s.Intercept(func(w http.ResponseWriter, _ *http.Request) bool { _, _ = io.WriteString(w, "<html>"); return true })
		},
		"a server without an answering group": func(s *informertest.Server) {
			for _, g := range []string{"", "apps", "apiextensions.k8s.io"} {
				s.SetStale(g, true)
			}
		},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, Options{}, hook)
				defer r.cancel()
				select {
				case err := <-r.ended:
					if err == nil || strings.Contains(err.Error(), "context canceled") {
						t.Errorf("Run: %v", err)
					}
				case <-time.After(time.Minute):
					t.Error("Run hangs")
					r.stop()
				}
				r.take()
			})
		})
	}
}

// TestEndWhenever: stopping on request is not an error, whatever the watcher is doing, and leaves no goroutine
// (checked by the bubble and TestMain).
func TestEndWhenever(t *testing.T) {
	t.Run("during discovery", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, Options{}, func(s *informertest.Server) {
				s.Intercept(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
			})
			synctest.Wait()
			r.stop()
		})
	})
	t.Run("while no one reads", func(t *testing.T) {
		for _, types := range []string{"configmaps", "deploy/web"} {
			scenario(t, Options{Scopes: []Scope{{Types: []string{types}}}, Initial: true}, func(s *informertest.Server) {
				s.Put(deployGVR, "n", "web", nil)
				for range 500 {
					s.Put(cmGVR, "n", "c"+s.Version(), nil)
				}
			}, func(r *rig) {
				release := r.hold()
				for range 500 {
					r.server.Put(deployGVR, "n", "web", data("v", r.server.Version()))
				}
				r.pass(time.Minute)
				r.cancel()
				synctest.Wait()
				release()
			})
		}
	})
	t.Run("while the server is away", func(t *testing.T) {
		scenario(t, Options{}, nil, func(r *rig) {
			r.pass(time.Second)
			r.server.SetDown(true)
			r.pass(time.Minute)
		})
	})
}

// behind is a context that is due to end, and whose timer has not fired yet.
type behind struct{ context.Context }

// Deadline implements context.Context.
func (behind) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }

// TestLateDiscovery: whatever fails once the time is over, the cause is the time.
func TestLateDiscovery(t *testing.T) {
	scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}, nil, func(r *rig) {
		r.take()
		r.server.Intercept(refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, func(*http.Request) bool { return true }))
		if _, err := r.watcher.fetchCatalog(behind{r.Context()}); !errors.Is(err, context.DeadlineExceeded) {
			r.Errorf("got %v", err)
		}
		if _, err := r.watcher.fetchCatalog(r.Context()); err == nil || errors.Is(err, context.DeadlineExceeded) {
			r.Errorf("in time: got %v", err)
		}
		r.server.Intercept(nil)
	})
}
