package web

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// reviewer is an API server's reviewer in memory. Each token is the name of its user.
type reviewer struct {
	mu      sync.Mutex
	reviews int
	may     map[string]func(*authorization.ResourceAttributes) bool // by user
}

func (*reviewer) ReviewToken(_ context.Context, s authentication.TokenReviewSpec) (authentication.TokenReviewStatus, error) {
	return authentication.TokenReviewStatus{Authenticated: true, User: authentication.UserInfo{Username: s.Token}}, nil
}

func (r *reviewer) ReviewAccess(_ context.Context, s authorization.SubjectAccessReviewSpec) (authorization.SubjectAccessReviewStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reviews++
	may := r.may[s.User]
	return authorization.SubjectAccessReviewStatus{Allowed: s.ResourceAttributes != nil && may != nil && may(s.ResourceAttributes)}, nil
}

func (r *reviewer) NamespaceCreated(context.Context, string) (time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reviews++
	return time.Unix(0, 0), nil
}

// taken returns how many reviews were made since the last call.
func (r *reviewer) taken() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.reviews
	r.reviews = 0
	return n
}

// guarded is a page that checks its viewers.
type guarded struct {
	http.Handler
	t        *testing.T
	reviewer *reviewer
}

func newGuarded(t *testing.T, path string, now time.Time, may map[string]func(*authorization.ResourceAttributes) bool) *guarded {
	t.Helper()
	r, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	page, err := New(Options{Source: access.New(r), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	page.patience = endless
	g := &guarded{t: t, reviewer: &reviewer{may: may}}
	a, err := auth.New(auth.Options{Address: "127.0.0.1:80", Tokens: true, Reviewer: g.reviewer})
	if err != nil {
		t.Fatal(err)
	}
	g.Handler = a.Wrap(page)
	return g
}

// get returns the answer to a user.
func (g *guarded) get(user, url string) (code int, body string) {
	g.t.Helper()
	r := httptest.NewRequestWithContext(g.t.Context(), http.MethodGet, "http://127.0.0.1"+url, nil)
	r.RemoteAddr = "127.0.0.1:999"
	r.Header.Set("Authorization", "Bearer "+user)
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// manyNamespaces records changes of four kinds in n namespaces, of which the last one changed most recently.
func manyNamespaces(t *testing.T, n int) *book {
	t.Helper()
	b := newBook(t, filepath.Join(t.TempDir(), "journal.db"))
	secrets := journal.Kind{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true}
	b.set(nodeKind, "", "node-a", "kubelet", obj{"status": obj{}}, nil)
	b.gap(podKind)
	var rows []journal.Row
	for i := range n {
		ns := fmt.Sprintf("team-%03d", i)
		for _, k := range []journal.Kind{cmKind, deployKind, podKind, secrets} {
			b.version++
			at := b.at
			name := k.Resource + "-of-" + ns
			rows = append(rows, journal.Row{After: fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":%q}}`, name, ns), Meta: journal.Meta{
				Op: event.Created, Kind: k, Namespace: ns, Name: name, UID: name, ResourceVersion: fmt.Sprint(b.version), Time: at, At: at, Manager: "m",
			}})
			b.wait(2 * time.Second)
		}
	}
	for some := range slices.Chunk(rows, 500) {
		b.append(some...)
	}
	if err := b.j.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

// in allows all kinds but Secrets in some namespaces.
func in(namespaces ...string) func(*authorization.ResourceAttributes) bool {
	return func(a *authorization.ResourceAttributes) bool {
		return a.Resource != "secrets" && slices.Contains(namespaces, a.Namespace)
	}
}

// TestNarrowed: in a cluster with very many namespaces, a viewer of some sees these on the start page, within the budget of
// reviews, and learns no name of another one.
func TestNarrowed(t *testing.T) {
	b := manyNamespaces(t, 500)
	const note, unchecked = `id="narrowed"`, "were not checked"
	g := newGuarded(t, b.path, b.at, map[string]func(*authorization.ResourceAttributes) bool{
		"newest": in("team-499"), "middle": in("team-250"), "some": in("team-490", "team-300", "team-120"), "oldest": in("team-000"),
		"all":   func(*authorization.ResourceAttributes) bool { return true },
		"pods":  func(a *authorization.ResourceAttributes) bool { return a.Resource == "pods" },
		"nodes": func(a *authorization.ResourceAttributes) bool { return a.Resource == "nodes" },
		"most":  func(a *authorization.ResourceAttributes) bool { return a.Namespace != "" && a.Resource != "secrets" },
		"settings": func(a *authorization.ResourceAttributes) bool {
			return a.Namespace == "team-490" && a.Resource == "configmaps"
		},
	})
	names := regexp.MustCompile(`team-\d\d\d`)
	for _, tc := range []struct {
		why, user, url string
		want           []string // the namespaces on the page, if narrowed
		narrowed       bool
	}{
		{"the namespace that changed last", "newest", "/", []string{"team-499"}, true},
		{"one in the middle", "middle", "/", []string{"team-250"}, true},
		{"several", "some", "/", []string{"team-120", "team-300", "team-490"}, true},
		{"one that the reviews do not reach", "oldest", "/", nil, true},
		{"the same, named", "oldest", "/?namespace=team-000", []string{"team-000"}, false},
		{"a pattern is narrowed", "some", "/?namespace=team-*", []string{"team-120", "team-300", "team-490"}, true},
		{"a pattern that leaves few: the others are checked nevertheless", "some", "/?namespace=team-49*", []string{"team-490"}, true},
		{"a namespace is left out", "some", "/?exclude-namespace=team-300", []string{"team-120", "team-490"}, true},
		{"one kind", "middle", "/?type=configmaps", []string{"team-250"}, true},
		{"a right to one kind", "settings", "/", []string{"team-490"}, true},
		{"quiet changes, too", "newest", "/?noise=true", []string{"team-499"}, true},
		{"text", "middle", "/?q=pods-of", []string{"team-250"}, true},
		{"each change", "middle", "/?flat=1", []string{"team-250"}, true},
		{"lanes", "middle", "/?lanes=object", []string{"team-250"}, true},
		{"the histogram alone", "middle", "/histogram", nil, false},
		{"nothing", "nobody", "/", nil, true},
		{"cluster-scoped objects only", "nodes", "/", nil, true},
		{"everything", "all", "/", nil, false},
	} {
		t.Run(tc.why, func(t *testing.T) {
			g.reviewer.taken()
			user := tc.user + "-" + strings.ReplaceAll(tc.why, " ", "-") // nothing is remembered
			g.reviewer.may[user] = g.reviewer.may[tc.user]
			code, body := g.get(user, tc.url)
			if n := g.reviewer.taken(); n > 500 {
				t.Errorf("%d reviews", n)
			} else {
				t.Logf("%d reviews", n)
			}
			if code != http.StatusOK {
				t.Fatalf("%d %s", code, body)
			}
			if strings.Contains(body, note) != tc.narrowed || strings.Contains(body, unchecked) != tc.narrowed {
				t.Errorf("narrowed is not %t in\n%s", tc.narrowed, body)
			}
			if tc.user == "all" {
				return
			}
			got := slices.Compact(slices.Sorted(slices.Values(names.FindAllString(strings.ReplaceAll(body, html.EscapeString(tc.url), ""), -1))))
			if tc.url == "/?exclude-namespace=team-300" {
				got = slices.DeleteFunc(got, func(ns string) bool { return ns == "team-300" }) // the filter repeats it
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("the page names %q, want %q", got, tc.want)
			}
			if tc.user == "nodes" && !strings.Contains(body, "node-a") {
				t.Error("the node is not shown")
			}
		})
	}
	// The page draws its histogram again while changes arrive: that finds no namespaces again.
	g.get("middle", "/")
	g.reviewer.taken()
	if code, _ := g.get("middle", "/histogram"); code != http.StatusOK || g.reviewer.taken() > 10 {
		t.Errorf("the histogram again: %d", code)
	}

	// With rights nearly everywhere, some namespaces are shown, the newest ones.
	for _, user := range []string{"most", "pods"} {
		_, body := g.get(user, "/")
		got := slices.Compact(slices.Sorted(slices.Values(names.FindAllString(body, -1))))
		if n := g.reviewer.taken(); n > 500 || len(got) < 20 || len(got) > 150 || got[len(got)-1] != "team-499" || !strings.Contains(body, note) || strings.Contains(body, "secrets-of") {
			t.Errorf("%s: %d reviews, %d namespaces: %q", user, n, len(got), got)
		} else {
			t.Logf("%s: %d reviews, %d namespaces", user, n, len(got))
		}
	}
}

// TestNarrowedLinks: live and older entries are of the same namespaces; another view is narrowed anew.
func TestNarrowedLinks(t *testing.T) {
	b := manyNamespaces(t, 300)
	g := newGuarded(t, b.path, b.at, map[string]func(*authorization.ResourceAttributes) bool{"bob": func(a *authorization.ResourceAttributes) bool {
		return a.Namespace >= "team-200" && a.Namespace < "team-230"
	}})
	_, body := g.get("bob", "/")
	link := func(pattern string) string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("no %s in\n%s", pattern, body)
		}
		return html.UnescapeString(m[1])
	}
	for what, url := range map[string]string{
		"live": link(`data-url="([^"]*)"`), "older": link(`<li class="older"><a href="([^"]*)"`),
	} {
		if !strings.Contains(url, "within=team-2") {
			t.Errorf("%s: %s", what, url)
		}
	}
	for what, url := range map[string]string{"range": link(`class="range[^"]*" href="([^"]*)"|`), "flat": link(`<a class="mode" href="([^"]*)" title="an entry`)} {
		if strings.Contains(url, "within") {
			t.Errorf("%s: %s", what, url)
		}
	}
	g.reviewer.taken()
	code, older := g.get("bob", link(`<li class="older"><a href="([^"]*)"`))
	if n := g.reviewer.taken(); code != http.StatusOK || n > 100 || !strings.Contains(older, `id="narrowed"`) || strings.Contains(older, "team-199") || !strings.Contains(older, "team-2") {
		t.Errorf("older: %d, %d reviews\n%s", code, n, older)
	}
	// The parameter grants nothing.
	if _, body := g.get("bob", "/?within=team-100"); strings.Contains(body, "pods-of-team-100") {
		t.Error("within shows what the viewer may not see")
	}
}
