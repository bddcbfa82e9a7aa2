package api_test

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"net/http"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/web/api"
)

// recording is a journal that is read while it is written.
type recording struct {
	http.Handler
	t    *testing.T
	j    *journal.Journal
	kind journal.Kind // of what is appended
	now  time.Time    // of the API
	n    int
}

func record(t *testing.T) *recording {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{t: t, j: j, kind: deployments, now: ten.Add(2 * time.Hour)}
	reader, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{reader.Close(), j.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	r.Handler = serve(t, access.New(reader), access.Everything{}, func(o *api.Options) { o.Now = func() time.Time { return r.now } })
	return r
}

// append records changes of objects in the namespace shop, a minute apart: op, name, UID.
func (r *recording) append(changes ...[3]string) {
	r.t.Helper()
	for _, c := range changes {
		r.n++
		at := ten.Add(time.Duration(r.n) * time.Minute)
		row := journal.Row{Meta: journal.Meta{
			Op: event.Op(c[0]), Kind: r.kind, Namespace: "shop", Name: c[1], UID: c[2], ResourceVersion: fmt.Sprint(r.n), Time: at, At: at,
		}}
		object := func(n int) []byte {
			return fmt.Appendf(nil, `{"kind":"Deployment","metadata":{"name":%q,"namespace":"shop","uid":%q},"spec":{"replicas":%d}}`, c[1], c[2], n)
		}
		if row.Op != event.Created {
			row.Before = object(r.n - 1)
		}
		if row.Op != event.Deleted {
			row.After = object(r.n)
		}
		b := journal.Batch{Stream: journal.Stream{GroupResource: r.kind.GroupResource(), Cluster: r.kind.Cluster}, Head: journal.Head{Version: fmt.Sprint(r.n), At: at}, Rows: []journal.Row{row}}
		if _, err := r.j.Append(r.t.Context(), []journal.Batch{b}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// names are those of all pages of objects.
func (r *recording) names(query string) (all []string) {
	r.t.Helper()
	for after, n := "", 0; n < 20; n++ {
		names, next := r.page(query, after)
		if all, after = append(all, names...), next; next == "" {
			return all
		}
	}
	r.t.Fatalf("the pages do not end: %v", all)
	return nil
}

// page returns the objects of a page of one, by name and UID, and where the next one begins.
func (r *recording) page(query, after string) (names []string, next string) {
	r.t.Helper()
	if after != "" {
		query += "&after=" + url.QueryEscape(after)
	}
	page := decode[api.Objects](r.t, r, "objects?limit=1"+query)
	for _, o := range page.Objects {
		names = append(names, o.Name+" "+o.UID)
	}
	return names, page.Next
}

// TestPageAfterDeletion: a page of objects begins after a place in their order, also if the object that had it was deleted, made
// again, or removed from the journal meanwhile.
func TestPageAfterDeletion(t *testing.T) { synctest.Test(t, testPageAfterDeletion) }

func testPageAfterDeletion(t *testing.T) {
	for _, tc := range []struct {
		why       string
		meanwhile func(r *recording)
		want      string
	}{
		{"nothing happens", func(*recording) {}, "b u-b, c u-c, d u-d"},
		{"the object is deleted", func(r *recording) { r.append([3]string{"deleted", "b", "u-b"}) }, "b u-b, c u-c, d u-d"},
		{"and made again", func(r *recording) { r.append([3]string{"deleted", "b", "u-b"}, [3]string{"created", "b", "u-b2"}) }, "b u-b, b u-b2, c u-c, d u-d"},
		{"those around it are deleted", func(r *recording) { r.append([3]string{"deleted", "a", "u-a"}, [3]string{"deleted", "c", "u-c"}) }, "b u-b, d u-d"},
		{"all are deleted", func(r *recording) {
			r.append([3]string{"deleted", "b", "u-b"}, [3]string{"deleted", "c", "u-c"}, [3]string{"deleted", "d", "u-d"})
		}, "b u-b"},
	} {
		r := record(t)
		r.append([3]string{"created", "b", "u-b"}, [3]string{"created", "c", "u-c"}, [3]string{"created", "d", "u-d"})
		all, next := r.page("", "")
		tc.meanwhile(r)
		for next != "" {
			var more []string
			more, next = r.page("", next)
			all = append(all, more...)
		}
		if got := strings.Join(all, ", "); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.why, got, tc.want)
		}
	}
}

// TestPageOfNamesakes: of objects that had one name one after the other, each is on one page.
func TestPageOfNamesakes(t *testing.T) { synctest.Test(t, testPageOfNamesakes) }

func testPageOfNamesakes(t *testing.T) {
	r := record(t)
	r.append([3]string{"deleted", "web", "u-z"}, [3]string{"deleted", "web", "u-m"}, [3]string{"deleted", "web", "u-a"}, [3]string{"deleted", "x", "u-x"})
	all := r.names("&at=09:00")
	if want := []string{"web u-z", "web u-m", "web u-a", "x u-x"}; !slices.Equal(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
}

// TestPagesOfAll: objects of several kinds and clusters are on one page each.
func TestPagesOfAll(t *testing.T) { synctest.Test(t, testPagesOfAll) }

func testPagesOfAll(t *testing.T) {
	r := record(t)
	for _, cluster := range []string{"", "staging", "arn:aws:eks:eu/prod"} {
		for _, r.kind = range []journal.Kind{secrets, deployments} {
			r.kind.Cluster = cluster
			uid := "u-" + r.kind.Resource + cluster
			r.append([3]string{"created", "web", uid}, [3]string{"created", "db", uid + "2"})
		}
	}
	var want []string
	for _, o := range decode[api.Objects](t, r, "objects").Objects {
		want = append(want, o.Name+" "+o.UID)
	}
	if all := r.names(""); len(want) != 12 || !slices.Equal(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
}

// TestVersionsAfterDeletion: further pages of an object's history are of the same object, also if it was deleted meanwhile, or
// another one got its name.
func TestVersionsAfterDeletion(t *testing.T) { synctest.Test(t, testVersionsAfterDeletion) }

func testVersionsAfterDeletion(t *testing.T) {
	deletion, creation, update := [3]string{"deleted", "web", "u-1"}, [3]string{"created", "web", "u-2"}, [3]string{"updated", "web", "u-2"}
	for _, tc := range []struct {
		why       string
		meanwhile [][3]string
	}{
		{"nothing happens", nil},
		{"the object is deleted", [][3]string{deletion}},
		{"and made again", [][3]string{deletion, creation, update}},
		{"and its deletion is recorded late", [][3]string{creation, deletion, update}},
	} {
		r := record(t)
		r.append([3]string{"created", "web", "u-1"}, [3]string{"created", "other", "u-o"}, [3]string{"updated", "web", "u-1"}, [3]string{"updated", "web", "u-1"})
		var seqs []int64
		for before, n := "", 0; n < 10; n++ {
			page := decode[api.Versions](t, r, "versions?type=deploy/web&limit=1"+before)
			for _, v := range page.Versions {
				seqs = append(seqs, v.Seq)
			}
			if n == 0 {
				r.append(tc.meanwhile...)
			}
			if page.Next == 0 {
				break
			}
			before = fmt.Sprint("&before=", page.Next)
		}
		if want := []int64{4, 3, 1}; !slices.Equal(seqs, want) {
			t.Errorf("%s: %v, want %v", tc.why, seqs, want)
		}
	}
	r := record(t)
	r.append([3]string{"created", "web", "u-1"}, [3]string{"created", "other", "u-o"})
	for _, before := range []string{"2", "99"} {
		code, text := body(t, r, "versions?type=deploy/web&before="+before)
		if code != http.StatusNotFound || !strings.Contains(text, "before: the journal has no change "+before+" of this object, or no longer") {
			t.Errorf("before=%s: %d %s", before, code, text)
		}
	}
}

// TestVersionsBeforeHidden: a change that the viewer may not see is as one that does not exist.
func TestVersionsBeforeHidden(t *testing.T) {
	s := open(t)
	h := serve(t, s, limited{}, nil)
	seqs := map[string]int64{}
	for e, err := range s.Journal.Rows(t.Context(), journal.Query{Snapshots: true, Names: []string{"bank"}}) {
		if err != nil {
			t.Fatal(err)
		}
		seqs["bank"] = e.Seq
	}
	code, text := body(t, h, fmt.Sprint("versions?type=deploy/bank&before=", seqs["bank"]))
	code2, text2 := body(t, h, "versions?type=deploy/bank&before=4242")
	if code != code2 || strings.Replace(text, fmt.Sprint(seqs["bank"]), "4242", 1) != text2 {
		t.Errorf("%d %s; %d %s", code, text, code2, text2)
	}
}
