package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

var (
	clusterRoles        = resource{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole"}
	clusterRoleBindings = resource{"rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding"}
)

// TestRightsWithdrawn revokes the running daemon's right to one kind, and grants it again.
func TestRightsWithdrawn(t *testing.T) {
	t.Parallel() // to tests that leave the servers alone
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	w, err := startWatcher(ctx)
	must(err)
	t.Cleanup(w.stop)
	name := fmt.Sprintf("rights-%x", time.Now().UnixNano())
	must(makeNamespaces(ctx, w.api, name),
		w.api.create(ctx, clusterRoles, "", role(name, kinds...)),
		w.api.create(ctx, clusterRoleBindings, "", fields{
			"metadata": fields{"name": name},
			"roleRef":  fields{"apiGroup": clusterRoles.group, "kind": clusterRoles.kind, "name": name},
			"subjects": []fields{{"kind": "User", "name": name, "apiGroup": clusterRoles.group}},
		}))
	grant := func(allowed ...resource) {
		t.Helper()
		body, err := json.Marshal(role(name, allowed...))
		must(err)
		_, err = w.api.do(ctx, "PUT", clusterRoles.path("", name), "application/json", body)
		must(err)
	}
	user, err := plane.UserKubeconfig(name)
	must(err)
	o := newObserver(t, user)
	p := newProxy(t, o)
	dir := t.TempDir()
	changes := filepath.Join(dir, "changes.jsonl")
	d := newObservedDaemon(t, filepath.Join(dir, "state", "journal.db"), o, p, fields{
		"cluster": fields{"name": "rights"},
		"watch":   []fields{{"resources": fields{"include": kindNames()}, "namespaces": fields{"include": []string{name}}}},
		"redact":  []fields{{"resources": []string{"configmaps"}, "paths": []string{"data.hush"}}},
		"journal": fields{"path": filepath.Join(dir, "state", "journal.db")},
		"sinks":   []fields{{"name": "file", "file": fields{"path": changes}}},
	})
	d.ready(ctx)
	must(w.begin(ctx))
	rng := chance(t)
	h, err := newHands(ctx, w, rng, 20, name)
	must(err)
	t.Cleanup(h.stop)
	must(h.some(ctx, 60))

	// An open watch stays open: the server checks rights when one begins. The server keeps at least 75 s of
	// history, which may be less than the time without the right.
	away := action{what: "the right to secrets is withdrawn", forgets: true, kind: secrets.name(), began: time.Now()}
	o.begin(&away)
	grant(configMaps, deployments, gadgets)
	const blind, seeing = "can no longer be watched", "is watched again"
	must(within(ctx, 2*time.Minute, func() error {
		p.cut()
		pause(ctx, 500*time.Millisecond)
		if d.errors.count("secrets in namespace "+name+" "+blind) == 0 {
			return errors.New("the daemon does not report that it may not watch secrets")
		}
		return nil
	}))
	must(h.some(ctx, 60))
	one := &hand{api: w.api, watcher: w, rng: rng}
	arrived := func(r resource, name string) error {
		data, err := os.ReadFile(changes)
		if err == nil && !bytes.Contains(data, []byte("/"+r.plural+"/"+name+"\"")) {
			err = fmt.Errorf("%s/%s was not delivered", r.plural, name)
		}
		return err
	}
	for _, r := range []resource{configMaps, deployments, gadgets} { // the other streams continue
		must(one.create(ctx, r, name, "meanwhile"))
		must(within(ctx, 2*time.Minute, func() error { return arrived(r, "meanwhile") }))
	}
	must(one.create(ctx, secrets, name, "meanwhile"))

	grant(kinds...)
	must(within(ctx, 3*time.Minute, func() error {
		if d.errors.count("secrets in namespace "+name+" "+seeing) == 0 {
			return errors.New("the daemon does not report that secrets are watched again")
		}
		return nil
	}))
	floor, err := newest(ctx, w.api)
	must(err)
	o.note(func() { away.ended, away.floor = time.Now(), floor })
	must(h.some(ctx, 40))
	h.stop()
	for _, r := range kinds {
		must(one.create(ctx, r, name, "last"))
		must(within(ctx, 2*time.Minute, func() error { return arrived(r, "last") }))
	}
	must(arrived(secrets, "meanwhile"), within(ctx, 3*time.Minute, w.behind))
	server := state(ctx, t, w.api, []string{name})
	d.end()
	for text, want := range map[string]int{blind: 1, seeing: 1} {
		if n := d.errors.count(text); n != want {
			t.Errorf("the daemon said %d times that something %s, want %d:\n%s", n, text, want, lastLinesWith(d.errors.String(), text))
		}
	}

	seen, err := w.finish()
	must(err)
	j := newJudge(seen, o.causes, name)
	readJournal(ctx, t, d.journal, j)
	j.end(server)
	j.sink("file", func(r *row) bool { return r.op != event.Snapshot }, fileLines(t, changes))
	if verdict := j.verdict(); verdict != "" {
		t.Error(verdict)
	}
	t.Logf("judged: %d versions in the journal, %d within %d gaps", j.exact, j.net, len(j.gaps))
}

// role allows watching some kinds.
func role(name string, allowed ...resource) fields {
	rules := []fields{}
	for _, r := range allowed {
		rules = append(rules, fields{"apiGroups": []string{r.group}, "resources": []string{r.plural}, "verbs": []string{"get", "list", "watch"}})
	}
	return fields{"apiVersion": clusterRoles.apiVersion(), "kind": clusterRoles.kind, "metadata": fields{"name": name}, "rules": rules}
}

func lastLinesWith(s, text string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if strings.Contains(line, text) {
			b.WriteString(line)
		}
	}
	return b.String()
}
