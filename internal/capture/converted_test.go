package capture

import (
	"bytes"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture/redact"
)

// serve makes the server serve ConfigMaps in another form: with data.a0, which no manager wrote.
func (r *rig) serve(value string) {
	r.server.ChangeForm(cmGVR, func(o map[string]any) { o["data"].(map[string]any)["a0"] = value })
}

// inForms is keeping with a server that can change the served form.
func inForms(t *testing.T, o Options, test func(r *rig, again func(func()))) {
	t.Helper()
	before := func(s *informertest.Server) {
		s.Put(cmGVR, "shop", "a", data("k", "1"))
		s.Put(cmGVR, "shop", "b", data("k", "1"))
	}
	o.Scopes = []Scope{{Types: []string{"configmaps"}}}
	if o.Redactor == nil {
		o.Redactor = hiding(t)
	}
	keeping(t, o, before, func(r *rig, again func(func())) {
		r.pass(time.Minute)
		r.take()
		test(r, again)
	})
}

// TestConverted: the API server serves objects in another form with unchanged versions. That is recorded as a
// quiet conversion without a writer.
func TestConverted(t *testing.T) {
	red := []string{"converted configmaps/a data.a0 by ?", "converted configmaps/b data.a0 by ?"}
	const opened = "ready: 1 kinds, 2 objects"
	t.Run("while it runs", func(t *testing.T) {
		inForms(t, Options{}, func(r *rig, again func(func())) {
			r.serve("red")
			r.pass(5 * time.Minute)
			r.want("a default", red...)
			r.serve("blue")
			r.pass(15 * time.Minute)
			r.want("another default", red...)
			r.state(`"a0":"blue"`)
			r.server.Put(cmGVR, "shop", "a", data("k", "2"))
			r.inOrder("a write is one", "updated configmaps/a data.k by ?")
			again(func() {})
			r.want("nothing happened", opened)
		})
	})
	t.Run("while it did not run", func(t *testing.T) {
		inForms(t, Options{}, func(r *rig, again func(func())) {
			again(func() { r.serve("red") })
			r.pass(5 * time.Minute)
			r.want("a default", append(red, opened)...)
			r.state(`"a0":"red"`)
			again(func() {})
			r.pass(5 * time.Minute)
			r.want("nothing happened", opened)
		})
	})
	t.Run("in a list that had to be", func(t *testing.T) {
		inForms(t, Options{}, func(r *rig, again func(func())) {
			again(func() {
				r.serve("red")
				r.server.Put(cmGVR, "shop", "b", data("k", "2"))
				r.server.Skip(10)
				r.server.Compact()
			})
			r.want("the write is net", "gap configmaps expired", red[0], "updated configmaps/b data.a0 by ? data.k by ?", opened)
			r.state(`"a0":"red"`)
		})
	})
	t.Run("a state without sums", func(t *testing.T) {
		inForms(t, Options{}, func(r *rig, again func(func())) {
			again(func() {
				r.memory.sums("of an older program")
				r.serve("red")
			})
			r.pass(5 * time.Minute)
			r.want("a default", append(red, opened)...)
		})
	})
	t.Run("a field that is hidden", func(t *testing.T) {
		inForms(t, Options{Redactor: hiding(t, "data.a0")}, func(r *rig, again func(func())) {
			r.serve("s3cret")
			r.pass(5 * time.Minute)
			r.want("a default", red...)
			if strings.Contains(r.dump.String(), "s3cret") {
				t.Errorf("a hidden value was reported: %s", r.dump.String())
			}
		})
	})
	t.Run("without a memory", func(t *testing.T) {
		scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}, func(s *informertest.Server) {
			s.Put(cmGVR, "shop", "a", data("k", "1"))
			s.Put(cmGVR, "shop", "b", data("k", "1"))
		}, func(r *rig) {
			r.pass(time.Minute)
			r.take()
			r.serve("red")
			r.pass(5 * time.Minute)
			r.want("a default", red...)
		})
	})
}

// TestConvertedSoon: after a CRD has changed, the watcher checks for another served form at once, and not
// within a minute.
func TestConvertedSoon(t *testing.T) {
	o := Options{Scopes: []Scope{{Types: []string{"configmap*"}}}}
	scenario(t, o, func(s *informertest.Server) { s.Put(cmGVR, "shop", "a", data("k", "1")) }, func(r *rig) {
		var looks atomic.Int32 // requests for the index of OpenAPI documents
		r.server.Intercept(func(_ http.ResponseWriter, req *http.Request) bool {
			if req.URL.Path == "/openapi/v3" {
				looks.Add(1)
			}
			return false
		})
		for looks.Load() == 0 { // the next poll of every minute is far away
			r.pass(time.Second)
		}
		r.take()
		r.serve("red")
		seen := looks.Load()
		r.server.Put(crdGVR, "", "others.example.com", nil)
		r.pass(2 * time.Second)
		if looks.Load() == seen {
			t.Error("it has not looked")
		}
		r.pass(25 * time.Second)
		r.want("a default", "converted configmaps/a data.a0 by ?")
	})
}

// TestConvertedUnderOtherRules: the rules and the server's form have both changed. Sums are of the server's
// data, so they show which objects are served in another form.
func TestConvertedUnderOtherRules(t *testing.T) {
	const opened = "ready: 1 kinds, 2 objects"
	for _, c := range []struct {
		why  string
		form string
		then *redact.Redactor
		want []string
	}{
		{"other rules alone", "", hiding(t, "data.k"), []string{"rewritten configmaps/a", "rewritten configmaps/b", opened}},
		{"both", "red", hiding(t, "data.k"), []string{"converted configmaps/a data.a0 by ?", "converted configmaps/b data.a0 by ?", opened}},
	} {
		t.Run(c.why, func(t *testing.T) {
			inForms(t, Options{}, func(r *rig, _ func(func())) {
				kept := r.memory
				r.stop()
				r.mu.Lock()
				r.dump.Reset()
				r.mu.Unlock()
				if c.form != "" {
					r.serve(c.form)
				}
				r.begin(Options{Scopes: []Scope{{Types: []string{"configmaps"}}}, Kept: kept, Redactor: c.then})
				r.pass(5 * time.Minute)
				r.want(c.why, c.want...)
				if strings.Contains(r.dump.String(), `"k":"1"`) {
					t.Errorf("a value hidden by the new rules was reported: %s", r.dump.String())
				}
			})
		})
	}
}

// state checks that every kept object has this text, and a sum.
func (r *rig) state(text string) {
	r.Helper()
	n := 0
	for _, st := range r.memory.streams {
		for k, o := range st.objects {
			if n++; !bytes.Contains(o.JSON, []byte(text)) || o.Sum == 0 {
				r.Errorf("%v is kept as %s, with sum %x", k, o.JSON, o.Sum)
			}
		}
		if st.Served == 0 {
			r.Error("the form in which the kind is served is not kept")
		}
	}
	if n == 0 {
		r.Error("nothing is kept")
	}
}

// TestSumsNeedTheKey: a kept sum cannot be computed without the redaction key.
func TestSumsNeedTheKey(t *testing.T) {
	sums := map[uint64]int{}
	for _, key := range []string{"a key of sixteen bytes", "another key of so many bytes"} {
		redactor, err := redact.New([]byte(key), nil)
		if err != nil {
			t.Fatal(err)
		}
		inForms(t, Options{Redactor: redactor}, func(r *rig, _ func(func())) {
			o := r.memory.streams["configmaps||"].objects[informer.Key{Namespace: "shop", Name: "a"}]
			sums[o.Sum]++
		})
	}
	if len(sums) != 2 || sums[0] > 0 {
		t.Errorf("sums with two keys: %v", sums)
	}
}
