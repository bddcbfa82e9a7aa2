package log

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
)

// incident writes a journal with what a page must show: a rollout, diffs of long values, gaps, absences, hidden values and
// hostile texts.
func incident(t *testing.T) string {
	b := newBook(t, start)
	step := func(k journal.Kind, op event.Op, ns, name string, before, after obj, edits ...func(*journal.Row)) {
		b.at = b.at.Add(2 * time.Second)
		b.add(k, op, ns, name, before, after, edits...)
	}
	workload := func(image string, generation, updated, ready int64) obj {
		o := writtenBy("kubectl-set", app("web", image, ""))
		o["metadata"].(obj)["generation"] = generation
		o["status"] = obj{"observedGeneration": generation, "replicas": int64(1), "updatedReplicas": updated, "readyReplicas": ready, "availableReplicas": ready}
		return o
	}
	step(deployments, event.Snapshot, "shop", "web", nil, workload("web:1", 1, 1, 1))
	step(deployments, event.Updated, "shop", "web", workload("web:1", 1, 1, 1), workload("web:2", 2, 0, 1))
	step(replicaSets, event.Created, "shop", "web-2", nil, app("web", "web:2", "", ownerRef("apps/v1", "Deployment", "web")), ownedBy("Deployment", "web"))
	step(pods, event.Created, "shop", "web-2-x", nil, app("web", "web:2", "n1", ownerRef("apps/v1", "ReplicaSet", "web-2")), ownedBy("ReplicaSet", "web-2"))
	step(deployments, event.Updated, "shop", "web", workload("web:2", 2, 0, 1), workload("web:2", 2, 1, 1))
	b.at = b.at.Add(30 * time.Second)
	text := "listen 80\nroot /srv\ntimeout 30\n"
	step(maps, event.Created, "shop", "settings", nil, writtenBy("helm", obj{"data": obj{"nginx.conf": text, "color": "red"}}))
	step(maps, event.Updated, "shop", "settings", writtenBy("helm", obj{"data": obj{"nginx.conf": text, "color": "red"}}),
		writtenBy("kubectl-edit", obj{"data": obj{"nginx.conf": strings.Replace(text, "30", "3", 1), "color": "blue"}}))
	step(secrets, event.Updated, "shop", "token", obj{"data": obj{"k": "hidden #4e1f"}}, obj{"data": obj{"k": "hidden #77aa"}})
	const hostile = "<script>alert(1)</script>\u202egnp.exe\x1b[31m"
	step(maps, event.Updated, "shop", "x", obj{"data": obj{hostile: "a"}}, obj{"data": obj{hostile: "\"'><img src=x onerror=alert(1)>"}})
	step(widgets, event.Created, "shop", "</details>"+hostile, nil, obj{"spec": obj{"x": "</style></pre>"}})
	b.add(maps, "", "", "", nil, nil, gapIn("shop"))
	step(pods, event.Deleted, "shop", "web-1-a", app("web", "web:1", "n1"), nil, ownedBy("ReplicaSet", "web-1"))
	return b.close()
}

var styles = regexp.MustCompile(`(?s)<style>.*</style>`)

// TestPage: the page has the lines of the text, with the changes below them.
func TestPage(t *testing.T) {
	path := incident(t)
	out, said, err := play(t, path, Options{Options: selection.Options{Since: "09:00"}, HTML: "-", Output: text, Limit: -1, Command: "tattler log --since '09:00'"})
	if err != nil {
		t.Fatal(err, said)
	}
	golden(t, "page.html", styles.ReplaceAllString(out, "<style></style>"))
	for _, never := range []string{"<script", "<img", "</details>&", "\u202e", "\x1b", "src=\"", "href="} {
		if strings.Contains(out, never) {
			t.Errorf("the page has %q", never)
		}
	}
	for _, must := range []string{`\u202e`, `\x1b[31m`, "&lt;script&gt;", "hidden #4e1f", "the journal reaches back to 10:00:02 only", "versions between 1 and 11 were not seen", "rolled out in 6 s: 1/1 ready, 1 pod new"} {
		if !strings.Contains(out, must) {
			t.Errorf("the page lacks %q", must)
		}
	}
	lines, _, err := play(t, path, Options{Options: selection.Options{Since: "09:00"}, Output: text, Limit: -1, IO: console(0)})
	if err != nil {
		t.Fatal(err)
	}
	heads := 0
	for line := range strings.Lines(lines) {
		if !isDetail(line) {
			heads++
		}
	}
	if entries := strings.Count(out, `<li class="entry`); entries != heads {
		t.Errorf("%d entries, but the text has %d lines", entries, heads)
	}
}

// TestIntervals: a change of which only an interval is known has that interval, in every form of output.
func TestIntervals(t *testing.T) {
	b := newBook(t, start)
	b.add(maps, event.Created, "shop", "a", nil, data("1"))
	b.at = start.Add(time.Minute)
	b.add(maps, event.Updated, "shop", "a", data("1"), data("2"), func(r *journal.Row) {
		r.Since, r.Time, r.At, r.Net = start.Add(30*time.Second), b.at, b.at, true
	})
	path := b.close()
	for _, tt := range []struct {
		o    Options
		want []string
	}{
		{Options{Output: text}, []string{"10:00:30Z/2026-03-01T10:01:00Z ~ "}},
		{Options{Output: "oneline"}, []string{"10:00:30Z/2026-03-01T10:01:00Z ~ "}},
		{Options{Stat: true, Output: text, Options: selection.Options{Ops: []string{"updated"}}}, []string{"10:00:30 to 10:01:00", "2026-03-01T10:00:30Z       2026-03-01T10:01:00Z"}},
		{Options{HTML: "-", Output: text}, []string{
			`title="between 2026-03-01 10:00:30 UTC and 2026-03-01 10:01:00 UTC">10:00:30–10:01:00</time>`}},
	} {
		out, _, err := play(t, path, tt.o)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	}
}

// TestPageFile: a file of the name is replaced, but only by a whole page.
func TestPageFile(t *testing.T) {
	path := recorded(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "incident.html")
	const old = "<!DOCTYPE html>old"
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := play(t, path, Options{Options: selection.Options{Types: []string{"widgetts"}}, HTML: file, Output: text}); err == nil {
		t.Error("an unknown type is an error")
	}
	if got, _ := os.ReadFile(file); string(got) != old {
		t.Errorf("a failed run wrote %q", got)
	}
	out, said, err := play(t, path, Options{HTML: file, Output: text, Limit: 2})
	got, _ := os.ReadFile(file)
	if err != nil || out != "" || !strings.Contains(said, "wrote "+file) {
		t.Errorf("%q, %q, %v", out, said, err)
	}
	if n := bytes.Count(got, []byte(`<li class="entry`)); n != 2 || !bytes.Contains(got, []byte("only the last 2 lines; earlier ones are left out")) {
		t.Errorf("%d entries:\n%s", n, got)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("files beside the page: %v", entries)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := play(t, path, Options{HTML: path, Output: text}); err == nil || !strings.Contains(err.Error(), "is not an HTML page") {
		t.Errorf("the journal itself: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the journal was changed: %v", err)
	}
	if _, _, err := play(t, path, Options{HTML: dir, Output: text}); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a folder: %v", err)
	}
}

// TestCommand: the page shows the command line, which a shell reads back.
func TestCommand(t *testing.T) {
	cmd := NewCommand(&terminal.IO{Err: os.Stderr})
	var got string
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		got = command(cmd, args)
		return nil
	}
	cmd.SetArgs([]string{"deploy/web", "-n", "a,b", "--related", "--path", "spec.x[name=it's]", "--html", "x", "--journal", "y", "--since", "1h"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if want := `log deploy/web --namespace a,b --related --path 'spec.x[name=it'\''s]' --since 1h`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
