package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"sigs.k8s.io/yaml"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/control"
	journaldb "github.com/tattler-dev/tattler/internal/journal"
)

var (
	ten     = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	webKind = journaldb.Kind{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true}
	cmKind  = journaldb.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}
	secKind = journaldb.Kind{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true}
)

// deployment is one of which helm wrote all, and kubectl-set an image afterwards, if minute is not 0.
func deployment(version int, image string, minute int) string {
	set := ""
	if minute > 0 {
		set = fmt.Sprintf(`,{"manager":"kubectl-set","operation":"Update","time":%q,"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}}`,
			ten.Add(time.Duration(minute)*time.Minute).Format(time.RFC3339))
	}
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"w","resourceVersion":"%d","generation":%d,
		"creationTimestamp":"2026-03-01T10:00:00Z","managedFields":[{"manager":"helm","operation":"Update","time":"2026-03-01T10:00:00Z","fieldsType":"FieldsV1",
		"fieldsV1":{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:name":{}}}}}}}}%s]},
		"spec":{"replicas":2,"template":{"spec":{"containers":[{"image":%q,"name":"app"}]}}},"status":{"replicas":2}}`, version, version, set, image)
}

// recordedPast is a journal of a morning: a Deployment with two images, a ConfigMap that was there and went, a
// Secret, and a ConfigMap that changed and was changed back.
func recordedPast(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journaldb.Open(t.Context(), path, journaldb.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	version := 0
	row := func(op event.Op, k journaldb.Kind, name, uid string, minute int, before, after string) journaldb.Row {
		version++
		at := ten.Add(time.Duration(minute) * time.Minute)
		r := journaldb.Row{Meta: journaldb.Meta{Op: op, Kind: k, Namespace: "shop", Name: name, UID: uid, ResourceVersion: fmt.Sprint(version), Time: at, At: at, Manager: "helm"}}
		if before != "" {
			r.Before = []byte(before)
		}
		if after != "" {
			r.After = []byte(after)
		}
		return r
	}
	cm := func(name, value string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"shop","uid":%q,"creationTimestamp":"2026-02-01T10:00:00Z"},"data":{"k":%q}}`, name, name, value)
	}
	secret := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"key","namespace":"shop","uid":"key"},"data":{"password":"hidden #0123456789abcdef"}}`
	missed := row(event.Updated, cmKind, "flag", "flag", 50, cm("flag", "on"), cm("flag", "off"))
	missed.Since, missed.Net = ten.Add(45*time.Minute), true
	rows := []journaldb.Row{
		row(event.Snapshot, cmKind, "old", "old", 0, "", cm("old", "1")),
		row(event.Snapshot, cmKind, "flag", "flag", 0, "", cm("flag", "on")),
		row(event.Created, webKind, "web", "w", 0, "", deployment(1, "app:1", 0)),
		row(event.Created, secKind, "key", "key", 1, "", secret),
		row(event.Created, cmKind, "back", "back", 2, "", cm("back", "1")),
		row(event.Updated, webKind, "web", "w", 20, deployment(1, "app:1", 0), deployment(2, "app:2", 20)),
		row(event.Updated, cmKind, "back", "back", 21, cm("back", "1"), cm("back", "2")),
		row(event.Updated, cmKind, "back", "back", 22, cm("back", "2"), cm("back", "1")),
		row(event.Deleted, cmKind, "old", "old", 23, cm("old", "1"), ""),
		missed,
		row(event.Deleted, webKind, "web", "w", 55, deployment(2, "app:2", 20), ""),
	}
	_, err = j.Append(t.Context(), []journaldb.Batch{{
		Stream: journaldb.Stream{GroupResource: "configmaps"}, Head: journaldb.Head{Version: "99", Epoch: 1, Live: true, At: ten.Add(time.Hour)}, Rows: rows,
	}})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func clock(minute int) string {
	return ten.Add(time.Duration(minute) * time.Minute).Format(time.RFC3339)
}

func TestPast(t *testing.T) {
	path := recordedPast(t)
	c := served(t, path)
	t.Setenv("TATTLER_JOURNAL", path)
	t.Setenv("TZ", "UTC")
	for _, tt := range []struct {
		why, args string
		code      int
		out, err  []string // in this order
		not       []string
	}{
		{"put back what it was", "get deploy/web -n shop --at " + clock(10) + " --clean", 0,
			[]string{"apiVersion: apps/v1", "name: web", "image: app:1"}, nil, []string{"status", "uid", "resourceVersion", "managedFields", "generation", "creationTimestamp"}},
		{"after the change", "get deploy/web --at " + clock(20) + " -o yaml", 0, []string{"image: app:2"}, nil, []string{"app:1"}},
		{"before it was there", "get deploy/web --at " + clock(-1), 1, nil, []string{"there was no deploy/web at "}, nil},
		{"after it was deleted", "get deploy web --at " + clock(55), 1, nil, []string{"there was no deploy web at "}, nil},
		{"before the journal begins", "get cm/old --at " + clock(-1), 1, nil, []string{"configmaps/old in shop was first recorded at 2026-03-01 10:00:00", "the journal does not reach back to 2026-03-01 09:59:00 for cm/old"}, nil},
		{"a list", "get cm,deploy --at " + clock(22) + " -o name", 0, []string{"configmap/back\nconfigmap/flag\nconfigmap/old\ndeployment.apps/web\n"}, nil, nil},
		{"a table", "get deploy -n shop --at " + clock(30), 0, []string{"NAMESPACE", "shop", "deployment.apps/web", "30 min", "2026-03-01 10:20:00", "helm"}, nil, nil},
		{"a change of an interval", "get cm/flag --at " + clock(50), 0, []string{"2026-03-01 10:45:00–10:50:00"}, nil, nil},
		{"another namespace", "get deploy -n other --at " + clock(30), 0, nil, []string{`the journal has nothing in namespace "other"`, "there were none at"}, nil},
		{"one of another namespace, for programs", "get deploy/web -n other -o yaml --at " + clock(30), 1, nil, []string{`the journal has nothing in namespace "other"`, "there was no deploy/web at"}, nil},
		{"while a change may or may not have happened", "get cm/flag --at " + clock(47) + " -o yaml", 0, []string{`k: "on"`},
			[]string{"configmaps/flag in shop changed between 2026-03-01 10:45:00 and 2026-03-01 10:50:00; this is how it was before that"}, nil},
		{"one object as JSON", "get cm/flag -o json", 0, []string{`"apiVersion": "v1"`, `"k": "off"`}, []string{"nothing was recorded after 2026-03-01 11:00:00"}, []string{"items"}},
		{"hidden values", "get secret/key -o yaml", 0, []string{"hidden #"}, []string{"1 hidden value"}, nil},
		{"a hash is no password", "get secret/key --clean", 1, nil, []string{"secrets/key in shop has hidden values, which cannot be applied: data.password; --keep-hidden"}, nil},
		{"unless somebody insists", "get secret/key --clean --keep-hidden", 0, []string{"hidden #0123456789abcdef"}, nil, nil},
		{"an unknown kind", "get depoyments", 1, nil, []string{`the journal has no "depoyments"; did you mean "deployments"?`}, nil},
		{"an unknown time", "get cm --at noon", 2, nil, []string{"--at: "}, nil},

		{"between two times", "diff -n shop --since " + clock(10) + " --until " + clock(30), 1,
			[]string{"cm/old", "deploy/web", "kubectl-set", "spec.template.spec.containers[name=app].image: app:1 → app:2"}, nil, []string{"cm/back", "cm/flag"}},
		{"created and deleted", "diff deploy/web --since " + clock(-5) + " --until " + clock(56), 0, nil, []string{"the journal reaches back to 2026-03-01 10:00:00 only"}, []string{"web"}},
		{"a creation has its own time and manager, not those of later changes", "diff cm/back --since " + clock(1) + " --until " + clock(30), 1,
			[]string{"2026-03-01T10:02:00Z + shop     cm/back", "helm", `k: "1"`}, nil, []string{"10:21", "10:22", "seen"}},
		{"nothing differs", "diff cm/back --since " + clock(10) + " --until " + clock(30), 0, nil, nil, []string{"back"}},
		{"how it was before is not known", "diff cm/flag --since " + clock(-5) + " --until " + clock(30), 0, nil, []string{"1 object was first recorded after"}, []string{"flag"}},
		{"as kubectl diff: a failure is more than 1", "diff foo --since 1h", 2, nil, []string{`the journal has no "foo"`}, nil},
		{"times the wrong way round", "diff --since " + clock(30) + " --until " + clock(10), 2, nil, []string{"--since is not before --until"}, nil},
		{"for programs", "diff deploy --since " + clock(10) + " --until " + clock(30) + " -o json", 1, []string{`"op": "updated"`, `"path": "spec.template.spec.containers[name=app].image"`, `"manager": "kubectl-set"`}, nil, []string{`"path": ""`, `"quiet": true`}},
		{"for programs, with quiet fields", "diff deploy --noise --since " + clock(10) + " --until " + clock(30) + " -o json", 1, []string{`"quiet": true`}, nil, nil},

		{"who changed the image, and when?", "blame deploy/web --at " + clock(30), 0, []string{
			"helm", "| apiVersion: apps/v1", "helm", "|   replicas: 2", "10:20", "kubectl-set", "|       - image: app:2", "10:00", "helm", "|         name: app"}, nil, []string{"managedFields"}},
		{"one path", "blame deploy/web --at " + clock(30) + " --path spec.template.spec.containers[name=app].image", 0, []string{"| spec:", "containers:", "kubectl-set", "- image: app:2"}, nil, []string{"replicas", "name: app"}},
		{"older than the journal", "blame cm/flag --at " + clock(30), 0, []string{"<2026-03-01 10:00", "?", `k: "on"`}, nil, nil},
		{"of an interval", "blame cm/flag --at " + clock(50), 0, []string{"2026-03-01 10:45–10:50", "?", `k: "off"`}, nil, nil},
		{"before the journal begins", "blame cm/flag --at " + clock(-1), 1, nil, []string{"the journal does not reach back to 2026-03-01 09:59:00 for cm/flag: it was first recorded at 2026-03-01 10:00:00"}, nil},
		{"several", "blame cm --at " + clock(30), 2, nil, []string{`"cm" names no single object: say TYPE/NAME`}, nil},
		{"no such path", "blame cm/flag --path spec.x", 1, nil, []string{"cm/flag has nothing below spec.x"}, nil},
	} {
		t.Run(tt.why, func(t *testing.T) {
			args := append([]string{"tattler"}, strings.Split(tt.args, " ")...)
			code, out, err := tattler(t.Context(), args...)
			alsoInCluster(t, c, args, code, out, err)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for name, c := range map[string]struct {
				text string
				want []string
			}{"stdout": {out, tt.out}, "stderr": {err, tt.err}} {
				rest := c.text
				for _, w := range c.want {
					_, after, ok := strings.Cut(rest, w)
					if !ok {
						t.Errorf("%s has no %q where it should:\n%s", name, w, c.text)
						break
					}
					rest = after
				}
			}
			for _, n := range tt.not {
				if strings.Contains(out, n) {
					t.Errorf("stdout has %q:\n%s", n, out)
				}
			}
			if len(tt.out) == 0 && out != "" {
				t.Errorf("stdout: %s", out)
			}
		})
	}
}

// TestNothingInNamespace: only a namespace of which the journal has nothing at all is said to be unknown.
func TestNothingInNamespace(t *testing.T) {
	t.Setenv("TATTLER_JOURNAL", recordedPast(t))
	t.Setenv("TZ", "UTC")
	for args, want := range map[string]string{
		"-n shop,o*": "", "-n shop,other": "the journal has nothing in namespace \"other\"\n", "": "",
	} {
		_, _, err := tattler(t.Context(), strings.Fields("tattler get deploy --at "+clock(-1)+" "+args)...)
		if want += "there were none at 2026-03-01 09:59:00\n"; err != want {
			t.Errorf("%s: %q, want %q", args, err, want)
		}
	}
}

// TestPastFormats: what the verbs print for programs can be read.
func TestPastFormats(t *testing.T) {
	t.Setenv("TATTLER_JOURNAL", recordedPast(t))
	for _, args := range []string{
		"get cm -o json --at " + clock(10), "get deploy -o json --at " + clock(10), "get cm/flag -o yaml", "diff -o yaml --since " + clock(5), "diff -o json --since " + clock(5), "blame cm/flag -o json",
	} {
		_, out, _ := tattler(t.Context(), append([]string{"tattler"}, strings.Split(args, " ")...)...)
		if strings.HasPrefix(args, "get deploy ") && !strings.Contains(out, `"kind": "List"`) { // one of a list is a list
			t.Errorf("%s: %s", args, out)
		}
		var v any
		err := json.Unmarshal([]byte(out), &v)
		if strings.Contains(args, "yaml") {
			err = yaml.Unmarshal([]byte(out), &v)
		}
		if err != nil || v == nil {
			t.Errorf("%s: %v: %s", args, err, out)
		}
	}
}

// TestPastCompletion: a shell is offered what the journal has, and nothing where there is no journal.
func TestPastCompletion(t *testing.T) {
	t.Setenv("TATTLER_JOURNAL", recordedPast(t))
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"get", "con"}, "configmaps\n:4\n"},
		{[]string{"get", ""}, "configmaps\ndeployments\nsecrets\n:4\n"},
		{[]string{"diff", "cm", ""}, "back\nflag\nold\n:4\n"},
		{[]string{"blame", "cm/f"}, "cm/flag\n:4\n"},
		{[]string{"log", "deploy/web", "cm/b"}, "cm/back\n:4\n"},
		{[]string{"get", "-n", "shop", "deploy", ""}, "web\n:4\n"},
		{[]string{"get", "-n", "other", "deploy", ""}, ":4\n"},
		{[]string{"get", "--journal", "/does/not/exist", ""}, ":4\n"},
		{[]string{"get", "nothing", ""}, ":4\n"},
	} {
		_, out, _ := tattler(t.Context(), append([]string{"tattler", "__complete"}, tt.args...)...)
		if out != tt.want {
			t.Errorf("%q completes to %q, want %q", tt.args, out, tt.want)
		}
	}
	_, out, _ := tattler(t.Context(), "tattler", "__complete", "show", "")
	if !strings.Contains(out, "\tdeleted deployments/web\n") || !strings.HasSuffix(out, ":36\n") {
		t.Errorf("changes: %q", out)
	}
}

// purgedPast is the journal of recordedPast without its first 22 minutes.
func purgedPast(t *testing.T) string {
	t.Helper()
	path := recordedPast(t)
	j, err := journaldb.Open(t.Context(), path, journaldb.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	cut := ten.Add(22*time.Minute + time.Second)
	if err := errors.Join(j.Purge(t.Context(), journaldb.Purge{Until: cut}, nil), j.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestGetPurged: what was purged is said to be so, and does not hide the other objects.
func TestGetPurged(t *testing.T) {
	t.Setenv("TATTLER_JOURNAL", purgedPast(t))
	code, out, stderr := tattler(t.Context(), "tattler", "get", "cm,deploy", "-o", "name", "--at", clock(24))
	if code != 0 || out != "configmap/back\n" || !strings.Contains(stderr, "deployments/web in shop: its state at that time was purged") {
		t.Errorf("exit code %d, %q, %q", code, out, stderr)
	}
	code, out, stderr = tattler(t.Context(), "tattler", "get", "deploy/web", "--at", clock(24))
	if code != 1 || out != "" || !strings.Contains(stderr, "the journal does not reach back to") {
		t.Errorf("exit code %d, %q, %q", code, out, stderr)
	}
}

// TestDiffPurged: an object without a state is neither a difference nor called new.
func TestDiffPurged(t *testing.T) {
	t.Setenv("TATTLER_JOURNAL", purgedPast(t))
	code, out, stderr := tattler(t.Context(), "tattler", "diff", "deploy", "--since", clock(24), "--until", clock(56))
	if code != 0 || out != "" || !strings.Contains(stderr, "1 object was left out: the state at one of the two times was purged") || strings.Contains(stderr, "first recorded") {
		t.Errorf("exit code %d, %q, %q", code, out, stderr)
	}
}

// TestGetDamaged: a damaged object does not hide the others, but the exit code says that the list is not complete.
func TestGetDamaged(t *testing.T) {
	path := recordedPast(t)
	c, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Exec("UPDATE live SET content = x'09' || substr(content, 2) WHERE object = (SELECT id FROM objects WHERE name = 'back')")
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TATTLER_JOURNAL", path)
	code, out, stderr := tattler(t.Context(), "tattler", "get", "cm", "-o", "name")
	if code != 1 || out != "configmap/flag\n" || !strings.Contains(stderr, "configmaps/back in shop: ") || !strings.Contains(stderr, "damaged") {
		t.Errorf("exit code %d, %q, %q", code, out, stderr)
	}
	for _, args := range [][]string{{"blame", "cm/back"}, {"get", "cm/back"}} {
		code, out, stderr := tattler(t.Context(), append([]string{"tattler"}, args...)...)
		if code != 1 || out != "" || !strings.Contains(stderr, "damaged") {
			t.Errorf("%s: exit code %d, %q, %q", args, code, out, stderr)
		}
	}
}

// TestExisted: when an object that existed before the daemon last changed is not known, nor who wrote it. Its creation is no
// such change.
func TestExisted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journaldb.Open(t.Context(), path, journaldb.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	existed := journaldb.Row{
		Meta: journaldb.Meta{
			Op: event.Snapshot, Kind: cmKind, Namespace: "shop", Name: "old", UID: "old", ResourceVersion: "1", Time: ten.Add(-time.Hour), At: ten, Manager: "helm",
		},
		After: []byte(`{"kind":"ConfigMap","metadata":{"name":"old","namespace":"shop","creationTimestamp":"2026-03-01T09:00:00Z"}}`),
	}
	_, err = j.Append(t.Context(), []journaldb.Batch{{Stream: journaldb.Stream{GroupResource: "configmaps"}, Head: journaldb.Head{Version: "9", Epoch: 1, Live: true, At: ten}, Rows: []journaldb.Row{existed}}})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TATTLER_JOURNAL", path)
	t.Setenv("TZ", "UTC")
	code, out, _ := tattler(t.Context(), "tattler", "get", "cm")
	if code != 0 || !strings.Contains(out, "   before 2026-03-01 10:00:00   ") || strings.Contains(out, "09:00:00") || strings.Contains(out, "helm") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	id := out[strings.LastIndex(strings.TrimSpace(out), " ")+1:]
	code, out, _ = tattler(t.Context(), "tattler", "show", strings.TrimSpace(id))
	if code != 0 || !strings.Contains(out, "happened  before 2026-03-01T10:00:00") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// TestBlameSeveral: a name that several objects have names none of them.
func TestBlameSeveral(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journaldb.Open(t.Context(), path, journaldb.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var rows []journaldb.Row
	for i, namespace := range []string{"pay", "shop"} {
		rows = append(rows, journaldb.Row{After: []byte(`{"kind":"ConfigMap","data":{"in":"` + namespace + `"}}`), Meta: journaldb.Meta{
			Op: event.Created, Kind: cmKind, Namespace: namespace, Name: "same", UID: namespace, ResourceVersion: fmt.Sprint(i + 1), Time: ten, At: ten,
		}})
	}
	_, err = j.Append(t.Context(), []journaldb.Batch{{Stream: journaldb.Stream{GroupResource: "configmaps"}, Head: journaldb.Head{Version: "9", Epoch: 1, Live: true, At: ten}, Rows: rows}})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TATTLER_JOURNAL", path)
	code, out, stderr := tattler(t.Context(), "tattler", "blame", "cm/same")
	if code != 2 || out != "" || !strings.Contains(stderr, "names several objects: configmaps in pay, configmaps in shop; say which with -n") {
		t.Errorf("exit code %d, %q, %q", code, out, stderr)
	}
	if code, out, stderr := tattler(t.Context(), "tattler", "blame", "cm/same", "-n", "shop"); code != 0 || !strings.Contains(out, "in: shop") {
		t.Errorf("of a namespace: exit code %d, %q, %q", code, out, stderr)
	}
}

// TestSuccessor: an object was replaced within a second. Its deletion was seen in milliseconds, and the creation of the next
// one is dated at its whole second, but only one of them has the name at a time.
func TestSuccessor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journaldb.Open(t.Context(), path, journaldb.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	row := func(op event.Op, ms int, uid, before, after string) journaldb.Row {
		at := ten.Add(time.Duration(ms) * time.Millisecond)
		return journaldb.Row{Before: []byte(before), After: []byte(after), Meta: journaldb.Meta{
			Op: op, Kind: cmKind, Namespace: "shop", Name: "force", UID: uid, ResourceVersion: fmt.Sprint(ms + 1), Time: at, At: at.Add(time.Second)}}
	}
	cm := func(uid string, second int, v string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"force","namespace":"shop","uid":%q,"creationTimestamp":"2026-03-01T10:00:%02dZ"},"data":{"v":%q}}`, uid, second, v)
	}
	_, err = j.Append(t.Context(), []journaldb.Batch{{
		Stream: journaldb.Stream{GroupResource: "configmaps"}, Head: journaldb.Head{Version: "99999", Epoch: 1, Live: true, At: ten.Add(time.Hour)},
		Rows: []journaldb.Row{
			row(event.Created, 18000, "a", "", cm("a", 18, "1")),
			row(event.Deleted, 22485, "a", cm("a", 18, "1"), ""),
			row(event.Created, 22000, "b", "", cm("b", 22, "2")),
		},
	}})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	c := served(t, path)
	t.Setenv("TATTLER_JOURNAL", path)
	t.Setenv("TZ", "UTC")
	const day = "2026-03-01T10:00:"
	for _, tt := range []struct {
		args string
		code int
		want []string // in the lines of stdout
	}{
		{"get cm -o name --at " + day + "21Z", 0, []string{"configmap/force"}},
		{"get cm -o name --at " + day + "22Z", 0, []string{"configmap/force"}},
		{"get cm -o name --at " + day + "22.400Z", 0, []string{"configmap/force"}},
		{"blame cm/force --path data --at " + day + "22Z", 0, []string{"| data:", `|   v: "2"`}},
		{"diff --since " + day + "20Z --until " + day + "22Z", 1, []string{"- shop ", "+ shop ", "data:", `v: "2"`}},
		{"diff --since " + day + "17Z --until " + day + "22.400Z", 1, []string{"+ shop ", "data:", `v: "2"`}},
		{"diff --since " + day + "20Z --until " + day + "30Z", 1, []string{"- shop ", "+ shop ", "data:", `v: "2"`}},
		{"diff --since " + day + "22Z --until " + day + "30Z", 0, nil},
	} {
		args := append([]string{"tattler"}, strings.Split(tt.args, " ")...)
		code, out, stderr := tattler(t.Context(), args...)
		alsoInCluster(t, c, args, code, out, stderr)
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if out == "" {
			lines = nil
		}
		ok := code == tt.code && len(lines) == len(tt.want)
		for i := range lines {
			ok = ok && strings.Contains(lines[i], tt.want[i])
		}
		if !ok {
			t.Errorf("%s: exit code %d, %s%s; want %d, %q", tt.args, code, out, stderr, tt.code, tt.want)
		}
	}
}

// TestDiffLabels: a deleted object is selected by the labels that it had, a created one by those that it has. An object that
// did not exist had none, and does not match app!=old either.
func TestDiffLabels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journaldb.Open(t.Context(), path, journaldb.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	row := func(op event.Op, minute int, name string) journaldb.Row {
		at := ten.Add(time.Duration(minute) * time.Minute)
		r := journaldb.Row{Meta: journaldb.Meta{Op: op, Kind: cmKind, Namespace: "shop", Name: name, UID: name, ResourceVersion: fmt.Sprint(minute + 1), Time: at, At: at}}
		object := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"shop","labels":{"app":%[1]q}}}`, name)
		if op == event.Deleted {
			r.Before = object
		} else {
			r.After = object
		}
		return r
	}
	_, err = j.Append(t.Context(), []journaldb.Batch{{
		Stream: journaldb.Stream{GroupResource: "configmaps"}, Head: journaldb.Head{Version: "99", Epoch: 1, Live: true, At: ten.Add(time.Hour)},
		Rows: []journaldb.Row{row(event.Created, 0, "old"), row(event.Deleted, 20, "old"), row(event.Created, 21, "new")},
	}})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TATTLER_JOURNAL", path)
	for labels, want := range map[string]string{"app=old": "cm/old", "app=new": "cm/new", "app=other": "", "app!=old": "cm/new", "app notin (new)": "cm/old", "!app": ""} {
		code, out, stderr := tattler(t.Context(), "tattler", "diff", "-l", labels, "--since", clock(10), "--until", clock(30))
		if code == 0 != (want == "") || !strings.Contains(out, want) || strings.Count(out, "cm/") != code {
			t.Errorf("%s: exit code %d, %q, %q", labels, code, out, stderr)
		}
	}
}

// TestDiffNoise: an object of which only quiet fields differ is listed with --noise only.
func TestDiffNoise(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journaldb.Open(t.Context(), path, journaldb.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	node := func(heartbeat string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","uid":"n1","creationTimestamp":"2026-03-01T10:00:00Z"},
			"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q}]}}`, heartbeat)
	}
	kind := journaldb.Kind{Version: "v1", Resource: "nodes", Kind: "Node"}
	row := func(op event.Op, minute int, before, after []byte) journaldb.Row {
		at := ten.Add(time.Duration(minute) * time.Minute)
		return journaldb.Row{Before: before, After: after, Meta: journaldb.Meta{
			Op: op, Kind: kind, Name: "n1", UID: "n1", ResourceVersion: fmt.Sprint(minute + 1), Time: at, At: at, Manager: "kubelet", Quiet: op == event.Updated,
		}}
	}
	first, second := node(clock(0)), node(clock(20))
	_, err = j.Append(t.Context(), []journaldb.Batch{{
		Stream: journaldb.Stream{GroupResource: "nodes"}, Head: journaldb.Head{Version: "99", Epoch: 1, Live: true, At: ten.Add(time.Hour)},
		Rows: []journaldb.Row{row(event.Created, 0, nil, first), row(event.Updated, 20, first, second)},
	}})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TATTLER_JOURNAL", path)
	for _, tc := range []struct {
		args []string
		code int
	}{{nil, 0}, {[]string{"--noise"}, 1}} {
		code, out, stderr := tattler(t.Context(), append([]string{"tattler", "diff", "--since", clock(10), "--until", clock(30)}, tc.args...)...)
		if code != tc.code || strings.Contains(out, "lastHeartbeatTime") != (code == 1) {
			t.Errorf("%v: exit code %d, %q, %q", tc.args, code, out, stderr)
		}
	}
}

// TestEnded: that nothing was recorded for a while is worth a note only if no daemon records. In an idle cluster, nothing
// changes.
func TestEnded(t *testing.T) {
	recording := control.Status{Version: "v9", Cluster: "test", Settled: true}
	state := func(change func(*control.Status)) *control.Status {
		s := recording
		change(&s)
		return &s
	}
	for _, tt := range []struct {
		why    string
		status *control.Status // nil: no daemon
		note   bool
	}{
		{"no daemon", nil, true},
		{"a daemon of an idle cluster", state(func(*control.Status) {}), false},
		{"the API server does not answer", state(func(s *control.Status) { s.Away = "connection refused" }), true},
		{"the journal cannot be written", state(func(s *control.Status) { s.Journal.Error = "disk full" }), true},
		{"the daemon starts", state(func(s *control.Status) { s.Starting = "opening the journal" }), true},
		{"one of two clusters answers", state(func(s *control.Status) {
			s.Away, s.Clusters = "no route", []control.Cluster{{Name: "a", Away: "no route"}, {Name: "b"}}
		}), false},
		{"none of two clusters answers", state(func(s *control.Status) {
			s.Clusters = []control.Cluster{{Name: "a", Away: "no route"}, {Name: "b", Away: "no route"}}
		}), true},
	} {
		t.Run(tt.why, func(t *testing.T) {
			path := recordedPast(t)
			t.Setenv("TATTLER_JOURNAL", path)
			if tt.status != nil {
				serveStatus(t, path, *tt.status)
			}
			for _, args := range [][]string{{"get", "cm"}, {"diff", "--since", clock(10)}} {
				_, _, stderr := tattler(t.Context(), append([]string{"tattler"}, args...)...)
				if got := strings.Contains(stderr, "nothing was recorded after 2026-03-01 "); got != tt.note {
					t.Errorf("%s: note %v, want %v: %s", args[0], got, tt.note, stderr)
				}
			}
			for _, args := range [][]string{{"get", "cm", "--at", clock(30)}, {"diff", "--since", clock(10), "--until", clock(30)}} { // before the end
				_, _, stderr := tattler(t.Context(), append([]string{"tattler"}, args...)...)
				if strings.Contains(stderr, "nothing was recorded after") || strings.Contains(stderr, "the journal reaches back") {
					t.Errorf("%s: %s", args[0], stderr)
				}
			}
		})
	}
}

// serveStatus serves a state at the socket beside a journal until the test ends.
func serveStatus(t *testing.T, journal string, s control.Status) {
	t.Helper()
	l, err := control.Listen(journal)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- control.Serve(ctx, l, control.Options{Status: func(context.Context) (control.Status, error) { return s, nil }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
