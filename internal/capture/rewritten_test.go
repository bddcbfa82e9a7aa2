package capture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/rules"
)

// hiding returns a redactor for these paths of ConfigMaps, always with the same key.
func hiding(t *testing.T, paths ...string) *redact.Redactor {
	t.Helper()
	var user []rules.Rule
	if len(paths) > 0 {
		user = []rules.Rule{{Resources: []string{"configmaps"}, Paths: paths}}
	}
	r, err := redact.New([]byte("a key of the tests, long enough"), user)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOtherRules resumes a watcher, with other redaction rules, from what another one has kept.
func TestOtherRules(t *testing.T) {
	const opened, gap = "ready: 1 kinds, 2 objects", "gap configmaps redaction rules changed"
	for _, c := range []struct {
		why       string
		first     []string // hidden at first, and later
		then      []string
		meanwhile func(*informertest.Server)
		want      []string
	}{
		{"nothing happened: versions that show too much are rewritten, and no change is reported", nil, []string{"data.greeting"},
			func(*informertest.Server) {}, []string{"rewritten configmaps/a", opened}},
		{"a rule that is taken back", []string{"data.greeting"}, nil,
			func(*informertest.Server) {}, []string{"rewritten configmaps/a", opened}},
		{"a rule that hides nothing", nil, []string{"data.other"},
			func(*informertest.Server) {}, []string{opened}},
		{"an update that was missed is net, behind a gap", nil, []string{"data.greeting"},
			func(s *informertest.Server) { s.Put(cmGVR, "shop", "a", data("greeting", "new")) },
			[]string{gap, "updated configmaps/a data.greeting by ?", opened}},
		{"another field of a newly hidden object", nil, []string{"data.greeting"},
			func(s *informertest.Server) {
				s.Put(cmGVR, "shop", "a", map[string]any{"data": map[string]any{"greeting": "s3cret", "b": "1"}})
			},
			[]string{gap, "updated configmaps/a data.b by ?", opened}},
		{"another field of a previously hidden object", []string{"data.greeting"}, nil,
			func(s *informertest.Server) {
				s.Put(cmGVR, "shop", "a", map[string]any{"data": map[string]any{"greeting": "s3cret", "b": "1"}})
			},
			[]string{gap, "updated configmaps/a data.b by ?", opened}},
		{"objects that came and went", nil, []string{"data.greeting"},
			func(s *informertest.Server) { s.Delete(cmGVR, "shop", "a"); s.Put(cmGVR, "shop", "c", data("k", "1")) },
			[]string{gap, "deleted configmaps/a", "created configmaps/c", opened}},
	} {
		t.Run(c.why, func(t *testing.T) {
			before := func(s *informertest.Server) {
				s.Put(cmGVR, "shop", "a", data("greeting", "s3cret"))
				s.Put(cmGVR, "shop", "b", data("k", "1"))
			}
			keeping(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}, before, func(r *rig, _ func(func())) {
				// The scenario's own key is random.
				kept := r.memory
				ownerSem := func(o *redact.Redactor, meanwhile func(*informertest.Server)) {
					r.stop()
					meanwhile(r.server)
					r.begin(Options{Scopes: []Scope{{Types: []string{"configmaps"}}}, Kept: kept, Redactor: o})
				}
				ownerSem(hiding(t, c.first...), func(*informertest.Server) {})
				r.take()
				r.mu.Lock()
				r.dump.Reset()
				r.mu.Unlock()
				ownerSem(hiding(t, c.then...), c.meanwhile)
				r.want(c.why, c.want...)
				if hides := len(c.then) > 0 && c.then[0] == "data.greeting"; hides && strings.Contains(r.dump.String(), "s3cret") {
					t.Errorf("a value hidden by the new rules was reported: %s", r.dump.String())
				}
				r.ofNoRules(strings.Contains(c.want[0], "rewritten"))
				r.server.Put(cmGVR, "shop", "b", data("k", "2"))
				r.inOrder("it goes on", "updated configmaps/b data.k by ?")
			})
		})
	}
}

// ofNoRules checks that a state has no pipeline until a list that compares with differently made objects is
// complete: a watcher that ends before leaves some of them.
func (r *rig) ofNoRules(listing bool) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for line := range strings.Lines(r.dump.String()) {
		var m struct{ Batch *Batch }
		if json.Unmarshal([]byte(line), &m) != nil || m.Batch == nil {
			continue
		}
		if !m.Batch.Live {
			n++
		}
		if m.Batch.Live != (m.Batch.Pipeline != "") {
			r.Errorf("live %v with pipeline %q", m.Batch.Live, m.Batch.Pipeline)
		}
	}
	if listing && n == 0 {
		r.Error("no batch of the list was sent")
	}
}

// TestOtherRulesInterrupted ends a watcher during the list that compares with objects made by other rules: the
// next one knows that some of them remain.
func TestOtherRulesInterrupted(t *testing.T) {
	before := func(s *informertest.Server) { s.Put(cmGVR, "shop", "a", data("greeting", "s3cret")) }
	keeping(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}, before, func(r *rig, again func(func())) {
		r.take()
		again(func() {
			st := r.memory.streams["configmaps||"]
			st.Version, st.Pipeline = "", ""
			k := informer.Key{Namespace: "shop", Name: "a"}
			o := st.objects[k]
			o.JSON = []byte(strings.Replace(string(o.JSON), "s3cret", "otherwise", 1))
			st.objects[k] = o
		})
		r.want("no change is invented", "gap configmaps a list was interrupted", "rewritten configmaps/a", "ready: 1 kinds, 1 objects")
	})
}

// TestOtherRulesUnread: the list that compares with objects made by other rules cannot read one object. The
// remaining version of it shows too much, and is redacted when it is reported.
func TestOtherRulesUnread(t *testing.T) {
	before := func(s *informertest.Server) {
		s.Put(cmGVR, "shop", "a", data("greeting", "s3cret"))
		s.Put(cmGVR, "shop", "b", data("k", "1"))
	}
	keeping(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}, before, func(r *rig, _ func(func())) {
		kept := r.memory
		ownerSem := func(o *redact.Redactor) {
			r.stop()
			r.begin(Options{Scopes: []Scope{{Types: []string{"configmaps"}}}, Kept: kept, Redactor: o})
		}
		ownerSem(hiding(t))
		r.take()
		r.mu.Lock()
		r.dump.Reset()
		r.mu.Unlock()
		r.server.Intercept(unreadable(r, "shop/a"))
		ownerSem(hiding(t, "data.greeting"))
		got := r.take()
		if len(got) != 3 || !strings.HasPrefix(got[0], "problem: ") || got[1] != "gap configmaps transform" {
			r.Errorf("the list: %q", got)
		}
		if st := kept.streams["configmaps||"]; st.Version == "" || st.Pipeline != "" {
			r.Errorf("a state with an object of other rules is %+v", st.State)
		}
		r.server.Intercept(nil)
		r.server.Put(cmGVR, "shop", "a", data("greeting", "new"))
		r.inOrder("it can be read", "updated configmaps/a data.greeting by ?")
		r.server.Put(cmGVR, "shop", "a", data("greeting", "newer"))
		r.inOrder("and again", "updated configmaps/a data.greeting by ?")
		if strings.Contains(r.dump.String(), "s3cret") {
			r.Errorf("a value hidden by the new rules was reported: %s", r.dump.String())
		}
		ownerSem(hiding(t, "data.greeting"))
		r.want("nothing has changed", "ready: 1 kinds, 2 objects")
		if st := kept.streams["configmaps||"]; !strings.HasSuffix(st.Pipeline, hiding(t, "data.greeting").Fingerprint()) {
			r.Errorf("all are of these rules: %+v", st.State)
		}
	})
}

// unreadable lists ConfigMaps as the server has them, one of them with an invalid number.
func unreadable(r *rig, name string) func(http.ResponseWriter, *http.Request) bool {
	var items []string
	for key, o := range r.server.Objects(cmGVR) {
		text, err := json.Marshal(o)
		if err != nil {
			r.Fatal(err)
		}
		if key == name {
			text = bytes.Replace(text, []byte(`"data":{`), []byte(`"data":{"n":1e999,`), 1)
		}
		items = append(items, string(text))
	}
	list := fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":%q},"items":[%s]}`, r.server.Version(), strings.Join(items, ","))
	return func(w http.ResponseWriter, q *http.Request) bool {
		switch query := q.URL.Query(); {
		case !collection("configmaps")(q), query.Has("watch") && !query.Has("sendInitialEvents"), query.Get("limit") == "1":
			return false
		case query.Has("watch"):
			informertest.Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "no streaming lists")
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(list))
		}
		return true
	}
}

// TestFormOf distinguishes objects that a list finds to be made differently from changed ones.
func TestFormOf(t *testing.T) {
	w := &Watcher{o: Options{Redactor: hiding(t)}}
	k := &kind{target: target{Resource: Resource{Version: "v1", Resource: "configmaps"}}}
	if p := w.pipeline(k); !strings.HasSuffix(p, w.o.Redactor.Fingerprint()) {
		t.Errorf("%q does not end with the rules: the journal looks for that", p)
	}
	o := &foreign{}
	old, now := feed.NewVersion("5", []byte("{}")), feed.NewVersion("5", []byte(`{"a":1}`))
	later := feed.NewVersion("6", []byte("{}"))
	for _, c := range []struct {
		why  string
		same bool // as the epoch
		d    feed.Delta
		want form
	}{
		{"the same version", true, feed.Delta{Op: informer.Updated, Old: old, New: now, Relisted: true}, rewritten},
		{"a later one", true, feed.Delta{Op: informer.Updated, Old: old, New: later, Relisted: true}, otherForm},
		{"the same number in another history is another version", false, feed.Delta{Op: informer.Updated, Old: old, New: now, Relisted: true}, otherForm},
		{"a server without versions", true, feed.Delta{Op: informer.Updated, Old: feed.NewVersion("", []byte("{}")), New: feed.NewVersion("", []byte(`{"a":1}`)), Relisted: true}, otherForm},
		{"a deletion", true, feed.Delta{Op: informer.Deleted, Old: old, Relisted: true}, otherForm},
		{"an addition has nothing before it", true, feed.Delta{Op: informer.Added, New: now, Relisted: true}, sameForm},
		{"a watch event follows the list", true, feed.Delta{Op: informer.Updated, Old: now, New: later}, sameForm},
	} {
		if got := formOf(o, c.same, &c.d); got != c.want {
			t.Errorf("%s: %d, want %d", c.why, got, c.want)
		}
	}
	for same, want := range map[bool]form{true: converted, false: sameForm} {
		if got := formOf(nil, same, &feed.Delta{Op: informer.Updated, Old: old, New: now, Relisted: true}); got != want {
			t.Errorf("the same rules, the same epoch %v: %d, want %d", same, got, want)
		}
	}
}
