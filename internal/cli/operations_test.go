package cli

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	journaldb "github.com/tattler-dev/tattler/internal/journal"
)

// example is a command on a page, and its output on the page.
type example struct{ command, want string }

var console = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// examplesIn returns the commands in a page's console blocks. A line with "$ " is a command; others are output.
func examplesIn(t *testing.T, page string) (all []example) {
	t.Helper()
	for _, block := range console.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[1]) {
			command, ok := strings.CutPrefix(line, "$ ")
			switch {
			case ok:
				all = append(all, example{command: strings.TrimSpace(command)})
			case len(all) == 0:
				t.Fatalf("output without a command: %q", line)
			default:
				all[len(all)-1].want += line
			}
		}
	}
	return all
}

// varies match the parts that differ from run to run, or from machine to machine.
var varies = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\d+(\.\d+)? ([KMG]i)?B\b`), "SIZE"},
	{regexp.MustCompile(`\d{8}T\d{6}Z(-\d)?`), "STAMP"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`\(format \d+\)`), "(format N)"},
}

func scrubbed(text string) string {
	for _, v := range varies {
		text = v.re.ReplaceAllString(text, v.with)
	}
	return text
}

// operator follows docs/operations.md on a machine with other directories than the page.
type operator struct {
	journal string
	moved   *strings.Replacer
}

// newOperator has a journal with a recorded Deployment, and an empty disk for backups.
func newOperator(t *testing.T) *operator {
	t.Helper()
	dir := t.TempDir()
	o := &operator{journal: filepath.Join(dir, "lib", "journal.db")}
	o.moved = strings.NewReplacer("/var/lib/tattler/journal", filepath.Dir(o.journal), "/backup", filepath.Join(dir, "backup"))
	if err := os.MkdirAll(filepath.Join(dir, "backup"), 0o700); err != nil {
		t.Fatal(err)
	}
	j, err := journaldb.Open(t.Context(), o.journal, journaldb.Options{Cluster: "prod"})
	if err == nil {
		at := time.Now().Add(-time.Hour)
		kind := journaldb.Kind{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true}
		_, err = j.Append(t.Context(), []journaldb.Batch{{Stream: journaldb.Stream{GroupResource: "deployments.apps"}, Head: journaldb.Head{Version: "9", At: at},
			Rows: []journaldb.Row{{
				Meta:  journaldb.Meta{Op: event.Created, Kind: kind, Namespace: "shop", Name: "web", UID: "u1", ResourceVersion: "9", Time: at, At: at},
				After: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"u1","resourceVersion":"9"}}`),
			}}}})
		err = errors.Join(err, j.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TATTLER_JOURNAL", o.journal)
	return o
}

// follow runs a command and compares its output with the page, up to a line with "…".
func (o *operator) follow(t *testing.T, e example) {
	t.Helper()
	args := strings.Fields(o.aside(t, o.moved.Replace(e.command)))
	if args[0] != "tattler" {
		t.Fatalf("%s: this test runs commands of tattler only", e.command)
	}
	code, out, stderr := tattler(t.Context(), args...)
	if code != exitDone {
		t.Fatalf("%s: exit code %d, %s", e.command, code, stderr)
	}
	want, rest, open := strings.Cut(scrubbed(o.moved.Replace(e.want)), "…\n")
	switch got := scrubbed(out); {
	case e.want == "" && out == "":
		t.Errorf("%s writes nothing", e.command)
	case e.want == "", !open && got == want, open && rest == "" && strings.HasPrefix(got, want):
	default:
		t.Errorf("%s writes\n%s\nthe page says\n%s", e.command, got, want)
	}
}

// aside replaces the page's name of a journal that was moved aside by the real one.
func (o *operator) aside(t *testing.T, command string) string {
	t.Helper()
	const stamp = "20261121T104200Z"
	if !strings.Contains(command, stamp) {
		return command
	}
	all, err := filepath.Glob(o.journal + ".before-2*Z")
	if err != nil || len(all) == 0 {
		t.Fatalf("nothing was moved aside: %v", err)
	}
	return strings.ReplaceAll(command, o.journal+".before-"+stamp, all[len(all)-1])
}

// TestOperations runs the commands of docs/operations.md, in their order.
func TestOperations(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	all := examplesIn(t, string(page))
	if len(all) < 3 {
		t.Fatalf("the page has only %d commands", len(all))
	}
	o := newOperator(t)
	for _, e := range all {
		o.follow(t, e)
	}
	// Everything else on the page exists.
	named := 0
	for _, c := range regexp.MustCompile("`tattler ([a-z]+(?: [a-z]+)*)").FindAllStringSubmatch(string(page), -1) {
		named++
		args := append([]string{"tattler"}, append(strings.Fields(c[1]), "--help")...)
		if code, out, _ := tattler(t.Context(), args...); code != exitDone || !strings.Contains(out, "tattler "+c[1]) {
			t.Errorf("there is no tattler %s", c[1])
		}
	}
	if named < 10 {
		t.Errorf("the page names %d commands", named)
	}
}

// TestOperationsFindsMistakes shows that the test can fail.
func TestOperationsFindsMistakes(t *testing.T) {
	all := examplesIn(t, "text\n```console\n$ tattler a\nx\n\ny\n$ tattler b\n```\n```\n$ no\n```\n")
	if len(all) != 2 || all[0] != (example{"tattler a", "x\n\ny\n"}) || all[1] != (example{"tattler b", ""}) {
		t.Errorf("%+v", all)
	}
	if a, b := scrubbed("is 41.2 MiB, before-20261121T104200Z"), scrubbed("is 9 B, before-20270101T000000Z"); a != b || a == scrubbed("was 9 B, before-20270101T000000Z") {
		t.Errorf("%q, %q", a, b)
	}
}
