package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/goldentest"
	"github.com/tattler-dev/tattler/internal/history/historytest"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/web/api"
	"github.com/tattler-dev/tattler/internal/web/client/clienttest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	ten         = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	deployments = journal.Kind{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true}
	secrets     = journal.Kind{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true}
	nodes       = journal.Kind{Version: "v1", Resource: "nodes", Kind: "Node"}
)

// open writes a journal and returns its Source.
func open(t *testing.T) *access.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	object := func(k journal.Kind, ns, name, rest string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"labels":{"app":%q},"managedFields":[{"manager":"helm","operation":"Update","fieldsV1":{"f:spec":{"f:replicas":{}}}}],"name":%[3]q,"namespace":%[4]q,"uid":"u-%[3]s"},%[5]s}`,
			k.Version, k.Kind, name, ns, rest)
	}
	n := 0
	row := func(op event.Op, k journal.Kind, ns, name, before, after string, quiet bool) journal.Row {
		n++
		at := ten.Add(time.Duration(n) * time.Minute)
		r := journal.Row{Meta: journal.Meta{Op: op, Kind: k, Namespace: ns, Name: name, UID: "u-" + name, ResourceVersion: fmt.Sprint(n), Time: at, At: at, Manager: "helm", Quiet: quiet}}
		if before != "" {
			r.Before = []byte(object(k, ns, name, before))
		}
		if after != "" {
			r.After = []byte(object(k, ns, name, after))
		}
		return r
	}
	gap := row(event.Gap, deployments, "", "", "", "", false)
	gap.Name, gap.UID, gap.Manager, gap.Gap = "", "", "", &event.GapInfo{From: "1", To: "2", Reason: "expired"}
	rows := []journal.Row{
		row(event.Created, deployments, "shop", "web", "", `"spec":{"replicas":1}`, false),
		row(event.Created, deployments, "pay", "bank", "", `"spec":{"replicas":1}`, false),
		row(event.Updated, deployments, "shop", "web", `"spec":{"replicas":1}`, `"spec":{"replicas":2}`, false),
		row(event.Updated, deployments, "shop", "web", `"spec":{"replicas":2}`, `"spec":{"replicas":3,"text":"<img onerror>"}`, false),
		row(event.Created, secrets, "shop", "key", "", `"data":{"password":"hidden #0123"}`, false),
		row(event.Created, nodes, "", "n1", "", `"spec":{}`, false),
		gap,
		row(event.Updated, deployments, "pay", "bank", `"spec":{"replicas":1}`, `"spec":{"replicas":2}`, false),
		row(event.Deleted, deployments, "shop", "web", `"spec":{"replicas":3,"text":"<img onerror>"}`, "", false),
	}
	historytest.Judge(rows)
	for _, r := range rows {
		b := journal.Batch{Stream: journal.Stream{GroupResource: r.Kind.GroupResource()}, Head: journal.Head{Version: "9", At: ten.Add(time.Hour)}, Rows: []journal.Row{r},
			ShortNames: map[string][]string{"deployments": {"deploy"}}[r.Kind.Resource]}
		if _, err := j.Append(t.Context(), []journal.Batch{b}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	s := access.New(r)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// serve returns the API for a viewer.
func serve(t *testing.T, s *access.Source, viewer access.Access, edit func(*api.Options)) http.Handler {
	t.Helper()
	h, err := clienttest.Handler(s, func(o *api.Options) {
		o.Now = func() time.Time { return ten.Add(2 * time.Hour) }
		o.Status = func(ctx context.Context) (control.Status, error) {
			allowed, err := access.May(ctx, []access.Target{{Resource: "status"}})
			if err == nil && !allowed[0] {
				err = api.ErrForbidden
			}
			if err != nil {
				return control.Status{}, err
			}
			return control.Status{Version: "v9", Cluster: "test", Streams: []control.Stream{{Resource: "pods", State: control.Live}}, Sinks: []control.Sink{},
				Traces: &control.Traces{To: "https://collector:4318", Exported: 11, Dropped: 22, Error: "503 away"}}, nil
		}
		if edit != nil {
			edit(o)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return clienttest.As(h, viewer)
}

func get(t *testing.T, h http.Handler, path string) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, api.Root+path, nil))
	return w.Result()
}

// body returns the status and the text of an answer.
func body(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	resp := get(t, h, path)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// decode decodes an answer that is no error.
func decode[T any](t *testing.T, h http.Handler, path string) (v T) {
	t.Helper()
	code, text := body(t, h, path)
	if err := json.Unmarshal([]byte(text), &v); err != nil || code != http.StatusOK {
		t.Fatalf("%s: %d, %v: %s", path, code, err, text)
	}
	return v
}

// limited sees the namespace shop, but no secrets.
type limited struct{}

func (limited) May(_ context.Context, targets []access.Target) ([]bool, error) {
	var all []bool
	for _, t := range targets {
		all = append(all, t.Namespace == "shop" && t.Resource != "secrets")
	}
	return all, nil
}

func (limited) Created(ctx context.Context, namespaces []access.Namespace) ([]time.Time, error) {
	return access.Everything{}.Created(ctx, namespaces)
}

// requests are one of each path, and more.
func requests(id string, seq int64, story string) []string {
	return []string{
		"journal", "changes?noise=true", "changes?type=deploy&namespace=shop&since=10:00&order=oldest&limit=2", "changes?path=spec.replicas&objects=true",
		"changes?where=op+%3D%3D+%22deleted%22", "changes?q=ONERROR+web", "changes?op=gap", "changes/" + id, "changes/" + id[:8], "kinds", "kinds?namespace=shop",
		"names?type=deploy&prefix=w", "objects?at=10:03&type=deploy", "objects?at=10:30&selector=app%3Dbank", "differences?since=10:02&until=10:05",
		"versions?type=deploy/web&at=10:05&limit=2", "blame?type=deploy/web&at=10:05", "status",
		"raw/rows", fmt.Sprint("raw/contents?seq=", seq), "raw/id/" + id, "raw/states?at=2026-03-01T10:05:00Z",
		"raw/between?query=" + `{"Since":"2026-03-01T10:02:00Z","Until":"2026-03-01T10:05:00Z"}`, fmt.Sprint("raw/history?seq=", seq), "raw/names?prefix=w",
		"raw/schema?group=apps&version=v1&kind=Deployment&namespaced=true&resource=deployments", "raw/short-names",
		"raw/stories", "raw/story/" + story,
	}
}

// updated returns the id and the sequence number of the last update of the Deployment web.
func updated(t *testing.T, s *access.Source) (string, int64) {
	t.Helper()
	for e, err := range s.Journal.Rows(t.Context(), journal.Query{Ops: []event.Op{event.Updated}, Namespaces: []string{"shop"}}) {
		if err != nil {
			t.Fatal(err)
		}
		return e.ID, e.Seq
	}
	t.Fatal("no update")
	return "", 0
}

// storyOf returns the id of a story of the Deployment web.
func storyOf(t *testing.T, s *access.Source) string {
	t.Helper()
	for tree, err := range s.Journal.Stories(t.Context(), journal.Query{Namespaces: []string{"shop"}}) {
		if err != nil {
			t.Fatal(err)
		}
		return tree.ID
	}
	t.Fatal("no story")
	return ""
}

// TestAnswers compares the answers to requests with testdata/answers.txt, for a viewer of everything and a limited one.
func TestAnswers(t *testing.T) { synctest.Test(t, testAnswers) } // reading is cut short after a time, which stands still

func testAnswers(t *testing.T) {
	s := open(t)
	id, seq := updated(t, s)
	var out strings.Builder
	for _, v := range []struct {
		who    string
		viewer access.Access
	}{{"sees everything", access.Everything{}}, {"sees the namespace shop, without secrets", limited{}}} {
		h := serve(t, s, v.viewer, nil)
		fmt.Fprintf(&out, "# A viewer who %s\n\n", v.who)
		for _, path := range append(requests(id, seq, storyOf(t, s)), "changes?sinc=10:00", "changes?name=%zz", "changes?op=exploded", "changes?limit=501", "changes?type=widgets", "changes?namespace=[",
			"changes?before=x", "changes?order=any", "changes/zzzzzz", "objects?at=noon", "differences", "versions?type=deploy", "blame?type=deploy/none&at=10:05",
			"raw/rows?query={\"Namespace\":1}", "raw/contents?seq=0", "raw/states", "nothing") {
			code, text := body(t, h, path)
			fmt.Fprintf(&out, "GET %s\n%d\n", path, code)
			for line := range strings.Lines(text) {
				var v any
				if err := json.Unmarshal([]byte(line), &v); err != nil {
					t.Fatalf("%s: %v: %s", path, err, line)
				}
				out.WriteString(line)
			}
			out.WriteString("\n")
		}
	}
	goldentest.Compare(t, "testdata/answers.txt", out.String())
}

// TestForeignParameters: a parameter that a path does not apply is refused, and the error says which paths have it. An answer
// that leaves it out looks filtered, and is not.
func TestForeignParameters(t *testing.T) {
	s := open(t)
	id, seq := updated(t, s)
	h := serve(t, s, access.Everything{}, nil)
	const changes = ": a parameter of /api/v1/changes only; this path has: type, name, cluster, namespace, exclude-namespace"
	objects := []string{"where=false", "q=zzz", "manager=none", "severity=failure", "path=none", "op=deleted", "humans=true", "order=oldest", "objects=true"}
	tests := map[string]string{
		"objects?since=1h":                                             "since: a parameter of /api/v1/changes, /api/v1/differences only; ",
		"objects?noise=true":                                           "noise: a parameter of /api/v1/changes, /api/v1/differences only; ",
		"objects?before=1":                                             "before: a parameter of /api/v1/changes, /api/v1/versions only; ",
		"differences?since=10:00&at=10:05":                             "at: a parameter of /api/v1/objects, /api/v1/versions, /api/v1/blame only; ",
		"differences?since=10:00&limit=1":                              "limit: a parameter of ",
		"changes?at=10:05":                                             "at: a parameter of ",
		"changes?prefix=w":                                             "prefix: a parameter of /api/v1/names only; ",
		"versions?type=deploy/web&selector=app=none":                   "selector: a parameter of /api/v1/changes, /api/v1/objects, /api/v1/differences only; ",
		"versions?type=deploy/web&after=1":                             "after: a parameter of /api/v1/changes, /api/v1/objects only; ",
		"blame?type=deploy/web&limit=1":                                "limit: a parameter of ",
		"names?name=web":                                               "name: a parameter of ",
		"kinds?type=deploy":                                            "type: a parameter of ",
		"status?namespace=shop":                                        "; this path has none",
		"journal?cluster=test":                                         "; this path has none",
		"changes/" + id + "?objects=true":                              "; this path has none",
		"changes/" + id + "?id=other":                                  `there is no parameter \"id\"; this path has none`,
		"raw/id/" + id + "?id=other":                                   `there is no parameter \"id\"; this path has none`,
		"raw/names?type=deploy":                                        "type: a parameter of ",
		"changes?since=10:00&since=10:05":                              "since: it has 2 values, but only one is possible",
		"changes?limit=1&limit=2":                                      "limit: it has 2 values",
		"changes?objects=1x":                                           `objects: \"1x\" is not true or false`,
		"raw/schema?resource=deployments":                              "namespaced: required",
		fmt.Sprint("raw/history?seq=", seq, "&seq=1"):                  "seq: it has 2 values",
		`raw/states?at=2026-03-01T10:05:00Z&query={"Ops":["deleted"]}`: "query: what selects changes is for raw/rows",
		`raw/states?at=2026-03-01T10:05:00Z&query={"Limit":1}`:         "query: what selects changes is for raw/rows",
		`raw/states?at=2026-03-01T10:05:00Z&query={"Since":"2026-03-01T10:02:00Z"}`: "query: the time is the parameter at",
		`raw/between?query={"Since":"2026-03-01T10:02:00Z","Managers":["none"]}`:    "query: what selects changes is for raw/rows",
	}
	for _, parameter := range objects {
		name, _, _ := strings.Cut(parameter, "=")
		for _, path := range []string{"objects?", "differences?since=10:00&", "versions?type=deploy/web&", "blame?type=deploy/web&"} {
			tests[path+parameter] = name + changes
		}
	}
	for path, want := range tests {
		if code, text := body(t, h, strings.ReplaceAll(path, `"`, "%22")); code != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %.300s, want %s", path, code, text, want)
		}
	}
}

// TestSameAnswer: a viewer gets the same answer for what is hidden and for what does not exist.
func TestSameAnswer(t *testing.T) { synctest.Test(t, testSameAnswer) } // reading is cut short after a time, which stands still

func testSameAnswer(t *testing.T) {
	s := open(t)
	h := serve(t, s, limited{}, nil)
	var id string
	var seq int64
	for e, err := range s.Journal.Rows(t.Context(), journal.Query{Resources: []string{"secrets"}}) {
		if err != nil {
			t.Fatal(err)
		}
		id, seq = e.ID, e.Seq
	}
	for hidden, absent := range map[string]string{
		"changes/" + id:                         "changes/" + strings.Repeat("z", len(id)),
		"changes/" + id[:5]:                     "changes/zzzzz",
		"raw/id/" + id:                          "raw/id/" + strings.Repeat("z", len(id)),
		fmt.Sprint("raw/history?seq=", seq):     "raw/history?seq=4242",
		"versions?type=secrets/key&at=10:30":    "versions?type=secrets/none&at=10:30",
		"blame?type=deploy/bank&at=10:30":       "blame?type=deploy/none&at=10:30",
		"objects?type=deploy/bank&at=10:30":     "objects?type=deploy/none&at=10:30",
		"changes?type=secrets":                  "changes?type=secrets&name=none",
		"changes?namespace=pay":                 "changes?namespace=none",
		"names?type=secrets":                    "names?type=secrets&prefix=none",
		"differences?namespace=pay&since=10:00": "differences?namespace=none&since=10:00",
		"raw/names?resource=secrets&prefix=k":   "raw/names?resource=secrets&prefix=none",
		"raw/rows?query={\"Names\":[\"bank\"]}": "raw/rows?query={\"Names\":[\"none\"]}",
		"changes?type=nodes/n1":                 "changes?type=bodies/n1",
	} {
		code, text := body(t, h, hidden)
		code2, text2 := body(t, h, absent)
		if code != code2 || strings.ReplaceAll(text, "nodes", "bodies") != text2 {
			t.Errorf("%s: %d %s\n%s: %d %s", hidden, code, text, absent, code2, text2)
		}
		all := serve(t, s, access.Everything{}, nil)
		if _, other := body(t, all, hidden); other == text {
			t.Errorf("%s: a viewer of everything gets the same: %s", hidden, text)
		}
	}
	_, contents := body(t, h, fmt.Sprint("raw/contents?seq=", seq))
	_, none := body(t, h, "raw/contents?seq=4242")
	if strings.Replace(contents, fmt.Sprint(seq), "4242", 1) != none {
		t.Errorf("contents: %s, %s", contents, none)
	}
}

// TestPages: the pages of a list, of any size, make up the whole list.
func TestPages(t *testing.T) { synctest.Test(t, testPages) } // reading is cut short after a time, which stands still

func testPages(t *testing.T) {
	h := serve(t, open(t), access.Everything{}, nil)
	for order, cursor := range map[string]string{"newest": "before", "oldest": "after"} {
		whole := decode[api.Changes](t, h, "changes?limit=500&order="+order)
		if len(whole.Changes) != 9 || whole.Next != 0 {
			t.Fatalf("%s: %d changes, next %d", order, len(whole.Changes), whole.Next)
		}
		for _, limit := range []int{1, 2, 8, 9} {
			var seqs []int64
			next := ""
			for {
				page := decode[api.Changes](t, h, fmt.Sprintf("changes?limit=%d&order=%s%s", limit, order, next))
				for _, c := range page.Changes {
					seqs = append(seqs, c.Seq)
				}
				if page.Next == 0 {
					break
				}
				next = fmt.Sprintf("&%s=%d", cursor, page.Next)
			}
			var want []int64
			for _, c := range whole.Changes {
				want = append(want, c.Seq)
			}
			if !slices.Equal(seqs, want) {
				t.Errorf("%s, %d at a time: %v, want %v", order, limit, seqs, want)
			}
		}
	}
	var names []string
	for after := ""; ; {
		page := decode[api.Objects](t, h, "objects?at=10:30&limit=1"+after)
		for _, o := range page.Objects {
			names = append(names, o.Name)
		}
		if after = "&after=" + page.Next; page.Next == "" {
			break
		}
	}
	if got := strings.Join(names, " "); got != "bank n1 key" {
		t.Errorf("objects: %s", got)
	}
}

// TestMethods: nothing but reading is answered.
func TestMethods(t *testing.T) {
	h := serve(t, open(t), access.Everything{}, nil)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, api.Root+"changes", nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" || !strings.Contains(w.Body.String(), `"error"`) {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
}

// TestFailsClosed: without a viewer, and where rights cannot be checked, no path that reads the journal answers.
func TestFailsClosed(t *testing.T) {
	s := open(t)
	id, seq := updated(t, s)
	for what, viewer := range map[string]access.Access{"nobody": nil, "broken": broken{}} {
		h := serve(t, s, viewer, nil)
		for _, path := range requests(id, seq, storyOf(t, s)) {
			if code, text := body(t, h, path); code != http.StatusServiceUnavailable {
				t.Errorf("%s, %s: %d %s", what, path, code, text)
			}
		}
	}
}

type broken struct{}

func (broken) May(context.Context, []access.Target) ([]bool, error) {
	return nil, errors.New("the API server does not answer")
}

func (broken) Created(ctx context.Context, namespaces []access.Namespace) ([]time.Time, error) {
	return access.Everything{}.Created(ctx, namespaces)
}

// slow is a viewer whose rights take long to find.
type slow chan struct{}

func (s slow) May(ctx context.Context, targets []access.Target) ([]bool, error) {
	select {
	case <-s:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return access.Everything{}.May(ctx, targets)
}

func (slow) Created(ctx context.Context, namespaces []access.Namespace) ([]time.Time, error) {
	return access.Everything{}.Created(ctx, namespaces)
}

// TestBusy: expensive requests wait for a place, and then are refused; cheap ones are answered meanwhile. A request that
// takes too long ends.
func TestBusy(t *testing.T) {
	s := open(t)
	synctest.Test(t, func(t *testing.T) {
		viewer, refused := slow(make(chan struct{})), 0
		h := serve(t, s, viewer, func(o *api.Options) {
			o.Expensive = 1
			o.RefusedRequest = func() { refused++ }
		})
		first := make(chan int)
		go func() {
			code, _ := body(t, h, "changes")
			first <- code
		}()
		synctest.Wait()
		resp := get(t, h, "objects")
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" {
			t.Errorf("a second one: %s", resp.Status)
		}
		if refused != 1 {
			t.Errorf("%d refusals are counted", refused)
		}
		if code, _ := body(t, serve(t, s, access.Everything{}, nil), "kinds"); code != http.StatusOK {
			t.Errorf("a cheap one: %d", code)
		}
		if code := <-first; code != http.StatusServiceUnavailable {
			t.Errorf("the first one, after its time: %d", code)
		}
		close(viewer)
		if code, text := body(t, h, "changes"); code != http.StatusOK {
			t.Errorf("afterwards: %d %s", code, text)
		}
	})
}

// TestFailedOfViewer: a page counts the changes that the expression could not judge, among those that its viewer may see.
func TestFailedOfViewer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	const shown = 16
	var rows []journal.Row
	for i := range 100 {
		ns := "shop"
		if i >= shown {
			ns = "pay"
		}
		at := ten.Add(time.Duration(i) * time.Second)
		rows = append(rows, journal.Row{
			Meta:  journal.Meta{Op: event.Created, Kind: deployments, Namespace: ns, Name: fmt.Sprint("web", i), UID: fmt.Sprint("u", i), ResourceVersion: fmt.Sprint(i + 1), Time: at, At: at},
			After: []byte(`{"kind":"Deployment","spec":{"replicas":1}}`),
		})
	}
	b := journal.Batch{Stream: journal.Stream{GroupResource: deployments.GroupResource()}, Head: journal.Head{Version: "999", At: ten.Add(time.Hour)}, Rows: rows}
	if _, err := j.Append(t.Context(), []journal.Batch{b}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	synctest.Test(t, func(t *testing.T) { // reading is cut short after a time, which stands still
		page := decode[api.Changes](t, serve(t, access.New(r), limited{}, nil), "changes?order=oldest&where="+url.QueryEscape(`after.spec.missing == "x"`))
		if page.Failed != shown || page.LastError == "" || len(page.Changes) != 0 || page.Next != 0 {
			t.Errorf("%d failed, want %d; the last with %q; %d are shown; the next page begins at %d", page.Failed, shown, page.LastError, len(page.Changes), page.Next)
		}
	})
}
