package doctor

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/leaktest"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	ignored := []goleak.Option{
		// Connections of client-go's transports, which are shared by all clients of a process and have no end.
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
	}
	leaktest.Main(m, ignored...)
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

// api is an API server that says what a test wants.
type api struct {
	*informertest.Server
	http       *httptest.Server
	kubeconfig string
	dir        string
	// denied are missing rights: "list secrets", "get namespaces/kube-system".
	denied map[string]bool
	// user is who asks; noReviews refuses to review rights; hangs never answers, and afterVersion only the version.
	user                           string
	noReviews, hangs, afterVersion bool
	date                           time.Time // in the header of the version; zero: now
}

func serve(t *testing.T) *api {
	t.Helper()
	s := &api{Server: informertest.NewServer(), denied: map[string]bool{}, user: "system:serviceaccount:tattler:tattler", dir: t.TempDir()}
	for resource, kind := range map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "namespaces": "Namespace"} {
		s.Serve(core(resource), kind)
	}
	s.Describe(core("namespaces"), true, nil, nil)
	for i := range 3 {
		s.Put(core("configmaps"), "shop", fmt.Sprint("c", i), nil)
	}
	s.Intercept(s.answer)
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	s.point(t, s.http.URL)
	t.Setenv("XDG_CONFIG_HOME", s.dir)
	t.Setenv("XDG_STATE_HOME", s.dir)
	return s
}

// point makes the kubeconfig lead to a URL.
func (s *api) point(t *testing.T, url string) {
	t.Helper()
	s.kubeconfig = s.write(t, "kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: prod,
		contexts: [{name: prod, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {token: t}}]}`, url))
}

func (s *api) write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(s.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// answer answers the version and reviews.
func (s *api) answer(w http.ResponseWriter, r *http.Request) bool {
	send := func(v any) bool {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
		return true
	}
	switch {
	case s.hangs || s.afterVersion && r.URL.Path != "/version":
		<-r.Context().Done()
		return true
	case r.URL.Path == "/version":
		if !s.date.IsZero() {
			w.Header().Set("Date", s.date.UTC().Format(http.TimeFormat))
		}
		return send(map[string]string{"gitVersion": "v1.36.3"})
	case s.noReviews && strings.HasSuffix(r.URL.Path, "reviews"):
		informertest.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "no reviews")
		return true
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		var review authentication.SelfSubjectReview
		review.Status.UserInfo.Username = s.user
		return send(review)
	case strings.HasSuffix(r.URL.Path, "/selfsubjectrulesreviews"):
		return send(authorization.SelfSubjectRulesReview{Status: authorization.SubjectRulesReviewStatus{Incomplete: true}})
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var review authorization.SelfSubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return true
		}
		a := review.Spec.ResourceAttributes
		name := strings.TrimSuffix(a.Verb+" "+a.Resource+"/"+a.Name, "/")
		review.Status.Allowed = !s.denied[name]
		return send(review)
	}
	return false
}

// file makes a configuration that watches three kinds, and returns its path.
func (s *api) file(t *testing.T, more string) string {
	t.Helper()
	return s.write(t, "tattler.yaml", "apiVersion: tattler.dev/v1alpha1\nkind: Config\nwatch:\n- resources: {include: [configmaps, secrets, namespaces]}\n"+
		"journal: {path: "+filepath.Join(s.dir, "journal.db")+"}\n"+more)
}

// options are those of doctor -c FILE.
func (s *api) options(t *testing.T, more string) (*Options, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	o := &Options{IO: &terminal.IO{Out: &out, Err: &out}, Output: "text"}
	o.Setup.File, o.Setup.Kube.Kubeconfig = s.file(t, more), s.kubeconfig
	o.host.limit = func(int) (int64, string) { return 512 << 20, "memory.max" }
	o.host.place = func(string) (journal.Place, error) {
		return journal.Place{Dir: s.dir, Free: 20 << 30, Known: true}, nil
	}
	o.limit("", "", 0)
	return o, &out
}

// limit sets the time for a check of a cluster. The other checks have a minute, because a busy machine is not a finding.
func (o *Options) limit(c check, cluster string, limit time.Duration) {
	o.host.deadline = func(of check, in string, _ time.Duration) time.Duration {
		if of == c && in == cluster {
			return limit
		}
		return time.Minute
	}
}

// examine runs the checks.
func (s *api) examine(t *testing.T, o *Options) *examination {
	t.Helper()
	set, err := o.Setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	parts, err := o.Setup.Parts(set)
	if err != nil {
		t.Fatal(err)
	}
	x := begin(o, set, parts)
	x.all(t.Context())
	return x
}

// variable are parts of findings that differ between runs.
var variable = []struct{ re, as string }{
	{`answers in \S+`, "answers in 4ms"}, {`agree, to \S+`, "agree, to 1s"},
	{`127\.0\.0\.1:\d+`, "10.0.0.1:6443"}, {`takes \d+ KiB`, "takes 96 KiB"},
	{` [a-z]+-[0-9a-f]{8} `, " "},
}

// golden compares the findings, as they are printed, with a file.
func (s *api) golden(t *testing.T, x *examination, name string) {
	t.Helper()
	fixed := func(text string) string {
		text = strings.ReplaceAll(text, s.dir, "/var/lib/tattler")
		for _, v := range variable {
			text = regexp.MustCompile(v.re).ReplaceAllString(text, v.as)
		}
		return text
	}
	var all []Finding
	for _, f := range x.findings {
		f.Title, f.Meaning, f.Action = fixed(f.Title), fixed(f.Meaning), fixed(f.Action)
		all = append(all, f)
	}
	var out bytes.Buffer
	if err := write(&terminal.IO{Out: &out}, all); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > fileWidth && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("%s: a line of %d columns: %s", name, n, line)
		}
	}
}

// level returns the level and the title of the only finding of a check.
func level(t *testing.T, x *examination, check string) (Level, string) {
	t.Helper()
	var found []Finding
	for _, f := range x.findings {
		if f.Check == check {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d findings of %s in %+v", len(found), check, x.findings)
	}
	if f := found[0]; (f.Level == Warning || f.Level == Error) && f.Action == "" {
		t.Errorf("it does not say what to do: %+v", f)
	}
	return found[0].Level, found[0].Title
}
