package capture

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture/redact"
)

// former stands between a watcher and its server, and serves ConfigMaps in another form: with a default that
// nobody wrote.
type former struct {
	next  http.RoundTripper
	form  atomic.Pointer[string] // what stands at the beginning of the data; empty: nothing
	looks atomic.Int32           // requests for the index of OpenAPI documents
}

func (f *former) config(s *informertest.Server) *rest.Config {
	cfg := s.Config()
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		f.next = rt
		return f
	})
	return cfg
}

// serve has objects served with a member of their data.
func (f *former) serve(member string) { f.form.Store(&member) }

func (f *former) RoundTrip(r *http.Request) (*http.Response, error) {
	form := ""
	if s := f.form.Load(); s != nil {
		form = *s
	}
	if r.URL.Path == "/openapi/v3" {
		f.looks.Add(1)
		doc := fmt.Sprintf(`{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=%X"}}}`, "v1"+form)
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(doc)), Request: r,
		}, nil
	}
	resp, err := f.next.RoundTrip(r)
	if err == nil && form != "" && resp.StatusCode == http.StatusOK && strings.Contains(r.URL.Path, "configmaps") {
		resp.Body = &formed{ReadCloser: resp.Body, with: fmt.Appendf(nil, `"data":{%s,`, form)}
	}
	return resp, err
}

// formed is a body with the default. The server under test writes whole objects at once.
type formed struct {
	io.ReadCloser
	with []byte
	left []byte
}

func (b *formed) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		buf := make([]byte, 1<<16)
		n, err := b.ReadCloser.Read(buf)
		if n == 0 {
			return 0, err
		}
		b.left = bytes.ReplaceAll(buf[:n], []byte(`"data":{`), b.with)
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// inForms is keeping with a server of which the form can change.
func inForms(t *testing.T, o Options, test func(r *rig, again func(func()))) {
	t.Helper()
	before := func(s *informertest.Server) {
		s.Put(cmGVR, "shop", "a", data("k", "1"))
		s.Put(cmGVR, "shop", "b", data("k", "1"))
	}
	o.Types = []string{"configmaps"}
	if o.Redactor == nil {
		o.Redactor = hiding(t)
	}
	keeping(t, o, before, func(r *rig, again func(func())) {
		again(func() { r.form = &former{} })
		r.pass(time.Minute)
		r.take()
		test(r, again)
	})
}

// TestConverted: the API server serves objects in another form, and their versions stay. That is recorded as
// what it is, quietly, and nobody wrote it.
func TestConverted(t *testing.T) {
	red := []string{"converted configmaps/a data.a0 by ?", "converted configmaps/b data.a0 by ?"}
	const opened = "ready: 1 kinds, 2 objects"
	t.Run("while it runs", func(t *testing.T) {
		inForms(t, Options{}, func(r *rig, again func(func())) {
			r.form.serve(`"a0":"red"`)
			r.pass(5 * time.Minute)
			r.want("a default", red...)
			r.form.serve(`"a0":"blue"`)
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
			again(func() { r.form.serve(`"a0":"red"`) })
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
				r.form.serve(`"a0":"red"`)
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
				r.form.serve(`"a0":"red"`)
			})
			r.pass(5 * time.Minute)
			r.want("a default", append(red, opened)...)
		})
	})
	t.Run("a field that is hidden", func(t *testing.T) {
		inForms(t, Options{Redactor: hiding(t, "data.a0")}, func(r *rig, again func(func())) {
			r.form.serve(`"a0":"s3cret"`)
			r.pass(5 * time.Minute)
			r.want("a default", red...)
			if strings.Contains(r.dump.String(), "s3cret") {
				t.Errorf("what is hidden was told: %s", r.dump.String())
			}
		})
	})
	t.Run("without a memory", func(t *testing.T) {
		scenario(t, Options{Types: []string{"configmaps"}}, func(s *informertest.Server) {
			s.Put(cmGVR, "shop", "a", data("k", "1"))
			s.Put(cmGVR, "shop", "b", data("k", "1"))
		}, func(r *rig) {
			r.stop()
			r.form = &former{}
			r.begin(Options{Types: []string{"configmaps"}})
			r.pass(time.Minute)
			r.take()
			r.form.serve(`"a0":"red"`)
			r.pass(5 * time.Minute)
			r.want("a default", red...)
		})
	})
}

// TestConvertedSoon: after a CRD has changed, the watcher looks at once whether something is served in another
// form, and not within a minute.
func TestConvertedSoon(t *testing.T) {
	o := Options{Types: []string{"configmap*"}}
	scenario(t, o, func(s *informertest.Server) { s.Put(cmGVR, "shop", "a", data("k", "1")) }, func(r *rig) {
		r.stop()
		r.form = &former{}
		r.begin(o)
		r.pass(2 * time.Minute)
		r.take()
		r.form.serve(`"a0":"red"`)
		looks := r.form.looks.Load()
		r.server.Put(crdGVR, "", "others.example.com", nil)
		r.pass(2 * time.Second)
		if r.form.looks.Load() == looks {
			t.Error("it has not looked")
		}
		r.pass(25 * time.Second)
		r.want("a default", "converted configmaps/a data.a0 by ?")
	})
}

// TestConvertedUnderOtherRules: rules and the server's form have both changed. Sums are of what the server
// sent, so they say which objects the server serves otherwise.
func TestConvertedUnderOtherRules(t *testing.T) {
	const opened = "ready: 1 kinds, 2 objects"
	for _, c := range []struct {
		why  string
		form string
		then *redact.Redactor
		want []string
	}{
		{"other rules alone", "", hiding(t, "data.k"), []string{"rewritten configmaps/a", "rewritten configmaps/b", opened}},
		{"both", `"a0":"red"`, hiding(t, "data.k"), []string{"converted configmaps/a data.a0 by ?", "converted configmaps/b data.a0 by ?", opened}},
	} {
		t.Run(c.why, func(t *testing.T) {
			inForms(t, Options{}, func(r *rig, _ func(func())) {
				kept := r.memory
				r.stop()
				r.mu.Lock()
				r.dump.Reset()
				r.mu.Unlock()
				r.form.serve(c.form)
				r.begin(Options{Types: []string{"configmaps"}, Kept: kept, Redactor: c.then})
				r.pass(5 * time.Minute)
				r.want(c.why, c.want...)
				if strings.Contains(r.dump.String(), `"k":"1"`) {
					t.Errorf("what is hidden now was told: %s", r.dump.String())
				}
			})
		})
	}
}

// state checks that every object that is kept has this text, and a sum.
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

// TestSumsNeedTheKey: a sum that is kept cannot be computed without the redaction key.
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
